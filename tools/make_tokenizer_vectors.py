#!/usr/bin/env python3
"""Writes tests/goldens/tokenizer_vectors.json: small vocabularies as .tiktoken text, and ids that tiktoken gives.

Usage: make_tokenizer_vectors.py > tests/goldens/tokenizer_vectors.json
       make_tokenizer_vectors.py --check NAME FOLDER

The second form loads FOLDER/tokenizer.json, as `tokamak prepare --vocab=FILE@NAME` writes it, with Hugging Face's
library and compares the ids. Needs: pip install regex tiktoken tokenizers
"""
import base64
import json
import random
import sys
from pathlib import Path

GPT4_BEFORE_2024 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                    r"|\s*[\r\n]+|\s+(?!\S)|\s+")
TEXTS = [
    "Hello, world! It's a test, isn't it? WE'LL SEE; they'VE seen.",
    "int main() {\n    return 12345 + x[67];\n}\n\n\n// done//\n",
    "camelCase HTTPServer XMLHttpRequest O'Neil don't DON'T iPhone's",
    "tabs\t\tand \t mixed   spaces    \n \n  \r\n end  ",
    "trailing white space \n   ", "   leading", "\n", " ", "", "12 123 1234 12345 1234567890 3.14159",
    "caf\u00e9 na\u00efve \u00c9COLE \u00fcber \u0130stanbul stra\u00dfe", "\u4e2d\u6587\u5b57\u7b26ABC\u4e2d\u6587abc \u65e5\u672c\u8a9e\u3067\u3059\u3002",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u041a\u0430\u043a \u0434\u0435\u043b\u0430?", "e\u0301 \u0301A \u0301\u0301bc \u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\U0001f600\U0001f468\u200d\U0001f469 smile :) \u2026",
    "\u00a0non\u00a0breaking\u3000wide\u2028line \u0085 next", "it\u017f '\u017f \u01c5abc A\u02b0b \u0661\u0662\u0663\u0664 \u00bd\u00be",
    "<|endoftext|> is text here", "a" * 40 + " " * 40 + "!" * 40 + "\n" * 7 + "A" * 40, "and/or //\n/x",
]
PIECES = list("aAbBsStTlL'.,!/-_19\t\n\r\u00e9\u00c9\u4e2d\u0301\u01c5\u02b0\u0664\u00a0\u2028") + [" "] * 6 + ["ll", "ve", "'s", "'RE", "  ", "the", " The"]


def patterns():
    import tiktoken_ext.openai_public as public


    public.load_tiktoken_bpe = lambda *args, **keywords: {}  # only the pattern is wanted, not the file from the network
    return {"gpt2": public.r50k_pat_str, "cl100k": public.cl100k_base()["pat_str"], "llama3": GPT4_BEFORE_2024,
            "o200k": public.o200k_base()["pat_str"]}


def texts():
    """The sentences above and random mixtures of pieces."""
    rng = random.Random(4)
    return TEXTS + ["".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 30))) for _ in range(60)]


def train(pattern, count):
    """Ranks of a small vocabulary: the bytes, then the most frequent joined neighbours, one after the other."""
    import regex
    text = "\n".join(TEXTS) + Path(__file__).read_text()
    words = [[bytes([b]) for b in word.encode()] for word in regex.findall(pattern, text)]
    ranks = {bytes([b]): b for b in range(256)}
    while len(ranks) < 256 + count:
        pairs = {}
        for word in words:
            for left, right in zip(word, word[1:]):
                pairs[left + right] = pairs.get(left + right, 0) + 1
        best = max(sorted(pairs), key=pairs.get)
        ranks[best] = len(ranks)
        for word in words:
            at = 0
            while at + 1 < len(word):
                if word[at] + word[at + 1] == best:
                    word[at:at + 2] = [best]
                at += 1
    return ranks


def check(name, folder):
    import tokenizers
    theirs = tokenizers.Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    golden = json.loads((Path(__file__).parent / "../tests/goldens/tokenizer_vectors.json").read_text())
    vectors = next(entry for entry in golden if entry["name"] == name)["vectors"]
    wrong = 0
    for vector in vectors:
        # Markers in a text are markers there, and ordinary text here.
        if "<|" in vector["text"]:
            continue
        ids = theirs.encode(vector["text"], add_special_tokens=False).ids
        if ids != vector["ids"]:
            wrong += 1
            print(f"{vector['text']!r}: expected {vector['ids']}, got {ids}")
    print(f"{name}: {len(vectors)} texts, {wrong} differ")
    sys.exit(wrong > 0)


def main():
    if sys.argv[1:2] == ["--check"]:
        check(*sys.argv[2:])
    import tiktoken
    result = []
    for name, pattern in patterns().items():
        ranks = train(pattern.replace("{1,3}+", "{1,3}"), 120)
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        lines = "".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items())
        vectors = [{"text": text, "ids": encoding.encode_ordinary(text)} for text in texts()]
        result.append({"name": name, "tiktoken": lines, "vectors": vectors})
    print("[" + ",\n".join(json.dumps(entry) for entry in result) + "]")


if __name__ == "__main__":
    main()
