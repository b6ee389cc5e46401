"""Several processes at once: readers while a run removes checkpoints, training while its data is replaced."""
import re
import time

from scenarios import prepare_tiny, tensors_of_last_checkpoint, train_command
from work import complaint

STEPS = 100  # each with a checkpoint
READERS = {"eval": ["--device=cpu", "--threads=1"],
           "generate": ["--tokens=8", "--device=cpu", "--threads=1"]}


class ReadersOfARun:
    """Each checkpoint is removed as soon as the next is there, before a reader has opened its parameters; the reader
    gets another one, whole."""

    def __init__(self, work):
        self.work = work
        self.training = None
        work.run_ok(prepare_tiny(work, "data"))
        work.run_ok(train_command("all", steps=STEPS, every=1, keep=STEPS))

    def ensure_training(self):
        if self.training and self.training.poll() is None:
            return
        self.stop()
        self.work.remove("broken")
        self.training = self.work.start(train_command("broken", steps=STEPS, every=1, keep=1))
        while self.training.poll() is None and not (self.work.folder / "broken/checkpoints/latest").exists():
            time.sleep(0.001)

    def stop(self):
        if self.training:
            self.work.end(self.training)
        self.training = None

    def read(self, case):
        command, path = case
        self.ensure_training()
        result = self.work.run([command, path, *READERS[command]], reads="model.safetensors", at=1, fault="LATE")
        if result.status != 0 or result.err:
            return f"it ended with {result.status}: {result.err[-600:]}"
        if command == "generate":
            return ""
        step = re.search(r"step_\d+", result.out).group()
        kept = self.work.run_ok([command, f"all/checkpoints/{step}", *READERS[command]]).out
        return "" if result.out.splitlines()[1:] == kept.splitlines()[1:] else f"other numbers for {step}: {result.out}"

    def go(self, cases):
        for number, command in enumerate(READERS):
            paths = [("broken", "broken/checkpoints/latest")[(number + i) % 2] for i in range(cases)]
            self.work.cases(command, "while its checkpoint is removed", [(command, path) for path in paths], self.read)
        self.stop()


class ReplacedData:
    """`train` starts while `prepare` puts another data set in place of its own: it is of one of the two."""

    def __init__(self, work):
        self.work = work
        self.expected = []
        self.prepares = []
        for seed in (1, 2):
            work.run_ok(prepare_tiny(work, f"data{seed}", seed))
            work.run_ok(train_command(f"straight{seed}", data=f"data{seed}"))
            self.expected.append(tensors_of_last_checkpoint(work.folder / f"straight{seed}"))
            self.prepares.append(prepare_tiny(work, "data", seed))

    def start_training(self, after):
        for name in ("data", "broken"):
            self.work.remove(name)
        self.work.run_ok(self.prepares[0])
        preparing = self.work.start(self.prepares[1], slow=30_000)  # half a second of moving files
        time.sleep(after)
        trained = self.work.run(train_command("broken"))
        prepared = self.work.end(preparing)
        if wrong := complaint(trained) or complaint(prepared):
            return wrong
        if trained.status != 0:  # in the middle of the moves
            return "" if "prepare" in trained.err else f"it was refused for another reason: {trained.err}"
        return "" if tensors_of_last_checkpoint(self.work.folder / "broken") in self.expected else "of neither data set"

    def go(self, cases):
        rng = self.work.random
        self.work.cases("train", "while its data is replaced", [rng.random() * 0.6 for _ in range(cases)],
                        self.start_training)
