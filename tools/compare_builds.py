#!/usr/bin/env python3
"""Whether two builds of tokamak do the same: for a refactor, which must not change a bit.

  tools/compare_builds.py OLD NEW            both programs, each a path of build/release/bin/tokamak
  tools/compare_builds.py OLD NEW explain    only the cases whose names hold the word

Compares what `explain` prints of steps for a GPU that need not be there, and the losses and parameters of short trainings
on this CPU, byte for byte. Texts that differ are left as files; the last line counts.
"""
import argparse
import concurrent.futures
import difflib
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

GPU = "--device=cuda --nominal --graph --plan --model.preset=gpt2-124m --model.layers=3 --train.batch=8"
EXPLAIN = {
    "one": "",
    "fp32": "--compile.precision=fp32",
    "tf32": "--compile.precision=tf32",
    "fp16": "--compile.precision=fp16",
    "sgd": "--optimizer.name=sgd",
    "accumulation": "--train.total_batch=32768",
    "budget": "--compile.memory_budget_gib=0.5",
    "streams": "--compile.streams=2",
    "masks": "--data.mask_documents --model.dropout=0.1",
    "untied": "--model.tie_weights=false --model.bias=false",
    "data2": "--mesh.data=2",
    "data4 free": "--mesh.data=4 --mesh.slots=1",
    "zero1": "--mesh.data=4 --mesh.zero=1",
    "zero2": "--mesh.data=4 --mesh.zero=2 --train.total_batch=32768",
    "zero3": "--mesh.data=4 --mesh.zero=3",
    "zero3 free": "--mesh.data=8 --mesh.zero=3 --mesh.slots=1",
    "tensor2": "--mesh.data=1 --mesh.tensor=2",
    "tensor4 zero1": "--mesh.data=2 --mesh.tensor=4 --mesh.zero=1",
    "tensor2 whole": "--mesh.data=1 --mesh.tensor=2 --mesh.sequence=off",
    "context2": "--mesh.data=1 --mesh.context=2",
    "context2 zero3": "--mesh.data=2 --mesh.context=2 --mesh.zero=3",
    "pipe3": "--mesh.data=1 --mesh.pipe=3 --train.batch=2 --train.total_batch=16384",
    "zero bubble": "--mesh.data=1 --mesh.pipe=3 --mesh.schedule=zero_bubble --train.batch=2 --train.total_batch=16384",
    "pipe3 data2": "--mesh.data=2 --mesh.pipe=3 --mesh.zero=1 --train.batch=4 --train.total_batch=32768",
    "pipe budget": "--mesh.data=1 --mesh.pipe=3 --train.batch=2 --train.total_batch=16384 --compile.memory_budget_gib=0.3",
}
# More than a plan's text is too much: only the last lines, which hold times and memory.
PREDICT = {
    "6.7b tensor4": "--model.preset=gpt3-6.7b --mesh.data=2 --mesh.tensor=4 --train.batch=4",
    "6.7b zero3": "--model.preset=gpt3-6.7b --mesh.data=8 --mesh.zero=3 --train.batch=8",
    "1558m context2": "--model.preset=gpt2-1558m --mesh.data=1 --mesh.context=2 --train.batch=4",
}
TRAIN = {
    "one": "",
    "fp16 masks": "--compile.precision=fp16 --data.mask_documents --model.dropout=0.1",
    "bf16": "--compile.precision=bf16",
    "accumulation": "--train.total_batch=1024",
    "sgd": "--optimizer.name=sgd --optimizer.momentum=0.8",
    "budget": "--compile.memory_budget_gib=0.0002",
    "data2": "--mesh.data=2",
    "zero3": "--mesh.data=2 --mesh.zero=3 --train.total_batch=1024",
    "tensor2": "--mesh.data=1 --mesh.tensor=2",
    "context2": "--mesh.data=1 --mesh.context=2",
    "pipe2": "--mesh.data=1 --mesh.pipe=2 --train.total_batch=2048",
    "zero bubble": "--mesh.data=1 --mesh.pipe=2 --mesh.schedule=zero_bubble --train.total_batch=2048",
    "all": "--mesh.data=2 --mesh.tensor=2 --mesh.zero=1",
}
TINY = ("--model.layers=2 --model.heads=2 --model.width=32 --model.context=64 --model.vocab=0 --train.steps=6 "
        "--train.batch=8 --train.log_every=1 --train.eval_every=3 --train.eval_batches=2 --train.checkpoint_every=3 "
        "--train.keep_checkpoints=9 --threads=1 --device=cpu --compile.precision=fp32")
# What is measured, and so is never the same: an explain's compile times, a run's speed.
MEASURED = re.compile(r" +[\d.]+ ms(?= {2,}|$)|compiled in .*|took .*")


def call(program, arguments, folder):
    done = subprocess.run([program, *arguments.split()], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "TERM": "dumb"})
    return done.stdout + (f"exit {done.returncode}\n{done.stderr}" if done.returncode else "")


def explained(program, options, folder):
    return call(program, f"explain {options}", folder)


def trained(program, options, folder):
    out = folder / "run"
    text = call(program, f"train --data.path=data --train.out={out} {TINY} {options}", folder)
    hashes = [f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.relative_to(out)}"
              for path in sorted(out.rglob("*.safetensors")) if "latest" not in path.parts]
    losses = []
    if (out / "metrics.jsonl").exists():
        for line in (out / "metrics.jsonl").read_text().splitlines():
            losses.append(" ".join(re.findall(r'"(?:step|loss|val_loss|grad_norm|lr)": ?[^,}]+', line)))
    if not hashes:
        return "nothing was trained\n" + text
    config = re.sub(r'"[^"]*' + re.escape(str(folder)) + r'[^"]*"', '"PATH"', (out / "config.json").read_text())
    return "\n".join([*hashes, *losses, config])


def cases():
    for name, options in EXPLAIN.items():
        yield f"explain {name}", explained, f"{GPU} {options}"
    for name, options in PREDICT.items():
        yield f"explain {name}", explained, f"--device=cuda --nominal {options}"
    for name, options in TRAIN.items():
        yield f"train {name}", trained, options


def prepare(program, folder):
    words = "the king said unto them go and see who came from that land with gold by".split()
    text = " ".join(words[(i * i + i // 7) % len(words)] + (".\n" if i % 11 == 10 else "") for i in range(8000))
    (folder / "text.txt").write_text(text)
    call(program, "prepare text.txt --out=data --vocab_size=301", folder)


def compare(case, old, new, scratch):
    name, run, options = case
    texts = []
    for side, program in (("old", old), ("new", new)):
        folder = scratch / f"{name.replace(' ', '_')}_{side}"
        folder.mkdir()
        os.symlink(scratch / "data", folder / "data")
        texts.append(MEASURED.sub("...", run(program, options, folder).replace(str(folder), "FOLDER")))
        folder.with_suffix(".txt").write_text(texts[-1])
    if texts[0] == texts[1]:
        return f"same       {name}"
    lines = list(difflib.unified_diff(*(text.splitlines() for text in texts), "old", "new", lineterm="", n=0))
    return f"DIFFERENT  {name}: {len(lines)} lines\n" + "\n".join("    " + line[:200] for line in lines[:12])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("words", nargs="*", help="only cases whose names hold one of these")
    options = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="compare_builds_"))
    old, new = options.old.resolve(), options.new.resolve()
    prepare(old, scratch)
    chosen = [c for c in cases() if not options.words or any(word in c[0] for word in options.words)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda c: compare(c, old, new, scratch), chosen))
    print("\n".join(results))
    different = sum(result.startswith("DIFFERENT") for result in results)
    print(f"{len(results) - different} the same, {different} different; texts in {scratch}")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
