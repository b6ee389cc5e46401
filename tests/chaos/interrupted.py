"""`prepare` and `train` are killed, get errors from their files, find their files changed, run twice at a time.

What must hold: the same command, run again, gives the bytes of a run that nothing happened to.
"""
import signal
import time

from work import complaint


class Interrupted:
    def __init__(self, work, scenario):
        self.work = work
        self.scenario = scenario
        self.out = work.folder / "broken"
        scenario.setup(work)
        begin = time.monotonic()
        work.run_ok(scenario.command("straight"), environment=scenario.environment)
        self.seconds = time.monotonic() - begin
        self.expected = scenario.content(work.folder / "straight")

    def start(self, **how):
        return self.work.start(self.scenario.command("broken"), environment=self.scenario.environment, **how)

    def run(self, **how):
        return self.work.end(self.start(**how))

    def differs(self):
        got = self.scenario.content(self.out)
        names = sorted(set(got) ^ set(self.expected)) or [n for n in got if got[n] != self.expected[n]]
        return f"it gave others: {', '.join(names)}" if names else ""

    def differs_next(self):
        """Runs the command undisturbed; what is then wrong."""
        result = self.run()
        wrong = self.differs() if result.status == 0 else f"it ended with {result.status}: {result.err[-600:]}"
        return f"the next run: {wrong}" if wrong else ""

    def placed_kill(self, at):
        self.run(at=at, fault="KILL")
        return self.differs_next()

    def failed_call(self, case):
        at, fault = case
        return complaint(self.run(at=at, fault=fault)) or self.differs_next()

    def random_signal(self, after):
        process = self.start()
        time.sleep(after)
        process.send_signal(self.work.random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
        self.work.end(process)
        return self.differs_next()

    def file_limit(self, limit):
        return complaint(self.run(limit=limit)) or self.differs_next()

    def changed_file(self, case):
        at, choice, place, bit = case
        self.run(at=at, fault="KILL")
        files = sorted(self.scenario.state(self.out))
        if files:
            path = files[choice % len(files)]
            content = bytearray(path.read_bytes())
            content[place % len(content)] ^= 1 << bit
            path.write_bytes(content)
        return self.differs_next()

    def two_at_once(self, after):
        first = self.start()
        time.sleep(after)
        second = self.run()
        ends = [self.work.end(first), second]
        if all(end.status != 0 for end in ends):
            return f"both ended with an error: {ends[0].err[-300:]} {ends[1].err[-300:]}"
        return complaint(ends[0]) or complaint(ends[1]) or self.differs() or self.differs_next()

    def go_through(self, kind, cases, check):
        def afresh(case):
            self.work.remove("broken")
            return check(case)
        self.work.cases(self.scenario.name, kind, cases, afresh)

    def go(self, cases):
        rng, go = self.work.random, self.go_through
        self.work.remove("broken")
        calls = self.work.calls(self.scenario.command("broken"), environment=self.scenario.environment)
        at = lambda: rng.randint(1, calls)
        go("kills at calls that change files", sorted(rng.sample(range(1, calls + 1), min(cases, calls))),
           self.placed_kill)
        go("signals at random moments", [rng.random() * self.seconds for _ in range(cases)], self.random_signal)
        go("failed calls (EIO, ENOSPC, EDQUOT)",
           [(at(), rng.choice(["EIO", "ENOSPC", "EDQUOT"])) for _ in range(cases)], self.failed_call)
        go("limits of file sizes", [rng.randint(1, 40_000) for _ in range(max(cases // 4, 1))], self.file_limit)
        go("a changed bit in what was kept",
           [(at(), rng.getrandbits(16), rng.getrandbits(30), rng.randrange(8)) for _ in range(cases)], self.changed_file)
        go("two at once in one folder", [rng.random() * self.seconds for _ in range(cases)], self.two_at_once)
