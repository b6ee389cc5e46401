#!/usr/bin/env python3
"""tools/docs_pages.py FOLDER: the Markdown files of a site: README.md as index.md, and docs/. Links to files that are no
pages (sources, results) become names, as a site has no sources; all others stay."""
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)")


def page_of(path):
    """Where a file of the project is in the site, or None."""
    if path == ROOT / "README.md":
        return Path("index.md")
    if path.suffix == ".md" and ROOT / "docs" in path.parents:
        return path.relative_to(ROOT / "docs")
    return None


def converted(text, source):
    here = page_of(source)

    def link(found):
        label, target, anchor = found.group(1), found.group(2), found.group(3) or ""
        if not target:
            return found.group(0)
        there = (source.parent / target).resolve()
        page = page_of(there)
        if page:
            return f"[{label}]({os.path.relpath(page, here.parent)}{anchor})"
        name = os.path.relpath(there, ROOT)
        return label if name in label or label.strip("`") == there.name else f"{label} (`{name}`)"

    parts = re.split(r"(^```.*?^```\n?)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def main():
    out = Path(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    for source in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        to = out / page_of(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(converted(source.read_text(), source))


if __name__ == "__main__":
    main()
