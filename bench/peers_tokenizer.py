#!/usr/bin/env python3
"""Encoding beside tiktoken, and training a vocabulary beside Hugging Face's tokenizers, alternating in one run.

Usage: peers_tokenizer.py BENCH_TOKENIZER SHARED_DATA [ROUNDS]      needs: pip install tiktoken tokenizers

Times are the CPU seconds that a program's threads used and the wall seconds; medians over the rounds. On a machine with
other work CPU seconds are the ones to compare. Loading vocabularies and reading files is not counted for Tokamak and
tiktoken; Hugging Face's trainer reads the file itself, as it takes no text from memory without Python in between.
"""
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from importlib.metadata import version
from pathlib import Path

CORES = 2
TRAIN_BYTES, VOCAB = 100_000_000, 32000


def gpt2_ranks(data):
    """The bytes of each of GPT-2's tokens with its id; its files spell bytes as printable characters."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    byte_of = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
    tokens = json.loads((data / "gpt2/encoder.json").read_text())
    return {bytes(byte_of[c] for c in token): i for token, i in tokens.items() if token != "<|endoftext|>"}


def tiktoken_encoder(pattern, ranks):
    import tiktoken
    return tiktoken.Encoding("gpt2", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def timed(body):
    wall, cpu = time.perf_counter(), time.process_time()
    count = body()
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall, "tokens": count}


def ours(program, *args):
    lines = subprocess.run([program, *map(str, args)], check=True, capture_output=True, text=True).stdout.splitlines()
    what, tokens, size, wall, cpu = lines[-1].split()
    return {"cpu": float(cpu), "wall": float(wall), "tokens": int(tokens)}


def train_hugging_face(file):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train([str(file)], trainer)
    return tokenizer.get_vocab_size()


def compare(title, size, rounds, rows):
    """Runs all rows in turn, `rounds` times; prints medians and how much CPU time the first row took of each."""
    results = {name: [] for name in rows}
    for _ in range(rounds):
        for name, body in rows.items():
            results[name].append(body())
    print(f"\n{title}, {size / 1e6:.1f} MB, median of {rounds}\n{'':<24}{'CPU s':>9}{'wall s':>9}{'MB per CPU s':>14}"
          f"{'MB/s':>9}{'tokens':>10}")
    for name, runs in results.items():
        cpu, wall = (statistics.median(run[key] for run in runs) for key in ("cpu", "wall"))
        print(f"{name:<24}{cpu:>9.3f}{wall:>9.3f}{size / cpu / 1e6:>14.1f}{size / wall / 1e6:>9.1f}"
              f"{runs[0]['tokens']:>10}")
    first = results[next(iter(rows))]
    for name, runs in list(results.items())[1:]:
        ratios = {key: statistics.median(a[key] / b[key] for a, b in zip(first, runs)) for key in ("cpu", "wall")}
        print(f"{next(iter(rows))} / {name}: {ratios['cpu']:.1f} times the CPU time, {ratios['wall']:.1f} times the time")


def main():
    program, data = sys.argv[1], Path(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    os.environ["RAYON_NUM_THREADS"] = str(CORES)
    import tiktoken_ext.openai_public as public
    public.load_tiktoken_bpe = lambda *args, **keywords: {}  # only the pattern is wanted, not the file
    ranks, cl100k = gpt2_ranks(data), public.cl100k_base()["pat_str"]
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
          f"tiktoken {version('tiktoken')}, tokenizers {version('tokenizers')}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        books, wiki = folder / "books.txt", data / "wikitext-2/train.txt"
        books.write_bytes(gzip.decompress((data / "books/classic-books-sample.txt.gz").read_bytes()))
        vocab = folder / "gpt2.tiktoken"
        vocab.write_text("".join(f"{b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
        for file in (books, wiki):
            text = file.read_text()
            for name, pattern, ours_vocab in (("GPT-2's pattern", public.r50k_pat_str, data / "gpt2"),
                                              ("cl100k's pattern", cl100k, f"{vocab}@cl100k")):
                theirs = tiktoken_encoder(pattern, ranks)
                compare(f"encoding {file.name} with GPT-2's vocabulary and {name}", file.stat().st_size, rounds, {
                    "tiktoken, 1 thread": lambda: timed(lambda: len(theirs.encode_ordinary(text))),
                    "tokamak, 1 thread": lambda: ours(program, "encode", ours_vocab, file, 1),
                    f"tokamak, {CORES} threads": lambda: ours(program, "encode", ours_vocab, file, CORES),
                })
        long_text = folder / "long.txt"
        both = books.read_bytes() + wiki.read_bytes()
        cut = (both * (TRAIN_BYTES // len(both) + 1))[:TRAIN_BYTES]
        long_text.write_text(cut.decode(errors="ignore"))
        compare(f"training {VOCAB} tokens on books + wikitext-2/train, repeated", TRAIN_BYTES, rounds, {
            f"tokenizers, {CORES} threads": lambda: timed(lambda: train_hugging_face(long_text)),
            "tokamak, 1 thread": lambda: ours(program, "train", VOCAB, long_text, 1),
            f"tokamak, {CORES} threads": lambda: ours(program, "train", VOCAB, long_text, CORES),
        })


if __name__ == "__main__":
    main()
