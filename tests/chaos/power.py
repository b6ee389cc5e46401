"""The power fails during `prepare` and `train`: of what was written since a file or folder was synced any part is lost.

All changes of a whole run are recorded (record.c). A state is what a disk may hold when the power fails after the first
n of them:
- what was synced is there: a file's bytes and length by fsync of the file, names in a folder by fsync of the folder;
- of other writes each is there, is not, or ends at some sector; the others in order;
- of other changes of names in a folder the first few are there (file systems keep the order of these in a journal).
What must hold: the same command, run on that state, gives the bytes of a run that nothing happened to; and it goes on from
the last checkpoint that the run had written into events.jsonl as saved, whether that line is there or not.
"""
import hashlib
import json
import os
import re
import subprocess
from collections import namedtuple

from interrupted import Interrupted
from work import HERE

SECTOR = 512
Record = namedtuple("Record", "kind number path other data")
Change = namedtuple("Change", "kind of name other at data")  # `of`: a file of `data` and `size`, else the folder of the name


def read_records(path):
    content, at, records = path.read_bytes(), 0, []
    while at < len(content):
        line, at = content[at:content.index(b"\n", at)], content.index(b"\n", at) + 1
        kind, number, _, *sizes = line.split()
        parts = []
        for size in map(int, sizes):
            parts.append(content[at:at + size])
            at += size
        records.append(Record(kind.decode(), int(number), parts[0].decode(), parts[1].decode(), parts[2]))
    return records


class Recording:
    """What was changed, with files and folders by number, as names may be lost; 0 is the folder above all."""

    def __init__(self, records, above):
        self.folders, self.changes, self.durable = {0: {}}, [], []
        self.above, self.made = above, 0
        for record in records:
            self.add(record)

    def place(self, path):
        """The number of the folder that has the path's last name, and that name."""
        *way, name = os.path.relpath(path, self.above).split("/")
        folder = 0
        for part in way:
            folder = self.folders[folder][part]
        return folder, name

    def add(self, record):
        folder, name = self.place(record.path) if record.path != self.above else (None, None)
        is_folder = folder is None or self.folders[folder].get(name) in self.folders
        of = 0 if folder is None else self.folders[folder].get(name)
        if record.kind == "sync":
            for i, change in enumerate(self.changes):
                names = change.kind not in ("data", "size")
                if change.of == of and names == is_folder and self.durable[i] is None:
                    self.durable[i] = len(self.changes)
        elif record.kind in ("data", "size"):
            self.change(Change(record.kind, of, "", "", record.number, record.data))
        elif record.kind == "remove":
            del self.folders[folder][name]
            self.change(Change("remove", folder, name, "", 0, b""))
        elif record.kind == "rename":
            target, new = self.place(record.other)
            self.folders[target][new] = self.folders[folder].pop(name)
            self.change(Change("rename", target, name, new, folder, b""))
        elif record.kind in ("create", "folder", "link"):
            self.made += 1
            self.folders[folder][name] = self.made
            if record.kind == "folder":
                self.folders[self.made] = {}
            self.change(Change(record.kind, folder, name, record.other, self.made, b""))
        else:
            raise ValueError(f"nobody knows what {record.kind} does to a disk")

    def change(self, change):
        self.changes.append(change)
        self.durable.append(None)  # after how many changes it was synced

    def state(self, end, keep_data, keep_names):
        """The tree after `end` changes. keep_data: of a write that is not synced, how many of its bytes are there, or
        None; keep_names: of changes of names in a folder that are not, how many of them are there."""
        folders, files, late = {0: {}}, {}, {}
        for i, change in enumerate(self.changes[:end]):
            synced = self.durable[i] is not None and self.durable[i] <= end
            if change.kind in ("data", "size"):
                size = len(change.data) if synced else keep_data(change)
                if size is not None:
                    write(files.setdefault(change.of, bytearray()), change, size)
            elif synced:
                rename(folders, change)
            else:
                late.setdefault(change.of, keep_names())
                late[change.of] -= 1
                if late[change.of] >= 0:
                    rename(folders, change)
        return tree(folders, files, 0)


def write(content, change, size):
    if change.kind == "size":
        del content[change.at:]
        content.extend(bytes(change.at - len(content)))
        return
    content.extend(bytes(max(change.at - len(content), 0)))
    content[change.at:change.at + size] = change.data[:size]


def rename(folders, change):
    here = folders.setdefault(change.of, {})
    if change.kind == "rename":
        moved = folders.setdefault(change.at, {}).pop(change.name, None)
        if moved:
            here[change.other] = moved
    elif change.kind == "remove":
        here.pop(change.name, None)
    else:
        here[change.name] = (change.kind, change.at, change.other)


def tree(folders, files, folder):
    """name -> bytes of a file, text of a link, or such a dict of a folder."""
    made = {}
    for name, (kind, number, target) in folders.get(folder, {}).items():
        made[name] = (bytes(files.get(number, b"")) if kind == "create" else
                      target if kind == "link" else tree(folders, files, number))
    return made


def lay_out(made, folder):
    folder.mkdir()
    for name, content in made.items():
        if isinstance(content, dict):
            lay_out(content, folder / name)
        elif isinstance(content, str):
            (folder / name).symlink_to(content)
        else:
            (folder / name).write_bytes(content)


def digest(made):
    text = repr(sorted((name, digest(content) if isinstance(content, dict) else content) for name, content in made.items()))
    return hashlib.sha256(text.encode()).hexdigest()


def whole(change):
    return len(change.data)


def saved_step(made):
    """The last one that events.jsonl tells of; 0: none."""
    steps = [0]
    for line in made.get("broken", {}).get("events.jsonl", b"").splitlines():
        event = json.loads(line)
        if event.get("event") == "save":
            steps.append(event["step"])
    return max(steps)


class Power(Interrupted):
    def __init__(self, work, scenario):
        super().__init__(work, scenario)
        recorder, records = work.folder / "record.so", work.folder / "records"
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-o", recorder, HERE / "record.c", "-ldl"],
                       check=True)
        above = str(work.folder.resolve())
        environment = {**scenario.environment, "LD_PRELOAD": str(recorder), "CHAOS_BELOW": above,
                       "CHAOS_RECORD": str(records)}
        work.run_ok(scenario.command("broken"), environment=environment)
        if problem := self.differs():
            raise RuntimeError(f"while it was recorded {problem}")
        self.recording = Recording(read_records(records), above)
        self.known = {}  # what is wrong with a state, by its digest

    def goes_on(self, made, saved):
        work = self.work
        work.remove("broken")
        lay_out(made.get("broken", {}), self.out)
        result = self.run()
        if result.status != 0:
            return f"it ended with {result.status}: {result.err[-400:]}"
        resumed = re.search(r"resuming after step (\d+)", result.out)
        if (int(resumed[1]) if resumed else 0) < saved:
            return f"step {saved} was saved, and is not gone on from: {result.out[:400]}"
        return self.differs()

    def check(self, case):
        end, keep_data, keep_names = case.end, case.keep_data, case.keep_names
        made = self.recording.state(end, keep_data, keep_names)
        saved = saved_step(self.recording.state(end, whole, lambda: end))
        key = digest(made), saved
        if key not in self.known:
            self.known[key] = self.goes_on(made, saved)
        return self.known[key]

    def go(self, cases):
        rng, all_changes = self.work.random, len(self.recording.changes)

        def some(change):
            share = rng.choice([None, 0.5, 1])
            if share != 0.5:
                return share and len(change.data)
            return rng.randrange(0, len(change.data) + 1, SECTOR)

        kinds = {"power lost, nothing unsynced": (lambda change: None, lambda: 0),
                 "power lost, names without bytes": (lambda change: None, lambda: all_changes),
                 "power lost, bytes without names": (whole, lambda: 0),
                 "power lost, torn and lost writes": (some, lambda: rng.choice([0, 1, 2, 3, all_changes]))}
        for kind, how in kinds.items():
            ends = [rng.randint(1, all_changes) for _ in range(cases)] if cases < all_changes else \
                [i % all_changes + 1 for i in range(cases)]
            self.work.cases(self.scenario.name, kind, [Case(end, *how) for end in ends], self.check)
        self.work.rows.append((self.scenario.name, "different states of these", len(self.known),
                               sum(not wrong for wrong in self.known.values())))


class Case(namedtuple("Case", "end keep_data keep_names")):
    def __str__(self):
        return f"after {self.end} changes"
