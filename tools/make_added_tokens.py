#!/usr/bin/env python3
"""Writes tests/goldens/added_tokens.json: added tokens of every kind, and the ids that Hugging Face's library gives.

Usage: make_added_tokens.py > tests/goldens/added_tokens.json
       make_added_tokens.py --check TOKAMAK [SEEDS]

The second form makes vocabularies and texts at random. For each it compares the ids of `TOKAMAK tokenize` with the
library's, then those that the library gives with the tokenizer.json that `TOKAMAK prepare` writes, and those that it
writes into its shards. Needs: pip install tokenizers
"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

CORPUS = "the cat and the dog sat on the mat; a new york cab in the rain, then again: new york new york 12 123 abc abcd"
MERGES = 40
NEW = ["<a>", "<b>", "<ab>", "a>", "<a><b>", "  ", "    ", "\n  ", "cat", "new york", " the", "the ", "\u00e9t\u00e9", "\u4e2d",
       "\U0001f600", "\uff5cx\uff5c", "_", "12", "e", "  \t", "york new", "<|im_start|>", "\u00a0", "t"]
PIECES = NEW + list("abcetx<>_1 .,\n\t|") + [" ", "  ", "   ", "the", "cat", "\u00e9", "\u0301", "\u3000", "\u2462", "\u24b6", "\u200d", "\u00bd", "\u2163",
                                             "<|endoftext|>"]
FLAGS = ["special", "normalized", "lstrip", "rstrip", "single_word"]


def spell():
    """GPT-2's spelling of bytes."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in kept]
    return {**{b: chr(b) for b in kept}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def base():
    """A small byte-level vocabulary: bytes, merges of the most frequent neighbours in words, <|endoftext|>."""
    letters = spell()
    vocab = {letters[b]: i for i, b in enumerate([*range(256)])}
    words = [[letters[b] for b in word.encode()] for word in CORPUS.replace(" ", "\n ").split("\n")]
    merges = []
    while len(merges) < MERGES:
        pairs = {}
        for word in words:
            for pair in zip(word, word[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        best = max(sorted(pairs), key=pairs.get)
        merges.append(list(best))
        vocab["".join(best)] = len(vocab)
        for word in words:
            at = 0
            while at + 1 < len(word):
                if (word[at], word[at + 1]) == best:
                    word[at:at + 2] = ["".join(best)]
                at += 1
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
             "vocab": {**vocab, "<|endoftext|>": len(vocab)}, "merges": merges}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": byte_level, "post_processor": byte_level, "decoder": byte_level, "model": model}


def added(rng, vocab):
    """Some added tokens with random settings, numbered as the library numbers them; <|endoftext|> is always one."""
    tokens, number = [], len(vocab)
    for text in ["<|endoftext|>"] + rng.sample(NEW, rng.randrange(1, 9)):
        flags = {flag: rng.random() < 0.25 for flag in FLAGS}
        if text == "<|endoftext|>":
            flags = {flag: flag == "special" for flag in FLAGS}
        if text not in vocab:
            number += 1
        tokens.append({"id": vocab.get(text, number - 1), "content": text, **flags})
    return tokens


def texts(rng, count):
    return ["".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 25))) for _ in range(count)]


def ids(tokenizer, text, allow_special):
    tokenizer.encode_special_tokens = not allow_special
    return tokenizer.encode(text, add_special_tokens=False).ids


def breaks(tokenizer, text):
    """The library panics where one token strips white space of which another one is made that strips, too."""
    try:
        ids(tokenizer, text, True), ids(tokenizer, text, False)
        return False
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return True


def load(root):
    import tokenizers
    return tokenizers.Tokenizer.from_str(json.dumps(root))


def usable(root, count, seed):
    """A vocabulary of this seed, the library's tokenizer for it, and texts."""
    rng = random.Random(seed)
    root = json.loads(json.dumps(root))
    root["added_tokens"] = added(rng, root["model"]["vocab"])
    root["model"]["ignore_merges"] = rng.random() < 0.3
    tokenizer = load(root)
    return root, tokenizer, [text for text in texts(rng, count) if not breaks(tokenizer, text)]


def goldens():
    root = base()
    cases = []
    for seed in range(16):
        case, tokenizer, lines = usable(root, 16, seed)
        vectors = []
        for text in lines:
            vectors.append({"text": text, "ids": ids(tokenizer, text, False), "with_special": ids(tokenizer, text, True)})
        cases.append({"added_tokens": case["added_tokens"], "ignore_merges": case["model"]["ignore_merges"],
                      "vectors": vectors})
    print('{"base": ' + json.dumps(root) + ',\n"cases": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}")


def words_of(path):
    """The ids of a shard: 256 int32 of header, then uint16."""
    data = path.read_bytes()[1024:]
    return [int.from_bytes(data[i:i + 2], "little") for i in range(0, len(data), 2)]


def encode(tokamak, vocab, lines, *options):
    text = "\n".join(json.dumps(line) for line in lines) + "\n"
    run = subprocess.run([tokamak, "tokenize", f"--vocab={vocab}", "--lines=true", *options], input=text.encode(),
                         stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def check(tokamak, seeds):
    root, wrong, count = base(), 0, 0
    for seed in range(seeds):
        case, tokenizer, lines = usable(root, 100, 1000 + seed)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "tokenizer.json"
            file.write_text(json.dumps(case))
            Path(folder, "in.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
            subprocess.run([tokamak, "prepare", f"{folder}/in.jsonl", f"--out={folder}/out", f"--vocab={file}",
                            "--val-fraction=0"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            import tokenizers
            written = tokenizers.Tokenizer.from_file(f"{folder}/out/tokenizer.json")
            shard = []
            for special in (False, True):
                theirs = [ids(tokenizer, line, special) for line in lines]
                ours = encode(tokamak, file, lines, *["--allow-special=true"] * special)
                again = [ids(written, line, special) for line in lines]
                for line, a, b, c in zip(lines, theirs, ours, again):
                    count += 1
                    if a != b or a != c:
                        wrong += 1
                        print(f"seed {seed}, special {special}, {line!r}: library {a}, tokamak {b}, what it wrote {c}")
                if not special:
                    end = case["model"]["vocab"]["<|endoftext|>"]
                    shard = [id for line in theirs for id in [end] + line][1:]  # between documents
            got = words_of(Path(folder) / "out" / "train_000000.bin")
            if got != shard:
                wrong += 1
                at = next((i for i, (a, b) in enumerate(zip(got, shard)) if a != b), min(len(got), len(shard)))
                print(f"seed {seed}: the shard has {got[at:at + 9]} where {shard[at:at + 9]} should be")
    print(f"{seeds} vocabularies, {count} texts, {wrong} differ")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 20)
    else:
        goldens()
