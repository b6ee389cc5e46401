#!/usr/bin/env python3
"""`tokamak eval` and lm-evaluation-harness answer every question alike.

  tools/compare_lm_eval.py build/release/bin/tokamak [--data=../shared/data] [--questions=N] [--shots=2] [--vocab=2000]

Run by hand: it needs lm_eval with its model class hf (pip install "lm_eval[hf]") and the shared data, and says so where
one is missing; no network. Trains a model of one narrow layer, with a vocabulary of its own or GPT-2's (--vocab=gpt2, which
takes ten times as long), exports it, and gives both the exported folder and the same files:

  hellaswag   the 10,042 validation questions (or the first N), read by the harness's own rules for it
  choices     1000 questions with 2 to 5 choices, made of a text
  *_shots     the first 1000 of HellaSwag's and those of choices, with that many examples before each question; which ones
              is drawn here as src/evaluate/examples.cpp does, for the harness's sampler
  text, last_words

Compares the log-likelihood of every choice, and for every question which one is taken, plainly (acc) and by bytes
(acc_bytes); and the bits per byte of a text, and last words.
"""
import argparse
import gzip
import json
import os
import random
import sys
import tempfile
import time
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
    print(f'compare_lm_eval: SKIPPED, {error} (pip install "lm_eval[hf]")')
    sys.exit(0)

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("--data", type=Path, default=Path("../shared/data"))
parser.add_argument("--questions", type=int, default=10**9)
parser.add_argument("--shots", type=int, default=2)
parser.add_argument("--vocab", default="2000")
ASKED = parser.parse_args()
TOKAMAK, DATA, QUESTIONS, SHOTS = ASKED.program, ASKED.data, ASKED.questions, ASKED.shots
WITH_SHOTS = 1000  # questions
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
EXAMPLES = f"""
num_fewshot: {SHOTS}
fewshot_config:
  split: test
  sampler: !function utils.Sampler
"""
UTILS = '''
from lm_eval.api.samplers import ContextSampler
from lm_eval.tasks.hellaswag.utils import process_docs

def philox(key, low, high):
    """The first word of Philox4x32-10, as in src/base/random.h."""
    k0, k1, mask = key & 0xFFFFFFFF, key >> 32, 0xFFFFFFFF
    c = [low & mask, low >> 32, high & mask, high >> 32]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & mask, (p0 >> 32) ^ c[3] ^ k1, p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
    return c[0]

class Sampler(ContextSampler):
    def sample(self, n, eval_doc=None, df=None, **kwargs):
        docs, drawn, i = self.fewshot_docs(), [], 0
        while len(drawn) < n:
            one = philox(1234, i, eval_doc["number"]) % len(docs)
            if one != eval_doc["number"] and one not in drawn:
                drawn.append(one)
            i += 1
        return [docs[one] for one in drawn]
'''
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
TASKS = {"hellaswag": HELLASWAG, "hellaswag_shots": HELLASWAG + EXAMPLES, "choices": CHOICES,
         "choices_shots": CHOICES + EXAMPLES, "text": TEXT, "last_words": LAMBADA}
checks = program_checks.Checks(TOKAMAK)
report, tokamak = checks.report, checks.run


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
    for rows in (items, choices):
        for number, row in enumerate(rows):
            row["number"] = number
    files = {"hellaswag": items, "hellaswag_shots": items[:WITH_SHOTS], "choices": choices, "choices_shots": choices,
             "last_words": [{"text": line} for line in lines[:1000]],
             "text": [{"text": "\n".join(lines[i:i + 40])} for i in range(0, 2000, 40)]}
    (folder / "utils.py").write_text(UTILS)
    for name, rows in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / f"{name}.yaml").write_text(
            f"task: {name}_here\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: "
            f"{folder / name}.jsonl\ntest_split: test{TASKS[name]}")


def make_model(folder):
    vocabulary = f"--vocab={DATA / 'gpt2'}" if ASKED.vocab == "gpt2" else f"--vocab-size={ASKED.vocab}"
    tokamak("prepare", DATA / "tinyshakespeare.txt", DATA / "wikitext-2" / "valid.txt", vocabulary,
            f"--out={folder / 'data'}")
    tokamak("train", f"--data.path={folder / 'data'}", f"--train.out={folder / 'run'}", "--model.layers=1",
            "--model.heads=2", "--model.width=64", "--model.context=512", "--model.vocab=0", "--train.batch=4", "--train.steps=60",
            "--train.eval_every=0", "--optimizer.lr=3e-3", "--optimizer.warmup_steps=5", "--compile.precision=fp32",
            "--device=cpu")
    tokamak("export", folder / "run", folder / "model")
    return folder / "model"


def ours(model, folder):
    tasks = [f"hellaswag:{folder}/hellaswag.jsonl", f"choices:{folder}/choices.jsonl", f"text:{folder}/text.jsonl",
             f"lambada:{folder}/last_words.jsonl"]
    (folder / "shots.jsonl").write_text("".join(
        json.dumps({"kind": name, "name": f"{name}_shots", "file": f"{folder}/{name}_shots.jsonl", "shots": SHOTS}) + "\n"
        for name in ("hellaswag", "choices")))
    said = tokamak("eval", model, f"--task={','.join(tasks)},list:{folder}/shots.jsonl", "--json", "--device=cpu",
                   f"--details={folder / 'details.jsonl'}")
    details = [json.loads(line) for line in (folder / "details.jsonl").read_text().splitlines()]
    return json.loads(said)["tasks"], details


def harness(model, folder):
    return lm_eval.simple_evaluate(model="hf", model_args=f"pretrained={model},dtype=float32",
                                   tasks=[f"{name}_here" for name in TASKS],
                                   task_manager=TaskManager(include_path=str(folder), include_defaults=False),
                                   device="cpu", batch_size=32, bootstrap_iters=0, log_samples=True, verbosity="ERROR")


def timed(name, function, *arguments):
    begin = time.monotonic()
    result = function(*arguments)
    print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
    return result


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
            print(f"compare_lm_eval: SKIPPED, {DATA / needed} is not there")
            return 0
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_questions(folder)
        model = make_model(folder)
        mine, details = timed("tokamak", ours, model, folder)
        theirs = timed("lm_eval", harness, model, folder)
        for task in ("hellaswag", "choices", "hellaswag_shots", "choices_shots"):
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
          f"{checks.failed} failed")
    return bool(checks.failed)


if __name__ == "__main__":
    sys.exit(main())
