"""One run: the job, the fault in it, and what is seen of both."""
import dataclasses
import os
import shutil
import subprocess
import time

import draw
import lab
from job import Job
from verdict import Seen, judge

BEGIN_LIMIT_S = 60     # for a job to start, on a machine with other work
PATIENCE_S = 60        # beyond what a job and its fault take: its stacks are taken down
LAST_PATIENCE_S = 180  # and then: it hangs. What ends by itself until then was slow, as on a machine with other work
VANISH_S = 5           # for processes of a job that has ended
TOTAL_LIMIT_S = 600    # `scripts/cluster` ends the job then, whatever became of this program


@dataclasses.dataclass(frozen=True)
class Setting:
    build: str     # folder of what is run
    on_host: bool  # without Plait


class Attempt:
    def __init__(self, run, cluster, folder, setting):
        self.run, self.cluster, self.build, self.on_host = run, cluster, setting.build, setting.on_host
        self.fault = draw.FAULTS[run.fault]
        self.folder = os.path.join(folder, f"run{run.number}")
        self.mark = f"SOAK_RUN={os.path.basename(folder)}.{run.number}"
        self.job, self.struck_at = None, None
        self.helper, self.notes = None, []  # a process of the fault's, and what it said

    # ---- The job ----

    def built(self, name):
        return lab.built(name, folder=self.build)

    def environment(self):
        values = {**self.run.settings, **self.fault.environment(self.run.details)}
        preloaded = [self.built("yield_in_ucx.so")] if self.run.mpi == "mpich" else []
        if "SOAK_REFUSE" in values:
            preloaded.append(self.built("librefusals.so"))
        if self.run.binding == "preload" and not self.on_host:
            preloaded.append(self.built("libplait.so"))
        if preloaded:
            values["LD_PRELOAD"] = ":".join(preloaded)
        values.update(TMPDIR=os.path.join(self.folder, "tmp"), XDG_CACHE_HOME=os.path.join(self.folder, "cache"))
        return [self.mark, *(f"{key}={value}" for key, value in values.items())]

    def launcher_options(self):
        """Open MPI's parameters: its own traffic stays off the rail that may be cut."""
        if self.run.mpi != "openmpi":
            return []
        pairs = [("btl_tcp_if_include", "eth0")]
        if self.run.binding == "component" and not self.on_host:
            folder = os.path.dirname(self.built("openmpi/mca_coll_plait.so"))
            pairs += [("mca_base_component_path", f"SYSTEM_DEFAULT:{folder}"), ("coll_plait_priority", "90")]
        return [word for key, value in pairs for word in ("--mca", key, value)]

    def program(self):
        name = self.built("soak_job" if self.run.mpi == "openmpi" else f"soak_job_{self.run.mpi}")
        options = [word for key, value in self.run.program.items() for word in (f"--{key}", str(value))]
        return [*self.fault.wrapper(self.run.details), name, *options, *self.fault.options(self.run.details)]

    def command(self):
        variables = [word for variable in self.environment() for word in ("--env", variable)]
        return [lab.CLUSTER, "run", "--name", self.cluster.name, "--counts", ",".join(map(str, self.run.counts)),
                "--mpi", self.run.mpi, "--timeout", str(TOTAL_LIMIT_S), *self.launcher_options(), *variables, "--",
                *self.program()]

    # ---- The fault ----

    def strike(self):
        if self.fault.strike(self):
            self.struck_at = time.monotonic()

    def hurt(self):
        """From the job's start on until the fault is over, where it is ever over."""
        details, job = self.run.details, self.job
        moment = details["moment"]
        reaches = {"start": lambda: len(job.ranks()) == job.expected, "idle": job.is_idle}
        reached = job.wait_until(reaches.get(moment, job.has_begun), BEGIN_LIMIT_S)
        if not reached or moment in ("none", "before"):
            return
        if job.wait(details.get("after", 0)):
            self.strike()
            if details.get("lasts"):
                job.wait(details["lasts"])
                self.fault.lift(self)

    # ---- All of it ----

    def make(self):
        for name in ("tmp", "cache"):
            os.makedirs(os.path.join(self.folder, name))
        if self.run.details["moment"] == "before":
            self.strike()
        self.job = Job(self.command(), self.mark, sum(self.run.counts), self.folder)
        try:
            self.hurt()
            late = self.job.wait(self.run.program["seconds"] + self.fault.idle_s(self.run.details) + PATIENCE_S)
            stacks = self.job.stacks() if late else ""
            hung = late and self.job.wait(LAST_PATIENCE_S)
        finally:
            self.job.end()
            self.fault.lift(self)
        return self.seen(hung, stacks)

    def seen(self, hung, stacks):
        job = self.job
        left = [f"process {process}" for process in job.left_behind(VANISH_S)] + self.cluster.traces()
        left += [f"TMPDIR/{name}" for name in os.listdir(os.path.join(self.folder, "tmp"))]
        struck = self.struck_at is not None or self.run.details["moment"] == "none"
        return Seen(status=job.process.returncode, output=job.output() + stacks, struck=struck,
                    hung=hung, seconds=job.ended - job.started,
                    failed_after_s=job.ended - (self.struck_at or job.started), outlived_s=job.outlived_s,
                    left=tuple(left), notes="".join(self.notes).strip())

    def repair(self):
        """For the next run; and where that fails, a new cluster."""
        try:
            self.cluster.clear_shm()
            good = self.cluster.alive()
        except (OSError, subprocess.SubprocessError):
            good = False
        if not good:
            self.cluster.up()
        shutil.rmtree(self.folder, ignore_errors=True)


def attempt(run, clusters, folder, setting):
    """What was seen, and the verdict."""
    cluster = clusters[run.rails]
    if not cluster.alive():
        cluster.up()
    this = Attempt(run, cluster, folder, setting)
    try:
        seen = this.make()
    finally:
        this.repair()
    return seen, judge(run, seen)
