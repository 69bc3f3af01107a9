"""The words that the docstrings of several estimators share, written once."""

import inspect
import re
from typing import TypeVar

from convexkernels.estimators.convex.words import CONVEX_WORDS
from convexkernels.estimators.spectral.words import SPECTRAL_WORDS
from convexkernels.estimators.voronoi.words import CELL_WORDS

Estimator = TypeVar("Estimator", bound=type)

# What ``{parameters}`` stands for: those parameters of the class that its docstring does not describe itself.
_PARAMETERS = """
C : float, > 0, or None
    Weight of the losses against half the squared norm, ``1 / (2 lam)``. Numbers are learned in units of the standard
    deviation of each output (without outliers): ``C * targets_.spread`` is the C of scikit-learn's SVR. None: chosen
    along a path, see the notes.
epsilon : float, >= 0, or None
    Deviation that costs nothing, in units of y, or of several outputs in units of the standard deviation of each
    (without outliers). None: a quarter of the deviation of held-out errors (by their median size where outliers rule
    their squares), in standard deviations the same for all outputs.
lam : float, > 0, or None
    Regularization parameter, the weight of the squared norm against the sum of squared errors; ``alpha`` of
    scikit-learn's ``KernelRidge``. None: chosen along a path, see the notes.
loss : {"auto", "hinge", "least_squares"}
    What the kernel and the functions are learned with: one against the rest, the hinge loss of a class says little
    where no class has half of the probability, squares tell then which is the likeliest. "auto" is the hinge loss for
    two classes, or where C is given or rows are too few to choose; for more classes squares are tried from the C on
    that was best with the hinge loss, and taken where more held-out rows are right.
class_weight : None, "balanced" or dict
    Factors of the losses of the classes; "balanced": inversely proportional to their weights. 0 is as good as absent.
intercept : bool
    Whether the functions have an intercept.
degree : int, >= 0, or None
    Bound on the degree of the monomials of the kernel. Already degree 0 is universal. None: 1 for up to 31 features, 0
    for more, where P would have more than 64 rows.
z_degree : int >= 0 or None
    Bound on the degree in the variable of integration; `degree` when None. The default 0 keeps P at
    ``2 (n_features + 1)`` rows for degree 1; on the tables of the paper it is as accurate as None, and faster.
margin : float, > 0, or None
    Features are scaled to [0, 1]; the kernel integrates over the box ``[-margin, 1 + margin]^n_features``, as in the
    paper. There the part of the kernel that is no polynomial vanishes with the number of features. None: the box
    ``[-0.1, 1.1 + 0.7 r]^n_features``, r being the mean distance between rows in the sum of coordinates.
kernels : list, ndarray of shape (l, N, N), str or None
    Candidates: kernels, or ``(name, kernel, columns)`` with columns given as indices, a slice, a mask or, for a
    DataFrame, names. An array holds Gram matrices of N objects; X is then a column of their numbers, which goes
    through cross-validation as any table. With "precomputed", `fit` takes a stack (l, m, m) in place of X and
    `predict` one of shape (l, n_new, m). Other names are lists with bandwidths from the data. "all": Gaussians,
    Laplacians and polynomials on all standardized features and Gaussians on single ones
    (:func:`convexkernels.data_library`); "smooth", "smoothest": the Gaussians and polynomials on all features without
    the narrowest Gaussian or the three narrowest ones; "rough", "rougher": all on all features and one or two
    Gaussians that are narrower; "joint": all on all features; "few": three Gaussians on these. None: one of the first
    five is chosen by rows left out, together with the other parameters or at the values that are given for these, and
    one of the last two taken where `max_time` is too short for the matrices of others
    (`kernels_` says which). Candidates of these lists take a feature that is beyond the range of the training rows to
    be at its end.
normalize : {"variance", "mean", "trace", "cosine", "none"} or None
    On the training points, every kernel gets mean squared distance 1 from the mean of the images, mean diagonal 1,
    trace 1, unit diagonal, or stays as it is. None is the first of them, and without an intercept the second.
center : bool
    Whether the training points get mean 0 in the feature space of every kernel.
landmarks : int, "auto" or None
    What so many rows see of a kernel takes its place; "auto" is None to 10,000 rows, and beyond 100 for candidates and
    200 for tessellated kernels.
tol : float, > 0
    Relative duality gap at which learning stops.
solver : str or solver object
    ``"auto"``, ``"spectral-gradient"``, ``"interior-point"``, ``"frank-wolfe"``, ``"conic"`` or, for candidates,
    ``"reduced-gradient"`` (SimpleMKL); or an object with settings of its own.
memory_limit : float, optional
    Bytes the matrices may take, checked before they are allocated; the free memory by default. Matrices of candidates
    are kept in float32, or made anew when needed, where float64 does not fit.
max_cell_size : int, >= 2, optional
    Most training points of a cell; 2000 when `cells` has neither a radius nor a budget.
cells : Cells or None
    Kind of cells, overlap, and what their size is made of; None for ``Cells()``, overlapping Voronoi cells.
selection : CellSelection or None
    How the widths of features are learned, and lam and the width of the cells selected: for each by itself, with a
    `kernel` for all together. None for ``CellSelection()``.
estimator : estimator object, optional
    A clone of it learns in each cell, on scaled features and targets, instead of an SVM with a Gaussian kernel; it
    takes ``sample_weight`` where there are weights or repeated rows, and what is left of `max_time` as its own.
kernel : Kernel, optional
    A kernel on features as they are passed, such as the ``kernel_`` of an estimator that learned it on fewer rows,
    instead of Gaussians: in every cell, and for the cells themselves, which are those of its geometry.
random_state : int, RandomState or None
n_jobs : int, optional
    Processes that share the work, as joblib counts them.
architecture : int, nested list, Trees, tuple of those, or "paper"
    Nodes on the first layer: 1 is an inhomogeneous Gaussian kernel (depth 1), more are trees of depth 2; or the tree
    itself, to any depth, with features (not counting constant ones) as leaves: ``[[0, 1], [[2], [0, 2]]]``. ``Trees(8,
    subsets="random")`` says what the nodes see. A tuple is cross-validated; "paper" is ``(1, 4, 6, 8, 10, 12, 16)``.
    Columns of one column of categories share a weight in each node, unless ``Trees(tied=...)`` says what does, or the
    search is the published one.
criterion : "leave-one-out", int, Criterion or None
    What weights are compared by: every row by the function that has not seen it, in closed form (least squares, the
    default there); a number of folds; or 1, a random third, the default otherwise.
clip : bool
    Clip functions to the range of the targets (without outliers, where the loss is not that of squares), also where the
    criterion compares them with targets.
search : TreeSearch, optional
    Method, first lam, steps and restarts of the search.
warm_start : bool
    Continue from the weights of the last fit where the tree is the same.
layers : list of Kernel or Concatenations, optional
    K_1, ..., K_L, outermost first. All but the last have to be differentiable; kinks of Matern kernels of order 1 are
    smoothed. A :class:`convexkernels.Concatenations` says more: widths and matrix-valued kernels of the layers,
    repulsion of their images, penalties other than squared norms; its `mu` is replaced. They see features as they
    are. None: ``[Matern(2), Polynomial(1)]``, whose inner map is affine and has at most 50 coordinates, on standardized
    features times the factor of least leave-one-out risk of the outer kernel (``scaling_``), or a factor for each where
    that halves the risk.
cv : int, >= 2
    Number of folds.
setting : {"ASKL", "NSKL", "SKL", "NSK", "SK"} or SpectralSetting
    Table 1 of the paper: stationary kernels (S) or not (NS), frequencies learned (L) or left as drawn, ``|W|_F^2``;
    ASKL is not stationary, learned, with ``|W|_*`` and ``|phi(X)|_F^2``. A :class:`convexkernels.SpectralSetting` says
    more: ``SpectralSetting(measure="student-3")`` is ASKL with frequencies drawn from other than Gaussian measures.
n_components : int, >= 1
    D: features of the map phi (pairs of features of the exact map psi).
feature_map : {"phi", "psi", "printed"}
    As in :class:`Spectral`: one phase for each pair of frequencies, exact features, or (6) as printed, with two phases.
sigma : float, list of float or None
    Standard deviation (scale, of other measures) of the frequencies that are drawn. None: from the data, by the
    closed-form leave-one-out risk of ridge regression on random features, before anything is trained; frequencies that
    are learned are then drawn for features of unit spread, or with a width of its own for every feature, where that
    risk is less. Of a list the three with the least such risks are cross-validated, together with lam1 and lam2.
lam2 : float, list of float or None
    Weight of ``|phi(X)|_F^2`` (setting "ASKL"), summed over all rows. None: 0.001 / rows.
training : Training or None
    Batches, steps, epochs, rows that validate, folds, precision and device; None for ``Training()``.
normalize_y : bool
    Whether targets are centered and scaled to unit variance first. The paper leaves them alone.
n_restarts : int, >= 1, or Restarts
    Starts of the search: the identity and random inner maps. The best objective is kept. With more than 400 rows,
    weights of norms and starts are searched on 400 of them, and the best inner map is continued on all;
    ``convexkernels.Restarts(n_restarts, search_size, max_steps)`` has other numbers.
max_time : float, > 0, "auto" or None
    Seconds of the whole fit, of which choices may take half; then the best kernel so far is kept, with its certificate
    and one warning, also where it is a choice that ended early. "auto" is 55 seconds, so that a fit ends within a
    minute, and beyond 2,000 rows as much more as there are more rows. None for no limit.
checkpoint : path, optional
    A file in which `fit` writes down every few seconds what it has found. Where it is there, the next fit to the same
    rows, targets and weights goes on from it: points are measured again, so that it can cost time and no truth. Any
    other file, also a checkpoint of other rows, is refused and stays as it is.
verbose : bool
    Show the progress table.
"""

# Paragraphs by the names that stand for them in braces.
_SHARED = {
    **CONVEX_WORDS,
    **SPECTRAL_WORDS,
    **CELL_WORDS,
    "a_selection": """
Its ``chosen`` has the values by name, ``curve`` is the table they were chosen from, and
    :class:`~convexkernels.plotting.SelectionDisplay` draws it.
""",
    "classes": "classes_ : ndarray of shape (n_classes,)",
    "columns": """
columns_ : Columns or None
    How categories and missing values became numbers; None where the table held numbers only.
scaling_ : Scaling
    How features are scaled, if at all.
""",
    "encodings": """
{columns}
targets_ : Targets
    How targets are encoded.
""",
    "names": """
feature_relevance_ : ndarray of shape (n_features,)
    Mean change of the learned functions at training rows when a feature moves by half its standard deviation, or half
    of it when a category, or a feature of two values, becomes that of another row; as shares that sum to 1; computed
    when it is first asked for.
feature_labels_ : list of str
    What these features are called: columns of a data frame by their names, categories as ``column=category``.
effective_rank_ : float
    ``trace(K)^2 / |K|_F^2`` of the learned kernel on at most 1,000 training rows: how many dimensions it makes use of.
support_, support_coefficients_ : ndarray of shape (n_support,), and (n_support,) or (n_support, n_outputs)
    Rows of the training table that prediction uses, ascending, and their coefficients in the learned functions, in
    units of the targets; of equal rows one stands for all. In cells those of the cell that predicts at the row;
    of several functions their sum, each with its share; of votes a column for each pair of classes. Functions of
    spectral features have none.
loo_predictions_ : ndarray of shape (n_rows,) or (n_rows, n_outputs)
    Of least squares, for every row of positive weight in the order of the table: the prediction of the function that
    is trained without it, with the learned kernel and its regularization parameter; computed when first asked for.
    Exact, in closed form, in every cell by itself; the kernel has seen the row. Where functions of folds predict, or
    stand beside others in a stack, it is what they say on the rows held out. Hierarchical estimators and cells leave
    out equal rows together, and a read-out has seen the values at all rows. Other losses, Dask tables and `partial_fit`
    have none: `hasattr` says so.
loo_score_ : float
    Accuracy or R^2 of these predictions, rows counting by their weights; the mean over outputs.
read_out_ : ReadOut or None
    Of classifiers of three classes or more: a linear map ``F A + c`` of the values of all functions whose largest entry
    decides, where rows left out say that the largest value is right at clearly fewer of them. None where that decides;
    Dask tables, later calls of `partial_fit`, cells of other estimators and fits that leave no time for it have none.
n_features_in_ : int
feature_names_in_ : ndarray of shape (n_features_in_,)
    When the features have names that are all text.
""",
    "tube": """
epsilon_ : float, or ndarray of shape (n_outputs,)
    The deviation that cost nothing, in units of y, of several outputs for each (there a parameter counts in units of
    the spread of each). Other losses have none.
""",
    # hierarchical kernels
    "tree_learned": """
kernel_ : Kernel
    The kernel of the first search on features as they were passed.
tree_ : HierarchicalGaussian
    The same on features scaled to [-1, 1].
solution_, solutions_ : Solution, list of them
    Of the first search and of all; ``theta`` is log w of every weight, children before parents, and log lam.
function_ : TrainedFunction
    What predicts on scaled features: a `DecisionFunction` of the learned kernel, a mean of several (with `shares`,
    see ``selection``), or a vote.
plan_ : Plan
    How the function was trained on all rows, and why; ``plan_.certificate`` is the worst duality gap of its cells.
choice_ : ArchitectureChoice or None
lam_ : float
    Weight of ``|f|^2`` beside the sum of the losses in the function of the first search, as it was trained on all rows.
    Weights of rows in memory whose mean is below 1 count in units of it.
selection_ : Selection
    How architectures compare, where there are several; else the risks along lam, for the kernel of the first search. Of
    a search these are computed when they are first asked for, and lam need not be where they are least: it moves with
    the weights, until the steps of the search are over. {a_selection}
architecture_ : object
    The architecture that was used.
{encodings}
n_iter_ : int
{names}
""",
    "tree_cost": """
A step of the search costs O(size^3); the final function of up to 10,000 rows O(m^3) time and three m x m matrices.
Least squares of up to 50,000 rows are solved by products with one matrix, O(m^2) a step. Other and longer tables are
learned from in cells, Voronoi cells in the geometry of the learned kernel: O(m) time. `plan_` says which.
``TreeSelection(training=AllRows(...))`` decides otherwise, and has a `memory_limit`. A search is not convex: its end is
stationary at best. For least squares up to 4,000 different points have one row each, with mean targets.
""",
    # concatenations
    "weights_of_norms": """
lam, mu : float, list of float or None
    Weights of ``|f_1|^2`` and of ``sum_l |f_l|^2``. Lists are cross-validated, which may take half of `max_time`; of
    the pairs the one with the least held-out loss is taken (the paper says "smallest function value", which would
    always be the smallest pair). None is three values, factors of 8 (lam) and 16 (mu) apart, around those that suit the
    plainest inner map: the lam of the least leave-one-out risk, and the mu with which neither wider nor narrower
    images gain. The paper has ``2^(1 - 2t)``, t = 1, ..., 10.
tol : float, > 0
    Relative gradient at which the answer counts as stationary.
""",
    "concatenated_chosen": """
lam_, mu_ : float
    The weights that were used. For functions of all rows least squares choose a
    lam that was not given anew, around that of the inner maps.
all_rows_ : Solution or None
    Where inner maps have seen some rows only: the outermost functions, learned from the images of all rows, with their
    duality gap. None where these are the functions of `solution_`.
selection_ : Selection or None
    Validation risks of all pairs, when there was a choice. {a_selection}
""",
    "concatenated_fitted": """
kernel_ : Concatenated
    The learned deep kernel, usable in any kernel method.
solution_ : Solution
    With the stationarity certificate; the problem is not convex, so nothing says that no better answer exists. Its
    ``function`` has the coefficients of the outermost layer.
{encodings}
n_iter_ : int
    Steps of all starts together.
{names}
""",
    "inner_map_of_all_rows": """
Of more than 2,000 rows (fewer where `max_time` is below 6 s, of support vector losses 48 s for each output) as many,
spread over the targets, teach the inner maps of least squares and support vector losses, and the outermost functions
learn from the images of all rows, which is a convex problem (`all_rows_`);
:class:`convexkernels.OuterLearning` with :class:`convexkernels.Concatenations` learns everything from all rows.

The inner map is fitted to the targets of the rows it sees. Intervals and probabilities come from rows held out while
lam and mu were chosen, where there are some, by functions whose inner maps have not seen them. With lam and mu given
only the outermost functions leave rows out, and where they have learned from all rows of a long table: intervals are
then too short, and probabilities too sure. ``loo_score_`` is above the score on new rows in any case, for the same
reason.
""",
}


def documented(cls: Estimator) -> Estimator:
    """Put the shared words in the place of their names in braces, in the docstring of a class.

    A line ``{Notes: first, second}`` stands for a section of several. Parameters come in the order of the classes that
    define them, the class itself first.
    """
    text = re.sub(r"\}\n(?=\{[A-Z])", "}\n\n", inspect.cleandoc(cls.__doc__ or ""))
    text = re.sub(r"^\{([A-Z]\w+): ([\w, ]+)\}$", _section, text, flags=re.MULTILINE)
    while names := set(re.findall(r"\{([a-z]\w*)\}", text, flags=re.IGNORECASE)):
        for name in sorted(names, key=lambda name: name == "parameters"):  # last: it stands for what is not said
            words = _parameters(cls, text) if name == "parameters" else _SHARED[name]
            text = text.replace(f"{{{name}}}", words.strip())
    cls.__doc__ = text
    return cls


def _section(found: re.Match[str]) -> str:
    title, names = found[1], found[2].split(", ")
    return "\n".join([title, "-" * len(title), *(f"{{{name}}}" for name in names)])


def _parameters(cls: type, text: str) -> str:
    """The shared entries of the parameters that a docstring does not describe."""
    shared, described = _by_name(_PARAMETERS), _by_name(text)
    names = dict.fromkeys(name for base in cls.__mro__ for name in inspect.get_annotations(base))
    missing = [name for name in names if name in inspect.signature(cls).parameters and name not in described]
    return "".join(dict.fromkeys(shared[name] for name in missing))


def _by_name(text: str) -> dict[str, str]:
    """Entries of numpydoc, which begin with ``name :`` or ``name, name :``, by each of their names."""
    entries = re.split(r"^(?=\w[\w, ]* :)", text, flags=re.MULTILINE)
    return {name: entry for entry in entries for name in entry.split(" :")[0].split(", ")}
