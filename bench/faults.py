#!/usr/bin/env python3
"""Kills one rank of a real training on two GPUs, mesh by mesh, and tells how long the others live on.

  python3 bench/faults.py TOKAMAK OUT [--only=EXPRESSION] [--seconds=480] [--device=cpu --model="--model.preset=small ..."]

Each row trains GPT-2 124M on the project's documentation, waits until steps have run, sends the signal (or breaks the
rank's GPU), and waits until no process of the run is left; with --restarts until the next step after that is done. Such a row
waits for a checkpoint, or a state in memory, before.
It holds when that takes less than LIMIT seconds (LIMIT_STOPPED where a rank was stopped; --restarted more until the next
step; after one SIGTERM the run saves, so it may take END, and do MORE_STEPS) and, where a rank was killed or stopped or lost its GPU, one message names it and its host. Rows that begin when --seconds
are over, and those of launchers that are not installed, are left out. --mesh replaces --mesh.data=2 of rows with --restarts.
A short table comes last, also after SIGTERM. The exit status is the number of rows that do not hold.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

LIMIT = 3.0  # seconds from the signal until the last process is gone
LIMIT_STOPPED = 5.0  # mesh.hang_seconds are 3
STEPS = 5  # that have run before it
START = 150  # seconds until then, at most
END = 60  # seconds that are waited behind it
MORE_STEPS = 2  # after SIGTERM, at most: the one in flight, and one behind it that a GPU holds
ROWS = [  # options, launcher, who gets which signal
    ("--mesh.data=2 --mesh.slots=2", "tokamak", 1, "KILL"),
    ("--mesh.data=2 --mesh.slots=2", "tokamak", 0, "KILL"),
    ("--mesh.data=2 --mesh.mailbox_mib=0", "tokamak", 1, "KILL"),
    ("--mesh.data=2 --mesh.mailbox_mib=0 --mesh.slots=1", "tokamak", 1, "KILL"),
    ("--mesh.data=2 --compile.cuda_graph=off", "tokamak", 1, "KILL"),
    ("--mesh.data=2 --compile.cuda_graph=off --mesh.mailbox_mib=0", "tokamak", 1, "KILL"),
    ("--mesh.tensor=2", "tokamak", 1, "KILL"),
    ("--mesh.data=2 --mesh.zero=3", "tokamak", 1, "KILL"),
    ("--mesh.context=2", "tokamak", 1, "KILL"),
    ("--mesh.pipe=2 --mesh.slots=2", "tokamak", 1, "KILL"),
    ("--mesh.data=2", "environment", 1, "KILL"),
    ("--mesh.data=2", "environment", 0, "KILL"),
    ("--mesh.data=2", "torchrun", 1, "KILL"),
    ("--mesh.data=2", "mpirun", 1, "KILL"),
    ("--mesh.data=2", "tokamak", 0, "INT INT"),
    ("--mesh.data=2", "tokamak", 0, "TERM"),
    ("--mesh.data=2 --mesh.zero=2", "tokamak", 1, "TERM"),
    ("--mesh.data=2", "tokamak", 1, "STOP"),
    ("--mesh.data=2 --mesh.mailbox_mib=0 --mesh.slots=1", "tokamak", 1, "STOP"),
    ("--mesh.data=2 --mesh.zero=3", "tokamak", 1, "STOP"),
    ("--mesh.tensor=2", "tokamak", 1, "STOP"),
    ("--mesh.pipe=2 --mesh.slots=2", "tokamak", 1, "STOP"),
    ("--mesh.data=2 --compile.cuda_graph=off", "tokamak", 1, "STOP"),
    ("--mesh.data=2 --train.checkpoint_every=5 --restarts=3", "tokamak", 1, "KILL"),
    ("--mesh.data=2 --train.checkpoint_every=5 --restarts=3", "tokamak", 1, "STOP"),
    ("--mesh.data=2 --memory_every=5 --restarts=3", "tokamak", 1, "KILL"),
    ("--mesh.data=2 --memory_every=5 --restarts=3", "tokamak", 1, "STOP"),
    # Faults of a GPU (tests/chaos/gpu_fault.c).
    ("--mesh.data=2", "tokamak", 1, "illegal"),
    ("--mesh.data=2", "tokamak", 0, "illegal"),
    ("--mesh.data=2 --mesh.mailbox_mib=0 --mesh.zero=3", "tokamak", 1, "illegal"),
    ("--mesh.data=2 --compile.cuda_graph=off", "tokamak", 1, "illegal"),
    ("--mesh.tensor=2", "tokamak", 1, "trap"),
    ("--mesh.pipe=2 --mesh.slots=2", "tokamak", 1, "lost"),
    ("--mesh.data=2 --train.checkpoint_every=5 --restarts=3", "tokamak", 1, "illegal"),
    ("--mesh.data=2 --memory_every=5 --restarts=3", "tokamak", 1, "illegal"),
]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def build_gpu_fault(folder):
    """The library that breaks the GPU of the process whose number is in the file that it is told of. GPU_FAULT_LIBRARY: one that is
    built already, for machines without a compiler."""
    if "GPU_FAULT_LIBRARY" in os.environ:
        return pathlib.Path(os.environ["GPU_FAULT_LIBRARY"]).resolve()
    library = folder / "gpu_fault.so"
    source = pathlib.Path(__file__).parent.parent / "tests" / "chaos" / "gpu_fault.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl", "-lpthread"], check=True)
    return library


def harm(victim, name, folder):
    if name.isupper():
        os.kill(victim, getattr(signal, "SIG" + name))
    else:
        request = folder / "gpu_fault.new"
        request.write_text(f"{victim} {name}")
        request.rename(folder / "gpu_fault")


def start(train, options, launcher, out, log, environment):
    """The processes that the caller has to wait for."""
    train = [*train, "--train.steps=100000", "--train.eval_every=0", "--train.sample_every=0", "--train.checkpoint_every=0",
             "--train.log_every=1", "--train.keep_checkpoints=1", f"--train.out={out}", *options.split()]
    where = dict(stdout=log, stderr=subprocess.STDOUT, start_new_session=True, env=environment)
    if launcher == "torchrun":
        return [subprocess.Popen(["torchrun", "--standalone", "--nproc_per_node=2", "--no-python", *train], **where)]
    if launcher == "mpirun":
        return [subprocess.Popen(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", *train], **where)]
    if launcher == "tokamak":
        return [subprocess.Popen(train, **where)]
    port = str(free_port())
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [subprocess.Popen(train, **{**where, "env": {**environment, **place, "RANK": str(r), "LOCAL_RANK": str(r)}})
            for r in range(2)]


def processes_of(out):
    """pid -> state, of processes that have this run's folder among their arguments."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if f"--train.out={out}".encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            pass
    return found


def rank_of(pid):
    environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    ranks = [v.split(b"=")[1] for v in environment if v.startswith((b"RANK=", b"OMPI_COMM_WORLD_RANK="))]
    return int(ranks[0]) if ranks else 0


def pid_of_rank(out, tokamak, rank):
    for pid in processes_of(out):
        if os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(tokamak) and rank_of(pid) == rank:
            return pid
    raise RuntimeError(f"there is no rank {rank}")


def lines_of(path):
    """Lines that are whole."""
    try:
        return [line for line in path.read_text().splitlines() if line.endswith("}")]
    except OSError:
        return []


def has_state(out, options, pid):
    """Whether there is something that the next start can go on from."""
    if "--memory_every" not in options:
        return any(json.loads(line)["event"] == "save" for line in lines_of(out / "events.jsonl"))
    environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    folders = [value.split(b"=", 1)[1].decode() for value in environment if value.startswith(b"TOKAMAK_MEMORY_FOLDER=")]
    return any(list(pathlib.Path(folder).rglob("step_*[0-9]")) for folder in folders)


def wait_for_steps(out, begin, children, is_ready):
    while time.monotonic() - begin < START and all(child.poll() is None for child in children):
        if len(lines_of(out / "metrics.jsonl")) >= STEPS and is_ready():
            return True
        time.sleep(0.05)
    return False


def has_gone_on(out):
    """Whether a run that was started again has done a step since."""
    starts = times_of(out, "start")
    return len(starts) > 1 and (out / "metrics.jsonl").stat().st_mtime > starts[-1]


def times_of(out, event):
    return [line["time"] for line in map(json.loads, lines_of(out / "events.jsonl")) if line["event"] == event]


def threads_of(pid):
    """What each thread of a process waits for in the kernel, counted."""
    waits = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            wait = f"{(task / 'comm').read_text().strip()}:{(task / 'wchan').read_text().strip()}"
        except OSError:
            continue
        waits[wait] = waits.get(wait, 0) + 1
    return waits


def named_by(log):
    """The first message of a log; its end where there is none."""
    said = re.findall(r"(?:error:|again, from) .*", log)
    return said[0] if said else log[-300:].replace("\n", " | ")


def run_row(train, options, launcher, rank, signals, folder, restarted):
    out = folder / "run"
    subprocess.run(["rm", "-rf", str(out), str(folder / "gpu_fault")], check=True)
    environment = dict(os.environ)
    if signals.islower():
        environment |= {"LD_PRELOAD": str(build_gpu_fault(folder)), "TOKAMAK_GPU_FAULT": str(folder / "gpu_fault")}
    with open(folder / "log.txt", "w") as log:
        children = start(train, options, launcher, str(out), log, environment)
    begin, restarts = time.monotonic(), "--restarts" in options
    row = {"options": options, "launcher": launcher, "rank": rank, "signal": signals, "held": False}
    try:
        if not wait_for_steps(out, begin, children,
                              lambda: not restarts or has_state(out, options, pid_of_rank(str(out), train[0], 1))):
            return {**row, "says": "did not start: " + (folder / "log.txt").read_text()[-300:]}
        row["start_s"] = round(time.monotonic() - begin, 1)
        victim, sent, clock = pid_of_rank(str(out), train[0], rank), time.monotonic(), time.time()
        row["step"] = len(lines_of(out / "metrics.jsonl"))
        for i, name in enumerate(signals.split()):
            time.sleep(0.3 * (i > 0))
            harm(victim, name, folder)
        while time.monotonic() - sent < END:
            for child in children:
                child.poll()
            left = {pid for pid, state in processes_of(str(out)).items() if state not in "ZX"}
            if not left or (restarts and has_gone_on(out)):
                break
            time.sleep(0.01)
        row["seconds"] = round(time.monotonic() - sent, 2)
        row["left"] = {pid: threads_of(pid) for pid in left}
        for name, event in (("told_s", "failure"), ("began_s", "start")):
            row |= {name: round(when - clock, 2) for when in times_of(out, event)[-1:] if when > clock}
    finally:
        for pid in processes_of(str(out)):
            os.kill(pid, signal.SIGKILL)
        for child in children:
            child.wait(20)
    row["says"] = named_by((folder / "log.txt").read_text())
    row["more_steps"] = len(lines_of(out / "metrics.jsonl")) - row["step"]
    if signals == "TERM":
        return {**row, "held": not row["left"] and row["more_steps"] <= MORE_STEPS + 1, "says": f"{row['more_steps']} steps more"}
    named = f"rank {rank} on " in row["says"] or signals == "INT INT"
    limit = (LIMIT_STOPPED if signals == "STOP" else LIMIT) if not restarts else restarted + LIMIT_STOPPED * (signals == "STOP")
    # torchrun's own message may come instead of that of rank 0, which it ends as soon as it sees the other gone.
    row["held"] = row["seconds"] < limit and (named or launcher in ("torchrun", "mpirun"))
    return row


def is_possible(arguments, options, launcher, signals):
    return (launcher not in ("torchrun", "mpirun") or shutil.which(launcher)) and \
        (arguments.device == "cuda" or not signals.islower())


def all_rows(arguments, train, rows):
    """Fills `rows`, one by one."""
    begin = time.monotonic()
    for options, launcher, rank, signals in ROWS:
        if not re.search(arguments.only, f"{options} {launcher} {signals}"):
            continue
        if "--restarts" in options:
            options = options.replace("--mesh.data=2", arguments.mesh)
        if not is_possible(arguments, options, launcher, signals) or time.monotonic() - begin > arguments.seconds:
            print(f"LEFT OUT: {options} {launcher} {signals}", flush=True)
            continue
        try:
            row = run_row(train, options, launcher, rank, signals, arguments.out, arguments.restarted)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            row = {"options": options, "launcher": launcher, "rank": rank, "signal": signals, "held": False, "says": str(error)}
        rows.append(row)
        print(f"{options}, {launcher}, {signals} {rank}: {row.get('seconds', '-')} s; {row['says'][:200]}", flush=True)
        (arguments.out / "faults.json").write_text(json.dumps(rows, indent=1))


def print_table(rows):
    print(f"{'mesh':62}{'launcher':12}{'fault, rank':12}{'start s':>8}{'told s':>8}{'began s':>8}{'ended s':>8}  held")
    for row in rows:
        print(f"{row['options']:62}{row['launcher']:12}{row['signal'] + ' ' + str(row['rank']):12}"
              f"{row.get('start_s', '-'):>8}{row.get('told_s', '-'):>8}{row.get('began_s', '-'):>8}{row.get('seconds', '-'):>8}  "
              f"{'yes' if row['held'] else 'NO'}")
    print("start: until it was ready for the fault; from the fault until events.jsonl told of it (told), the next start had loaded its state "
          "(began),\nno process was left or, with --restarts, the next step was done (ended)")
    print(f"{sum(row['held'] for row in rows)} of {len(rows)} held", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokamak")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default="", help="rows in whose options, launcher and signal this regular expression is found")
    parser.add_argument("--seconds", type=float, default=86400)
    parser.add_argument("--restarted", type=float, default=5, help="seconds from a kill to the next step that are allowed")
    parser.add_argument("--mesh", default="--mesh.data=2")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", default="--model.preset=gpt2-124m --train.batch=16")
    arguments = parser.parse_args()
    if arguments.device == "cpu":
        os.environ["TOKAMAK_RANKS"] = "processes"  # threads cannot be killed one by one
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("the time is over"))
    arguments.out = arguments.out.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    data = arguments.out / "data"
    subprocess.run(["rm", "-rf", str(data)], check=True)
    subprocess.run([arguments.tokamak, "prepare", "docs", f"--out={data}", "--vocab-size=2048"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    train = [arguments.tokamak, "train", f"--device={arguments.device}", *arguments.model.split(), f"--data.path={data}"]
    rows = []
    try:
        all_rows(arguments, train, rows)
    finally:
        print_table(rows)
    return sum(not row["held"] for row in rows)


if __name__ == "__main__":
    sys.exit(main())
