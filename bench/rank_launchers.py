"""Ways to start the ranks of a run on this machine: by tokamak itself, as threads or as processes; one by one with the variables of
a launcher; and so in a network namespace each, as if they were machines, which send over TCP (with root and iproute2)."""
import os
import shutil
import subprocess

import faults

BRIDGE = "10.79.0"  # the address of rank N's namespace ends with N + 1


def ip(*arguments):
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


class Namespaces:
    """A network namespace for each of so many ranks, on one bridge."""

    def __init__(self, count):
        self.names = [f"tokamak{os.getpid()}_{rank}" for rank in range(count)]
        try:
            self.connect()
        except BaseException:
            self.remove()
            raise

    def connect(self):
        first = self.names[0]
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", first, "link", "add", "bridge", "type", "bridge")
        ip("-n", first, "addr", "add", f"{BRIDGE}.1/24", "dev", "bridge")
        ip("-n", first, "link", "set", "bridge", "up")
        for rank, name in enumerate(self.names[1:], 1):
            ip("-n", first, "link", "add", f"to{rank}", "type", "veth", "peer", "net", "netns", name)
            ip("-n", first, "link", "set", f"to{rank}", "master", "bridge", "up")
            ip("-n", name, "addr", "add", f"{BRIDGE}.{rank + 1}/24", "dev", "net")
            ip("-n", name, "link", "set", "net", "up")

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


class RankLaunchers:
    """`kinds`: of threads, processes, launched, hosts. Hosts are left out where they cannot be made."""

    def __init__(self, kinds, most_ranks):
        self.kinds, self.namespaces = list(kinds), None
        if "hosts" not in self.kinds:
            return
        try:
            if os.geteuid() != 0 or not shutil.which("ip"):
                raise OSError("needs root and iproute2")
            self.namespaces = Namespaces(most_ranks)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"hosts: SKIPPED, {getattr(error, 'stderr', '') or error}", flush=True)
            self.kinds.remove("hosts")

    def start(self, kind, ranks, command, log):
        """The processes that are the caller's to wait for."""
        where = dict(stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        if ranks == 1 or kind in ("threads", "processes"):
            return [subprocess.Popen(command, env={**os.environ, "TOKAMAK_RANKS": kind}, **where)]
        address = f"{BRIDGE}.1" if kind == "hosts" else "127.0.0.1"
        place = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(1 if kind == "hosts" else ranks), "MASTER_ADDR": address,
                 "MASTER_PORT": str(faults.free_port()), "TOKAMAK_TOKEN": "launched"}
        children = []
        for rank in range(ranks):
            inside = ["ip", "netns", "exec", self.namespaces.names[rank]] if kind == "hosts" else []
            own = {"RANK": str(rank), "LOCAL_RANK": "0" if kind == "hosts" else str(rank)}
            children.append(subprocess.Popen([*inside, *command], env={**os.environ, **place, **own}, **where))
        return children

    def end(self):
        if self.namespaces:
            self.namespaces.remove()
