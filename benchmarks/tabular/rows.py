"""Results as rows of CSV files: appended whole or not at all, and never computed again."""

from __future__ import annotations

import argparse
import csv
import fcntl
import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def known(path: Path) -> list[dict[str, str]]:
    """The rows that are there, without one that was cut off."""
    if not path.exists():
        return []
    text = path.read_text()
    return list(csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1])))


def append(path: Path, row: Mapping[str, Any], fields: Sequence[str]) -> None:
    """Write a row with a single call, under a lock, after removing what a killed process left of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0)
        there = stream.read()
        stream.truncate(there.rfind(b"\n") + 1)
        lines = io.StringIO(newline="")
        writer = csv.DictWriter(lines, fields, lineterminator="\n", extrasaction="ignore")
        if b"\n" not in there:
            writer.writeheader()
        writer.writerow(dict(row))
        stream.write(lines.getvalue().encode())
        stream.flush()
        os.fsync(stream.fileno())


def resumable_parser(doc: str | None, out: Path) -> argparse.ArgumentParser:
    """The arguments of a benchmark whose rows are kept in a file."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("--report", action="store_true")
    return parser


def measure_or_report(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    measure: Callable[[argparse.Namespace], None],
    report: Callable[[Path], None],
) -> None:
    """Print what the file holds, or run what is missing in it."""
    args = parser.parse_args(argv)
    if args.report:
        report(args.out)
    elif args.data is None:
        parser.error("--data is needed to measure; --report prints what is there")
    else:
        measure(args)
