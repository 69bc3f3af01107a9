"""What is compared: defaults, and settings tuned by random search with equal processor seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import convexkernels as ck
from benchmarks.tabular import rivals

N_SETTINGS, VALIDATION = 15, 0.2
# Processor seconds of a default column, and of one that always takes longer.
LIMIT, SLOW_LIMIT = 30.0, 600.0
BOTH = ("classification", "regression")
Draw = Callable[[np.random.Generator], Any]


def between(low: float, high: float) -> Draw:
    return lambda rng: float(rng.uniform(low, high))


def log_between(low: float, high: float) -> Draw:
    return lambda rng: float(np.exp(rng.uniform(math.log(low), math.log(high))))


def log_whole(low: int, high: int) -> Draw:
    return lambda rng: int(np.exp(rng.uniform(math.log(low), math.log(high + 1))))


def one_of(*values: Any) -> Draw:
    return lambda rng: values[int(rng.integers(len(values)))]


# Ranges of TabArena's search spaces, for RealMLP those of its paper; what is more likely stands there more often.
SPACES: dict[str, dict[str, Draw]] = {
    "random forest": {
        "max_features": between(0.4, 1.0),
        "bootstrap": one_of(False, True),
        "max_samples": between(0.5, 1.0),
        "min_samples_split": log_whole(2, 4),
        "min_impurity_decrease": log_between(1e-5, 1e-3),
    },
    "histogram boosting": {
        "learning_rate": log_between(5e-3, 0.1),
        "max_leaf_nodes": log_whole(4, 200),
        "min_samples_leaf": log_whole(1, 64),
        "l2_regularization": log_between(1e-4, 5.0),
        "max_features": between(0.4, 1.0),
    },
    "XGBoost": {
        "learning_rate": log_between(5e-3, 0.1),
        "max_depth": log_whole(4, 10),
        "min_child_weight": log_between(1e-3, 5.0),
        "subsample": between(0.6, 1.0),
        "colsample_bylevel": between(0.6, 1.0),
        "colsample_bynode": between(0.6, 1.0),
        "reg_alpha": between(1e-4, 5.0),
        "reg_lambda": between(1e-4, 5.0),
        "grow_policy": one_of("depthwise", "lossguide"),
        "max_cat_to_onehot": log_whole(8, 100),
        "max_leaves": log_whole(8, 1024),
    },
    "LightGBM": {
        "learning_rate": log_between(5e-3, 0.1),
        "colsample_bytree": between(0.4, 1.0),
        "subsample": between(0.7, 1.0),
        "subsample_freq": one_of(1),
        "num_leaves": log_whole(2, 200),
        "min_child_samples": log_whole(1, 64),
        "extra_trees": one_of(False, True),
        "min_data_per_group": log_whole(2, 100),
        "cat_l2": log_between(5e-3, 2.0),
        "cat_smooth": log_between(1e-3, 100.0),
        "max_cat_to_onehot": log_whole(8, 100),
        "reg_alpha": between(1e-4, 1.0),
        "reg_lambda": between(1e-4, 2.0),
    },
    "CatBoost": {
        "learning_rate": log_between(5e-3, 0.1),
        "bootstrap_type": one_of("Bernoulli"),
        "subsample": between(0.7, 1.0),
        "grow_policy": one_of("SymmetricTree", "Depthwise"),
        "depth": one_of(4, 5, 6, 7, 8),
        "colsample_bylevel": between(0.85, 1.0),
        "l2_leaf_reg": log_between(1e-4, 5.0),
        "leaf_estimation_iterations": log_whole(1, 20),
        "one_hot_max_size": log_whole(8, 100),
    },
    "RealMLP": {
        "num_emb_type": one_of("none", "pbld", "pl", "plr"),
        "add_front_scale": one_of(*[True] * 3, *[False] * 2),
        "lr": log_between(2e-2, 3e-1),
        "p_drop": one_of(*[0.0] * 3, *[0.15] * 5, *[0.3] * 2),
        "act": one_of("relu", "selu", "mish"),
        "hidden_sizes": one_of(*[[256] * 3] * 3, [64] * 5, [512]),
        "wd": one_of(0.0, 2e-2),
        "plr_sigma": log_between(0.05, 0.5),
        "ls_eps": one_of(*[0.0] * 3, *[0.1] * 7),
    },
    "TabM": {
        "arch_type": one_of("tabm-mini"),
        "num_emb_type": one_of("pwl"),
        "d_embedding": one_of(*range(8, 33, 4)),
        "num_emb_n_bins": lambda rng: int(rng.integers(2, 129)),
        "batch_size": one_of("auto"),
        "lr": log_between(1e-4, 3e-3),
        "weight_decay": lambda rng: float(rng.choice([0.0, log_between(1e-4, 0.1)(rng)])),
        "n_blocks": one_of(2, 3, 4, 5),
        "d_block": one_of(*range(128, 1025, 16)),
        "dropout": lambda rng: float(rng.choice([0.0, rng.uniform(0.0, 0.5)])),
    },
    "xRFM": {
        "bandwidth": log_between(0.5, 200.0),
        "diag": one_of(False, True),
        "exponent": between(0.7, 1.4),
        "kernel": one_of("l1", "l2"),
        "reg": log_between(1e-6, 10.0),
    },
    "HierarchicalGaussian": {
        "architecture": one_of(1, 2, 4, 8, 12, 16),
        "max_iter": log_whole(50, 400),
        "n_restarts": one_of(1, 2, 3),
        "lam": log_between(1e-3, 10.0),
    },
}


class Ours:
    """An estimator of the library by its name; a setting of `TreeSearch` is passed on to it.

    Its limit of wall seconds is taken away: a cell has one of processor seconds, and how busy a computer is must decide
    nothing.
    """

    def __init__(self, name: str, task: str, seed: int, **setting: Any) -> None:
        estimator = getattr(ck, name)()
        search = {key: setting.pop(key) for key in ("max_iter", "n_restarts", "lam") if key in setting}
        if search:
            setting["search"] = ck.TreeSearch(**search)
        if "random_state" in estimator.get_params():
            setting["random_state"] = seed
        setting["max_time"] = None
        self.estimator = estimator.set_params(**setting)

    def fit(self, X: Any, y: np.ndarray, valid: Any = None) -> Ours:
        self.estimator.fit(X, y)
        return self

    def stopped(self) -> dict[str, Any]:
        return {}

    def __getattr__(self, name: str) -> Any:
        if name == "estimator":
            raise AttributeError(name)
        return getattr(self.estimator, name)


class RandomSearch:
    """The default setting and random ones, judged on a fifth of the training rows, until processor time is used up.

    The best setting, with the number of trees at which it stopped, is trained on all rows. No setting is begun that
    would, taking as long as the longest so far, leave no time for that.
    """

    def __init__(self, make: Callable[..., Any], space: dict[str, Draw], task: str, seed: int, seconds: float) -> None:
        self.make, self.space, self.task, self.seed, self.seconds = make, space, task, seed, seconds
        self.n_tried = 0

    def fit(self, X: Any, y: np.ndarray) -> RandomSearch:
        rng, end = np.random.default_rng(self.seed), time.process_time() + self.seconds
        settings = [{}, *({name: draw(rng) for name, draw in self.space.items()} for _ in range(N_SETTINGS))]
        labels = y if self.task == "classification" and np.unique(y, return_counts=True)[1].min() > 1 else None
        train, held = train_test_split(np.arange(len(y)), test_size=VALIDATION, random_state=self.seed, stratify=labels)
        best: tuple[float, dict[str, Any]] = (math.inf, {})
        longest = 0.0
        for setting in settings:
            began = time.process_time()
            if self.n_tried and began + 2.0 * longest > end:
                break
            best = min(best, self._tried(X, y, train, held, setting), key=lambda pair: pair[0])
            longest = max(longest, time.process_time() - began)
            self.n_tried += 1
        self.best = self.make(self.task, self.seed, **best[1]).fit(X, y)
        return self

    def _tried(
        self, X: Any, y: np.ndarray, train: Any, held: Any, setting: dict[str, Any]
    ) -> tuple[float, dict[str, Any]]:
        """The risk of a setting on held-out rows, infinite where it fails, and the setting with what stopped it."""
        try:
            model = self.make(self.task, self.seed, **setting)
            model.fit(X.iloc[train], y[train], (X.iloc[held], y[held]))
            return validation_risk(model, self.task, X.iloc[held], y[held]), setting | model.stopped()
        except Exception:
            return math.inf, setting

    def __getattr__(self, name: str) -> Any:
        if name == "best":
            raise AttributeError(name)
        return getattr(self.best, name)


def validation_risk(model: Any, task: str, X: Any, y: np.ndarray) -> float:
    """Log loss where there are probabilities, else the error; the root mean squared error of numbers."""
    if task == "regression":
        risk = float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    elif hasattr(model, "predict_proba") and set(y) <= set(model.classes_):
        risk = float(log_loss(y, model.predict_proba(X), labels=model.classes_))
    else:
        risk = float(np.mean(model.predict(X) != y))
    return risk if math.isfinite(risk) else math.inf


OURS_FIRST = ["HierarchicalGaussianClassifier", "HierarchicalGaussianRegressor"]
TREES_FIRST = ["XGBoost", "LightGBM", "CatBoost"]
FIRST = [*OURS_FIRST, *TREES_FIRST, "linear", "random forest", "histogram boosting", "RealMLP", "xRFM"]
SECOND = [f"{name}, tuned" for name in OURS_FIRST + TREES_FIRST]


@dataclass(frozen=True)
class Method:
    """A column of the result: how it is made, for which tasks, and the packages it needs.

    `cost` are the constants of the size rule: seconds at no rows, seconds at 1,000 rows and 10 features, the power of
    rows, the power of features, and the power of classes.
    """

    name: str
    make: Callable[..., Any]
    tasks: tuple[str, ...] = BOTH
    packages: tuple[str, ...] = ()
    cost: tuple[float, float, float, float, float] = (0.1, 1.0, 1.0, 0.5, 0.0)
    space: str = ""
    ours: bool = False

    @property
    def tuned(self) -> bool:
        return bool(self.space)

    @property
    def stage(self) -> int:
        """When it is run: FIRST, SECOND, the other default columns, the other tuned ones, what is slow."""
        if self.slow:
            return 4
        listed = [self.name in names for names in (FIRST, SECOND)]
        return listed.index(True) if any(listed) else 2 + int(self.tuned)

    @property
    def slow(self) -> bool:
        """Whether a fit to 1,000 rows and 10 columns by default passes the limit: run last, with a longer one."""
        return self.cost[0] + self.cost[1] > LIMIT

    @property
    def limit(self) -> float:
        """Processor seconds of a default column."""
        return SLOW_LIMIT if self.slow else LIMIT

    def missing(self) -> list[str]:
        return [name for name in self.packages if find_spec(name) is None]

    def build(self, task: str, seed: int, seconds: float) -> Any:
        if self.tuned:
            return RandomSearch(self.make, SPACES[self.space], task, seed, seconds)
        return self.make(task, seed)


def _ours(name: str) -> Callable[..., Any]:
    return lambda task, seed, **setting: Ours(name, task, seed, **setting)


_KERNEL = (0.8, 1.5, 1.3, 0.2, 0.4)
_OURS = {
    "classification": {
        "TessellatedSVC": _KERNEL,
        "MultipleKernelSVC": (1.5, 4.0, 1.5, 0.3, 0.5),
        "HierarchicalGaussianClassifier": (0.3, 5.0, 1.4, 0.3, 0.3),
        "ConcatenatedKernelClassifier": (15.0, 40.0, 1.5, 0.2, 0.5),
        "SpectralKernelClassifier": (3.0, 8.0, 1.0, 0.2, 0.3),
        "VoronoiSVC": (0.2, 1.0, 1.5, 0.3, 0.7),
    },
    "regression": {
        "TessellatedSVR": _KERNEL,
        "TessellatedRidge": _KERNEL,
        "MultipleKernelSVR": (1.5, 4.0, 1.5, 0.3, 0.0),
        "MultipleKernelRidge": (1.5, 4.0, 1.5, 0.3, 0.0),
        "HierarchicalGaussianRegressor": (0.3, 5.0, 1.4, 0.3, 0.0),
        "ConcatenatedKernelRegressor": (15.0, 40.0, 1.5, 0.2, 0.0),
        "SpectralKernelRegressor": (3.0, 8.0, 1.0, 0.2, 0.0),
        "VoronoiRidge": (0.2, 1.0, 1.5, 0.3, 0.0),
        "VoronoiSVR": (1.0, 2.0, 1.5, 0.3, 0.0),
        "VoronoiQuantile": (1.0, 2.0, 1.5, 0.3, 0.0),
    },
}
_TABKIT, _GP = ("pytabkit", "torch"), ("gpytorch", "torch")
_RIVALS = [
    Method("linear", rivals.Linear, cost=(0.1, 1.0, 1.0, 1.0, 0.5)),
    Method("RBF SVM", rivals.RbfSvm, cost=(3.0, 8.0, 2.0, 0.3, 0.1)),
    Method("RBF ridge", rivals.RbfRidge, ("regression",), cost=(2.0, 4.0, 2.2, 0.1, 0.0)),
    Method("Gaussian process", rivals.GaussianProcess, ("regression",), _GP, (2.5, 12.0, 2.2, 0.2, 0.0)),
    Method("random forest", rivals.Forest, cost=(0.3, 1.5, 1.1, 0.5, 0.1)),
    Method("histogram boosting", rivals.Histogram, cost=(0.1, 0.8, 0.6, 0.4, 0.9)),
    Method("XGBoost", rivals.XGBoost, BOTH, ("xgboost",), (0.1, 0.3, 0.8, 0.7, 1.0)),
    Method("LightGBM", rivals.LightGBM, BOTH, ("lightgbm",), (0.1, 0.3, 0.8, 0.5, 1.0)),
    Method("CatBoost", rivals.CatBoost, BOTH, ("catboost",), (0.5, 2.0, 0.4, 0.6, 0.7)),
    Method("RealMLP", rivals.RealMLP, BOTH, _TABKIT, (1.0, 6.0, 1.0, 0.2, 0.0)),
    Method("TabM", rivals.TabM, BOTH, _TABKIT, (1.0, 100.0, 1.0, 0.3, 0.0)),
    Method("xRFM", rivals.XRFM, BOTH, ("xrfm", "torch"), (0.5, 2.0, 2.0, 0.5, 0.0)),
]


def _tuned(method: Method) -> Method:
    return replace(method, name=f"{method.name}, tuned", space=method.name)


METHODS = {
    method.name: method
    for method in [
        *(
            Method(name, _ours(name), (task,), cost=cost, ours=True)
            for task, members in _OURS.items()
            for name, cost in members.items()
        ),
        *(
            Method(f"{name}, tuned", _ours(name), (task,), cost=cost, space="HierarchicalGaussian", ours=True)
            for task, members in _OURS.items()
            for name, cost in members.items()
            if name.startswith("HierarchicalGaussian")
        ),
        *_RIVALS,
        *(_tuned(method) for method in _RIVALS if method.name in SPACES),
    ]
}
