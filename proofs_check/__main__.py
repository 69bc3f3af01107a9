"""Run the claims: ``python -m proofs_check [--paper P] [--claim NAME] [--seed N] [--trials N]``.

``python -m proofs_check --mutate`` changes formulas of the library, one at a time, and reports what no claim notices.

Prints one line per claim and ends with a non-zero exit code when something is not as expected: a claim
that holds but was expected to be refuted, or the reverse, a control that was not refuted, or an error.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from proofs_check import mutation
from proofs_check.claim import Claim, Finding, settle
from proofs_check.report import as_json, as_markdown, header, line
from proofs_check.table import PAPERS, claims


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m proofs_check",
        description="Check the numbered claims of the papers numerically.",
        epilog="Exit code: 0 as expected, 1 a surprise, 2 bad input.",
    )
    parser.add_argument("--paper", metavar="PAPER", help=f"only the claims of one paper: {', '.join(PAPERS)}")
    parser.add_argument("--claim", metavar="NAME", help="only one claim")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random cases (default 0)")
    parser.add_argument("--trials", type=int, help="random cases per claim (default: each claim's own number)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the verdicts with their witnesses")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the table of claims")
    parser.add_argument("--first", metavar="PATTERN", nargs="+", default=[], help="begin with the claims that match")
    parser.add_argument("--stop", action="store_true", help="stop at the first surprise")
    parser.add_argument("--mutate", action="store_true", help="change formulas of a copy: which changes are noticed?")
    parser.add_argument("--only", metavar="TEXT", default="", help="with --mutate: only changes that contain it")
    parser.add_argument("--jobs", type=int, default=2, help="with --mutate: processes at a time (default 2)")
    parser.add_argument(
        "--record", metavar="FILE", type=Path, help="with --mutate: add results to it, and go on from it"
    )
    parser.add_argument(
        "--again", action="store_true", help="with --record: look again where the file is not that of the record"
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing FILE")
    return parser


# What has a meaning for claims as they are only, and for changes only.
OF_CLAIMS = ("paper", "claim", "seed", "trials", "json", "markdown", "first", "stop", "force")
OF_CHANGES = ("only", "jobs", "record", "again")


def _refuse_mutation(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Stop with a message where options would be ignored, or there would be nothing to look at."""
    without_meaning = OF_CLAIMS if args.mutate else OF_CHANGES
    given = [f"--{name}" for name in without_meaning if getattr(args, name) != parser.get_default(name)]
    if given:
        parser.error(f"{', '.join(given)}: not {'with' if args.mutate else 'without'} --mutate; leave out either")
    if args.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {args.jobs}")
    if not mutation.mutants(args.only):
        parser.error(f"no change contains {args.only!r}; the changes are in proofs_check/mutants.toml")
    if args.again and args.record is None:
        parser.error("--again is for the results of a --record FILE; pass one")
    _refuse_nowhere(parser, args.record)


def _refuse_nowhere(parser: argparse.ArgumentParser, path: Path | None) -> None:
    """Stop where a file cannot be written, because its folder is missing."""
    if path is not None and not path.resolve().parent.is_dir():
        parser.error(f"the folder of {path} does not exist; create it first")


def _select(parser: argparse.ArgumentParser, args: argparse.Namespace) -> list[Claim]:
    """Return the claims that were asked for, or stop with a message that lists what exists."""
    if args.paper is not None and args.paper not in PAPERS:
        parser.error(f"unknown paper {args.paper!r}; there are: {', '.join(PAPERS)}")
    chosen = claims(args.paper)
    if args.claim is not None:
        names = [claim.name for claim in chosen]
        if args.claim not in names:
            where = f" of paper {args.paper!r}" if args.paper else ""
            parser.error(f"unknown claim {args.claim!r}; the claims{where} are:\n  " + "\n  ".join(names))
        chosen = [claim for claim in chosen if claim.name == args.claim]
    if args.trials is not None and args.trials < 1:
        parser.error(f"--trials must be at least 1, got {args.trials}; leave it out for each claim's own number")
    if args.seed < 0:
        parser.error(f"--seed must be at least 0, got {args.seed}")
    for path in (args.json, args.markdown):
        if path is not None and path.exists() and not args.force:
            parser.error(f"{path} exists; pass --force to overwrite it, or another name")
        _refuse_nowhere(parser, path)
    return chosen


def run(chosen: Sequence[Claim], seed: int, trials: int | None, *, stop: bool = False) -> list[Finding]:
    """Settle the claims one after the other and print a line for each; with `stop`, up to the first surprise."""
    print(header())
    findings = []
    for claim in chosen:
        findings.append(settle(claim, seed, trials))
        print(line(findings[-1]), flush=True)
        for surprise in findings[-1].surprises:
            print(f"    SURPRISE: {surprise}", flush=True)
        if stop and findings[-1].surprises:
            break
    return findings


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = _parser()
    args = parser.parse_args(arguments)
    _refuse_mutation(parser, args)
    if args.mutate:
        return mutation.run(args.only, args.jobs, args.record, args.again)
    chosen = mutation.ordered(_select(parser, args), args.first)
    start = time.perf_counter()
    findings = run(chosen, args.seed, args.trials, stop=args.stop)
    if args.json is not None:
        args.json.write_text(as_json(findings, args.seed), encoding="utf-8")
    if args.markdown is not None:
        args.markdown.write_text(as_markdown(findings), encoding="utf-8")
    unsettled = sum(bool(finding.errors) for finding in findings)
    refuted = sum(not finding.verdict.holds and not finding.errors for finding in findings)
    surprises = sum(bool(finding.surprises) for finding in findings)
    print(
        f"\n{len(findings)} claims: {len(findings) - refuted - unsettled} hold numerically, {refuted} refuted; "
        f"{f'{unsettled} not settled; ' if unsettled else ''}"
        f"{surprises} surprise{'s' if surprises != 1 else ''}; {time.perf_counter() - start:.1f} s, seed {args.seed}"
    )
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
