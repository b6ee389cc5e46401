"""The commands under test, on tiny data."""
import random

WORDS = "the king said unto them go and see who came from that land with gold by".split()


class Scenario:
    """A command that works in the folder `out`, and what it leaves there."""

    def __init__(self, name, command, setup, state, content, environment=None):
        self.name = name
        self.command = command  # of the folder's name
        self.setup = setup      # makes the input in a work folder
        self.state = state      # files of an interrupted run, of which bytes are changed
        self.content = content  # of a finished run: file name -> bytes
        self.environment = environment or {}


def all_files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def make_words(size, seed=1):
    rng = random.Random(seed)
    return " ".join(rng.choice(WORDS) for _ in range(size // 4))


def prepare_scenario(shard_tokens=2000):
    def setup(work):
        words = make_words(40_000)
        (work.folder / "text.txt").write_text(words)
        (work.folder / "more.jsonl").write_text("".join('{"text": "%s"}\n' % words[i:i + 60] for i in range(0, 6000, 60)))

    return Scenario(
        "prepare",
        lambda out: ["prepare", "text.txt", "more.jsonl", "--vocab-size=270", f"--shard-tokens={shard_tokens}", f"--out={out}",
                     "--threads=2"],
        setup,
        lambda out: [p for p in (out / "prepare.unfinished").rglob("*") if p.is_file() and p.stat().st_size > 0],
        all_files)


def prepare_tiny(work, out, seed=1):
    text = f"text{seed}.txt"
    (work.folder / text).write_text(make_words(8_000, seed))
    return ["prepare", text, "--vocab-size=270", f"--out={out}", "--threads=1"]


def train_command(out, data="data", steps=12, every=4, keep=2):
    return ["train", f"--data.path={data}", f"--train.out={out}", "--model.layers=1", "--model.heads=2",
            "--model.width=16", "--model.context=16", "--model.vocab=0", "--train.batch=2", f"--train.steps={steps}",
            "--train.total_batch=32", f"--train.checkpoint_every={every}", f"--train.keep_checkpoints={keep}",
            "--train.eval_every=0", "--train.sample_every=0", "--device=cpu", "--threads=1", "--compile.precision=fp32"]


def tensors_of_last_checkpoint(out):
    last = sorted((out / "checkpoints").glob("step_*"))[-1]
    return {f"{last.name}/{name}": (last / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")}


def train_scenario(name="train", more=(), environment=None, **sizes):
    def checkpoints_with_one_before(out):
        """A run whose only checkpoint is damaged is refused, by name: it would begin anew in place of it."""
        return [p for folder in sorted(out.glob("checkpoints/step_*[0-9]"))[1:] for p in folder.iterdir() if p.is_file()]

    return Scenario(name, lambda out: [*train_command(out, **sizes), *more],
                    lambda work: work.run_ok(prepare_tiny(work, "data")),
                    checkpoints_with_one_before, tensors_of_last_checkpoint, environment)


def ranks_scenario(name, ranks_are, more=(), **sizes):
    return train_scenario(name, ["--mesh.data=2", *more], {"TOKAMAK_RANKS": ranks_are}, **sizes)
