"""A work folder in which the program runs, disturbed or not, and the count of what held."""
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIMEOUT = 120
STACKS_SECONDS = 3

Result = namedtuple("Result", "status out err")


def complaint(result):
    """What is wrong with the end of a run that was disturbed: done, or an error with a message, is all that may be."""
    refused = result.status == 1 and "error:" in result.err
    return "" if result.status == 0 or refused else f"it ended with {result.status}: {result.err[-600:]}"


def send(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def with_all_below(process):
    """This one, which was started first, and all processes that it has started, and these."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:  # it has ended
        children = []
    return [process] + [one for child in children for one in with_all_below(int(child))]


def catches_stacks(process):
    """Whether SIGUSR1 would not end it."""
    try:
        caught = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{process}/status").read_text(), re.M)
    except OSError:
        return False
    return bool(caught) and int(caught[1], 16) >> (signal.SIGUSR1 - 1) & 1 == 1


def ask_for_stacks(processes):
    """Where their threads are, on standard error."""
    for process in filter(catches_stacks, processes):
        send(process, signal.SIGUSR1)
    time.sleep(STACKS_SECONDS)


class Work:
    def __init__(self, program, seed, folder):
        self.program = program
        self.random = random.Random(seed)
        self.folder = folder
        self.rows = []      # command, kind, cases, held
        self.failures = []
        self.shim = folder / "faults.so"
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", self.shim, HERE / "faults.c", "-ldl"],
                       check=True)

    def start(self, arguments, limit=None, files=None, launcher=(), environment=None, **chaos):
        """`chaos`: the settings of faults.c, in small letters; `limit`: of the size of files; `files`: of open ones;
        `launcher`: another program and its arguments, before this one's."""
        env = dict(os.environ, OMP_WAIT_POLICY="passive", **(environment or {}))
        if chaos:
            env.update({f"CHAOS_{name.upper()}": str(value) for name, value in chaos.items()}, LD_PRELOAD=str(self.shim))
        limits = [(resource.RLIMIT_FSIZE, limit), (resource.RLIMIT_NOFILE, files)]
        limits = [(what, (most, most)) for what, most in limits if most]
        before = (lambda: [resource.setrlimit(*one) for one in limits]) if limits else None
        return subprocess.Popen([*launcher, self.program, *arguments], cwd=self.folder, env=env, text=True,
                                preexec_fn=before, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def end(self, process):
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            hung = with_all_below(process.pid)
            ask_for_stacks(hung)
            for one in hung:
                send(one, signal.SIGKILL)
            out, err = process.communicate()
            err += "\n(it hung)"
        return Result(process.returncode, out, err)

    def run(self, arguments, **how):
        return self.end(self.start(arguments, **how))

    def run_ok(self, arguments, **how):
        result = self.run(arguments, **how)
        if result.status != 0:
            sys.exit(f"chaos: {' '.join(arguments)} ended with {result.status} on its own: {result.err}")
        return result

    def calls(self, arguments, **how):
        """How many calls a whole run makes."""
        count = self.folder / "count"
        self.run(arguments, count=count, **how)
        return int(count.read_text())

    def remove(self, name):
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def cases(self, command, kind, cases, check):
        """`check` of each case says what is wrong."""
        held = 0
        for case in cases:
            wrong = check(case)
            held += not wrong
            if wrong:
                self.failures.append(f"{command}, {kind}, {case}: {wrong}")
        self.rows.append((command, kind, len(cases), held))
