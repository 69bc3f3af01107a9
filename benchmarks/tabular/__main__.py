"""``python -m benchmarks.tabular run|status|report|freeze``: see PROTOCOL.md."""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse  # noqa: E402
import time  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402

from benchmarks.tabular import plan, report, runner, sizes  # noqa: E402


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tabular", description=__doc__)
    parser.add_argument("command", choices=["run", "status", "report", "freeze"])
    parser.add_argument("--data", type=Path, help="folder with manifest.json, and a folder uci with another")
    parser.add_argument("--out", type=Path, help="folder of the rows (benchmarks/results/tabular)")
    parser.add_argument("--tables", nargs="+", help="these tables only")
    parser.add_argument("--methods", nargs="+", help="these methods only")
    parser.add_argument(
        "--splits", type=int, default=sizes.FIRST_SPLITS, help="so many splits of tables that have them"
    )
    parser.add_argument(
        "--limit", type=float, help="seconds of a fit, for the cells that passed their own: rows are kept in OUT/longer"
    )
    parser.add_argument("--jobs", type=int, default=1, help="cells side by side, one process and thread each")
    parser.add_argument("--hours", type=float, default=float("inf"), help="begin no cell after so many hours")
    parser.add_argument("--quick", action="store_true", help="three small tables of scikit-learn, one split: minutes")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Do what the command says."""
    parser = _parser()
    args = parser.parse_args(argv)
    out = args.out or (plan.RESULTS / "quick" if args.quick else plan.RESULTS)
    if args.command == "freeze":
        if args.data is None:
            parser.error("freeze needs --data")
        print(f"{len(plan.freeze(args.data))} tables in {plan.LIST.name}")
        return
    if args.command == "report":
        print(report.write(plan.results(out), out, args.splits).read_text())
        return
    planned = plan.cells(args.tables, args.methods, args.quick, args.splits)
    if args.limit is not None:
        late = {plan.key(row) for row in plan.results(out) if row["status"] == "time"}
        planned, out = [replace(one, longer=args.limit) for one in planned if one.key in late], out / plan.LONGER
    done = plan.done(out)
    todo = [one for one in planned if one.key not in done]
    hours = sum(one.guess for one in todo) / 3600.0
    whole = sum(one.guess for one in planned) / 3600.0
    print(f"{len(planned)} cells, {whole:.1f} processor hours by the size rule; {len(todo)} missing, {hours:.1f} hours")
    if args.command == "run":
        until = time.monotonic() + 3600.0 * args.hours
        runner.run(todo, args.data, out, args.jobs, lambda text: print(text, flush=True), until)


if __name__ == "__main__":
    main()
