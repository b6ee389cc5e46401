#!/usr/bin/env python3
"""Compares the GPT-2 of torch_gpt2.py with the one that Tokamak is tested against: losses and gradients of a tiny model.

    python3 bench/torch_golden.py        on the CPU, in a second; needs tests/goldens only
"""
import json
import struct
import sys
from dataclasses import fields
from pathlib import Path

import torch

from torch_gpt2 import Gpt2, Shape, Style, make_optimizer, train_step

GOLDEN = Path(__file__).resolve().parent.parent / "tests/goldens/gpt2_tiny.safetensors"


def read_safetensors(path):
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    facts = header.pop("__metadata__")
    types = {"F32": torch.float32, "I32": torch.int32}

    def tensor(entry):
        first, last = entry["data_offsets"]
        return torch.frombuffer(bytearray(data[begin + first:begin + last]), dtype=types[entry["dtype"]]).view(entry["shape"])

    return {name: tensor(entry) for name, entry in header.items()}, facts


def as_in_file(name, tensor):
    """nn.Linear has weights as (out, in), Hugging Face's GPT-2 as (in, out)."""
    return tensor.T if ".c_" in name and name.endswith(".weight") else tensor


def distance(ours, golden):
    return ((ours - golden).abs().max() / golden.abs().max()).item()


def compare(flash):
    """Worst relative difference of the losses of all steps, and of the first step's gradients."""
    golden, facts = read_safetensors(GOLDEN)
    number = lambda key: json.loads(facts[key])
    model = Gpt2(Shape(**{f.name: number(f.name) for f in fields(Shape)}), flash)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            as_in_file(name, parameter).copy_(golden["param." + name])
    batches = [(golden[f"tokens.{s}"].long(), golden[f"targets.{s}"].long()) for s in range(number("steps"))]

    model(*batches[0]).backward()
    gradients = max(distance(as_in_file(name, p.grad), golden["grad." + name]) for name, p in model.named_parameters())

    optimizer = make_optimizer(model, fused=False, lr=number("lr"), betas=(number("beta1"), number("beta2")),
                               eps=number("eps"), weight_decay=number("weight_decay"))
    style = Style(bf16=False, clip=number("clip"))
    losses = torch.stack([train_step(model, optimizer, *batch, style) for batch in batches])
    return distance(losses, golden["losses"]), gradients


def main():
    failed = False
    for flash in (False, True):
        losses, gradients = compare(flash)
        failed |= losses > 1e-5 or gradients > 1e-4
        print(f"flash={flash}: losses within {losses:.1e}, gradients within {gradients:.1e} of {GOLDEN.name}")
    if failed:
        sys.exit("expected losses within 1e-5 and gradients within 1e-4")


if __name__ == "__main__":
    main()
