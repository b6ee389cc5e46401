"""Ranks that others start, and start again: torchrun, mpirun and a shell in loops, Slurm with its requeue.

What must hold: a rank, or a machine, is lost; the run goes on from the newest good checkpoint by itself and ends with
the bytes of a run that nothing happened to. Launchers that are not installed are left out, with a line that says so.
TORCHRUN names a torchrun that is not on the PATH.
"""
import os
import shutil
import signal
import time
from pathlib import Path

from interrupted import Interrupted
from ranks import below, last_step_told
from work import send
from slurm import Cluster

RECIPE = Path(__file__).resolve().parents[2] / "runs/launch/slurm.sh"
LOOP = 'until "$@"; do sleep 0.2; done'


def steps_are_told(out, least, seconds=60):
    end = time.monotonic() + seconds
    while last_step_told(out) < least and time.monotonic() < end:
        time.sleep(0.01)
    return last_step_told(out) >= least


def ranks_below(process, program):
    """The processes of the program that a launcher has started."""
    def runs_it(one):
        try:
            return os.readlink(f"/proc/{one}/exe") == program
        except OSError:
            return False
    return [one for one in below(process) if runs_it(one)]


class Launchers(Interrupted):
    def loses_a_rank(self, launcher, more, step):
        """A rank is killed when so many steps are done."""
        process = self.work.start([*self.scenario.command("broken"), *more], launcher=launcher,
                                  environment={"TOKAMAK_RANKS": "processes"})
        if not steps_are_told(self.out, step):
            process.kill()
            return f"it took no steps: {self.work.end(process).err[-600:]}"
        ranks = ranks_below(process.pid, self.work.program) or [process.pid]
        send(self.work.random.choice(ranks), signal.SIGKILL)
        result = self.work.end(process)
        return self.differs() if result.status == 0 else f"it ended with {result.status}: {result.err[-600:]}"

    def go_through_launcher(self, name, program, launcher, cases, more=()):
        if not program:
            print(f"launchers: {name} SKIPPED, it is not installed")
            return
        steps = [self.work.random.randint(10, self.steps // 2) for _ in range(cases)]
        self.go_through(f"{name}: a rank is killed", steps, lambda step: self.loses_a_rank(launcher, more, step))

    def write_job(self):
        """The recipe, for nodes that have no GPUs and whose names are no machine's."""
        text = RECIPE.read_text().replace("--ntasks-per-node=8", "--ntasks-per-node=1").replace("#SBATCH --gpus", "# --gpus")
        own = f"export MASTER_ADDR=127.0.0.1 PATH={Path(self.work.program).parent}:$PATH\nsrun "
        job = self.work.folder / "job.sh"
        job.write_text(text.replace("\nsrun ", "\n" + own))
        return [job, *self.scenario.command("broken")[1:]]

    def on_slurm(self, cluster, step, disturb):
        job = cluster.submit(self.write_job(), self.work.folder)
        if not steps_are_told(self.out, step):
            return f"job {job} took no steps: {cluster.end(job)}"
        disturb(job)
        state = cluster.end(job)
        return self.differs() if state == "COMPLETED" else f"the job ended as {state}"

    def go_through_slurm(self, cases):
        missing = Cluster.missing()
        if missing:
            print(f"launchers: Slurm SKIPPED, it needs {missing}")
            return
        with Cluster() as cluster:
            requeue = lambda job: cluster.ask("scontrol", "requeue", job)

            def lose_node(_):
                cluster.lose_node("node2")
                cluster.wait(lambda: "down" in cluster.ask("sinfo", "-h", "-n", "node2", "-o", "%T"))
                cluster.begin_node("node2")

            steps = [self.work.random.randint(10, self.steps // 2) for _ in range(cases)]
            self.go_through("Slurm: scontrol requeue", steps, lambda step: self.on_slurm(cluster, step, requeue))
            self.go_through("Slurm: a node is lost", steps, lambda step: self.on_slurm(cluster, step, lose_node))

    def go(self, cases):
        if cases == 1:  # the short form, in which minutes count
            return
        self.steps = int(next(word[14:] for word in self.scenario.command("broken") if word.startswith("--train.steps=")))
        torchrun, mpirun = os.environ.get("TORCHRUN") or shutil.which("torchrun"), shutil.which("mpirun")
        self.go_through_launcher("torchrun", torchrun,
                                 [torchrun, "--nproc-per-node=2", "--max-restarts=3", "--no-python"], cases)
        self.go_through_launcher("mpirun", mpirun,
                                 ["sh", "-c", LOOP, "loop", mpirun, "--allow-run-as-root", "--oversubscribe", "-n", "2"], cases)
        self.go_through_launcher("a shell", "sh", ["sh", "-c", LOOP, "loop"], cases, ["--mesh.data=2"])
        self.go_through_slurm(cases)
