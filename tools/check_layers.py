#!/usr/bin/env python3
"""A folder of src/ may include only itself and the folders before it in LAYERS, and what compiles a step is pure: it
knows no clock, file, thread or environment (docs/architecture.md)."""
import re
import sys
from pathlib import Path

PURE = "base config graph ops cost model autodiff passes plan compile advise scaling".split()
RUNNING = "backend exec data tune checkpoint evaluate run ladder profile pages".split()
LAYERS = PURE + RUNNING
# Bans beyond the order: backends only obey, and data knows nothing of graphs.
BANS = {
    "backend": {"model", "autodiff", "plan", "compile", "advise"},
    "data": set(LAYERS) - {"base", "config", "data"},
}
# What a pure folder (but base and config, which read files) may not use; a report tells how long each pass took.
IMPURE = re.compile(r"#\s*include <(chrono|ctime|fstream|iostream|filesystem|thread|future|random)>|\bgetenv\(")
REPORTS_TIME = {"src/passes/runner.cpp"}


def violation(here, there):
    """Why a file of folder `here` must not include a file of folder `there`, or None."""
    if there in ("cli", "tests", "bench"):
        return f"{here} must not include {there}/"
    if there not in LAYERS:
        return None
    if LAYERS.index(there) > LAYERS.index(here) or there in BANS.get(here, ()):
        return f"{here} must not include {there}/"
    return None


def main():
    bad = []
    for folder in sorted(p for p in Path("src").iterdir() if p.is_dir()):
        if folder.name not in LAYERS:
            bad.append(f"{folder}: no layer of that name; add it to tools/check_layers.py")
            continue
        for path in sorted(folder.rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = re.match(r'\s*#\s*include "(\w+)/', line)
                problem = violation(folder.name, found.group(1)) if found else None
                if problem:
                    bad.append(f"{path}:{number}: {problem}")
                if folder.name in PURE[2:] and str(path) not in REPORTS_TIME and IMPURE.search(line):
                    bad.append(f"{path}:{number}: {folder.name} is pure: it must not use {IMPURE.search(line).group(0)}")
    print("\n".join(bad) if bad else "layers: ok")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
