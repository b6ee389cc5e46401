#!/usr/bin/env python3
"""Faults on purpose: `tokamak prepare` and `train` are killed, get errors from their files, find their files changed.

What must hold: whatever happened, the same command, run again, gives the bytes of a run that nothing happened to; and a
run that gets an error ends with status 1 and a message, never as if nothing were wrong with other bytes.
Prints a table; the exit status is 1 if something did not hold, and then each case is named so that it can be repeated.
"""
import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORDS = "the king said unto them go and see who came from that land with gold by".split()
TIMEOUT = 120


class Scenario:
    """A command that works in the folder `out`, and what it leaves there."""

    def __init__(self, name, command, setup, state, content):
        self.name = name
        self.command = command  # of the folder's name
        self.setup = setup      # makes the input in a work folder
        self.state = state      # files of an interrupted run, of which bytes are changed
        self.content = content  # of a finished run: file name -> bytes


def all_files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def write_text(folder, size):
    rng = random.Random(1)
    words = " ".join(rng.choice(WORDS) for _ in range(size // 4))
    (folder / "text.txt").write_text(words)
    (folder / "more.jsonl").write_text("".join('{"text": "%s"}\n' % words[i:i + 60] for i in range(0, 6000, 60)))


def prepare_scenario():
    return Scenario(
        "prepare",
        lambda out: ["prepare", "text.txt", "more.jsonl", "--vocab-size=270", "--shard-tokens=2000", f"--out={out}",
                     "--threads=2"],
        lambda folder, run: write_text(folder, 40_000),
        lambda out: [p for p in (out / "prepare.unfinished").rglob("*") if p.is_file() and p.stat().st_size > 0],
        all_files)


def train_scenario():
    def setup(folder, run):
        write_text(folder, 8_000)
        run(["prepare", "text.txt", "--vocab-size=270", "--out=data"])

    def content(out):
        last = sorted((out / "checkpoints").glob("step_*"))[-1]
        return {f"{last.name}/{name}": (last / name).read_bytes()
                for name in ("model.safetensors", "optimizer.safetensors")}

    def checkpoints_with_one_before(out):
        """A run whose only checkpoint is damaged is refused, by name: it would begin anew in place of it."""
        return [p for folder in sorted(out.glob("checkpoints/step_*[0-9]"))[1:] for p in folder.iterdir() if p.is_file()]

    return Scenario(
        "train",
        lambda out: ["train", "--data.path=data", f"--train.out={out}", "--model.layers=1", "--model.heads=2",
                     "--model.width=16", "--model.context=16", "--model.vocab=0", "--train.batch=2", "--train.steps=12",
                     "--train.total_batch=32", "--train.checkpoint_every=4", "--train.keep_checkpoints=2",
                     "--train.eval_every=0", "--train.sample_every=0", "--device=cpu", "--threads=1",
                     "--compile.precision=fp32"],
        setup,
        checkpoints_with_one_before,
        content)


class Chaos:
    def __init__(self, scenario, program, seed, folder):
        self.scenario = scenario
        self.program = program
        self.random = random.Random(seed)
        self.folder = folder
        self.rows = []      # kind, cases, held
        self.failures = []
        scenario.setup(folder, self.run_ok)
        self.shim = folder / "faults.so"
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", self.shim, HERE / "faults.c", "-ldl"],
                       check=True)
        begin = time.monotonic()
        self.run_ok(scenario.command("straight"))
        self.seconds = time.monotonic() - begin
        self.expected = scenario.content(folder / "straight")

    def run(self, arguments, at=None, fault="", count=None, kill_after=None, limit=None):
        env = dict(os.environ, OMP_WAIT_POLICY="passive")
        if at or count:
            env.update(LD_PRELOAD=str(self.shim), CHAOS_AT=str(at or 0), CHAOS_FAULT=fault, CHAOS_COUNT=str(count or ""))
        before = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
        process = subprocess.Popen([self.program, *arguments], cwd=self.folder, env=env, text=True, preexec_fn=before,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if kill_after is not None:
            time.sleep(kill_after)
            process.send_signal(self.random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err += "\n(it hung)"
        return process.returncode, err

    def run_ok(self, arguments):
        status, err = self.run(arguments)
        if status != 0:
            sys.exit(f"chaos: {' '.join(arguments)} ended with {status} on its own: {err}")

    def calls(self):
        """How many calls a whole run makes."""
        count = self.folder / "count"
        self.fresh()
        self.run(self.scenario.command("broken"), count=count)
        return int(count.read_text())

    def fresh(self):
        shutil.rmtree(self.folder / "broken", ignore_errors=True)

    def differs(self):
        """Runs the command undisturbed; what is then wrong."""
        status, err = self.run(self.scenario.command("broken"))
        if status != 0:
            return f"the next run ended with {status}: {err[-600:]}"
        got = self.scenario.content(self.folder / "broken")
        names = sorted(set(got) ^ set(self.expected)) or [n for n in got if got[n] != self.expected[n]]
        return f"the next run gave others: {', '.join(names)}" if names else ""

    def cases(self, kind, cases, check):
        """`check` of each case says what is wrong."""
        held = 0
        for case in cases:
            self.fresh()
            wrong = check(case)
            held += not wrong
            if wrong:
                self.failures.append(f"{self.scenario.name}, {kind}, {case}: {wrong}")
        self.rows.append((self.scenario.name, kind, len(cases), held))

    def placed_kill(self, at):
        self.run(self.scenario.command("broken"), at=at, fault="KILL")
        return self.differs()

    def failed_call(self, case):
        at, fault = case
        status, err = self.run(self.scenario.command("broken"), at=at, fault=fault)
        if status not in (0, 1) or (status == 1 and "error:" not in err):
            return f"it ended with {status}: {err[-600:]}"
        return self.differs()

    def random_signal(self, after):
        self.run(self.scenario.command("broken"), kill_after=after)
        return self.differs()

    def file_limit(self, limit):
        status, err = self.run(self.scenario.command("broken"), limit=limit)
        if status != 0 and (status != 1 or "error:" not in err):
            return f"it ended with {status}: {err[-600:]}"
        return self.differs()

    def changed_file(self, case):
        at, choice, place, bit = case
        self.run(self.scenario.command("broken"), at=at, fault="KILL")
        files = sorted(self.scenario.state(self.folder / "broken"))
        if files:
            path = files[choice % len(files)]
            content = bytearray(path.read_bytes())
            content[place % len(content)] ^= 1 << bit
            path.write_bytes(content)
        return self.differs()

    def go(self, cases):
        rng, calls = self.random, self.calls()
        at = lambda: rng.randint(1, calls)
        every = sorted(rng.sample(range(1, calls + 1), min(cases, calls)))
        self.cases("kills at calls that change files", every, self.placed_kill)
        self.cases("signals at random moments", [rng.random() * self.seconds for _ in range(cases)], self.random_signal)
        self.cases("failed calls (EIO, ENOSPC)", [(at(), rng.choice(["EIO", "ENOSPC"])) for _ in range(cases)],
                   self.failed_call)
        self.cases("limits of file sizes", [rng.randint(1, 40_000) for _ in range(max(cases // 4, 1))], self.file_limit)
        self.cases("a changed bit in what was kept",
                   [(at(), rng.getrandbits(16), rng.getrandbits(30), rng.randrange(8)) for _ in range(cases)],
                   self.changed_file)


def print_table(rows):
    print(f"| {'command':<8} | {'fault':<34} | {'cases':>5} | {'held':>5} |")
    print(f"|{'-' * 10}|{'-' * 36}|{'-' * 6}:|{'-' * 6}:|")
    for name, kind, cases, held in rows:
        print(f"| {name:<8} | {kind:<34} | {cases:>5} | {held:>5} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="tokamak")
    parser.add_argument("--cases", type=int, default=4, help="of each kind of fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["prepare", "train"], help="one command")
    arguments = parser.parse_args()
    rows, failures = [], []
    for scenario in (prepare_scenario(), train_scenario()):
        if arguments.only not in (None, scenario.name):
            continue
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="tokamak_chaos_", dir=memory) as folder:
            chaos = Chaos(scenario, str(Path(arguments.program).resolve()), arguments.seed, Path(folder))
            chaos.go(arguments.cases)
            rows += chaos.rows
            failures += chaos.failures
    print_table(rows)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
