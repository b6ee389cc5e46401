#!/usr/bin/env python3
"""Models go to Hugging Face's Transformers and come from there: the same losses, and the same training.

  tools/check_transformers.py build/release/bin/tokamak

Needs PyTorch and Transformers (pip install torch transformers), and says so where they are missing. Compares, in fp32:
the loss of models that Transformers made (GPT-2 tied and not, in one file and in several, F32, BF16 and F16; Llama,
Mistral, Qwen2 and Qwen3), ten steps of training that go on from some of them, the loss in Transformers of models that
were trained here, and the tensors' bytes after `import` and `export`. Of conversations (`prepare --chat`) the ids, what
of them is learned, and ten steps on the answers alone, accumulated and on two ranks.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import torch
    import transformers
    from safetensors.torch import load_file
except ImportError as error:
    print(f"check_transformers: SKIPPED, {error} (pip install torch transformers)")
    sys.exit(0)

CONTEXT, VOCAB, BATCH, STEPS = 64, 301, 8, 10
SIZES = {"n_embd": 48, "n_layer": 3, "n_head": 3, "n_positions": CONTEXT, "vocab_size": VOCAB, "bos_token_id": 0,
         "eos_token_id": 0}
MODELS = {
    "tied": ({}, torch.float32, "5GB"),
    "in several files": ({}, torch.float32, "100KB"),
    "untied": ({"tie_word_embeddings": False}, torch.float32, "5GB"),
    "bf16": ({}, torch.bfloat16, "5GB"),
    "f16": ({}, torch.float16, "5GB"),
}
OTHER_SIZES = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 4,
               "num_key_value_heads": 2, "max_position_embeddings": CONTEXT, "vocab_size": VOCAB, "bos_token_id": 0,
               "eos_token_id": 0, "pad_token_id": None}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}
OTHERS = {
    "llama": transformers.LlamaConfig(**OTHER_SIZES),
    "llama tied, llama3 scaling": transformers.LlamaConfig(**OTHER_SIZES, tie_word_embeddings=True, rope_parameters=LLAMA3),
    "mistral": transformers.MistralConfig(**OTHER_SIZES, sliding_window=20),
    "qwen2": transformers.Qwen2Config(**OTHER_SIZES, tie_word_embeddings=True),
    "qwen3": transformers.Qwen3Config(**OTHER_SIZES, head_dim=16),
}
OWN = {  # options of models that are trained here
    "gpt2 tied": ["--model.tie_weights=true"],
    "gpt2 untied": ["--model.tie_weights=false"],
    "llama": ["--model.family=llama", "--model.kv_heads=1", "--model.rope_scaling=llama3", "--model.rope_factor=2",
              "--model.rope_original_context=30"],
    "mistral": ["--model.family=llama", "--model.window=9", "--model.rope_scaling=linear", "--model.rope_factor=2"],
    "qwen2": ["--model.family=llama", "--model.qkv_bias=true", "--model.tie_weights=false"],
    "qwen3": ["--model.family=llama", "--model.qk_norm=true", "--model.head_width=24", "--model.kv_heads=1"],
}
TOKAMAK = sys.argv[1]
failed = 0


def report(name, got, expected, most):
    global failed
    good = abs(got - expected) <= most
    failed += not good
    print(f"{'ok    ' if good else 'FAILED'} {name}: {got:.6f} here, {expected:.6f} there")


def tokamak(*arguments):
    done = subprocess.run([TOKAMAK, *map(str, arguments), "--device=cpu"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{arguments}: {done.stderr}")
    return done.stdout


def windows(path):
    ids = torch.tensor(np.load(path).astype(np.int64))
    return ids[:-1].view(-1, CONTEXT), ids[1:].view(-1, CONTEXT)


def loss_there(model, path):
    x, y = windows(path)
    logits = model(x).logits
    return torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), y.reshape(-1))


def loss_here(model, path):  # of four digits
    return float(tokamak("eval", model, f"--data={path}").split("loss ")[1].split()[0])


def make(folder, name, config, dtype=torch.float32, shard="5GB"):
    model = transformers.AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    path = folder / name.replace(" ", "_").replace(",", "")
    model.to(dtype).save_pretrained(path, max_shard_size=shard)
    return path, transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()


def steps_there(model, losses_of, out, name):
    """Each step of a run here, compared with AdamW there on the loss that losses_of() gives."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    for line in (out / "metrics.jsonl").read_text().splitlines():
        loss = losses_of(model)
        step = json.loads(line)
        report(f"step {step['step']} {name}", step["loss"], loss.item(), 1e-5)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()


TRAINING = ("--train.eval_every=0", "--compile.precision=fp32", "--optimizer.lr=1e-3", "--optimizer.warmup_steps=0",
            "--optimizer.min_lr_ratio=1")


def check_training(folder, path, model, tokens, kind):
    out = folder / f"continued_{kind}"
    tokamak("train", f"--model.from={path}", f"--data.path={tokens}", f"--train.out={out}", f"--train.steps={STEPS}",
            f"--train.batch={BATCH}", *TRAINING)
    steps_there(model, lambda m: loss_there(m, tokens), out, f"from a {kind} of Transformers")


def check_bytes(folder, path, name):  # in and out again: the same tensors, and a model that opens
    inside, out = folder / "in", folder / "out"
    for arguments in (("import", path, inside), ("export", inside, out, "--shard-mib=1")):
        subprocess.run([TOKAMAK, *map(str, arguments), "--replace"], check=True, capture_output=True)
    given, got = ({key: t for file in sorted(where.glob("*.safetensors")) for key, t in load_file(file).items()}
                  for where in (path, out))
    same = len(given) == len(got) and all(
        t.dtype == got[key.removeprefix("transformer.")].dtype
        and torch.equal(t.view(torch.uint8), got[key.removeprefix("transformer.")].view(torch.uint8))
        for key, t in given.items())
    model, info = transformers.AutoModelForCausalLM.from_pretrained(out, output_loading_info=True)
    report(f"import and export, {name}: other tensors", len([k for k, v in info.items() if v]) + (not same), 0, 0)


CHAT = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% if m.role == 'assistant' %}{% generation %}"
        "{{ m.content + '<|im_end|>\\n' }}{% endgeneration %}{% else %}{{ m.content + '<|im_end|>\\n' }}{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def chat_tokenizer(folder):
    text = folder / "words.txt"
    text.write_text(" ".join(f"{word} and {word * 7 % 1000}" for word in range(2000)))
    subprocess.run([TOKAMAK, "prepare", str(text), f"--out={folder / 'words'}", "--vocab_size=400"], check=True,
                   capture_output=True)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "words/tokenizer.json"),
                                                     eos_token="<|endoftext|>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder / "tokenizer")
    return tokenizer


def conversations(tokenizer):
    """As many as give BATCH windows, with their ids and whether each is learned."""
    talks, ids, learned, end = [], [], [], tokenizer.convert_tokens_to_ids("<|endoftext|>")
    while len(ids) < CONTEXT * BATCH + 1:
        n = len(talks)
        talk = [{"role": role, "content": " ".join(str(k * k + n) for k in range((n * size) % 5 + 1))}
                for role, size in [("user", 3), ("assistant", 7)] * (1 + n % 3)]
        got = tokenizer.apply_chat_template(talk, return_dict=True, return_assistant_tokens_mask=True)
        ids += [end] * bool(ids) + got["input_ids"]
        learned += [1] * (len(ids) - len(learned) - len(got["input_ids"])) + got["assistant_masks"]
        talks.append(talk)
    return talks, torch.tensor(ids), torch.tensor(learned)


def check_chat(folder):
    tokenizer = chat_tokenizer(folder)
    talks, ids, learned = conversations(tokenizer)
    file, data = folder / "talk.jsonl", folder / "talk"
    file.write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in talks))
    for name in ("own", "chatml"):
        subprocess.run([TOKAMAK, "prepare", str(file), f"--vocab={folder / 'tokenizer'}", f"--chat={name}",
                        f"--out={data}", "--val-fraction=0"], check=True, capture_output=True)
        stored = np.fromfile(data / "train_000000.bin", dtype=np.uint32, offset=1024).astype(np.int64)
        wrong = len(stored) != len(ids) or int((torch.tensor(stored & 0x7fffffff) != ids).sum()) + int(
            (torch.tensor(stored >> 31) == learned).sum())
        report(f"conversations with --chat={name}, {int(learned.sum())} of {len(ids)} tokens learned: others", wrong, 0, 0)

    end = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    count = CONTEXT * BATCH
    x, y, counts = ids[:count].view(-1, CONTEXT), ids[1:count + 1].view(-1, CONTEXT), learned[1:count + 1].view(-1, CONTEXT)
    document = torch.cumsum(x == end, 1) - (x == end).int()
    sees = (document[:, :, None] == document[:, None, :]) & torch.tril(torch.ones(CONTEXT, CONTEXT, dtype=bool))
    targets = torch.where((counts == 1) & (x != end), y, -100)

    def masked_loss(model):
        logits = model(x, attention_mask=sees[:, None]).logits
        return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))

    made = transformers.GPT2LMHeadModel(transformers.GPT2Config(**{**SIZES, "vocab_size": len(tokenizer)}))
    made.save_pretrained(folder / "to_tune")
    for name, how in {"accumulated": ["--train.batch=2"], "on two ranks": ["--train.batch=4", "--mesh.data=2"]}.items():
        out = folder / name.replace(" ", "_")
        tokamak("train", f"--model.from={folder / 'to_tune'}", f"--data.path={data}", f"--train.out={out}",
                f"--train.steps={STEPS}", f"--model.context={CONTEXT}", f"--train.total_batch={count}", "--data.mask_documents=true", *how, *TRAINING)
        model = transformers.GPT2LMHeadModel.from_pretrained(folder / "to_tune", dtype=torch.float32).eval()
        steps_there(model, masked_loss, out, f"of answers alone, {name}")


def check_own(folder, kind):
    text = folder / "text.txt"
    text.write_text(" ".join(f"{word} and {word * 7 % 1000}" for word in range(4000)))
    data, out = folder / "data", folder / f"own_{kind.replace(' ', '_')}"
    if not data.exists():
        tokamak_prepare = [TOKAMAK, "prepare", str(text), f"--out={data}", "--vocab_size=400"]
        subprocess.run(tokamak_prepare, check=True, capture_output=True)
    tokamak("train", f"--data.path={data}", f"--train.out={out}", "--model.layers=2", "--model.heads=2",
            "--model.width=32", f"--model.context={CONTEXT}", *OWN[kind], "--train.steps=20",
            "--train.eval_every=0", "--model.dropout=0.1", "--compile.precision=fp32")
    checkpoint = (out / "checkpoints/latest").resolve()
    model, info = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32,
                                                                    output_loading_info=True)
    missing = [key for key, names in info.items() if names]
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    ids = tokenizer(text.read_text()[:9000])["input_ids"][:CONTEXT * BATCH + 1]
    tokens = folder / "own.npy"
    np.save(tokens, np.array(ids, dtype=np.uint16))
    name = f"a {kind} trained here" + (f", {missing}" if missing else "")
    report(name, loss_here(checkpoint, tokens), loss_there(model.eval(), tokens).item(), -1 if missing else 1e-4)


def main():
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokens = folder / "tokens.npy"
        np.save(tokens, np.random.default_rng(0).integers(0, VOCAB, CONTEXT * BATCH + 1).astype(np.uint16))
        for name, (options, dtype, shard) in MODELS.items():
            path, model = make(folder, name, transformers.GPT2Config(**SIZES, **options), dtype, shard)
            with torch.no_grad():
                report(f"a model of Transformers, {name}", loss_here(path, tokens), loss_there(model, tokens).item(), 1e-4)
            check_bytes(folder, path, name)
            if name == "tied":
                check_training(folder, path, model, tokens, "gpt2")
        check_chat(folder)
        for name, config in OTHERS.items():
            path, model = make(folder, name, config)
            with torch.no_grad():
                report(f"a model of Transformers, {name}", loss_here(path, tokens), loss_there(model, tokens).item(), 1e-4)
            check_bytes(folder, path, name)
            if "," not in name:
                check_training(folder, path, model, tokens, name)
        for kind in OWN:
            with torch.no_grad():
                check_own(folder, kind)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}: {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
