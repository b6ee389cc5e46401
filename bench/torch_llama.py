#!/usr/bin/env python3
"""Llama's step in PyTorch (torch.compile, BF16, fused AdamW), and Tokamak's beside it, in turn.

    python3 bench/torch_llama.py --tokamak build/release/bin/tokamak                 the shapes below
    python3 bench/torch_llama.py --tokamak build/release/bin/tokamak 64,1024,12,12,4,768,2048,0
    python3 bench/torch_llama.py --device cpu --vocab 512 2,64,1,4,2,64,128,16       PyTorch alone

A shape is B,T,LAYERS,HEADS,KV_HEADS,WIDTH,HIDDEN,WINDOW (0: none). Windows are flex_attention with a block mask; the
others are timed with PyTorch's own choice of attention and with cuDNN's, and the faster one counts. Both train on
random tokens; clipping and AdamW are part of a step.
"""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from torch_gpt2 import Style, measure, tokamak_top
from torch_table import print_table

SHAPES = [
    "64,1024,12,12,12,768,2048,0",     # GPT-2 124M's FLOPs
    "64,1024,12,12,4,768,2048,0",      # grouped queries
    "64,1024,12,6,2,768,2048,0",       # heads of 128, grouped
    "8,2048,16,16,4,2048,5632,0",      # heads of 128, a width of 2048
    "8,8192,12,12,12,768,2048,0",      # a long context
    "8,8192,12,12,12,768,2048,1024",   # with a window
]


@dataclass
class LlamaShape:
    batch: int
    context: int
    layers: int
    heads: int
    kv_heads: int
    width: int
    hidden: int
    window: int
    vocab: int

    @property
    def tokens(self):
        return self.batch * self.context

    @property
    def head_width(self):
        return self.width // self.heads


def rotation(shape, device):
    """Cosines and sines (T, head width / 2) of the positions' angles (Su et al., 2021)."""
    rates = 10000.0 ** (-torch.arange(0, shape.head_width, 2, device=device) / shape.head_width)
    angles = torch.arange(shape.context, device=device)[:, None] * rates
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """x (B, H, T, D); pairs are the two halves of a head, as in Transformers."""
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        kv = shape.kv_heads * shape.head_width
        self.q_proj, self.o_proj = (nn.Linear(shape.width, shape.width, bias=False) for _ in range(2))
        self.k_proj, self.v_proj = (nn.Linear(shape.width, kv, bias=False) for _ in range(2))

    def forward(self, x, cos, sin, mask):
        B, T, C = x.shape
        D, grouped = self.shape.head_width, self.shape.kv_heads < self.shape.heads
        q, k, v = (p(x).view(B, T, -1, D).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if mask is not None:
            y = flex_attention(q, k, v, block_mask=mask, enable_gqa=grouped)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
        return self.o_proj(y.transpose(1, 2).reshape(B, T, C))


class Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(shape.width, shape.hidden, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = (nn.RMSNorm(shape.width, eps=1e-5) for _ in range(2))
        self.self_attn, self.mlp = Attention(shape), Mlp(shape)

    def forward(self, x, *attention):
        x = x + self.self_attn(self.input_layernorm(x), *attention)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """tokens (B, T), targets (B, T) -> mean loss. The token embedding is the last layer's matrix."""

    def __init__(self, shape, device):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab, shape.width)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=1e-5)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
        cos, sin = rotation(shape, "cpu")
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.mask = window_mask(shape, device) if shape.window else None

    def forward(self, tokens, targets):
        x = self.embed_tokens(tokens)
        for block in self.layers:
            x = block(x, self.cos, self.sin, self.mask)
        logits = F.linear(self.norm(x), self.embed_tokens.weight)  # (B, T, V)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def window_mask(shape, device):
    def seen(b, h, q, k):
        return (q >= k) & (q - k < shape.window)
    return create_block_mask(seen, None, None, shape.context, shape.context, device=device)


def parse_shape(text, vocab):
    return LlamaShape(*map(int, text.split(",")), vocab)


def run_torch(shape, device, steps, profile):
    """The faster way of attention, named."""
    ways = {"flex": Style()} if shape.window else {"sdpa": Style(), "cudnn": Style(cudnn=True)}
    if device == "cpu":
        ways.pop("cudnn", None)
    best = dict(error="no way of attention works")
    for name, style in ways.items():
        try:
            found = dict(measure(shape, style, device, steps, make=lambda: Llama(shape, device),
                                 profile=profile), way=name)
        except Exception as error:  # out of memory, or a way that does not take the shape
            found = dict(error=" ".join(str(error).split())[:60])
        if "error" not in found and found["tokens_per_s"] > best.get("tokens_per_s", 0):
            best = found
        elif "error" in best:
            best = found
    return best


def run_tokamak(program, shape, device, steps):
    """Milliseconds of the top of Tokamak's ladder."""
    options = {"device": device, "steps": steps, "train.batch": shape.batch,
               "model.family": "llama", "model.context": shape.context, "model.layers": shape.layers,
               "model.heads": shape.heads, "model.kv_heads": shape.kv_heads, "model.width": shape.width,
               "model.hidden": shape.hidden, "model.window": shape.window}
    return tokamak_top(program, shape.vocab, options)


def format_theirs(theirs):
    return f"{theirs['way']:>6}{theirs['tokens_per_s']:>10.0f}{theirs['peak_gib']:>10.2f}"


if __name__ == "__main__":
    print_table("Llama's step in PyTorch, and Tokamak's beside it.", "B,T,layers,heads,kv,width,hidden,window", SHAPES,
                parse_shape, run_torch, run_tokamak, f"{'way':>6}{'PyTorch':>10}{'peak GiB':>10}", format_theirs)
