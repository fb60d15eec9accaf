"""Runs: trained as a configuration says, kept in a directory, resumed, evaluated."""

from __future__ import annotations

import atexit
import ctypes
import dataclasses
import os
import signal as signals
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping

import numpy as np

from . import c
from ._base import Error, Handle, Options, Status, check, encoded, filled, made, text_of, value_of
from .arrays import Array, as_array
from .data import Data
from .plans import Plan, plan_of
from .policy import Config, Policy, config_of
from .progress import Line, bar, listener
from .results import (
    Alert,
    Decision,
    Diagnosis,
    Evaluation,
    LayerSignals,
    RunInfo,
    RunResult,
    RunRow,
    Summary,
)
from .steps import Step, step_of

if TYPE_CHECKING:
    from .reports import Report

PathLike = "str | os.PathLike[str]"


@dataclasses.dataclass(frozen=True)
class Event:
    """What happened in a run: `kind` is "start", "step", "validation", "row", "checkpoint", "note", "end", "alert",
    "decision", "diagnosis" or "layers"; what does not belong to it is None."""

    kind: str
    text: str
    time: float
    warning: bool
    step: Step
    result: RunResult
    validation: Evaluation | None = None
    row: RunRow | None = None
    alert: Alert | None = None
    decision: Decision | None = None
    diagnosis: Diagnosis | None = None
    layers: LayerSignals | None = None


_PARTS = ("validation", "row", "alert", "decision", "diagnosis", "layers")
_KINDS = {int(k): k.name.removeprefix("MIXT_EVENT_").lower() for k in c.mixt_event_kind}
_STEP = int(c.mixt_event_kind.MIXT_EVENT_STEP)


def _event_of(raw: Any) -> Event:
    parts = {name: value_of(getattr(raw, name).contents) for name in _PARTS if getattr(raw, name)}
    step, result = step_of(raw.step.contents), value_of(raw.result.contents)
    return Event(_KINDS[raw.kind], text_of(raw.text), raw.time, raw.warning, step, result, **parts)


@dataclasses.dataclass(frozen=True)
class Predictions:
    """What a model says of samples. `labels` and `probabilities` are of classes: the most probable one of each sample."""

    outputs: Array
    labels: Array | None
    probabilities: Array | None
    classes: list[str]

    @property
    def names(self) -> list[str]:
        """The classes of the samples in words, or as numbers where they have none."""
        if self.labels is None:
            return []
        return [self.classes[i] if i < len(self.classes) else str(i) for i in self.labels.tolist()]

    def __len__(self) -> int:
        return len(self.outputs)

    def __str__(self) -> str:
        if self.labels is None or self.probabilities is None:
            return "\n".join(" ".join(f"{v:.6g}" for v in row) for row in self.outputs.tolist())
        best = self.probabilities.max(axis=1).tolist()
        return "\n".join(f"{name} {100 * share:.1f}%" for name, share in zip(self.names, best))


class Run(Handle):
    """A run of a configuration: `Run("digits.yaml", precision="bf16", out="runs/digits")`. Keywords are keys of the
    configuration; those with a dot go into a dict, `Run("digits.yaml", {"train.lr": 0.1})`, or nested,
    `train={"lr": 0.1}`. Without a file the model is chosen for the data: `Run(data={"path": "pictures/"})`.

    Iterating over it trains, an update at a time; `train` makes all of them. Ctrl-C ends either after the update under way,
    with a checkpoint: `result.interrupted` says so, and `Run.resume` goes on.
    """

    _what = "run"
    result: RunResult | None

    def __init__(
        self,
        config: Any = None,
        settings: Mapping[str, Any] | None = None,
        /,
        *,
        progress: bool | None = None,
        listener: Callable[[Event], Any] | None = None,
        **keys: Any,
    ) -> None:
        made_of = config_of(config, settings, keys)
        with made_of:
            self._begin(progress, listener)
            self.choices = "" if config is not None else _choose(made_of)
            options = self._options({})
            self._open(options, c.mixt_run_open_config, made_of._p, options.at)

    @classmethod
    def resume(
        cls,
        folder: str | os.PathLike[str],
        settings: Mapping[str, Any] | None = None,
        /,
        *,
        allow: str | None = None,
        progress: bool | None = None,
        listener: Callable[[Event], Any] | None = None,
        **keys: Any,
    ) -> Run:
        """The run of a directory where its newest checkpoint left it: it goes on with the same bits. `allow` names keys
        that may differ from the run's, as "precision" or "train.lr,train.clip"."""
        run = cls.__new__(cls)
        run._begin(progress, listener)
        options = run._options({"allow": allow, "settings": {**(settings or {}), **keys} or None})
        run._open(options, c.mixt_run_resume_with, encoded(folder, "folder"), options.at)
        return run

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        weights: str | int = "final",
        settings: Mapping[str, Any] | None = None,
        /,
        **keys: Any,
    ) -> Run:
        """The run of a directory with its weights, to evaluate or to predict: "final", "best", "last", or a checkpoint's
        number."""
        run = cls.__new__(cls)
        run._begin(False, None)
        options = run._options({"settings": {**(settings or {}), **keys} or None})
        run._open(
            options, c.mixt_run_load_with, encoded(folder, "folder"), encoded(str(weights), "weights"), options.at
        )
        return run

    def _begin(self, progress: bool | None, heard: Callable[[Event], Any] | None) -> None:
        self.choices = ""
        self.result = None
        self._line = Line(progress)
        self._listeners = [heard] if heard is not None else []
        self._fault: BaseException | None = None
        self._training: _Training | None = None

    def _options(self, given: Mapping[str, Any]) -> Options:
        options = Options(c.mixt_run_options, given, "Run")
        this = weakref.ref(self)

        def hear(_: Any, __: Any, event: Any) -> int:
            run = this()
            return run._hear(event.contents) if run is not None else 0

        self._observer = c.mixt_observer(hear)  # lives as long as the run may call it
        options.struct.observer = self._observer
        options.struct.signals = threading.current_thread() is threading.main_thread()
        options.set("progress", listener(self._line))
        self._kept = options.keep
        return options

    def _open(self, options: Options, function: Any, *arguments: Any) -> None:
        pointer = ctypes.c_void_p()
        status = function(*arguments, ctypes.byref(pointer))
        if self._fault is not None:
            c.mixt_run_close(pointer)
            raise self._fault
        options.check(status)
        super().__init__(pointer.value or 0, _closer(self._observer, self._kept))

    # ---- events ----

    def listen(self, function: Callable[[Event], Any]) -> Run:
        """Adds a function that hears events; one that returns False stops the run."""
        if not callable(function):
            raise Error("listen: expected a function of an event")
        self._listeners.append(function)
        return self

    def _hear(self, raw: Any) -> int:
        try:
            if raw.kind == _STEP and self._line.shown:
                self._show(raw)
            elif raw.kind in (c.mixt_event_kind.MIXT_EVENT_NOTE, c.mixt_event_kind.MIXT_EVENT_ALERT):
                self._line.note(text_of(raw.text), raw.warning)
            if self._listeners:
                event = _event_of(raw)
                for function in self._listeners:
                    if function(event) is False and self._pointer:
                        c.mixt_run_ask_stop(self._pointer)
            if raw.kind == _STEP and self._training is not None:
                self._training.hand_over(step_of(raw.step.contents))
            return 0
        except BaseException as fault:  # told to the caller when the library has ended
            self._fault = fault
            return int(c.mixt_fail(Status.MIXT_ERROR_STATE, b"%s", f"a listener failed: {fault!r}".encode()))

    def _show(self, raw: Any) -> None:
        step, result = raw.step.contents, raw.result.contents
        total = self._total
        accuracy = f" accuracy {100 * step.accuracy:.1f}%" if step.accuracy == step.accuracy else ""
        rate = f" {result.samples_s:.0f} samples/s" if result.samples_s == result.samples_s else ""
        validation = f" val {result.val_loss:.4g}" if result.val_loss == result.val_loss else ""
        self._line.show(
            f"{bar(step.step, total)} {step.step}/{total} loss {step.loss:.4g}{accuracy}{validation}{rate}",
            step.step == total,
        )

    # ---- training ----

    def _idle(self) -> int:
        if self._training is not None and self._training.is_alive():
            raise Error("the run is being trained: its loop must end first (run.stop())", Status.MIXT_ERROR_STATE)
        return self._p

    def train(self) -> RunResult:
        """Trains to the end of the configuration, or until someone stops it; then the weights are saved."""
        with self._lock:
            pointer = self._idle()
            self._total = c.mixt_run_describe(pointer).total_steps
            raw = c.mixt_run_result()
            status = c.mixt_run_train(pointer, raw)
            return self._ended(status, "" if not status else text_of(c.mixt_error_text()), raw)

    def _ended(self, status: int, text: str, raw: Any) -> RunResult:
        self._line.end()
        self.result = value_of(raw)
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault
        if status:
            raise Error(text, status)
        if self.result.interrupted:
            name = signals.Signals(self.result.signal).name
            self._line.note(
                f"stopped by {name} after step {self.result.steps}; continue with mixt.Run.resume({self.folder!r})",
                True,
            )
        return self.result

    def __iter__(self) -> Iterator[Step]:
        """Trains, and gives each update's Step. The library makes the next update while the loop's body waits for it;
        leaving the loop stops the run."""
        with self._lock:
            self._total = c.mixt_run_describe(self._idle()).total_steps
            training = self._training = _Training(self)
        training.start()
        try:
            while True:
                step = training.next()
                if step is None:
                    break
                yield step
        finally:
            training.finish()
            with self._lock:
                self._training = None
                self._ended(training.status, training.text, training.raw)

    def stop(self) -> None:
        """Ends training after the update under way, as if it had come to its end: weights are saved, resuming goes on."""
        c.mixt_run_ask_stop(self._p)

    def ask_validation(self) -> None:
        """Validates after the update under way."""
        c.mixt_run_ask_validation(self._p)

    def ask_checkpoint(self) -> None:
        """Saves a checkpoint after the update under way."""
        c.mixt_run_ask_checkpoint(self._p)

    def ask_policy(self, policy: Policy | str) -> None:
        """Goes on under another policy from the next update on."""
        policy = Policy(policy) if isinstance(policy, str) else policy
        check(c.mixt_run_ask_policy(self._p, policy._p))

    def advance(self, step: int) -> None:
        """Makes updates up to this number, tells and writes nothing: to look at the one behind it (debug)."""
        with self._lock:
            check(c.mixt_run_advance(self._idle(), int(step)))

    def close(self) -> None:
        if self._training is not None:
            self._training.finish()
        super().close()

    # ---- before and after ----

    @property
    def info(self) -> RunInfo:
        """Its directory, number of updates, ranks."""
        info: RunInfo = value_of(c.mixt_run_describe(self._p))
        return info

    @property
    def folder(self) -> str:
        """Its directory; "" before it has one."""
        return text_of(c.mixt_run_describe(self._p).folder)

    @property
    def config(self) -> Config:
        """Its configuration, a copy."""
        return Config._taken(made(c.mixt_config_copy, c.mixt_run_config(self._p)))

    def plan(self) -> Plan:
        """Bytes by role, formats and kernels, before anything runs."""
        with self._lock:
            return plan_of(self._idle())

    def summary(self) -> Summary:
        """What it will do: model, parameters, formats, memory."""
        with self._lock:
            summary: Summary = filled(c.mixt_summary, c.mixt_run_summary, self._idle())
            return summary

    def eval(self, split: str | None = None) -> Evaluation:
        """Loss and accuracy over a part of its data: "train", "val" or "test"; default: the one to judge it by."""
        with self._lock:
            pointer = self._idle()
            word = self._part() if split is None else encoded(split, "split")
            found: Evaluation = filled(c.mixt_evaluation, c.mixt_run_evaluate, pointer, word)
            return found

    def _part(self) -> bytes:
        word = ctypes.c_char_p()
        check(c.mixt_run_part(self._p, ctypes.byref(word)))
        return word.value or b""

    def report(self, split: str | None = None) -> Report:
        """Figures of each class, and which is taken for which; of values, how far off they are."""
        from .reports import report_of

        with self._lock:
            return report_of(c.mixt_run_trainer(self._idle()), self.data(split or text_of(self._part()))._p)

    def data(self, split: str = "train") -> Data:
        """A part of its data; it stays the run's."""
        with self._lock:
            return Data._borrowed(made(c.mixt_run_data, self._p, encoded(split, "split")), self)

    @property
    def facts(self) -> Data:
        """What its samples are like; a loaded run remembers that without its data."""
        return Data._borrowed(c.mixt_run_facts(self._p) or 0, self)

    def predict(self, inputs: Any, *, batch: int = 256) -> Predictions:
        """What the model says of samples: an array (float32 as scaled to [0, 1], or bytes), a file (a picture, a table,
        .npy), or texts. Samples are cropped, resized and normalised as evaluation does."""
        with self._lock:
            pointer = self._idle()
            like = c.mixt_run_facts(pointer) or 0
            kept = None
            if isinstance(inputs, list) and inputs and all(isinstance(i, str) for i in inputs):
                return _joined([self.predict("text:" + text) for text in inputs])
            if isinstance(inputs, (str, os.PathLike)):
                opened = made(c.mixt_inputs_open, encoded(inputs, "inputs"), like)
            else:
                kept = as_array(inputs, "inputs")
                kept = np.ascontiguousarray(kept, np.uint8 if kept.dtype == np.uint8 else np.float32)
                dims = (ctypes.c_int64 * max(kept.ndim, 1))(*kept.shape)
                dtype = c.mixt_dtype.MIXT_DTYPE_UINT8 if kept.dtype == np.uint8 else c.mixt_dtype.MIXT_DTYPE_FP32
                opened = made(c.mixt_inputs_from, kept.ctypes.data, dtype, kept.ndim, dims, like)
            try:
                return self._predictions(opened, like, max(int(batch), 1))
            finally:
                c.mixt_inputs_close(opened)

    def _predictions(self, opened: int, like: int, batch: int) -> Predictions:
        trainer = c.mixt_run_trainer(self._p)
        each = ctypes.c_int64()
        check(c.mixt_trainer_outputs(trainer, ctypes.byref(each)))
        count = c.mixt_inputs_count(opened)
        outputs = np.empty((count, each.value), np.float32)
        room = np.empty(c.mixt_data_input_bytes(like, batch) // 4 + 1, np.float32)
        floats = ctypes.POINTER(ctypes.c_float)
        for first in range(0, count, batch):
            now = min(batch, count - first)
            check(c.mixt_inputs_read(opened, first, now, room.ctypes.data_as(floats)))
            check(c.mixt_trainer_predict(trainer, room.ctypes.data, now, outputs[first:].ctypes.data_as(floats)))
        info = c.mixt_data_describe(like).contents
        names = [text_of(info.class_names[i]) for i in range(info.classes)] if info.class_names else []
        if info.target != c.mixt_target_kind.MIXT_TARGET_CLASS or not info.classes:
            return Predictions(outputs, None, None, names)
        check(c.mixt_outputs_check(outputs.ctypes.data_as(floats), outputs.size))
        scores = outputs.astype(np.float64)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return Predictions(outputs, outputs.argmax(axis=1), scores / scores.sum(axis=1, keepdims=True), names)

    def predict_table(
        self, path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, *, overwrite: bool = False
    ) -> str:
        """A table again, with a prediction beside each row: as CSV, or into a file."""
        options = Options(c.mixt_table_options, {"out": out, "overwrite": overwrite}, "predict_table")
        found = c.mixt_table_predictions()
        with self._lock:
            pointer = self._idle()
            check(
                c.mixt_table_predict(
                    c.mixt_run_trainer(pointer), c.mixt_run_facts(pointer), encoded(path, "path"), options.at, found
                )
            )
        try:
            return text_of(ctypes.string_at(found.text)) if found.text else ""
        finally:
            c.mixt_table_predictions_free(found)

    @property
    def params(self) -> Any:
        """Its parameters by name, once it is open: copies to read, and to set."""
        from .trainer import Params

        return Params(_Stepper(self))

    def export(self, folder: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """Writes its weights for other programs: see mixt.export."""
        from .commands import export

        if not self.folder:
            raise Error("the run has no directory yet: train it first", Status.MIXT_ERROR_STATE)
        return export(self.folder, folder=folder, **options)

    def __repr__(self) -> str:
        return f"<mixt.Run {self.folder or 'not begun'}>" if not self.closed else "<mixt.Run, closed>"


class _Stepper:
    """The run's own trainer, for its parameters."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lock = run._lock

    @property
    def _p(self) -> int:
        return c.mixt_run_trainer(self._run._idle()) or 0


def _joined(found: list[Predictions]) -> Predictions:
    outputs = np.concatenate([p.outputs for p in found])
    labels = np.concatenate([p.labels for p in found if p.labels is not None]) if found[0].labels is not None else None
    shares = (
        np.concatenate([p.probabilities for p in found if p.probabilities is not None]) if labels is not None else None
    )
    return Predictions(outputs, labels, shares, found[0].classes)


def _closer(*kept: Any) -> Callable[[int], None]:
    """Closes a run while what it may call is still there."""

    def close(pointer: int) -> None:
        c.mixt_run_close(pointer)
        kept  # noqa: B018: as long as this function

    return close


def _choose(config: Config) -> str:
    """What is left open is chosen by looking at the data; gives it in words."""
    found = made(c.mixt_suggest, config._p)
    try:
        check(c.mixt_suggestion_apply(found, config._p))
        return text_of(c.mixt_suggestion_summary(found))
    finally:
        c.mixt_suggestion_free(found)


class _Training(threading.Thread):
    """mixt_run_train in a thread of its own, which waits after each update until the loop asks for the next."""

    def __init__(self, run: Run) -> None:
        super().__init__(name="mixt training", daemon=True)
        self.pointer = run._p
        self.run_closed = weakref.ref(run)
        self.raw = c.mixt_run_result()
        self.status, self.text = 0, ""
        self.made: Step | None = None
        self.ready, self.go = threading.Semaphore(0), threading.Semaphore(0)
        self.ending = False
        self.begun = False
        _live.add(self)

    def run(self) -> None:
        try:
            self.status = c.mixt_run_train(self.pointer, self.raw)
            self.text = text_of(c.mixt_error_text()) if self.status else ""
        finally:
            self.made, self.ending = None, True
            self.ready.release()

    def hand_over(self, step: Step) -> None:
        if self.ending:
            return
        self.made = step
        self.ready.release()
        self.go.acquire()

    def next(self) -> Step | None:
        """The next update; None: there is none any more."""
        if self.begun:
            self.go.release()
        self.begun = True
        self.ready.acquire()
        return self.made

    def finish(self) -> None:
        """Lets training come to its end; before its time, where it is left early."""
        if self.is_alive() and not self.ending:
            self.ending = True
            c.mixt_run_ask_stop(self.pointer)
            self.go.release()
        self.join()
        _live.discard(self)


_live: weakref.WeakSet[_Training] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """A program that ends within a loop ends its runs first."""
    for training in list(_live):
        training.finish()
