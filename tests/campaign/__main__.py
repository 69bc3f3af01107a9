"""``python -m tests.campaign --problems 10000 --seed 0``: run, count, keep what failed."""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

import convexkernels as ck

from .cases import make_case
from .judge import FAULTS, judge
from .script import write_script


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="index of the first problem")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("campaign"), help="results and scripts of failing cases")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two lines of progress")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    results = args.out / f"seed-{args.seed}.jsonl"
    known = {}
    if results.exists():
        known = {row["index"]: row for row in map(json.loads, results.read_text().splitlines())}
    if hasattr(ck, "warm_up"):
        ck.warm_up()
    todo = [i for i in range(args.first, args.first + args.problems) if i not in known]
    began = spoke = time.monotonic()
    with results.open("a") as stream:
        for done, index in enumerate(todo):
            known[index] = row = one(args.seed, index, args.out)
            stream.write(json.dumps(row) + "\n")
            stream.flush()
            if time.monotonic() - spoke > args.every:
                spoke = time.monotonic()
                left = (spoke - began) / (done + 1) * (len(todo) - done - 1)
                print(f"{done + 1} of {len(todo)}, {left:.0f} s left; {counts(known.values())}", flush=True)
    report(known.values())
    return int(any(row["faults"] for row in known.values()))


def one(seed, index, out):
    """Run one case; its row of results."""
    case = make_case(seed, index)
    verdict = judge(case)
    row = {
        "index": index,
        "case": str(case),
        "kind": case.kind,
        "hostile": case.hostile,
        "faults": verdict.faults,
        "open": verdict.open,
        "refused": verdict.refused[:200],
        "seconds": round(verdict.seconds, 3),
    }
    if verdict.faults:
        write_script(case, verdict, out)
    return row


def counts(rows):
    found = Counter(kind for row in rows for kind in {kind for kind, _ in row["faults"]})
    return ", ".join(f"{found[kind]} {kind}" for kind in FAULTS)


def report(rows):
    rows = list(rows)
    for row in rows:
        for kind, sentence in row["faults"]:
            print(f"{kind}: {sentence}\n    {row['case']}")
    plain = [row for row in rows if row["kind"] == "problem" and not row["hostile"]]
    hostile = [row for row in rows if row["kind"] == "problem" and row["hostile"]]
    for name, group in (("plain", plain), ("hostile", hostile)):
        left = [row for row in group if row["open"]]
        print(f"{name} problems: {len(group)}, left open {len(left)} ({100.0 * len(left) / max(len(group), 1):.2f} %)")
        for row in left[:40]:
            print(f"    {'; '.join(row['open'])} | {row['case']}")
    for reason, count in Counter(row["refused"][:60] for row in rows if row["refused"]).most_common(20):
        print(f"refused {count} times: {reason} ...")
    kinds = Counter(row["kind"] for row in rows)
    refused = sum(bool(row["refused"]) for row in rows)
    print(f"{len(rows)} cases ({', '.join(f'{n} {k}' for k, n in kinds.items())}), {refused} refused with a reason, ")
    print(f"{sum(row['seconds'] for row in rows):.0f} s: {counts(rows)}")


if __name__ == "__main__":
    sys.exit(main())
