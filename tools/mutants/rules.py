"""The lists of changes: tools/mutants/ROOM.toml."""
import hashlib
import tomllib
from dataclasses import dataclass

KEYS = {"file", "old", "new", "why", "tests", "equivalent", "survives"}
NEEDED = {"file", "old", "new", "why"}


@dataclass(frozen=True)
class Rule:
    room: str
    file: str  # below src/
    line: int  # where the old text begins now
    old: str
    new: str
    why: str
    tests: tuple  # test programs with their arguments
    equivalent: str  # why no test can notice it; empty for most
    survives: str  # why no test notices it, though one could; empty for most

    @property
    def name(self):
        return f"{self.file}:{self.line}"

    @property
    def programs(self):
        return tuple(sorted({test.split()[0] for test in self.tests}))

    @property
    def key(self):
        """The same as long as the change is, wherever its line moves to."""
        return hashlib.sha256("\0".join((self.file, self.old, self.new)).encode()).hexdigest()[:16]

    def is_in(self, word):
        return word in (self.room, self.file, self.name) or self.file.startswith(word.rstrip("/") + "/")


def read_rule(root, path, entry, wrong):
    where = f"{path.relative_to(root)}: {entry.get('file', '?')}: {entry.get('old', '?')!r}"
    if entry.keys() - KEYS or NEEDED - entry.keys():
        wrong.append(f"{where}: expected {', '.join(sorted(NEEDED))} and perhaps {', '.join(sorted(KEYS - NEEDED))}, "
                     f"got {', '.join(sorted(entry))}")
        return None
    room, source = path.stem, root / "src" / entry["file"]
    if not entry["file"].startswith(room + "/") or not source.exists():
        wrong.append(f"{where}: expected a file of src/{room}")
        return None
    text = source.read_text()
    if text.count(entry["old"]) != 1 or entry["old"] == entry["new"]:
        wrong.append(f"{where}: expected another text that is there once, found it {text.count(entry['old'])} times; "
                     "change the rule as the code was changed, or take it out")
        return None
    tests = tuple(entry.get("tests", [f"{room}_test"]))
    return Rule(room, entry["file"], text[:text.index(entry["old"])].count("\n") + 1, entry["old"], entry["new"],
                entry["why"], tests, entry.get("equivalent", ""), entry.get("survives", ""))


def read(root):
    """All rules, those of one file by line; and what is wrong with the lists."""
    found, wrong = [], []
    rooms = [path.name for path in sorted((root / "src").iterdir()) if path.is_dir()]
    for room in rooms:
        path = root / "tools/mutants" / f"{room}.toml"
        if not path.exists():
            wrong.append(f"tools/mutants/{room}.toml: expected changes for src/{room}, found no such file")
            continue
        try:
            entries = tomllib.loads(path.read_text()).get("mutant", [])
        except tomllib.TOMLDecodeError as error:
            wrong.append(f"{path.relative_to(root)}: {error}")
            continue
        found += filter(None, (read_rule(root, path, entry, wrong) for entry in entries))
    names = [rule.key for rule in found]
    wrong += [f"{rule.name}: this change is there twice" for rule in found if names.count(rule.key) > 1]
    return sorted(found, key=lambda rule: (rooms.index(rule.room), rule.programs, rule.file, rule.line)), wrong
