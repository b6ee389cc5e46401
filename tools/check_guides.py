#!/usr/bin/env python3
"""tools/check_guides.py PROGRAM [GUIDE.md ...]: runs the commands of docs/guides that stand below <!-- tried -->, each
guide in an empty folder of its own, with fewer steps. CTest runs it as e2e.guides.

A guide that begins with <!-- before: run gpt2 --> finds these folders: a small run on my.txt, and a model in GPT-2's form,
which stands for the one of Hugging Face's hub. my.txt is always there.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRIED = re.compile(r"<!-- tried -->\n```\n(.*?)^```", re.M | re.S)
BEFORE = re.compile(r"<!-- before: ([\w ]+) -->")
FEWER = [(re.compile(r"--(train\.)?steps=\d+"), r"--\1steps=3"),
         (re.compile(r"--train\.(eval_every|sample_every)=\d+"), r"--train.\1=1"),
         (re.compile(r"--optimizer\.warmup_steps=\d+"), "--optimizer.warmup_steps=1")]
SIZES = ("--model.layers=1 --model.heads=2 --model.width=32 --model.context=64 --train.batch=2 --train.steps=2 "
         "--train.eval_batches=1")
BEFOREHAND = {
    "run": f"tokamak prepare my.txt --out=data0 --vocab-size=300 && tokamak train --data.path=data0 --train.out=run "
           f"--model.vocab=0 {SIZES}",
    "gpt2": f"tokamak prepare my.txt --out=data0 --vocab-size=300 && tokamak train --data.path=data0 --train.out=run0 "
            f"--model.vocab=0 {SIZES} && tokamak export run0 gpt2 && rm -r run0 data0",
}


def commands_of(text):
    """The marked commands, each on one line, with fewer steps."""
    for block in TRIED.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            for pattern, fewer in FEWER:
                line = pattern.sub(fewer, line)
            if line.strip():
                yield line


def run(command, folder, environment):
    """What went wrong, or None."""
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        return None
    return f"{command}\n  ended with {done.returncode}:\n{(done.stdout + done.stderr)[-1500:]}"


def check(guide, program):
    text = guide.read_text()
    commands = list(commands_of(text))
    environment = dict(os.environ, PATH=f"{program.parent}{os.pathsep}{os.environ['PATH']}", OMP_NUM_THREADS="2")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = sorted((ROOT / "docs").glob("*.md"))
        (folder / "my.txt").write_text("\n\n".join(page.read_text() for page in pages)[:400000])
        before = BEFORE.search(text)
        for needed in before.group(1).split() if before else []:
            if problem := run(BEFOREHAND[needed], folder, environment):
                return 0, problem
        for command in commands:
            if problem := run(command, folder, environment):
                return len(commands), problem
    return len(commands), None


def main():
    program = Path(sys.argv[1]).resolve()
    guides = [Path(name) for name in sys.argv[2:]] or sorted((ROOT / "docs/guides").glob("*.md"))
    failed = False
    for guide in guides:
        count, problem = check(guide, program)
        print(f"{guide.name}: {count} commands {'FAILED: ' + problem if problem else 'ok'}", flush=True)
        failed = failed or bool(problem)
    return failed


if __name__ == "__main__":
    sys.exit(main())
