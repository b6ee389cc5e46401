"""Silent corruption: a bit of a weight is flipped in the memory of a running rank.

What must hold: the next checked step names the rank and the tensor, the run goes back to the last checked step by
itself, and ends with the bytes of a run that nothing happened to. Needs to write into /proc/PID/mem. The learning rate
is 0, so that the weights of the last checkpoint are those in memory.
"""
import json
import struct

from interrupted import Interrupted
from launchers import steps_are_told
from ranks import ranks_of

CHECKED = ["--restarts=3", "--train.verify_every=100", "--train.keep_checkpoints=4"]
PATTERN = 64  # bytes of the tensor, by which it is found
LARGEST = 1 << 30  # of a region that is looked through


def first_bytes(checkpoint, part_of_name):
    raw = (checkpoint / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    name = next(name for name in header if part_of_name in name)
    begin = 8 + length + header[name]["data_offsets"][0]
    return name, raw[begin:begin + PATTERN]


def flip(process, pattern):
    """The lowest bit of an element, wherever the process has the pattern; how often that is. None: it has ended."""
    try:
        return flip_in_memory(process, pattern)
    except (FileNotFoundError, ProcessLookupError):
        return None


def flip_in_memory(process, pattern):
    found = 0
    with open(f"/proc/{process}/mem", "r+b", 0) as memory, open(f"/proc/{process}/maps") as maps:
        for line in maps:
            region, access = line.split()[:2]
            low, high = (int(end, 16) for end in region.split("-"))
            if not access.startswith("rw") or high - low > LARGEST:
                continue
            try:
                memory.seek(low)
                content = memory.read(high - low)
            except OSError:
                continue
            at = content.find(pattern)
            while at >= 0:
                memory.seek(low + at + 20)
                memory.write(bytes([content[at + 20] ^ 1]))
                found += 1
                at = content.find(pattern, at + 1)
    return found


class Flipped(Interrupted):
    def flipped(self, step):
        process = self.work.start([*self.scenario.command("broken"), *CHECKED], environment=self.scenario.environment)
        if not steps_are_told(self.out, step):
            process.kill()
            return f"it took no steps: {self.work.end(process).err[-600:]}"
        leader = ranks_of(process.pid)[1]
        rank = ranks_of(leader)[1]
        checkpoint = sorted((self.out / "checkpoints").glob("step_*[0-9]"))[0]
        name, pattern = first_bytes(checkpoint, "c_fc.weight")
        found = flip(rank, pattern)
        if found is None and step > 1:  # this program waited for a core while the run went on to its end
            self.work.end(process)
            self.work.remove("broken")
            return self.flipped(step // 2)
        if not found:
            process.kill()
            return "the weight is nowhere in the rank's memory"
        result = self.work.end(process)
        if result.status != 0:
            return f"it ended with {result.status}: {result.err[-600:]}"
        if "rank 1 on " not in result.err or f"of {name}, one of the two wrongly" not in result.err:
            return f"nothing was found: {result.err[-600:]}"
        return self.differs()

    def go(self, cases):
        steps = [self.work.random.randint(60, 400) for _ in range(cases)]
        self.go_through("a flipped bit of a weight", steps, self.flipped)
