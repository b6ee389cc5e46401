#!/usr/bin/env python3
"""Makes the corpus of bench/quality from Debian packages (docs/quality.md).

  python3 bench/quality/corpus.py OUT [--tokamak=PATH --vocab=FOLDER] [--update]

On Debian 12: downloads the packages of manifest.json with `apt-get download` into OUT/packages, without installing
them, or takes them from there; takes the text of packages.txt's files; and writes OUT/train.jsonl.xz, OUT/val.jsonl.xz
and OUT/manifest.json. A package or an output that is not the one of the committed manifest is an error. With --update
the versions of today are taken, and the committed manifest is written anew. --tokamak and --vocab count tokens.
"""
import argparse
import hashlib
import json
import lzma
import multiprocessing
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import corpus_select
import corpus_text

HERE = pathlib.Path(__file__).parent
MANIFEST = HERE / "manifest.json"
VALIDATION_EVERY = 80  # documents, by their hashes
XZ = [{"id": lzma.FILTER_LZMA2, "preset": 9}]


def recipes():
    """Package -> (pattern of paths, characters at most)."""
    found = {}
    for line in (HERE / "packages.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            package, pattern, most = line.split()
            found[package] = (pattern, int(float(most) * 1e6) or sys.maxsize)
    return found


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def newest(packages):
    """The entries of the manifest for the versions that apt knows."""
    command = ["apt-cache", "show", "--no-all-versions", *packages]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {}
    for paragraph in text.split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.M))
        if "/" in fields.get("Section", ""):
            sys.exit(f"{fields['Package']}: expected a package of main, got one of {fields['Section']}")
        if fields:
            found[fields["Package"]] = {key.lower(): fields[key] for key in ("Package", "Version", "SHA256")}
    return found


def download(known, folder):
    """The file of a package, from the folder or from apt."""
    package = known["package"]
    version = known["version"].replace(":", "%3a")
    found = sorted(folder.glob(f"{package}_{version}_*.deb"))
    if not found:
        command = ["apt-get", "download", "-q", f"{package}={known['version']}"]
        got = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        found = sorted(folder.glob(f"{package}_{version}_*.deb"))
        if got.returncode or not found:
            sys.exit(f"{package} {known['version']}: apt-get has no such version ({got.stderr.strip()}).\n"
                     f"Put the file with sha256 {known['sha256']} into {folder} (snapshot.debian.org keeps all), "
                     "or make another corpus with --update.")
    if sha256(found[0]) != known["sha256"]:
        sys.exit(f"{found[0]}: expected sha256 {known['sha256']}, got {sha256(found[0])}; delete it")
    return found[0]


def texts(job):
    """Path, text and whether it was a page, of one package's files, sorted by path."""
    deb, pattern, most = job
    wanted, raw = re.compile(pattern), {}
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
            for member in archive:
                if member.isfile() and wanted.search(member.name):
                    raw[member.name] = archive.extractfile(member).read()
    if process.returncode:
        sys.exit(f"{deb}: dpkg-deb failed")
    found, total = [], 0
    for path in sorted(raw, key=corpus_select.hash_of):  # of more than `most`, some of everything
        text = corpus_text.text_of(path, raw[path]) if total < most else None
        if text:
            found.append((path, text[0][:most - total], text[1]))
            total += len(found[-1][1])
    return sorted(found)


class Output:
    def __init__(self, path):
        self.path, self.documents, self.bytes, self.raw = path, 0, 0, hashlib.sha256()
        self.file = open(path, "wb")

    def write(self, document):
        line = (json.dumps({"text": document}, ensure_ascii=False) + "\n").encode("utf-8")
        self.documents += 1
        self.bytes += len(document.encode("utf-8"))
        self.raw.update(line)
        self.file.write(line)

    def entry(self):
        self.file.close()
        return {"documents": self.documents, "text_bytes": self.bytes, "sha256_of_lines": self.raw.hexdigest()}


def packed(part):
    path, begin, size = part
    with open(path, "rb") as file:
        file.seek(begin)
        return lzma.compress(file.read(size), check=lzma.CHECK_CRC32, filters=XZ)


def compress(path):
    """In streams of 64 MiB, which lie one after the other in the file, on all cores."""
    size = 1 << 26
    with open(f"{path}.xz", "wb") as target, multiprocessing.Pool() as pool:
        for stream in pool.imap(packed, [(path, begin, size) for begin in range(0, path.stat().st_size, size)]):
            target.write(stream)
    return {"file": f"{path.name}.xz", "file_bytes": pathlib.Path(f"{path}.xz").stat().st_size}


def make(jobs, entries, out):
    """Writes both parts, and adds to each package's entry how much it gave."""
    train, val = Output(out / "train.jsonl"), Output(out / "val.jsonl")
    selection = corpus_select.Selection()
    with multiprocessing.Pool() as pool:
        for entry, found in zip(entries, pool.imap(texts, jobs)):
            selection.begin_package()
            entry["documents"] = entry["text_bytes"] = 0
            for _, text, page in found:
                for document in selection.take(text, page):
                    (val if corpus_select.is_validation(document, VALIDATION_EVERY) else train).write(document)
                    entry["documents"] += 1
                    entry["text_bytes"] += len(document.encode("utf-8"))
            megabytes = entry["text_bytes"] / 1e6
            print(f"{entry['package']:28} {entry['documents']:6} documents {megabytes:7.2f} MB", flush=True)
    return {"train": train.entry(), "val": val.entry()}


def count_tokens(lines, tokamak, vocab):
    with tempfile.TemporaryDirectory() as folder:
        command = [tokamak, "prepare", lines, f"--out={folder}/data", f"--vocab={vocab}", "--val-fraction=0"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        index = json.loads((pathlib.Path(folder) / "data" / "index.json").read_text())
    return index["train"]["tokens"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--tokamak")
    parser.add_argument("--vocab")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    committed = json.loads(MANIFEST.read_text()) if MANIFEST.exists() and not options.update else {}
    wanted = recipes()
    known = {entry["package"]: entry for entry in committed["packages"]} if committed else newest(wanted)
    folder = options.out / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    entries, jobs = [], []
    for package, (pattern, most) in wanted.items():
        if package not in known:
            where = "in manifest.json; run with --update" if committed else "known to apt"
            sys.exit(f"{package}: is in packages.txt and not {where}")
        entries.append({key: known[package][key] for key in ("package", "version", "sha256")})
        jobs.append((str(download(entries[-1], folder)), pattern, most))
    parts = make(jobs, entries, options.out)
    if options.tokamak:
        for name, part in parts.items():
            part["tokens"] = count_tokens(options.out / f"{name}.jsonl", options.tokamak, options.vocab)
            print(name, part["tokens"], "tokens", flush=True)
    for name, part in parts.items():
        part |= compress(options.out / f"{name}.jsonl")
    text = json.dumps({"packages": entries, **parts}, indent=1) + "\n"
    (options.out / "manifest.json").write_text(text)
    for name, part in parts.items():
        print(name, *(f"{key}={value}" for key, value in part.items()))
        if committed and part["sha256_of_lines"] != committed[name]["sha256_of_lines"]:
            sys.exit(f"{name}: expected the lines {committed[name]['sha256_of_lines']} of manifest.json")
    if options.update:
        MANIFEST.write_text(text)


if __name__ == "__main__":
    main()
