"""TessellatedSVC: scikit-learn's contract, and the equivalences that a kernel machine with a learned kernel obeys."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import convexkernels as ck


@parametrize_with_checks([ck.TessellatedSVC()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
