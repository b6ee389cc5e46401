#!/usr/bin/env python3
"""A folder of src/ may include only itself and the folders above it in LAYERS (docs/architecture.md)."""
import re
import sys
from pathlib import Path

LAYERS = "base config graph ops model autodiff passes plan backend exec data train advise profile".split()
# Bans beyond the order: plans are pure, backends only obey, and data knows nothing of graphs.
BANS = {"plan": {"backend"}, "backend": {"plan"}, "data": set(LAYERS) - {"base", "config", "data"}}


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
    print("\n".join(bad) if bad else "layers: ok")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
