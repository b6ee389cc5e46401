#!/usr/bin/env python3
"""The peer of the CPU backend: the training step of GPT-2 124M in PyTorch on the CPU, and PyTorch's own sgemm rate.

Forward, loss, backward, clipping at 1.0 and fused AdamW in fp32, or with --bf16 under autocast; flash attention, no dropout,
no warm-up of the data: what a user of PyTorch would write today. Prints one line for a reader and, with --json, one JSON object at the end.
    python3 bench/torch_cpu.py --batch 4 --steps 2            # eager
    python3 bench/torch_cpu.py --batch 4 --steps 2 --compile  # torch.compile; needs g++ and Python's headers
"""
import argparse
import json
import time

import torch
from torch.nn import functional as F

from torch_gpt2 import REAL_TOKENS, Shape, Style, measure


def gemm_gflops(m, k, n, repeats, dtype):
    """Best rate of x @ w.T for x (m, k), w (n, k): what the machine gives right now."""
    x, w = torch.randn(m, k).to(dtype), torch.randn(n, k).to(dtype)
    times = []
    with torch.no_grad():
        for _ in range(repeats + 1):
            start = time.perf_counter()
            F.linear(x, w)
            times.append(time.perf_counter() - start)
    return 2 * m * k * n / min(times[1:]) / 1e9


def step_flops(shape):
    """Matmuls of forward and backward as 3 x forward, causal attention counted as half: the work that is needed."""
    weights = shape.layers * 12 * shape.width**2 + shape.vocab * shape.width
    attention = shape.layers * 2 * shape.width * shape.context / 2  # multiply-adds per token: q @ k and p @ v
    return 6 * shape.tokens * (weights + attention)


def main():
    parser = argparse.ArgumentParser(description="GPT-2 124M training step in PyTorch on the CPU.")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--vocab", type=int, default=50304, help="50304 (padded, default) or 50257")
    parser.add_argument("--steps", type=int, default=2, help="timed steps; the median counts")
    parser.add_argument("--warmup", type=int, default=1, help="steps before; with --compile the first one compiles")
    parser.add_argument("--threads", type=int, default=0, help="0: all")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.vocab < REAL_TOKENS or min(args.batch, args.context, args.steps, args.warmup) < 1:
        parser.error("expected --vocab of 50257 or more, and --batch, --context, --steps, --warmup of 1 or more")
    if args.threads:
        torch.set_num_threads(args.threads)

    shape = Shape(batch=args.batch, context=args.context, vocab=args.vocab)
    style = Style(tf32=False, bf16=args.bf16, compile=args.compile)
    dtype = torch.bfloat16 if args.bf16 else torch.float32
    before = gemm_gflops(4096, 768, 3072, 5, dtype)
    result = measure(shape, style, "cpu", args.steps, args.warmup)
    after = gemm_gflops(4096, 768, 3072, 5, dtype)  # again: the gap shows how steady the machine was
    gflops = step_flops(shape) / result["ms"] * 1e-6
    result |= dict(torch=torch.__version__, mode="compile" if args.compile else "eager", batch=args.batch,
                   context=args.context, vocab=args.vocab, threads=torch.get_num_threads(), steps=args.steps,
                   precision="bf16" if args.bf16 else "fp32", gflops=round(gflops, 1), gemm_gflops=round(max(before, after), 1),
                   gemm_gflops_before_after=[round(before, 1), round(after, 1)],
                   of_gemm=round(gflops / max(before, after), 3))
    print("torch {torch} {mode} {precision}, {threads} threads, B={batch} T={context} V={vocab}: {ms} ms/step (best {min_ms}), "
          "{tokens_per_s} tokens/s, {gflops} GFLOP/s = {of_gemm:.0%} of a product (4096,768,3072) at {gemm_gflops} GFLOP/s; "
          "warm-up {warmup_s} s, peak {peak_gib} GiB, loss {loss}".format(**result))
    if args.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
