#!/usr/bin/env python3
"""Puts small mistakes into src/, one at a time, and sees whether the tests notice.

tools/mutants/ROOM.toml lists them for each folder of src/ (tools/mutants/README.md). Each is applied in a copy of the
sources, in build/mutants/, with a build tree of its own; the test programs that should notice are built and run there.

  tools/mutants.py                          all of them
  tools/mutants.py ops plan/arena.cpp       those of a room, a file or FILE:LINE
  tools/mutants.py --resume                 those that have no result yet (new ones, or after an interruption)
  tools/mutants.py --survivors              those that survived last time, after tests were added
  tools/mutants.py --table                  runs nothing: the results so far
  tools/mutants.py --check                  runs nothing: whether the list still fits the sources
"""
import argparse
import concurrent.futures
import json
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from mutants import rules, scratch, table  # noqa: E402  (a folder beside this file)

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build/mutants/results.jsonl"


def read_results():
    if not RESULTS.exists():
        return {}
    return {r["key"]: r for r in map(json.loads, RESULTS.read_text().splitlines())}


def chosen(all_rules, options, results):
    picked = [r for r in all_rules if not options.only or any(r.is_in(word) for word in options.only)]
    if options.resume:
        picked = [r for r in picked if r.key not in results]
    if options.survivors:
        picked = [r for r in picked if results.get(r.key, {}).get("result") not in ("killed", "equivalent")]
    return picked


def run_all(picked, options):
    """Those of one room stay together, so that a copy of the sources builds few programs and changes few files."""
    rooms = {}
    for rule in picked:
        rooms.setdefault((rule.room, rule.programs), []).append(rule)
    waiting, lock, done = list(rooms.values()), threading.Lock(), [0]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)

    def work(number):
        tree = scratch.Tree(ROOT, RESULTS.parent / f"tree-{number}", options.limit)
        while True:
            with lock:
                if not waiting:
                    return
                together = waiting.pop(0)
            for rule in together:
                result = tree.run(rule)
                with lock, RESULTS.open("a") as file:
                    file.write(json.dumps({"key": rule.key, **result}) + "\n")
                    done[0] += 1
                    print(f"[{done[0]}/{len(picked)}] {rule.name}: {result['result']} ({result['seconds']:.0f} s)"
                          f" {result['by']}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for worker in [pool.submit(work, number) for number in range(options.jobs)]:
            worker.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="ROOM|FILE|FILE:LINE")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the sources that build and run at once (1)")
    parser.add_argument("--limit", type=float, default=60, metavar="SECONDS",
                        help="tests that take longer have noticed the change (60, or 10 x their own time if more)")
    for name in ("resume", "survivors", "table", "check"):
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    all_rules, wrong = rules.read(ROOT)
    if wrong or options.check:
        print("\n".join(wrong) if wrong else f"mutants: ok, {len(all_rules)} changes")
        return bool(wrong)
    results = read_results()
    if not options.table:
        picked = chosen(all_rules, options, results)
        if not picked and not options.resume and not options.survivors:
            parser.error(f"no change is in {' '.join(options.only)}")
        run_all(picked, options)
        results = read_results()
    return table.show(all_rules, results)


if __name__ == "__main__":
    sys.exit(main())
