#!/usr/bin/env python3
"""Every folder of tests/ with C++ tests is built: it has a CMakeLists.txt and a sorted line in tests/CMakeLists.txt.
Files of tests that a source file names are there, and the tests that a page of docs/ names."""
import re
import sys
from pathlib import Path


# `Suite.Test`, or `Suite.*` for all of a suite.
NAMED = re.compile(r"`([A-Z]\w+)\.([A-Z]\w+|\*)`")
TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.M)


def missing_tests():
    there = {test for path in Path("tests").rglob("*_test.cpp") for test in TEST.findall(path.read_text())}
    there |= {(suite, "*") for suite, _ in there}
    for page in sorted(Path("docs").glob("*.md")):
        for test in NAMED.findall(page.read_text()):
            if test not in there:
                yield f"{page}: the test {'.'.join(test)} is not there"


def main():
    bad = []
    listed = re.findall(r"^add_subdirectory\((\w+)\)", Path("tests/CMakeLists.txt").read_text(), re.M)
    if listed != sorted(set(listed)):
        bad.append("tests/CMakeLists.txt: the folders are not sorted, or one is there twice")
    for folder in sorted(p for p in Path("tests").iterdir() if p.is_dir()):
        sources = sorted(folder.glob("*_test.cpp"))
        if sources and folder.name not in listed:
            bad.append(f"{folder}: its tests are not built; add it to tests/CMakeLists.txt")
        if sources and not (folder / "CMakeLists.txt").exists():
            bad.append(f"{folder}: it has no CMakeLists.txt")
        for path in folder.rglob("*.cpp"):
            if re.search(r"^TEST(_F|_P)?\(", path.read_text(), re.M) and not path.name.endswith("_test.cpp"):
                bad.append(f"{path}: it holds tests, so its name must end in _test.cpp")
    for path in sorted([*Path("src").rglob("*.*"), *Path("cli").rglob("*.*")]):
        if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
            for name in re.findall(r"\btests/[\w/]+\.\w+", path.read_text()):
                if not Path(name).exists():
                    bad.append(f"{path}: {name} is not there")
    bad += missing_tests()
    print("\n".join(bad) if bad else "tests: ok")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
