#!/usr/bin/env python3
"""What checkpoints cost a run: the same steps without saves, with saves beside the steps, and with saves that training
waits for.

  bench/save_cost.py build/release/bin/tokamak --every=100 --steps=400 -- --model.preset=gpt2 --mesh.data=2 ...

Behind -- are options of `tokamak train`. Seconds are those between two lines of metrics.jsonl, from step WARM on: all that a
save costs the steps, also what the thread that writes takes from them. Of each save `events.jsonl` tells how long no step ran,
and how long it took until the checkpoint was on the disk. The runs take turns, ROUNDS times; a row is of the best of them.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

WARM = 5  # steps that are left out
KINDS = {"no saves": ["--train.checkpoint_every=0"],
         "beside the steps": ["--train.background_saves=true"],
         "training waits": ["--train.background_saves=false"]}


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def run(program, out, arguments):
    shutil.rmtree(out, ignore_errors=True)
    result = subprocess.run([program, "train", f"--train.out={out}", *arguments], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"save_cost: {' '.join(arguments)} ended with {result.returncode}: {result.stderr[-2000:]}")
    steps = lines_of(out / "metrics.jsonl")
    last = len(steps) - 1
    seconds = steps[last]["wall_seconds"] - steps[WARM - 1]["wall_seconds"]
    saves = [e for e in lines_of(out / "events.jsonl") if e["event"] == "save" and e["step"] < steps[last]["step"]]
    return seconds / (last - WARM + 1), saves


def mean(values):
    return sum(values) / len(values) if values else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--every", type=int, default=100, help="steps between saves")
    parser.add_argument("--steps", type=int, default=301, help="of each run")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", help="where the runs go (a temporary folder)")
    own = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    options = parser.parse_args(own)
    train = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
    common = [*train, f"--train.steps={options.steps}", "--train.eval_every=0", "--train.sample_every=0",
              f"--train.checkpoint_every={options.every}", "--train.keep_checkpoints=1"]
    best = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for _ in range(options.rounds):
            for kind, more in KINDS.items():
                got = run(str(pathlib.Path(options.program).resolve()), pathlib.Path(folder) / "run", [*common, *more])
                best[kind] = min(best.get(kind, got), got, key=lambda one: one[0])
    base = best["no saves"][0]
    print(f"{'saves':<18}{'s/step':>10}{'cost':>9}{'saves':>7}{'GiB':>8}{'no step ran, s':>16}{'on the disk, s':>16}")
    for kind, (seconds, saves) in best.items():
        print(f"{kind:<18}{seconds:>10.4f}{100 * (seconds / base - 1):>8.2f}%{len(saves):>7}"
              f"{mean([s['bytes'] for s in saves]) / 2**30:>8.2f}{mean([s['stall_seconds'] for s in saves]):>16.3f}"
              f"{mean([s['seconds'] for s in saves]):>16.3f}")


if __name__ == "__main__":
    main()
