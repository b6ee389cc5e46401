"""Processes that train together: one of them is killed or stopped, all are, or they are told to stop.

What must hold: if one is killed or stopped, the others end by themselves, the first tells why, and what was computed is saved; the
same command, run again, gives the bytes of a run that nothing happened to.
"""
import json
import re
import signal
import threading
import time
from pathlib import Path

from interrupted import Interrupted
from work import complaint, send, with_all_below


STOPPED_SECONDS = 20
GONE = 10  # seconds, at most, that others live on when one was killed


def ranks_of(leader):
    """The processes of the run, the one that was started first; the others may not be there yet."""
    try:
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
    except OSError:  # it has ended
        children = []
    return [leader, *map(int, children)]


def last_step_told(out):
    try:
        lines = (out / "metrics.jsonl").read_bytes().split(b"\n")[:-1]  # behind the last newline is a torn line
    except FileNotFoundError:
        return 0
    return json.loads(lines[-1])["step"] if lines else 0


def last_step_saved(out):
    return max((int(path.name[5:]) for path in (out / "checkpoints").glob("step_*[0-9]")), default=0)


class Ranks(Interrupted):
    def signalled(self, after, choose, number):
        process = self.start()
        time.sleep(after)
        chosen = choose(ranks_of(process.pid))
        for rank in chosen:
            send(rank, number)
        result = self.work.end(process)  # when none is left that holds its output
        if "it hung" in result.err:
            return f"ranks were left: {result.err[-600:]}"
        first_tells = number == signal.SIGKILL and process.pid not in chosen
        return (first_tells and complaint(result)) or self.differs_next()

    def stopped(self, after):
        """SIGSTOP. A leader that the others do not kill, as they had not joined or had done all, is the user's."""
        process = self.start()
        time.sleep(after)
        chosen = self.work.random.choice(ranks_of(process.pid))
        send(chosen, signal.SIGSTOP)
        wakes = threading.Timer(STOPPED_SECONDS, send, (chosen, signal.SIGCONT))
        if chosen == process.pid:
            wakes.start()
        result = self.work.end(process)
        wakes.cancel()
        if "it hung" in result.err:
            return f"ranks were left: {result.err[-600:]}"
        return (chosen != process.pid and complaint(result)) or self.differs_next()

    def go(self, cases):
        rng = self.work.random
        one = lambda ranks: [rng.choice(ranks)]
        all_of_them = lambda ranks: rng.sample(ranks, len(ranks))
        times = lambda: [rng.random() * self.seconds for _ in range(cases)]
        self.go_through("one rank killed", times(), lambda after: self.signalled(after, one, signal.SIGKILL))
        self.go_through("all ranks killed", times(), lambda after: self.signalled(after, all_of_them, signal.SIGKILL))
        self.go_through("one rank stopped", times(), self.stopped)
        self.go_through("one rank told to stop", times(), lambda after: self.signalled(after, one, signal.SIGINT))
        self.go_through("all ranks told to stop", times(),
                        lambda after: self.signalled(after, all_of_them, signal.SIGINT))


def below(process):
    return with_all_below(process)[1:]


class Restarted(Interrupted):
    """A run that starts again by itself loses processes, and ends with the bytes of one that nothing happened to."""

    def killed(self, pauses):
        command = [*self.scenario.command("broken"), "--restarts=100"]
        process = self.work.start(command, environment=self.scenario.environment)
        for pause, number in pauses:
            time.sleep(pause)
            processes = below(process.pid)
            if processes:
                send(self.work.random.choice(processes), number)
        result = self.work.end(process)
        if "it hung" in result.err:
            return f"it hung: {result.err[-600:]}"
        if result.status == 0:
            return self.differs()
        gave_up = "died there twice" in result.err or "have not come" in result.err  # stopped before it joined
        return self.differs_next() if gave_up else f"it ended with {result.status}: {result.err[-600:]}"

    def go(self, cases):
        rng = self.work.random
        pause = lambda number: (rng.random() * self.seconds, number)
        several = lambda numbers: [[pause(rng.choice(numbers)) for _ in range(rng.randint(1, 3))] for _ in range(cases)]
        self.go_through("killed, and started again", several([signal.SIGKILL]), self.killed)
        self.go_through("stopped, and started again", several([signal.SIGKILL, signal.SIGSTOP]), self.killed)


class Kept(Interrupted):
    """A run that keeps states in memory loses a rank, or all, long before a checkpoint is due. It goes on by itself a few
    steps back, from a state in memory or from what a rank that has all could save, and gives the memory back at its end."""
    EVERY, LATE = 5, 4  # steps between states; how many of these may be late, as one before is still being written

    def killed_after(self, case):
        step, choice = case
        memory = self.work.folder / "memory"
        memory.mkdir(exist_ok=True)
        command = [*self.scenario.command("broken"), "--restarts=9", f"--memory_every={self.EVERY}", f"--memory_folder={memory}"]
        process = self.work.start(command, environment=self.scenario.environment)
        while last_step_told(self.out) < step and process.poll() is None:
            time.sleep(0.001)
        ranks = below(process.pid)
        for rank in ranks if choice >= len(ranks) else [ranks[choice]]:
            send(rank, signal.SIGKILL)
        told = last_step_told(self.out)
        result = self.work.end(process)
        if result.status != 0:
            return f"it ended with {result.status}: {result.err[-600:]}"
        resumed = re.search(r"resuming after step (\d+)", result.out)
        if not resumed or int(resumed[1]) < told - self.EVERY * self.LATE:
            return f"step {told} was done, and it went on after {resumed[1] if resumed else 0}"
        left = [path.name for path in memory.iterdir()]
        return self.differs() or ("" if not left else f"in memory were left {left}")

    def go(self, cases):
        rng = self.work.random
        self.go_through("killed, and on from memory",
                        [(rng.randint(50, 300), rng.randrange(3)) for _ in range(cases)], self.killed_after)


class LostRanks(Interrupted):
    """Of two data ranks one is killed long before a checkpoint is due."""

    def killed_after(self, case):
        step, choice = case
        process = self.start()
        while last_step_told(self.out) < step and process.poll() is None:
            time.sleep(0.001)
        ranks = ranks_of(process.pid)
        send(ranks[choice % len(ranks)], signal.SIGKILL)
        return self.lost(self.work.end(process)) or self.differs_next()

    def lost(self, result):
        """The rank that lives may not have done the other's last step."""
        told, saved = last_step_told(self.out), last_step_saved(self.out)
        torn = "had begun to change" in result.out + result.err
        return "" if torn or saved >= told - 1 else f"step {told} was done, and {saved} is saved: {result.err[-600:]}"

    def go(self, cases):
        rng = self.work.random
        self.go_through("one rank killed far from a save",
                        [(rng.randint(1, 300), rng.randrange(2)) for _ in range(cases)], self.killed_after)


def names_below(folder):
    """All files that a run has left, by name."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


class Changing(Interrupted):
    """A run is killed again and again, and goes on each time on another mesh, as threads or as processes. Nothing is left
    behind: no process, no file that an undisturbed run does not have."""
    MESHES = [["--mesh.data=1"], ["--mesh.data=2"], ["--mesh.data=4"], ["--mesh.data=8"], ["--mesh.pipe=2"],
              ["--mesh.data=2", "--mesh.zero=1"], ["--mesh.data=4", "--mesh.zero=3"], ["--mesh.data=2", "--mesh.pipe=2"]]

    def start_on(self, mesh, ranks_are):
        return self.work.start([*self.scenario.command("broken"), *mesh], environment={"TOKAMAK_RANKS": ranks_are})

    def killed(self, starts):
        for mesh, ranks_are, pause in starts:
            process = self.start_on(mesh, ranks_are)
            time.sleep(pause)
            begin = time.monotonic()
            victim = self.work.random.choice(ranks_of(process.pid) or [process.pid])
            send(victim, signal.SIGKILL)
            self.work.end(process)
            if time.monotonic() - begin > GONE:
                return f"on {' '.join(mesh)} the others lived on for {time.monotonic() - begin:.1f} s"
        result = self.work.end(self.start_on(*self.work.random.choice(starts)[:2]))
        if result.status != 0:
            return f"the last start ended with {result.status}: {result.err[-20000:]}"
        told = self.work.run(["data", "ledger", "broken"])
        ledger = "" if "PROVEN: samples" in told.out else f"the ledger: {told.out[-400:]}"
        left = names_below(self.out) ^ names_below(self.work.folder / "straight")
        return self.differs() or ledger or ("" if not left else f"files were left or are missing: {sorted(left)}")

    def go(self, cases):
        rng = self.work.random
        start = lambda: (rng.choice(self.MESHES), rng.choice(["threads", "processes"]), 0.1 + rng.random() * self.seconds)
        self.go_through("killed, each time other ranks", [[start() for _ in range(3)] for _ in range(cases)], self.killed)
