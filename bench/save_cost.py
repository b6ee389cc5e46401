#!/usr/bin/env python3
"""What checkpoints cost a run: the same steps without saves, with saves beside the steps, and with saves that training
waits for.

  bench/save_cost.py build/release/bin/tokamak --every=100 --steps=400 -- --model.preset=gpt2 --mesh.data=2 ...

Behind -- are options of `tokamak train`. Seconds are those between two lines of metrics.jsonl, from step WARM on: all that a
save costs the steps, also what the thread that writes takes from them. Of each save `events.jsonl` tells how long no step ran,
and how long it took until the checkpoint was on the disk. The runs take turns, --rounds times; a row is of the best of them.
"within" compares steps of one run: those from a save's first step until it is on the disk, beside all others, in percent of EVERY
steps; so it does not see that runs differ. "host" is the most memory that a process of the run had at any time, with what it
shares and has pinned. Rounds that cannot end within --seconds, going by those before, are left out.
"""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import host_memory  # noqa: E402  (its neighbour)

WARM = 5  # steps that are left out
LEAST_OTHERS = 20  # steps without a save beside them, to compare with
KINDS = {"none": ["--train.checkpoint_every=0"],
         "beside": ["--train.background_saves=true"],
         "waits": ["--train.background_saves=false"]}


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def peak(pid):
    """MiB that a process had at most until now."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024
    except (OSError, AttributeError):
        return 0.0


def train(command):
    """(the result, the highest peak of a process of it)."""
    most = 0.0
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        while process.poll() is None:
            most = max([most, *map(peak, host_memory.family(process.pid))])
            time.sleep(0.2)
        log.seek(0)
        return process.returncode, log.read()[-2000:], most


def cost_within(steps, saves, every):
    """What a save costs its own run, in percent of `every` steps; None without saves. `steps`: wall seconds of each step's end. Steps
    before the first save are left out, as the device is cooler; where hardly any is left that no save is beside, None."""
    beside, others = [], []
    first = min((save["step"] for save in saves), default=0)
    for before, step in zip(steps[first - 1:], steps[first:]):
        taken = step["wall_seconds"] - before["wall_seconds"]
        is_beside = any(save["step"] < step["step"] and before["wall_seconds"] < save["until"] for save in saves
                        if save["step"] > step["step"] - every)
        (beside if is_beside else others).append(taken)
    if not saves or len(others) < LEAST_OTHERS:
        return None
    usual = statistics.mean(others)
    return 100 * (sum(beside) - len(beside) * usual) / len(saves) / (every * usual)


def run(program, out, arguments, every):
    shutil.rmtree(out, ignore_errors=True)
    status, said, most = train([program, "train", f"--train.out={out}", *arguments])
    if status != 0:
        sys.exit(f"save_cost: {' '.join(arguments)} ended with {status}: {said}")
    steps = lines_of(out / "metrics.jsonl")
    last = len(steps) - 1
    seconds = steps[last]["wall_seconds"] - steps[WARM - 1]["wall_seconds"]
    saves = [e for e in lines_of(out / "events.jsonl") if e["event"] == "save" and e["step"] < steps[last]["step"]]
    for save in saves:
        save["until"] = steps[save["step"] - 1]["wall_seconds"] + save["seconds"]
    return seconds / (last - WARM + 1), saves, cost_within(steps, saves, every), most


def mean(values):
    return sum(values) / len(values) if values else 0.0


def print_table(best):
    base = best["none"][0] if "none" in best else None
    print(f"{'saves':<8}{'s/step':>9}{'cost':>9}{'within':>9}{'saves':>7}{'GiB':>8}{'no step ran, s':>16}{'on the disk, s':>16}"
          f"{'host, MiB':>11}")
    for kind, (seconds, saves, within, most) in best.items():
        cost = f"{100 * (seconds / base - 1):.2f}%" if base else "-"
        print(f"{kind:<8}{seconds:>9.4f}{cost:>9}{'-' if within is None else f'{within:.2f}%':>9}{len(saves):>7}"
              f"{mean([s['bytes'] for s in saves]) / 2**30:>8.2f}{mean([s['stall_seconds'] for s in saves]):>16.3f}"
              f"{mean([s['seconds'] for s in saves]):>16.3f}{most:>11.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--every", type=int, default=100, help="steps between saves")
    parser.add_argument("--steps", type=int, default=301, help="of each run")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS), help="which of these")
    parser.add_argument("--seconds", type=float, default=86400)
    parser.add_argument("--folder", help="where the runs go (a temporary folder)")
    own = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    options = parser.parse_args(own)
    train_options = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
    common = [*train_options, f"--train.steps={options.steps}", "--train.eval_every=0", "--train.sample_every=0",
              f"--train.checkpoint_every={options.every}", "--train.keep_checkpoints=1"]
    best, begin, longest = {}, time.monotonic(), 0.0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for number in range(options.rounds * len(options.kinds.split(","))):
            since = time.monotonic()
            if since - begin + longest > options.seconds:
                print(f"{number} runs; the time is over")
                break
            kind = options.kinds.split(",")[number % len(options.kinds.split(","))]
            got = run(str(pathlib.Path(options.program).resolve()), pathlib.Path(folder) / "run", [*common, *KINDS[kind]], options.every)
            longest = max(longest, time.monotonic() - since)
            print(f"{kind}: {got[0]:.4f} s/step, {time.monotonic() - since:.0f} s in all", flush=True)
            best[kind] = min(best.get(kind, got), got, key=lambda one: one[0])
    print_table(best)


if __name__ == "__main__":
    main()
