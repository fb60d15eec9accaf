"""One live line that says how far something is: in terminals, and in notebooks."""

from __future__ import annotations

import sys
import time
from typing import Any


def in_notebook() -> bool:
    """Whether IPython's kernel shows what is printed."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class Line:
    """Shows a text in place of the one before, ten times a second at most. Nothing where nobody looks."""

    def __init__(self, shown: bool | None = None) -> None:
        self.notebook = in_notebook()
        self.stream = sys.stdout if self.notebook else sys.stderr
        self.shown = bool(self.notebook or getattr(self.stream, "isatty", lambda: False)()) if shown is None else shown
        self.width = 0
        self.next = 0.0
        self.handle: Any = None

    def show(self, text: str, last: bool = False) -> None:
        now = time.monotonic()
        if not self.shown or (now < self.next and not last):
            return
        self.next = now + 0.1
        if self.notebook:
            self._display(text)
            return
        self.stream.write("\r" + text.ljust(self.width))
        self.width = len(text)
        self.stream.flush()

    def _display(self, text: str) -> None:
        from IPython.display import Pretty, display  # type: ignore[import-not-found, unused-ignore]

        if self.handle is None:
            self.handle = display(Pretty(text), display_id=True)
        else:
            self.handle.update(Pretty(text))

    def note(self, text: str, warning: bool = False) -> None:
        """A line that stays; warnings also where little is shown."""
        if self.shown or warning:
            self.clear()
            print(f"mixt: {text}", file=self.stream if self.shown else sys.stderr)

    def clear(self) -> None:
        if self.shown and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.width = 0

    def end(self) -> None:
        if self.shown and self.width:
            self.stream.write("\n")
            self.stream.flush()
            self.width = 0


def bar(done: int, total: int, width: int = 20) -> str:
    """[#####     ]"""
    full = width * done // total if total > 0 else 0
    return "[" + "#" * full + " " * (width - full) + "]"


def listener(line: Line) -> Any:
    """For functions that take `progress`: shows what they tell."""

    def hear(p: Any) -> None:
        if p.kind in ("note", "warning", "part"):
            line.note(p.text, p.kind == "warning")
        else:
            of = f"{p.done}/{p.total} {p.unit}" if p.total else f"{p.done} {p.unit}"
            line.show(f"{p.task} {p.what} {bar(p.done, p.total)} {of} {p.text or ''}")

    return hear
