#!/usr/bin/env python3
"""No two types have the same full name: the linker would take one's functions for the other's, in silence.

Types are found by their layout, which clang-format fixes: those of a namespace begin a line. Names in an anonymous
namespace, and local ones, are the file's own; so are those of a GPU's kernels, each of which is a program. In libraries
whose sources may be compiled as one (JOINED in cmake/TokamakLibrary.cmake) also types and constants in anonymous
namespaces differ; the compiler finds functions.
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

FOLDERS = ("src", "cli", "include")
KERNELS = Path("src/backend/cuda/kernels")
OPENED = re.compile(r"(?:inline )?namespace( [\w:]+)? \{$")
CLOSED = re.compile(r"\}  // namespace\b")
CONSTANT = re.compile(r"(?:static )?const(?:expr|init)? .*?\b(k[A-Z]\w*)(?:\[\w*\])?(?: =|\{)")
TYPE = re.compile(r"(?:template <.*> )?(?:class|struct|union|enum(?: class)?) (?:alignas\(\w+\) )?(\w+)(?: final)?(?: :.*)?\s*\{")


def names(path, own=False):
    """Yields (full name, line number) of the types that other files could name; `own`: of types and constants that they
    could not."""
    within = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if opened := OPENED.match(line):
            within.append((opened.group(1) or "").strip())
        elif CLOSED.match(line):
            within.pop()
        elif (found := TYPE.match(line) or (own and CONSTANT.match(line))) and ("" in within) == own:
            yield "::".join([*within, found.group(1)]), number


def joined_sources():
    """The sources of each library that may be compiled as one."""
    for lists in sorted(Path("src").rglob("CMakeLists.txt")):
        if re.search(r"^tokamak_library\(\w+ JOINED\b", lists.read_text(), re.MULTILINE):
            yield sorted(lists.parent.glob("*.cpp"))


def main():
    places = defaultdict(list)
    for sources in joined_sources():
        for path in sources:
            for name, number in names(path, own=True):
                places[f"{path.parent}: {name.replace('::', ' ').split()[-1]}"].append(f"{path}:{number}")
    for folder in FOLDERS:
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in (".h", ".cpp") and KERNELS not in path.parents:
                for name, number in names(path):
                    places[name].append(f"{path}:{number}")
    twice = {name: at for name, at in places.items() if len(at) > 1}
    for name, at in sorted(twice.items()):
        print(f"{name} is defined more than once: {', '.join(at)}")
    print(f"names: {len(places)}, {'failed' if twice else 'ok'}")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
