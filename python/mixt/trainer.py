"""Models that are Python functions, and what trains them."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping

import numpy as np

from . import c
from ._base import Error, Handle, Options, Status, check, encoded, enum_number, failed, filled, made, text_of
from .arrays import Array, Tensor, copied, inputs_of, numbers
from .builder import Builder, Value
from .data import Data, targets_of
from .results import Evaluation, Memory, ParamInfo
from .steps import Step, step_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import LoraOptions, TrainerOptions
    from .policy import Policy

_step_on = c.mixt_trainer_step_on
_FLOAT, _INT = np.dtype(np.float32), np.dtype(np.int32)


class Context(Handle):
    """A device with its threads, and all that is made there. Objects of one context take turns; contexts run at once, each
    in a thread of its own. A model opens one where none is given."""

    _what = "context"

    def __init__(self, device: str = "auto", threads: int = 0) -> None:
        options = Options(c.mixt_context_options, {"device": device, "threads": threads}, "Context")
        super().__init__(made(c.mixt_open_with, options.at), c.mixt_close)


class Model:
    """A model as a function of a builder and its input:

        net = mixt.Model(lambda b, x: b.linear("fc", b.relu(b.linear("h", x, 64)), 10), loss="cross_entropy")

    The function is called when the shape of the samples is known: by the first batch, or at once where `input` says it.
    """

    def __init__(
        self,
        function: Callable[[Builder, Value], Value],
        loss: str = "cross_entropy",
        *,
        label_smoothing: float = 0.0,
        input: tuple[int, ...] | None = None,
        dtype: str = "fp32",
        device: str = "auto",
        threads: int = 0,
        context: Context | None = None,
    ) -> None:
        if not callable(function):
            raise Error(f"Model: expected a function of a builder and a value, found {type(function).__name__}")
        self._function = function
        self._loss = enum_number("mixt_loss", loss, "loss")
        self._options = Options(c.mixt_model_options, {"label_smoothing": label_smoothing}, "Model")
        self._lora: Mapping[str, Any] | None = None
        if context is not None and not isinstance(context, Context):
            raise Error(f"Model: context: expected a mixt.Context, found {type(context).__name__}")
        self.context = context or Context(device, threads)
        self._made: dict[tuple[tuple[int, ...], int], int] = {}
        if input is not None:
            self._for(tuple(input), enum_number("mixt_dtype", dtype, "dtype"))

    def _for(self, dims: tuple[int, ...], dtype: int) -> int:
        """The model for samples of this shape."""
        found = self._made.get((dims, dtype))
        if found:
            return found
        with self.context._lock:
            b = Builder(self.context)
            try:
                x = c.mixt_builder_input(b._p, None, dtype, len(dims), (ctypes.c_int64 * max(len(dims), 1))(*dims))
                if x.id == 0:
                    b._told()
                model = b._finish(self._function(b, Value(b, x)), self._loss, self._options)
            finally:
                b._drop()
            if self._lora is not None:
                check(c.mixt_model_lora(model, Options(c.mixt_lora_options, self._lora, "lora").at))
            self._made[dims, dtype] = model
        return model

    def lora(self, **options: Unpack[LoraOptions]) -> Model:
        """Gives linear layers adapters and freezes all else, for trainers that are made from here on."""
        Options(c.mixt_lora_options, options, "lora")
        self._lora = dict(options)
        for model in self._made.values():
            check(c.mixt_model_lora(model, Options(c.mixt_lora_options, self._lora, "lora").at))
        return self

    def close(self) -> None:
        """Frees its context, and all that was made there."""
        self.context.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise Error(
            "a model cannot be pickled: keep its function, and save the trainer's weights",
            Status.MIXT_ERROR_UNSUPPORTED,
        )


def _probe(b: Builder, x: Value) -> Value:
    return b.linear("probe", x, 1)


class Trainer(Handle):
    """Trains a model: `Trainer(net, precision="bf16", lr=1e-3, batch=64)`. Keywords are those of mixt.options.TrainerOptions.
    It is compiled for the first batch, or data set, that it gets."""

    _what = "trainer"

    def __init__(self, model: Model, **options: Unpack[TrainerOptions]) -> None:
        if not isinstance(model, Model):
            raise Error(f"Trainer: expected a mixt.Model, found {type(model).__name__}")
        self.model = model
        self._given = options
        self._options = Options(c.mixt_trainer_options, options, "Trainer")
        self._views: weakref.WeakSet[Tensor] = weakref.WeakSet()
        self._shape: tuple[Any, ...] | None = None
        self._held: Data | None = None
        self._last = c.mixt_step()
        self._last_at = ctypes.byref(self._last)
        super().__init__(0, None, model.context)
        with self._lock:
            self.model.context._p
            if model._made:
                self._make(next(iter(model._made.values())))
            else:  # wrong options are told here, by a small model in place of the one that waits for its first batch
                probe = Model(_probe, "mse", context=model.context)
                made(c.mixt_trainer_new_with, probe._for((1,), 1), self._options.at)

    def _make(self, model: int) -> int:
        self._pointer = made(c.mixt_trainer_new_with, model, self._options.at)
        return self._pointer

    @property
    def _p(self) -> int:
        pointer = self._alive()
        if not pointer:
            raise Error(
                "the trainer has not seen a batch yet: step, or compile with a data set, first", Status.MIXT_ERROR_STATE
            )
        return pointer

    def _ready(self, dims: tuple[int, ...], dtype: int) -> int:
        """Its pointer, made for samples of this shape where there is none yet."""
        pointer = self._alive()
        return pointer or self._make(self.model._for(dims, dtype))

    def close(self) -> None:
        """Forgets it. What it holds is freed with its context, which is the model's."""
        with self._lock:
            self._unshown("closed")
            self._pointer = None

    # ---- compiling ----

    def compile(
        self, data: Data | None = None, *, input: tuple[int, ...] | None = None, targets: int = 1, dtype: str = "fp32"
    ) -> Trainer:
        """Compiles for a data set, or for samples of a shape, now instead of at the first step."""
        with self._lock:
            if data is not None:
                self._for_data(data)
                check(c.mixt_trainer_compile(self._p, data._p))
            elif input is not None:
                self._compile(tuple(input), enum_number("mixt_dtype", dtype, "dtype"), targets)
            else:
                raise Error("compile: needs a data set, or input=(28, 28, 1)")
        return self

    def _for_data(self, data: Any) -> None:
        if not isinstance(data, Data):
            raise Error(f"expected a mixt.Data, found {type(data).__name__}")
        first = c.mixt_data_describe(data._p).contents
        dims = tuple(first.input_dims[: first.input_rank])
        self._ready(dims, first.input_dtype)
        self._shape = None
        self._held = data

    def _compile(self, dims: tuple[int, ...], dtype: int, targets: int) -> None:
        pointer = self._ready(dims, dtype)
        shape = c.mixt_sample_shape()
        if len(dims) > c.MIXT_MAX_RANK:
            raise Error(f"samples of {len(dims)} dimensions, more than {c.MIXT_MAX_RANK}", Status.MIXT_ERROR_SHAPE)
        shape.input_dtype, shape.input_rank, shape.targets = dtype, len(dims), targets
        shape.input_dims[: len(dims)] = dims
        self._unshown("compiled for another shape")
        check(c.mixt_trainer_compile_for(pointer, shape))
        self._batch_samples = self._options.struct.batch * self._options.struct.accumulate
        self._shape = (dims, dtype, targets)

    def _unshown(self, what: str) -> None:
        if any(not v.closed for v in list(self._views)):
            raise Error(
                f"a parameter of the trainer is shown where it lies (Trainer.tensor): it cannot be {what} before that is let go of",
                Status.MIXT_ERROR_STATE,
            )

    # ---- steps ----

    def step(self, x: Any, y: Any = None) -> Step:
        """One update: on a batch of arrays, accumulate × batch samples, or on the next batch of a data set. Arrays of float32
        and int32 are read where they are: NumPy's, and those that speak DLPack."""
        with self._lock:
            if (
                type(x) is np.ndarray
                and type(y) is np.ndarray
                and x.dtype is _FLOAT
                and self._shape is not None
                and (x.shape, y.shape, y.dtype) == self._fast
                and x.flags.c_contiguous
                and y.flags.c_contiguous
            ):
                status = _step_on(self._p, x.ctypes.data, y.ctypes.data, self._last_at)
                if status:
                    failed(status)
                return step_of(self._last)
            return self._step(x, y)

    _fast: Any = None

    def _step(self, x: Any, y: Any) -> Step:
        self._alive()
        if isinstance(x, Data) and y is None:
            if self._held is not x:
                self._for_data(x)
            check(c.mixt_trainer_step(self._p, x._p, self._last_at))
            return step_of(self._last)
        inputs, targets = self._arrays(x, y)
        check(_step_on(self._p, inputs.ctypes.data, targets.ctypes.data, self._last_at))
        self._fast = (inputs.shape, targets.shape, targets.dtype) if inputs.dtype is _FLOAT else None
        return step_of(self._last)

    def _arrays(self, x: Any, y: Any) -> tuple[Array, Array]:
        """Inputs and targets of a batch as the step reads them; compiles for their shape at the first time."""
        if y is None:
            raise Error("needs targets as well: step(x, y), or a mixt.Data")
        inputs, targets = inputs_of(x), targets_of(y)
        if self.model._loss in (c.mixt_loss.MIXT_LOSS_MSE, c.mixt_loss.MIXT_LOSS_BCE):
            targets = numbers(targets, np.float32, "y")
        elif self.model._loss == c.mixt_loss.MIXT_LOSS_CROSS_ENTROPY and targets.dtype != np.int32:
            raise Error(f"y: {targets.dtype} numbers, but classes are whole numbers", Status.MIXT_ERROR_DTYPE)
        if not inputs.ndim or not targets.ndim or not len(inputs) or len(inputs) != len(targets):
            raise Error(
                f"inputs of shape {inputs.shape} and targets of shape {targets.shape}: as many samples in both, in front",
                Status.MIXT_ERROR_SHAPE,
            )
        dtype = int(c.mixt_dtype.MIXT_DTYPE_INT32 if inputs.dtype == np.int32 else c.mixt_dtype.MIXT_DTYPE_FP32)
        shape = (inputs.shape[1:], dtype, targets.size // len(targets))
        if self._shape is None:
            self._compile(*shape)
        elif shape != self._shape:
            raise Error(
                f"samples of shape {shape[0]} with {shape[2]} targets, but the trainer was compiled for {self._shape[0]} with {self._shape[2]}",
                Status.MIXT_ERROR_SHAPE,
            )
        if len(inputs) != self._batch_samples:
            raise Error(
                f"{len(inputs)} samples, but an update takes {self._batch_samples} (batch × accumulate)",
                Status.MIXT_ERROR_SHAPE,
            )
        return inputs, targets

    def fit(self, data: Data, *, epochs: int = 1, listener: Callable[[Step], Any] | None = None) -> Step:
        """Makes the updates of so many passes over a data set. A listener that returns False ends it."""
        with self._lock:
            last = None
            if not isinstance(data, Data):
                raise Error(f"fit: expected a mixt.Data, found {type(data).__name__}")
            updates = c.mixt_data_batches(data._p, self._options.struct.batch) // self._options.struct.accumulate
            if updates < 1:
                raise Error(f"fit: {len(data)} samples, fewer than an update takes", Status.MIXT_ERROR_DATA)
            for _ in range(updates * epochs):
                last = self._step(data, None)
                if listener is not None and listener(last) is False:
                    break
            if last is None:
                raise Error("fit: no updates to make")
            return last

    @property
    def steps(self) -> int:
        """Updates tried so far."""
        return int(c.mixt_trainer_steps(self._p)) if self._alive() else 0

    @property
    def epoch(self) -> int:
        """Whole passes over the data done so far."""
        return int(c.mixt_trainer_epoch(self._p))

    # ---- results ----

    def eval(self, x: Any, y: Any = None, /) -> Evaluation:
        """Loss and accuracy over a data set, or over arrays."""
        with self._lock:
            if isinstance(x, Data):
                if self._alive() == 0:
                    self.compile(x)
                found: Evaluation = filled(c.mixt_evaluation, c.mixt_trainer_evaluate, self._p, x._p)
                return found
            with Data(inputs_of(x), y, split="all", in_order=True, normalise="none") as data:
                return self.eval(data)

    def predict(self, x: Any) -> Array:
        """Outputs for samples: logits, a number a class, or predicted values; (samples, outputs)."""
        inputs = inputs_of(x)
        with self._lock:
            pointer = self._p
            if not inputs.ndim or (self._shape is not None and inputs.shape[1:] != self._shape[0]):
                wanted = self._shape[0] if self._shape else "(samples, …)"
                raise Error(
                    f"predict: samples of shape {inputs.shape[1:]}, but the model was compiled for {wanted}",
                    Status.MIXT_ERROR_SHAPE,
                )
            from .arrays import tensor_over

            tensor = tensor_over(inputs)
            out = ctypes.c_void_p()
            try:
                check(c.mixt_trainer_predict_tensor(pointer, tensor, ctypes.byref(out)))
                count = c.mixt_tensor_elements(out)
                return copied(c.mixt_tensor_data(out), count).reshape(len(inputs), -1)
            finally:
                c.mixt_tensor_free(tensor)
                c.mixt_tensor_free(out)

    # ---- parameters ----

    @property
    def params(self) -> Params:
        """Parameters by name: reading gives a copy, setting writes."""
        return Params(self)

    def tensor(self, name: str) -> Tensor:
        """A parameter where it lies, without a copy: `numpy.from_dlpack(t.tensor("fc.weight"))` sees each update."""
        with self._lock:
            pointer = made(c.mixt_trainer_param_tensor, self._p, self.params._index(name))
            tensor = Tensor(pointer, self)
            self._views.add(tensor)
            return tensor

    @property
    def memory(self) -> Memory:
        """Bytes by role: what is planned is what is allocated."""
        with self._lock:
            memory: Memory = filled(c.mixt_memory, c.mixt_trainer_memory, self._p)
            return memory

    @property
    def precision(self) -> str:
        """The policy, as YAML; setting it ("bf16", a file, a mixt.Policy) compiles anew between two steps."""
        from ._base import made_text

        with self._lock:
            return made_text(c.mixt_policy_print, c.mixt_trainer_policy(self._p))

    @precision.setter
    def precision(self, precision: str | os.PathLike[str] | Policy) -> None:
        with self._lock:
            self._unshown("compiled anew")
            if hasattr(precision, "_p"):
                check(c.mixt_trainer_set_policy(self._p, precision._p))
            else:
                check(c.mixt_trainer_set_precision(self._p, encoded(precision, "precision")))

    # ---- files ----

    def save(self, path: str | os.PathLike[str]) -> None:
        """Weights as a .safetensors file."""
        with self._lock:
            check(c.mixt_trainer_save(self._p, encoded(path, "path")))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Weights from a .safetensors file."""
        with self._lock:
            check(c.mixt_trainer_load(self._p, encoded(path, "path")))

    def checkpoint(self, folder: str | os.PathLike[str]) -> None:
        """All that training goes on from, as a folder."""
        with self._lock:
            check(c.mixt_trainer_checkpoint(self._p, encoded(folder, "folder")))

    def restore(self, folder: str | os.PathLike[str], *, allow_policy: bool = False) -> None:
        """The state of a checkpoint: further steps give the same bits as if it had never stopped."""
        options = Options(c.mixt_restore_options, {"allow_policy": allow_policy}, "restore")
        with self._lock:
            check(c.mixt_trainer_restore_with(self._p, encoded(folder, "folder"), options.at))

    # ---- by hand ----

    def backward(self, x: Any, y: Any, scale: float = 1.0) -> float:
        """Forward and backward on a batch; gradients, times `scale`, are added to those that wait. Gives the loss."""
        with self._lock:
            inputs, targets = self._arrays(x, y)
            loss = ctypes.c_double()
            check(
                c.mixt_trainer_backward(
                    self._p, inputs.ctypes.data, targets.ctypes.data, float(scale), ctypes.byref(loss)
                )
            )
            return loss.value

    def unscale(self, scale: float) -> bool:
        """Divides the gradients; says whether all are finite."""
        finite = ctypes.c_bool()
        with self._lock:
            check(c.mixt_trainer_unscale(self._p, float(scale), ctypes.byref(finite)))
        return finite.value

    def clip(self, limit: float) -> float:
        """Shortens gradients to this norm; gives the norm before."""
        norm = ctypes.c_double()
        with self._lock:
            check(c.mixt_trainer_clip(self._p, float(limit), ctypes.byref(norm)))
        return norm.value

    def apply(self, lr: float) -> None:
        """One optimizer update from the gradients as they are."""
        with self._lock:
            check(c.mixt_trainer_apply(self._p, float(lr)))

    def discard(self) -> None:
        """Forgets the gradients that wait."""
        with self._lock:
            check(c.mixt_trainer_discard(self._p))

    def grad(self, name: str) -> Array:
        """A parameter's gradient, while gradients made by hand wait."""
        with self._lock:
            info = self.params.info(name)
            values = np.empty(info.dims, np.float32)
            index = self.params._index(name)
            check(c.mixt_trainer_grad_get(self._p, index, values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))))
            return values

    def __repr__(self) -> str:
        return "<mixt.Trainer, closed>" if self.closed else f"<mixt.Trainer, {self.steps} updates made>"


class Params(Mapping[str, Array]):
    """A trainer's parameters by name."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def _infos(self) -> list[Any]:
        t = self._trainer
        with t._lock:
            rows = []
            for i in range(c.mixt_trainer_param_count(t._p)):
                info = c.mixt_param_info()
                check(c.mixt_trainer_param(t._p, i, info))
                rows.append((text_of(info.name), tuple(info.dims[: info.rank]), info))
            return rows

    def _index(self, name: str) -> int:
        from ._base import guess

        names = [row[0] for row in self._infos()]
        if not names:
            raise Error("the trainer has not seen a batch yet: step, or compile, first", Status.MIXT_ERROR_STATE)
        if name not in names:
            raise Error(f"there is no parameter '{name}'{guess(str(name), names)}")
        return names.index(name)

    def info(self, name: str) -> ParamInfo:
        """Its shape, whether it is trained, and the format of its working copy."""
        found: ParamInfo = filled(c.mixt_param_info, c.mixt_trainer_param, self._trainer._p, self._index(name))
        return found

    def __getitem__(self, name: str) -> Array:
        t = self._trainer
        with t._lock:
            index = self._index(name)
            values = np.empty(self._infos()[index][1], np.float32)
            check(c.mixt_trainer_param_get(t._p, index, values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))))
            return values

    def __setitem__(self, name: str, values: Any) -> None:
        t = self._trainer
        with t._lock:
            index = self._index(name)
            shape = self._infos()[index][1]
            array = numbers(values, np.float32, name)
            if array.shape != shape:
                raise Error(f"{name}: values of shape {array.shape}, but it has {shape}", Status.MIXT_ERROR_SHAPE)
            check(c.mixt_trainer_param_set(t._p, index, array.ctypes.data_as(ctypes.POINTER(ctypes.c_float))))

    def __contains__(self, name: object) -> bool:
        return any(row[0] == name for row in self._infos())

    def __iter__(self) -> Iterator[str]:
        return iter([row[0] for row in self._infos()])

    def __len__(self) -> int:
        return len(self._infos())
