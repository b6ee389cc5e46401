#!/usr/bin/env python3
"""How fast recipes reach a loss (docs/quality.md). Python's standard library and the built program are all it needs.

  python3 bench/quality/run.py PROGRAM CORPUS OUT RECIPE[@SHARE][:KEY=VALUE,...]... [--key=value ...]

Trains each recipe (runs/quality/RECIPE.toml, or a path) with each seed on the corpus of corpus.py, and prints a table:
loss at the end, and what it took to reach the loss that the reference ended with. muon@0.66 has 66% of the reference's
tokens, and its schedule ends there; muon:optimizer.lr=3e-3 another rate.
Everything is in OUT: results.json (a finished run that is in it is not run again), table.md, shards, and the folder of
each run without its checkpoints. Ctrl-C, or SIGTERM, saves the run that is under way; the same command goes on.

  --seeds=1,2,3          seeds of weights and of the order of data
  --steps=N              steps of a run of the reference (others have as many tokens); or
  --train-seconds=S      as many as the reference makes in S seconds, which a short run of it finds out
  --reference=adamw      whose loss at the end is the target
  --tune=NAME            with --lr=A,B,... and --decay=A,B,...: also each rate with each decay
  --formats=NAME         also that recipe in each fast number format (NAME:compile.precision=fp32 is slow)
  --gpus=N               run so many at a time, each on a GPU of its own
  --set=KEY=VALUE        a setting of all runs, as in --set=model.preset=small; may be given several times
  --seconds=N            after so many no run is begun, nor one that would not end by then
  --evals=25             validations of a run
  --eval-tokens=524288   tokens of a validation
  --vocab=FOLDER         GPT-2's vocabulary; else CORPUS/gpt2; else one of 32768 tokens is trained
  --runs-in=FOLDER       where the folders of runs and the shards are, if not OUT
"""
import argparse
import itertools
import pathlib
import sys

import corpus_data
from harness import Harness, Stopped, path_of, recipe_of

FORMATS = ["compile.precision=tf32", "compile.precision=bf16", "compile.precision=bf16,compile.low_residual=off",
           "compile.precision=fp16", "compile.precision=fp16,compile.low_residual=off", "compile.precision=fp8"]


def rows_of(options):
    rows = list(options.recipes)
    if options.tune:
        grid = [[f"{key}={value}" for value in values.split(",")]
                for key, values in (("optimizer.lr", options.lr), ("optimizer.weight_decay", options.decay)) if values]
        rows += [f"{options.tune}:{','.join(settings)}" for settings in itertools.product(*grid)]
    if options.formats:
        rows += [f"{options.formats}:{settings}" for settings in FORMATS]
    return rows


def jobs_of(options):
    """Name of the row, recipe, settings, share of the steps and seed of each run; seed by seed, so that what is there
    when time ends can be compared."""
    jobs = []
    for name in rows_of(options):
        head, _, settings = name.partition(":")
        share = float(head.partition("@")[2] or 1)
        jobs.append((name, path_of(recipe_of(name)), [f"--{text}" for text in settings.split(",") if text], share))
    return [(*job, seed) for seed in map(int, options.seeds.split(",")) for job in jobs]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    for name in ("program", "corpus", "out"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("recipes", nargs="*")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--train-seconds", type=float, default=300)
    parser.add_argument("--reference", default="adamw")
    for name in ("--tune", "--lr", "--decay", "--formats"):
        parser.add_argument(name, default="")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--evals", type=int, default=25)
    parser.add_argument("--eval-tokens", type=int, default=524288)
    parser.add_argument("--vocab", type=pathlib.Path)
    parser.add_argument("--runs-in", type=pathlib.Path)
    return parser.parse_intermixed_args()


def main():
    options = parse()
    jobs = jobs_of(options)
    options.out.mkdir(parents=True, exist_ok=True)
    harness = Harness(options)
    stamp = corpus_data.prepare(options.program, options.corpus, options.vocab, harness.work / "data")
    harness.say("shards are there")
    try:
        harness.run_all(jobs, stamp)
    except Stopped:
        pass
    if harness.stopped:
        harness.say("stopped; the same command goes on")
    print("\n" + harness.save())
    return 130 if harness.stopped else bool(harness.failed)


if __name__ == "__main__":
    sys.exit(main())
