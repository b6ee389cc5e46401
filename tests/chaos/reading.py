"""Faults while a run folder is read, to go on, to evaluate and to generate.

What must hold: the newest checkpoint is taken, or an older one and it is said, or there is an error with a message; and
the result is the one of the checkpoint that was taken.
"""
import shutil

from scenarios import prepare_tiny, tensors_of_last_checkpoint, train_command
from work import complaint

FAULTS = ["EIO", "EACCES", "ENOMEM", "SHORT"]
SKIPPED = "skipped a damaged checkpoint"


class Reading:
    def __init__(self, work):
        self.work = work
        self.whole = work.folder / "whole"
        self.out = work.folder / "broken"
        work.run_ok(prepare_tiny(work, "data"))
        work.run_ok(train_command("whole", keep=3))
        self.finished = tensors_of_last_checkpoint(self.whole)
        self.commands = {"eval": ["eval", "broken", "--device=cpu", "--threads=1"],
                         "generate": ["generate", "broken", "--tokens=8", "--device=cpu", "--threads=1"],
                         "resume": train_command("broken", keep=3)}
        self.newest, self.older = ({name: self.undisturbed(name, missing) for name in ("eval", "generate")}
                                   for missing in (0, 1))

    def afresh(self, missing):
        """A copy of the run without its last checkpoints."""
        self.work.remove("broken")
        shutil.copytree(self.whole, self.out, symlinks=True)
        for folder in sorted(self.out.glob("checkpoints/step_*"))[3 - missing:]:
            shutil.rmtree(folder)

    def undisturbed(self, name, missing):
        self.afresh(missing)
        return self.work.run_ok(self.commands[name]).out

    def check_output(self, name, result):
        if result.out == self.newest[name]:
            return ""
        if result.out != self.older[name]:
            return f"another result: {result.out}{result.err}"
        return "" if SKIPPED in result.err else "an older checkpoint was taken without a word"

    # Beginning anew would give the same bytes, and lose the work.
    def check_resumed(self, result):
        if "resuming after step" not in result.out:
            return f"it did not go on: {result.out[-600:]}"
        return "" if tensors_of_last_checkpoint(self.out) == self.finished else "other bytes"

    def check(self, name, result):
        if wrong := complaint(result):
            return wrong
        if name != "resume":
            return self.check_output(name, result) if result.status == 0 else ""
        if result.status == 0:
            return self.check_resumed(result)
        return self.check_resumed(self.work.run(self.commands[name]))

    def go(self, cases):
        for name, command in self.commands.items():
            self.go_through(name, command, cases)

    def go_through(self, name, command, cases):
        rng, missing = self.work.random, 1 if name == "resume" else 0
        self.afresh(missing)
        calls = self.work.calls(command, reads="broken")

        def failed_read(case):
            self.afresh(missing)
            at, fault = case
            return self.check(name, self.work.run(command, reads="broken", at=at, fault=fault))

        def cut_short(case):
            self.afresh(missing)
            choice, part = case
            newest = sorted(self.out.glob("checkpoints/step_*"))[-1]
            path = sorted(newest.iterdir())[choice]
            path.write_bytes(path.read_bytes()[:int(part * path.stat().st_size)])
            return self.check(name, self.work.run(command))

        self.work.cases(name, "failed reads of the run folder",
                        [(rng.randint(1, calls), rng.choice(FAULTS)) for _ in range(cases)], failed_read)
        self.work.cases(name, "checkpoints cut short",
                        [(rng.randrange(3), rng.random()) for _ in range(max(cases // 4, 1))], cut_short)
