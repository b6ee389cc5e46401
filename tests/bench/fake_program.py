#!/usr/bin/env python3
"""Stands for the program in quality_test.py: losses fall on a line, at the rate that the configuration asks for."""
import json
import pathlib
import sys
import time

options = dict(text[2:].partition("=")[::2] for text in sys.argv[2:] if text.startswith("--"))
if sys.argv[1] == "prepare":
    pathlib.Path(options["out"]).mkdir(parents=True)
elif "print-config" in options:
    batch = options.get("train.batch", 2)
    print(f"[model]\ncontext = 8  # tokens\n[train]\nbatch = {batch}  # sequences\ntotal_batch = 0")
else:
    folder = pathlib.Path(options["train.out"])
    (folder / "checkpoints" / "step_00000001").mkdir(parents=True)
    rate = float(options.get("optimizer.lr", 0.1))
    if rate > 1:
        sys.exit("the loss of step 1 is NaN: training has diverged")
    if rate < 0:
        sys.exit("no memory")
    every, steps = int(options["train.eval_every"]), int(options["train.steps"])
    with open(folder / "metrics.jsonl", "w") as lines:
        for step in range(1, steps + 1):
            line = {"step": step, "loss": 0, "ms": 1.0, "tokens_per_second": 16000.0, "wall_seconds": time.time()}
            if every and (step % every == 0 or step == steps):
                line["val_loss"] = 5 - rate * step + 0.01 * int(options["train.seed"])
            print(json.dumps(line), file=lines)
