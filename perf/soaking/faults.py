"""The faults: how each is drawn, done and undone, and what may become of the job.

A job may end right, or fail: within the seconds that are documented for its fault, and with a line that names what
failed. A new fault is a class here.
"""
import math
import os
import re
import resource
import signal
import subprocess
import sys

ALL_RANKS = -1
FROM_THEN_ON = 1 << 30


class Fault:
    name = ""
    weight = 1           # cards of it in the deck
    what = ""            # for the table
    nodes = (1, 2, 3)    # that the job may have
    mpis = ("openmpi", "mpich")
    rails = (1, 2)       # of the cluster
    may = {"right"}      # end so; or fail
    only_plait = 0.2     # share of its jobs in which nothing goes to the host MPI
    may_leave_to_host = False  # calls that Plait has without the fault
    within_s = 10        # from the fault on until the job has failed
    names = ()           # patterns of which one is to be in a failed job's output; {} is filled from the details

    # ---- Drawing; `shape` is the job's: counts, mpi, rails ----

    def draw(self, chance, shape):
        """The details, plain values. `moment`: when it strikes: before the job, or `after` seconds from the start of its
        ranks ("start"), of their calls ("loop") or of a pause in these ("idle"); or it does by itself ("none")."""
        return {"moment": "none"}

    def seconds(self, details):
        """How long the job calls."""
        return max(1.0, details.get("after", 0) + details.get("lasts", 0) + 0.6)

    def idle_s(self, details):
        """How long it does not call in between."""
        return 0

    def environment(self, details):
        return {}

    def wrapper(self, details):
        """What starts the program."""
        return []

    def options(self, details):
        """More arguments of the program."""
        return []

    # ---- Doing; `attempt` has the run, its cluster and its job ----

    def strike(self, attempt):
        """Whether there still was something to strike."""
        return True

    def lift(self, attempt):
        """Once more at the job's end, whatever has been done by then."""

    # ---- Judging ----

    def may_end(self, details):
        return self.may

    def patterns(self, details):
        return [re.compile(pattern.format(**details), re.I | re.S) for pattern in self.names]


def log_uniform(chance, most):
    """From 1 on."""
    return int(math.exp(chance.uniform(0, math.log(most))))


def one_or_all(chance, shape):
    return chance.choice((ALL_RANKS, chance.randrange(sum(shape["counts"]))))


def moment_in_loop(chance, longest=1.2):
    return {"moment": "loop", "after": round(chance.uniform(0.02, longest), 3)}


def some_moment(chance):
    """Mostly in the middle, and sometimes while MPI starts."""
    if chance.random() < 0.25:
        return {"moment": "start", "after": round(chance.uniform(0, 0.4), 3)}
    return moment_in_loop(chance)


class None_(Fault):
    name, weight, what = "none", 4, "nothing happens"


class Killed(Fault):
    name, weight, what = "kill", 9, "a rank gets a SIGKILL"
    may = {"failed"}
    names = (r"rank {rank} with PID \d+ on node \w+ exited on signal 9", r"rank {rank} on node\d+[ ,:]",
             # MPICH, and UCX within it.
             r"EXIT CODE: 9\b", r"process_vm_readv\(pid=\d+ [^\n]*No such process")

    def draw(self, chance, shape):
        return {"rank": chance.randrange(sum(shape["counts"])), **some_moment(chance)}

    def seconds(self, details):
        return 60

    def strike(self, attempt):
        return attempt.job.signal(attempt.run.details["rank"], signal.SIGKILL)


class LauncherKilled(Fault):
    """Nobody is left to say anything."""
    name, weight, what = "kill-launcher", 1, "mpirun gets a SIGKILL"
    may = {"failed"}

    def draw(self, chance, shape):
        return some_moment(chance)

    def seconds(self, details):
        return 60

    def strike(self, attempt):
        attempt.job.ranks()
        if not attempt.job.launcher:
            return False
        os.kill(attempt.job.launcher, signal.SIGKILL)
        return True


class Stopped(Fault):
    name, weight, what = "stop", 7, "one or two ranks stand still for 0.1 to 3 s"

    def draw(self, chance, shape):
        ranks = sum(shape["counts"])
        return {"ranks": sorted(chance.sample(range(ranks), min(ranks, chance.choice((1, 1, 2))))),
                "lasts": round(math.exp(chance.uniform(math.log(0.1), math.log(3))), 3), **some_moment(chance)}

    def strike(self, attempt):
        return any([attempt.job.signal(rank, signal.SIGSTOP) for rank in attempt.run.details["ranks"]])

    def lift(self, attempt):
        for rank in attempt.run.details["ranks"]:
            attempt.job.signal(rank, signal.SIGCONT)


class FullShm(Fault):
    """Open MPI's own files lie elsewhere on the clusters; MPICH's would lie there, and it could not start."""
    name, weight, what = "shm", 6, "`/dev/shm` of a node is full, has no inodes or cannot be written"
    mpis = ("openmpi",)

    def draw(self, chance, shape):
        way = chance.choice(("size=64k", "size=1m", "size=8m", "nr_inodes=1", "ro", "full", "full", "full"))
        moment = some_moment(chance) if way == "full" else {"moment": "before"}
        return {"node": chance.randrange(len(shape["counts"])), "way": way, **moment}

    def strike(self, attempt):
        node, way = attempt.run.details["node"], attempt.run.details["way"]
        return attempt.cluster.fill_shm(node) if way == "full" else attempt.cluster.remount(node, way)

    def lift(self, attempt):
        attempt.cluster.restore_shm(attempt.run.details["node"])


class FewFiles(Fault):
    name, weight, what = "files", 6, "EMFILE: few files may be open, from the start or from some moment on"
    may_leave_to_host = True
    may = {"right", "failed"}
    within_s = 75  # an accept that finds no file is tried again for a minute
    # UCX ends the process where the limit meets it while it is loaded. Else there is no reason to fail but a connection
    # that cannot be made: the rank that lacks files says so, and what the other one has is a time-out, beside the line of
    # the first one's UCX.
    names = (r"UCX  ERROR [^\n]*Too many open files[^\n]*\n[^\n]*Assertion",
             r"rank \d+ on node\d+, rail eth\d+: [^\n]*: this process can open no more files",
             r"rank \d+ on node\d+, rail eth\d+: its connection cannot be accepted: Too many open files",
             r"UCX  ERROR accept\(\) failed [^\n]*the maximal number of files.*\n[^\n]*rank \d+ on node\d+, rail eth\d+: ")

    def draw(self, chance, shape):
        if chance.random() < 0.5:
            # With fewer the host MPI itself does not start.
            least = 32 if shape["mpi"] == "openmpi" else 80
            return {"moment": "before", "files": chance.randint(least, least + 48)}
        return {"rank": one_or_all(chance, shape), "spare": chance.choice((0, 0, 1, 2, 5)), **moment_in_loop(chance, 0.5)}

    def wrapper(self, details):
        return ["prlimit", f"--nofile={details['files']}"] if "files" in details else []

    def strike(self, attempt):
        if "files" in attempt.run.details:
            return True
        rank = attempt.run.details["rank"]
        for each in attempt.job.ranks() if rank == ALL_RANKS else [rank]:
            limit = attempt.job.open_files(each) + attempt.run.details["spare"]
            resource.prlimit(attempt.job.ranks()[each], resource.RLIMIT_NOFILE, (limit, limit))
        return True


class NoMemory(Fault):
    """Of the calls that Plait's own code makes: what the host MPI does without memory is its own affair."""
    name, weight, what = "memory", 6, "ENOMEM: some of Plait's allocations fail, of one rank or of all"
    may_leave_to_host = True
    may = {"right", "failed"}
    names = (r"plait: [^\n]*(memory|alloc)",
             # The rank's own error, with the host's text for its class.
             r"rank \d+: error [^\n]*(MPI_ERR_NO_MEM|Unable to allocate memory)",
             r"reported by process[^\n]*\n[^\n]*\n[^\n]*MPI_ERR_NO_MEM: out of memory")

    def draw(self, chance, shape):
        return {"moment": "before", "rank": one_or_all(chance, shape), "first": log_uniform(chance, 5000),
                "count": chance.choice((1, 1, 3, 100, FROM_THEN_ON))}

    def environment(self, details):
        return {"SOAK_REFUSE": "memory {first} {count} {rank}".format(**details)}


class Rail(Fault):
    nodes = (2, 3)
    mpis = ("openmpi",)  # MPICH over several nodes: docs/soak.md
    only_plait = 0.6
    lasts = 0.0
    latest_s = 1.2  # into the calls
    names = (r"rank \d+ on node\d+, rail {rail_name}\b", r"rail {rail_name}: this node has lost its link")

    def draw(self, chance, shape):
        # Open MPI itself talks over eth0, and over nothing else where there are two.
        rail = shape["rails"] - 1
        return {"node": chance.randrange(len(shape["counts"])), "rail": rail, "rail_name": f"eth{rail}",
                "way": chance.choice(("down", "unplugged", "silent")), "lasts": self.lasts,
                **moment_in_loop(chance, self.latest_s)}

    def strike(self, attempt):
        attempt.cluster.cut(attempt.run.details["node"], attempt.run.details["rail"], attempt.run.details["way"])
        return True

    def lift(self, attempt):
        attempt.cluster.mend(attempt.run.details["node"], attempt.run.details["rail"])


class RailFor1s(Rail):
    name, weight, what = "rail-1s", 5, "a rail is cut for a second"
    lasts = 1.0


class RailFor30s(Rail):
    """Busy, the job may fail by then; idle, it has not noticed. A call that is with the host MPI goes on as long after the
    cut as its kernel has waited before it tries again."""
    name, weight, what = "rail-30s", 1, "a rail is cut for 30 s, while the job calls or while it computes"
    lasts = 30.0
    within_s = 90

    def draw(self, chance, shape):
        details = super().draw(chance, shape)
        if chance.random() < 0.5:
            details.update(idle=True, moment="idle", after=0.5)
        return details

    def seconds(self, details):
        return self.idle_s(details) + 2 if details.get("idle") else super().seconds(details)

    def idle_s(self, details):
        return self.lasts + 2 if details.get("idle") else 0

    def options(self, details):
        return ["--idle", "0.5", str(self.idle_s(details))] if details.get("idle") else []

    def may_end(self, details):
        return {"right"} if details.get("idle") else {"right", "failed"}


class RailForGood(Rail):
    name, weight, what = "rail-cut", 2, "a rail is cut for good"
    rails = (2,)
    latest_s = 3.0
    may = {"right", "failed"}
    within_s = 30

    def seconds(self, details):
        return 20


class NoSingleCopy(Fault):
    name, weight, what = "copies", 6, "EPERM: single copies are refused, from the start or from some copy on"
    names = (r"Operation not permitted",)

    def draw(self, chance, shape):
        first = 1 if chance.random() < 0.5 else log_uniform(chance, 2000)
        count = chance.choice((1, FROM_THEN_ON)) if first > 1 else FROM_THEN_ON
        return {"moment": "before", "rank": one_or_all(chance, shape), "first": first, "count": count}

    def environment(self, details):
        return {"SOAK_REFUSE": "copies {first} {count} {rank}".format(**details)}

    def may_end(self, details):
        return {"right"} if details["first"] == 1 else {"right", "failed"}


class Stranger(Fault):
    """UCX's listeners are spared, whose protocol is not ours: they have a range of ports, which the stranger leaves out."""
    name, weight, what = "stranger", 6, "another user of a node probes all listeners of Plait's own"
    nodes = (2, 3)
    mpis = ("openmpi",)
    ports = (20000, 29999)

    def draw(self, chance, shape):
        nodes = len(shape["counts"])
        return {"from": chance.randrange(nodes), "at": chance.randrange(nodes), "seed": chance.randrange(1 << 30),
                "moment": "start", "after": 0.0}

    def seconds(self, details):
        return 2.0

    def environment(self, details):
        return {"UCX_TCP_PORT_RANGE": "{}-{}".format(*self.ports)}

    def strike(self, attempt):
        details, cluster = attempt.run.details, attempt.cluster
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stranger.py")
        table = f"/proc/{cluster.holders[details['at']]}/net/tcp"
        arguments = [table, str(details["seed"]), *map(str, self.ports)]
        attempt.helper = cluster.inside(details["from"], [sys.executable, script, *arguments], stdout=subprocess.PIPE,
                                        text=True)
        return True

    def lift(self, attempt):
        if attempt.helper:
            attempt.helper.terminate()
            attempt.notes.append(attempt.helper.communicate()[0])
            attempt.helper = None
