"""The claim checker: every claim settles as expected, every control is refuted, and a surprise is reported."""

import ast
import dataclasses
import fnmatch
import inspect
import json
import subprocess
import sys
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import nquad

import convexkernels as ck
from convexkernels.checking import Verdict
from convexkernels.families import FAMILIES
from convexkernels.families.curved import CURVED
from convexkernels.kernels import KERNELS
from convexkernels.losses import LOSSES
from proofs_check import __main__ as command
from proofs_check import mutation
from proofs_check.claim import HOLDS, REFUTED, Claim, settle
from proofs_check.hierarchical.direct import complex_step, evaluate, random_tree, weights_of
from proofs_check.report import as_json, as_markdown
from proofs_check.table import PAPERS, TITLES, claims
from proofs_check.tessellated import direct
from proofs_check.tessellated import sets as kernel_sets
from proofs_check.tessellated.optimal_kernel import bracket_17, bracket_for_matrix

ROOT = Path(__file__).resolve().parents[1]
ALL = claims()
REDUCED = 2


# Claims that do not run the library, and why: every other claim has to.
WITHOUT_THE_LIBRARY = {
    "theorem-8-as-printed-with-10-as-printed": "the library has no kernel whose second block of N is on {x >= z}",
}


@pytest.mark.parametrize("claim", ALL, ids=[f"{claim.paper}-{claim.name}" for claim in ALL])
def test_claim_settles_as_expected_and_runs_the_library_and_its_control_is_refuted(claim):
    watched, executed = watching(claim)
    finding = settle(watched, seed=11, trials=REDUCED)
    assert finding.surprises == [], f"{finding.verdict}; control {finding.control}"
    assert bool(executed) == (claim.name not in WITHOUT_THE_LIBRARY), executed


def watching(claim):
    """The claim, and a list that takes in the first function of the library that its check executes, if any.

    Only what the claim itself is measured with counts, not what its control is measured with.
    """
    executed = []

    def measure(subject, rng):
        if executed or subject is not claim.subject:
            return claim.measure(subject, rng)
        before = sys.gettrace()

        def notice(frame, event, argument):
            if is_of_the_library(frame):
                executed.append(frame.f_code.co_qualname)
                sys.settrace(before)

        sys.settrace(notice)
        try:
            return claim.measure(subject, rng)
        finally:
            sys.settrace(before)

    return dataclasses.replace(claim, measure=measure), executed


# What claims are measured and refused with, whatever they are about.
VOCABULARY = ("__init__.py", "arrays.py", "checking", "exceptions.py", "validation.py")


def is_of_the_library(frame: FrameType) -> bool:
    """Whether a function with formulas of the library is executed: not a module or a class that is being imported."""
    return has_formulas(frame.f_code) and not is_being_imported(frame)


def has_formulas(code: CodeType) -> bool:
    path, library = Path(code.co_filename), ROOT / "convexkernels"
    return path.is_relative_to(library) and path.relative_to(library).parts[0] not in VOCABULARY


def is_being_imported(frame: FrameType | None) -> bool:
    while frame is not None and has_formulas(frame.f_code):
        if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return True
        frame = frame.f_back
    return False


def test_what_a_claim_runs_of_the_library_is_noticed():
    def measured_with(run):
        def measure(subject, rng):
            run(subject)
            return coin(subject, rng)

        watched, executed = watching(coin_claim(measure=measure))
        assert settle(watched, 0).surprises == []
        return executed

    X = np.zeros((2, 1))
    assert measured_with(lambda subject: None) == []
    assert measured_with(lambda subject: ck.check_psd(lambda U, V: np.ones((len(U), len(V))), X)) == []
    assert measured_with(lambda subject: subject or ck.Gaussian(1.0)(X)) == []  # the control alone
    assert measured_with(lambda subject: ck.Gaussian(1.0)(X)) == ["Gaussian.__init__"]


def test_every_exception_is_a_claim_and_has_a_reason():
    assert WITHOUT_THE_LIBRARY.keys() <= {claim.name for claim in ALL}
    assert all(WITHOUT_THE_LIBRARY.values())


# ---- the table


def test_every_claim_has_a_name_a_sentence_and_a_place():
    names = [claim.name for claim in ALL]
    assert len(set(names)) == len(names)
    assert len([claim for claim in ALL if claim.paper != "library"]) >= 30
    assert list(TITLES) == list(PAPERS)
    for paper, group in PAPERS.items():
        assert group
        for claim in group:
            assert claim.paper == paper
            assert claim.name == claim.name.lower().replace(" ", "-").replace("_", "-")
            assert claim.statement.endswith(".")
            assert claim.number
            assert claim.subject is not claim.impostor


def test_every_check_that_refutes_a_printed_statement_also_lets_something_pass():
    """Otherwise the check might refute everything."""
    passing = {claim.measure for claim in ALL if claim.expected is HOLDS}
    for claim in ALL:
        assert claim.measure in passing, claim.name
        assert claim.name.endswith(("as-printed", "with-10-as-printed")) == (claim.expected is REFUTED)


def test_every_exported_kernel_has_a_claim():
    found = {claim.name for claim in PAPERS["library"]}
    for kind in ("positive", "values"):
        assert found >= {f"{kind}-{name.replace('_', '-')}" for name in KERNELS}
    # A ready-made matrix is a kernel on row numbers only, and its positivity is its user's.
    exported = {kind for kind in map(ck.__getattr__, ck.__all__[1:]) if isinstance(kind, type)}
    kernels = {kind for kind in exported if issubclass(kind, ck.Kernel)} - {ck.Kernel, ck.Precomputed}
    assert kernels <= {type(make(2)) for make in KERNELS.values()}


def test_every_family_and_loss_has_a_claim():
    found = {claim.name for claim in PAPERS["library"]}
    assert found >= {f"fits-{name.replace('_', '-')}" for name in LOSSES}
    assert found >= {f"slope-{name.replace('_', '-')}" for name in CURVED}
    assert found >= {f"duality-{name.replace('_', '-')}" for name in FAMILIES}


def test_generated_table_lists_the_claims():
    """Kernels join the library's section by their own table; there the generated file may lag, not lie."""
    lines = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8").splitlines()
    listed = [line.split("`")[1] for line in lines if line.startswith("| `")]
    of_papers = [claim.name for claim in ALL if claim.paper != "library"]
    of_library = [claim.name for claim in PAPERS["library"]]
    assert listed[: len(of_papers)] == of_papers, "run python -m proofs_check --markdown docs/claims.md --force"
    assert set(listed[len(of_papers) :]) <= set(of_library), "run the same command"


# ---- the table of changes


@pytest.mark.parametrize("mutant", mutation.mutants(), ids=lambda mutant: mutant.label)
def test_every_change_matches_the_library_once(mutant):
    assert mutation.occurrences(mutant) == 1
    assert mutant.old != mutant.new
    for pattern in mutant.claims:
        assert fnmatch.filter([claim.name for claim in ALL], pattern), f"no claim is called {pattern}"


@pytest.mark.parametrize("name", [mutant.test for mutant in mutation.mutants() if mutant.test])
def test_the_test_that_notices_a_change_exists(name):
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    assert function in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def test_the_record_is_of_the_changes_of_the_table():
    labels = {mutant.label for mutant in mutation.mutants()}
    known = set(mutation.recorded(ROOT / "benchmarks" / "results" / "mutations.jsonl"))
    assert known == labels, "run what is missing with --mutate --record, and remove what the table does not have"


def test_there_are_enough_changes_and_none_twice():
    labels = [mutant.label for mutant in mutation.mutants()]
    assert len(labels) >= 100
    assert len(set(labels)) == len(labels)


def test_compiled_loops_depend_on_no_other_file():
    """Compiled code is kept where the file with the loops is not changed: what it was made of must be in that file."""
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "convexkernels").rglob("*.py")}
    with_loops = [path for path, source in sources.items() if mutation.has_loops(source) and path.stem != "compiled"]
    assert len(with_loops) >= 3
    for path in with_loops:
        tree = ast.parse(sources[path])
        compiled = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
        compiled = [node.body for node in compiled if mutation.has_loops(ast.unparse(node))]
        statements = [statement for body in compiled for statement in body]
        assert statements, path
        used = {part.id for node in statements for part in ast.walk(node) if isinstance(part, ast.Name)}
        imported = {
            name.asname or name.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("convexkernels")
            for name in node.names
        }
        assert not used & imported, path


def test_change_is_made_in_a_copy_and_noticed(tmp_path):
    mutant = mutation.mutants("K *= -rate")[0]
    before = (ROOT / "convexkernels" / mutant.path).read_bytes()
    first = next(claim for claim in mutation.ordered(ALL, mutant.claims))
    assert first.name == "values-gaussian"
    result = next(iter(mutation.look([mutant], ROOT, tmp_path)))
    assert result["noticed"] == "values-gaussian"
    assert result["state"] == mutant.state()
    assert (ROOT / "convexkernels" / mutant.path).read_bytes() == before


def test_what_no_claim_notices_is_left_to_the_test_of_the_table(tmp_path, monkeypatch):
    """The control: a test that the change does not concern passes, and one that cannot run says nothing."""
    mutant = mutation.mutants("counts, table.size")[0]
    monkeypatch.setattr(mutation._Run, "_noticed", lambda run: ("", ""))
    names = ["is_the_share_of_stumps_that_two_points_pass", "other_tables_are_refused", "there_is_no_such_test"]
    tests = [f"kernels/test_stumps.py::test_{name}" for name in names]
    chosen = [dataclasses.replace(mutant, test=test) for test in tests]
    assert [result["test"] for result in mutation.look(chosen, ROOT, tmp_path)] == [tests[0], "", ""]


def test_changes_below_the_bars_make_the_exit_code_one(tmp_path, capsys):
    record = tmp_path / "record.jsonl"
    chosen = mutation.mutants("solvers/convex")
    left = next(mutant for mutant in chosen if mutant.test)

    def summary(**changes):
        same = {"noticed": "x", "said": "", "test": "", "seconds": 1.0}
        rows = [same | {"mutant": m.label, "state": m.state()} for m in chosen]
        rows[chosen.index(left)] |= changes
        record.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return command.main(["--mutate", "--only", "solvers/convex", "--record", str(record)]), capsys.readouterr().out

    assert len(chosen) < 20  # one that is left to a test is below the bar of the claims
    code, out = summary(noticed="", test=left.test)
    assert code == 1
    assert f"no claim, {left.test}: {left.label}" in out
    assert f"{len(chosen) - 1} noticed by claims alone, {len(chosen)} by claims and tests" in out
    assert summary()[0] == 0
    assert "earlier state" not in summary()[1]
    assert "1 of them were looked at in an earlier state of their file" in summary(state="")[1]


def test_results_of_an_earlier_state_are_looked_at_again_where_asked(tmp_path, capsys, monkeypatch):
    record, chosen = tmp_path / "record.jsonl", mutation.mutants("kernels/gaussian.py")
    rows = [{"mutant": m.label, "noticed": "x", "seconds": 1.0, "state": m.state()} for m in chosen]
    rows[1]["state"] = "another"
    record.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    looked = []
    monkeypatch.setattr(mutation, "_Run", lambda *arguments: looked.append("base") or base_that_passes())
    monkeypatch.setattr(mutation, "look", lambda left, *arguments: looked.extend(left) or [])
    arguments = ["--mutate", "--only", "kernels/gaussian.py", "--record", str(record)]
    assert command.main(arguments) == 0
    assert looked == []
    command.main([*arguments, "--again"])
    assert looked == ["base", chosen[1]]


def base_that_passes():
    return SimpleNamespace(wait=lambda seconds: True, process=SimpleNamespace(exitcode=0), folder=None)


def test_a_change_that_nothing_notices_makes_the_exit_code_one(capsys):
    results = [{"mutant": "it", "noticed": "x" * (k > 0), "seconds": 1.0} for k in range(100)]
    assert mutation._summary(results) == 1
    assert "no claim, SURVIVED: it" in capsys.readouterr().out
    results[0]["test"] = "its test"
    assert mutation._summary(results) == 0


def test_stop_ends_at_the_first_surprise(capsys, monkeypatch):
    monkeypatch.setitem(PAPERS, "library", [coin_claim(expected=REFUTED), coin_claim(name="other")])
    assert command.main(["--paper", "library", "--stop", "--first", "oth*"]) == 1
    out = capsys.readouterr().out
    assert "SURPRISE: expected 'refuted'" in out
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["other", "coin"]
    assert command.main(["--paper", "library", "--stop"]) == 1
    assert "other" not in capsys.readouterr().out


# ---- what a claim does


def coin(subject, rng):
    value = float(rng.random())
    return Verdict(value if subject else 2.0 + value, 1.0, 1, {"value": value})


def coin_claim(**changes):
    fields = {"name": "coin", "statement": "A coin.", "paper": "library", "number": "1", "measure": coin}
    fields |= {"subject": True, "impostor": False, "trials": 5}
    return Claim(**(fields | changes))


def test_claim_keeps_the_worst_of_its_trials():
    verdict = coin_claim().check(np.random.default_rng(0), 50)
    values = [float(child.random()) for child in np.random.default_rng(0).spawn(50)]
    assert verdict.trials == 50
    assert verdict.worst_violation == verdict.witness["value"] == max(values)


def test_surprises_are_named():
    assert settle(coin_claim(), 0).surprises == []
    assert settle(coin_claim(expected=REFUTED), 0).surprises == ["expected 'refuted', found 'holds numerically'"]
    assert "the control was not refuted" in settle(coin_claim(impostor=True), 0).surprises[0]


def test_error_settles_nothing_and_stops_no_other_claim(capsys, monkeypatch, tmp_path):
    def broken(subject, rng):
        raise ZeroDivisionError("no such number")

    claims_of_two = [coin_claim(measure=broken, expected=REFUTED), coin_claim(name="other")]
    monkeypatch.setitem(PAPERS, "library", claims_of_two)
    target = tmp_path / "table.md"
    assert command.main(["--paper", "library", "--markdown", str(target)]) == 1
    out = capsys.readouterr().out
    assert out.count("SURPRISE: not settled, stopped by ZeroDivisionError('no such number')") == 2
    assert "2 claims: 1 hold numerically, 0 refuted; 1 not settled; 1 surprise;" in out
    assert "1 could not be settled because of an error" in target.read_text(encoding="utf-8")
    assert "**not settled**" in target.read_text(encoding="utf-8")


def test_hunt_for_a_counterexample_goes_on_up_to_the_claims_own_number_of_trials():
    def rarely_false(subject, rng):
        seen.append(1)
        return Verdict(float(len(seen) == 4), 0.0, 1, {})

    seen = []
    claim = coin_claim(measure=rarely_false, expected=REFUTED)
    assert not claim.check(np.random.default_rng(0), 1).holds
    assert len(seen) == 4


def test_claim_meets_the_same_cases_alone_and_in_the_suite():
    first, second = settle(ALL[0], 3, 2), settle(ALL[0], 3, 2)
    assert first.verdict.worst_violation == second.verdict.worst_violation
    for key, value in first.verdict.witness.items():
        np.testing.assert_array_equal(value, second.verdict.witness[key])
    other = settle(ALL[0], 4, 2)
    assert not np.array_equal(first.verdict.witness["P"], other.verdict.witness["P"])


# ---- the oracles behind the claims


@pytest.mark.parametrize(("n", "degree"), [(1, 0), (1, 2), (2, 1)])
@pytest.mark.parametrize("block", [direct.block_complement, direct.block_printed])
def test_tilewise_gauss_rule_agrees_with_adaptive_quadrature(n, degree, block):
    rng = np.random.default_rng(5)
    case = direct.random_case(rng, n, degree)
    x, y = rng.uniform(case.a, case.b, (2, n))

    def integrand(*z):
        point = np.array([z])
        left, right = (direct.features(point, u, degree, block)[0] for u in (x, y))
        return float(left @ case.P @ right)

    options = [{"points": sorted((x[i], y[i])), "epsabs": 1e-9} for i in range(n)]
    value, error = nquad(integrand, list(zip(case.a, case.b, strict=True)), opts=options)
    exact = direct.integral(case, x, y, block)
    assert abs(exact.value - value) <= error + exact.error
    assert error < 1e-6


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_complex_step_agrees_with_central_differences(depth):
    rng = np.random.default_rng(depth)
    tree = random_tree(rng, depth, 4, gamma=0.8)
    x, z = rng.uniform(-1.0, 1.0, (2, 4))
    for owner, i in weights_of(tree):
        slope, kept, h = complex_step(tree, owner, i, x, z), owner.w[i], 1e-5
        owner.w[i] = kept + h
        above = evaluate(tree, x, z)
        owner.w[i] = kept - h
        below = evaluate(tree, x, z)
        owner.w[i] = kept
        assert slope == pytest.approx((above - below) / (2 * h), abs=1e-8)


@pytest.mark.parametrize("C", [0.05, 0.2, 0.5, 2.0])
def test_bounds_of_the_optimal_kernel_program_are_tight_and_in_order(C):
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    bound = bracket_17(y, C, 2.0)
    assert bound.lower <= bound.upper + 1e-14
    assert bound.upper - bound.lower < 1e-6 * bound.upper
    fixed = bracket_for_matrix(np.eye(5), y, C, 2.0)
    assert fixed.lower <= fixed.upper + 1e-14
    assert fixed.lower > bound.upper


def half(bracket):
    return 0.5 * bracket.lower, 0.5 * bracket.upper


def test_bounds_over_kernel_sets_are_tight_in_order_and_nested():
    """More kernels can only lower the optimum: one of them, their simplex, their span, all matrices."""
    rng = np.random.default_rng(4)
    X, y, C = rng.random((9, 2)), np.array([1.0, 1, -1, 1, -1, -1, 1, 1, -1]), 3.0
    stack = np.array([ck.Gaussian(rate)(X) for rate in (30.0, 6.0, 2.0)])
    one = half(bracket_for_matrix(stack[0], y, C, 2.0))
    simplex = kernel_sets.bracket_simplex(stack, y, C)
    span = kernel_sets.bracket_span(stack, y, C, 9.0)
    everything = half(bracket_17(y, C, 2.0))
    for lower, upper in (one, simplex, span, everything):
        assert 0.0 < lower <= upper + 1e-13
        assert upper - lower < 1e-5 * upper
    assert one[1] >= simplex[0]
    assert simplex[0] > span[1]
    assert span[0] > everything[1]


def test_largest_quadratic_form_bounds_every_member_of_the_span():
    rng = np.random.default_rng(5)
    X, w = rng.random((7, 2)), rng.standard_normal(5)
    stack = np.array([ck.Gaussian(rate)(X) for rate in (30.0, 6.0, 1.0)])
    bound = kernel_sets.largest_quadratic_form(stack, w, 7.0)
    best = -np.inf
    for weights in rng.standard_normal((4000, 3)):
        K = np.tensordot(weights / weights.sum(), stack, axes=1)
        if np.linalg.eigvalsh(K)[0] >= 0.0:
            best = max(best, w @ K[:5, :5] @ w)
    assert 0.9 * bound < best <= bound


# ---- the command


def test_command_prints_a_line_per_claim_and_exits_zero(capsys):
    assert command.main(["--paper", "localized", "--trials", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:-2]] == [claim.name for claim in PAPERS["localized"]]
    assert lines[-1].startswith(f"{len(PAPERS['localized'])} claims: {len(PAPERS['localized'])} hold numerically")


def test_surprise_makes_the_exit_code_one(capsys, monkeypatch):
    broken = dataclasses.replace(PAPERS["localized"][0], expected=REFUTED)
    monkeypatch.setitem(PAPERS, "localized", [broken])
    assert command.main(["--paper", "localized", "--trials", "1"]) == 1
    out = capsys.readouterr().out
    assert "SURPRISE: expected 'refuted', found 'holds numerically'" in out
    assert "1 surprise;" in out


def test_control_without_power_makes_the_exit_code_one(capsys, monkeypatch):
    claim = PAPERS["localized"][0]
    monkeypatch.setitem(PAPERS, "localized", [dataclasses.replace(claim, impostor=claim.subject)])
    assert command.main(["--paper", "localized"]) == 1
    assert "the control was not refuted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--paper", "nonsense"], ["unknown paper 'nonsense'", *PAPERS]),
        (["--claim", "nonsense"], ["unknown claim 'nonsense'", "theorem-10-matrix", "lemma-a-3"]),
        (["--paper", "localized", "--claim", "lemma-5"], ["of paper 'localized'", "identity-15"]),
        (["--trials", "0"], ["--trials must be at least 1, got 0"]),
        (["--trials", "-3"], ["--trials must be at least 1, got -3"]),
        (["--trials", "many"], ["invalid int value: 'many'"]),
        (["--seed", "-1"], ["--seed must be at least 0, got -1"]),
        (["--mutate", "--jobs", "0"], ["--jobs must be at least 1, got 0"]),
        (["--mutate", "--only", "nosuch"], ["no change contains 'nosuch'", "mutants.toml"]),
        (["--mutate", "--paper", "localized", "--stop"], ["--paper, --stop: not with --mutate"]),
        (["--mutate", "--again"], ["--again is for the results of a --record FILE"]),
        (["--mutate", "--record", "nowhere/at/all"], ["the folder of nowhere/at/all does not exist"]),
        (["--only", "gaussian"], ["--only: not without --mutate"]),
    ],
)
def test_bad_input_exits_two_and_lists_what_exists(arguments, said, capsys):
    with pytest.raises(SystemExit) as stop:
        command.main(arguments)
    assert stop.value.code == 2
    printed = capsys.readouterr().err
    for part in said:
        assert part in printed


@pytest.mark.parametrize("option", ["--json", "--markdown"])
def test_existing_files_are_kept_unless_forced(option, tmp_path, capsys):
    target = tmp_path / "kept"
    target.write_text("mine", encoding="utf-8")
    arguments = ["--claim", "lemma-3", "--trials", "1", option, str(target)]
    with pytest.raises(SystemExit) as stop:
        command.main(arguments)
    assert stop.value.code == 2
    assert "--force" in capsys.readouterr().err
    assert target.read_text(encoding="utf-8") == "mine"
    assert command.main([*arguments, "--force"]) == 0
    assert "lemma-3" in target.read_text(encoding="utf-8")


def test_missing_folder_is_refused_before_any_work(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        command.main(["--claim", "lemma-3", "--json", str(tmp_path / "nowhere" / "out.json")])
    assert stop.value.code == 2
    captured = capsys.readouterr()
    assert "does not exist" in captured.err
    assert "lemma-3" not in captured.out


def test_saved_witness_refutes_the_printed_corollary_again(tmp_path):
    target = tmp_path / "witness.json"
    assert command.main(["--claim", "corollary-13-as-printed", "--json", str(target)]) == 0
    report = json.loads(target.read_text(encoding="utf-8"))
    saved = report["claims"][0]["claim"]
    witness = saved["witness"]
    P, a, b, x, y = (np.array(witness[key]) for key in ("P", "a", "b", "x", "y"))
    case = direct.Case(P, a, b, witness["degree"])
    printed = direct.corollary_13(case, x, y, "t_ij(y,x)").value
    assert printed == pytest.approx(witness["formula"], rel=1e-12)
    assert abs(printed - direct.integral(case, x, y).value) == pytest.approx(saved["worst_violation"], rel=1e-9)
    assert saved["worst_violation"] > 1e6 * saved["tolerance"]


def test_numbers_in_arrays_are_saved_as_numbers():
    def measure(subject, rng):
        return dataclasses.replace(coin(subject, rng), witness={"number": np.array(2.5), "list": np.ones((1, 2))})

    saved = json.loads(as_json([settle(coin_claim(measure=measure), 0)], 0))["claims"][0]
    assert saved["claim"]["witness"] == {"number": 2.5, "list": [[1.0, 1.0]]}


def test_markdown_marks_what_is_refuted(tmp_path):
    text = as_markdown([settle(claim, 0, 1) for claim in PAPERS["hierarchical"]])
    for claim in PAPERS["hierarchical"]:
        row = next(line for line in text.splitlines() if line.startswith(f"| `{claim.name}` |"))
        assert ("**refuted**" in row) == (claim.expected is REFUTED)
        assert row.count(" | ") == 5


def test_module_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "proofs_check", "--claim", "lemma-9", "--seed", "5"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "lemma-9" in done.stdout
    assert "seed 5" in done.stdout


@pytest.mark.parametrize("name", ["matern-smallest-order-corrected", "matern-smallest-order-as-printed"])
def test_a_witness_without_an_exception_has_no_error(name):
    """A report takes the key for an exception, and the claim for one that is not settled."""
    (claim,) = [claim for claim in claims() if claim.name == name]
    assert "error" not in settle(claim, seed=0, trials=2).verdict.witness
