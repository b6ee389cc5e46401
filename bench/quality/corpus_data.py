"""The corpus as shards of tokens, made once. Standard library alone."""
import json
import lzma
import shutil
import subprocess
import sys


def vocabulary_of(corpus, asked):
    """GPT-2's, where it is; None: one is to be trained."""
    for folder in (asked, corpus / "gpt2", corpus.parent / "gpt2"):
        if folder and (folder / "vocab.bpe").exists():
            return folder
    if asked:
        sys.exit(f"--vocab={asked}: expected a folder with vocab.bpe and encoder.json")
    return None


def prepare_part(program, corpus, part, vocabulary, folder):
    packed, lines = corpus / f"{part}.jsonl.xz", folder / f"{part}.jsonl"
    with lzma.open(packed) as source, open(lines, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 22)
    with open(folder / f"{part}.log", "wb") as log:
        done = subprocess.run([program, "prepare", lines, f"--out={folder / part}", "--val-fraction=0", *vocabulary],
                              stdout=log, stderr=subprocess.STDOUT)
    lines.unlink()
    if done.returncode:
        sys.exit(f"prepare failed:\n{(folder / f'{part}.log').read_text()[-2000:]}")


def prepare(program, corpus, asked_vocabulary, folder):
    """Makes folder/train and folder/val; gives what identifies them."""
    manifest = json.loads((corpus / "manifest.json").read_text())
    vocabulary = vocabulary_of(corpus, asked_vocabulary)
    stamp = {"train": manifest["train"]["sha256_of_lines"], "val": manifest["val"]["sha256_of_lines"],
             "vocabulary": "gpt2" if vocabulary else "32768 of its own"}
    made = folder / "stamp.json"
    if made.exists() and json.loads(made.read_text()) == stamp:
        return stamp
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    prepare_part(program, corpus, "train", [f"--vocab={vocabulary}"] if vocabulary else ["--vocab-size=32768"], folder)
    prepare_part(program, corpus, "val", [f"--vocab={vocabulary or folder / 'train'}"], folder)
    made.write_text(json.dumps(stamp))
    return stamp
