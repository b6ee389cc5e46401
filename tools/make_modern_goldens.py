#!/usr/bin/env python3
"""Writes tests/goldens/modern_*.safetensors: what a small PyTorch model of the family `modern` computes.

Regenerate (any PyTorch 2.x on a CPU; no other package, no network):
    python3 tools/make_modern_goldens.py [--out tests/goldens]
The C++ tests read the committed files and need no Python. Another version of PyTorch may change the last bits.

Each file holds what tools/make_llama_goldens.py documents (B = 2, T = 16, V = 61, S = 10 steps), but that __metadata__
has `run`: the options model.* of the run as JSON, under the names of src/config/model_config.h, which this model reads,
too. Between them the files have each option on and off. It computes in float64, from parameters that are float32, and
the term of AdamW against division by zero is large enough that gradients of almost nothing make no steps of noise.
"""
import argparse
import json
import os

import torch
import torch.nn.functional as F

from make_goldens import BATCH, OPTIMIZER as USUAL, STEPS, random_batches, write_safetensors

CLIP = 1.0
OPTIMIZER = dict(USUAL, eps=1e-5)
SIZES = dict(family="modern", layers=2, heads=4, width=24, context=16, vocab=61, kv_heads=2, norm_eps=1e-5,
             activation="relu2", tie_weights=False, norm_weights=False, qk_norm=False, embedding_norm=False,
             softcap=0.0, softcap_shift=0.0, softcap_width=0.0, head_width=0, hidden=0, rope_theta=10000.0,
             window=0, window_pattern="S", value_embeddings=0, skip_blocks=False, x0_mix=False)
MODELS = {
    "modern_tiny": dict(SIZES, qk_norm=True, embedding_norm=True, softcap=3.0),
    "modern_gated_tiny": dict(SIZES, activation="silu", hidden=40, tie_weights=True, norm_weights=True, qk_norm=True,
                              embedding_norm=True, kv_heads=4, head_width=8, softcap=2.5, softcap_shift=1.25,
                              softcap_width=4.0, value_embeddings=1, window=5, window_pattern="LS"),
    "modern_deep_tiny": dict(SIZES, layers=5, width=16, activation="gelu", hidden=24, skip_blocks=True,
                             x0_mix=True, value_embeddings=2, window=3, window_pattern="SSL"),
}


class Model:
    """Parameters by name, and the forward pass of them."""

    def __init__(self, m, generator):
        self.m, self.generator, self.p = m, generator, {}
        self.D = m["head_width"] or m["width"] // m["heads"]
        self.hidden = m["hidden"] or 4 * m["width"]
        C, queries, keys = m["width"], m["heads"] * self.D, m["kv_heads"] * self.D
        self.matrix("model.embed_tokens", m["vocab"], C)
        if m["embedding_norm"]:
            self.gain("model.embed_norm", C)
        for layer in range(m["layers"]):
            at = f"model.layers.{layer}."
            if self.has_skip(layer):
                self.scale(at + "skip_scale")
            if m["x0_mix"]:
                self.scale(at + "x_scale")
                self.scale(at + "x0_scale")
            self.gain(at + "input_layernorm", C)
            for name, out in (("q", queries), ("k", keys), ("v", keys)):
                self.matrix(at + f"self_attn.{name}_proj", out, C)
            if self.has_values(layer):
                self.matrix(at + "self_attn.value_embed", m["vocab"], keys)
                self.scale(at + "self_attn.v_scale")
                self.scale(at + "self_attn.value_embed_scale")
            if m["qk_norm"]:
                self.gain(at + "self_attn.q_norm", self.D)
                self.gain(at + "self_attn.k_norm", self.D)
            self.matrix(at + "self_attn.o_proj", C, queries)
            self.gain(at + "post_attention_layernorm", C)
            if m["activation"] == "silu":
                self.matrix(at + "mlp.gate_proj", self.hidden, C)
            self.matrix(at + "mlp.up_proj", self.hidden, C)
            self.matrix(at + "mlp.down_proj", C, self.hidden)
        self.gain("model.norm", C)
        if not m["tie_weights"]:
            self.matrix("lm_head", m["vocab"], C)

    def random(self, name, mean, *shape):
        values = mean + 0.2 * torch.randn(*shape, generator=self.generator)
        self.p[name] = values.double().requires_grad_()

    def matrix(self, name, rows, cols):
        self.random(name + ".weight", 0, rows, cols)

    def gain(self, name, width):
        if self.m["norm_weights"]:
            self.random(name + ".weight", 1, width)

    def scale(self, name):
        self.random(name, 0.7, 1)

    def has_skip(self, layer):
        return self.m["skip_blocks"] and layer > self.m["layers"] - 1 - layer

    def has_values(self, layer):
        every = self.m["value_embeddings"]
        return every > 0 and (self.m["layers"] - 1 - layer) % every == 0

    def norm(self, x, name):
        y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.m["norm_eps"])
        return y * self.p[name + ".weight"] if self.m["norm_weights"] else y

    def linear(self, x, name):
        return x @ self.p[name + ".weight"].T

    def heads(self, x):  # (B, T, H D) -> (B, H, T, D)
        return x.view(x.shape[0], x.shape[1], -1, self.D).transpose(1, 2)

    def turned(self, x):  # (B, H, T, D)
        frequency = self.m["rope_theta"] ** (-torch.arange(0, self.D, 2, dtype=torch.float64) / self.D)
        angle = torch.arange(x.shape[2], dtype=torch.float32)[:, None] * frequency.float()[None]
        cos, sin = angle.double().cos(), angle.double().sin()
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(self, x, at, layer, tokens):
        q, k, v = (self.heads(self.linear(x, at + name)) for name in ("q_proj", "k_proj", "v_proj"))
        if self.m["qk_norm"]:
            q, k = self.norm(q, at + "q_norm"), self.norm(k, at + "k_norm")
        if self.has_values(layer):
            of_tokens = self.heads(self.p[at + "value_embed.weight"][tokens])
            v = self.p[at + "v_scale"] * v + self.p[at + "value_embed_scale"] * of_tokens
        q, k = self.turned(q), self.turned(k)
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        T, pattern = x.shape[1], self.m["window_pattern"]
        window = self.m["window"] if self.m["window"] and pattern[layer % len(pattern)] == "S" else T
        distance = torch.arange(T)[:, None] - torch.arange(T)[None]  # of the key before the query
        scores = q @ k.transpose(2, 3) / self.D**0.5
        scores = scores.masked_fill((distance < 0) | (distance >= window), float("-inf"))
        return self.linear((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), at + "o_proj")

    def mlp(self, x, at):
        up = self.linear(x, at + "up_proj")
        if self.m["activation"] == "silu":
            up = F.silu(self.linear(x, at + "gate_proj")) * up
        elif self.m["activation"] == "gelu":
            up = F.gelu(up, approximate="tanh")
        else:
            up = F.relu(up).square()
        return self.linear(up, at + "down_proj")

    def logits(self, tokens):
        x = self.p["model.embed_tokens.weight"][tokens]
        if self.m["embedding_norm"]:
            x = self.norm(x, "model.embed_norm")
        x0, outputs = x, []
        for layer in range(self.m["layers"]):
            at = f"model.layers.{layer}."
            if self.has_skip(layer):
                x = x + self.p[at + "skip_scale"] * outputs[self.m["layers"] - 1 - layer]
            if self.m["x0_mix"]:
                x = self.p[at + "x_scale"] * x + self.p[at + "x0_scale"] * x0
            x = x + self.attention(self.norm(x, at + "input_layernorm"), at + "self_attn.", layer, tokens)
            x = x + self.mlp(self.norm(x, at + "post_attention_layernorm"), at + "mlp.")
            outputs.append(x)
        logits = self.linear(self.norm(x, "model.norm"), "model.embed_tokens" if self.m["tie_weights"] else "lm_head")
        cap, width = self.m["softcap"], self.m["softcap_width"] or self.m["softcap"]
        return cap * torch.tanh((logits + self.m["softcap_shift"]) / width) if cap else logits


def golden(m, generator):
    model = Model(m, generator)
    batches, parameters = random_batches(generator, m["vocab"]), model.p
    tensors = {"param." + name: p.detach().clone() for name, p in parameters.items()}
    groups = [dict(params=[p for p in parameters.values() if p.dim() >= 2], weight_decay=OPTIMIZER["weight_decay"]),
              dict(params=[p for p in parameters.values() if p.dim() < 2], weight_decay=0.0)]
    optimizer = torch.optim.AdamW([g for g in groups if g["params"]], lr=OPTIMIZER["lr"],
                                  betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), eps=OPTIMIZER["eps"])
    losses, norms = [], []
    for step, (tokens, targets) in enumerate(batches):
        tensors[f"tokens.{step}"], tensors[f"targets.{step}"] = tokens.int(), targets.int()
        optimizer.zero_grad()
        logits = model.logits(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        if step == 0:
            tensors["logits"], tensors["loss"] = logits.detach().clone(), loss.detach().reshape(1)
            tensors.update({"grad." + name: p.grad.clone() for name, p in parameters.items()})
        norms.append(torch.nn.utils.clip_grad_norm_(list(parameters.values()), CLIP).detach())
        optimizer.step()
        losses.append(loss.detach())
    tensors["losses"], tensors["grad_norms"] = torch.stack(losses), torch.stack(norms)
    tensors.update({"after." + name: p.detach().clone() for name, p in parameters.items()})
    tensors = {name: t if t.dtype == torch.int32 else t.float() for name, t in tensors.items()}
    metadata = {"run": json.dumps({"model": m}), "batch": str(BATCH), "steps": str(STEPS), "clip": str(CLIP),
                **{key: str(value) for key, value in OPTIMIZER.items()}}
    return tensors, metadata


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="tests/goldens")
    out = parser.parse_args().out
    torch.set_num_threads(1)  # the order of sums must not depend on the machine's cores
    for seed, (name, m) in enumerate(MODELS.items()):
        tensors, metadata = golden(m, torch.Generator().manual_seed(seed))
        path = os.path.join(out, name + ".safetensors")
        write_safetensors(path, tensors, metadata)
        print(f"{path}: {os.path.getsize(path)} bytes, loss {tensors['losses'][0]:.4f} to {tensors['losses'][-1]:.4f}")


if __name__ == "__main__":
    main()
