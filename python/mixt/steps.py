"""What an update did."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from . import c
from ._base import text_of

_size = ctypes.sizeof(c.mixt_step)
_at: dict[str, int] = {row[0]: getattr(c.mixt_step, row[0]).offset for row in c.mixt_step._fields_}
_loss_from = struct.Struct(f"{_at['loss']}xd").unpack_from


class Step:
    """What an update did: `step.loss`, `step.accuracy`, …"""

    __slots__ = ("_raw", "overflow_layer")

    def __init__(self, raw: bytes, overflow_layer: str | None) -> None:
        self._raw = raw
        self.overflow_layer = overflow_layer
        """Parameter whose gradient was not finite first; None: all were."""

    def _whole(self, name: str) -> int:
        return int.from_bytes(self._raw[_at[name] : _at[name] + 8], "little", signed=True)

    def _number(self, name: str) -> float:
        return float(struct.unpack_from("d", self._raw, _at[name])[0])

    @property
    def loss(self) -> float:
        """Mean over the update's targets that count."""
        return _loss_from(self._raw)[0]  # type: ignore[no-any-return]

    @property
    def accuracy(self) -> float:
        """Share of correct predictions, 0 to 1; NaN where the loss has none."""
        return self._number("accuracy")

    @property
    def step(self) -> int:
        """Updates tried so far, this one included."""
        return self._whole("step")

    @property
    def applied(self) -> int:
        """Of those, updates that changed the weights."""
        return self._whole("applied")

    @property
    def epoch(self) -> int:
        """The pass over the data that its batch is of, from 1; 0: a batch of your own."""
        return self._whole("epoch")

    @property
    def samples(self) -> int:
        """Samples in it."""
        return self._whole("samples")

    @property
    def lr(self) -> float:
        """The learning rate."""
        return self._number("lr")

    @property
    def scale(self) -> float:
        """The loss scale."""
        return self._number("scale")

    @property
    def grad_norm(self) -> float:
        """Norm of the gradient, before clipping."""
        return self._number("grad_norm")

    @property
    def skipped(self) -> bool:
        """A gradient was not finite: nothing was changed."""
        return bool(self._raw[_at["skipped"]])

    def as_dict(self) -> dict[str, Any]:
        """All of it, for tables and logs."""
        names = (
            "step",
            "applied",
            "epoch",
            "samples",
            "loss",
            "accuracy",
            "lr",
            "scale",
            "grad_norm",
            "skipped",
            "overflow_layer",
        )
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        return f"Step(step={self.step}, loss={self.loss:.6g}, accuracy={self.accuracy:.4g}, lr={self.lr:.4g})"


def step_of(made: Any) -> Step:
    """A mixt_step as a value."""
    layer = made.overflow_layer if made.skipped else None
    return Step(bytes(made), None if layer is None else text_of(layer))
