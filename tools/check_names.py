#!/usr/bin/env python3
"""No two types have the same full name: the linker would take one's functions for the other's, in silence.

Types are found by their layout, which clang-format fixes: those of a namespace begin a line. Names in an anonymous
namespace, and local ones, are the file's own; so are those of a GPU's kernels, each of which is a program.
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

FOLDERS = ("src", "cli", "include")
KERNELS = Path("src/backend/cuda/kernels")
OPENED = re.compile(r"(?:inline )?namespace( [\w:]+)? \{$")
CLOSED = re.compile(r"\}  // namespace\b")
TYPE = re.compile(r"(?:template <.*> )?(?:class|struct|union|enum(?: class)?) (?:alignas\(\w+\) )?(\w+)(?: final)?(?: :.*)?\s*\{")


def types(path):
    """Yields (full name, line number) of the types that other files could name."""
    within = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if opened := OPENED.match(line):
            within.append((opened.group(1) or "").strip())
        elif CLOSED.match(line):
            within.pop()
        elif (found := TYPE.match(line)) and "" not in within:
            yield "::".join([*within, found.group(1)]), number


def main():
    places = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in (".h", ".cpp") and KERNELS not in path.parents:
                for name, number in types(path):
                    places[name].append(f"{path}:{number}")
    twice = {name: at for name, at in places.items() if len(at) > 1}
    for name, at in sorted(twice.items()):
        print(f"{name} is defined more than once: {', '.join(at)}")
    print(f"names: {len(places)} types, {'failed' if twice else 'ok'}")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
