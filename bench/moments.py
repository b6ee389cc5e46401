#!/usr/bin/env python3
"""Kills a training at random moments of its life, on another mesh each time, and compares its bits at the end.

  python3 bench/moments.py TOKAMAK OUT [--seconds=240] [--moments=30] [--device=cpu --model="--model.preset=tiny ..."]

A run of --steps steps that nothing happens to comes first. Then runs are started in a folder, and one of their processes, or
all, is killed (SIGKILL) at a random moment, from the first moment of the start on; the next start goes on in that folder, on
one or two ranks. When all steps are done, its parameters and optimizer states are compared with the first run's, the ledger
has to say PROVEN, and another folder begins. No process may live on for longer than LIMIT seconds, and nothing may be left in
/dev/shm. Ends after --moments kills, or when --seconds are over. The last lines are a table; the exit status is 1 where
something did not hold. Moments follow from --seed.
"""
import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import faults  # noqa: E402  (its neighbours)
import rough_runs  # noqa: E402

LIMIT = 10.0
FILES = ("model.safetensors", "optimizer.safetensors")


def memory_files():
    return {path.name for path in pathlib.Path("/dev/shm").iterdir() if path.name.startswith("tokamak")}


class Moments:
    def __init__(self, arguments):
        self.asked = arguments
        self.out = arguments.out.resolve()
        self.random = random.Random(arguments.seed)
        self.meshes = arguments.meshes.split(";")
        self.log = open(self.out / "moments.log", "w")
        self.killed = collections.Counter()  # phase -> kills
        self.waits, self.wrong, self.ended = [], [], 0

    def say(self, text):
        print(f"{time.monotonic() - self.begin:6.1f} s: {text}", file=self.log, flush=True)

    def command(self, run, mesh):
        return rough_runs.command(self.asked, self.out, f"--train.steps={self.asked.steps}", "--train.eval_every=7",
                                  "--train.eval_batches=1", "--mesh.slots=2", f"--train.out={run}", *mesh.split())

    def start(self, run, mesh):
        return subprocess.Popen(self.command(run, mesh), stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)

    def content(self, run):
        last = sorted((run / "checkpoints").glob("step_*[0-9]"))[-1]
        return [last.name, *((last / name).read_bytes() for name in FILES)]

    def undisturbed(self):
        """Its seconds."""
        begin, run = time.monotonic(), self.out / "even"
        if self.start(run, self.meshes[0]).wait(150) != 0:
            sys.exit(f"the undisturbed run failed; see {self.log.name}")
        self.expected = self.content(run)
        return time.monotonic() - begin

    def phase(self, run):
        """What a run was in, as far as its files tell."""
        if not (run / "metrics.jsonl").exists():
            return "first start"
        if list((run / "checkpoints").glob("step_*.tmp")):
            return "save"
        return "start again" if rough_runs.last_step(run) == self.step_before else "steps"

    def kill(self, run, child, all_of_them):
        phase = self.phase(run)
        living = sorted(pid for pid, state in faults.processes_of(str(run)).items() if state not in "ZX")
        for pid in living if all_of_them else [self.random.choice(living or [child.pid])]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        begin = time.monotonic()
        while time.monotonic() - begin < 2 * LIMIT:
            child.poll()
            if not [state for state in faults.processes_of(str(run)).values() if state not in "ZX"]:
                break
            time.sleep(0.01)
        self.waits.append(time.monotonic() - begin)
        self.killed[phase] += 1
        self.say(f"killed {'all' if all_of_them else 'one'} of {len(living)} in: {phase}; gone after {self.waits[-1]:.2f} s")
        if self.waits[-1] > LIMIT:
            self.wrong.append(f"in {phase} others lived on for {self.waits[-1]:.1f} s")
            for pid in faults.processes_of(str(run)):
                os.kill(pid, signal.SIGKILL)
        child.wait()

    def one_start(self, run, seconds):
        """Whether the run came to its end before it was killed."""
        mesh = self.random.choice(self.meshes)
        self.step_before = rough_runs.last_step(run)
        self.say(f"{run.name} on {mesh}")
        child = self.start(run, mesh)
        try:
            status = child.wait(self.random.random() * seconds)
        except subprocess.TimeoutExpired:
            self.kill(run, child, self.random.random() < 0.2)
            return False
        if status != 0:
            self.wrong.append(f"{run.name} ended with {status}")
        return True

    def check(self, run):
        self.ended += 1
        if self.content(run) != self.expected:
            self.wrong.append(f"{run.name} has other bits")
        told = subprocess.run([self.asked.tokamak, "data", "ledger", str(run)], capture_output=True, text=True, check=False)
        if "PROVEN: samples" not in told.stdout:
            self.wrong.append(f"{run.name}: the ledger proves nothing: {told.stdout[-200:]}")
        subprocess.run(["rm", "-rf", str(run)], check=True)

    def go(self):
        before = memory_files()
        self.begin = time.monotonic()
        seconds = self.undisturbed()
        self.say(f"undisturbed it takes {seconds:.1f} s")
        until = self.begin + self.asked.seconds
        for number in range(10**6):
            run = self.out / f"rough{number}"
            while sum(self.killed.values()) < self.asked.moments and time.monotonic() + seconds < until:
                if self.one_start(run, seconds):
                    break
            if run.exists():  # to its end
                child = self.start(run, self.random.choice(self.meshes))
                if child.wait(150) != 0:
                    self.wrong.append(f"{run.name}: the last start failed")
                else:
                    self.check(run)
            if sum(self.killed.values()) >= self.asked.moments or time.monotonic() + seconds >= until:
                break
        if left := memory_files() - before:
            self.wrong.append(f"/dev/shm has {sorted(left)}")

    def table(self):
        kills = sum(self.killed.values())
        print(f"{'killed in':14} {'times':>6}")
        for phase, count in sorted(self.killed.items()):
            print(f"{phase:14} {count:6}")
        for problem in self.wrong:
            print(f"WRONG: {problem}")
        print(f"{kills} moments, {self.ended} runs to their end with {'equal bits' if not self.wrong else 'PROBLEMS'}; others gone "
              f"after {max(self.waits, default=0):.2f} s at most")
        return 1 if self.wrong or kills == 0 or self.ended == 0 else 0


def main():
    parser = rough_runs.options(__doc__, seconds=240, save_every=5,
                                model="--model.preset=gpt2-124m --model.layers=4 --train.batch=16")
    parser.add_argument("--moments", type=int, default=30)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--meshes", default="--mesh.data=2;--mesh.data=1;--mesh.data=2 --mesh.zero=2")
    arguments = parser.parse_args()
    rough_runs.clear(arguments)
    moments = Moments(arguments)
    moments.go()
    return moments.table()


if __name__ == "__main__":
    sys.exit(main())
