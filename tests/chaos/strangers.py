"""Ranks that strangers call, whose port a second job wants, one of which dies before all have met, whose launcher dies.

What must hold: strangers and second jobs change nothing, not even a byte of the run; a rank that dies early ends the
run within seconds, and the first rank tells which and how; no rank outlives its launcher by more than three seconds.
After both, the same command gives the bytes of a run that nothing happened to.
"""
import contextlib
import hashlib
import hmac
import os
import resource
import signal
import socket
import struct
import time

from interrupted import Interrupted
from ranks import ranks_of
from work import complaint

STEPS = ["--train.steps=1500", "--train.checkpoint_every=500"]  # some seconds
FILES = 256        # that rank 0 may open
SILENT = 300       # connections
THOUSANDS = 10_000
PATIENCE = 4       # seconds: three, and one for a machine that is busy

LAUNCHER = """for rank in 0 1; do
  OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=$rank OMPI_COMM_WORLD_LOCAL_SIZE=2 \
    "$0" "$@" &
done
wait"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def frame(*texts):
    texts = [text if isinstance(text, bytes) else text.encode() for text in texts]
    body = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return struct.pack("<I", len(body)) + body


def join_without_token(port, rank):
    """Speaks the store's protocol, with an empty key for a token, and tells all ranks to fail."""
    with connect(port) as caller:
        hello = caller.recv(4096)
        nonce = hello[-64:].decode()
        who = frame(str(rank), "2", "host")
        proof = hmac.new(b"", frame("tokamak-store-1", "client", nonce, "mine", who), hashlib.sha256)
        caller.sendall(frame("join", "mine", str(rank), "2", "host", proof.hexdigest()))
        caller.sendall(frame("fail", "by a stranger"))
        while caller.recv(4096):
            pass


class Strangers(Interrupted):
    def start_ranks(self, port, out="broken", **how):
        """As someone does who sets the variables by hand; the token is then the run's own."""
        place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        return [self.work.start(self.scenario.command(out), environment={**place, "RANK": str(r), "LOCAL_RANK": str(r)},
                                **how) for r in range(2)]

    def wait_for_store(self, port, ranks):
        while ranks[0].poll() is None:
            with contextlib.suppress(OSError), connect(port):
                return
            time.sleep(0.002)

    def finish(self, ranks):
        ends = [self.work.end(rank) for rank in ranks]
        wrong = [f"it ended with {end.status}: {end.err[-600:]}" for end in ends if end.status != 0]
        return wrong[0] if wrong else self.differs()

    def called(self, after):
        port = free_port()
        ranks = self.start_ranks(port, files=FILES)
        self.wait_for_store(port, ranks)
        time.sleep(after)
        silent = []
        with contextlib.suppress(OSError):  # the run may have ended
            silent = [connect(port) for _ in range(SILENT)]
            for rank in range(3):
                join_without_token(port, rank)
                silent[rank].sendall(self.work.random.randbytes(100))
        wrong = self.finish(ranks)
        for one in silent:
            one.close()
        return wrong

    def called_by_thousands(self, after):
        port = free_port()
        ranks = self.start_ranks(port, files=1024)
        self.wait_for_store(port, ranks)
        time.sleep(after)
        callers = []
        with contextlib.suppress(OSError):  # the run may have ended
            while len(callers) < THOUSANDS:
                callers.append(connect(port))
        wrong = self.finish(ranks)
        for one in callers:
            one.close()
        self.most = max(self.most, len(callers))
        return wrong

    def go_through_thousands(self, times):
        """Needs as many open files, which a system may refuse."""
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        if before[1] != resource.RLIM_INFINITY and before[1] < THOUSANDS + 100:
            print(f"strangers: {THOUSANDS} connections SKIPPED, {before[1]} files may be open")
            return
        resource.setrlimit(resource.RLIMIT_NOFILE, (THOUSANDS + 100, before[1]))
        self.most = 0
        self.go_through("ten thousand connections", times, self.called_by_thousands)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        if self.most < THOUSANDS:
            print(f"strangers: the runs ended before {self.most + 1} connections were made")

    def second_job(self, after):
        port = free_port()
        ranks = self.start_ranks(port)
        self.wait_for_store(port, ranks)
        time.sleep(after)
        second = self.start_ranks(port, out="other")
        wrong = self.finish(ranks)
        ends = []
        for rank in second:
            rank.kill()  # where the first job ended before this one looked, it begins, or waits for its first rank
            ends.append(self.work.end(rank))
        odd = [end for end in ends if end.status != -signal.SIGKILL and complaint(end)]
        return wrong or (f"the second job ended with {odd[0].status}: {odd[0].err[-600:]}" if odd else "")

    def dies_early(self, after):
        process = self.start()
        while process.poll() is None and len(ranks_of(process.pid)) < 2:
            time.sleep(0.001)
        time.sleep(after)
        for rank in ranks_of(process.pid)[1:]:
            os.kill(rank, signal.SIGKILL)
        begin = time.monotonic()
        result = self.work.end(process)
        took = time.monotonic() - begin
        if took > PATIENCE:
            return f"it ended {took:.1f} s after its rank"
        told = result.status == 1 and "rank 1" in result.err and "signal 9" in result.err
        return self.differs_next() if told else f"it ended with {result.status}: {result.err[-600:]}"

    def launcher_dies(self, after):
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        process = self.work.start(self.scenario.command("broken"), environment=place, launcher=["sh", "-c", LAUNCHER])
        time.sleep(after)
        process.kill()
        begin = time.monotonic()
        self.work.end(process)  # when no rank is left that holds its output
        took = time.monotonic() - begin
        return f"ranks outlived their launcher by {took:.1f} s" if took > PATIENCE else self.differs_next()

    def go(self, cases):
        rng = self.work.random
        times = lambda most: [rng.random() * most for _ in range(cases)]
        self.go_through("strangers at the port", times(self.seconds / 2), self.called)
        self.go_through_thousands(times(0.2))
        self.go_through("a second job on the port", times(self.seconds / 2), self.second_job)
        self.go_through("a rank dies early", times(0.2), self.dies_early)
        self.go_through("the launcher is killed", times(self.seconds), self.launcher_dies)
