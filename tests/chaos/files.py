"""Outputs and inputs that are no regular files, and kills between a checkpoint and its line in metrics.jsonl.

What must hold: what is there as a device, a pipe or a link stays it, and gets the bytes that a file would, or is refused;
no command reads what has no end, or fills memory; and every step that is saved has its losses in the end.
"""
import json
import os
import resource
import shutil
import stat
import subprocess
import tempfile
import threading
from pathlib import Path

from interrupted import Interrupted
from scenarios import Scenario, prepare_tiny, tensors_of_last_checkpoint, train_command
from work import complaint

DEVICES = {"null": 3, "zero": 5, "full": 7}  # of memory, 1
MEMORY = 6 << 30  # more than any command here takes, of addresses
SECONDS = 60


def device_folder():
    """Nodes of our own, as a fault would replace the machine's; None where that is not allowed."""
    folder = Path(tempfile.mkdtemp(prefix="tokamak_chaos_devices_"))
    try:
        for name, number in DEVICES.items():
            os.mknod(folder / name, 0o666 | stat.S_IFCHR, os.makedev(1, number))
        os.close(os.open(folder / "null", os.O_WRONLY))
        return folder
    except OSError:
        shutil.rmtree(folder)
        return None


def kind_of(path):
    info = os.lstat(path)
    return stat.S_IFMT(info.st_mode), info.st_rdev, info.st_ino


class Outputs:
    """A command that writes a page, whatever stands under the name of the page."""

    def __init__(self, work):
        self.work = work
        self.devices = device_folder()
        small = ["--model.layers=1", "--model.heads=2", "--model.width=16", "--model.context=16", "--model.vocab=300",
                 "--train.batch=2"]
        self.commands = {
            "plan": lambda out: ["plan", "--model.preset=gpt2-124m", "--cluster=h200", "--gpus=2", f"--html={out}"],
            "explain": lambda out: ["explain", "--nominal", *small, f"--timeline={out}"]}
        self.pages = {}
        for name, command in self.commands.items():
            work.run_ok(command("page"))
            self.pages[name] = (work.folder / "page").read_bytes()
            (work.folder / "page").unlink()
        self.made = {"device that is full": self.full, "device that takes all": self.null, "link to a device": self.linked,
                     "pipe": self.pipe, "pipe without a reader": self.deaf_pipe, "link": self.link,
                     "dangling link": self.dangling, "folder": self.folder, "standard output": self.standard}

    def written(self, name, out, target=None):
        """Runs it; what is wrong with the end, and with what stands there now."""
        path = self.work.folder / out
        before = kind_of(path)
        result = self.work.run(self.commands[name](out))
        if wrong := complaint(result):
            return wrong, result
        if kind_of(path) != before:
            return f"{out} became something else", result
        if result.status == 0 and target and target.read_bytes() != self.pages[name]:
            return f"{target} has other bytes", result
        return "", result

    def refused(self, name, out):
        wrong, result = self.written(name, out)
        return wrong or ("" if result.status == 1 else "it was not refused")

    def accepted(self, name, out, target=None):
        wrong, result = self.written(name, out, target)
        return wrong or ("" if result.status == 0 else f"it was refused: {result.err[-300:]}")

    def full(self, name):
        return self.refused(name, self.devices / "full")

    def null(self, name):
        return self.accepted(name, self.devices / "null")

    def linked(self, name):
        (self.work.folder / "out").symlink_to(self.devices / "full")
        return self.refused(name, "out")

    def link(self, name):
        target = self.work.folder / "target"
        target.write_text("old")
        (self.work.folder / "out").symlink_to("target")
        return self.accepted(name, "out", target)

    def dangling(self, name):
        (self.work.folder / "out").symlink_to("target")
        return self.accepted(name, "out", self.work.folder / "target")

    def folder(self, name):
        (self.work.folder / "out").mkdir()
        return self.refused(name, "out")

    def deaf_pipe(self, name):
        os.mkfifo(self.work.folder / "out")
        return self.refused(name, "out")

    def pipe(self, name):
        path, got = self.work.folder / "out", []
        os.mkfifo(path)
        end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(end, True)
        keeps = os.open(path, os.O_WRONLY)  # else the reader would see the end before there is a writer

        def read():
            while piece := os.read(end, 1 << 16):
                got.append(piece)

        reader = threading.Thread(target=read)
        reader.start()
        wrong = self.accepted(name, "out")
        os.close(keeps)
        reader.join()
        os.close(end)
        return wrong or ("" if b"".join(got) == self.pages[name] else "the reader got other bytes")

    def standard(self, name):
        for out in ("-", "/dev/stdout"):
            process = subprocess.run([self.work.program, *self.commands[name](out)], cwd=self.work.folder,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS, check=False)
            if process.returncode != 0 or self.pages[name] not in process.stdout:
                return f"{out}: {process.returncode}, {process.stderr[-300:]}"
        return ""

    def check(self, case):
        name, kind = case
        for path in ("out", "target"):
            at = self.work.folder / path
            shutil.rmtree(at) if at.is_dir() and not at.is_symlink() else at.unlink(missing_ok=True)
        return self.made[kind](name)

    def go(self, cases):
        kinds = [kind for kind in self.made if self.devices or "device" not in kind]
        for name in self.commands:
            chosen = [(name, kinds[i % len(kinds)]) for i in range(max(cases, len(kinds)))]
            self.work.cases(name, "outputs that are no files", chosen, self.check)
        if self.devices:
            shutil.rmtree(self.devices)


class Endless:
    """A file that a command reads is a device, a pipe or has a terabyte of nothing."""

    def __init__(self, work):
        self.work = work
        self.devices = device_folder()
        self.whole = work.folder / "whole"
        self.whole.mkdir()
        work.run_ok(prepare_tiny(work, "whole/data"))
        work.run_ok(train_command("whole/run", data="whole/data"))
        (self.whole / "mine.toml").write_text("train.steps = 20\n")
        (self.whole / "prompts").write_text("the king\n")
        (self.whole / "cluster.toml").write_text('name = "mine"\n')
        (self.whole / "more.txt").write_text("the king said\n" * 50)
        files = [path.relative_to(self.whole) for path in sorted(self.whole.rglob("*")) if path.is_file() and
                 not any(part == "latest" or part.endswith(".safetensors") for part in path.parts)]
        limits = ["--device=cpu", "--threads=1"]
        going_on = train_command("broken/run", data="broken/data", steps=16)
        readers = [going_on, ["eval", "broken/run", "--split=train", *limits],
                   ["generate", "broken/run", "--tokens=4", *limits], ["data", "ledger", "broken/run"],
                   ["explain", "broken/run", "--nominal"], ["data", "inspect", "broken/data"]]
        named = {"mine.toml": ["explain", "broken/mine.toml", "--nominal", "--model.layers=1"],
                 "prompts": ["generate", "broken/run", "--tokens=4", "--prompts=broken/prompts", *limits],
                 "cluster.toml": ["plan", "--model.preset=gpt2-124m", "--cluster=broken/cluster.toml", "--gpus=1"],
                 "more.txt": ["prepare", "broken/more.txt", "--vocab=broken/data", "--out=new", "--threads=1"]}
        self.pairs = [(str(file), command) for file in files
                      for command in ([named[str(file)]] if str(file) in named else readers)]

    def put(self, kind, path):
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "zero":
            path.symlink_to(self.devices / "zero")
        else:
            with open(path, "wb") as file:
                file.truncate(1 << 40)

    def check(self, case):
        file, command, kind = case
        for name in ("broken", "new"):
            self.work.remove(name)
        shutil.copytree(self.whole, self.work.folder / "broken", symlinks=True)
        self.put(kind, self.work.folder / "broken" / file)
        return self.bounded(command)

    def bounded(self, command, source=None):
        """It comes to an end, without all memory or a large file."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
        try:
            result = subprocess.run([self.work.program, *command], cwd=self.work.folder, preexec_fn=limit,
                                    stdin=source or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    timeout=SECONDS, check=False, text=True, errors="replace",
                                    env=dict(os.environ, OMP_WAIT_POLICY="passive"))
        except subprocess.TimeoutExpired:
            return "it did not end"
        if result.returncode != 0 and "error: [" not in result.stderr or "[memory]" in result.stderr:
            return f"it ended with {result.returncode}: {result.stderr[-300:]}"
        return "a disk was filled" if "File too large" in result.stderr else ""

    def from_device(self, command):
        self.work.remove("new")
        with open(self.devices / "zero", "rb") as source:
            return self.bounded(command, source)

    def go(self, cases):
        rng, kinds = self.work.random, ["pipe", "terabyte"] + (["zero"] if self.devices else [])
        pairs = [(file, command, kind) for file, command in self.pairs for kind in kinds]
        self.work.cases("readers", "files that are none or have no end", rng.sample(pairs, min(5 * cases, len(pairs))),
                        self.check)
        if self.devices:
            vocab = "--vocab=whole/data"
            self.work.cases("readers", "a device without an end", [
                ["prepare", str(self.devices / "zero"), vocab, "--out=new"], ["prepare", "-", vocab, "--out=new"],
                ["prepare", "-", "--vocab-size=270", "--out=new"], ["tokenize", vocab],
                ["eval", "whole/run", f"--data.path={self.devices / 'zero'}", "--split=train"]], self.from_device)
            shutil.rmtree(self.devices)


def losses_and_tensors(out):
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    losses = [(row["step"], row["loss"], row.get("val_loss")) for row in rows]
    return {"metrics.jsonl": repr(losses).encode(), **tensors_of_last_checkpoint(out)}


class SavedAndEvaluated(Interrupted):
    """Every step that is saved is evaluated, too; kills and faults at the calls that change files."""

    def __init__(self, work):
        evaluated = ["--train.eval_every=4", "--train.eval_batches=2", "--data.val_path=data"]
        super().__init__(work, Scenario("train", lambda out: [*train_command(out), *evaluated],
                                        lambda work: work.run_ok(prepare_tiny(work, "data")), lambda out: [],
                                        losses_and_tensors))

    def go(self, cases):
        rng = self.work.random
        self.work.remove("broken")
        calls = self.work.calls(self.scenario.command("broken"))
        self.go_through("kills between save and metrics", sorted(rng.sample(range(1, calls + 1), min(cases, calls))),
                        self.placed_kill)
        self.go_through("errors between save and metrics",
                        [(rng.randint(1, calls), rng.choice(["EIO", "ENOSPC"])) for _ in range(cases)], self.failed_call)
