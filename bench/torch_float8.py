#!/usr/bin/env python3
"""PyTorch's FP8 products (torch._scaled_mm, which is cuBLASLt) beside its bf16 ones, of the sizes that the forward pass
of GPT-2 124M has with 65,536 tokens: ms and TFLOP/s, and what a cast in a pass of its own costs.

  python3 bench/torch_float8.py
"""
import torch

SIZES = {"qkv": (65536, 2304, 768), "fc": (65536, 3072, 768), "logits of a chunk": (16384, 50304, 768)}
REPEATS = 30


def milliseconds(call):
    """The median of repeated calls after warm-up."""
    for _ in range(10):
        call()
    times = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[REPEATS // 2]


def main():
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    print(f"{'product':<20}{'M x N x K':<20}{'bf16 ms':>9}{'TFLOP/s':>9}{'e4m3 ms':>9}{'TFLOP/s':>9}{'cast ms':>9}")
    scale = torch.ones((), device="cuda")
    for name, (m, n, k) in SIZES.items():
        x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        w = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        x8, w8 = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
        wide = milliseconds(lambda: x @ w.t())
        narrow = milliseconds(lambda: torch._scaled_mm(x8, w8.t(), scale_a=scale, scale_b=scale,
                                                       out_dtype=torch.bfloat16, use_fast_accum=True))
        cast = milliseconds(lambda: x.to(torch.float8_e4m3fn))
        rate = 2e-9 * m * n * k
        print(f"{name:<20}{f'{m} x {n} x {k}':<20}{wide:9.3f}{rate / wide:9.0f}{narrow:9.3f}{rate / narrow:9.0f}{cast:9.3f}")


if __name__ == "__main__":
    main()
