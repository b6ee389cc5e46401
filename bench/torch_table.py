"""The table of PyTorch's step and Tokamak's, shape by shape, that torch_shapes.py and torch_llama.py print."""
import argparse

import torch

from torch_gpt2 import release


def with_ours(row, theirs, ours):
    """The row of a table with PyTorch's figures, and then Tokamak's, the ratio, and the error of the predicted time; and
    a line with PyTorch's kinds of kernels, where they were profiled."""
    kinds = ", ".join(f"{kind} {ms:.2f}" for kind, ms in theirs.get("kinds", {}).items())
    more = f"\n  {theirs['ms']} ms: {kinds}" if kinds else ""
    if "error" in ours:
        return f"{row}  {ours['error']}".rstrip() + more
    ratio = "" if "error" in theirs else f"{ours['tokens_per_s'] / theirs['tokens_per_s']:.2f}"
    return row + f"{ours['tokens_per_s']:>10.0f}{ratio:>7}{100 * ours['predicted']:>+9.1f}%" + more


def print_table(description, columns, shapes, parse_shape, run_torch, run_tokamak, their_columns, format_theirs):
    """The program: takes the options, measures each shape on both sides and prints a row for it. `columns` names the parts
    of a shape, `their_columns` PyTorch's figures, which `format_theirs` writes as wide."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("shapes", nargs="*", default=shapes, help=columns)
    parser.add_argument("--tokamak", help="the program, to run beside")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--vocab", type=int, default=50304)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--profile", action="store_true", help="also what PyTorch's kernels of each kind take, ms a step")
    args = parser.parse_args()
    shape_width, their_width = len(columns) + 2, len(their_columns)
    print(f"PyTorch {torch.__version__}; tokens/s")
    print(f"{columns:<{shape_width}}{their_columns}{'Tokamak':>10}{'ratio':>7}{'predicted':>10}")
    for text in args.shapes:
        shape = parse_shape(text, args.vocab)
        theirs = run_torch(shape, args.device, args.steps, args.profile)
        release(args.device)
        ours = run_tokamak(args.tokamak, shape, args.device, args.steps) if args.tokamak else dict(error="")
        figures = f"{theirs['error']:<{their_width}.{their_width}}" if "error" in theirs else format_theirs(theirs)
        row = f"{text:<{shape_width}}{figures}"
        print(with_ours(row, theirs, ours), flush=True)
