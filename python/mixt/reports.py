"""Predictions in more than one number."""

from __future__ import annotations

import dataclasses

import numpy as np

from . import c
from ._base import made, value_of
from .arrays import Array, copied
from .results import ClassFigures, ReportInfo


@dataclasses.dataclass(frozen=True)
class Report:
    """Figures over all samples, of each class, and which class was taken for which: confusion[row, column] counts samples of
    the row's class taken for the column's."""

    info: ReportInfo
    figures: list[ClassFigures]
    confusion: Array | None


def report_of(trainer: int | None, data: int) -> Report:
    pointer = made(c.mixt_report_of, trainer, data)
    try:
        raw = c.mixt_report_describe(pointer).contents
        count = raw.classes
        figures = [value_of(raw.figures[i]) for i in range(count)] if raw.figures else []
        pairs = copied(raw.confusion, count * count, np.int64).reshape(count, count) if raw.confusion else None
        return Report(value_of(raw), figures, pairs)
    finally:
        c.mixt_report_free(pointer)
