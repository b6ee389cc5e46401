#!/usr/bin/env python3
"""Faults on purpose: commands are killed, get errors from their files, find their files changed, run at the same time.

What must hold is told in flipped.py, hosts.py, interrupted.py, launchers.py, one_rank.py, power.py, ranks.py, saving.py,
strangers.py, surroundings.py, damaged_input.py, reading.py, together.py and files.py.
Prints a table; the exit status is 1 if something did not hold, and then each case is named so that it can be repeated.
"""
import argparse
import os
import sys
import tempfile
from pathlib import Path

from damaged_input import DamagedInput
from files import Endless, Outputs, SavedAndEvaluated
from flipped import Flipped
from hosts import DistantHosts, Hosts
from interrupted import Interrupted
from launchers import Launchers
from one_rank import OneRank
from power import Power
from ranks import Changing, Kept, LostRanks, Ranks, Restarted
from reading import Reading
from saving import Saving
from scenarios import prepare_scenario, ranks_scenario, train_scenario
from strangers import STEPS, Strangers
from surroundings import Surroundings
from together import ReadersOfARun, ReplacedData
from work import Work

PARTS = {"prepare": lambda work: Interrupted(work, prepare_scenario()),
         "train": lambda work: Interrupted(work, train_scenario()),
         "threads": lambda work: Interrupted(work, ranks_scenario("2 threads", "threads")),
         "processes": lambda work: Ranks(work, ranks_scenario("2 processes", "processes")),
         "saving": lambda work: Saving(work, train_scenario("train", steps=400, every=25)),
         "saving, ranks": lambda work: Saving(work, ranks_scenario("2 processes", "processes", steps=400, every=25)),
         "saving, shares": lambda work: Saving(work, ranks_scenario("2, zero 2", "processes", ["--mesh.zero=2"], steps=400, every=25)),
         "one rank": lambda work: OneRank(work, ranks_scenario("2 processes", "processes")),
         "strangers": lambda work: Strangers(work, ranks_scenario("2 processes", "processes", STEPS)),
         "restarted": lambda work: Restarted(work, ranks_scenario("2 processes", "processes", steps=400, every=100)),
         "changing": lambda work: Changing(work, train_scenario("any ranks", [
             "--mesh.slots=8", "--train.total_batch=256", "--model.layers=2", "--data.val_path=data", "--train.eval_batches=2",
             "--train.eval_every=15"], steps=120, every=20)),
         "kept": lambda work: Kept(work, ranks_scenario("2 processes", "processes", steps=400, every=1000)),
         "kept shares": lambda work: Kept(work, ranks_scenario("2, zero 2", "processes", ["--mesh.zero=2"], steps=400, every=1000)),
         "kept stages": lambda work: Kept(work, train_scenario("2 stages", [
             "--mesh.pipe=2", "--mesh.data=1", "--model.layers=2"], {"TOKAMAK_RANKS": "processes"}, steps=400, every=1000)),
         "lost ranks": lambda work: LostRanks(work, ranks_scenario("2 processes", "processes", steps=400, every=1000)),
         "hosts": lambda work: Hosts(work, ranks_scenario("2 hosts", "processes", ["--mesh.slots=2"], steps=1500, every=500)),
         "far hosts": lambda work: DistantHosts(work, ranks_scenario("far hosts", "processes", ["--mesh.slots=2"], steps=300, every=100)),
         "launchers": lambda work: Launchers(work, train_scenario("launchers", ["--mesh.slots=2"], steps=600, every=50)),
         "flipped": lambda work: Flipped(work, ranks_scenario("2 processes", "processes", [
             "--mesh.slots=4", "--train.total_batch=128", "--optimizer.lr=0", "--optimizer.weight_decay=0"], steps=1500, every=50)),
         "power, prepare": lambda work: Power(work, prepare_scenario(shard_tokens=200)),
         "power, train": lambda work: Power(work, train_scenario(steps=60, every=3)),
         "power, processes": lambda work: Power(work, ranks_scenario("2 processes", "processes", steps=60, every=3)),
         "surroundings": lambda work: Surroundings(work, prepare_scenario()),
         "training surroundings": lambda work: Surroundings(work, train_scenario()),
         "input": DamagedInput,
         "reading": Reading,
         "readers": ReadersOfARun,
         "replaced": ReplacedData,
         "outputs": Outputs,
         "endless": Endless,
         "evaluated": SavedAndEvaluated}

# Others do nearly the same with another kind of run.
SHORT = {"prepare", "processes", "saving, shares", "one rank", "restarted", "changing", "kept stages", "lost ranks", "hosts",
         "launchers", "flipped", "power, prepare", "power, processes", "surroundings", "input", "reading", "readers",
         "replaced", "outputs", "endless", "evaluated"}


def print_table(rows):
    print(f"| {'command':<11} | {'fault':<34} | {'cases':>5} | {'held':>5} |")
    print(f"|{'-' * 13}|{'-' * 36}|{'-' * 6}:|{'-' * 6}:|")
    for name, kind, cases, held in rows:
        print(f"| {name:<11} | {kind:<34} | {cases:>5} | {held:>5} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="tokamak")
    parser.add_argument("--cases", type=int, default=4, help="of each kind of fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--short", action="store_true", help="one part of several that are nearly alike")
    arguments = parser.parse_args()
    program = str(Path(arguments.program).resolve())
    rows, failures = [], []
    for name, part in PARTS.items():
        if arguments.only not in (None, name) or (arguments.short and name not in SHORT):
            continue
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="tokamak_chaos_", dir=memory) as folder:
            work = Work(program, arguments.seed, Path(folder))
            part(work).go(arguments.cases)
            rows += work.rows
            failures += work.failures
    print_table(rows)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
