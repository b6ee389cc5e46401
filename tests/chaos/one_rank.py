"""Of two ranks, started as by a launcher, one is in trouble: its calls fail, its disk is full, its folder is read-only, its clock
is wrong.

What must hold: both end by themselves, with all done or with an error that is told, also where only one of them has a reason; the
same command, with nothing wrong, then gives the bytes of a run that nothing happened to. A clock changes nothing at all.
"""
import os
import shutil
import time

from strangers import Strangers, free_port
from surroundings import CLOCKS
from work import complaint

LONGEST = 20  # seconds that both may take, on a busy machine; alone they take one
READ_ONLY = 'mount --bind "$FOLDER" "$FOLDER" && mount -o remount,bind,ro "$FOLDER" && exec "$0" "$@"'


class OneRank(Strangers):
    def start_both(self, chosen, **how):
        """`how`: of the chosen rank."""
        place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                 "TOKAMAK_JOIN_SECONDS": "10"}  # for a rank 0 that ends before it listens; launchers end the others then
        both = []
        for rank in range(2):
            mine = dict(how) if rank == chosen else {}
            environment = {**place, "RANK": str(rank), "LOCAL_RANK": str(rank), **mine.pop("environment", {})}
            both.append(self.work.start(self.scenario.command("broken"), environment=environment, **mine))
        return both

    def both(self, chosen, **how):
        """How they ended, and what is wrong with that."""
        begin = time.monotonic()
        ends = [self.work.end(rank) for rank in self.start_both(chosen, **how)]
        took = time.monotonic() - begin
        if took > LONGEST or any("it hung" in end.err for end in ends):
            return ends, f"they took {took:.1f} s: {ends[0].err[-600:]} {ends[1].err[-3000:]}"
        odd = [end for end in ends if end.status not in (0, 1)]
        told = all(end.status == 0 for end in ends) or any("error:" in end.err for end in ends)
        return ends, complaint(odd[0]) if odd else "" if told else "nobody told why"

    def fails(self, case):
        chosen, at, fault = case
        return self.both(chosen, at=at, fault=fault)[1] or self.differs_next()

    def has_no_room(self, case):
        chosen, limit = case
        return self.both(chosen, limit=limit)[1] or self.differs_next()

    def may_not_write(self, chosen):
        self.out.mkdir()
        wrong = self.both(chosen, launcher=["unshare", "-m", "sh", "-c", READ_ONLY],
                          environment={"FOLDER": str(self.out)})[1]
        return wrong or self.differs_next()

    def has_another_clock(self, case):
        chosen, clock = case
        ends, wrong = self.both(chosen, clock=clock)
        failed = [end for end in ends if end.status != 0]
        return wrong or (failed[0].err[-600:] if failed else self.differs())

    def calls_of(self, rank):
        self.work.remove("broken")
        self.both(rank, count=self.work.folder / "count")
        return int((self.work.folder / "count").read_text())

    def go(self, cases):
        rng = self.work.random
        calls = [self.calls_of(rank) for rank in range(2)]
        faults = ["EIO", "ENOSPC", "EDQUOT", "EACCES"]
        rank_and_call = lambda rank: (rank, rng.randint(1, calls[rank]), rng.choice(faults))
        self.go_through("a call of one fails", [rank_and_call(rng.randrange(2)) for _ in range(cases)], self.fails)
        self.go_through("one has no room on its disk", [(rng.randrange(2), rng.randint(1, 40_000)) for _ in range(cases)],
                        self.has_no_room)
        self.go_through("one has another clock", [(rng.randrange(2), rng.choice(CLOCKS)) for _ in range(cases)],
                        self.has_another_clock)
        if os.geteuid() == 0 and shutil.which("unshare"):
            self.go_through("one has a read-only folder", [rng.randrange(2) for _ in range(min(cases, 6))], self.may_not_write)
