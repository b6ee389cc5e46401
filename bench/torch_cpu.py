#!/usr/bin/env python3
"""The peer of the CPU backend: the training step of GPT-2 124M in PyTorch on the CPU, and PyTorch's own sgemm rate.

Forward, loss, backward, clipping at 1.0 and fused AdamW in fp32; flash attention, no dropout, no warm-up of the data:
what a user of PyTorch would write today. Prints one line for a reader and, with --json, one JSON object at the end.
    python3 bench/torch_cpu.py --batch 4 --steps 2            # eager
    python3 bench/torch_cpu.py --batch 4 --steps 2 --compile  # torch.compile; needs g++ and Python's headers
"""
import argparse
import json
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, HEADS, WIDTH = 12, 12, 768


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.attention_out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc, self.fc_out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, HEADS, C // HEADS).transpose(1, 2) for t in self.qkv(self.ln_1(x)).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_out(y.transpose(1, 2).reshape(B, T, C))
        return x + self.fc_out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, context, vocab):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, WIDTH), nn.Embedding(context, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def sgemm_gflops(m, k, n, repeats):
    """Best rate of x @ w.T for x (m, k), w (n, k): what the machine gives right now."""
    x, w = torch.randn(m, k), torch.randn(n, k)
    times = []
    with torch.no_grad():
        for _ in range(repeats + 1):
            start = time.perf_counter()
            F.linear(x, w)
            times.append(time.perf_counter() - start)
    return 2 * m * k * n / min(times[1:]) / 1e9


def step_flops(context, vocab, tokens):
    """Matmuls of forward and backward as 3 x forward, causal attention counted as half: the work that is needed."""
    weights = LAYERS * 12 * WIDTH * WIDTH + vocab * WIDTH
    attention = LAYERS * 2 * WIDTH * context / 2  # multiply-adds per token: q @ k and p @ v
    return 6 * tokens * (weights + attention)


def measure(args):
    torch.manual_seed(0)
    model = Gpt2(args.context, args.vocab)
    groups = [dict(params=[p for p in model.parameters() if p.dim() > 1], weight_decay=0.1),
              dict(params=[p for p in model.parameters() if p.dim() < 2], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), eps=1e-8, fused=True)
    run = torch.compile(model) if args.compile else model
    tokens, targets = torch.randint(50257, (2, args.batch, args.context))  # real ids only, whatever the padding

    def step():
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = run(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return time.perf_counter() - start, loss.item()

    warm = [step() for _ in range(args.warmup)]
    timed = [step() for _ in range(args.steps)]
    seconds = statistics.median(t for t, _ in timed)
    count = args.batch * args.context
    return dict(mode="compile" if args.compile else "eager", batch=args.batch, context=args.context, vocab=args.vocab,
                threads=torch.get_num_threads(), steps=args.steps, ms=round(seconds * 1e3, 1),
                min_ms=round(min(t for t, _ in timed) * 1e3, 1), tokens_per_s=round(count / seconds, 1),
                gflops=round(step_flops(args.context, args.vocab, count) / seconds / 1e9, 1),
                warmup_s=round(sum(t for t, _ in warm), 1), loss=round(timed[-1][1], 4),
                peak_rss_gib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2))


def main():
    parser = argparse.ArgumentParser(description="GPT-2 124M training step in PyTorch on the CPU, fp32.")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--vocab", type=int, default=50304, help="50304 (padded, default) or 50257")
    parser.add_argument("--steps", type=int, default=2, help="timed steps; the median counts")
    parser.add_argument("--warmup", type=int, default=1, help="steps before; with --compile the first one compiles")
    parser.add_argument("--threads", type=int, default=0, help="0: all")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.vocab < 50257 or min(args.batch, args.context, args.steps, args.warmup) < 1:
        parser.error("expected --vocab of 50257 or more, and --batch, --context, --steps, --warmup of 1 or more")
    if args.threads:
        torch.set_num_threads(args.threads)

    before = sgemm_gflops(4096, 768, 3072, 5)
    result = measure(args)
    after = sgemm_gflops(4096, 768, 3072, 5)  # again: the gap shows how steady the machine was
    result |= dict(torch=torch.__version__, sgemm_gflops=round(max(before, after), 1),
                   sgemm_gflops_before_after=[round(before, 1), round(after, 1)],
                   of_sgemm=round(result["gflops"] / max(before, after), 3))
    print("torch {torch} {mode}, {threads} threads, B={batch} T={context} V={vocab}: {ms} ms/step, {tokens_per_s} tokens/s, "
          "{gflops} GFLOP/s = {of_sgemm:.0%} of sgemm (4096,768,3072) {sgemm_gflops} GFLOP/s; warm-up {warmup_s} s, "
          "peak {peak_rss_gib} GiB, loss {loss}".format(**result))
    if args.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
