"""The paragraphs that the docstrings of estimators of convex kernel learning share."""

CONVEX_WORDS = {
    "tube_loss": """
loss : {"auto", "epsilon_insensitive", "least_squares"}
    What the kernel and the functions are learned with. Functions of the epsilon-insensitive loss are near the median,
    and where targets are skewed that is not the mean. "auto" is that loss where C or epsilon is given; otherwise
    squares are tried, at values near the C that was best with it, where errors at held-out rows have a mean that is two
    standard errors from 0, or an R^2 below 0, and taken where they have the better R^2 at the values of the path
    (between these only the loss that is taken is tried). Rows whose targets are outliers count for neither: where they
    may be the tail of the mean that is asked for, name "least_squares".
""",
    "chosen_cost": """
C_ : float
    The value that was given or chosen.
loss_ : {"hinge", "least_squares"}
    The loss that the functions minimize.
{selection}
""",
    "chosen_tube": """
C_ : float
    The value that was given or chosen.
loss_ : {"epsilon_insensitive", "least_squares"}
    The loss that the functions minimize.
{tube}
{selection}
""",
    "chosen_lam": """
lam_ : float
    The value that was given or chosen.
{selection}
""",
    "selection": """
selection_ : Selection or None
    The values that were tried and their held-out scores, when there was a choice. {a_selection}
""",
    "choice": """
Kernels are on a scale on which C = 1 is a soft margin whatever the number of features: the images of the training
points under any kernel of the family have a mean squared distance of at most 1 from their mean, or from 0 without an
intercept. A regularization parameter that is not given is chosen by the accuracy or the R^2 on rows that neither the
kernel nor the functions have seen (where no value tells more labels than the most frequent one does, by the likelihood
of probabilities), on a path that begins with the best value for squares, which leave out row by row in closed form, for
one kernel that is learned from all rows, or from 400. There are three folds, of which two suffice from 600 rows on and
one from some 1066 on, because they hold 400 rows out. Of longer tables two thirds of 1000 rows are learned from, and up
to 2000 others scored on. Functions of numbers with squared loss leave each of all rows, or of 1000, out in closed form
on the path, too. Each value starts from the nearest one, and the path ends where scores gain little, or where functions
of a support vector machine for numbers err by no more than a thousandth of the deviation of the targets. Choosing costs
one to five times the fit, sometimes more where that takes hundredths of a second.
""",
    "learned": """
kernel_ : Kernel
    The learned kernel on features as they were passed to `fit`, scaling and normalization included: a valid ``kernel=``
    of :class:`sklearn.svm.SVC`, which takes categories and missing values as ``columns_.encoded(X)``.
solution_ : Solution
    With the certificate, the history and the parameter ``theta`` of the kernel. Its problem is stated on the scaled
    rows, sorted, with equal rows merged.
{encodings}
support_vectors_ : ndarray of shape (n_support, n_features_in_)
    The rows `support_`.
n_iter_ : int
    Number of steps of the solver, at least 1.
{names}
""",
    "one_kernel": """
With more than two classes there is one function per class, against the rest, and with a matrix y one per column;
all of them share one kernel, and the sum of their objectives is minimized, which stays convex.

{choice}
""",
    "candidate_weights": """
weights_ : ndarray of shape (l,)
    Weights of the candidates, >= 0, with sum 1: one set for all classes or outputs.
kernel_names_ : list of str
kernels_ : str, or what was passed
    The name of the list of candidates that was given or chosen: with ``kernels=kernels_`` and the other values that a
    fit has chosen (`C_` or `lam_`, `loss_`, `epsilon_`, which can be given for one output), another one to the same
    rows finds the same functions, as far as `tol` asks for. ``selection_.paths`` has the scores that lists were
    compared by.
""",
    "candidates": """
Rakotomamonjy, Bach, Canu and Grandvalet (JMLR 2008); Colbert and Peet (JMLR 2020), (6).

{one_kernel} Lists of candidates that are left open
are compared by ridge regressions that leave out row by row, at all values or the one that is given, and a rougher list
has to be better by a twentieth.
The optimum is certified by its duality gap, whatever the solver.
""",
    "tessellated": """
{one_kernel}

Features are scaled to [0, 1] by their range in the training table; constant ones are left out. A point to predict
that lies outside the box is moved to its nearest point. The learned functions are polynomials between the lines
through the coordinates of the support vectors.

A fitted model pickles, and goes through ``skops.io.dump`` and ``load``; the m x m matrices are left out and made
again when they are needed. What a reader is asked to trust (``skops.io.get_untrusted_types`` lists it) are classes
of this package and ``numpy.dtype``.

Cost: O(m^2) memory for m rows; a step takes O(m^2 n_features) operations with ``z_degree=0``, otherwise
O(m^2 n_features^2) for degree 1, besides solving for the functions.
""",
}
