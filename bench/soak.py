#!/usr/bin/env python3
"""Trains on two ranks while one of them is killed, stopped or loses its GPU again and again, and tells what is kept.

  python3 bench/soak.py TOKAMAK OUT [--seconds=480] [--every=30] [--device=cpu --model="--model.preset=tiny ..."]

An undisturbed run comes first, for --undisturbed seconds: its steps a second are 100%. The disturbed one starts again by
itself (--restarts), saves every --save-every steps, keeps states in memory every --memory-every, and gets a fault every --every
seconds: SIGKILL, SIGSTOP and an illegal address in turn, on rank 1 (without a GPU the first two). Steps count that are done when
the time is over (--seconds of it, or --within of both runs and their starts, or at SIGTERM), those that were computed twice once.
Digests of the steps that both runs have must be equal. The last line is the table's row; the exit status is 1 where bits differ
or the run did not go on.
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


def undisturbed(command, run, log, seconds):
    """Steps a second."""
    child = subprocess.Popen([*command, f"--train.out={run}"], stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    if not wait_for_step(run, 10, child):
        sys.exit(f"the undisturbed run did not start; see {log.name}")
    begin, first = time.monotonic(), last_step(run)
    time.sleep(seconds)
    rate = (last_step(run) - first) / (time.monotonic() - begin)
    end(child, run)
    return rate


def disturbed(command, run, log, arguments, folder):
    """(steps, seconds, faults) from the first steps to the end."""
    kinds = ["KILL", "STOP"] + (["illegal"] if arguments.device == "cuda" else [])
    environment = dict(os.environ)
    if arguments.device == "cuda":
        environment |= {"LD_PRELOAD": str(faults.build_gpu_fault(folder)),
                        "TOKAMAK_GPU_FAULT": str(folder / "gpu_fault")}
    memory = [f"--memory_every={arguments.memory_every}"] if arguments.memory_every else []
    child = subprocess.Popen([*command, f"--train.out={run}", "--restarts=1000", *memory], stdout=log, stderr=subprocess.STDOUT,
                             start_new_session=True, env=environment)
    try:
        return disturb(child, run, command[0], arguments, folder, kinds)
    finally:
        end(child, run)


def disturb(child, run, tokamak, arguments, folder, kinds):
    if not wait_for_step(run, 10, child):
        sys.exit("the disturbed run did not start; see rough.log")
    begin, first, count = time.monotonic(), last_step(run), 0
    until = min(begin + arguments.seconds, arguments.begin + arguments.within - END)
    try:
        while time.monotonic() < until and child.poll() is None:
            time.sleep(max(0.0, min(arguments.every, until - time.monotonic())))
            if time.monotonic() >= until - 1:
                break
            try:
                victim = faults.pid_of_rank(str(run), tokamak, 1)
            except RuntimeError:
                continue  # it is between two starts
            faults.harm(victim, kinds[count % len(kinds)], folder)
            print(f"{time.monotonic() - begin:6.1f} s: {kinds[count % len(kinds)]} at step {last_step(run)}", flush=True)
            count += 1
    except TimeIsOver:
        print("the time is over")
    return last_step(run) - first, time.monotonic() - begin, count


def main():
    parser = rough_runs.options(__doc__, seconds=480, save_every=20, model="--model.preset=gpt2-124m --train.batch=64")
    parser.add_argument("--every", type=float, default=30)
    parser.add_argument("--undisturbed", type=float, default=60)
    parser.add_argument("--memory-every", type=int, default=0)
    parser.add_argument("--within", type=float, default=86400, help="seconds for all of it")
    parser.add_argument("--mesh", default="--mesh.data=2 --mesh.slots=2")
    arguments = parser.parse_args()
    arguments.begin = time.monotonic()
    rough_runs.raise_at_sigterm()
    folder = rough_runs.clear(arguments)
    command = rough_runs.command(arguments, folder, *arguments.mesh.split(), "--train.steps=100000", "--train.eval_every=0",
                                 "--train.log_every=1", "--train.digest_every=1")
    with open(folder / "even.log", "w") as log:
        rate = undisturbed(command, folder / "even", log, arguments.undisturbed)
    print(f"undisturbed: {rate:.3f} steps a second", flush=True)
    with open(folder / "rough.log", "w") as log:
        steps, seconds, count = disturbed(command, folder / "rough", log, arguments, folder)
    even, rough = digests(folder / "even"), digests(folder / "rough")
    both = sorted(set(even) & set(rough))
    different = [step for step in both if even[step] != rough[step]]
    print(f"{count} faults in {seconds:.0f} s: {steps} steps, {steps / seconds:.3f} a second, undisturbed {rate:.3f}: "
          f"{100 * steps / seconds / rate:.1f}% kept; bits of {len(both)} steps " +
          (f"DIFFER from step {different[0]}" if different else "equal"), flush=True)
    return 1 if different or not both or steps == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
