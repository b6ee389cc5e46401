#!/usr/bin/env python3
"""Writes tests/goldens/curves.json: how the loss of a small GPT-2 falls on real text in PyTorch, step by step.

Regenerate (PyTorch 2.x on a CPU, tiktoken, the test data; a few minutes on two cores):
    python3 tools/make_curves.py --float64 [--data ../shared/data] [--out tests/goldens/curves.json]
--float64 also trains in double precision and records by how much the losses differ; the time is then about threefold.

All of it can be repeated without PyTorch:
- Tokens: GPT-2's ids of the file's beginning. Step s takes the tokens [s*B*T, (s+1)*B*T], row b starting at s*B*T + b*T;
  targets are the same shifted by one.
- First weights: vectors named .weight (LayerNorm gains) 1, biases 0, and for matrices element i (flat, row by row),
  in wrapping 32-bit unsigned arithmetic,
      z = i * 2654435761 + k * 40503;  z ^= z >> 16;  z *= 0x7feb352d;  z ^= z >> 15;  z *= 0x846ca68b;  z ^= z >> 16
      w = 0.02 * sqrt(12) * (z / 2^32 - 0.5)
  the last line in float64, then rounded to float32; k is the index of the name among all parameter names sorted by
  bytes. So every matrix has a standard deviation of 0.02. The mixing matters: with z = i * 2654435761 + k * 40503 alone
  the rows of a matrix are shifted copies of each other, and rounding changed the loss by 0.03 within 20 steps.
- Optimizer: AdamW as in make_goldens.py; weight decay on matrices, embeddings included; constant learning rate.
"""
import argparse
import hashlib
import json
import math
import os
import time

import numpy as np
import tiktoken
import torch

from make_goldens import parameter_shapes, train

MODEL = dict(layers=4, heads=4, width=128, context=64, vocab=50257, bias=True, tie_weights=True)
OPTIMIZER = dict(lr=1e-3, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1, clip=1.0)
BATCH, STEPS = 8, 100
TEXTS = ("tinyshakespeare.txt", "wikitext-2/train.txt")


def gpt2_tokenizer(folder):
    """tiktoken's GPT-2 made of local files only; an id is the rank of its merge, as in encoder.json."""
    printable = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
    hidden = [b for b in range(256) if b not in printable]
    byte_of = {chr(b): b for b in printable} | {chr(256 + n): b for n, b in enumerate(hidden)}
    with open(os.path.join(folder, "encoder.json"), encoding="utf-8") as f:
        ids = json.load(f)
    end = "<|endoftext|>"
    ranks = {bytes(byte_of[c] for c in text): rank for text, rank in ids.items() if text != end}
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    return tiktoken.Encoding("gpt2", pat_str=pattern, mergeable_ranks=ranks, special_tokens={end: ids[end]})


def check_tokenizer(tokenizer, folder):
    """Against the vectors that came with the data, where they are."""
    path = os.path.join(folder, "vectors.jsonl")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for vector in map(json.loads, f):
                assert tokenizer.encode_ordinary(vector["text"]) == vector["ids"], f"wrong ids for {vector['text'][:40]!r}"


def first_tokens(tokenizer, path, count):
    """The first `count` ids of the whole file's encoding; several times that many bytes are enough to know them."""
    with open(path, "rb") as f:
        text = f.read(16 * count)
    text = text[:text.rfind(b"\n")].decode("utf-8")
    ids = tokenizer.encode_ordinary(text)
    assert len(ids) > count + 100, f"{path} has only {len(ids)} tokens; {count} are needed"
    return ids[:count]


def first_weights():
    """Name -> the first value of every parameter, by the formula above."""
    shapes = parameter_shapes(**{key: value for key, value in MODEL.items() if key != "heads"})
    weights = {}
    for k, name in enumerate(sorted(shapes)):
        shape = shapes[name]
        if len(shape) == 1:
            weights[name] = torch.full(shape, 1.0 if name.endswith(".weight") else 0.0)
            continue
        z = np.arange(math.prod(shape), dtype=np.uint32) * np.uint32(2654435761) + np.uint32(k * 40503)
        z ^= z >> np.uint32(16)
        z *= np.uint32(0x7feb352d)
        z ^= z >> np.uint32(15)
        z *= np.uint32(0x846ca68b)
        z ^= z >> np.uint32(16)
        w = 0.02 * math.sqrt(12) * (z.astype(np.float64) / 2**32 - 0.5)
        weights[name] = torch.from_numpy(w.astype(np.float32).reshape(shape))
    return weights


def curve(tokens, weights, dtype):
    T = MODEL["context"]
    stream = torch.tensor(tokens)

    def batch(s):
        rows = stream[s * BATCH * T:(s + 1) * BATCH * T + 1]
        return rows[:-1].view(BATCH, T), rows[1:].view(BATCH, T)

    started = time.time()

    def show(step, loss):
        if step % 10 == 0:
            print(f"  step {step:3d}  loss {loss:.6f}  {time.time() - started:.0f} s", flush=True)

    return train(weights, map(batch, range(STEPS)), dtype, MODEL["layers"], MODEL["heads"], on_step=show, **OPTIMIZER)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="Write the loss curves on real text.")
    parser.add_argument("--data", default=os.path.join(here, "..", "..", "shared", "data"))
    parser.add_argument("--out", default=os.path.join(here, "..", "tests", "goldens", "curves.json"))
    parser.add_argument("--float64", action="store_true", help="also train in float64 and record the difference")
    args = parser.parse_args()
    torch.set_num_threads(1)  # the order of sums must not depend on the machine's cores
    folder = os.path.join(args.data, "gpt2")
    tokenizer = gpt2_tokenizer(folder)
    check_tokenizer(tokenizer, folder)
    weights = first_weights()

    result = dict(torch=torch.__version__.split("+")[0], model=dict(**MODEL, dropout=0.0, layer_norm_eps=1e-5),
                  optimizer=OPTIMIZER, batch=BATCH, steps=STEPS,
                  first_weights={name: weights[name].flatten()[:3].tolist() for name in ("wpe.weight", "wte.weight")}, texts={})
    count = STEPS * BATCH * MODEL["context"] + 1
    for text in TEXTS:
        print(text, flush=True)
        tokens = first_tokens(tokenizer, os.path.join(args.data, text), count)
        run = curve(tokens, weights, torch.float32)
        sampled = list(range(0, STEPS, 10)) + [STEPS - 1]
        found = dict(tokens=count, first_tokens=tokens[:8], sha256_uint16le=hashlib.sha256(np.array(tokens, "<u2")).hexdigest(),
                     at=sampled, losses=[round(run["losses"][s].item(), 7) for s in sampled],
                     grad_norms=[round(run["grad_norms"][s].item(), 7) for s in sampled])
        if args.float64:
            double = curve(tokens, weights, torch.float64)
            found["float64_losses"] = [round(double["losses"][s].item(), 9) for s in sampled]
            found["float64_max_difference"] = (run["losses"].double() - double["losses"]).abs().max().item()
        result["texts"][text] = found
    lines = json.dumps(result, indent=1)
    with open(args.out, "w", encoding="utf-8") as f:
        f.write(lines + "\n")
    print(lines)


if __name__ == "__main__":
    main()
