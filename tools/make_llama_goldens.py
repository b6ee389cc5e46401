#!/usr/bin/env python3
"""Writes tests/goldens/{llama,mistral,qwen2,qwen3}_tiny.safetensors: what Transformers computes for very small models.

Regenerate (PyTorch 2.x and Transformers 5.x on a CPU, no network):
    python3 tools/make_llama_goldens.py [--out tests/goldens]
The C++ tests read the committed files and need no Python. Another version may change the last bits.

Each file holds (F32 unless said; B = 2, T = 16, V = 61, S = 10 steps):
    param.<name>             every parameter before training, random, biases and gains too
    tokens.<s>, targets.<s>  (B, T) I32, the batch of step s = 0..S-1; targets are already shifted by one
    logits, loss             (B, T, V) and (1): forward of batch 0 with param.*
    grad.<name>              gradients of that loss, before clipping
    losses, grad_norms       (S): of each AdamW step, before its update; the norms before clipping
    after.<name>             every parameter after S AdamW steps, one on each batch
    __metadata__             config: the model's config.json as Transformers writes it; the optimizer's numbers
Names of parameters are those of the Transformers model. Among the models: fewer heads of keys than of queries, tied and
untied heads, both scalings of rotary positions that we know, biases, norms of queries and keys with heads of a width of
their own, and a window of fewer tokens than a sequence has.
"""
import argparse
import os

import torch
import transformers

from make_goldens import BATCH, OPTIMIZER, STEPS, random_batches, write_safetensors

CLIP, VOCAB, CONTEXT = 1.0, 61, 16
SIZES = dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=CONTEXT, bos_token_id=0, eos_token_id=0, pad_token_id=None)
LLAMA3 = dict(rope_type="llama3", rope_theta=1000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=3.0,
              original_max_position_embeddings=12)
LINEAR = dict(rope_type="linear", rope_theta=10000.0, factor=2.0)
MODELS = {
    "llama_tiny": transformers.LlamaConfig(**SIZES, rms_norm_eps=1e-5, rope_parameters=LLAMA3),
    "mistral_tiny": transformers.MistralConfig(**SIZES, sliding_window=5, rope_parameters=LINEAR),
    "qwen2_tiny": transformers.Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen3_tiny": transformers.Qwen3Config(**SIZES, head_dim=8, tie_word_embeddings=True),
}


def randomise(model, generator):
    """Every parameter random and of a size at which all gradients matter; gains around 1."""
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        gain = parameter.dim() == 1 and name.endswith(".weight")
        parameter.data = 1 + 0.2 * noise if gain else 0.2 * noise


def loss_of(model, tokens, targets):
    logits = model(tokens).logits
    return logits, torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def golden(config, generator):
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).float().train()
    randomise(model, generator)
    batches = random_batches(generator, VOCAB)
    parameters = dict(model.named_parameters())
    tensors = {"param." + name: p.detach().clone() for name, p in parameters.items()}
    groups = [dict(params=[p for p in parameters.values() if p.dim() >= 2], weight_decay=OPTIMIZER["weight_decay"]),
              dict(params=[p for p in parameters.values() if p.dim() < 2], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=OPTIMIZER["lr"], betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]),
                                  eps=OPTIMIZER["eps"])
    losses, norms = [], []
    for step, (tokens, targets) in enumerate(batches):
        tensors[f"tokens.{step}"], tensors[f"targets.{step}"] = tokens.int(), targets.int()
        optimizer.zero_grad()
        logits, loss = loss_of(model, tokens, targets)
        loss.backward()
        if step == 0:
            tensors["logits"], tensors["loss"] = logits.detach().clone(), loss.detach().reshape(1)
            tensors.update({"grad." + name: p.grad.clone() for name, p in parameters.items()})
        norms.append(torch.nn.utils.clip_grad_norm_(list(parameters.values()), CLIP).detach())
        optimizer.step()
        losses.append(loss.detach())
    tensors["losses"], tensors["grad_norms"] = torch.stack(losses), torch.stack(norms)
    tensors.update({"after." + name: p.detach() for name, p in parameters.items()})
    metadata = {"config": config.to_json_string(use_diff=False), "batch": str(BATCH), "steps": str(STEPS),
                "clip": str(CLIP), **{key: str(value) for key, value in OPTIMIZER.items()}}
    return tensors, metadata


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="tests/goldens")
    out = parser.parse_args().out
    transformers.logging.set_verbosity_error()
    for seed, (name, config) in enumerate(MODELS.items()):
        tensors, metadata = golden(config, torch.Generator().manual_seed(seed))
        path = os.path.join(out, name + ".safetensors")
        write_safetensors(path, tensors, metadata)
        print(f"{path}: {os.path.getsize(path)} bytes, loss {tensors['losses'][0]:.4f} to {tensors['losses'][-1]:.4f}")


if __name__ == "__main__":
    main()
