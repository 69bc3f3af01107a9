"""Methods of others behind one interface: ``fit(X, y, valid=None)`` on data frames, ``predict``, ``predict_proba``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.tabular import encoding

PATIENCE, MOST_TREES = 50, 2000


def cross_validated_rbf(kind: str, task: str, n_features: int, halving: int | None = None) -> Any:
    """A Gaussian kernel on columns of unit variance, its parameters by 5-fold cross-validation.

    With `halving` rows all pairs learn from a ninth of them first, the better third from a third, and a ninth from all.
    """
    gammas = np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0]) / n_features
    if kind == "ridge":
        grid = {"kernelridge__alpha": 10.0 ** np.arange(-5, 2), "kernelridge__gamma": gammas}
        estimator = make_pipeline(StandardScaler(), KernelRidge(kernel="rbf"))
    elif task == "classification":
        grid = {"svc__C": 10.0 ** np.arange(-1, 5), "svc__gamma": gammas}
        estimator = make_pipeline(StandardScaler(), SVC(cache_size=500))
    else:
        grid = {"svr__C": 10.0 ** np.arange(-1, 4), "svr__gamma": gammas, "svr__epsilon": [0.03, 0.3]}
        estimator = make_pipeline(StandardScaler(), SVR(cache_size=500, max_iter=200_000))
    if halving is None:
        search = GridSearchCV(estimator, grid, cv=5)
    else:
        import_module("sklearn.experimental.enable_halving_search_cv")
        kind_of_search = import_module("sklearn.model_selection").HalvingGridSearchCV
        search = kind_of_search(estimator, grid, cv=5, min_resources=halving // 9, random_state=0)
    return search if task == "classification" else TransformedTargetRegressor(search, transformer=StandardScaler())


class Rival(BaseEstimator):
    """An estimator behind an encoding of the columns; labels are coded as whole numbers.

    Subclasses say what the estimator is (`estimator`) and how it stops early (`fit_early`).
    """

    def __init__(self, task: str, seed: int, **setting: Any) -> None:
        self.task, self.seed, self.setting = task, seed, setting

    def encoder(self) -> Any:
        return encoding.indicators()

    def estimator(self, n_features: int) -> Any:
        raise NotImplementedError

    def fit(self, X: pd.DataFrame, y: np.ndarray, valid: tuple[pd.DataFrame, np.ndarray] | None = None) -> Rival:
        self.encoder_, self.classes_ = self.encoder().fit(X), np.unique(y)
        if self.task == "classification":
            self.labels_ = LabelEncoder().fit(y)
        Z = self.encoder_.transform(X)
        self.estimator_ = self.estimator(Z.shape[1])
        if valid is None:
            self.fit_whole(Z, self.coded(y))
        else:
            self.fit_early(Z, self.coded(y), self.encoder_.transform(valid[0]), self.coded(valid[1]))
        return self

    def coded(self, y: np.ndarray) -> np.ndarray:
        return self.labels_.transform(y) if self.task == "classification" else y

    def fit_whole(self, Z: Any, y: np.ndarray) -> None:
        self.estimator_.fit(Z, y)

    def fit_early(self, Z: Any, y: np.ndarray, V: Any, v: np.ndarray) -> None:
        self.fit_whole(Z, y)

    def stopped(self) -> dict[str, Any]:
        """The setting that early stopping has found, for training on all rows."""
        return {}

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        found = np.asarray(self.estimator_.predict(self.encoder_.transform(X))).reshape(len(X))
        return self.labels_.inverse_transform(found.astype(int)) if self.task == "classification" else found

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.estimator_.predict_proba(self.encoder_.transform(X))

    def decision_function(self, X: pd.DataFrame) -> np.ndarray:
        return self.estimator_.decision_function(self.encoder_.transform(X))


class Linear(Rival):
    def estimator(self, n_features: int) -> Any:
        if self.task == "classification":
            return LogisticRegressionCV(
                Cs=10, cv=5, max_iter=1000, scoring="neg_log_loss", l1_ratios=(0,), use_legacy_attributes=False
            )
        return RidgeCV(np.logspace(-4, 4, 17))


class RbfSvm(Rival):
    kind = "svm"

    def estimator(self, n_features: int) -> Any:
        return cross_validated_rbf(self.kind, self.task, n_features)


class RbfRidge(RbfSvm):
    kind = "ridge"


class Forest(Rival):
    def encoder(self) -> Any:
        return encoding.codes()

    def estimator(self, n_features: int) -> Any:
        kind = RandomForestClassifier if self.task == "classification" else RandomForestRegressor
        setting = {"n_estimators": 300, "random_state": self.seed} | self.setting
        return kind(**setting | ({} if setting.get("bootstrap", True) else {"max_samples": None}))

    def fit_whole(self, Z: Any, y: np.ndarray) -> None:
        if self.task == "regression" and "min_impurity_decrease" in self.setting:  # of targets of unit variance
            self.estimator_.set_params(min_impurity_decrease=self.setting["min_impurity_decrease"] * np.var(y))
        super().fit_whole(Z, y)


class Histogram(Rival):
    def encoder(self) -> Any:
        return encoding.Categories()

    def estimator(self, n_features: int) -> Any:
        kind = HistGradientBoostingClassifier if self.task == "classification" else HistGradientBoostingRegressor
        return kind(**{"random_state": self.seed} | self.setting)

    def fit_early(self, Z: Any, y: np.ndarray, V: Any, v: np.ndarray) -> None:
        self.estimator_.set_params(max_iter=MOST_TREES, early_stopping=True, n_iter_no_change=PATIENCE)
        self.estimator_.fit(Z, y, X_val=V, y_val=v)

    def stopped(self) -> dict[str, Any]:
        return {"max_iter": self.estimator_.n_iter_, "early_stopping": False}


class LightGBM(Rival):
    def encoder(self) -> Any:
        return encoding.Categories()

    def estimator(self, n_features: int) -> Any:
        lightgbm = import_module("lightgbm")
        kind = lightgbm.LGBMClassifier if self.task == "classification" else lightgbm.LGBMRegressor
        return kind(**{"random_state": self.seed, "n_jobs": 1, "verbose": -1} | self.setting)

    def fit_early(self, Z: Any, y: np.ndarray, V: Any, v: np.ndarray) -> None:
        stop = import_module("lightgbm").early_stopping(PATIENCE, verbose=False)
        self.estimator_.set_params(n_estimators=MOST_TREES).fit(Z, y, eval_set=[(V, v)], callbacks=[stop])

    def stopped(self) -> dict[str, Any]:
        return {"n_estimators": self.estimator_.best_iteration_ or MOST_TREES}


class XGBoost(Rival):
    def encoder(self) -> Any:
        return encoding.Categories()

    def estimator(self, n_features: int) -> Any:
        xgboost = import_module("xgboost")
        kind = xgboost.XGBClassifier if self.task == "classification" else xgboost.XGBRegressor
        given = {"random_state": self.seed, "n_jobs": 1, "enable_categorical": True, "tree_method": "hist"}
        return kind(**given | self.setting)

    def fit_early(self, Z: Any, y: np.ndarray, V: Any, v: np.ndarray) -> None:
        self.estimator_.set_params(n_estimators=MOST_TREES, early_stopping_rounds=PATIENCE)
        self.estimator_.fit(Z, y, eval_set=[(V, v)], verbose=False)

    def stopped(self) -> dict[str, Any]:
        return {"n_estimators": self.estimator_.best_iteration + 1}


class CatBoost(Rival):
    def encoder(self) -> Any:
        return encoding.Categories(missing_is_category=True)

    def estimator(self, n_features: int) -> Any:
        catboost = import_module("catboost")
        kind = catboost.CatBoostClassifier if self.task == "classification" else catboost.CatBoostRegressor
        quiet = {"random_seed": self.seed, "thread_count": 1, "verbose": False, "allow_writing_files": False}
        return kind(**quiet | {"cat_features": list(self.encoder_.categories_)} | self.setting)

    def fit_early(self, Z: Any, y: np.ndarray, V: Any, v: np.ndarray) -> None:
        self.estimator_.set_params(iterations=MOST_TREES)
        self.estimator_.fit(Z, y, eval_set=(V, v), early_stopping_rounds=PATIENCE)

    def stopped(self) -> dict[str, Any]:
        return {"iterations": self.estimator_.tree_count_}


class Network(Rival):
    """A network of pytabkit, on the processor; it holds back a fifth of the rows to stop early."""

    kind = ""

    def encoder(self) -> Any:
        return encoding.medians()

    def estimator(self, n_features: int) -> Any:
        name = f"{self.kind}_{'Classifier' if self.task == 'classification' else 'Regressor'}"
        return getattr(import_module("pytabkit"), name)(
            device="cpu", random_state=self.seed, n_threads=1, **self.setting
        )

    def fit_whole(self, Z: Any, y: np.ndarray) -> None:
        self.estimator_.fit(Z, y, cat_col_names=[name for name in Z if Z[name].dtype.kind not in "fiu"])


class RealMLP(Network):
    kind = "RealMLP_TD"


class TabM(Network):
    kind = "TabM_D"


class XRFM(Rival):
    """A fifth of the rows is held back, as its `fit` wants."""

    def estimator(self, n_features: int) -> Any:
        model = {"kernel": "l2", "exponent": 1.0, "bandwidth": 10.0, "bandwidth_mode": "constant", "diag": False}
        train = {"reg": 1e-3, "iters": 5, "verbose": False, "early_stop_rfm": True}
        model |= {key: value for key, value in self.setting.items() if key != "reg"}
        train |= {key: value for key, value in self.setting.items() if key == "reg"}
        metric = "brier" if self.task == "classification" else "mse"
        return import_module("xrfm").xRFM(
            {"model": model, "fit": train}, device="cpu", tuning_metric=metric, random_state=self.seed, verbose=False
        )

    def fit_whole(self, Z: Any, y: np.ndarray) -> None:
        labels = y if self.task == "classification" and np.min(np.bincount(y)) > 1 else None
        T, V, t, v = train_test_split(Z, y, test_size=0.2, random_state=self.seed, stratify=labels)
        self.fit_early(T, t, V, v)

    def fit_early(self, Z: Any, y: np.ndarray, V: Any, v: np.ndarray) -> None:
        self.center_, self.scale_ = (0.0, 1.0) if self.task == "classification" else (y.mean(), y.std())
        kind = np.int64 if self.task == "classification" else np.float32
        y, v = (((t - self.center_) / self.scale_).astype(kind)[:, None] for t in (y, v))
        self.estimator_.fit(Z.astype(np.float32), y, V.astype(np.float32), v)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        if self.task == "classification":
            return self.classes_[self.predict_proba(X).argmax(1)]
        found = self.estimator_.predict(self.encoder_.transform(X).astype(np.float32))
        return self.center_ + self.scale_ * np.asarray(found).reshape(len(X))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.estimator_.predict_proba(self.encoder_.transform(X).astype(np.float32)))


class GaussianProcess(Rival):
    """A Gaussian kernel with a width per feature by marginal likelihood: exact to 2,000 rows, 512 points beyond."""

    def estimator(self, n_features: int) -> Any:
        return import_module("benchmarks.tabular.gaussian_process").GaussianProcess(self.seed)
