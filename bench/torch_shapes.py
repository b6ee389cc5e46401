#!/usr/bin/env python3
"""PyTorch's step (torch.compile, flash attention, fused AdamW, BF16) at many shapes, and Tokamak's beside it.

    python3 bench/torch_shapes.py --tokamak build/release/bin/tokamak        both, in turn, and the ratio
    python3 bench/torch_shapes.py 16,1024,12,12,768,0.1                      PyTorch alone, at one shape
    python3 bench/torch_shapes.py --tokamak build/release/bin/tokamak --device cpu --vocab 512 2,64,1,2,64,0

A shape is B,T,LAYERS,HEADS,WIDTH,DROPOUT. Both train on random tokens; clipping and AdamW are part of a step.
"""
from torch_gpt2 import Shape, Style, measure, tokamak_top
from torch_table import print_table

SHAPES = [
    "64,1024,12,12,768,0",
    "1,1024,12,12,768,0",
    "64,512,8,8,512,0",
    "16,1000,12,12,768,0",
    "4,4096,12,12,768,0",
    "1,16384,12,12,768,0",
    "1,32768,12,12,768,0",
    "16,1024,12,8,768,0",     # heads of 96
    "16,1024,24,8,1024,0",    # heads of 128
    "8,1024,16,16,2048,0",    # heads of 128
    "4,1024,8,32,4096,0",     # heads of 128
    "16,1024,12,12,768,0.1",  # dropout
    "32,1024,48,25,1600,0",   # 1558M
]


def parse_shape(text, vocab):
    batch, context, layers, heads, width, dropout = text.split(",")
    return Shape(int(batch), int(context), int(layers), int(heads), int(width), vocab, float(dropout))


def run_tokamak(program, shape, device, steps):
    """Milliseconds of the top of Tokamak's ladder."""
    options = {"device": device, "train.batch": shape.batch, "model.context": shape.context, "steps": steps,
               "model.layers": shape.layers, "model.heads": shape.heads, "model.width": shape.width,
               "model.dropout": shape.dropout}
    return tokamak_top(program, shape.vocab, options)


def run_torch(shape, device, steps, profile):
    try:
        return measure(shape, Style(), device, steps, profile=profile)
    except Exception as error:  # out of memory at a large shape: the others still count
        return dict(error=" ".join(str(error).split())[:60])


def format_theirs(theirs):
    return f"{theirs['tokens_per_s']:>10.0f}{theirs['peak_gib']:>10.2f}"


if __name__ == "__main__":
    print_table("PyTorch, and Tokamak beside it, at many shapes.", "B,T,layers,heads,width,dropout", SHAPES, parse_shape,
                run_torch, run_tokamak, f"{'PyTorch':>10}{'peak GiB':>10}", format_theirs)
