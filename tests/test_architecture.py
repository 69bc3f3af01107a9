"""The import graph is the layers of ARCHITECTURE.md, and the house rules that can be read off the source hold."""

import ast
import importlib
import inspect
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "convexkernels"

# Lowest first; a part imports parts of its own line or of lines above it in this list.
LAYERS = [
    {
        "arrays",
        "workers",
        "exceptions",
        "validation",
        "linalg",
        "cones",
        "factored",
        "threads",
        "compiled",
        "few_vectors",
        "backend",
        "tables",
        "notebook",
        "datasets",
    },
    {"certificate", "solution", "checkpoint", "clock", "outer_solver", "driver", "progress", "checking"},
    {"bases"},
    {"kernels"},
    {"losses"},
    {"families", "criteria"},
    {"rigorous"},
    {"problems"},
    {"solvers"},
    {"cells", "spectral"},
    {"bounds", "estimators", "plotting"},
    {"commands"},
    {"cli", "__main__"},
]
# Parts on one line that know nothing of each other: kernels see points, losses see matrices.
STRANGERS = [{"kernels", "losses"}, {"families", "criteria"}, {"cells", "spectral"}]
# Calls upwards, made inside functions only: a problem hands itself to the solver it was asked for.
SANCTIONED_CALLS_UP = {("problems", "solvers")}

# A library that costs start-up time or that only one part should know -> the parts that may import it.
KNOWN_TO = {
    "cvxpy": {"families", "losses", "problems", "solvers"},
    "mosek": {"solvers"},
    "sympy": {"bases"},
    "numba": {"compiled"},
    "sklearn": {"kernels", "datasets", "criteria", "solvers", "cells", "estimators", "plotting", "commands"},
    "matplotlib": {"plotting", "commands"},
    "dask": {"cells"},
    "distributed": {"cells"},
    "skops": {"commands"},
    "pandas": {"cells"},
    "torch": set(),
}
TREES = ("convexkernels", "models", "proofs_check", "tests", "examples", "benchmarks")
FORBIDDEN_NAMES = {"utils", "util", "misc", "common", "helpers", "helper", "core"}
PRINTING = {"progress.py", "cli.py", "commands/learn.py", "commands/predict.py"}


@dataclass(frozen=True)
class Import:
    """One imported name: who imports, from where, and when the import happens."""

    importer: str
    module: str
    name: str
    when: str  # "loading", "calling" or "typing"


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part(module: str) -> str:
    """``convexkernels.kernels.base`` -> ``kernels``; the package itself -> ``""``."""
    return [*module.split("."), ""][1]


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def imports() -> tuple[Import, ...]:
    found: list[Import] = []
    for path in sources():
        collect(ast.parse(path.read_text()), dotted(path), "loading", found)
    return tuple(found)


def collect(node: ast.AST, importer: str, when: str, found: list[Import]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            found.extend(Import(importer, alias.name, "", when) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{importer}: relative imports hide the layer; write the full name"
            found.extend(Import(importer, child.module, alias.name, when) for alias in child.names)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            collect(child, importer, "calling", found)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.body:
                collect(ast.Module([statement], []), importer, "typing", found)
            for statement in child.orelse:
                collect(ast.Module([statement], []), importer, when, found)
        else:
            collect(child, importer, when, found)


def internal() -> list[Import]:
    return [i for i in imports() if i.module.split(".")[0] == "convexkernels"]


def rank(name: str) -> int:
    return next(r for r, layer in enumerate(LAYERS) if name in layer)


def modules_read(i: Import) -> str:
    """Return the module an import reads: ``from package import module`` names a module, too."""
    as_path = ROOT.joinpath(*i.module.split("."), i.name)
    is_module = as_path.with_suffix(".py").exists() or (as_path / "__init__.py").exists()
    return f"{i.module}.{i.name}" if i.name and is_module else i.module


def test_every_part_of_the_package_has_a_layer():
    parts = {part(dotted(path)) for path in sources()} - {""}
    assert parts <= set().union(*LAYERS), f"no layer for {parts - set().union(*LAYERS)}; add it to LAYERS"


def test_imports_point_down():
    back_edges = []
    for i in internal():
        source, target = part(i.importer), part(modules_read(i))
        if source in ("", target):
            continue
        if i.name == "__version__":
            continue
        assert target, f"{i.importer} imports {i.name!r} from the top; name the module that defines it"
        strangers = any({source, target} <= pair for pair in STRANGERS)
        sanctioned = i.when != "loading" and (source, target) in SANCTIONED_CALLS_UP
        if (rank(target) > rank(source) or strangers) and not sanctioned:
            back_edges.append(f"{i.importer} -> {modules_read(i)}")
    assert not back_edges, "\n".join(back_edges)


def test_no_circle_of_imports_lazy_ones_and_those_for_types_included():
    graph: dict[str, set[str]] = {dotted(path): set() for path in sources()}
    for i in internal():
        target = modules_read(i)
        # `kernels/__init__` gathers its members; a member that imports the gathering would be a cycle.
        if (part(i.importer), part(target)) not in SANCTIONED_CALLS_UP and target != i.importer:
            graph[i.importer].add(target)
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join([*trail[trail.index(module) :], module])
        if module not in done:
            for target in graph[module]:
                visit(target, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_the_top_module_loads_nothing_of_the_package():
    assert [i for i in internal() if i.importer == "convexkernels"] == []


def test_no_private_name_is_imported_across_modules():
    private = [
        f"{i.importer}: {i.module}.{i.name}" for i in internal() if i.name.startswith("_") and i.name != "__version__"
    ]
    assert not private, "\n".join(private)


def test_members_of_a_folder_are_imported_by_their_own_file():
    """A part never imports the gathering `__init__` of its own folder (a cycle waiting to happen)."""
    wrong = [
        f"{i.importer}: {i.module}"
        for i in internal()
        if i.module == f"convexkernels.{part(i.importer)}" and i.importer != i.module and i.when == "loading"
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("library", KNOWN_TO)
def test_libraries_are_imported_only_where_they_belong(library):
    users = {part(i.importer) for i in imports() if i.module.split(".")[0] == library}
    assert users <= KNOWN_TO[library]


def test_kernels_know_only_the_base_classes_of_scikit_learn():
    used = {i.module for i in imports() if i.module.startswith("sklearn") and part(i.importer) == "kernels"}
    assert used <= {"sklearn.base", "sklearn.gaussian_process.kernels"}


def test_only_progress_and_command_line_print():
    printing = []
    for path in sources():
        if path.relative_to(PACKAGE).as_posix() in PRINTING:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called in ("print", "sys.stdout.write", "sys.stderr.write"):
                printing.append(f"{path.name}:{node.lineno}")
    assert not printing, "\n".join(printing)


def test_rows_are_not_compared_as_records():
    """Ctrl-C within numpy's comparison of records is a TypeError; `distinct_rows` compares column by column."""
    comparing = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            is_unique = isinstance(node, ast.Call) and ast.unparse(node.func) == "np.unique"
            if is_unique and any(keyword.arg == "axis" for keyword in node.keywords):
                comparing.append(f"{path.name}:{node.lineno}")
    assert not comparing, "\n".join(comparing)


def test_no_file_or_folder_has_a_name_that_says_nothing():
    folders = [ROOT / name for name in TREES]
    names = {p.stem for folder in folders for p in folder.rglob("*.py")}
    names |= {p.name for folder in folders for p in folder.rglob("*") if p.is_dir()}
    assert not names & FORBIDDEN_NAMES


def test_a_prefix_that_three_files_share_is_a_folder():
    flat = []
    for folder in [path for top in TREES for path in (ROOT / top, *(ROOT / top).rglob("*/"))]:
        names = [path.stem.removeprefix("test_").split("_")[0] for path in folder.glob("*.py")]
        flat += [f"{folder}/{name}_*" for name in {*names} - {""} if names.count(name) > 2]
    assert not flat, flat


def lines_of_code(node: ast.AST) -> int:
    """Number of source lines with code on them: no docstrings, comments or blank lines."""
    lines: set[int] = set()
    for child in ast.walk(node):
        if isinstance(child, ast.stmt) and not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
            # A compound statement counts its own lines; what it holds is walked by itself.
            end = child.body[0].lineno - 1 if getattr(child, "body", None) else child.end_lineno
            lines.update(range(child.lineno, max(child.lineno, end) + 1))
    return len(lines)


def test_files_and_functions_stay_short_enough_to_read():
    long = []
    for path in sources():
        tree = ast.parse(path.read_text())
        if lines_of_code(tree) > 300:
            long.append(f"{path.name} has {lines_of_code(tree)} lines of code")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = lines_of_code(ast.Module(node.body, []))
                if body > 60:
                    long.append(f"{path.name}: {node.name} has {body} lines of code")
    assert not long, "\n".join(long)


def test_every_public_name_resolves():
    import convexkernels

    for name in convexkernels.__all__:
        assert getattr(convexkernels, name) is not None
        assert name in dir(convexkernels)
    with pytest.raises(AttributeError, match="no_such_name"):
        convexkernels.no_such_name  # noqa: B018


def test_every_listed_public_name_exists_in_its_module():
    for path in sources():
        module = dotted(path)
        if path.stem == "__main__":
            continue
        loaded = importlib.import_module(module)
        for name in getattr(loaded, "__all__", []):
            assert hasattr(loaded, name), f"{module}.__all__ names {name}"


def test_importing_the_package_loads_no_heavy_library():
    heavy = ["cvxpy", "sympy", "matplotlib", "dask", "numba", "torch", "scipy", "sklearn", "pandas", "numpy"]
    code = f"import sys, convexkernels; print([m for m in {heavy} if m in sys.modules])"
    assert run_python(code) == "[]"


def test_kernels_load_neither_compiler_nor_modelling_language():
    heavy = ["cvxpy", "sympy", "matplotlib", "dask", "numba", "torch"]
    code = f"import sys, convexkernels as ck; ck.Gaussian; print([m for m in {heavy} if m in sys.modules])"
    assert run_python(code) == "[]"


def test_estimators_learn_where_there_is_no_modelling_language():
    code = """if True:
        import sys
        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in {"cvxpy", "clarabel", "scs", "sympy"}:
                    raise ImportError(name)
        sys.meta_path.insert(0, Absent())
        import convexkernels as ck
        from convexkernels.datasets import make_friedman1
        X, y = make_friedman1(40, n_features=5, random_state=0)
        for model in (ck.TessellatedRidge(lam=1.0), ck.MultipleKernelRidge(lam=1.0), ck.VoronoiRidge(random_state=0)):
            print(round(model.fit(X, y).score(X, y)), end="")
    """
    assert run_python(code) == "111"


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.strip()


# --- tables -----------------------------------------------------------------------------------


def classes_defined(folder: str, base: type) -> dict[type, str]:
    """Concrete public subclasses of `base` defined in the files of a folder."""
    found = {}
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        module = importlib.import_module(dotted(path))
        for name, value in vars(module).items():
            is_own = inspect.isclass(value) and value.__module__ == module.__name__
            if is_own and issubclass(value, base) and not inspect.isabstract(value) and not name.startswith("_"):
                found[value] = path.name
    return found


def test_every_kernel_is_in_the_table_of_kernels():
    from convexkernels.kernels import KERNELS, Kernel

    listed = {type(example(2)) for example in KERNELS.values()}
    missing = {cls.__name__: file for cls, file in classes_defined("kernels", Kernel).items() if cls not in listed}
    assert not missing, f"add an example of each to KERNELS: {missing}"


def test_every_loss_is_in_the_table_of_losses():
    from convexkernels.losses import LOSSES, Loss

    listed = {type(example()) for _, example in LOSSES.values()}
    missing = {cls.__name__: file for cls, file in classes_defined("losses", Loss).items() if cls not in listed}
    assert not missing, f"add an example of each to LOSSES: {missing}"


def test_every_family_is_in_the_table_of_families():
    from convexkernels.families import FAMILIES, Family

    listed = {type(example()) for example in FAMILIES.values()}
    missing = {cls.__name__: file for cls, file in classes_defined("families", Family).items() if cls not in listed}
    assert not missing, f"add an example of each to FAMILIES: {missing}"


def test_every_criterion_is_in_the_table_of_criteria():
    from convexkernels.criteria import CRITERIA, Criterion

    listed = {type(example()) for example in CRITERIA.values()}
    missing = {cls.__name__: file for cls, file in classes_defined("criteria", Criterion).items() if cls not in listed}
    assert not missing, f"add an example of each to CRITERIA: {missing}"


def test_every_curved_family_is_in_the_table_of_curved_families():
    from convexkernels.families.curved import CURVED, CurvedFamily

    listed = {type(example()) for example in CURVED.values()}
    found = classes_defined("families/curved", CurvedFamily)
    missing = {cls.__name__: file for cls, file in found.items() if cls not in listed}
    assert found
    assert not missing, f"add an example of each to CURVED: {missing}"


def test_every_solver_is_in_the_table_of_solvers():
    from convexkernels.outer_solver import OuterSolver
    from convexkernels.solvers import SEARCHES, SOLVERS, WITH_ONE_KERNEL

    table = [*SOLVERS.values(), *WITH_ONE_KERNEL.values(), *SEARCHES.values()]
    listed = {getattr(importlib.import_module(f"convexkernels.solvers.{m}"), c) for m, c in table}
    found = classes_defined("solvers/convex", OuterSolver) | classes_defined("solvers/nonconvex", OuterSolver)
    missing = {cls.__name__: file for cls, file in found.items() if cls not in listed}
    assert found
    assert not missing, f"add each to SOLVERS, WITH_ONE_KERNEL or SEARCHES: {missing}"


def test_every_estimator_is_in_the_table_of_estimators():
    from convexkernels.estimators import ESTIMATORS
    from convexkernels.estimators.base import KernelEstimator

    listed = {type(example()) for _, example in ESTIMATORS.values()}
    defined = classes_defined("estimators", KernelEstimator)
    bases = {base for cls in defined for base in cls.__mro__[1:]}
    missing = {cls.__name__: file for cls, file in defined.items() if cls not in listed | bases}
    assert not missing, f"add an example of each to ESTIMATORS: {missing}"


def test_contract_tests_know_no_member_by_name():
    """Members bring their example points and say what they are; a new one is found by its table and nothing else."""
    from convexkernels.criteria import CRITERIA
    from convexkernels.estimators import ESTIMATORS
    from convexkernels.families import FAMILIES
    from convexkernels.families.curved import CURVED
    from convexkernels.kernels import KERNELS
    from convexkernels.losses import LOSSES
    from convexkernels.solvers import SEARCHES, SOLVERS

    tables = {"CRITERIA": CRITERIA, "CURVED": CURVED, "ESTIMATORS": ESTIMATORS, "FAMILIES": FAMILIES}
    tables |= {"KERNELS": KERNELS, "LOSSES": LOSSES, "SEARCHES": SEARCHES, "SOLVERS": SOLVERS}
    known = []
    for path in sorted((ROOT / "tests" / "contracts").glob("*.py")):
        tree = ast.parse(path.read_text())
        asked = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & tables.keys()
        members = {name: table for table in asked for entry in tables[table].items() for name in names_of(*entry)}
        assert members, f"{path.name} asks for no table"
        for node in ast.walk(tree):
            said = getattr(node, "value", getattr(node, "id", getattr(node, "attr", None)))
            if isinstance(said, str) and said in members and (isinstance(node, ast.Constant) or said[0].isupper()):
                known.append(f"{path.name}:{node.lineno}: {said}, of {members[said]}")
    assert not known, "\n".join(known)


def names_of(name, entry):
    """What a member is called: in its table, and as a class."""
    make = entry[1] if isinstance(entry, tuple) else entry
    return name, make if isinstance(make, str) else type(make(*[2] * make.__code__.co_argcount)).__name__


def test_the_command_line_has_every_estimator():
    from convexkernels.commands.catalog import MODELS
    from convexkernels.estimators import ESTIMATORS

    offered = {name for model in MODELS.values() for name in (model.classification, model.regression) if name}
    listed = {name.split(",")[0] for name in ESTIMATORS}
    assert offered == listed


def test_the_command_line_knows_the_parameters_of_every_estimator():
    import convexkernels
    from convexkernels.commands.catalog import ABOVE_ZERO, LOWEST, PARAMETERS, SOLVERS
    from convexkernels.solvers import SOLVERS as BY_NAME

    for name, parameters in PARAMETERS.items():
        assert sorted(parameters.split()) == sorted(getattr(convexkernels, name)().get_params(deep=False)), name
    assert set(SOLVERS) == {"auto", *BY_NAME}
    X, y = [[float(i)] for i in range(12)], [0, 1] * 6
    for parameter, value in [*((name, 0.0) for name in ABOVE_ZERO), *((name, low - 1) for name, low in LOWEST.items())]:
        owner = next(name for name, own in PARAMETERS.items() if parameter in own.split())
        with pytest.raises(convexkernels.InvalidInputError, match=parameter):
            getattr(convexkernels, owner)(**{parameter: value}).fit(X, y)


# --- what is installed ------------------------------------------------------------------------


def test_only_the_package_is_installed():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = config["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["convexkernels"]}
    assert not {"force-include", "include"} & config["tool"]["hatch"]["build"].keys()
    assert config["project"]["scripts"] == {"convexkernels": "convexkernels.cli:main"}


def test_version_is_written_once_per_file_and_agrees():
    import convexkernels

    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert config["project"]["version"] == convexkernels.__version__
