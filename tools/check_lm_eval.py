#!/usr/bin/env python3
"""lm-evaluation-harness opens checkpoints of ours as they are, and gives the same numbers.

  tools/check_lm_eval.py build/release/bin/tokamak [../shared/data]

Needs lm_eval with its model class hf (pip install "lm_eval[hf]"), and says so where it is missing; no network. Trains a
small model of each family that Transformers has on a part of Shakespeare with GPT-2's vocabulary, and runs two tasks on
its checkpoint that are files of the disk: the log-likelihood of a text, beside `tokamak eval` of the same tokens, and
the choice between two endings, beside Transformers alone.
"""
import json
import os
import sys
import tempfile
from pathlib import Path

import program_checks

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
try:
    import lm_eval
    import numpy as np
    import torch
    import transformers
    from lm_eval.tasks import TaskManager
except ImportError as error:
    print(f'check_lm_eval: SKIPPED, {error} (pip install "lm_eval[hf]")')
    sys.exit(0)

TOKAMAK, DATA = sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "../shared/data")
CONTEXT, WINDOWS = 64, 6
FAMILIES = {  # options of models that are trained here
    "gpt2": [],
    "gpt2 untied": ["--model.tie_weights=false", "--model.bias=false"],
    "llama": ["--model.family=llama", "--model.kv_heads=1"],
    "qwen3": ["--model.family=llama", "--model.qk_norm=true", "--model.head_width=24"],
}
TASKS = {
    "text": """
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list:
  - metric: bits_per_byte
""",
    "endings": """
output_type: multiple_choice
doc_to_text: "{{text}}"
doc_to_choice: "{{endings}}"
doc_to_target: "{{right}}"
target_delimiter: ""
metric_list:
  - metric: acc
""",
}
checks = program_checks.Checks(TOKAMAK)
report, tokamak = checks.report, checks.run


def write_tasks(folder, text):
    lines = [line.split(" ", 3) for line in text.splitlines()]
    lines = [(" ".join(words[:3]), " " + words[3]) for words in lines if len(words) > 3]
    pairs = list(zip(lines, lines[3:]))[:8]  # an ending that follows, and one from elsewhere
    documents = {
        "text": [{"text": text}],
        "endings": [{"text": text, "endings": [own, other], "right": 0} for (text, own), (_, other) in pairs],
    }
    for name, task in TASKS.items():
        data = folder / f"{name}.jsonl"
        data.write_text("".join(json.dumps(document) + "\n" for document in documents[name]))
        (folder / f"{name}.yaml").write_text(
            f"task: {name}\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: {data}\ntest_split: test{task}")


def harness(checkpoint, folder):
    """Of each task its results, and the log-likelihoods of its documents."""
    got = lm_eval.simple_evaluate(model="hf", model_args=f"pretrained={checkpoint},dtype=float32", tasks=list(TASKS),
                                  task_manager=TaskManager(include_path=str(folder), include_defaults=False),
                                  device="cpu", batch_size=4, bootstrap_iters=0, log_samples=True, verbosity="ERROR")
    return got["results"], {name: [s["filtered_resps"] for s in samples] for name, samples in got["samples"].items()}


def check_text(name, checkpoint, text, tokenizer, results, sums, folder):
    ids = [tokenizer.eos_token_id] + tokenizer(text)["input_ids"]
    assert len(ids) == CONTEXT * WINDOWS + 1, "lm-eval's windows are those of tokamak where the last one is full"
    np.save(folder / "text.npy", np.array(ids, dtype=np.uint16))
    said = tokamak("eval", checkpoint, f"--data={folder / 'text.npy'}", "--device=cpu")
    loss, count = float(said.split("loss ")[1].split()[0]), CONTEXT * WINDOWS
    report(f"{name}: mean log-likelihood of a text, tokamak eval", -loss, float(sums[0][0]) / count, 1e-4)
    bits = -float(sums[0][0]) / np.log(2) / len(text.encode())
    report(f"{name}: its bits per byte", results["bits_per_byte,none"], bits, 1e-6)


def check_endings(name, checkpoint, tokenizer, sums, folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32).eval()
    worst = 0
    for line, got in zip((folder / "endings.jsonl").read_text().splitlines(), sums):
        document = json.loads(line)
        for ending, (sum_there, _) in zip(document["endings"], got):
            before, all_ids = (tokenizer(t)["input_ids"] for t in (document["text"], document["text"] + ending))
            with torch.no_grad():
                scores = model(torch.tensor([all_ids])).logits[0].log_softmax(-1)
            mine = sum(scores[i - 1, all_ids[i]].item() for i in range(len(before), len(all_ids)))
            worst = max(worst, abs(mine - float(sum_there)))
    report(f"{name}: {len(sums)} pairs of endings, largest difference", worst, 0, 1e-3)


def check(name, options, data, text, folder):
    out = folder / name.replace(" ", "_")
    tokamak("train", f"--data.path={data}", f"--train.out={out}", "--model.layers=2", "--model.heads=2",
            "--model.width=48", f"--model.context={CONTEXT}", *options, "--train.batch=8", "--train.steps=30",
            "--train.eval_every=0", "--optimizer.lr=3e-3", "--optimizer.warmup_steps=5", "--compile.precision=fp32",
            "--device=cpu")
    checkpoint = (out / "checkpoints/latest").resolve()
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    results, sums = harness(checkpoint, folder)
    check_text(name, checkpoint, text, tokenizer, results["text"], sums["text"], folder)
    check_endings(name, checkpoint, tokenizer, sums["endings"], folder)


def main():
    source = DATA / "tinyshakespeare.txt"
    if not source.exists():
        print(f"check_lm_eval: SKIPPED, {source} is not there")
        return 0
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data"
        tokamak("prepare", source, f"--vocab={DATA / 'gpt2'}", f"--out={data}")
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(data / "tokenizer.json"))
        text = tokenizer.decode(tokenizer(source.read_text()[-40000:])["input_ids"][:CONTEXT * WINDOWS])
        write_tasks(folder, text)
        for kind, options in FAMILIES.items():
            check(kind, options, data, text, folder)
    print(f"lm_eval {lm_eval.__version__}, torch {torch.__version__}, transformers {transformers.__version__}: "
          f"{checks.failed} failed")
    return bool(checks.failed)


if __name__ == "__main__":
    sys.exit(main())
