"""scikit-learn's interface: Classifier and Regressor, in pipelines, grids and cross-validation. scikit-learn itself is used
where it is installed, and not needed."""

from __future__ import annotations

import inspect
import math
import weakref
from typing import Any, Callable

import numpy as np

from ._base import Error, guess
from .arrays import Array
from .data import Data
from .trainer import Model, Trainer

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # type: ignore[import-untyped, unused-ignore]
    from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped, unused-ignore]
    from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped, unused-ignore]

    _SKLEARN = True
except ImportError:  # not installed, or older than 1.6
    _SKLEARN = False

    class BaseEstimator:  # type: ignore[no-redef]
        """What scikit-learn asks of an estimator: its parameters by name."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            return {
                name: getattr(self, name)
                for name in inspect.signature(type(self).__init__).parameters
                if name != "self"
            }

        def set_params(self, **params: Any) -> Any:
            known = self.get_params()
            for name, value in params.items():
                if name not in known:
                    raise ValueError(f"there is no parameter '{name}'{guess(name, known)}")
                setattr(self, name, value)
            return self

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in self.get_params().items())})"

    class ClassifierMixin:  # type: ignore[no-redef]
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))  # type: ignore[attr-defined]

    class RegressorMixin:  # type: ignore[no-redef]
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            y = np.asarray(y, np.float64)
            mean = np.average(y, weights=sample_weight)
            wrong = np.average((y - self.predict(X)) ** 2, weights=sample_weight)  # type: ignore[attr-defined]
            return float(1 - wrong / max(np.average((y - mean) ** 2, weights=sample_weight), 1e-300))


# The compiled model of a fitted estimator: made again from its weights where it is not there, as after unpickling.
_compiled: weakref.WeakKeyDictionary[Any, Trainer] = weakref.WeakKeyDictionary()


class _Estimator(BaseEstimator):  # type: ignore[misc, unused-ignore]
    """What both have in common. Features are standardised; the model is a perceptron, or `model`, a function as mixt.Model
    takes it whose last layer has as many outputs as it is told: model(b, x, outputs)."""

    def __init__(
        self,
        hidden: Any = (100,),
        *,
        model: Callable[[Any, Any, int], Any] | None = None,
        epochs: int | None = None,
        batch: int = 32,
        lr: float = 3e-3,
        weight_decay: float = 1e-4,
        optimizer: str = "adamw",
        precision: str = "fp32",
        device: str = "auto",
        threads: int = 0,
        random_state: int | None = 0,
    ) -> None:
        self.hidden = hidden
        self.model = model
        self.epochs = epochs
        self.batch = batch
        self.lr = lr
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.precision = precision
        self.device = device
        self.threads = threads
        self.random_state = random_state

    def _inputs(self, X: Any, y: Any = None, **how: Any) -> Any:
        """X, and y where it is given, as arrays of finite numbers."""
        if _SKLEARN:
            more: dict[str, Any] = {"reset": False} if y is None else {"y": y, "y_numeric": how.get("y_numeric", False)}
            return validate_data(self, X, dtype=np.float64, ensure_min_samples=1 if y is None else 2, **more)
        X = np.asarray(X, np.float64)
        self.n_features_in_: int
        if X.ndim != 2 or not X.size or not np.isfinite(X).all():
            raise ValueError(f"expected finite numbers, (samples, features), found shape {X.shape}")
        if y is None:
            if X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input"
                )
            return X
        self.n_features_in_ = X.shape[1]
        y = np.asarray(y)
        if len(y) != len(X) or y.ndim != 1:
            raise ValueError(f"{len(X)} samples and targets of shape {y.shape}")
        return X, y

    def _asked(self, y: Any) -> None:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")

    def _net(self, outputs: int, loss: str, features: int) -> Model:
        hidden = (self.hidden,) if isinstance(self.hidden, int) else tuple(self.hidden)

        def perceptron(b: Any, x: Any) -> Any:
            for i, width in enumerate(hidden):
                x = b.relu(b.linear(f"hidden{i}", x, int(width)))
            return b.linear("output", x, outputs)

        given = self.model
        function = perceptron if given is None else lambda b, x: given(b, x, outputs)
        return Model(function, loss, input=(features,), device=self.device, threads=self.threads)

    def _trainer(self, outputs: int, loss: str, features: int, batch: int) -> Trainer:
        seed = np.random.randint(2**31) if self.random_state is None else self._seed()
        net = self._net(outputs, loss, features)
        decay = {"weight_decay": self.weight_decay} if self.weight_decay else {}
        return Trainer(net, precision=self.precision, optimizer=self.optimizer, lr=self.lr, batch=batch, seed=seed, **decay)  # type: ignore[arg-type]

    def _seed(self) -> int:
        state: Any = self.random_state
        if hasattr(state, "randint"):
            return int(state.randint(2**31))
        return int(state or 0)

    def _standard(self, X: Array) -> Array:
        return np.ascontiguousarray((X - self.mean_) / self.scale_, np.float32)

    def _learn(self, X: Array, y: Array, outputs: int, loss: str) -> None:
        self.mean_ = X.mean(axis=0)
        spread = X.std(axis=0)
        self.scale_ = np.where(spread > 1e-12 * (1 + np.abs(self.mean_)), spread, 1.0)
        batch = max(1, min(int(self.batch), len(X)))
        trainer = self._trainer(outputs, loss, X.shape[1], batch)
        with Data(self._standard(X), y, split="all", normalise="none", seed=self._seed()) as data:
            epochs = self.epochs or max(10, math.ceil(1000 / max(1, len(X) // batch)))
            last = trainer.fit(data, epochs=epochs)
        self.loss_ = last.loss
        self.weights_ = {name: trainer.params[name] for name in trainer.params}
        self.outputs_ = outputs
        _compiled[self] = trainer

    def _outputs(self, X: Any, loss: str) -> Array:
        if _SKLEARN:
            check_is_fitted(self, "weights_")
        elif not hasattr(self, "weights_"):
            raise Error(f"this {type(self).__name__} is not fitted yet: call fit first", 11)
        X = self._inputs(X)
        trainer = _compiled.get(self)
        if trainer is None or trainer.closed:
            trainer = self._trainer(self.outputs_, loss, X.shape[1], min(32, int(self.batch)))
            trainer.compile(input=(X.shape[1],))
            for name, values in self.weights_.items():
                trainer.params[name] = values
            _compiled[self] = trainer
        return trainer.predict(self._standard(X))

    def save(self, path: Any) -> None:
        """The weights as a .safetensors file."""
        if self not in _compiled:
            raise Error("nothing to save: call fit or predict first", 11)
        _compiled[self].save(path)


class Classifier(ClassifierMixin, _Estimator):  # type: ignore[misc, unused-ignore]
    """A classifier: fit, predict, predict_proba, score. `classes_` are the labels, of any kind."""

    def fit(self, X: Any, y: Any) -> Classifier:
        """Learns. What was learned before is forgotten."""
        self._asked(y)
        X, y = self._inputs(X, y)
        if _SKLEARN:
            check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"Classifier needs 2 classes at least, but y has {len(self.classes_)} class")
        self._learn(X, labels.astype(np.int32), len(self.classes_), "cross_entropy")
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, (samples, classes)."""
        scores = self._outputs(X, "cross_entropy").astype(np.float64)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Array:
        """The most probable class of each sample."""
        best = self._outputs(X, "cross_entropy").argmax(axis=1)
        return np.asarray(self.classes_[best])


class Regressor(RegressorMixin, _Estimator):  # type: ignore[misc, unused-ignore]
    """Predicts a number: fit, predict, score (R²)."""

    def fit(self, X: Any, y: Any) -> Regressor:
        """Learns. What was learned before is forgotten."""
        self._asked(y)
        X, y = self._inputs(X, y, y_numeric=True)
        y = np.asarray(y, np.float64)
        if not np.isfinite(y).all():
            raise ValueError("y has numbers that are not finite")
        self.target_mean_ = float(y.mean())
        self.target_scale_ = float(y.std()) or 1.0
        self._learn(X, ((y - self.target_mean_) / self.target_scale_).astype(np.float32), 1, "mse")
        return self

    def predict(self, X: Any) -> Array:
        """A number for each sample."""
        return np.asarray(self._outputs(X, "mse")[:, 0].astype(np.float64) * self.target_scale_ + self.target_mean_)
