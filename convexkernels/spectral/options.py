"""What can be said about how a spectral kernel is learned: the setting, and the training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from convexkernels.backend import DTYPES
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.measures import measure_of
from convexkernels.validation import check_number, check_whole_number

SCHEDULES = ("cosine", "constant")
DEFAULT_BATCH = 64
# Fewer rows are all needed for training.
FEWEST_TO_SPLIT = 20
# The share of the rows that validates, and how many do at least where none is lost. A handful takes epochs by chance:
# of 18 tables, 50 and 100 training rows, R^2 was .42 and .58 in the mean with a tenth, .48 and .61 with 30 rows, and
# intervals asked for .8 held less than .7 in 36 and 9 fits of 100, 11 and 9 with 30 rows. Classes whose last W is one
# of training need the rows more (50 rows: .76 right, .72 with 30 held out).
SHARE, VALIDATING = 0.1, 30


@dataclass(frozen=True)
class SpectralSetting:
    """The kernel, its density and the regularizer, as in a column of [LLW20 Table 1]; that of ASKL by default.

    Parameters
    ----------
    stationary : bool
        Whether the kernel depends on differences of points only.
    learned : bool
        Whether frequencies are trained, or stay as they are drawn.
    trace_norm : bool
        Whether lam1 weighs ``|W|_*`` instead of ``|W|_F^2``.
    feature_norm : bool
        Whether lam2 weighs ``|phi(X)|_F^2``.
    measure : {"gaussian", "student-1", "student-3", "student-5", "cauchy"}
        What frequencies are drawn from; see :meth:`Spectral.random`.
    inner : tuple of int, >= 1
        Components of layers below the last one, whose features take the place of the points: ``(100,)`` makes spectral
        features of 100 spectral features, and all frequencies are trained. The paper has none.
    """

    stationary: bool = False
    learned: bool = True
    trace_norm: bool = True
    feature_norm: bool = True
    measure: str = "gaussian"
    inner: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        measure_of(self.measure)
        if not isinstance(self.inner, tuple):
            raise InvalidInputError(f"inner must be a tuple of whole numbers, such as (100,), got {self.inner!r}.")
        for D in self.inner:
            check_whole_number("every number of inner", D, low=1)


SETTINGS = {
    "SK": SpectralSetting(stationary=True, learned=False, trace_norm=False, feature_norm=False),
    "NSK": SpectralSetting(stationary=False, learned=False, trace_norm=False, feature_norm=False),
    "SKL": SpectralSetting(stationary=True, learned=True, trace_norm=False, feature_norm=False),
    "NSKL": SpectralSetting(stationary=False, learned=True, trace_norm=False, feature_norm=False),
    "ASKL": SpectralSetting(stationary=False, learned=True, trace_norm=True, feature_norm=True),
}


def setting_of(setting: Any) -> SpectralSetting:
    """A setting, or that of a name, or a refusal that lists the names."""
    if isinstance(setting, SpectralSetting):
        return setting
    if not isinstance(setting, str) or setting not in SETTINGS:
        raise InvalidInputError(
            f"setting must be one of {', '.join(SETTINGS)}, got {setting!r}; or pass a SpectralSetting."
        )
    return SETTINGS[setting]


@dataclass(frozen=True)
class Training:
    """How frequencies and weights are trained, and what with.

    Parameters
    ----------
    batch_size : int, >= 1, optional
        Rows per step; 64, or all where there are fewer, when not given. The paper has 32. Larger ones are faster per
        epoch, 512 four times.
    learning_rate : float, > 0, optional
        First step of the frequencies relative to their root mean square, feature by feature where these differ in
        scale. When not given 0.1 for the squared loss; for the others 0.03, or less where that would change scores by
        more than a tenth of their spread.
    max_epochs : int, >= 0
        Passes over the data.
    schedule : {"cosine", "constant"}
        Whether steps shrink to nothing along half a cosine.
    validation_fraction : float in [0, 1), optional
        Share of the rows that are not trained on and say which epoch is best; 0, or fewer than 20 rows: none. When not
        given a tenth; with the squared loss, whose last solve has all rows, 30 rows at least, of fewer than 60 half.
    patience : int, >= 1, optional
        Epochs without a better validation score before training ends; never before `max_epochs` when not given.
    folds : int, >= 2
        Folds behind the choice from lists, which uses at most 3,000 rows and 1,000 features, and half of the epochs;
        there the penalties weigh as much against the sum of the losses as they will on all rows.
    dtype : {"float32", "float64"}
    device : str or torch.device, optional
        A device of PyTorch, for example "cuda"; numpy, or the device of the tensors that are passed, when not given.
    """

    batch_size: int | None = None
    learning_rate: float | None = None
    max_epochs: int = 20
    schedule: str = "cosine"
    validation_fraction: float | None = None
    patience: int | None = None
    folds: int = 5
    dtype: str = "float32"
    device: Any = None

    def __post_init__(self) -> None:
        if self.batch_size is not None:
            check_whole_number("batch_size", self.batch_size, low=1)
        if self.learning_rate is not None:
            check_number("learning_rate", self.learning_rate, low=0.0, open_low=True)
        check_whole_number("max_epochs", self.max_epochs, low=0)
        if self.schedule not in SCHEDULES:
            raise InvalidInputError(f"schedule must be 'cosine' or 'constant', got {self.schedule!r}.")
        given = self.validation_fraction
        if given is not None and check_number("validation_fraction", given, low=0.0, high=1.0) == 1.0:
            raise InvalidInputError("validation_fraction is 1, which leaves no rows to learn from; pass a smaller one.")
        if self.patience is not None:
            check_whole_number("patience", self.patience, low=1)
            if given == 0.0:
                raise InvalidInputError(
                    "patience counts epochs without a better validation score, but validation_fraction is 0; pass a "
                    "share of the rows, or patience=None."
                )
        check_whole_number("folds", self.folds, low=2)
        if self.dtype not in DTYPES:
            raise InvalidInputError(f"dtype must be 'float32' or 'float64', got {self.dtype!r}.")

    def settled(self, m: int, *, most: bool = False) -> Training:
        """The same with the batch for m rows; with `most` a batch is cut to m instead of refused."""
        size = min(DEFAULT_BATCH, m) if self.batch_size is None else self.batch_size
        if size > m and not most:
            raise InvalidInputError(
                f"batch_size is {size}, but there are only {m} rows to learn from; pass {m} or less."
            )
        return replace(self, batch_size=min(size, m))

    def validation_share(self, m: int, rejoins: bool) -> float:
        """The share of m rows that validates; `rejoins` says whether the last solve has them, too."""
        if m < FEWEST_TO_SPLIT:
            return 0.0
        if self.validation_fraction is not None:
            return self.validation_fraction
        return max(SHARE, min(VALIDATING / m, 0.5)) if rejoins else SHARE

    def for_one_pass(self) -> Training:
        """The same for a single pass with steps that do not shrink."""
        return replace(self, max_epochs=1, schedule="constant", patience=None)


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """Everything that decides what is learned, as the estimators take it; `training` is settled.

    By `factors` frequencies as drawn may be multiplied, feature by feature, where sigma is chosen; each is what finds
    them and what steps are relative to, or None, when there is time.
    """

    setting: SpectralSetting = field(default_factory=lambda: SETTINGS["ASKL"])
    n_components: int = 2000
    feature_map: str = "phi"
    sigma: Any = None
    lam1: Any = None
    lam2: Any = None
    training: Training = field(default_factory=Training)
    factors: Sequence[Callable[[], Any]] = ()
