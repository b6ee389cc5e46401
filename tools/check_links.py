#!/usr/bin/env python3
"""Every relative link of a Markdown file leads to a file, and to a heading of it; source files that it names exist."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
NAMED = re.compile(r"`([a-z_]+(?:/[a-z0-9_]+)+\.(?:h|cpp|cu|py|sh))`")  # from the root, or any folder above it


def tracked_files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return ["/" + file for file in listed.split("\n") if file]


FILES = tracked_files()


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchors(path):
    """GitHub's names of the headings."""
    titles = re.findall(r"^#+ (.*)$", without_code(path.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def mistakes(path):
    text = without_code(path.read_text())
    for target, anchor in LINK.findall(text):
        file = (path.parent / target).resolve() if target else path
        if not file.exists():
            yield f"no file {target}"
        elif anchor and anchor not in anchors(file):
            yield f"no heading #{anchor} in {file.relative_to(ROOT)}"
    for name in NAMED.findall(text):
        if not any(file.endswith("/" + name) for file in FILES):
            yield f"no file {name}"


def main():
    pages = [file[1:] for file in FILES if file.endswith(".md")]
    found = [f"error: {page}: {mistake}" for page in pages for mistake in mistakes(ROOT / page)]
    print("\n".join(found) if found else "links: ok")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
