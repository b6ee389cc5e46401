#!/usr/bin/env python3
"""tokenizer.json files in the forms of known models give the ids that Hugging Face's `tokenizers` gives.

  tools/check_tokenizers.py build/release/bin/tokamak [--strings=1000000] [--seed=1] [--data=../shared/data]
  tools/check_tokenizers.py --write tests/goldens/tokenizer_pieces.json

Needs tokenizers (pip install tokenizers), and says so where it is missing; no network. Trains a small vocabulary for each
form (how GPT-2, GPT-NeoX, SmolLM, Qwen, Llama 3, GPT-4, GPT-4o and Mistral cut and normalize text) with that library, and
compares ids of random and adversarial strings: pieces of text, digits and blanks of all scripts, marks in any order,
characters that NFC takes apart or puts together, added tokens and their beginnings, and any code points that are
assigned. The second form writes vocabularies and ids for tests/data/tokenizer_pieces_test.cpp.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

try:
    import tokenizers
    from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers, trainers
except ImportError as error:
    print(f"check_tokenizers: SKIPPED, {error} (pip install tokenizers)")
    sys.exit(0)

WHITE = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*" + WHITE
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + r"+%s|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER +
         r"*%s|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n/]*" + WHITE)
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s++$|\s*[\r\n]"
          r"|\s+(?!\S)|\s")
FORMS = {  # normalizer, what cuts before ByteLevel
    "gpt2": (None, None),
    "gpt_neox": ("NFC", None),
    "smollm": (None, "Digits"),
    "qwen2": ("NFC", GPT4 % ""),
    "llama3": (None, GPT4 % "{1,3}"),
    "cl100k": (None, CL100K),
    "o200k": (None, O200K % (CONTRACTION, CONTRACTION, "{1,3}")),
    "tekken": (None, O200K % ("", "", "")),
}
ADDED = [AddedToken("<|endoftext|>", special=True), AddedToken("<think>", normalized=False),
         AddedToken("\u00e9t\u00e9", normalized=True), AddedToken("</tool>", normalized=False)]

PIECES = (list("aAbBsStTlLmMdDzZ'.,!?/\\-_()[]{}<>|:;0123456789\t\n\r\v\f") + [" "] * 12 + ["'"] * 4 +
          ["'s", "'S", "'re", "'VE", "'ll", "'Ll", "'d", "'M", "\u017f", "'\u017f", "\r\n", "\n\n", "  ", "   ", "\t\t"] +
          # digits and numbers of many scripts
          ["\u0661", "\u0967", "\u00b2", "\u00bd", "\u2167", "\u3007", "\u4e00", "\uff11", "\U0001d7d8", "\u2460", "12", "2024"] +
          # white space
          ["\u00a0", "\u1680", "\u2003", "\u2028", "\u2029", "\u202f", "\u3000", "\u0085", "\u200b", "\ufeff"] +
          # what NFC changes: marks in another order, pairs, singletons, excluded compositions, Hangul
          ["\u0301", "\u0323", "\u0307", "\u0308", "\u0327", "\u0345", "\u0334", "\u0340", "\u0341", "\u0344", "e\u0301", "\u00e9",
           "s\u0323\u0307", "s\u0307\u0323", "\u1e69", "A\u030a", "\u212b", "\u00c5", "\u2126", "\u1e9b\u0323", "\u0958", "\ufb1d", "\u0344",
           "\u0f71\u0f72\u0f74", "\u09c7\u09be", "\u1100\u1161\u11a8", "\uac00\u11a8", "\uac00", "\uac01", "\u1100", "\u1161", "\u11a8",
           "\ufa0e", "\uf900", "\U0002f800", "\U000110a5\U000110ba", "\u3099", "\u304b\u3099", "\u30ab\u309a"] +
          # letters without case, joiners, emoji
          ["\u4e2d", "\u6587", "\u3042", "\u0e2a\u0e27", "\u0938\u094d", "\u05d0\u05b7", "\u0627\u064e", "\u01c5", "\u02b0", "\u00aa",
           "\U0001f600", "\u200d", "\ufe0f", "\U0001f1e9\U0001f1ea", "\u00c9", "\u0130", "\u00df", "\u1e9e", "\U00010400", "\U0001d400"] +
          ["<|endoftext|>", "<|endof", "<think>", "<thin", "</tool>", "\u00e9t\u00e9", "e\u0301t\u00e9", "\u00e9te\u0301", " the", "The", "ing"])


def is_assigned(code):
    return unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")


class Strings:
    """Random ones, of several kinds in turn."""

    def __init__(self, seed, text):
        self.draw, self.text = random.Random(seed), text
        self.codes = [code for code in range(0x110000) if is_assigned(code)]
        self.marks = [chr(code) for code in self.codes if unicodedata.combining(chr(code))]
        self.kinds = [self.of_pieces, self.of_pieces, self.of_text, self.of_codes, self.of_marks, self.of_one_block]

    def __call__(self, number):
        return self.kinds[number % len(self.kinds)]()

    def of_pieces(self):
        return "".join(self.draw.choices(PIECES, k=self.draw.randrange(1, 25)))

    def of_text(self):
        """A window of text, with something put in here and there."""
        at = self.draw.randrange(len(self.text))
        window = self.text[at:at + self.draw.randrange(1, 80)]
        for _ in range(self.draw.randrange(4)):
            place = self.draw.randrange(len(window) + 1)
            window = window[:place] + self.draw.choice(PIECES) + window[place:]
        return window

    def of_codes(self):
        return "".join(chr(code) for code in self.draw.choices(self.codes, k=self.draw.randrange(1, 12)))

    def of_marks(self):
        """Letters with marks in any order, whole or taken apart."""
        out = ""
        for _ in range(self.draw.randrange(1, 6)):
            letter = self.draw.choice(["a", "E", "o", "\u0438", "\u03b9", "\u0915", "\u00fc", "\u1ea5", "\uac00", " ", "1"])
            out += letter + "".join(self.draw.choices(self.marks, k=self.draw.randrange(4)))
        return unicodedata.normalize(self.draw.choice(["NFC", "NFD"]), out) if self.draw.random() < 0.3 else out

    def of_one_block(self):
        """Neighbours of a code point, as texts of a script are."""
        first = self.draw.choice(self.codes) & ~0x7F
        near = [code for code in range(first, first + 0x80) if is_assigned(code)]
        return "".join(chr(code) if self.draw.random() < 0.85 else self.draw.choice(" '\n.1")
                       for code in self.draw.choices(near, k=self.draw.randrange(1, 15)))


def make_form(name, text, size):
    normalizer, cut = FORMS[name]
    of = tokenizers.Tokenizer(models.BPE(ignore_merges=name == "llama3"))
    if normalizer:
        of.normalizer = normalizers.NFC()
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=cut in (None, "Digits"))
    if cut == "Digits":
        of.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    elif cut:
        of.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(cut), "isolated"), byte_level])
    else:
        of.pre_tokenizer = byte_level
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    of.train_from_iterator([text], trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False))
    of.add_special_tokens([token for token in ADDED if token.special])
    of.add_tokens([token for token in ADDED if not token.special])
    of.encode_special_tokens = True  # markers are ordinary text, as here
    return of


def training_text(data, strings):
    texts = [Path(__file__).read_text()]
    for name in ("tinyshakespeare.txt", "wikitext-2/valid.txt"):
        if data and (data / name).exists():
            texts.append((data / name).read_text()[:300000])
    return "\n".join(texts) + "\n".join(strings(number) for number in range(3000))


def ids_of(program, folder, texts):
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run([program, "tokenize", f"--vocab={folder}", "--lines"], input=lines, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"tokenize: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(program, name, text, count, strings):
    """How many strings have other ids."""
    theirs, differ, shown = make_form(name, text, 1500), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        theirs.save(f"{folder}/tokenizer.json")
        for first in range(0, count, 20000):
            texts = [strings(number) for number in range(first, min(first + 20000, count))]
            expected = [encoding.ids for encoding in theirs.encode_batch(texts, add_special_tokens=False)]
            got = ids_of(program, folder, texts)
            assert len(got) == len(texts)
            for one, mine, right in zip(texts, got, expected):
                differ += mine != right
                if mine != right and shown < 5:
                    shown += 1
                    print(f"  {ascii(one)}: expected {right}, got {mine}")
    print(f"{'ok    ' if differ == 0 else 'FAILED'} {name}: {count} strings, {differ} with other ids", flush=True)
    return differ


def write_goldens(file):
    strings = Strings(7, Path(__file__).read_text())
    text = training_text(None, strings)
    forms = []
    for name in FORMS:
        form = make_form(name, text, 300)
        texts = PIECES_OF_NOTE + [strings(number) for number in range(60)]
        vectors = [{"text": one, "ids": form.encode(one, add_special_tokens=False).ids} for one in texts]
        forms.append({"name": name, "tokenizer": json.loads(form.to_str()), "vectors": vectors})
    Path(file).write_text("[" + ",\n".join(json.dumps(form) for form in forms) + "]\n")


PIECES_OF_NOTE = ["", " ", "a  1", "a   12 3", "3.14 2024-05", "cafe\u0301 e\u0301t\u00e9", "it's IT'S 'S", "a\r\n\n b \n",
                  "\u1100\u1161\u11a8 \uac00\u11a8", "\u212b\u2126", "s\u0307\u0323", "\u0958", "<think>1</tool> <|endoftext|>", "\u00bd\u00b2 \u0661"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--strings", type=int, default=1000000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    asked = parser.parse_args()
    if asked.write:
        return write_goldens(asked.program)
    source = asked.data / "wikitext-2/valid.txt"
    strings = Strings(asked.seed, source.read_text() if source.exists() else Path(__file__).read_text())
    text = training_text(asked.data, strings)
    count = -(-asked.strings // len(FORMS))
    differ = sum(compare(asked.program, name, text, count, strings) for name in FORMS)
    print(f"tokenizers {tokenizers.__version__}: {count * len(FORMS)} strings, {differ} with other ids")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
