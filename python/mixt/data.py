"""Data sets: those that mixt opens, and arrays of one's own."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from . import c
from ._base import Error, Handle, Options, Status, check, encoded, made, text_of, value_of
from .arrays import Array, as_array, copied, inputs_of, numbers
from .results import DataArray, DataInfo

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import DataOptions


class Data(Handle):
    """A data set: `Data("idx:mnist", split="test")`, or arrays of one's own: `Data(x, y)`, which are copied. Floating-point
    targets are values to predict, whole numbers classes."""

    _what = "data set"

    def __init__(self, source: Any, y: Any = None, /, **options: Unpack[DataOptions]) -> None:
        filled = Options(c.mixt_data_options, options, "Data")
        if isinstance(source, str) or hasattr(source, "__fspath__"):
            if y is not None:
                raise Error("Data: targets go with arrays, not with the name of a set")
            pointer = made(c.mixt_data_open_with, encoded(source, "data"), filled.at)
        else:
            pointer = _of_arrays(source, y, filled)
        super().__init__(pointer, c.mixt_data_close)

    @classmethod
    def _borrowed(cls, pointer: int, owner: Handle) -> Data:
        found = cls.__new__(cls)
        Handle.__init__(found, pointer, None, owner)
        return found

    @property
    def info(self) -> DataInfo:
        """What its samples are like, and how many there are."""
        info: DataInfo = value_of(c.mixt_data_describe(self._p).contents)
        return info

    @property
    def arrays(self) -> list[DataArray]:
        """Its inputs and targets, by name."""
        info = c.mixt_data_describe(self._p).contents
        return [value_of(info.arrays[i]) for i in range(info.array_count)]

    @property
    def classes(self) -> list[str]:
        """What classes are called; empty where nobody says so."""
        info = c.mixt_data_describe(self._p).contents
        return [text_of(info.class_names[i]) for i in range(info.classes)] if info.class_names else []

    @property
    def mean(self) -> Array:
        """What samples were normalised with, a number a channel."""
        info = c.mixt_data_describe(self._p).contents
        return copied(info.mean, info.channels)

    @property
    def std(self) -> Array:
        info = c.mixt_data_describe(self._p).contents
        return copied(info.std, info.channels)

    def __len__(self) -> int:
        return int(c.mixt_data_describe(self._p).contents.samples)

    def batch(self, size: int, number: int = 0) -> tuple[Array, Array]:
        """Batch `number` of training, shuffled and normalised: inputs and targets. For sets of one input and one target."""
        pointers = ctypes.c_void_p(), ctypes.c_void_p()
        try:
            check(
                c.mixt_data_batch_tensors(self._p, size, number, ctypes.byref(pointers[0]), ctypes.byref(pointers[1]))
            )
            return _copy_of(pointers[0]), _copy_of(pointers[1])
        except ctypes.ArgumentError as fault:
            raise Error(f"batch: {fault}") from None
        finally:
            for pointer in pointers:
                c.mixt_tensor_free(pointer)

    def __repr__(self) -> str:
        if self.closed:
            return "<mixt.Data, closed>"
        info = self.info
        return f"<mixt.Data {info.kind}: {info.samples} samples of {'×'.join(map(str, info.input_dims))}>"


def _copy_of(tensor: Any) -> Array:
    shape = [c.mixt_tensor_dim(tensor, i) for i in range(c.mixt_tensor_rank(tensor))]
    dtype = np.int32 if c.mixt_tensor_dtype(tensor) == c.mixt_dtype.MIXT_DTYPE_INT32 else np.float32
    return copied(c.mixt_tensor_data(tensor), c.mixt_tensor_elements(tensor), dtype).reshape(shape)


def targets_of(y: Any) -> Array:
    """Targets: whole numbers are classes (INT32), others values (FP32)."""
    array = as_array(y, "y")
    if array.dtype.kind == "b":
        array = array.astype(np.int32)
    return numbers(array, np.int32 if array.dtype.kind in "iu" else np.float32, "y")


def _of_arrays(x: Any, y: Any, options: Options) -> int:
    """A set of copies of arrays. Bytes are scaled to [0, 1], as those of a file are."""
    first = as_array(x, "x")
    inputs = np.ascontiguousarray(first) if first.dtype == np.uint8 else inputs_of(first)
    if y is None:
        raise Error("Data: arrays need targets: Data(x, y)")
    targets = targets_of(y)
    if inputs.ndim < 2 or not 1 <= targets.ndim <= 2:
        raise Error(
            f"Data: inputs of shape {inputs.shape}, targets of shape {targets.shape}: samples come first, then what one holds",
            Status.MIXT_ERROR_SHAPE,
        )
    if len(inputs) != len(targets):
        raise Error(f"Data: {len(inputs)} samples and {len(targets)} targets", Status.MIXT_ERROR_SHAPE)
    tokens = inputs.dtype == np.int32 and targets.ndim == 2
    kind = "class" if targets.dtype == np.int32 and not tokens else "tokens" if tokens else "values"
    if kind == "class" and targets.ndim == 2:
        raise Error("Data: a sample has one class; give values as floating-point numbers", Status.MIXT_ERROR_SHAPE)
    made_of = {"input_dims": inputs.shape[1:], "target": kind, "samples": len(inputs)}
    made_of["input_dtype"] = {"float32": "fp32", "int32": "int32", "uint8": "uint8"}[inputs.dtype.name]
    arrays = Options(c.mixt_data_arrays, made_of, "Data")
    arrays.struct.input_rank = inputs.ndim - 1
    arrays.struct.inputs = inputs.ctypes.data
    arrays.struct.targets = targets.ctypes.data
    arrays.struct.target_elements = targets.size // max(len(targets), 1) if kind == "values" else 1
    return made(c.mixt_data_from, arrays.at, options.at)


def named(columns: dict[str, Any], targets: Sequence[str], **options: Any) -> Data:
    """A data set of several arrays, for models that ask for them by name: `named({"user": u, "rating": r}, ["rating"])`."""
    rows = (c.mixt_data_column * max(len(columns), 1))()
    kept = []
    samples = None
    for row, (name, values) in zip(rows, columns.items()):
        array = targets_of(values)
        samples = len(array) if samples is None else samples
        if array.ndim < 1 or len(array) != samples:
            raise Error(
                f"{name}: {array.shape[0] if array.ndim else 0} rows, others have {samples}", Status.MIXT_ERROR_SHAPE
            )
        kept.append(array)
        row.name = encoded(name, "column")
        row.target = name in targets
        row.dtype = c.mixt_dtype.MIXT_DTYPE_INT32 if array.dtype == np.int32 else c.mixt_dtype.MIXT_DTYPE_FP32
        row.rank = array.ndim - 1
        row.dims[: array.ndim - 1] = array.shape[1:]
        row.values = array.ctypes.data
    filled = Options(c.mixt_data_options, options, "named")
    pointer = made(c.mixt_data_from_columns, b"memory", rows, len(columns), samples or 0, filled.at)
    data = Data.__new__(Data)
    Handle.__init__(data, pointer, c.mixt_data_close)
    return data
