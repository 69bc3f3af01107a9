"""A failing case as a script that needs the library alone."""

PROBLEM = '''"""{title}

{faults}
"""

import numpy as np

import convexkernels as ck

X = {X}
y = {y}
weights = {weights}
loss = {loss}
problem = {statement}
for name in {solvers!r}:
    try:
        solution = problem.solve({how}, tol={tol!r}, max_time=8.0)
        print(name, solution.status.name, solution.certificate)
    except ck.InvalidInputError as error:
        print(name, error)
'''

LEARNING = "ck.KernelLearning({case.family}, loss, X, y, sample_weight=weights, dtype={case.dtype!r})"
FIXED = "ck.FixedKernel({case.kernel}, loss, X, y, sample_weight=weights)"

ESTIMATOR = '''"""{title}

{faults}
"""

import numpy as np

from convexkernels.estimators import ESTIMATORS

X = {X}
y = {y}
weights = {weights}
model = ESTIMATORS[{estimator!r}][1]().set_params(max_time={max_time!r}, **{options!r})
model.fit(X, y, sample_weight=weights)
print(model.solution_.status.name, model.solution_.certificate, model.predict(X)[:5])
'''


def write_script(case, verdict, folder):
    """Write the case with its data in full."""
    statement = FIXED if case.kernel else LEARNING
    text = (ESTIMATOR if case.kind == "estimator" else PROBLEM).format(
        title=f"{str(case).replace(chr(34), chr(39))}.",
        faults="\n".join(f"{kind}: {sentence}" for kind, sentence in verdict.faults).replace('"""', "'''"),
        X=literal(case.X),
        y=literal(case.y),
        weights=literal(case.weights),
        loss=case.loss,
        statement=statement.format(case=case),
        how="lams=[loss.lam]" if case.kernel else "name",
        options=case.options,
        solvers=case.solvers,
        tol=case.tol,
        estimator=case.estimator,
        max_time=case.max_time,
    )
    path = folder / f"case_{case.seed}_{case.index}.py"
    path.write_text(text)
    return path


def literal(array):
    if array is None:
        return "None"
    return "np.array(" + repr(array.tolist()).replace("nan", "np.nan").replace("inf", "np.inf") + ")"
