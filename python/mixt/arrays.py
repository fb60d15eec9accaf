"""Arrays in and out: NumPy's, and those of other libraries by DLPack, without a copy where numbers and order are right."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

import numpy as np
import numpy.typing as npt

from . import c
from ._base import Error, Handle, Status, check, made, text_of

Array = npt.NDArray[Any]
FP32, INT32 = int(c.mixt_dtype.MIXT_DTYPE_FP32), int(c.mixt_dtype.MIXT_DTYPE_INT32)
UINT8 = int(c.mixt_dtype.MIXT_DTYPE_UINT8)
_CODES = {np.dtype(np.float32): FP32, np.dtype(np.int32): INT32, np.dtype(np.uint8): UINT8}


def as_array(x: Any, what: str) -> Array:
    """A NumPy array over the same memory where there is one, else of the values of lists and tables."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "__dlpack__"):
        try:
            return np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError, ValueError, AttributeError) as fault:
            raise Error(
                f"{what}: {fault}: it must be in the host's memory, without a gradient", Status.MIXT_ERROR_UNSUPPORTED
            ) from None
    if isinstance(x, (str, bytes)) or x is None:
        raise Error(f"{what}: expected an array, found {type(x).__name__}")
    try:
        return np.asarray(x)
    except (TypeError, ValueError) as fault:
        raise Error(f"{what}: {fault}") from None


def numbers(x: Any, dtype: Any, what: str) -> Array:
    """Row after row, in one format: the array itself where it is so, else a copy."""
    array = as_array(x, what)
    if array.dtype == dtype and array.flags.c_contiguous:
        return array
    if array.dtype.kind not in "fiub" or (np.dtype(dtype).kind == "i" and array.dtype.kind == "f"):
        raise Error(f"{what}: {array.dtype} numbers, expected {np.dtype(dtype).name}", Status.MIXT_ERROR_DTYPE)
    if np.dtype(dtype).kind == "i" and array.size and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
        raise Error(f"{what}: numbers past those of int32", Status.MIXT_ERROR_DATA)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=dtype)


def inputs_of(x: Any) -> Array:
    """Inputs of samples: tokens as INT32, all else as FP32."""
    array = as_array(x, "x")
    kind = np.int32 if array.dtype.kind in "iu" and array.dtype.itemsize >= 4 else np.float32
    return numbers(array, kind, "x")


def copied(pointer: Any, count: int, dtype: Any = np.float32) -> Array:
    """A copy of numbers of the library's."""
    if not pointer or not count:
        return np.empty(0, dtype)
    kind = np.ctypeslib.as_ctypes_type(dtype)
    return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(kind)), (count,)).copy()


def tensor_over(array: Array) -> int:
    """A tensor of the library over an array, which must outlive it."""
    dims = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    return made(c.mixt_tensor_over, array.ctypes.data, _CODES[array.dtype], array.ndim, dims)


# ---- memory of the library's, shown to others ----

_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype = ctypes.py_object
_capsule_new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_capsule_valid = ctypes.pythonapi.PyCapsule_IsValid
_capsule_valid.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_NAME = b"dltensor_versioned"


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)  # type: ignore[untyped-decorator, unused-ignore]
def _capsule_ended(capsule: int) -> None:
    """Of a capsule that nobody took the tensor out of."""
    if _capsule_valid(capsule, _NAME):
        managed = ctypes.cast(_capsule_pointer(capsule, _NAME), ctypes.POINTER(c.mixt_dlpack))
        managed.contents.deleter(managed)


class Tensor(Handle):
    """Memory of the library's, as it lies: `numpy.from_dlpack(t)`, `torch.from_dlpack(t)` show it without a copy. It cannot
    be written there. While one is there its trainer is neither closed nor compiled anew."""

    _what = "tensor"

    def __init__(self, pointer: int, owner: Handle) -> None:
        super().__init__(pointer, c.mixt_tensor_free, owner)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(c.mixt_tensor_dim(self._p, i) for i in range(c.mixt_tensor_rank(self._p)))

    @property
    def dtype(self) -> str:
        """ "fp32", "bf16", …"""
        return text_of(c.mixt_dtype_name(c.mixt_tensor_dtype(self._p)))

    @property
    def device(self) -> str:
        """ "cpu" or "cuda" """
        return text_of(c.mixt_tensor_device(self._p))

    @property
    def pointer(self) -> int:
        """The address of its first number."""
        return c.mixt_tensor_data(self._p) or 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return (c.MIXT_DLPACK_CPU if self.device == "cpu" else c.MIXT_DLPACK_CUDA, 0)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Sequence[int] | None = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        if not max_version or max_version[0] < 1:
            raise BufferError("a mixt.Tensor is given by DLPack 1 or later, which NumPy 2.1 and PyTorch 2.7 ask for")
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("a mixt.Tensor is shown where it lies, without a copy")
        managed = ctypes.POINTER(c.mixt_dlpack)()
        check(c.mixt_tensor_to_dlpack(self._p, ctypes.byref(managed)))
        address = ctypes.addressof(managed.contents)
        _shown[address] = (self, ctypes.cast(managed.contents.deleter, ctypes.c_void_p).value)
        managed.contents.deleter = _returned
        return _capsule_new(address, _NAME, ctypes.cast(_capsule_ended, ctypes.c_void_p))

    def numpy(self) -> Array:
        """The numbers where they lie, read-only."""
        return np.from_dlpack(self)


# What other libraries show of the library's memory, and how it is ended: the tensor lives as long as that.
_shown: dict[int, tuple[Tensor, Any]] = {}
_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(c.mixt_dlpack))


@_Deleter  # type: ignore[untyped-decorator, unused-ignore]
def _returned(
    managed: Any, shown: dict[int, tuple[Tensor, Any]] = _shown, deleter: Any = _Deleter, at: Any = ctypes.addressof
) -> None:
    """Another library has let go of a tensor."""
    found = shown.pop(at(managed.contents), None)
    if found is not None:
        deleter(found[1])(managed)


# Arrays may be freed while the interpreter ends, after this module: what they call stays.
for _kept in (_returned, _capsule_ended):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))
