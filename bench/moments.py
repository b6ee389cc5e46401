#!/usr/bin/env python3
"""Kills a training at random moments of its life, on another mesh each time, and compares its bits at the end.

  python3 bench/moments.py TOKAMAK OUT [--seconds=240] [--moments=30] [--device=cpu --model="--model.preset=small ..."]

A run of --steps steps that nothing happens to comes first. Then runs are started in a folder, and one of their processes, or
all, is killed (SIGKILL) at a random moment, from the first moment of the start on; the next start goes on in that folder, on
another mesh of --meshes, its ranks of another kind of --ranks (rank_launchers.py). After at most KILLS the run goes to its end:
its parameters and optimizer states are compared with the first run's, the ledger has to say PROVEN, its folder has the same
files, and another folder begins. No process may live on for longer than LIMIT seconds, and nothing may be left in /dev/shm.
Ends after --moments kills, or when --seconds are over, or at SIGTERM. The last lines are a table, also of what was done until
then; the exit status is 1 where something did not hold. Moments follow from --seed.
"""
import collections
import itertools
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import faults  # noqa: E402  (its neighbours)
import rank_launchers  # noqa: E402
import rough_runs  # noqa: E402

LIMIT = 10.0
LAUNCHER = 4.0  # seconds after which a launcher ends ranks that one has left, which may wait for one that had not come yet
KILLS = 5  # of a run, at most
END = 150  # seconds that a run may take to its end
FILES = ("model.safetensors", "optimizer.safetensors")


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def memory_files():
    """Without those of other runs of this machine, which some process has open or mapped."""
    return {path.name for path in pathlib.Path("/dev/shm").iterdir() if path.name.startswith("tokamak-") and not is_used(path)}


def is_used(path):
    for process in filter(lambda entry: entry.name.isdigit(), pathlib.Path("/proc").iterdir()):
        try:
            links = [os.readlink(link) for link in (process / "fd").iterdir()]
            if any(link.startswith(str(path)) for link in links) or str(path) in (process / "maps").read_text():
                return True
        except OSError:
            pass
    return False


def files_of(run):
    return {str(path.relative_to(run)) for path in run.rglob("*")}


def ranks_of(mesh):
    """How many ranks --mesh options ask for."""
    sizes = [int(size) for axis, size in (part.split("=") for part in mesh.split()) if axis != "--mesh.zero"]
    return math.prod(sizes)


class Start:
    """One start of a run: its processes."""

    def __init__(self, children):
        self.children, self.terminated = children, False

    def terminate(self):
        """As torchrun does at once where one of its ranks is gone."""
        self.terminated = True
        for child in self.children:
            child.terminate()

    def wait(self, seconds):
        """The worst exit status; None: some have not ended."""
        until = time.monotonic() + seconds
        while any(child.poll() is None for child in self.children):
            if time.monotonic() > until:
                return None
            time.sleep(0.005)
        return max(abs(child.returncode) for child in self.children)


class Moments:
    def __init__(self, arguments):
        self.asked = arguments
        self.out = arguments.out.resolve()
        self.random = random.Random(arguments.seed)
        self.meshes = arguments.meshes.split(";")
        self.log = open(self.out / "starts.log", "w")
        self.launchers = rank_launchers.RankLaunchers(arguments.ranks.split(","), max(map(ranks_of, self.meshes)))
        self.killed = collections.Counter()  # phase -> kills
        self.starts = collections.Counter()  # kind of ranks -> starts
        self.waits, self.wrong, self.ended, self.by_launcher = [], [], 0, 0
        self.run = self.out / "even"  # that is started

    def say(self, text, loud=False):
        for file in (self.log, sys.stdout) if loud else (self.log,):
            print(f"{time.monotonic() - self.begin:6.1f} s: {text}", file=file, flush=True)

    def fault(self, text):
        self.wrong.append(text)
        self.say(f"WRONG: {text}", loud=True)

    def start(self, run, mesh, kind):
        command = rough_runs.command(self.asked, self.out, f"--train.steps={self.asked.steps}", "--train.eval_every=7",
                                     "--train.eval_batches=1", f"--mesh.slots={self.asked.slots}", f"--train.out={run}",
                                     *mesh.split())
        self.say(f"{run.name} on {mesh}, ranks: {kind}")
        self.starts[kind if ranks_of(mesh) > 1 else "one rank"] += 1
        self.step_before = rough_runs.last_step(run)
        return Start(self.launchers.start(kind, ranks_of(mesh), command, self.log))

    def start_on_any(self, run):
        return self.start(run, self.random.choice(self.meshes), self.random.choice(self.launchers.kinds))

    def content(self, run):
        last = sorted((run / "checkpoints").glob("step_*[0-9]"))[-1]
        return [last.name, *((last / name).read_bytes() for name in FILES)]

    def undisturbed(self):
        """Its seconds, when a GPU's caches are filled."""
        for _ in range(2 if self.asked.device == "cuda" else 1):
            subprocess.run(["rm", "-rf", str(self.run)], check=True)
            begin = time.monotonic()
            if self.start(self.run, self.meshes[0], self.launchers.kinds[0]).wait(END) != 0:
                sys.exit(f"the undisturbed run failed; see {self.log.name}")
        self.expected, self.files = self.content(self.run), files_of(self.run)
        return time.monotonic() - begin

    def phase(self, run):
        """What a run was in, as far as its files tell."""
        if not (run / "metrics.jsonl").exists():
            return "first start"
        if list((run / "checkpoints").glob("step_*.tmp")):
            return "save"
        return "start again" if rough_runs.last_step(run) == self.step_before else "steps"

    def kill(self, run, start, all_of_them):
        phase = self.phase(run)
        living = sorted(pid for pid, state in faults.processes_of(str(run)).items() if state not in "ZX")
        for pid in living if all_of_them else [self.random.choice(living or [start.children[0].pid])]:
            send(pid, signal.SIGKILL)
        begin = time.monotonic()
        while time.monotonic() - begin < 2 * LIMIT:
            start.wait(0)
            left = [pid for pid, state in faults.processes_of(str(run)).items() if state not in "ZX"]
            if not left:
                break
            if len(start.children) > 1 and time.monotonic() - begin > LAUNCHER and not start.terminated:
                self.by_launcher += 1
                start.terminate()
            time.sleep(0.01)
        self.waits.append(time.monotonic() - begin)
        self.killed[phase] += 1
        self.say(f"killed {'all' if all_of_them else 'one'} of {len(living)} in: {phase}; gone after {self.waits[-1]:.2f} s")
        if self.waits[-1] > LIMIT:
            self.fault(f"in {phase} others lived on for {self.waits[-1]:.1f} s")
        self.end_all(run, start)

    def end_all(self, run, start):
        for pid in faults.processes_of(str(run)):
            send(pid, signal.SIGKILL)
        start.wait(END)

    def one_start(self, run, seconds):
        """Whether the run came to its end before it was killed."""
        start = self.start_on_any(run)
        status = start.wait(self.random.random() * seconds)
        if status is None:
            self.kill(run, start, self.random.random() < 0.2)
            return False
        if status != 0:
            self.fault(f"{run.name} ended with {status}")
        return True

    def go_to_the_end(self, run):
        start = self.start_on_any(run)
        status = start.wait(END)
        if status is None:
            self.fault(f"{run.name}: its last start took longer than {END} s")
            self.end_all(run, start)
        elif status != 0:
            self.fault(f"{run.name}: its last start ended with {status}")
        else:
            self.check(run)

    def check(self, run):
        self.ended += 1
        if self.content(run) != self.expected:
            self.fault(f"{run.name} has other bits")
        told = subprocess.run([self.asked.tokamak, "data", "ledger", str(run)], capture_output=True, text=True, check=False)
        if "PROVEN: samples" not in told.stdout:
            self.fault(f"{run.name}: the ledger proves nothing: {told.stdout[-200:]}")
        if left := files_of(run) ^ self.files:
            self.fault(f"{run.name} has other files: {sorted(left)}")
        self.say(f"{run.name} was compared; {sum(self.killed.values())} kills, {self.ended} runs to their end", loud=True)
        subprocess.run(["rm", "-rf", str(run)], check=True)

    def go(self):
        before = memory_files()
        self.begin = time.monotonic()
        seconds = self.undisturbed()
        self.say(f"undisturbed it takes {seconds:.1f} s", loud=True)
        until = self.begin + self.asked.seconds

        def is_over():
            return sum(self.killed.values()) >= self.asked.moments or time.monotonic() + 2 * seconds >= until

        for number in range(10**6):
            run = self.run = self.out / f"rough{number}"
            for _ in range(self.random.randint(1, KILLS)):
                if is_over() or self.one_start(run, seconds):
                    break
            self.go_to_the_end(run)
            if is_over():
                break
        if left := memory_files() - before:
            self.fault(f"/dev/shm has {sorted(left)}")

    def table(self):
        kills = sum(self.killed.values())
        print(f"{'killed in':14} {'times':>6}     {'ranks are':14} {'starts':>6}")
        for killed, starts in itertools.zip_longest(sorted(self.killed.items()), sorted(self.starts.items()), fillvalue=("", "")):
            print(f"{killed[0]:14} {killed[1]:6}     {starts[0]:14} {starts[1]:6}".rstrip())
        for problem in self.wrong:
            print(f"WRONG: {problem}")
        print(f"{kills} moments, {self.ended} runs to their end with {'equal bits' if not self.wrong else 'PROBLEMS'}; others gone "
              f"after {max(self.waits, default=0):.2f} s at most" +
              (f", {self.by_launcher} times by their launcher" if self.by_launcher else ""), flush=True)
        return 1 if self.wrong or kills == 0 or self.ended == 0 else 0

    def end(self):
        """Also of a start that is under way."""
        while living := [pid for pid, state in faults.processes_of(str(self.run)).items() if state not in "ZX"]:
            for pid in living:
                send(pid, signal.SIGKILL)
            time.sleep(0.05)
        self.launchers.end()


def main():
    parser = rough_runs.options(__doc__, seconds=240, save_every=5,
                                model="--model.preset=gpt2-124m --model.layers=4 --train.batch=16")
    parser.add_argument("--moments", type=int, default=30)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slots", type=int, default=2, help="as many as the most ranks")
    parser.add_argument("--meshes", default="--mesh.data=2;--mesh.data=1;--mesh.data=2 --mesh.zero=2")
    parser.add_argument("--ranks", default="processes", help="threads, processes, launched, hosts; GPUs know no threads")
    arguments = parser.parse_args()
    rough_runs.clear(arguments)
    moments = Moments(arguments)
    rough_runs.raise_at_sigterm()
    try:
        moments.go()
    except rough_runs.TimeIsOver:
        print("the time is over")
    finally:
        moments.end()
    return moments.table()


if __name__ == "__main__":
    sys.exit(main())
