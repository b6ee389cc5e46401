"""A wire between two network namespaces that is long and bad: frames take their time, come out of order or not at all, or the
wire falls silent while both ends believe that it is up. For kernels without netem, which does the same (`tc qdisc add ... netem
delay 2ms 1ms loss 1%`). Needs root and /dev/net/tun.
"""
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
FRAME = 65536  # bytes, more than the longest


def open_tap(name):
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


class Wire:
    """`delay`, `jitter`: seconds of each frame one way, the second times a random number; `loss`: a frame's chance to be lost."""

    def __init__(self, namespaces, delay, jitter, loss, seed):
        self.delay, self.jitter, self.loss = delay, jitter, loss
        self.random = random.Random(seed)
        self.silent = False
        self.carried = self.lost = 0
        self.taps = []
        for number, namespace in enumerate(namespaces):
            name = f"tk{os.getpid()}_{number}"
            self.taps.append(open_tap(name))
            subprocess.run(["ip", "link", "set", name, "netns", namespace, "name", "net0"], check=True, capture_output=True)
        self.ends = False
        self.thread = threading.Thread(target=self.carry)
        self.thread.start()

    def take(self, tap, now, under_way):
        try:
            frame = os.read(tap, FRAME)
        except OSError:  # none is there, or its namespace is gone
            return
        if self.silent or self.random.random() < self.loss:
            self.lost += 1
            return
        self.carried += 1
        due = now + self.delay + self.jitter * self.random.random()
        heapq.heappush(under_way, (due, self.carried, self.taps[1 - self.taps.index(tap)], frame))

    def carry(self):
        under_way = []
        while not self.ends:
            wait = min(under_way[0][0] - time.monotonic(), 0.1) if under_way else 0.1
            for tap in select.select(self.taps, [], [], max(wait, 0.0))[0]:
                self.take(tap, time.monotonic(), under_way)
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, tap, frame = heapq.heappop(under_way)
                try:
                    os.write(tap, frame)
                except OSError:  # a queue is full, or the other end is not up
                    self.lost += 1

    def end(self):
        self.ends = True
        self.thread.join()
        for tap in self.taps:
            os.close(tap)
