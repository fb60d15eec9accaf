"""mixt: mixed-precision training. docs/python.md says how do I …; mixt.c is the C interface as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import c, options, results
from ._base import Error, Status
from ._version import __version__
from .arrays import Tensor
from .builder import Builder, Value
from .commands import (
    Adoption,
    Advice,
    Comparison,
    Debugged,
    Metrics,
    Search,
    Sensitivity,
    Suggestion,
    Tuning,
    Verification,
    adopt,
    adoption,
    advise,
    bench,
    compare,
    convert,
    debug,
    eval,
    export,
    export_gguf,
    finetune,
    info,
    largest_batch,
    metrics,
    new,
    plan,
    predict,
    report,
    resume,
    search,
    sensitivity,
    suggest,
    table,
    train,
    verify,
)
from .data import Data, named
from .plans import Plan
from .policy import Config, Policy, keys
from .reports import Report
from .run import Event, Predictions, Run
from .steps import Step
from .tasks import Page, plot, ranking, recall, recommend, render, transcribe, transcript_rates, watch
from .text import Chat, Generator, Tokenizer, bleu, chat, generate, tokenize, translate
from .trainer import Context, Model, Params, Trainer

if TYPE_CHECKING:
    from .learn import Classifier, Regressor


def __getattr__(name: str) -> Any:
    """Classifier and Regressor, when they are first asked for: they import scikit-learn where it is."""
    if name in ("Classifier", "Regressor"):
        from . import learn

        return getattr(learn, name)
    raise AttributeError(f"module 'mixt' has no attribute '{name}'")


__all__ = [
    "Adoption", "Advice", "Builder", "Chat", "Classifier", "Comparison", "Config", "Context", "Data", "Debugged",
    "Error", "Event", "Generator", "Metrics", "Model", "Page", "Params", "Plan", "Policy", "Predictions", "Regressor",
    "Report", "Run", "Search", "Sensitivity", "Status", "Step", "Suggestion", "Tensor", "Tokenizer", "Trainer",
    "Tuning", "Value", "Verification", "__version__", "adopt", "adoption", "advise", "bench", "bleu", "c", "chat",
    "compare", "convert", "debug", "eval", "export", "export_gguf", "finetune", "generate", "info", "keys",
    "largest_batch", "metrics", "named", "new", "options", "plan", "plot", "predict", "ranking", "recall", "recommend",
    "render", "report", "results", "resume", "search", "sensitivity", "suggest", "table", "tokenize", "train",
    "transcribe", "transcript_rates", "translate", "verify", "watch",
]  # fmt: skip
