"""Trains recipes one after the other, or one on each GPU, and keeps what they gave. Standard library alone."""
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import curve
import table

RECIPES = pathlib.Path(__file__).parents[2] / "runs" / "quality"
PROBE_STEPS = 150  # of the run that finds out how many steps fit; the last half of them counts
NO_EXTRAS = ["--train.checkpoint_every=0", "--train.sample_every=0"]


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


class Stopped(Exception):
    """By a signal."""


class Harness:
    def __init__(self, options):
        self.options, self.out = options, options.out
        self.work = options.runs_in or options.out
        self.asked = {}  # what runs must share to be compared
        self.began, self.children, self.stopped, self.failed = time.monotonic(), set(), False, []
        self.lock = threading.Lock()  # of the results, and of what is printed
        self.path = self.out / "results.json"
        self.results = json.loads(self.path.read_text()) if self.path.exists() else {"runs": [], "lengths": []}
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.stop)

    def stop(self, *_):
        self.stopped = True
        for child in list(self.children):
            child.send_signal(signal.SIGTERM)

    def save(self):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.results, indent=1) + "\n")
        os.replace(new, self.path)
        text = table.format_table(table.comparable(self.results["runs"], self.asked), self.options.reference)
        (self.out / "table.md").write_text(text)
        return text

    def say(self, text):
        print(f"{text} ({time.monotonic() - self.began:.0f} s)", flush=True)

    def command(self, recipe, settings):
        """What is asked for all runs comes last, and so counts."""
        return [self.options.program, "train", recipe, *settings, *(f"--{text}" for text in self.options.set)]

    def train(self, recipe, settings, folder, gpu=0):
        """Exit status of a training in folder/run, with its output in folder/log."""
        data = self.work / "data"
        command = [*self.command(recipe, settings), f"--data.path={data / 'train'}", f"--data.val_path={data / 'val'}",
                   f"--train.out={folder / 'run'}"]
        own = {"CUDA_VISIBLE_DEVICES": str(gpu)} if self.options.gpus > 1 else {}
        with open(folder / "log", "ab") as log:  # its own session: a terminal's Ctrl-C reaches it by stop() alone
            child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                     env={**os.environ, **own})
        self.children.add(child)
        if self.stopped:  # before it was in the list
            child.send_signal(signal.SIGTERM)
        status = child.wait()
        self.children.remove(child)
        if self.stopped:
            raise Stopped
        return status

    def resolved(self, recipe, settings):
        """Tokens of a micro-batch and of a step, from the configuration that the program prints."""
        done = subprocess.run([*self.command(recipe, settings), "--print-config"], capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr or done.stdout)
        section, found = "", {}
        for line in done.stdout.splitlines():
            if head := re.match(r"\[(\w+)\]", line):
                section = head.group(1) + "."
            elif value := re.match(r"(\w+) = ([^#]*)", line):
                found[section + value.group(1)] = value.group(2).strip()
        micro = int(found["train.batch"]) * int(found["model.context"])
        return micro, int(found["train.total_batch"]) or micro

    def length(self, stamp):
        """Steps of a whole run of the reference; found once, so that runs stay comparable when its rate is tuned."""
        options = self.options
        if options.steps:
            return options.steps
        recipe = path_of(recipe_of(options.reference))
        asked = {"seconds": options.train_seconds, "set": options.set, "data": stamp}
        for length in self.results["lengths"]:
            if asked.items() <= length["of"].items():
                return length["steps"]
        folder = self.work / "runs" / "probe"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if self.train(recipe, [f"--train.steps={PROBE_STEPS}", "--train.eval_every=0", *NO_EXTRAS], folder):
            sys.exit(f"the run that finds out the length failed:\n{(folder / 'log').read_text()[-2000:]}")
        ms = curve.step_ms(curve.read_metrics(folder / "run" / "metrics.jsonl"))
        shutil.rmtree(folder)
        steps = round(options.train_seconds * 1000 / ms)
        self.say(f"{options.reference}: {ms:.2f} ms a step, so {steps} steps in {options.train_seconds} s")
        self.results["lengths"].append({"of": asked, "steps": steps, "ms": ms})
        self.save()
        return steps

    def expected(self, name, steps):
        """Seconds of a run, by the slowest that is known of its row; else of all."""
        known = [run for run in self.results["runs"] if not run["diverged"]]
        own = [run for run in known if run["row"] == name] or known
        return max((run["seconds"] * steps / run["identity"]["steps"] for run in own), default=0)

    def run_all(self, jobs, stamp):
        """A thread for each GPU takes one after the other. All have the tokens of the reference, or a share of them."""
        options = self.options
        steps = self.length(stamp)
        tokens = steps * self.resolved(path_of(recipe_of(options.reference)), [])[1]
        self.asked = {"set": options.set, "tokens": tokens, "data": stamp, "evals": options.evals,
                      "eval_tokens": options.eval_tokens}
        left = queue.SimpleQueue()
        for job in jobs:
            left.put(job)

        def work(gpu):
            try:
                while not self.stopped:
                    self.run(left.get_nowait(), tokens, gpu)
            except (queue.Empty, Stopped):
                pass

        threads = [threading.Thread(target=work, args=(gpu,)) for gpu in range(options.gpus)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run(self, job, tokens, gpu):
        name, recipe, settings, share, seed = job
        title, options = f"{name} seed {seed}", self.options
        try:
            micro, step = self.resolved(recipe, settings)
        except ValueError as error:
            self.fail(title, str(error))
            return
        steps = max(1, round(tokens * share / step))
        identity = {"recipe": text_of(recipe), "settings": settings, "steps": steps, "seed": seed, **self.asked}
        with self.lock:
            if any(run["identity"] == identity for run in self.results["runs"]):
                return
            if time.monotonic() - self.began + self.expected(name, steps) > options.seconds:
                self.say(f"{title}: not begun, it would not end within {options.seconds} s")
                return
        folder = self.folder_of(f"{name}-{seed}", identity)
        settings = [*settings, f"--train.steps={steps}", f"--train.seed={seed}",
                    f"--train.eval_every={max(1, round(steps / options.evals))}",
                    f"--train.eval_batches={max(1, round(options.eval_tokens / micro))}", *NO_EXTRAS]
        status = self.train(recipe, settings, folder, gpu)
        with self.lock:
            self.record(name, identity, folder, status)

    def folder_of(self, name, identity):
        """Of a run; what is there of one with other settings goes."""
        folder = self.work / "runs" / re.sub(r"[^\w.=@-]", "_", name)
        told = folder / "identity.json"
        if told.exists() and json.loads(told.read_text()) != identity:
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        told.write_text(json.dumps(identity))
        with open(folder / "starts", "a") as starts:
            print(time.time(), file=starts)
        return folder

    def fail(self, name, why):
        self.failed.append(name)
        self.say(f"{name}: FAILED: {why.strip()[-1500:]}")

    def record(self, name, identity, folder, status):
        log, title = (folder / "log").read_text(errors="replace"), f"{name} seed {identity['seed']}"
        diverged = status != 0 and "diverged" in log
        if status and not diverged:
            self.fail(title, f"exit status {status}\n{log}")
            return
        starts = [float(line) for line in (folder / "starts").read_text().split()]
        lines = curve.read_metrics(folder / "run" / "metrics.jsonl")
        points = curve.curve(lines, starts)
        self.results["runs"].append({"row": name, "seed": identity["seed"], "diverged": diverged,
                                     "ms": curve.step_ms(lines) if lines else 0, "seconds": time.time() - starts[-1],
                                     "curve": points, "identity": identity})
        self.save()
        shutil.rmtree(folder / "run" / "checkpoints", ignore_errors=True)
        said = "diverged" if diverged else "loss {loss:.4f} after {first:.1f} s".format(**points[-1])
        self.say(f"{title}: {said}")
