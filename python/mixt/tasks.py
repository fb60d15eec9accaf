"""What some models are for: transcripts, recommendations, pictures with captions; curves, live pages, conversations as text."""

from __future__ import annotations

import ctypes
import json
import os
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from . import c
from ._base import Error, Handle, Options, check, encoded, filled, made, taken, text_of, value_of
from .results import Ranking, Rated, Recall, TranscriptRates
from .run import Run

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import ChatRenderOptions, RankingOptions


class _Opened:
    """A run, or the run of a directory for the length of a `with` block; its lock is held."""

    def __init__(self, run: Any) -> None:
        self.given = run

    def __enter__(self) -> Run:
        self.run = self.given if isinstance(self.given, Run) else Run.load(self.given)
        self.run._lock.acquire()
        return self.run

    def __exit__(self, *_: Any) -> None:
        self.run._lock.release()
        if self.run is not self.given:
            self.run.close()


def transcribe(run: Any, recording: str | os.PathLike[str], *, beam: int = 1) -> str:
    """What is said in a recording, by a run that was trained on transcripts."""
    with _Opened(run) as opened:
        facts = opened.facts
        classes = facts.info.classes
        if facts.info.target != "text":
            raise Error("transcribe: the model was not trained on transcripts")
        outputs = np.ascontiguousarray(opened.predict(recording).outputs[0], np.float32)
        letters = (ctypes.c_int32 * max(len(outputs) // classes, 1))()
        count, text = ctypes.c_int64(), ctypes.c_void_p()
        floats = outputs.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        check(
            c.mixt_transcript_decode(floats, len(outputs) // classes, classes, int(beam), letters, ctypes.byref(count))
        )
        check(c.mixt_transcript_text(facts._p, letters, count.value, ctypes.byref(text)))
        return taken(text)


def transcript_rates(run: Any, split: str = "test", *, beam: int = 1) -> TranscriptRates:
    """How many letters and words of a part's transcripts come out wrong."""
    with _Opened(run) as opened:
        found = c.mixt_transcript_rates()
        check(c.mixt_transcript_measure(c.mixt_run_trainer(opened._idle()), opened.data(split)._p, int(beam), found))
        return value_of(found)  # type: ignore[no-any-return]


def recommend(run: Any, user: int, top: int = 10) -> list[Rated]:
    """The items that a user would like most, of those that he has not rated."""
    with _Opened(run) as opened:
        if not 1 <= int(top) <= 1 << 20:
            raise Error(f"recommend: top={top}: expected 1 or more")
        items, found = (c.mixt_rated * int(top))(), ctypes.c_int64()
        trainer = c.mixt_run_trainer(opened._idle())
        check(c.mixt_ratings_top(trainer, opened.data("train")._p, int(user), int(top), items, ctypes.byref(found)))
        return [value_of(items[i]) for i in range(found.value)]


def ranking(run: Any, split: str = "test", **options: Unpack[RankingOptions]) -> Ranking:
    """How well held-out items are ranked among others: hit rate and NDCG."""
    filled_in = Options(c.mixt_ranking_options, options, "ranking")
    with _Opened(run) as opened:
        found = c.mixt_ranking()
        seen, held = opened.data("train"), opened.data(split)
        check(c.mixt_ratings_rank(c.mixt_run_trainer(opened._idle()), seen._p, held._p, filled_in.at, found))
        return value_of(found)  # type: ignore[no-any-return]


def recall(run: Any, split: str = "test") -> Recall:
    """How often the right caption is among the first that a picture finds, and the other way round."""
    with _Opened(run) as opened:
        found: Recall = filled(
            c.mixt_recall, c.mixt_pairs_recall, c.mixt_run_trainer(opened._idle()), opened.data(split)._p
        )
        return found


# ---- curves and pages ----


def plot(
    runs: Any,
    out: str | os.PathLike[str] = "plot.svg",
    *,
    metric: str | Sequence[str] = "loss",
    x: str = "step",
    smooth: int = 1,
    log: bool = False,
    overwrite: bool = False,
) -> str:
    """Draws curves of what runs have measured, as .svg or .png; gives the file's name."""
    from .commands import metrics

    paths = [runs] if isinstance(runs, (str, os.PathLike)) else list(runs)
    names = [metric] if isinstance(metric, str) else list(metric)
    if not 1 <= len(paths) * len(names) <= c.MIXT_CURVES_MAX:
        raise Error(f"plot: {len(paths) * len(names)} curves, expected 1 to {c.MIXT_CURVES_MAX}")
    check(c.mixt_plot_check(encoded(out, "out"), overwrite))
    curves = (c.mixt_curve * (len(paths) * len(names)))()
    kept = []
    for i, (path, name) in enumerate((p, n) for p in paths for n in names):
        columns = metrics(path)
        points = np.array([columns[x], columns[name]], np.float64)
        points = np.ascontiguousarray(points[:, np.isfinite(points).all(axis=0)])
        smoothed = np.empty(points.shape[1])
        doubles = ctypes.POINTER(ctypes.c_double)
        c.mixt_curve_smooth(
            points[1].ctypes.data_as(doubles), points.shape[1], max(int(smooth), 1), smoothed.ctypes.data_as(doubles)
        )
        label = encoded(
            name
            if len(paths) == 1
            else f"{os.path.basename(os.fspath(path).rstrip('/'))}{'' if len(names) == 1 else ' ' + name}"
        )
        kept += [points, smoothed, label]
        curves[i] = c.mixt_curve(
            label,
            points[0].ctypes.data_as(doubles),
            smoothed.ctypes.data_as(doubles),
            None,
            None,
            points.shape[1],
            False,
        )
    word = encoded(names[0]) if len(names) == 1 else None
    check(
        c.mixt_plot_write(c.mixt_plot(None, encoded(x), word, curves, len(curves), log), encoded(out, "out"), overwrite)
    )
    return os.fspath(out)


class Page(Handle):
    """Runs as a page in a browser, live while they train: `address` says where. It ends when it is closed."""

    _what = "page"

    def __init__(self, folders: Any, *, port: int = 0) -> None:
        paths = [folders] if isinstance(folders, (str, os.PathLike)) else list(folders)
        array = (ctypes.c_char_p * max(len(paths), 1))(*[encoded(p, "folder") for p in paths])
        super().__init__(made(c.mixt_page_serve, array, len(paths), int(port)), c.mixt_page_stop)

    @property
    def address(self) -> str:
        """What to open in a browser, on this machine."""
        return text_of(c.mixt_page_address(self._p))


def watch(folders: Any, *, port: int = 0) -> Page:
    """Serves a page of runs, live: `with mixt.watch("runs/") as page: print(page.address); input()`."""
    return Page(folders, port=port)


# ---- conversations ----


def render(template: str | os.PathLike[str], messages: Any, **options: Unpack[ChatRenderOptions]) -> str:
    """The text that a chat template, or a model's folder with one, makes of messages: a list of {"role", "content"}."""
    filled_in = Options(c.mixt_chat_render_options, options, "render")
    pointer = made(c.mixt_chat_template_read, encoded(template, "template"))
    text, size = ctypes.c_void_p(), ctypes.c_int64()
    try:
        check(
            c.mixt_chat_render(
                pointer, encoded(json.dumps(messages)), None, filled_in.at, ctypes.byref(text), ctypes.byref(size)
            )
        )
        return ctypes.string_at(text.value or 0, size.value).decode("utf-8", "replace") if size.value else ""
    except (TypeError, ValueError) as fault:
        raise Error(f"render: {fault}") from None
    finally:
        c.mixt_free(text)
        c.mixt_chat_template_free(pointer)
