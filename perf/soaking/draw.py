"""What the runs are: from a seed alone, so that any of them can be made again."""
import dataclasses
import random

import faults

# Every fault as often as its weight, shuffled anew each time all have been dealt.
FAULTS = {fault.name: fault for fault in (
    faults.None_(), faults.Killed(), faults.LauncherKilled(), faults.Stopped(), faults.FullShm(), faults.FewFiles(),
    faults.NoMemory(), faults.RailFor1s(), faults.RailFor30s(), faults.RailForGood(), faults.NoSingleCopy(),
    faults.Stranger())}
FORMS = ("blocking", "blocking", "blocking,nonblocking", "persistent", "blocking,nonblocking,persistent")
BINDINGS = {"openmpi": ("preload", "preload", "preload", "component"), "mpich": ("preload",)}
# Ranks of each node, by the number of nodes.
PLACES = {1: ((2,), (3,), (4,), (4,), (5,), (8,)),
          2: ((2, 2), (1, 2), (3, 1), (1, 1)),
          3: ((2, 2, 2), (3, 1, 2), (1, 1, 1))}
ALWAYS_PLAIT = {"PLAIT_SETUP_CALLS": "1", "PLAIT_HOST": "0", "PLAIT_TRIAL": "0"}  # nothing goes to the host MPI
SETTINGS = {
    "PLAIT_SETUP_CALLS": ("0", "1"),
    "PLAIT_HOST": ("0",),
    "PLAIT_TRIAL": ("0", "exact"),
    "PLAIT_TRIAL_AFTER": ("2",),
    "PLAIT_CHANNELS": ("shm,ucx", "shm,tcp,ucx", "shm,mpi", "shm,tcp,mpi", "ucx,mpi"),
    "PLAIT_SINGLE_COPY": ("cma", "none"),
    "PLAIT_SHARED": ("malloc", "none"),
    "PLAIT_PROGRESS": ("thread",),
    "PLAIT_SEGMENT_BYTES": ("8M",),
    "PLAIT_CHUNK_BYTES": ("16K",),
    "PLAIT_CACHE": ("0",),
    "PLAIT_REPORT": ("1",),
}


@dataclasses.dataclass(frozen=True)
class Run:
    seed: str
    number: int
    fault: str
    details: dict   # of the fault
    counts: tuple   # ranks of each node
    rails: int
    mpi: str
    binding: str
    settings: dict  # PLAIT_*
    program: dict   # soak_job's options

    def line(self):
        """All of it, for a person."""
        settings = " ".join(f"{key}={value}" for key, value in self.settings.items())
        details = " ".join(f"{key}={value}" for key, value in self.details.items())
        program = " ".join(f"{key}={value}" for key, value in self.program.items())
        counts = ",".join(map(str, self.counts))
        return (f"{self.fault} ({details}) on {counts} ranks, {self.rails} rails, {self.mpi} {self.binding}, {program}, "
                f"{settings or 'default settings'}")


def dealt(seed, number, names):
    """The fault of run `number`. Where faults are named each comes once in so many runs."""
    deck = list(names) or [name for name, fault in FAULTS.items() for _ in range(fault.weight)]
    turn, place = divmod(number, len(deck))
    random.Random(f"{seed}:deck:{turn}").shuffle(deck)
    return deck[place]


def draw(seed, number, names=()):
    chance = random.Random(f"{seed}:{number}")
    fault = FAULTS[dealt(seed, number, names)]
    nodes = chance.choice([each for each in (1, 1, 2, 3) if each in fault.nodes])
    mpis = [each for each in ("openmpi", "openmpi", "mpich") if each in fault.mpis]
    mpi = chance.choice([each for each in mpis if nodes == 1 or each == "openmpi"])
    shape = {"counts": chance.choice(PLACES[nodes]), "mpi": mpi, "rails": chance.choice(fault.rails)}
    details = fault.draw(chance, shape)
    # MPICH's own persistent collectives bring wrong data where several are under way (docs/soak.md).
    forms = [each for each in FORMS if mpi != "mpich" or not fault.may_leave_to_host or "persistent" not in each]
    program = {"seconds": round(fault.seconds(details), 2), "seed": chance.randrange(1 << 30),
               "forms": chance.choice(forms),
               "memory": chance.choice(("private", "private", "mpi")),
               "errors": chance.choice(("fatal", "return", "abort"))}
    binding, settings = chance.choice(BINDINGS[mpi]), draw_settings(chance, fault.only_plait)
    if program["errors"] == "return":
        settings = {**settings, **ALWAYS_PLAIT}  # who leaves would let others wait in a call of the host's for ever
    return Run(seed=str(seed), number=number, fault=fault.name, details=details, **shape, binding=binding, settings=settings,
               program=program)


def draw_settings(chance, only_plait):
    kind = chance.random()
    if kind < only_plait:
        return ALWAYS_PLAIT
    if kind < only_plait + (1 - only_plait) * 0.6:
        return {}
    return {key: chance.choice(SETTINGS[key]) for key in chance.sample(list(SETTINGS), chance.randint(1, 4))}
