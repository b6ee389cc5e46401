"""GPT-2 and its training step in PyTorch, as its users write them today; what the other torch_*.py share.

Modules have Hugging Face's names. B sequences of T tokens, C the width, H heads, V the vocabulary.
"""
import contextlib
import gc
import json
import math
import resource
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

LOAD_SECONDS = 4  # of steps before those that a prediction is compared with
REAL_TOKENS = 50257  # ids that occur, whatever the vocabulary is padded to


@dataclass
class Shape:
    """GPT-2 124M at the context that everybody trains it with."""
    batch: int = 16
    context: int = 1024
    layers: int = 12
    heads: int = 12
    width: int = 768
    vocab: int = 50304
    dropout: float = 0.0

    @property
    def tokens(self):
        return self.batch * self.context


@dataclass
class Style:
    """How the step runs; the defaults are what a user of PyTorch would write today for a GPU."""
    tf32: bool = True
    bf16: bool = True
    compile: bool = True
    flash: bool = True
    fused: bool = True
    cudnn: bool = False  # attention by cuDNN instead of PyTorch's own choice
    fp8: bool = False  # linear layers by torchao's tensorwise recipe; the tied head stays as it is, being none
    clip: float = 1.0


class Attention(nn.Module):
    def __init__(self, shape, flash):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(shape.width, 3 * shape.width), nn.Linear(shape.width, shape.width)
        self.heads, self.dropout, self.flash = shape.heads, shape.dropout, flash
        if not flash:
            future = torch.ones(shape.context, shape.context, dtype=torch.bool).triu(1)
            self.register_buffer("future", future, persistent=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        dropout = self.dropout if self.training else 0.0
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        else:
            scores = q @ k.transpose(2, 3) / math.sqrt(C // self.heads)  # (B, H, T, T)
            weights = scores.masked_fill(self.future[:T, :T], float("-inf")).softmax(dim=-1)
            y = F.dropout(weights, dropout) @ v
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, shape, flash):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.attn, self.mlp = Attention(shape, flash), Mlp(shape.width)
        self.drop = nn.Dropout(shape.dropout)

    def forward(self, x):
        x = x + self.drop(self.attn(self.ln_1(x)))
        return x + self.drop(self.mlp(self.ln_2(x)))


class Gpt2(nn.Module):
    """tokens (B, T), targets (B, T) -> mean loss. The token embedding is the last layer's matrix."""

    def __init__(self, shape, flash=True):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(shape.vocab, shape.width), nn.Embedding(shape.context, shape.width)
        self.drop = nn.Dropout(shape.dropout)
        self.h = nn.ModuleList(Block(shape, flash) for _ in range(shape.layers))
        self.ln_f = nn.LayerNorm(shape.width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.drop(self.wte(tokens) + self.wpe.weight[:tokens.shape[1]])
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)  # (B, T, V)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_optimizer(model, fused, lr=3e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1):
    """AdamW that decays matrices only."""
    groups = [dict(params=[p for p in model.parameters() if p.dim() > 1], weight_decay=weight_decay),
              dict(params=[p for p in model.parameters() if p.dim() < 2], weight_decay=0.0)]
    return torch.optim.AdamW(groups, lr=lr, betas=betas, eps=eps, fused=fused)


def train_step(model, optimizer, tokens, targets, style):
    """Forward, loss, backward, clipping and update; returns the loss, still on the device."""
    autocast = torch.autocast(tokens.device.type, torch.bfloat16, enabled=style.bf16)
    attention = sdpa_kernel(SDPBackend.CUDNN_ATTENTION) if style.cudnn else contextlib.nullcontext()
    optimizer.zero_grad(set_to_none=True)
    with attention:
        with autocast:
            loss = model(tokens, targets)
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), style.clip)
    optimizer.step()
    return loss.detach()


def seconds_of(step, device):
    """One step, timed by the device's events, or by the clock on the CPU."""
    if device != "cuda":
        start = time.perf_counter()
        loss = step()
        return time.perf_counter() - start, loss
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    loss = step()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3, loss


def joule_counter():
    """What the GPU has used since its driver began to count: a function, or None where NVML is not there."""
    try:
        import pynvml
        pynvml.nvmlInit()
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        gpu = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{properties.uuid}".encode())
        pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
    except Exception:  # the package, the driver or the counter is missing
        return None
    return lambda: 1e-3 * pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)


def load_device(step, seconds):
    """Steps for so long. Returns the joules of a step in its second half, or None."""
    joules = joule_counter()
    for _ in range(2):
        torch.cuda.synchronize()
        before, steps, begin = joules and joules(), 0, time.perf_counter()
        while time.perf_counter() - begin < seconds / 2:
            losses = [step() for _ in range(2)]
            losses[0].item()  # the next step is under way
            steps += 2
        torch.cuda.synchronize()
    return (joules() - before) / steps if joules else None


KINDS = {"attention": ("flash", "fmha", "cudnn", "attention", "flex"),
         "products": ("gemm", "nvjet", "cutlass", "splitk", "matmul")}


def profile_kinds(step, steps=3):
    """Milliseconds of a step's kernels on the GPU, by kind; told by their names."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    ms = {"products": 0.0, "attention": 0.0, "others": 0.0}
    for event in profiler.key_averages():
        name = event.key.lower()
        kind = next((kind for kind, parts in KINDS.items() if any(part in name for part in parts)), "others")
        ms[kind] += event.self_device_time_total * 1e-3 / steps
    return ms


def peak_gib(device):
    """The most that was allocated: on the GPU since measure() began, else by the process."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def release(device):
    """Gives back what an earlier measurement held, so that the next one, or another process, has the memory."""
    torch.compiler.reset()
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def measure(shape, style, device="cuda", steps=12, warmup=4, make=None, load=0, profile=False):
    """Median of `steps` training steps on random tokens after `warmup` others, with what a reader needs beside it.
    `make` returns another model than GPT-2. `load`: seconds of steps before those that are timed.
    `profile`: also what kernels of each kind take, in steps of their own."""
    release(device)
    torch.manual_seed(0)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    torch.set_float32_matmul_precision("high" if style.tf32 else "highest")
    model = (make() if make else Gpt2(shape, style.flash)).to(device)
    if style.fp8:
        from torchao.float8 import convert_to_float8_training  # a package of its own
        model = convert_to_float8_training(model)
    optimizer = make_optimizer(model, style.fused)
    tokens, targets = torch.randint(min(REAL_TOKENS, shape.vocab), (2, shape.batch, shape.context), device=device)
    run = torch.compile(model) if style.compile else model

    def step():
        return train_step(run, optimizer, tokens, targets, style)

    start = time.perf_counter()
    for _ in range(warmup):
        step().item()
    warm = time.perf_counter() - start
    joules = load_device(step, load) if load else None
    times, losses = zip(*(seconds_of(step, device) for _ in range(steps)))
    median = statistics.median(times)
    result = dict(ms=round(median * 1e3, 2), min_ms=round(min(times) * 1e3, 2), tokens_per_s=round(shape.tokens / median, 1),
                  peak_gib=round(peak_gib(device), 2), warmup_s=round(warm, 1), loss=round(losses[-1].item(), 4))
    if joules:
        result["mj_per_token"] = round(1e3 * joules / shape.tokens, 4)
    if profile:
        result["kinds"] = profile_kinds(step)
    return result


def tokamak_top(program, vocab, options):
    """tokens/s of the top of Tokamak's ladder with these options, at once, as PyTorch's are, and how far off the predicted
    time is, which is of long runs, after a load; or what went wrong."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        options = dict(options, json=file.name, load=LOAD_SECONDS if options["device"] == "cuda" else 0)
        if vocab < REAL_TOKENS:
            options["model.vocab"] = vocab
        command = [program, "ladder", "--top"] + [f"--{key}={value}" for key, value in options.items()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return dict(error=done.stderr.strip()[:60])
        rungs = json.load(open(file.name))["rungs"]
        rung = rungs[0]
        if "failure" in rung:
            return dict(error=rung["failure"][:60])
        return dict(tokens_per_s=rung["tokens_per_second"], predicted=rungs[-1]["prediction_error"])
