"""`prepare` and `train` where the clock is wrong or jumps, in other locales and time zones, with any number of threads.

What must hold: the bytes are those of a run in ordinary surroundings.
"""
CENTURY = 100 * 365 * 86400
CLOCKS = [-CENTURY, -10**9, 10**9, 30 * CENTURY, "back", "forth"]  # seconds, or an hour each time that it is read
LOCALES = ["", "C", "POSIX", "C.utf8", "de_DE.UTF-8", "tr_TR.UTF-8", "ja_JP.SJIS", "no such locale"]
ZONES = ["", "UTC", "Pacific/Kiritimati", "no such zone"]
THREADS = [1, 2, 3, 5, 8, 64, 1000]


class Surroundings:
    def __init__(self, work, scenario):
        self.work = work
        self.scenario = scenario
        scenario.setup(work)
        work.run_ok(scenario.command("straight"))
        self.expected = scenario.content(work.folder / "straight")
        self.calls = work.calls(scenario.command("broken"))

    def differs(self, more=(), goes_on=False, **how):
        if not goes_on:
            self.work.remove("broken")
        result = self.work.run([*self.scenario.command("broken"), *more], **how)
        if result.status != 0:
            return f"it ended with {result.status}: {result.err[-600:]}"
        return "" if self.scenario.content(self.work.folder / "broken") == self.expected else "other bytes"

    def wrong_clock(self, clock):
        """From the beginning, and for what goes on where a run with that clock was killed."""
        self.work.remove("broken")
        self.work.run(self.scenario.command("broken"), at=self.work.random.randint(1, self.calls), fault="KILL", clock=clock)
        return self.differs(goes_on=True) or self.differs(clock=clock)

    def go(self, cases):
        choose = self.work.random.choice

        def few(values):
            """All of them, or some without the last, which takes longest."""
            return values if cases >= len(values) else [choose(values[:-1]) for _ in range(cases)]

        go = lambda kind, values, check: self.work.cases(self.scenario.name, kind, values, check)
        go("a clock that is wrong or jumps", [choose(CLOCKS) for _ in range(cases)], self.wrong_clock)
        go("locales and time zones", [(choose(LOCALES), choose(ZONES)) for _ in range(cases)],
           lambda case: self.differs(environment={"LC_ALL": case[0], "TZ": case[1]}))
        go("numbers of threads", few(THREADS), lambda threads: self.differs([f"--threads={threads}"]))
