"""The paragraphs that the docstrings of spectral estimators share."""

SPECTRAL_WORDS = {
    "spectral": """
kernel_ : Spectral
    The learned kernel, a valid ``kernel=`` of scikit-learn's SVC; ``kernel_.transform`` are its features, as
    :meth:`transform`. Where there are categories or missing values an `OfTables` of it.
initial_kernel_ : Spectral
    The kernel before anything was learned.
solution_ : Solution
    With bounds on the optimum where the frequencies are fixed, else with a stationarity certificate: the problem is not
    convex, and nothing says that no better answer exists.
history_ : tuple of Epoch
    Objective and validation score after every epoch.
sigma_, lam1_, lam2_ : float
    What was used; sigma for features that are multiplied by `feature_factors_`.
feature_factors_ : ndarray of shape (n_features_in_,), or of the columns of ``columns_.encoded(X)``
    Of features for whose frequencies sigma was chosen: one over the spread, or learned; 1 where neither had clearly
    less risk, sigma was given, or frequencies are not learned.
width_ : Width or None
    Leave-one-out risks of the sigmas, when there was a choice.
selection_ : Selection or None
    The cross-validation of lists: ``candidates`` (sigma, lam1, lam2), their ``scores`` on the folds, and the
    ``n_epochs`` after which they were given up; else ``width_``. {a_selection}
n_iter_ : int
    Steps.
{encodings}
{names}
""",
    "spectral_notes": """
Where sigma is given, or frequencies are not learned, put a StandardScaler in front. Tensors of PyTorch are taken as
they are, on any device, and then predictions and features are tensors, too; without them PyTorch is not needed. The
learned function is the best one on the validation rows (the last one, when it is not worse by more than chance); with
squared loss and a sigma that is not given the frequencies that were drawn stay, unless trained ones have no more than
0.9 of their error there.
`max_time` limits selection, cross-validation and training together; one exact solve for W may follow.
""",
}
