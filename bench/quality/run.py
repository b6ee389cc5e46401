#!/usr/bin/env python3
"""How fast recipes reach a loss (docs/quality.md). Python's standard library and the built program are all it needs.

  python3 bench/quality/run.py PROGRAM CORPUS OUT RECIPE[@SHARE][:KEY=VALUE,...]... [--key=value ...]

Trains each recipe (runs/quality/RECIPE.toml, or a path) with each seed on the corpus of corpus.py, and prints a table:
loss at the end, and what it took to reach the loss that the reference ended with. muon@0.66 has 66% of the steps, and
its schedule ends there; muon:optimizer.lr=3e-3 another rate.
Everything is in OUT: results.json (a finished run that is in it is not run again), table.md, shards, and the folder of
each run without its checkpoints. Ctrl-C, or SIGTERM, saves the run that is under way; the same command goes on.

  --seeds=1,2,3          seeds of weights and of the order of data
  --steps=N              steps of a run; or
  --train-seconds=S      as many as the reference makes in S seconds, which a short run of it finds out
  --reference=adamw      whose loss at the end is the target
  --tune=NAME            with --lr=A,B,... and --decay=A,B,...: also each rate with each decay
  --formats=NAME         also that recipe in each number format
  --set=KEY=VALUE        a setting of all runs, as in --set=model.preset=small; may be given several times
  --seconds=N            after so many no run is begun, nor one that would not end by then
  --evals=25             validations of a run
  --eval-tokens=524288   tokens of a validation
  --vocab=FOLDER         GPT-2's vocabulary; else CORPUS/gpt2; else one of 32768 tokens is trained
  --runs-in=FOLDER       where the folders of runs and the shards are, if not OUT
"""
import argparse
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import corpus_data
import curve
import table

RECIPES = pathlib.Path(__file__).parents[2] / "runs" / "quality"
FORMATS = ["compile.precision=fp32", "compile.precision=tf32", "compile.precision=bf16", "compile.precision=bf16,compile.low_residual=off",
           "compile.precision=fp16", "compile.precision=fp16,compile.low_residual=off"]
PROBE_STEPS = 150  # of the run that finds out how many steps fit; the last half of them counts


class Stopped(Exception):
    """By a signal."""


class Harness:
    def __init__(self, options):
        self.options, self.out = options, options.out
        self.work = options.runs_in or options.out
        self.asked = {}  # what runs must share to be compared
        self.began, self.child, self.stopped, self.failed = time.monotonic(), None, False, []
        self.path = self.out / "results.json"
        self.results = json.loads(self.path.read_text()) if self.path.exists() else {"runs": [], "lengths": []}
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.stop)

    def stop(self, *_):
        self.stopped = True
        if self.child:
            self.child.send_signal(signal.SIGTERM)

    def save(self):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.results, indent=1) + "\n")
        os.replace(new, self.path)
        text = table.format_table(table.comparable(self.results["runs"], self.asked), self.options.reference)
        (self.out / "table.md").write_text(text)
        return text

    def elapsed(self):
        return time.monotonic() - self.began

    def train(self, recipe, settings, folder, log):
        """Exit status of a training; its settings come before those that are asked for all runs."""
        command = [self.options.program, "train", recipe, *settings, *(f"--{text}" for text in self.options.set),
                   f"--data.path={self.work / 'data' / 'train'}", f"--data.val_path={self.work / 'data' / 'val'}", f"--train.out={folder}"]
        if self.stopped:
            raise Stopped
        with open(log, "ab") as said:  # a session of its own: a terminal's Ctrl-C reaches it through stop() alone
            self.child = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, start_new_session=True)
            status = self.child.wait()
            self.child = None
        if self.stopped:
            raise Stopped
        return status

    def resolved(self, recipe, settings):
        """Sequences and context of a recipe, from the configuration that the program prints."""
        command = [self.options.program, "train", recipe, *settings, *(f"--{text}" for text in self.options.set), "--print-config"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{recipe}: {done.stderr or done.stdout}")
        section, found = "", {}
        for line in done.stdout.splitlines():
            if head := re.match(r"\[(\w+)\]", line):
                section = head.group(1) + "."
            elif value := re.match(r"(\w+) = ([^#]*)", line):
                found[section + value.group(1)] = value.group(2).strip()
        return int(found["train.batch"]), int(found["model.context"])

    def steps(self, stamp):
        """Steps of a whole run."""
        options = self.options
        if options.steps:
            return options.steps
        recipe = path_of(recipe_of(options.reference))
        asked = {"seconds": options.train_seconds, "recipe": text_of(recipe), "set": options.set, "data": stamp}
        for length in self.results["lengths"]:
            if length["of"] == asked:
                return length["steps"]
        folder = self.work / "runs" / "probe"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        settings = [f"--train.steps={PROBE_STEPS}", "--train.eval_every=0", "--train.checkpoint_every=0", "--train.sample_every=0",
                    "--optimizer.warmup_steps=10"]
        if self.train(recipe, settings, folder / "run", folder / "log"):
            sys.exit(f"the run that finds out the length failed:\n{(folder / 'log').read_text()[-2000:]}")
        ms = curve.step_ms(curve.read_metrics(folder / "run" / "metrics.jsonl"))
        shutil.rmtree(folder)
        steps = round(options.train_seconds * 1000 / ms)
        print(f"{options.reference}: {ms:.2f} ms a step, so {steps} steps in {options.train_seconds} s", flush=True)
        self.results["lengths"].append({"of": asked, "steps": steps, "ms": ms})
        self.save()
        return steps

    def expected(self, steps):
        """Seconds of a run, by the slowest that is known."""
        return max((run["seconds"] * steps / run["identity"]["steps"] for run in self.results["runs"] if not run["diverged"]), default=0)

    def run(self, job, steps):
        name, recipe, settings, share, seed = job
        steps = max(1, round(steps * share))
        options = self.options
        identity = {"recipe": text_of(recipe), "settings": settings, "steps": steps, "seed": seed, **self.asked}
        if any(run["identity"] == identity for run in self.results["runs"]):
            return
        if self.elapsed() + self.expected(steps) > options.seconds:
            print(f"{name} seed {seed}: not begun, it would not end within {options.seconds} s", flush=True)
            return
        batch, context = self.resolved(recipe, settings)
        settings = [*settings, f"--train.steps={steps}", f"--train.seed={seed}", f"--train.eval_every={max(1, round(steps / options.evals))}",
                    f"--train.eval_batches={max(1, round(options.eval_tokens / (batch * context)))}", "--train.checkpoint_every=0",
                    "--train.sample_every=0"]
        folder = self.work / "runs" / re.sub(r"[^\w.=@-]", "_", f"{name}-{seed}")
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "identity.json").exists() and json.loads((folder / "identity.json").read_text()) != identity:
            shutil.rmtree(folder)  # of other settings
            folder.mkdir()
        (folder / "identity.json").write_text(json.dumps(identity))
        with open(folder / "starts", "a") as starts:
            print(time.time(), file=starts)
        status = self.train(recipe, settings, folder / "run", folder / "log")
        self.record(name, identity, folder, status)

    def record(self, name, identity, folder, status):
        log = (folder / "log").read_text(errors="replace")
        diverged = status != 0 and "diverged" in log
        if status and not diverged:
            self.failed.append(name)
            print(f"{name} seed {identity['seed']}: FAILED, exit status {status}\n{log[-1500:]}", flush=True)
            return
        starts = [float(line) for line in (folder / "starts").read_text().split()]
        lines = curve.read_metrics(folder / "run" / "metrics.jsonl")
        points = curve.curve(lines, starts)
        self.results["runs"].append({"row": name, "seed": identity["seed"], "diverged": diverged, "ms": curve.step_ms(lines) if lines else 0,
                                     "seconds": time.time() - starts[-1], "curve": points, "identity": identity})
        self.save()
        for checkpoint in (folder / "run").glob("step*"):
            shutil.rmtree(checkpoint)
        end = points[-1] if points else None
        print(f"{name} seed {identity['seed']}: " + ("diverged" if diverged else f"loss {end['loss']:.4f} after {end['first']:.1f} s") +
              f" ({self.elapsed():.0f} s)", flush=True)


def path_of(recipe):
    path = pathlib.Path(recipe) if recipe.endswith(".toml") else RECIPES / f"{recipe}.toml"
    if not path.exists():
        sys.exit(f"{recipe}: expected a recipe of {RECIPES}, got no file {path}")
    return str(path)


def text_of(recipe):
    """Its settings, without comments and empty lines."""
    lines = (line.split("#")[0].strip() for line in pathlib.Path(recipe).read_text().splitlines())
    return "\n".join(line for line in lines if line)


def recipe_of(row):
    """The recipe in the name of a row: NAME[@SHARE][:KEY=VALUE,...]."""
    return re.split("[@:]", row)[0]


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
        share = head.partition("@")[2] or 1
        jobs.append((name, path_of(recipe_of(name)), [f"--{text}" for text in settings.split(",") if text], float(share)))
    return [(*job, seed) for seed in map(int, options.seeds.split(",")) for job in jobs]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
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
    try:
        stamp = corpus_data.prepare(options.program, options.corpus, options.vocab, harness.work / "data")
        print(f"shards are there ({harness.elapsed():.0f} s)", flush=True)
        steps = harness.steps(stamp)
        harness.asked = {"set": options.set, "length": steps, "data": stamp, "evals": options.evals, "eval_tokens": options.eval_tokens}
        for job in jobs:
            harness.run(job, steps)
    except Stopped:
        print("stopped; the same command goes on", flush=True)
    print("\n" + harness.save())
    return 130 if harness.stopped else bool(harness.failed)


if __name__ == "__main__":
    sys.exit(main())
