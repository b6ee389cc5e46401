#!/usr/bin/env python3
"""Memory of each rank of a training on CPU processes, and bytes that it read: in the steps, and the peak before them
(of a run that goes on: while it loads its checkpoint) and behind a step (while it saves).

  TOKAMAK_RANKS=processes bench/host_memory.py build/release/bin/tokamak train RUN --train.steps=3 ...
"""
import os
import re
import subprocess
import sys
import threading
import time

INTERVAL = 0.02  # seconds


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def family(pid):
    return [pid] + [one for child in children(pid) for one in family(child)]


def resident(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024
    except (OSError, AttributeError):
        return 0.0


def read_bytes(pid):
    try:
        with open(f"/proc/{pid}/io") as file:
            return int(re.search(r"rchar: (\d+)", file.read()).group(1)) / 2**20
    except (OSError, AttributeError):
        return 0.0


def main():
    phase = ["load"]
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    peaks, last, read = {}, {}, {}

    def watch():
        while process.poll() is None:
            for pid in family(process.pid):
                now = resident(pid)
                here = peaks.setdefault(pid, {})
                here[phase[0]] = max(here.get(phase[0], 0.0), now)
                last.setdefault(pid, {})[phase[0]] = now
                if phase[0] == "load":
                    read[pid] = read_bytes(pid)
            time.sleep(INTERVAL)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for line in process.stdout:
        print(line, end="", flush=True)
        if re.match(r"\s*steps \d+ to|resuming after", line):
            phase[0] = "steps"
        if re.match(r"step ", line):
            phase[0] = "save" if re.search(r"step\s+(\d+)/\1 ", line) else "steps"
    watcher.join()
    print(f"{'process':>9}{'load: peak':>12}{'steps: peak':>13}{'last step + save: peak':>24}  MiB")
    for pid, of in sorted(peaks.items()):
        print(f"{pid:>9}{of.get('load', 0):>12.0f}{of.get('steps', 0):>13.0f}{of.get('save', 0):>24.0f}")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
