"""What the command does, as functions: each takes a configuration (a file or a mixt.Config), settings that win over it, and
options as keywords; each gives plain values."""

from __future__ import annotations

import ctypes
import dataclasses
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from . import c
from . import results as r
from ._base import (
    Error,
    Options,
    check,
    encoded,
    enum_number,
    filled,
    guess,
    made,
    made_text,
    rows_of,
    taken,
    text_of,
    value_of,
)
from .plans import Plan, in_bytes
from .policy import Config, config_of
from .progress import Line, listener
from .run import Event, Predictions, Run

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .options import (
        AdoptOptions,
        AdviseOptions,
        BenchOptions,
        CompareOptions,
        ConvertOptions,
        DebugOptions,
        ExportOptions,
        FinetuneOptions,
        GgufOptions,
        SearchOptions,
        SensitivityOptions,
        VerifyOptions,
    )

Path = "str | os.PathLike[str]"
Settings = Mapping[str, Any]


def _heard(given: Mapping[str, Any]) -> tuple[dict[str, Any], Line]:
    """Options with a listener: the caller's, else a line in terminals and notebooks. There always is one, since Python
    looks at signals only when it runs: so Ctrl-C ends what takes long after the step under way."""
    line = Line(None)
    options = dict(given)
    if options.get("progress") is None:
        options["progress"] = listener(line)
    return options, line


def _made(function: Callable[..., int], options: Options, line: Line, *arguments: Any) -> int:
    """The object that a long work gives; what a listener raised comes first."""
    pointer = ctypes.c_void_p()
    status = function(*arguments, options.at, ctypes.byref(pointer))
    line.end()
    options.check(status)
    return pointer.value or 0


def _judgement(pointer: Any) -> r.Judgement | None:
    return value_of(pointer.contents) if pointer else None


def judgement_text(judgement: Any) -> str:
    """A judgement of the library in one sentence."""
    return made_text(c.mixt_judgement_text, judgement) if judgement else ""


def _claims(function: Any, pointer: int) -> tuple[dict[str, r.Judgement], list[str]]:
    """Judgements by claim, and their sentences."""
    found, texts = {}, []
    for claim in range(c.mixt_claim.MIXT_CLAIM_COUNT):
        judgement = function(pointer, claim)
        if judgement:
            found[text_of(c.mixt_claim_name(claim))] = value_of(judgement.contents)
            texts.append(judgement_text(judgement))
    return found, texts


# ---- runs ----


def train(
    config: Any = None,
    settings: Settings | None = None,
    /,
    *,
    progress: bool | None = None,
    listener: Callable[[Event], Any] | None = None,
    **keys: Any,
) -> r.RunResult:
    """Trains as a configuration says; gives the run's figures. `mixt.Run` gives the run itself."""
    with Run(config, settings, progress=progress, listener=listener, **keys) as run:
        return run.train()


def resume(
    folder: str | os.PathLike[str],
    settings: Settings | None = None,
    /,
    *,
    allow: str | None = None,
    progress: bool | None = None,
    **keys: Any,
) -> r.RunResult:
    """Goes on with a run where it stopped, to its end."""
    with Run.resume(folder, settings, allow=allow, progress=progress, **keys) as run:
        return run.train()


def eval(
    folder: str | os.PathLike[str],
    split: str | None = None,
    *,
    weights: str | int = "final",
    settings: Settings | None = None,
) -> r.Evaluation:  # noqa: A001
    """Loss and accuracy of a run over a part of its data."""
    with Run.load(folder, weights, settings) as run:
        return run.eval(split)


def predict(folder: str | os.PathLike[str], inputs: Any, *, weights: str | int = "final") -> Predictions:
    """What a run's model says of an array, a file or texts."""
    with Run.load(folder, weights) as run:
        return run.predict(inputs)


def plan(config: Any, settings: Settings | None = None, /, **keys: Any) -> Plan:
    """Bytes by role, formats and kernels of a configuration, before anything runs."""
    with Run(config, settings, progress=False, **keys) as run:
        return run.plan()


def largest_batch(config: Any, settings: Settings | None = None, /, *, memory: int = 0, **keys: Any) -> r.LargestBatch:
    """The largest train.batch that fits into so many bytes; 0: into what is free. By calculation: nothing is run."""
    with config_of(config, settings, keys) as made_of:
        found = c.mixt_largest_batch()
        check(c.mixt_plan_largest_batch(made_of._p, None, memory, found))
        try:
            return value_of(found)  # type: ignore[no-any-return]
        finally:
            c.mixt_free(found.reason)


@dataclasses.dataclass(frozen=True)
class Suggestion:
    """The choices that were made for data: keys with their values, why, and a configuration of them."""

    summary: str
    choices: list[r.Choice]
    yaml: str

    def __str__(self) -> str:
        return self.yaml


def new(
    data: str | os.PathLike[str],
    settings: Settings | None = None,
    /,
    *,
    out: str | os.PathLike[str] | None = None,
    **keys: Any,
) -> Suggestion:
    """A configuration for data, chosen by looking at it; `out` writes it as a new file. Nothing is trained."""
    with config_of(None, {**(settings or {}), "data.path": data}, keys) as config:
        pointer = made(c.mixt_suggest, config._p)
        try:
            if out is not None:
                check(c.mixt_suggestion_write(pointer, encoded(out, "out")))
            return Suggestion(
                text_of(c.mixt_suggestion_summary(pointer)),
                list(rows_of(c.mixt_suggestion_choice, pointer)),
                made_text(c.mixt_suggestion_yaml, pointer),
            )
        finally:
            c.mixt_suggestion_free(pointer)


suggest = new


class Tuning(Run):
    """A run that fine-tunes a model: train it, and export what came of it."""

    adapters = False

    def export(self, folder: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """Writes adapters as PEFT reads them, or with merged=True the whole model."""
        if self.adapters and not options.get("merged"):
            options.setdefault("adapter", True)
        return super().export(folder, **options)


def finetune(
    folder: str | os.PathLike[str], data: str | os.PathLike[str], /, **options: Unpack[FinetuneOptions]
) -> Tuning:
    """Fine-tunes a Hugging Face folder on conversations: `finetune("model/", "chat.jsonl", lora=16, base="nf4")` gives a run
    to be trained and exported. `full=True` trains all weights; `settings={"train.lr": 1e-4}` are keys of the configuration.
    """
    given, line = _heard(options)
    filled_in = Options(c.mixt_finetune_options, given, "finetune")
    pointer = _made(c.mixt_finetune_config, filled_in, line, encoded(folder, "folder"), encoded(data, "data"))
    with Config._taken(pointer) as config:
        run = Tuning(config)
    run.adapters = not options.get("full")
    return run


# ---- choosing a precision ----


@dataclasses.dataclass(frozen=True)
class Advice:
    """What to train in, what else was looked at, what holds the step back, and the policy as YAML."""

    choice: r.AdviceChoice
    candidates: list[r.AdviceCandidate]
    remedies: list[r.Remedy]

    @property
    def policy(self) -> str:
        return self.choice.policy or ""

    def __str__(self) -> str:
        rows = [f"{n.name}: {n.verdict}; {n.why}" for n in self.candidates]
        return "\n".join([f"{self.choice.precision}: {self.choice.why}"] + rows)


def advise(
    config: Any,
    settings: Settings | None = None,
    /,
    *,
    write: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    **options: Unpack[AdviseOptions],
) -> Advice:
    """What a configuration should be trained in, on this machine or on another (machine="a100")."""
    given, line = _heard(options)
    filled_in = Options(c.mixt_advise_options, given, "advise")
    with config_of(config, settings, {}) as made_of:
        pointer = _made(c.mixt_advise_with, filled_in, line, made_of._p)
    try:
        if write is not None:
            check(c.mixt_advice_write(pointer, encoded(write, "write"), overwrite))
        return Advice(
            value_of(c.mixt_advice_choose(pointer).contents),
            list(rows_of(c.mixt_advice_candidate_at, pointer)),
            list(rows_of(c.mixt_advice_remedy, pointer)),
        )
    finally:
        c.mixt_advice_free(pointer)


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """How each layer takes each format: rows from the one that suffers most on."""

    info: r.SensitivityInfo
    rows: list[r.SensitivityRow]
    layers: list[r.SensitivityLayer]

    def __str__(self) -> str:
        return "\n".join(f"{x.layer} {x.format} {x.mode}: {x.score:.3f}, better {x.recommend}" for x in self.rows)


def sensitivity(
    config: Any,
    settings: Settings | None = None,
    /,
    *,
    draw: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    **options: Unpack[SensitivityOptions],
) -> Sensitivity:
    """Which layers tolerate which format, measured. `config` may be a mixt.Run. `draw` writes a heat map, .svg or .png."""
    given, line = _heard(options)
    filled_in = Options(c.mixt_sensitivity_options, given, "sensitivity")
    run = config if isinstance(config, Run) else Run(config, settings, progress=False)
    with run._lock:
        pointer = _made(c.mixt_sensitivity_new_with, filled_in, line, run._idle())
    try:
        if draw is not None:
            check(c.mixt_sensitivity_draw(pointer, encoded(draw, "draw"), overwrite))
        return Sensitivity(
            value_of(c.mixt_sensitivity_describe(pointer)),
            list(rows_of(c.mixt_sensitivity_row_at, pointer)),
            list(rows_of(c.mixt_sensitivity_layer_at, pointer)),
        )
    finally:
        c.mixt_sensitivity_free(pointer)
        if run is not config:
            run.close()


@dataclasses.dataclass(frozen=True)
class Search:
    """The cheapest policy that was found, and the front of those that nothing beats."""

    info: r.SearchInfo
    front: list[r.SearchPoint]

    @property
    def policy(self) -> str:
        """The file with the policy."""
        return self.info.policy or ""

    def __str__(self) -> str:
        return f"{self.info.line}: {self.info.ms:.3g} ms, {in_bytes(self.info.memory)}; safe: {self.info.safe.verdict}"


def search(config: Any, settings: Settings | None = None, /, **options: Unpack[SearchOptions]) -> Search:
    """The cheapest policy that loses nothing: `search("c.yaml", goal="memory", lose=0.001, write="policy.yaml")`. A second
    call with the same arguments goes on."""
    given, line = _heard(options)
    filled_in = Options(c.mixt_search_options, given, "search")
    with config_of(config, settings, {}) as made_of:
        pointer = _made(c.mixt_search_with, filled_in, line, made_of._p)
    try:
        return Search(value_of(c.mixt_search_describe(pointer)), list(rows_of(c.mixt_search_front, pointer)))
    finally:
        c.mixt_search_free(pointer)


# ---- proving it ----


@dataclasses.dataclass(frozen=True)
class Verification:
    """Whether a precision is safe, and worth it: judgements by claim, the checklist, figures."""

    info: r.VerificationInfo
    judgements: dict[str, r.Judgement]
    lines: list[r.VerifyLine]
    figures: list[r.VerifyFigure]
    text: str

    def __str__(self) -> str:
        return self.text


def verify(
    config: Any,
    settings: Settings | None = None,
    /,
    *,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    **options: Unpack[VerifyOptions],
) -> Verification:
    """Trains FP32 and the configuration's precision from the same weights, and judges. `out` keeps all figures as JSON."""
    given, line = _heard(options)
    filled_in = Options(c.mixt_verify_options, given, "verify")
    with config_of(config, settings, {}) as made_of:
        pointer = _made(c.mixt_verify_with, filled_in, line, made_of._p)
    try:
        if out is not None:
            check(c.mixt_verification_write(pointer, encoded(out, "out"), overwrite))
        judgements, texts = _claims(c.mixt_verification_judgement, pointer)
        return Verification(
            value_of(c.mixt_verification_describe(pointer)),
            judgements,
            list(rows_of(c.mixt_verification_line, pointer)),
            list(rows_of(c.mixt_verification_figure, pointer)),
            "\n".join(texts),
        )
    finally:
        c.mixt_verification_free(pointer)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Whether B is as good as A: `info.verdict` and why, figures of both sides, what differs, how much worse B is by pair."""

    info: r.ComparisonInfo
    judgements: dict[str, r.Judgement]
    figures: list[r.CompareFigure]
    changes: list[r.CompareChange]
    worse: list[float]
    text: str

    @property
    def verdict(self) -> str:
        """ "non_inferior", "inferior" or "undecided" """
        return self.info.verdict

    def __str__(self) -> str:
        return self.text


def _comparison(pointer: int) -> Comparison:
    try:
        raw = c.mixt_comparison_describe(pointer)
        judgements, texts = _claims(c.mixt_comparison_judgement, pointer)
        verdict = text_of(c.mixt_compare_verdict_name(raw.verdict))
        head = f"{verdict}: {text_of(raw.reason)}" + (f"\n{text_of(raw.advice)}" if raw.advice else "")
        figures = list(rows_of(c.mixt_comparison_figure, pointer))
        rows = [f"{f.what}: {f.a:.6g} and {f.b:.6g} {f.unit}".rstrip() for f in figures]
        return Comparison(
            value_of(raw),
            judgements,
            figures,
            list(rows_of(c.mixt_comparison_change, pointer)),
            [c.mixt_comparison_worse(pointer, i) for i in range(raw.pairs)],
            "\n".join([head] + texts + rows),
        )
    finally:
        c.mixt_comparison_free(pointer)


def _stem(config: Any) -> str:
    stem = "" if isinstance(config, Config) else os.path.splitext(os.path.basename(os.fspath(config)))[0]
    return "".join(k if k.isalnum() or k in "._-" else "-" for k in stem)


def compare(a: Any, b: Any, settings: Settings | None = None, /, **options: Unpack[CompareOptions]) -> Comparison:
    """Whether configuration B is as good as A, by pairs of runs: `compare("fp32.yaml", "bf16.yaml", margin=0.01)`. Two run
    directories are compared as they are, without a verdict. A second call with the same arguments goes on. The experiment's
    name is that of the two files where none is given."""
    given, line = _heard(options)
    if all(not isinstance(x, Config) and os.path.isdir(x) for x in (a, b)):
        plain = Options(c.mixt_compare_options, options, "compare")
        return _comparison(made(c.mixt_compare_runs, encoded(a, "a"), encoded(b, "b"), plain.at))
    if not given.get("name"):
        given["name"] = "-".join(x for x in (_stem(a), _stem(b)) if x) or "python"
    filled_in = Options(c.mixt_compare_options, given, "compare")
    with config_of(a, settings, {}) as first, config_of(b, settings, {}) as second:
        return _comparison(_made(c.mixt_compare_with, filled_in, line, first._p, second._p))


@dataclasses.dataclass(frozen=True)
class Adoption:
    """How far the road from FP32 to mixed precision has been gone, and what came of it."""

    info: r.AdoptionInfo
    judgements: dict[str, r.Judgement]
    figures: list[r.AdoptFigure]
    history: list[r.AdoptEntry]

    def __str__(self) -> str:
        rows = [f"{e.stage}: {e.decision}; {e.reason}" for e in self.history]
        return "\n".join(rows + [f"{self.info.outcome}: use {self.info.config or 'nothing yet'}"])


def _adoption(pointer: int) -> Adoption:
    try:
        raw = c.mixt_adoption_describe(pointer)
        judgements = {}
        for claim in range(c.mixt_claim.MIXT_CLAIM_COUNT):
            judgement = c.mixt_judgement()
            if c.mixt_adoption_judgement(pointer, claim, judgement):
                judgements[text_of(c.mixt_claim_name(claim))] = value_of(judgement)
        return Adoption(
            value_of(raw),
            judgements,
            [_row(c.mixt_adopt_figure, c.mixt_adoption_figure, pointer, i) for i in range(raw.figures)],
            [_row(c.mixt_adopt_entry, c.mixt_adoption_entry, pointer, i) for i in range(raw.entries)],
        )
    finally:
        c.mixt_adoption_free(pointer)


def _row(struct: type, function: Any, pointer: int, index: int) -> Any:
    row = struct()
    function(pointer, index, row)
    return value_of(row)


def adopt(config: Any, settings: Settings | None = None, /, **options: Unpack[AdoptOptions]) -> Adoption:
    """Moves a training to mixed precision in stages: `adopt("c.yaml", name="digits")`. A second call goes on."""
    given, line = _heard(options)
    filled_in = Options(c.mixt_adopt_options, given, "adopt")
    with config_of(config, settings, {}) as made_of:
        return _adoption(_made(c.mixt_adopt_with, filled_in, line, made_of._p))


def adoption(name: str) -> Adoption:
    """What is known of an adoption, without doing anything."""
    return _adoption(made(c.mixt_adopt_open, encoded(name, "name")))


def table(
    paths: Sequence[str | os.PathLike[str]],
    format: str = "text",
    *,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> str:  # noqa: A002
    """FP32 beside mixed precision, from runs and experiments: "text", "markdown", "csv" or "latex"."""
    kind = enum_number("mixt_table_format", format, "format")
    array = (ctypes.c_char_p * max(len(paths), 1))(*[encoded(p, "path") for p in paths])
    pointer = made(c.mixt_table_read, array, len(paths))
    try:
        if out is not None:
            check(c.mixt_table_write(pointer, kind, encoded(out, "out"), overwrite))
        text = ctypes.c_char_p()
        check(c.mixt_table_print(pointer, kind, ctypes.byref(text)))
        return text_of(text.value)
    finally:
        c.mixt_table_free(pointer)


# ---- results and files ----


@dataclasses.dataclass(frozen=True)
class Metrics:
    """What a run has measured: columns of numbers by name, one number a row, and what they say."""

    columns: dict[str, list[float]]
    outcome: r.MetricsOutcome

    def __getitem__(self, name: str) -> list[float]:
        if name not in self.columns:
            raise Error(f"there is no column '{name}'{guess(name, self.columns)}")
        return self.columns[name]


def metrics(run: str | os.PathLike[str]) -> Metrics:
    """The figures that a run has written, also while it trains. `pandas.DataFrame(mixt.metrics(run).columns)`."""
    pointer = made(c.mixt_metrics_read, encoded(run, "run"))
    try:
        rows = c.mixt_metrics_describe(pointer).rows
        columns = {}
        for name in rows_of(c.mixt_metrics_name, pointer):
            values = c.mixt_metrics_column(pointer, encoded(name))
            columns[name] = [values[i] for i in range(rows)] if values else []
        return Metrics(columns, value_of(c.mixt_metrics_judge(pointer)))
    finally:
        c.mixt_metrics_free(pointer)


def report(runs: Any, out: str | os.PathLike[str] = "report.html", *, overwrite: bool = False) -> str:
    """Writes a page with the curves of runs, which opens in any browser; gives its name."""
    paths = [runs] if isinstance(runs, (str, os.PathLike)) else list(runs)
    array = (ctypes.c_char_p * max(len(paths), 1))(*[encoded(p, "run") for p in paths])
    options = Options(c.mixt_page_options, {"overwrite": overwrite}, "report")
    check(c.mixt_page_write(array, len(paths), encoded(out, "out"), options.at))
    return os.fspath(out)


def export(run: str | os.PathLike[str], **options: Unpack[ExportOptions]) -> r.ExportReport:
    """Writes a run's weights as safetensors, with names and files that other programs read."""
    given, line = _heard(options)
    filled_in = Options(c.mixt_export_options, given, "export")
    found = c.mixt_export_report()
    try:
        status = c.mixt_run_export(encoded(run, "run"), filled_in.at, found)
        line.end()
        filled_in.check(status)
        return value_of(found)  # type: ignore[no-any-return]
    finally:
        c.mixt_free(found.folder)
        c.mixt_free(found.differs)


def export_gguf(run: str | os.PathLike[str], **options: Unpack[GgufOptions]) -> r.GgufReport:
    """Writes a language model as one GGUF file, for llama.cpp."""
    given, line = _heard(options)
    filled_in = Options(c.mixt_gguf_options, given, "export_gguf")
    found = c.mixt_gguf_report()
    try:
        status = c.mixt_gguf_write(encoded(run, "run"), filled_in.at, found)
        line.end()
        filled_in.check(status)
        return value_of(found)  # type: ignore[no-any-return]
    finally:
        c.mixt_free(found.file)
        c.mixt_free(found.note)


def convert(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    dtype: str,
    *,
    overwrite: bool = False,
    **options: Unpack[ConvertOptions],
) -> r.ConvertReport:
    """Converts a .npy or .safetensors file to another number format."""
    filled_in = Options(c.mixt_convert_options, options, "convert")
    number = enum_number("mixt_dtype", dtype, "dtype")
    return filled(c.mixt_convert_report, c.mixt_convert_file, encoded(src, "src"), encoded(dst, "dst"), number, filled_in.at, overwrite)  # type: ignore[no-any-return]


# ---- the machine ----


def info() -> dict[str, Any]:
    """What this machine can do: processor, formats, GPUs."""
    cpu = c.mixt_cpu_info()
    c.mixt_cpu_describe(cpu)
    formats = (c.mixt_format_info * c.MIXT_FORMATS_MAX)()
    found = c.mixt_cpu_formats(formats)
    count = c.mixt_gpu_count()
    reason = "" if count else text_of(c.mixt_error_text())
    gpus = [filled(c.mixt_gpu_info, c.mixt_gpu_describe, i) for i in range(count)]
    return {
        "version": text_of(c.mixt_version()),
        "device": text_of(c.mixt_device_auto()),
        "cpu": value_of(cpu),
        "formats": [value_of(formats[i]) for i in range(found)],
        "gpus": gpus,
        "gpu_reason": reason,
    }


def bench(model: str, **options: Unpack[BenchOptions]) -> r.BenchResult:
    """The time of a training step of a well-known model here."""
    filled_in = Options(c.mixt_bench_options, options, "bench")
    found = c.mixt_bench_result()
    try:
        check(c.mixt_bench_run_with(encoded(model, "model"), filled_in.at, found))
        return value_of(found)  # type: ignore[no-any-return]
    finally:
        c.mixt_bench_free(found)


@dataclasses.dataclass(frozen=True)
class Debugged:
    """One update looked into: statistics of every value, layers in their order, and what is wrong."""

    info: r.DebugInfo
    issues: list[r.DebugIssue]
    layers: list[r.DebugLayer]
    values: list[r.DebugValue]

    def __str__(self) -> str:
        return "\n".join(f"{i.text}: {i.remedy}" for i in self.issues) or "nothing is wrong"


def debug(run: Any, **options: Unpack[DebugOptions]) -> Debugged:
    """Makes a run's next update and looks into it: which op made a number that is not finite, where the error against FP32
    grows. `run` is a mixt.Run, or the directory of one."""
    filled_in = Options(c.mixt_debug_options, options, "debug")
    opened = run if isinstance(run, Run) else Run.resume(run, progress=False)
    try:
        with opened._lock:
            trainer = c.mixt_run_trainer(opened._idle())
            data = opened.data("train")
            pointer = made(c.mixt_debug_step_with, trainer, data._p, filled_in.at)
        try:
            return Debugged(
                value_of(c.mixt_debug_describe(pointer)),
                list(rows_of(c.mixt_debug_issue_at, pointer)),
                list(rows_of(c.mixt_debug_layer_at, pointer)),
                list(rows_of(c.mixt_debug_value_at, pointer)),
            )
        finally:
            c.mixt_debug_free(pointer)
    finally:
        if opened is not run:
            opened.close()


__all__ = [
    "Adoption", "Advice", "Comparison", "Debugged", "Metrics", "Search", "Sensitivity", "Suggestion", "Tuning", "Verification",
    "adopt", "adoption", "advise", "bench", "compare", "convert", "debug", "eval", "export", "export_gguf", "finetune", "info",
    "largest_batch", "metrics", "new", "plan", "predict", "report", "resume", "search", "sensitivity", "suggest", "table", "taken",
    "train", "verify",
]  # fmt: skip
