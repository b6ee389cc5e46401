"""Runs that are killed while a checkpoint is written beside the steps.

Each rename takes long, so that a save lasts for several steps. What must hold: what has no name yet is never gone on from, and
the same command, run again, gives the bytes of a run that nothing happened to.
"""
import signal
import time

from interrupted import Interrupted
from ranks import last_step_told, ranks_of
from work import send

SLOW = 20_000  # microseconds that each rename takes longer; a save has about ten
AHEAD = 2      # steps, at least, that have run since a state was copied


def step_being_saved(out):
    return max((int(path.name[5:13]) for path in (out / "checkpoints").glob("step_*.tmp")), default=0)


class Saving(Interrupted):
    def started(self):
        """A process in the middle of a save, with steps behind it; it may have ended before there is one."""
        process = self.start(slow=SLOW)
        while process.poll() is None:
            saving = step_being_saved(self.out)
            if saving and last_step_told(self.out) >= saving + AHEAD:
                break
            time.sleep(0.001)
        return process

    def signalled(self, case):
        after, number, everyone = case
        process = self.started()
        time.sleep(after)
        ranks = ranks_of(process.pid)
        for rank in ranks if everyone else [self.work.random.choice(ranks)]:
            send(rank, number)
        result = self.work.end(process)
        if "it hung" in result.err:
            return f"ranks were left: {result.err[-600:]}"
        return self.differs_next()

    def go(self, cases):
        rng = self.work.random
        several = lambda numbers, everyone: [(rng.random() * 10 * SLOW / 1e6, rng.choice(numbers), everyone)
                                             for _ in range(cases)]
        self.go_through("killed while it saves", several([signal.SIGKILL], False), self.signalled)
        self.go_through("all killed while they save", several([signal.SIGKILL], True), self.signalled)
        self.go_through("told to stop while it saves", several([signal.SIGTERM, signal.SIGINT], False), self.signalled)
