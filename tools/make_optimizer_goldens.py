#!/usr/bin/env python3
"""Writes tests/goldens/optimizers.json: ten steps of PyTorch's and bitsandbytes' optimizers from given gradients.

Regenerate (PyTorch 2.9 or later and bitsandbytes 0.50 or later on a CPU; no network):
    python3 tools/make_optimizer_goldens.py [--out tests/goldens/optimizers.json]

Each case holds the optimizer's options as src/config/optimizer_config.h names them, the layout of one parameter (in,
out), its first value, a gradient for each step and its value after each. Everything is float64. Muon's Newton-Schulz
iteration, which PyTorch computes in bf16, is left in float64 here, so that the tests can compare closely. Of a parameter
of several blocks side by side (q, k and v) PyTorch has one matrix each, in its own layout, (out, in).

Of adamw8bit all is float32, as bitsandbytes has it. On a CPU that rounds to codes by a table which is coarse for small
numbers; here it takes the nearest number of its map, as its GPU kernels do.
"""
import argparse
import json
import os

import bitsandbytes
import bitsandbytes.backends.cpu.ops as bitsandbytes_ops
import torch

STEPS = 10


def nearest_codes(values, code, absmax, codes, blocksize):
    """In place of bitsandbytes' own for a CPU."""
    blocks = values.double().reshape(-1, blocksize)
    largest = blocks.abs().max(dim=1, keepdim=True).values
    places = (blocks / largest).unsqueeze(-1).sub(code.double()).abs().argmin(dim=-1)
    absmax.copy_(largest.flatten())
    codes.copy_(places.reshape(codes.shape))


def adamw8bit(matrices, lr, weight_decay, beta1, beta2, eps):
    bitsandbytes_ops._quant_blockwise_fp32_direct = nearest_codes
    return bitsandbytes.optim.AdamW8bit(matrices, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay,
                                        min_8bit_size=1)


def adafactor(matrices, lr, weight_decay):
    return torch.optim.Adafactor(matrices, lr=lr, weight_decay=weight_decay, eps=(2.0**-23, 1e-3))


def muon(matrices, lr, weight_decay, muon_momentum, nesterov, muon_scale):
    adjust = {"rms": "match_rms_adamw", "original": "original"}[muon_scale]
    return torch.optim.Muon(matrices, lr=lr, weight_decay=weight_decay, momentum=muon_momentum, nesterov=nesterov,
                            adjust_lr_fn=adjust)


def run(make, options, shape, blocks, generator, dtype=torch.float64, digits=12, transposed=True):
    """One case: PyTorch's matrices are the transposed blocks of ours."""
    def lying(matrix):
        return matrix.T if transposed else matrix

    first = torch.randn(shape, generator=generator, dtype=dtype)
    matrices = [torch.nn.Parameter(lying(m).clone()) for m in first.chunk(blocks, dim=-1)]
    optimizer = make(matrices, **options)
    grads, after = [], []
    for step in range(STEPS):
        grad = torch.randn(shape, generator=generator, dtype=dtype) * (1 if step % 3 else 0.01)
        grad = torch.round(grad, decimals=digits) if digits < 12 else grad
        for matrix, block in zip(matrices, grad.chunk(blocks, dim=-1)):
            matrix.grad = lying(block).clone()
        optimizer.step()
        grads.append(grad)
        after.append(torch.cat([lying(m.detach()) for m in matrices], dim=-1))

    def flat(tensor):
        return [round(x, digits) for x in tensor.flatten().tolist()]

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


def plain_cases():
    generator = torch.Generator().manual_seed(2)
    for name, shape, options in [("matrix", (3, 5), dict(lr=0.02, weight_decay=0.1)),
                                 ("fast", (6, 2), dict(lr=0.7, weight_decay=0.0)),
                                 ("vector", (7,), dict(lr=0.02, weight_decay=0.0))]:
        yield f"adafactor_{name}", dict(rule="adafactor", **run(adafactor, options, shape, 1, generator,
                                                                transposed=False))
    options = dict(lr=0.01, weight_decay=0.1, beta1=0.9, beta2=0.95, eps=1e-8)
    yield "adamw8bit_rows", dict(rule="adamw8bit", **run(adamw8bit, options, (2, 256), 1, generator, torch.float32, 6,
                                                         transposed=False))


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
    found |= dict(plain_cases())
    with open(out, "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(case)}" for name, case in found.items()) + "\n}\n")
    print(f"{out}: {len(found)} cases, {os.path.getsize(out)} bytes")


if __name__ == "__main__":
    main()
