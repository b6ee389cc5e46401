"""What soak.py and moments.py share: runs that are disturbed beside one that is not, in one folder."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess


class TimeIsOver(Exception):
    """SIGTERM came."""


def raise_at_sigterm():
    def on_sigterm(*_):
        raise TimeIsOver

    signal.signal(signal.SIGTERM, on_sigterm)


def lines(path):
    try:
        return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    except OSError:
        return []


def last_step(run):
    return max((line["step"] for line in lines(run / "metrics.jsonl") if "loss" in line), default=0)


def options(doc, seconds, save_every, model):
    """A parser with what both ask for, and these defaults."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokamak")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--save-every", type=int, default=save_every)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", default=model)
    return parser


def clear(arguments):
    """An empty folder for the runs, but for logs, with the data that they read."""
    if arguments.device == "cpu":
        os.environ["TOKAMAK_RANKS"] = "processes"  # threads cannot be killed one by one
    folder = arguments.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("data", "even", "rough*", "gpu_fault*"):
        for path in folder.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.suffix != ".log":
                path.unlink()
    subprocess.run([arguments.tokamak, "prepare", "docs", f"--out={folder / 'data'}", "--vocab-size=2048"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder


def command(arguments, folder, *more):
    return [os.path.realpath(arguments.tokamak), "train", f"--device={arguments.device}", *arguments.model.split(),
            f"--data.path={folder / 'data'}", "--train.sample_every=0", f"--train.checkpoint_every={arguments.save_every}",
            *more]
