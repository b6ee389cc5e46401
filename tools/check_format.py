#!/usr/bin/env python3
"""clang-format over all C++ files: checks them, or rewrites them with --write.

Versions format differently, so only version 14 (Debian 12) is used; without it the check is skipped and says so.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "14"
FOLDERS = ("src", "cli", "tests", "bench", "examples", "include")


def formatter():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        program = shutil.which(name)
        if program:
            text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            found = re.search(r"version (\d+)", text)
            if found and found.group(1) == VERSION:
                return program
    return None


def main():
    program = formatter()
    if not program:
        print(f"format: SKIPPED, clang-format {VERSION} is not installed (apt-get install clang-format-{VERSION})")
        return 0
    files = sorted(str(p) for folder in FOLDERS for p in Path(folder).rglob("*") if p.suffix in (".h", ".cpp"))
    if "--write" in sys.argv:
        return subprocess.run([program, "-i", *files]).returncode
    result = subprocess.run([program, "--dry-run", "-Werror", *files], capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", result.stderr, re.M)))
    if result.returncode:
        print("\n".join(f"{path}: not formatted" for path in wrong) or result.stderr)
        print(f"format: {len(wrong)} files differ; run: make format")
        return 1
    print("format: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
