"""Two machines, which are network namespaces of this one: a rank each, joined by two links of IPv4 and IPv6.

What must hold: they have the bytes of one machine by either kind of address and over either link; when the link goes
down in the middle, all ranks have ended ten seconds later, one message names the one that is not heard of, and the
same command gives the right bytes when it is up again. With an agent on each machine the run goes on by itself: on both
when the link is up again, on one where the other is lost. The same holds over a long and bad wire (wire.py) that delays,
reorders and loses frames, and that falls silent; a run outlives a silence of a second. Needs root and `ip` of iproute2.
"""
import os
import shutil
import subprocess
import time

from wire import Wire
from work import Result

LIMIT = 10.0  # seconds from the loss of the link to the end of the last rank
LINKS = {"10.77.0": "fd77", "10.78.0": "fd78"}  # of hosts 1 and 2
PORT = 29577
OUTAGE = 14.0  # seconds, more than it takes both sides to notice
BREATH = 1.0   # seconds, less than that
DELAY, JITTER, LOSS = 0.0005, 0.0005, 0.005  # seconds of a frame one way, and its chance to be lost


def ip(*arguments):
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


class Hosts:
    def __init__(self, work, scenario):
        self.work, self.scenario = work, scenario
        self.names = [f"tokamak{os.getpid()}_{host}" for host in (1, 2)]
        self.port = PORT

    def connect(self):
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for link, (four, six) in enumerate(LINKS.items()):
            ip("-n", self.names[0], "link", "add", f"net{link}", "type", "veth", "peer", f"net{link}", "netns", self.names[1])
            for host, name in enumerate(self.names, 1):
                ip("-n", name, "addr", "add", f"{four}.{host}/24", "dev", f"net{link}")
                ip("-n", name, "addr", "add", f"{six}::{host}/64", "dev", f"net{link}", "nodad")
                ip("-n", name, "link", "set", f"net{link}", "up")

    def disconnect(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def start(self, out, address, more=()):
        self.port += 1
        ranks = []
        for rank, name in enumerate(self.names):
            place = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": address,
                     "MASTER_PORT": self.port, "TOKAMAK_TOKEN": "chaos"}
            ranks.append(self.work.start([*self.scenario.command(out), *more],
                                         environment={key: str(value) for key, value in place.items()},
                                         launcher=["ip", "netns", "exec", name]))
        return ranks

    def start_agents(self, out, wait_seconds):
        self.port += 1
        more = ["--mesh.data=0", "--restarts=5", "--agents.machines=2", f"--agents.address=10.77.0.1:{self.port}",
                f"--agents.wait_seconds={wait_seconds}"]
        return [self.work.start([*self.scenario.command(out), *more, f"--agents.number={number}"],
                                launcher=["ip", "netns", "exec", name]) for number, name in enumerate(self.names)]

    def end(self, ranks):
        results = [self.work.end(rank) for rank in ranks]
        return Result(max(r.status for r in results), results[0].out, " ".join(r.err for r in results))

    def differs(self):
        got = self.scenario.content(self.work.folder / "broken")
        return "" if got == self.expected else f"it gave others: {', '.join(n for n in got if got[n] != self.expected[n])}"

    def received(self):
        """Bytes that the first host has had over each link."""
        read = lambda link: ip("netns", "exec", self.names[0], "cat", f"/sys/class/net/net{link}/statistics/rx_bytes")
        return [int(read(link).stdout) for link in range(len(LINKS))]

    def trains(self, case):
        address, more, link = case
        self.work.remove("broken")
        before = self.received()
        result = self.end(self.start("broken", address, more))
        if result.status != 0:
            return f"it ended with {result.status}: {result.err[-400:]}"
        got = [now - then for now, then in zip(self.received(), before)]
        return self.differs() or ("" if got[link] == max(got) else f"most was sent over the other link: {got}")

    def parted(self, pause):
        self.work.remove("broken")
        ranks = self.start("broken", "10.77.0.1")
        time.sleep(pause)
        begin = time.monotonic()
        self.link("down")
        result = self.end(ranks)
        seconds = time.monotonic() - begin
        self.link("up")
        if seconds > LIMIT:
            return f"the last rank ended {seconds:.1f} s after the link"
        if result.status != 0 and "rank " not in result.err:
            return f"nobody is named: {result.err[-400:]}"
        again = self.end(self.start("broken", "10.77.0.1"))
        return self.differs() if again.status == 0 else f"the next run ended with {again.status}: {again.err[-400:]}"

    def link(self, state):
        ip("-n", self.names[0], "link", "set", "net0", state)
        if state == "up":
            ip("-n", self.names[0], "addr", "replace", "fd77::1/64", "dev", "net0", "nodad")  # lost with the link

    def heals(self, pause):
        self.work.remove("broken")
        agents = self.start_agents("broken", 60)
        time.sleep(pause)
        self.link("down")
        time.sleep(OUTAGE)
        self.link("up")
        result = self.end(agents)
        return self.differs() if result.status == 0 else f"it ended with {result.status}: {result.err[-600:]}"

    def loses_one(self, pause):
        self.work.remove("broken")
        agents = self.start_agents("broken", 3)
        time.sleep(pause)
        agents[1].kill()  # its rank stops as well
        self.work.end(agents[1])
        result = self.work.end(agents[0])
        if "have not come" in result.err or "machines to come within" in result.err:
            return ""  # it was killed before it came
        return self.differs() if result.status == 0 else f"it ended with {result.status}: {result.err[-600:]}"

    def is_possible(self):
        possible = os.geteuid() == 0 and shutil.which("ip")
        if not possible:
            print("hosts: SKIPPED, needs root and iproute2")
        return possible

    def go(self, cases):
        if not self.is_possible():
            return
        self.scenario.setup(self.work)
        begin = time.monotonic()
        self.work.run_ok(self.scenario.command("straight"))
        self.seconds = time.monotonic() - begin
        self.expected = self.scenario.content(self.work.folder / "straight")
        try:
            try:
                self.connect()
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"hosts: SKIPPED, no such network here: {getattr(error, 'stderr', '') or error}")
                return
            self.go_on([self.work.random.random() * (self.seconds + 1) for _ in range(cases)])
        finally:
            self.disconnect()

    def go_on(self, pauses):
        addresses = [("10.77.0.1", [], 0), ("10.78.0.1", [], 1), ("fd77::1", [], 0), ("fd78::1", [], 1),
                     ("10.77.0.1", ["--mesh.interface=net1"], 1), ("fd78::1", ["--mesh.interface=net0"], 0)]
        self.work.cases("2 hosts", "addresses and interfaces", addresses, self.trains)
        self.work.cases("2 hosts", "the link between them goes down", pauses, self.parted)
        if len(pauses) > 1:  # each takes most of a minute
            self.work.cases("2 agents", "the link is down for a while", pauses, self.heals)
        self.work.cases("2 agents", "a machine is lost for good", pauses, self.loses_one)


class DistantHosts(Hosts):
    """One link, a Wire."""

    wire = None
    longer = 1.0  # than on one machine a run takes

    def connect(self):
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        self.wire = Wire(self.names, DELAY, JITTER, LOSS, self.work.random.random())
        for host, name in enumerate(self.names, 1):
            ip("-n", name, "addr", "add", f"10.77.0.{host}/24", "dev", "net0")
            ip("-n", name, "addr", "add", f"fd77::{host}/64", "dev", "net0", "nodad")
            ip("-n", name, "link", "set", "net0", "up")

    def disconnect(self):
        if self.wire:
            self.wire.end()
        super().disconnect()

    def link(self, state):
        self.wire.silent = state == "down"

    def crosses(self, address):
        self.work.remove("broken")
        before, begin = self.wire.lost, time.monotonic()
        result = self.end(self.start("broken", address))
        self.longer = (time.monotonic() - begin) / self.seconds
        if result.status != 0:
            return f"it ended with {result.status}: {result.err[-600:]}"
        return self.differs() or ("" if self.wire.lost > before else "the wire lost nothing")

    def outlives(self, pause):
        self.work.remove("broken")
        ranks = self.start("broken", "10.77.0.1")
        time.sleep(pause)
        self.link("down")
        time.sleep(BREATH)
        self.link("up")
        result = self.end(ranks)
        return self.differs() if result.status == 0 else f"it ended with {result.status}: {result.err[-600:]}"

    def go_on(self, pauses):
        self.work.cases("far hosts", "latency, loss, another order", ["10.77.0.1", "fd77::1"], self.crosses)
        pauses = [pause * self.longer for pause in pauses]
        self.work.cases("far hosts", "the wire is silent for a second", pauses, self.outlives)
        self.work.cases("far hosts", "the wire falls silent", pauses, self.parted)
        if len(pauses) > 1:
            self.work.cases("far agents", "the wire is silent for a while", pauses, self.heals)
