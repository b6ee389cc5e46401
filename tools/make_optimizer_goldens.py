#!/usr/bin/env python3
"""Writes tests/goldens/optimizers.json: ten steps of PyTorch's optimizers from given gradients.

Regenerate (PyTorch 2.9 or later on a CPU; no other package, no network):
    python3 tools/make_optimizer_goldens.py [--out tests/goldens/optimizers.json]

Each case holds the optimizer's options as src/config/optimizer_config.h names them, the layout of one parameter (in,
out), its first value, a gradient for each step and its value after each. Everything is float64. Muon's Newton-Schulz
iteration, which PyTorch computes in bf16, is left in float64 here, so that the tests can compare closely. Of a parameter
of several blocks side by side (q, k and v) PyTorch has one matrix each, in its own layout, (out, in).
"""
import argparse
import json
import os

import torch

STEPS = 10


def muon(matrices, lr, weight_decay, muon_momentum, nesterov, muon_scale):
    adjust = {"rms": "match_rms_adamw", "original": "original"}[muon_scale]
    return torch.optim.Muon(matrices, lr=lr, weight_decay=weight_decay, momentum=muon_momentum, nesterov=nesterov,
                            adjust_lr_fn=adjust)


def run(make, options, shape, blocks, generator):
    """One case: PyTorch's matrices are the transposed blocks of ours."""
    first = torch.randn(shape, generator=generator, dtype=torch.float64)
    matrices = [torch.nn.Parameter(m.T.clone()) for m in first.chunk(blocks, dim=1)]
    optimizer = make(matrices, **options)
    grads, after = [], []
    for step in range(STEPS):
        grad = torch.randn(shape, generator=generator, dtype=torch.float64) * (1 if step % 3 else 0.01)
        for matrix, block in zip(matrices, grad.chunk(blocks, dim=1)):
            matrix.grad = block.T.clone()
        optimizer.step()
        grads.append(grad)
        after.append(torch.cat([m.detach().T for m in matrices], dim=1))

    def flat(tensor):
        return [round(x, 12) for x in tensor.flatten().tolist()]

    return dict(options=options, shape=list(shape), blocks=blocks, first=flat(first), grads=[flat(g) for g in grads],
                after=[flat(a) for a in after])


def cases():
    generator = torch.Generator().manual_seed(1)
    usual = dict(lr=0.02, weight_decay=0.1, muon_momentum=0.95, nesterov=True, muon_scale="rms")
    for name, shape, blocks, changes in [
            ("wide", (3, 5), 1, {}),
            ("tall", (5, 3), 1, {}),
            ("square_original", (4, 4), 1, dict(muon_scale="original")),
            ("wide_original", (2, 6), 1, dict(muon_scale="original", weight_decay=0.0)),
            ("tall_original", (6, 2), 1, dict(muon_scale="original")),
            ("plain_momentum", (3, 4), 1, dict(nesterov=False, muon_momentum=0.8)),
            ("q_k_v", (3, 9), 3, {})]:
        yield f"muon_{name}", dict(rule="muon", **run(muon, usual | changes, shape, blocks, generator))


def main():
    parser = argparse.ArgumentParser(description="Write the golden values of the optimizers' tests.")
    here = os.path.dirname(__file__)
    parser.add_argument("--out", default=os.path.join(here, "..", "tests", "goldens", "optimizers.json"))
    out = os.path.normpath(parser.parse_args().out)
    torch.set_num_threads(1)
    low, torch.bfloat16 = torch.bfloat16, torch.float64
    try:
        found = dict(cases())
    finally:
        torch.bfloat16 = low
    with open(out, "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(case)}" for name, case in found.items()) + "\n}\n")
    print(f"{out}: {len(found)} cases, {os.path.getsize(out)} bytes")


if __name__ == "__main__":
    main()
