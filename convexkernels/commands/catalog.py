"""The models the command line offers, as plain data: adding one is one entry of `MODELS`."""

from dataclasses import dataclass

TASKS = ("classification", "regression")
# Rows up to which one kernel matrix of all of them is made, and columns up to which neighborhoods of longer tables mean
# something.
MOST_ROWS, MOST_COLUMNS = 10_000, 100


@dataclass(frozen=True)
class Model:
    """An estimator for each task, by its name in :mod:`convexkernels.estimators`, and what it learns in a few words."""

    classification: str | None
    regression: str | None
    about: str


# name on the command line -> model. The name of any estimator of the library is a model, too.
MODELS: dict[str, Model] = {
    "hierarchical": Model(
        "HierarchicalGaussianClassifier", "HierarchicalGaussianRegressor", "a tree of Gaussians, a weight per column"
    ),
    "tessellated": Model("TessellatedSVC", "TessellatedRidge", "the best tessellated kernel, certified"),
    "multiple-kernel": Model("MultipleKernelSVC", "MultipleKernelRidge", "weights of candidate kernels, certified"),
    "concatenated": Model("ConcatenatedKernelClassifier", "ConcatenatedKernelRegressor", "a deep kernel"),
    "spectral": Model("SpectralKernelClassifier", "SpectralKernelRegressor", "frequencies of random features"),
    "voronoi": Model("VoronoiSVC", "VoronoiRidge", "a function for each cell of a long table"),
    "tessellated-svr": Model(None, "TessellatedSVR", "as tessellated, deviations up to epsilon cost nothing"),
    "multiple-kernel-svr": Model(
        None, "MultipleKernelSVR", "as multiple-kernel, deviations up to epsilon cost nothing"
    ),
    "interpolator": Model(None, "ConcatenatedKernelInterpolator", "a deep kernel through every row"),
    "voronoi-svr": Model(None, "VoronoiSVR", "as voronoi, deviations up to epsilon cost nothing"),
    "voronoi-quantile": Model(None, "VoronoiQuantile", "as voronoi, a quantile instead of the mean"),
}

# Parameters by estimator, so that a slip is found before the estimators are loaded; a test compares them.
_ANY = "checkpoint max_time verbose"
_CONVEX = f"{_ANY} intercept memory_limit solver tol"
_TESSELLATED = f"{_CONVEX} degree landmarks margin z_degree"
_CANDIDATES = f"{_CONVEX} center kernels landmarks normalize"
_TREES = f"{_ANY} architecture clip criterion loss random_state search selection warm_start"
_DEEP = f"{_ANY} layers mu n_jobs n_restarts random_state tol"
_SPECTRAL = f"{_ANY} feature_map lam1 lam2 loss n_components random_state setting sigma training"
_CELLS = f"{_ANY} cells estimator kernel max_cell_size n_jobs random_state selection tol"
PARAMETERS = {
    "ConcatenatedKernelClassifier": f"{_DEEP} class_weight cv lam loss",
    "ConcatenatedKernelInterpolator": f"{_DEEP} normalize_y nugget",
    "ConcatenatedKernelRegressor": f"{_DEEP} cv lam loss normalize_y",
    "HierarchicalGaussianClassifier": f"{_TREES} class_weight multi_class",
    "HierarchicalGaussianRegressor": _TREES,
    "MultipleKernelRidge": f"{_CANDIDATES} lam",
    "MultipleKernelSVC": f"{_CANDIDATES} C class_weight loss",
    "MultipleKernelSVR": f"{_CANDIDATES} C epsilon loss",
    "SpectralKernelClassifier": f"{_SPECTRAL} class_weight",
    "SpectralKernelRegressor": _SPECTRAL,
    "TessellatedRidge": f"{_TESSELLATED} lam",
    "TessellatedSVC": f"{_TESSELLATED} C class_weight loss",
    "TessellatedSVR": f"{_TESSELLATED} C epsilon loss",
    "VoronoiQuantile": f"{_CELLS} quantile",
    "VoronoiRidge": _CELLS,
    "VoronoiSVC": f"{_CELLS} class_weight loss",
    "VoronoiSVR": f"{_CELLS} epsilon",
}
# The lowest values of numbers: 0 excluded, and those of whole numbers.
ABOVE_ZERO = ("C", "margin", "max_time", "tol")
LOWEST = {"degree": 0, "max_cell_size": 2, "n_components": 1, "n_restarts": 1, "z_degree": 0}
SOLVERS = ("auto", "conic", "envelope", "frank-wolfe", "interior-point", "reduced-gradient", "spectral-gradient")

# name on the command line -> what it is called in the table of scores
RIVALS = {
    "svm": "cross-validated RBF SVM",
    "forest": "random forest",
    "boosting": "boosted trees",
    "linear": "linear model",
}


def estimator_name(model: str, task: str) -> str | None:
    """The estimator of a model for a task; None where there is none."""
    entry = MODELS.get(model)
    return None if entry is None else entry.classification if task == "classification" else entry.regression


def chosen_model(task: str, n_rows: int, n_columns: int) -> tuple[str, str]:
    """The model that ``--model auto`` stands for, and why."""
    if n_rows <= MOST_ROWS:
        return "hierarchical", f"it predicts best on tables of up to {MOST_ROWS:,} rows, and weighs every column"
    if n_columns <= MOST_COLUMNS:
        return "hierarchical", f"it learns a kernel on some of {n_rows:,} rows at a time, and takes it to all of them"
    return "spectral", f"its cost is linear in {n_rows:,} rows and {n_columns} columns, too many for neighborhoods"
