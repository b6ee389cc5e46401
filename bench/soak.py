#!/usr/bin/env python3
"""Trains on two ranks while one of them is killed, stopped or loses its GPU again and again, and tells what is kept.

  python3 bench/soak.py TOKAMAK OUT [--seconds=480] [--every=30] [--beside=0,1] [--device=cpu --model="--model.preset=small ..."]

An undisturbed run comes first, for --undisturbed seconds: its steps a second are 100%. With --beside it has GPUs of its own (of
CUDA_VISIBLE_DEVICES), and runs as long as the disturbed one, so that the bits of all steps are compared. The disturbed one starts again by
itself (--restarts), saves every --save-every steps, keeps states in memory every --memory-every, and gets a fault every --every
seconds: SIGKILL, SIGSTOP and an illegal address in turn, on rank 1 (without a GPU the first two). Steps count that are done when
the time is over (--seconds of it, or --within of both runs and their starts, or at SIGTERM), those that were computed twice once.
Digests of the steps that both runs have must be equal. The last lines are a table: seconds from a fault to the next new step, speed
kept, the run's own goodput, bits. The exit status is 1 where bits differ or the run did not go on.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import faults  # noqa: E402  (its neighbours)
import rough_runs  # noqa: E402
from rough_runs import TimeIsOver, last_step, lines  # noqa: E402


END = 15  # seconds that a run takes to save and end


def digests(run):
    return {line["step"]: line["digest"] for line in lines(run / "metrics.jsonl") if "digest" in line}


def end(child, run):
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(END)
    except (subprocess.TimeoutExpired, TimeIsOver):
        for pid in faults.processes_of(str(run)):
            os.kill(pid, signal.SIGKILL)


def wait_for_step(run, step, child, seconds=90):
    until = time.monotonic() + seconds
    while time.monotonic() < until and child.poll() is None:
        if last_step(run) >= step:
            return True
        time.sleep(0.1)
    return False


class Run:
    """A run's processes, on GPUs of its own."""

    def __init__(self, command, run, gpus, more=(), environment=None):
        self.run, self.tokamak = run, command[0]
        self.log = open(run.parent / f"{run.name}.log", "w")
        visible = {"CUDA_VISIBLE_DEVICES": gpus} if gpus else {}
        self.child = subprocess.Popen([*command, f"--train.out={run}", *more], stdout=self.log, stderr=subprocess.STDOUT,
                                      start_new_session=True, env={**os.environ, **(environment or {}), **visible})

    def begin(self):
        """When steps run: its rate is counted from here on."""
        if not wait_for_step(self.run, 10, self.child):
            sys.exit(f"{self.run.name} did not start; see {self.log.name}")
        self.since, self.first = time.monotonic(), last_step(self.run)

    def stop_counting(self):
        """When its steps are counted no more."""
        self.seconds, self.steps = time.monotonic() - self.since, last_step(self.run) - self.first

    def end(self):
        end(self.child, self.run)

    def rate(self):
        return self.steps / self.seconds

    def goodput(self):
        """The last line of it that the run printed; it does when it is asked to stop."""
        told = [line for line in pathlib.Path(self.log.name).read_text().splitlines() if line.startswith("goodput ")]
        return told[-1] if told else "no goodput was told"


class Faults:
    """That come to a run, one by one, with the seconds that each took it."""

    def __init__(self, rough, arguments, folder):
        self.rough, self.arguments, self.folder = rough, arguments, folder
        self.kinds = ["KILL", "STOP"] + (["illegal"] if arguments.device == "cuda" else [])
        self.begin, self.took, self.count = time.monotonic(), {}, 0

    def harm(self):
        try:
            victim = faults.pid_of_rank(str(self.rough.run), self.rough.tokamak, 1)
        except RuntimeError:
            return None  # it is between two starts
        kind, step = self.kinds[self.count % len(self.kinds)], last_step(self.rough.run)
        faults.harm(victim, kind, self.folder)
        self.count += 1
        return kind, step, time.monotonic()

    def wait_for_new_step(self, kind, step, begin, until):
        """A step behind the one at which the fault came; the one in flight does not count."""
        while time.monotonic() < until and self.rough.child.poll() is None:
            if len(faults.times_of(self.rough.run, "start")) > self.count and last_step(self.rough.run) > step + 2:
                self.took.setdefault(kind, []).append(time.monotonic() - begin)
                print(f"{begin - self.begin:6.1f} s: {kind} at step {step}, new steps after {self.took[kind][-1]:.1f} s", flush=True)
                return
            time.sleep(0.1)
        print(f"{begin - self.begin:6.1f} s: {kind} at step {step}, no new step until the end", flush=True)

    def go_on(self, until):
        # The last one leaves time to come back.
        while time.monotonic() + self.arguments.every / 2 < until and self.rough.child.poll() is None:
            time.sleep(max(0.0, min(self.begin + (self.count + 1) * self.arguments.every, until) - time.monotonic()))
            harmed = self.harm() if time.monotonic() + self.arguments.every / 2 < until else None
            if harmed:
                self.wait_for_new_step(*harmed, until)
            time.sleep(0.1)
        time.sleep(max(0.0, until - time.monotonic()))


def disturb(rough, arguments, folder):
    """The faults that came until the time was over."""
    came = Faults(rough, arguments, folder)
    try:
        came.go_on(min(came.begin + arguments.seconds, arguments.begin + arguments.within - END))
    except TimeIsOver:
        print("the time is over")
    return came


def rough_environment(arguments, folder):
    if arguments.device != "cuda":
        return {}
    return {"LD_PRELOAD": str(faults.build_gpu_fault(folder)), "TOKAMAK_GPU_FAULT": str(folder / "gpu_fault")}


def visible_gpus(numbers):
    """Of those that CUDA_VISIBLE_DEVICES names: those with these numbers, and the others."""
    if not numbers:
        return None, None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1,2,3").split(",")
    chosen = [visible[int(number)] for number in numbers.split(",")]
    return ",".join(chosen), ",".join(gpu for gpu in visible if gpu not in chosen)


def run_both(command, folder, arguments, runs):
    """The faults; `runs` are the undisturbed and the disturbed run, as far as they began."""
    beside, rest = visible_gpus(arguments.beside)
    memory = [f"--memory_every={arguments.memory_every}"] if arguments.memory_every else []
    runs.append(Run(command, folder / "even", beside))
    runs[0].begin()
    if not arguments.beside:
        time.sleep(arguments.undisturbed)
        runs[0].stop_counting()
        runs[0].end()
        print(f"undisturbed: {runs[0].rate():.3f} steps a second", flush=True)
    runs.append(Run(command, folder / "rough", rest, ["--restarts=1000", *memory], rough_environment(arguments, folder)))
    runs[1].begin()
    came = disturb(runs[1], arguments, folder)
    for run in runs[0 if arguments.beside else 1:]:
        run.stop_counting()
    return came


def tell(folder, runs, came):
    """The table; 1 where something did not hold."""
    even, rough = digests(folder / "even"), digests(folder / "rough")
    both = sorted(set(even) & set(rough))
    different = [step for step in both if even[step] != rough[step]]
    print(f"{'fault':10}{'times':>6}{'to new steps, s: mean':>24}{'most':>8}")
    for kind, took in came.took.items():
        print(f"{kind:10}{len(took):>6}{sum(took) / len(took):>24.1f}{max(took):>8.1f}")
    print(f"{came.count} faults in {runs[1].seconds:.0f} s: {runs[1].steps} steps, {runs[1].rate():.3f} a second, undisturbed "
          f"{runs[0].rate():.3f}: {100 * runs[1].rate() / runs[0].rate():.1f}% kept")
    print(f"its own {runs[1].goodput()}")
    print(f"bits of {len(both)} of {max(rough, default=0)} steps " +
          (f"DIFFER from step {different[0]}" if different else "equal"), flush=True)
    return 1 if different or not both or runs[1].steps == 0 else 0


def main():
    parser = rough_runs.options(__doc__, seconds=480, save_every=20, model="--model.preset=gpt2-124m --train.batch=64")
    parser.add_argument("--every", type=float, default=30)
    parser.add_argument("--undisturbed", type=float, default=60)
    parser.add_argument("--beside", default="", help="GPUs of the undisturbed run, by their place in CUDA_VISIBLE_DEVICES")
    parser.add_argument("--memory-every", type=int, default=0)
    parser.add_argument("--within", type=float, default=86400, help="seconds for all of it")
    parser.add_argument("--mesh", default="--mesh.data=2 --mesh.slots=2")
    arguments = parser.parse_args()
    arguments.begin = time.monotonic()
    rough_runs.raise_at_sigterm()
    folder = rough_runs.clear(arguments)
    command = rough_runs.command(arguments, folder, *arguments.mesh.split(), "--train.steps=100000", "--train.eval_every=0",
                                 "--train.log_every=1", "--train.digest_every=1", "--train.keep_checkpoints=1")
    runs = []
    try:
        came = run_both(command, folder, arguments, runs)
    except TimeIsOver:
        sys.exit("the time was over before both runs did steps")
    finally:
        for run in runs:
            run.end()
    return tell(folder, runs, came)


if __name__ == "__main__":
    sys.exit(main())
