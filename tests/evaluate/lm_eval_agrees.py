#!/usr/bin/env python3
"""`tokamak eval` and lm-evaluation-harness answer every question alike.

  tests/evaluate/lm_eval_agrees.py build/release/bin/tokamak [../shared/data [QUESTIONS]]

Run by hand: it needs lm_eval with its model class hf (pip install "lm_eval[hf]") and the shared data, and says so where
one is missing; no network. Trains a small model, exports it, and gives both the exported folder and the same files:
HellaSwag's 10,042 validation questions (or the first QUESTIONS), read by the harness's own rules for it, and questions
with 2 to 5 choices made of a text. Compares the log-likelihood of every choice, and for every question which one is
taken, plainly (acc) and by bytes (acc_bytes); and the bits per byte of a text, and last words.
"""
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
try:
    import lm_eval
    import numpy as np
    import torch
    import transformers
    from lm_eval.tasks import TaskManager
except ImportError as error:
    print(f'lm_eval_agrees: SKIPPED, {error} (pip install "lm_eval[hf]")')
    sys.exit(0)

TOKAMAK, DATA = sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "../shared/data")
QUESTIONS = int(sys.argv[3]) if len(sys.argv) > 3 else 10**9
CHOICES = """
output_type: multiple_choice
doc_to_text: "{{context}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{label}}"
metric_list:
  - metric: acc
  - metric: acc_bytes
"""
HELLASWAG = """
output_type: multiple_choice
process_docs: !function utils.process_docs
doc_to_text: "{{query}}"
doc_to_target: "{{gold}}"
doc_to_choice: "choices"
metric_list:
  - metric: acc
  - metric: acc_bytes
"""
TEXT = """
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list:
  - metric: bits_per_byte
"""
LAMBADA = """
output_type: loglikelihood
doc_to_text: "{{text.split(' ')[:-1]|join(' ')}}"
doc_to_target: "{{' '+text.split(' ')[-1]}}"
metric_list:
  - metric: perplexity
  - metric: acc
"""
failed = 0


def report(name, got, expected, most):
    global failed
    good = abs(got - expected) <= most
    failed += not good
    print(f"{'ok    ' if good else 'FAILED'} {name}: {got:.6f}, expected {expected:.6f}", flush=True)


def tokamak(*arguments):
    done = subprocess.run([TOKAMAK, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{arguments}: {done.stderr}")
    return done.stdout


def with_parts(item, number):
    """As the hub has it: the context in two parts, and now and then what is left of WikiHow's pages."""
    head, dot, tail = item["ctx"].rpartition(". ")
    item["ctx_a"], item["ctx_b"] = (head + ".", tail) if dot else (item["ctx"], "")
    if number % 7 == 0:
        item["ctx_a"] = "[header] " + item["ctx_a"].replace(". ", " [title] ", 1)
        item["endings"] = ["[step] " + item["endings"][0] + " [substeps] so it goes.", *item["endings"][1:]]
    return item


def write_questions(folder):
    with gzip.open(DATA / "hellaswag_val_text.jsonl.gz", "rt") as file:
        items = [with_parts(json.loads(line), n) for n, line in enumerate(file) if n < QUESTIONS]
    lines = [line for line in (DATA / "tinyshakespeare.txt").read_text().splitlines() if len(line) > 20]
    draw = random.Random(5)
    choices = []
    for i in range(0, 3000, 3):
        own, count = lines[i + 1], draw.randint(2, 5)
        texts = draw.sample(lines[4000:], count - 1) + [own]
        draw.shuffle(texts)
        context = lines[i] + draw.choice(["", "\n...", " caf\u00e9 \u00fcber \u65e5\u672c:"])
        choices.append({"context": context, "choices": texts, "label": texts.index(own)})
    for name, rows in {"hellaswag": items, "choices": choices, "last_words": [{"text": l} for l in lines[:1000]],
                       "text": [{"text": "\n".join(lines[i:i + 40])} for i in range(0, 2000, 40)]}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "utils.py").write_text("from lm_eval.tasks.hellaswag.utils import process_docs\n")
    for name, task in {"hellaswag": HELLASWAG, "choices": CHOICES, "text": TEXT, "last_words": LAMBADA}.items():
        (folder / f"{name}.yaml").write_text(
            f"task: {name}_here\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: "
            f"{folder / name}.jsonl\ntest_split: test{task}")


def make_model(folder):
    tokamak("prepare", DATA / "tinyshakespeare.txt", DATA / "wikitext-2" / "valid.txt", "--vocab-size=2000",
            f"--out={folder / 'data'}")
    tokamak("train", f"--data.path={folder / 'data'}", f"--train.out={folder / 'run'}", "--model.layers=2",
            "--model.heads=4", "--model.width=96", "--model.context=512", "--model.vocab=0", "--train.batch=4",
            "--train.steps=60", "--train.eval_every=0", "--optimizer.lr=3e-3", "--optimizer.warmup_steps=5",
            "--compile.precision=fp32", "--device=cpu")
    tokamak("export", folder / "run", folder / "model")
    return folder / "model"


def harness(model, folder):
    names = [f"{name}_here" for name in ("hellaswag", "choices", "text", "last_words")]
    return lm_eval.simple_evaluate(model="hf", model_args=f"pretrained={model},dtype=float32", tasks=names,
                                   task_manager=TaskManager(include_path=str(folder), include_defaults=False),
                                   device="cpu", batch_size=32, bootstrap_iters=0, log_samples=True, verbosity="ERROR")


def check_choices(name, mine, samples):
    """Each question by itself; `samples` are in the order of the file."""
    samples = sorted(samples, key=lambda s: s["doc_id"])
    assert len(mine) == len(samples), (name, len(mine), len(samples))
    worst = differ = ties = 0
    for own, sample in zip(mine, samples):
        theirs = np.array([float(r[0]) for r in sample["filtered_resps"]])
        worst = max(worst, np.abs(np.array(own["log_likelihoods"]) - theirs).max())
        doc = sample["doc"]
        lengths = np.array([len(choice.encode()) for choice in doc["choices"]])
        for chosen, values in ((own["chosen"], theirs), (own["chosen_bytes"], theirs / lengths)):
            if chosen != int(np.argmax(values)):
                ordered = np.sort(values)
                ties += ordered[-1] - ordered[-2] < 1e-5
                differ += 1
        assert own["right"] == int(doc.get("gold", doc.get("label"))), name
    print(f"{name}: {len(mine)} questions, log-likelihoods differ by {worst:.2e} at most", flush=True)
    report(f"{name}: questions that are answered otherwise ({ties} of them with the two likeliest within 1e-5)",
           differ, 0, 0)


def main():
    for needed in ("hellaswag_val_text.jsonl.gz", "tinyshakespeare.txt", "wikitext-2/valid.txt"):
        if not (DATA / needed).exists():
            print(f"lm_eval_agrees: SKIPPED, {DATA / needed} is not there")
            return 0
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_questions(folder)
        model = make_model(folder)
        tasks = ",".join([f"hellaswag:{folder}/hellaswag.jsonl", f"choices:{folder}/choices.jsonl",
                          f"text:{folder}/text.jsonl", f"lambada:{folder}/last_words.jsonl"])
        mine = json.loads(tokamak("eval", model, f"--task={tasks}", f"--details={folder / 'details.jsonl'}", "--json",
                                  "--device=cpu"))["tasks"]
        details = [json.loads(line) for line in (folder / "details.jsonl").read_text().splitlines()]
        theirs = harness(model, folder)
        for task in ("hellaswag", "choices"):
            results = theirs["results"][f"{task}_here"]
            check_choices(task, [d for d in details if d["task"] == task], theirs["samples"][f"{task}_here"])
            report(f"{task}: accuracy", mine[task]["accuracy"], results["acc,none"], 1e-9)
            report(f"{task}: accuracy by bytes", mine[task]["accuracy_bytes"], results["acc_bytes,none"], 1e-9)
        report("bits per byte of a text", mine["text"]["bits_per_byte"],
               theirs["results"]["text_here"]["bits_per_byte,none"], 1e-5)
        words = theirs["results"]["last_words_here"]
        report("last words: accuracy", mine["lambada"]["accuracy"], words["acc,none"], 1e-9)
        report("last words: perplexity, relative", mine["lambada"]["perplexity"] / words["perplexity,none"], 1, 1e-4)
    print(f"lm_eval {lm_eval.__version__}, torch {torch.__version__}, transformers {transformers.__version__}: "
          f"{failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
