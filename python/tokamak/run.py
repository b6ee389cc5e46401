"""Runs: training, and what their folders hold."""
import json
from pathlib import Path

from tokamak.arrays import read_safetensors, write_tokens
from tokamak.program import call


def train(config, out, *, tokens=None, quiet=True):
    """Trains as `tokamak train` does, in the folder `out`, and gives the Run. `config`: sections of keys, as in a run file
    (docs/cli.md, "The configuration"). `tokens`: an array of uint16 or uint32 to train on in place of data.path; it is
    written into `out`. A run that was interrupted goes on."""
    out = Path(out)
    settings = {section: dict(keys) if isinstance(keys, dict) else keys for section, keys in config.items()}
    if tokens is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_tokens(out / "tokens.npy", tokens)
        settings.setdefault("data", {})["path"] = str(out / "tokens.npy")
    settings.setdefault("train", {})["out"] = str(out)
    call("train", quiet=quiet, **settings)
    return Run(out)


class Run:
    """The folder of a run (docs/architecture.md, "Files on disk")."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def config(self):
        """All keys, by section."""
        return json.loads((self.folder / "config.json").read_text())

    def metrics(self):
        """One dictionary a step, the last step last."""
        return _json_lines(self.folder / "metrics.jsonl")

    def events(self):
        """What happened, as docs/reliability.md says."""
        return _json_lines(self.folder / "events.jsonl")

    def checkpoints(self):
        """Folders of the checkpoints, by step."""
        return sorted(folder for folder in (self.folder / "checkpoints").glob("step_*") if folder.is_dir())

    def weights(self, checkpoint="latest"):
        """Parameters under Hugging Face's names, as read_safetensors gives them."""
        return read_safetensors(self.folder / "checkpoints" / checkpoint / "model.safetensors")

    def generate(self, prompt="", **settings):
        """One dictionary a text: text, tokens, finish, ...; `settings`: options of `tokamak generate` with '_'."""
        return _lines(call("generate", self.folder, "--json", f"--prompt={prompt}", **settings))

    def evaluate(self, **settings):
        """What `tokamak eval --json` says: validation loss, and tasks if they are asked for."""
        return _lines(call("eval", self.folder, "--json", **settings))[0]


def _lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def _json_lines(file):
    if not file.exists():
        return []
    # The last line may be half written while the run goes on.
    whole, _, _ = file.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines() if line]
