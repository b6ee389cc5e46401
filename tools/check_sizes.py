#!/usr/bin/env python3
"""Files and functions stay small: a warning above 400 and 60 lines, a failure above 700 and 100.

Functions are found by their layout, which clang-format fixes: a line that opens a brace after a parameter list, up to
the closing brace with the same indentation.
"""
import re
import sys
from pathlib import Path

FILE_WARN, FILE_FAIL = 400, 700
FUNCTION_WARN, FUNCTION_FAIL = 60, 100
FOLDERS = ("src", "cli", "tests", "bench", "tools", "examples", "include")
# Path, or "path:function" -> why it may be larger.
EXCEPTIONS = {
    "src/data/unicode_table.cpp": "a generated table",
}

NO_FUNCTION = re.compile(r"\s*(namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|case|return|=|})\b")


def first_line(lines, index):
    """The line where the declaration that opens its brace at `index` begins: parameters and initialisers may wrap."""
    start, open_parens = index, lines[index].count(")") - lines[index].count("(")
    while start > 0 and (open_parens > 0 or lines[start].lstrip().startswith(":") or lines[start - 1].endswith(",")):
        start -= 1
        open_parens += lines[start].count(")") - lines[start].count("(")
    return start


def functions(lines):
    """Yields (name, line number, length) of the outermost functions at namespace or class level."""
    index = 0
    while index < len(lines):
        if not (lines[index].endswith("{") and ")" in lines[index]):
            index += 1
            continue
        start = first_line(lines, index)
        indent = len(lines[start]) - len(lines[start].lstrip())
        if indent > 2 or NO_FUNCTION.match(lines[start]):
            index += 1
            continue
        end = index + 1
        while end < len(lines) and not re.match(" " * indent + r"}[;,)]*\s*(//.*)?$", lines[end]):
            end += 1
        name = re.search(r"([\w:~]+)\s*\(", lines[start])
        yield (name.group(1) if name else "?"), start + 1, end - start + 1
        index = end + 1


def check(path, warnings, failures):
    lines = path.read_text(errors="replace").splitlines()

    def judge(what, key, length, warn, fail):
        if key in EXCEPTIONS or length <= warn:
            return
        (failures if length > fail else warnings).append(f"{what}: {length} lines, aim below {warn}, limit {fail}")

    judge(str(path), str(path), len(lines), FILE_WARN, FILE_FAIL)
    if path.suffix in (".h", ".cpp", ".cu", ".cuh") and str(path) not in EXCEPTIONS:
        for name, number, length in functions(lines):
            judge(f"{path}:{number}: {name}", f"{path}:{name}", length, FUNCTION_WARN, FUNCTION_FAIL)


def main():
    warnings, failures = [], []
    for folder in FOLDERS:
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake"):
                check(path, warnings, failures)
    for key in EXCEPTIONS:
        if not Path(key.split(":")[0]).exists():
            failures.append(f"tools/check_sizes.py: the exception for {key} has no such file any more")
    for text in warnings:
        print("warning:", text)
    for text in failures:
        print("error:", text)
    if not failures:
        print(f"sizes: ok, {len(warnings)} warnings")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
