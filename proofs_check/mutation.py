"""Mutation test: which claims notice that a formula of the library has been changed.

Every change of ``mutants.toml`` is made in a copy of the package, never in the working tree. The claims run on that
copy in a process of their own, those that the table names for the file first, until one of them is surprised. Where
none is, the test that the table names for the change runs on the copy.
"""

from __future__ import annotations

import fnmatch
import hashlib
import importlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofs_check.claim import Claim

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("mutants.toml")
PACKAGES = ("convexkernels", "proofs_check")
# What a copy is made of: tests are run in it, too, by their own settings.
COPIED = (*PACKAGES, "tests")
SETTINGS = "pyproject.toml"
# Share of the changes that the claims have to notice by themselves; claims and tests have to notice all.
BAR = 0.95
# Seconds of a clock for all claims on one copy; a change that makes them longer has been noticed, too.
LIMIT = 1200.0


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes
    ----------
    path : str
        File below ``convexkernels/``.
    old, new : str
        The fragment, which occurs once in the file, and what replaces it.
    claims : tuple of str
        Patterns of the claims that are run first.
    test : str
        The test that notices a change that no claim does, ``file::name`` below ``tests/``; empty where claims do.
    """

    path: str
    old: str
    new: str
    claims: tuple[str, ...]
    test: str = ""

    @property
    def label(self) -> str:
        return f"{self.path}: {self.old} -> {self.new or '(nothing)'}"

    def source(self, folder: Path = ROOT) -> str:
        """The file without the change."""
        return (folder / "convexkernels" / self.path).read_text(encoding="utf-8")

    def state(self, folder: Path = ROOT) -> str:
        """What the file without the change is, by a hash."""
        return hashlib.sha256(self.source(folder).encode()).hexdigest()[:16]


def mutants(only: str = "") -> list[Mutant]:
    """The table, or the entries whose label contains a text."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    found = [
        Mutant(path, old, new, tuple(section["claims"]), *test)
        for path, section in table.items()
        for old, new, *test in section["changes"]
    ]
    return [mutant for mutant in found if only in mutant.label]


def occurrences(mutant: Mutant) -> int:
    """How often the fragment occurs in the file as it is now."""
    return mutant.source().count(mutant.old)


def ordered(chosen: Sequence[Claim], first: Sequence[str]) -> list[Claim]:
    """The claims that match a pattern, pattern by pattern, and then all the others."""
    named = [claim for pattern in first for claim in chosen if fnmatch.fnmatch(claim.name, pattern)]
    return list(dict.fromkeys([*named, *chosen]))


def _copied(source: Path, target: Path, kept_loops: bool) -> None:
    """Copy package, claims and tests with their times; compiled loops are kept where they are what the source says."""
    left_out = shutil.ignore_patterns() if kept_loops else shutil.ignore_patterns("*.nbi", "*.nbc")
    for name in COPIED:
        shutil.copytree(source / name, target / name, ignore=left_out)
    shutil.copy2(source / SETTINGS, target / SETTINGS)


def _changed(mutant: Mutant, folder: Path) -> None:
    path = folder / "convexkernels" / mutant.path
    path.write_text(path.read_text(encoding="utf-8").replace(mutant.old, mutant.new), encoding="utf-8")
    for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        stale.unlink()


def _claims_in(folder: Path, first: Sequence[str]) -> None:
    """Body of a process: forget the package, import that of the folder, and run its claims up to a surprise.

    What the package needs stays imported, which is most of the time that a new process would take.
    """
    sys.stdout = (folder / "out").open("w", encoding="utf-8")
    sys.stderr = (folder / "err").open("w", encoding="utf-8")
    for name in list(sys.modules):
        if name.partition(".")[0] in PACKAGES:
            del sys.modules[name]
    sys.path.insert(0, str(folder))
    found = importlib.import_module("proofs_check.__main__")
    assert Path(str(found.__file__)).is_relative_to(folder), "the claims of the copy were not found"
    sys.exit(found.main(["--stop", *(["--first", *first] if first else [])]))


def outcome(test: str, folder: Path) -> int:
    """Exit code of pytest for one test on a copy: 0 passed, 1 failed, others say that it did not run."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", f"tests/{test}"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode


class _Run:
    """The claims on a copy with one change, or with none, in a process of their own."""

    def __init__(self, mutant: Mutant | None, source: Path, folder: Path) -> None:
        self.mutant, self.folder, self.started = mutant, folder, time.monotonic()
        self.folder.mkdir()
        with_loops = mutant is None or has_loops(mutant.source(source))
        self.state = "" if mutant is None else mutant.state(source)
        _copied(source, folder, kept_loops=not with_loops)
        if mutant is not None:
            _changed(mutant, folder)
        first = () if mutant is None else mutant.claims
        self.process = multiprocessing.get_context("fork").Process(target=_claims_in, args=(folder, first))
        self.process.start()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended."""
        if self.process.is_alive() and time.monotonic() - self.started > LIMIT:
            self.process.kill()
        self.process.join(seconds)
        return self.process.exitcode is not None

    def result(self) -> dict[str, Any]:
        noticed, said = self._noticed()
        label = "" if self.mutant is None else self.mutant.label
        test = "" if noticed else self._failed_test()
        seconds = time.monotonic() - self.started
        return {
            "mutant": label, "noticed": noticed, "said": said, "test": test, "seconds": seconds, "state": self.state
        }  # fmt: skip

    def _failed_test(self) -> str:
        """The test of the change where it fails on the copy, empty otherwise."""
        test = "" if self.mutant is None else self.mutant.test
        return test if test and outcome(test, self.folder) == 1 else ""

    def _noticed(self) -> tuple[str, str]:
        """What noticed the change, empty for nothing, and what was said."""
        if self.process.exitcode == 0:
            return "", ""
        lines = (self.folder / "out").read_text(encoding="utf-8").splitlines()
        surprises = [i for i, line in enumerate(lines) if line.strip().startswith("SURPRISE")]
        if surprises:
            return lines[surprises[0] - 1].split()[0], lines[surprises[0]].strip()
        return "an error, or the time limit", (self.folder / "err").read_text(encoding="utf-8")[-2000:]


def has_loops(source: str) -> bool:
    """Whether a file holds loops that are compiled, and kept."""
    return "@compiled(" in source or "njit" in source


def look(chosen: Sequence[Mutant], source: Path, work: Path, jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Run the claims on copies of `source`, made in the folder `work`, `jobs` at a time; results as they come."""
    running: list[_Run] = []
    left, count = list(chosen), 0
    while left or running:
        while left and len(running) < jobs:
            running.append(_Run(left.pop(0), source, work / str(count)))
            count += 1
        for one in list(running):
            if one.wait(0.5 / jobs):
                yield one.result()
                running.remove(one)
                shutil.rmtree(one.folder)


def run(only: str = "", jobs: int = 2, record: Path | None = None, again: bool = False) -> int:
    """Look at the changes, print a line for each, and return the exit code: 1 below the bars.

    Parameters
    ----------
    only : str
        Only changes whose label contains it.
    jobs : int
        Processes at a time.
    record : Path, optional
        A file that results are added to, one JSON object a line; changes that it names are not looked at again.
    again : bool
        Whether changes are looked at again whose file is another one than that of the record.
    """
    chosen = mutants(only)
    known = {} if record is None or not record.exists() else recorded(record)
    earlier = {m.label for m in chosen if m.label in known and known[m.label].get("state") != m.state()}
    if again:
        known = {label: result for label, result in known.items() if label not in earlier}
        earlier = set()
    results = [known[mutant.label] for mutant in chosen if mutant.label in known]
    left = [mutant for mutant in chosen if mutant.label not in known]
    if left:
        with tempfile.TemporaryDirectory() as name:
            base = _Run(None, ROOT, Path(name) / "base")  # compiles the loops, too
            while not base.wait(60.0):
                pass
            failing = [mutant.test for mutant in left if mutant.test and outcome(mutant.test, base.folder)]
            if base.process.exitcode or failing:
                print(f"the library as it is surprises the claims or fails tests: {base.result()}, {failing}")
                return 1
            for result in look(left, base.folder, Path(name), jobs):
                results.append(result)
                _print(result)
                if record is not None:
                    with record.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(result) + "\n")
    return _summary(results, len(earlier))


def recorded(record: Path) -> dict[str, dict[str, Any]]:
    """The last result of every change that a file names."""
    results = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    return {result["mutant"]: result for result in results}


def _print(result: dict[str, Any]) -> None:
    by = result["noticed"] or result.get("test")
    print(f"{result['seconds']:6.1f} s  {f'noticed by {by}' if by else 'SURVIVED':45} {result['mutant']}", flush=True)


def _summary(results: list[dict[str, Any]], earlier: int = 0) -> int:
    """Print what was noticed, and how many results are of an earlier state of the changed file; the exit code."""
    by_claims = sum(bool(result["noticed"]) for result in results)
    by_tests = sum(bool(result.get("test")) for result in results)
    for result in results:
        if not result["noticed"]:
            print(f"no claim, {result.get('test') or 'SURVIVED'}: {result['mutant']}")
    seconds = sum(result["seconds"] for result in results)
    noticed = f"{by_claims} noticed by claims alone, {by_claims + by_tests} by claims and tests"
    print(f"\n{len(results)} changes: {noticed}; {seconds:.0f} s of processes")
    if earlier:
        print(f"{earlier} of them were looked at in an earlier state of their file; --again looks at these once more")
    return 0 if by_claims >= BAR * len(results) and by_claims + by_tests == len(results) else 1
