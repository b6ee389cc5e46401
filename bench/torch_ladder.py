#!/usr/bin/env python3
"""The ladder in PyTorch: GPT-2 124M, each rung one change more than the one before, as `tokamak ladder` has it.

    python3 bench/torch_ladder.py --batch 16
    python3 bench/torch_ladder.py --batch 64 --only "fused AdamW"         one rung, with all changes up to it
    python3 bench/torch_ladder.py --batch 64 --only FP8 --load 8          under load, with millijoules a token
    python3 bench/torch_ladder.py --device cpu --batch 1 --context 64 --layers 2 --width 128 --heads 2 --steps 2

A step is forward, loss, backward, clipping and AdamW on random tokens, without dropout; the median of --steps after
--warmup others, by the device's events. Compiling falls into the warm-up. A rung that fails is named, and the next runs.
"""
import argparse
import json
from dataclasses import replace

import torch

from torch_gpt2 import REAL_TOKENS, Shape, Style, measure

START = Style(tf32=False, bf16=False, compile=False, flash=False, fused=False)
RUNGS = [  # name, what it changes
    ("fp32, eager", {}),
    ("+ TF32", {"tf32": True}),
    ("+ BF16 autocast", {"bf16": True}),
    ("+ torch.compile", {"compile": True}),
    ("+ flash attention", {"flash": True}),
    ("+ vocabulary 50304", {"vocab": 50304}),
    ("+ fused AdamW", {"fused": True}),
    ("+ cuDNN attention", {"cudnn": True}),
    ("+ FP8 (torchao)", {"fp8": True}),
]


def read_arguments():
    parser = argparse.ArgumentParser(description="The ladder of GPT-2 in PyTorch.")
    for name in ("batch", "context", "layers", "heads", "width"):
        parser.add_argument("--" + name, type=int, default=getattr(Shape, name))
    parser.add_argument("--steps", type=int, default=12, help="timed steps a rung; the median counts")
    parser.add_argument("--warmup", type=int, default=4, help="steps before them")
    parser.add_argument("--load", type=float, default=0, help="seconds of steps on a GPU before those that are timed")
    parser.add_argument("--only", default="", help="rungs whose name has one of these, with commas between")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--json", help="file for the results, a line each")
    return parser.parse_args()


def run_rung(shape, style, args):
    try:
        return measure(shape, style, args.device, args.steps, args.warmup, load=args.load)
    except Exception as error:  # out of memory, or not available on this device: the ladder goes on
        return dict(error=" ".join(str(error).split())[:90])


def format_result(result):
    row = "{ms:>10.2f}{min_ms:>10.2f}{tokens_per_s:>10.0f}{peak_gib:>10.2f}{warmup_s:>8.1f}s{loss:>9.3f}".format(**result)
    return row + ("{mj_per_token:>10.3f} mJ a token".format(**result) if "mj_per_token" in result else "")


def main():
    args = read_arguments()
    machine = torch.cuda.get_device_name() if args.device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(f"{machine}; PyTorch {torch.__version__}; {args.batch} x {args.context} tokens a step\n")
    print(f"{'rung':<22}{'ms':>10}{'least':>10}{'tokens/s':>10}{'peak GiB':>10}{'warm-up':>9}{'loss':>9}")
    shape = Shape(args.batch, args.context, args.layers, args.heads, args.width, vocab=REAL_TOKENS)
    style, results = START, []
    for name, changes in RUNGS:
        shape = replace(shape, **{k: v for k, v in changes.items() if hasattr(shape, k)})
        style = replace(style, **{k: v for k, v in changes.items() if hasattr(style, k)})
        if not any(part.strip() in name for part in args.only.split(",")):
            continue
        result = run_rung(shape, style, args)
        results.append(dict(rung=name, batch=args.batch, context=args.context) | result)
        print(f"{name:<22}" + (result["error"] if "error" in result else format_result(result)), flush=True)
    if args.json:
        with open(args.json, "w") as file:
            file.writelines(json.dumps(result) + "\n" for result in results)


if __name__ == "__main__":
    main()
