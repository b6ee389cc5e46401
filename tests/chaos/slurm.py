"""A Slurm cluster on this machine: munge, one controller, two node daemons, each in a PID namespace that can be lost.

Needs root, slurm-wlm and munge. Everything is in one folder and on ports of its own.
"""
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "unshare"]
SETTINGS = """ClusterName=tokamak
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
KillWait=5
JobRequeue=1
MpiDefault=none
SwitchType=switch/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
NodeName=node[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[17001-17002] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
JOB_SECONDS = 180


def find(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


class Cluster:
    def __init__(self):
        self.folder = Path(f"/run/tokamak_slurm_{os.getpid()}")  # munge wants no folder that all may write to
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"))
        self.daemons = {}

    @staticmethod
    def missing():
        return "root" if os.geteuid() != 0 else ", ".join(name for name in PROGRAMS if not find(name))

    def begin(self, name, *command):
        self.daemons[name] = subprocess.Popen([find(command[0]), *command[1:]], env=self.environment,
                                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def begin_node(self, name):
        self.begin(name, "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", find("slurmd"), "-D", "-N", name)

    def lose_node(self, name):
        """As if its power failed: all of its processes are gone at once."""
        self.daemons[name].kill()
        self.daemons[name].wait()

    def __enter__(self):
        for name in ["state", "spool.node1", "spool.node2"]:
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)
        key = self.folder / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (self.folder / "slurm.conf").write_text(SETTINGS.format(folder=self.folder, host=os.uname().nodename))
        place = lambda option, name: f"--{option}={self.folder}/{name}"
        self.begin("munged", "munged", "--foreground", "--force", place("key-file", "key"), place("socket", "munge.sock"),
                   place("pid-file", "munged.pid"), place("log-file", "munged.log"), place("seed-file", "seed"))
        self.wait(lambda: (self.folder / "munge.sock").exists())
        self.begin("slurmctld", "slurmctld", "-D", "-c")
        self.begin_node("node1")
        self.begin_node("node2")
        self.wait(lambda: self.ask("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2")
        return self

    def __exit__(self, *_):
        for name in ["node1", "node2", "slurmctld", "munged"]:
            if name in self.daemons:
                self.daemons[name].send_signal(signal.SIGKILL if name.startswith("node") else signal.SIGTERM)
        for daemon in self.daemons.values():
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait(self, holds, seconds=60):
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise RuntimeError(f"Slurm's daemons did not come: see {self.folder}")
            time.sleep(0.1)

    def ask(self, *command, **how):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, **how).stdout

    def submit(self, job, folder):
        """`job`: a script and its arguments."""
        return self.ask("sbatch", "--parsable", *job, cwd=folder).strip()

    def state(self, job):
        shown = self.ask("scontrol", "-o", "show", "job", job)
        return next((part[9:] for part in shown.split() if part.startswith("JobState=")), "")

    def end(self, job):
        """The state that it ends in, or that in which it is stuck."""
        end = time.monotonic() + JOB_SECONDS
        while self.state(job) in ("PENDING", "RUNNING", "COMPLETING", "REQUEUED", "CONFIGURING", "NODE_FAIL"):
            if time.monotonic() > end:
                break
            time.sleep(0.2)
        state = self.state(job)
        if state != "COMPLETED":
            self.ask("scancel", job)
        return state
