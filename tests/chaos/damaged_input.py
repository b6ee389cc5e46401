"""`prepare` of archives and containers that are damaged.

What must hold: they are read as far as they make sense or refused with a message, in time, and what is refused leaves no
data set. (Members that make sense may hold changed text: only checksums in the format tell that.)
"""
import gzip
import io
import json
import shutil
import subprocess
import tarfile

from scenarios import make_words
from work import complaint


def npy(tokens):
    header = "{'descr': '<u2', 'fortran_order': False, 'shape': (%d,), }" % len(tokens)
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + \
        b"".join(t.to_bytes(2, "little") for t in tokens)


def tar(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def inputs():
    text = make_words(6_000).encode()
    jsonl = b"".join(json.dumps({"text": text[i:i + 90].decode()}).encode() + b"\n" for i in range(0, len(text), 90))
    made = {"a.txt": text, "a.jsonl": jsonl, "a.txt.gz": gzip.compress(text), "a.jsonl.gz": gzip.compress(jsonl),
            "a.json.gz": gzip.compress(jsonl), "a.lines": jsonl,
            "a.tar": tar({"1.txt": text[:900], "2.json": b'{"text": "of one"}', "3.txt": text[900:], "4.json": jsonl}),
            "a.npy": npy(list(text))}
    if shutil.which("zstd"):
        made["a.jsonl.zst"] = subprocess.run(["zstd", "-c", "-q"], input=jsonl, stdout=subprocess.PIPE, check=True).stdout
    return made


def damage(content, rng):
    """One to three changes: a bit, bytes that are others, a piece that is missing, there twice or cut off."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at, size = rng.randrange(len(content)), rng.choice([1, 4, 64, 512])
        kind = rng.choice(["bit", "bytes", "missing", "twice", "cut"])
        if kind == "bit":
            content[at] ^= 1 << rng.randrange(8)
        elif kind == "bytes":
            content[at:at + size] = rng.randbytes(len(content[at:at + size]))
        elif kind == "missing":
            del content[at:at + size]
        elif kind == "twice":
            content[at:at] = content[at:at + size]
        else:
            del content[at + 1:]
        if not content:
            break
    return bytes(content)


class DamagedInput:
    def __init__(self, work):
        self.work = work
        self.inputs = inputs()
        for name, content in self.inputs.items():
            wrong = self.prepare(name, content)
            if wrong or not self.made().exists():
                raise SystemExit(f"chaos: prepare {name} as it should be: {wrong or 'no data set'}")

    def made(self):
        return self.work.folder / "broken" / "index.json"

    def prepare(self, name, content):
        self.work.remove("broken")
        (self.work.folder / name).write_bytes(content)
        more = [f"--vocab={self.vocabulary()}"] if name.endswith(".npy") else ["--vocab-size=270"]
        result = self.work.run(["prepare", name, *more, "--out=broken", "--threads=1"])
        if wrong := complaint(result):
            return wrong
        return "a refused input left a data set" if result.status != 0 and self.made().exists() else ""

    def vocabulary(self):
        if not (self.work.folder / "words").exists():
            (self.work.folder / "words.txt").write_bytes(self.inputs["a.txt"])
            self.work.run_ok(["prepare", "words.txt", "--vocab-size=270", "--out=words", "--threads=1"])
        return "words"

    def go(self, cases):
        rng, names = self.work.random, list(self.inputs)
        damaged = lambda case: self.prepare(case[0], damage(self.inputs[case[0]], type(rng)(case[1])))
        self.work.cases("prepare", "damaged archives and containers",
                        [(names[i % len(names)], rng.getrandbits(32)) for i in range(cases * 2)], damaged)
