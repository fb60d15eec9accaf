"""Building a model: values, and the calls that make them."""

from __future__ import annotations

import ctypes
from typing import Any, Iterator, Mapping, NoReturn, Sequence
from contextlib import contextmanager

from . import c
from ._base import Error, Handle, Options, Status, check, encoded, enum_number, failed, made, whole
from .calls import Calls


class Value:
    """A value of the graph under construction: what a layer or an op makes. `+ - * /` work on values and numbers."""

    __slots__ = ("builder", "raw")
    __array_ufunc__ = None  # NumPy leaves operators to this class

    def __init__(self, builder: Builder, raw: Any) -> None:
        self.builder = builder
        self.raw = raw

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions, for 2 samples in the first one."""
        b = self.builder
        return tuple(c.mixt_value_dim(b._p, self.raw, i) for i in range(c.mixt_value_rank(b._p, self.raw)))

    def __repr__(self) -> str:
        return f"<mixt.Value {'×'.join(map(str, self.shape))}>" if not self.builder.closed else "<mixt.Value>"

    def _with(self, other: Any, op: Any, factor: Any) -> Any:
        if isinstance(other, Value):
            return self.builder._call(op, (self, other), None, {})
        if isinstance(other, (int, float)) and not isinstance(other, bool):
            return self.builder._call(c.mixt_affine, (self,) + factor(float(other)), None, {})
        return NotImplemented

    def __add__(self, other: Value | float) -> Value:
        return self._with(other, c.mixt_add, lambda n: (1.0, n))  # type: ignore[no-any-return]

    def __sub__(self, other: Value | float) -> Value:
        return self._with(other, c.mixt_sub, lambda n: (1.0, -n))  # type: ignore[no-any-return]

    def __mul__(self, other: Value | float) -> Value:
        return self._with(other, c.mixt_mul, lambda n: (n, 0.0))  # type: ignore[no-any-return]

    def __truediv__(self, other: Value | float) -> Value:
        if other == 0:
            raise Error("a value divided by 0")
        return self._with(other, c.mixt_div, lambda n: (1.0 / n, 0.0))  # type: ignore[no-any-return]

    def __radd__(self, other: float) -> Value:
        return self + other

    def __rmul__(self, other: float) -> Value:
        return self * other

    def __rsub__(self, other: float) -> Value:
        return (-self) + other

    def __neg__(self) -> Value:
        return self.builder.neg(self)

    def __matmul__(self, other: Value) -> Value:
        return self.builder.matmul(self, other)


class Builder(Calls, Handle):
    """Ops and layers. A model function gets one, and calls it as `b.linear("fc", x, 10)`; options are keywords. Calls are
    kept, and made again for each batch size, for training and for evaluation."""

    _what = "builder"

    def __init__(self, context: Handle) -> None:
        Handle.__init__(self, made(c.mixt_builder_new, context._p), None, context)

    def _call(self, function: Any, arguments: tuple[Any, ...], struct: Any, options: Mapping[str, Any]) -> Value:
        name = function.__name__.removeprefix("mixt_").removesuffix("_with")
        raw = []
        for argument, kind in zip(arguments, function.argtypes[1:]):
            raw.append(self._raw(argument, kind, name))
        if struct is not None:
            given = {k: self._checked(v, name) for k, v in options.items() if v is not None}
            filled = Options(struct, given, name)
            raw.append(filled.at)
        try:
            value = Value(self, function(self._p, *raw))
        except ctypes.ArgumentError as fault:
            raise Error(f"{name}: {fault}") from None
        if value.raw.id == 0:
            self._told()
        return value

    def _checked(self, value: Any, name: str) -> Any:
        if isinstance(value, Value) and value.builder is not self:
            raise Error(f"{name}: a value of another model")
        return value

    def _raw(self, argument: Any, kind: Any, name: str) -> Any:
        if kind is c.mixt_value:
            if not isinstance(argument, Value):
                raise Error(f"{name}: expected a value of the model, found {type(argument).__name__}")
            return self._checked(argument, name).raw
        if kind is ctypes.c_char_p:
            return None if argument is None else encoded(argument, f"{name}: the name")
        if kind is ctypes.c_int and isinstance(argument, str):
            return enum_number("mixt_dtype", argument, name)
        try:
            return float(argument) if kind in (ctypes.c_float, ctypes.c_double) else whole(argument)
        except (TypeError, ValueError, OverflowError) as fault:
            raise Error(f"{name}: {fault}") from None

    # ---- by hand: what takes lists ----

    def input(self, name: str | None = None, dims: Sequence[int] = (), dtype: str = "fp32") -> Value:
        """Another input of the data, by its name: `dims` of one sample, "fp32" or "int32". Model functions get the first."""
        return self._declared(c.mixt_builder_input, name, dims, dtype)

    def target(self, name: str | None = None, dims: Sequence[int] = (), dtype: str = "fp32") -> Value:
        """A target of the data, for losses of the model's own."""
        return self._declared(c.mixt_builder_target, name, dims, dtype)

    def _declared(self, function: Any, name: str | None, dims: Sequence[int], dtype: str) -> Value:
        sizes = self._sizes(dims, "dims")
        word = None if name is None else encoded(name, "name")
        raw = function(self._p, word, enum_number("mixt_dtype", dtype, "dtype"), len(dims), sizes)
        if raw.id == 0:
            self._told()
        return Value(self, raw)

    def _sizes(self, numbers: Sequence[int], what: str, kind: Any = ctypes.c_int64) -> Any:
        try:
            return (kind * max(len(numbers), 1))(*[whole(n) for n in numbers])
        except (TypeError, OverflowError) as fault:
            raise Error(f"{what}: {fault}") from None

    def reshape(self, x: Value, *dims: int) -> Value:
        """Another shape of the same numbers. One dimension may be -1: it takes what is left; the samples' should be."""
        sizes = dims[0] if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else dims
        return self._listed(
            "reshape", lambda: c.mixt_reshape(self._p, self._one(x), len(sizes), self._sizes(sizes, "reshape"))
        )

    def transpose(self, x: Value, *order: int) -> Value:
        """Dimension i of the result is dimension order[i] of x."""
        sizes = order[0] if len(order) == 1 and isinstance(order[0], (list, tuple)) else order
        if len(sizes) != len(x.shape):
            raise Error(f"transpose: {len(sizes)} dimensions for a value that has {len(x.shape)}")
        return self._listed(
            "transpose", lambda: c.mixt_transpose(self._p, self._one(x), self._sizes(sizes, "transpose", ctypes.c_int))
        )

    def concat(self, parts: Sequence[Value], axis: int = -1) -> Value:
        """Parts one behind the other along a dimension, the other dimensions equal."""
        raw = (c.mixt_value * max(len(parts), 1))(*[self._one(p) for p in parts])
        return self._listed("concat", lambda: c.mixt_concat(self._p, raw, len(parts), whole(axis)))

    def split(self, x: Value, parts: int | Sequence[int]) -> list[Value]:
        """Equal parts of the last dimension, or parts of these sizes; at most 8."""
        count = whole(parts) if hasattr(parts, "__index__") else len(parts)
        if not 1 <= count <= 8:
            raise Error(f"split: {count} parts; 1 to 8 can be made")
        raw = (c.mixt_value * count)()
        if hasattr(parts, "__index__"):
            c.mixt_split(self._p, self._one(x), count, raw)
        else:
            c.mixt_split_at(self._p, self._one(x), count, self._sizes(parts, "split"), raw)
        if raw[0].id == 0:
            self._told()
        return [Value(self, c.mixt_value(r.id)) for r in raw]

    def loss_add(self, loss: Value, weight: float = 1.0) -> None:
        """Adds weight × loss to what the model is trained for; for models with loss="custom"."""
        c.mixt_loss_add(self._p, self._one(loss), float(weight))

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Layers made within get "name." before their names."""
        c.mixt_scope_push(self._p, encoded(name, "scope"))
        try:
            yield
        finally:
            c.mixt_scope_pop(self._p)

    def _one(self, x: Any) -> Any:
        if not isinstance(x, Value):
            raise Error(f"expected a value of the model, found {type(x).__name__}")
        return self._checked(x, "value").raw

    def _listed(self, name: str, call: Any) -> Value:
        try:
            raw = call()
        except (TypeError, ctypes.ArgumentError) as fault:
            raise Error(f"{name}: {fault}") from None
        if raw.id == 0:
            self._told()
        return Value(self, raw)

    # ---- the end ----

    def _finish(self, output: Any, loss: int, options: Options) -> int:
        """The model of what was built; ends the builder."""
        pointer, self._pointer = self._p, None
        if not isinstance(output, Value) or output.builder is not self:
            c.mixt_builder_free(pointer)
            raise Error(f"the model function returned {type(output).__name__}: it must return a value that it made")
        model = ctypes.c_void_p()
        check(c.mixt_builder_finish(pointer, output.raw, loss, options.at, ctypes.byref(model)))
        return model.value or 0

    def _told(self) -> NoReturn:
        """The first call that failed, in the builder's words, which ends it."""
        pointer, self._pointer = self._p, None
        model = ctypes.c_void_p()
        status = c.mixt_builder_finish(
            pointer, c.mixt_value(0), c.mixt_loss.MIXT_LOSS_CUSTOM, None, ctypes.byref(model)
        )
        failed(status or Status.MIXT_ERROR_INTERNAL)

    def _drop(self) -> None:
        if self._pointer is not None:
            c.mixt_builder_free(self._pointer)
            self._pointer = None
