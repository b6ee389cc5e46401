"""Processes that train together: one of them is killed, all are, or they are told to stop.

What must hold: if one is killed, the others end by themselves, and the first tells why; the same command, run again,
gives the bytes of a run that nothing happened to.
"""
import os
import signal
import time
from pathlib import Path

from interrupted import Interrupted
from work import complaint


def ranks_of(leader):
    """The processes of the run, the one that was started first; the others may not be there yet."""
    try:
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
    except OSError:  # it has ended
        children = []
    return [leader, *map(int, children)]


def send(rank, number):
    try:
        os.kill(rank, number)
    except ProcessLookupError:
        pass


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

    def go(self, cases):
        rng = self.work.random
        one = lambda ranks: [rng.choice(ranks)]
        all_of_them = lambda ranks: rng.sample(ranks, len(ranks))
        times = lambda: [rng.random() * self.seconds for _ in range(cases)]
        self.go_through("one rank killed", times(), lambda after: self.signalled(after, one, signal.SIGKILL))
        self.go_through("all ranks killed", times(), lambda after: self.signalled(after, all_of_them, signal.SIGKILL))
        self.go_through("one rank told to stop", times(), lambda after: self.signalled(after, one, signal.SIGINT))
        self.go_through("all ranks told to stop", times(),
                        lambda after: self.signalled(after, all_of_them, signal.SIGINT))
