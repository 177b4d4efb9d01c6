"""What the measuring scripts share: emulated clusters that vanish with their script, jobs, and tables in pages."""
import atexit
import json
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLUSTER = os.path.join(ROOT, "scripts/cluster")
PAGE = os.path.join(ROOT, "docs/performance.md")
SETTINGS = {
    # As users run it: nothing is set, and nothing learned before.
    "default": {},
    # Plans are measured, not what a trial makes of them, and no run depends on the ones before it.
    "plans": {"PLAIT_TRIAL": "0", "PLAIT_CACHE": "0"},
}
for _name, _value in SETTINGS["plans"].items():
    os.environ.setdefault(_name, _value)
FAREWELL_S = 15  # for a job to end in good order
BEFORE_S = 3600  # for what --before waits for
PATIENCE_OF_FUSED_S = 600

before = []  # what every job is started by: --before
_ends_at = None  # of all measuring: --within


class Refusal(Exception):
    """A wrong command line, or a machine that cannot do it."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_main(who, main):
    """Ends with one line on a refusal, and in good order on SIGINT, SIGTERM and SIGHUP."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda taken, _: sys.exit(128 + taken))
    try:
        main()
    except Refusal as refusal:
        say(f"{who}: {refusal}")
        sys.exit(2)


def add_job_options(parser):
    parser.add_argument("--before", default="", help="a command that every job is started by, such as a lock")
    parser.add_argument("--within", type=float, help="seconds, after which what is not measured yet is left out")


def take_job_options(options):
    global _ends_at
    before[:] = shlex.split(options.before)
    if options.within is not None:
        _ends_at = time.monotonic() + options.within


def time_left():
    """Seconds, of those that --within gives; never less than nothing."""
    return float("inf") if _ends_at is None else max(0.0, _ends_at - time.monotonic())


def add_results_option(parser):
    parser.add_argument("--results", help="also keeps all measured rows there, as JSON")


def add_settings_option(parser, default="default"):
    parser.add_argument("--settings", default=default, help="default: as users run it, with an empty cache; plans: the best "
                        f"predicted plans, no trials (PLAIT_TRIAL=0 PLAIT_CACHE=0); comma-separated (default {default})")


def chosen_settings(text):
    names = text.split(",")
    for name in names:
        if name not in SETTINGS:
            raise Refusal(f"--settings: {name!r}: expected some of {', '.join(SETTINGS)}")
    return names


def take_settings(name):
    """For all jobs from now on."""
    for variables in SETTINGS.values():
        for variable in variables:
            os.environ.pop(variable, None)
    os.environ.update(SETTINGS[name])
    if name == "default":
        os.environ["XDG_CACHE_HOME"] = _new_cache()


def _new_cache():
    folder = tempfile.mkdtemp(prefix="plait-perf-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def settings_line(**others):
    """What a table was made with: the PLAIT_* variables of its jobs. `others` are set by the script, job by job."""
    variables = {name: value for name, value in os.environ.items() if name.startswith("PLAIT_")} | others
    text = " ".join(f"{name}={value}" for name, value in sorted(variables.items()))
    return f"Settings: `{text}`." if text else "Settings: the defaults, with an empty cache."


def built(program, preset="release", folder=None):
    path = os.path.join(folder or os.path.join(ROOT, "build", preset), program)
    if not os.access(path, os.X_OK):
        raise Refusal(f"there is no {path}: cmake --preset {preset} && cmake --build --preset {preset} --target {program}")
    return path


# ---- Where jobs run ----------------------------------------------------------------------------------------------


def cores_and_threads():
    """Those that this process may use: cores, as far as the system knows which threads share one, and their processing units."""
    cores, threads = set(), os.sched_getaffinity(0)
    for thread in threads:
        try:
            with open(f"/sys/devices/system/cpu/cpu{thread}/topology/thread_siblings_list", encoding="ascii") as file:
                cores.add(file.read().strip())
        except OSError:
            return 0, len(threads)
    return len(cores), len(threads)


class Node:
    """This machine. Bound ranks have a core each, or a thread of one where there are more ranks than cores, or cores are unknown."""

    def __init__(self, ranks, bind=False):
        self.ranks, self.bind = ranks, bind
        self.rate = None

    def has_room(self):
        return not self.bind or self.ranks <= cores_and_threads()[1]

    def binding(self):
        if not self.bind:
            return "none"
        return "core" if self.ranks <= cores_and_threads()[0] else "hwthread"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def command(self, program, mpi="openmpi", mca=()):
        binding = self.binding()
        if mpi == "mpich":
            return ["mpiexec.mpich", "-bind-to", binding, "-n", str(self.ranks), *program]
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", binding, "-n", str(self.ranks)]
        if binding == "hwthread":
            command.append("--use-hwthread-cpus")
        if not self.bind:
            command += ["--mca", "mpi_yield_when_idle", "1"]
        for key, value in mca:
            command += ["--mca", key, value]
        return command + program


class Cluster:
    """An emulated cluster (docs/cluster.md), there from `with` on until its end, or the end of this program. Without a
    rate its links are as fast as the machine; "200mbit,50mbit" gives each of two rails a rate of its own; with a delay,
    such as "2ms", messages take so much longer."""

    def __init__(self, nodes, per_node, rate=None, rails=1, delay=None):
        self.nodes, self.per_node, self.link, self.rails, self.delay = nodes, per_node, rate, rails, delay
        self.ranks = nodes * per_node
        self.rate = None  # of all rails of a node together
        if rate:
            amounts, units = zip(*(re.fullmatch(r"(\d+)(\w+)", one).groups() for one in rate.split(",")))
            if len(set(units)) > 1:
                raise Refusal(f"{rate!r}: expected rates in one unit")
            self.rate = f"{sum(map(int, amounts)) * rails // len(amounts)}{units[0]}"
        self.name = f"lab{os.getpid()}"

    def __enter__(self):
        atexit.register(self._down)
        subprocess.run([CLUSTER, "up", "--name", self.name, "--nodes", str(self.nodes), "--rate",
                        self.link or "none", "--rails", str(self.rails), *(["--delay", self.delay] if self.delay else [])], check=True)
        return self

    def __exit__(self, *_):
        self._down()
        atexit.unregister(self._down)

    def _down(self):
        subprocess.run([CLUSTER, "down", "--name", self.name], stderr=subprocess.DEVNULL, check=False)

    def command(self, program, mpi="openmpi", mca=()):
        command = [CLUSTER, "run", "--name", self.name, "--per-node", str(self.per_node), "--mpi", mpi]
        for key, value in mca:
            command += ["--mca", key, value]
        return command + ["--", *program]


# ---- Jobs --------------------------------------------------------------------------------------------------------


class Job:
    """A running command, until the end of its `with`; its lines of JSON as they come."""

    status = None

    def __init__(self, command):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(before + command, stdout=subprocess.PIPE, stderr=self.errors,
                                        stdin=subprocess.DEVNULL, start_new_session=True)
        atexit.register(self._stop)

    def objects(self, patience_s):
        """Ends early when nothing comes for so long, or no time is left; what is no JSON is passed over."""
        wait_s = patience_s + (BEFORE_S if before else 0)
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            rest = b""
            while selector.select(min(wait_s, time_left())):
                wait_s = patience_s
                piece = os.read(self.process.stdout.fileno(), 65536)
                if not piece:
                    return
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.startswith(b"{"):
                        yield json.loads(line)

    def complaint(self):
        """What the program itself said last on standard error; nothing where it crashed without a word."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").splitlines()
        own = [line for line in lines if re.match(r"(plait|mix_replay|pipeline_run|cluster)( [a-z]+)?: ", line)]
        return own[-1] if own else ""

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        """Gives the job a while to end, unless something went wrong here or no time is left. `status` is its exit status then."""
        try:
            self.process.wait(FAREWELL_S if error is None and time_left() > 0 else 0)
        except subprocess.TimeoutExpired:
            self._stop()
        atexit.unregister(self._stop)
        self.process.stdout.close()
        self.status = self.process.returncode

    def _stop(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is not None:
                return
            os.killpg(self.process.pid, number)
            deadline = time.monotonic() + FAREWELL_S
            while time.monotonic() < deadline:
                if self.process.poll() is not None:
                    return
                time.sleep(0.05)


def first_object(place, program, patience_s):
    """The first line of JSON of a job of this program."""
    with Job([*before, *place.command(program)]) as job:
        for found in job.objects(patience_s):
            return found
        raise Refusal(f"{' '.join(program)}: {job.complaint()}")


def compare_fused(place, commands, row, head, left, collective, results=None):
    """Prints the table of what a fused operator's program finds, a row a command, as far as the time goes; and on average how much
    less time the operator takes than its alternatives. `row` makes the cells of an object, and the shares of time saved. With
    `results`, the objects themselves are kept in that file."""
    cells, less, found = [], [], []
    with place:
        for command in commands:
            try:
                found.append(first_object(place, command, PATIENCE_OF_FUSED_S))
            except Refusal:
                if time_left() > 0:
                    raise
                break
            made, saved = row(found[-1])
            say(" | ".join(map(str, made)))
            cells.append(made)
            less.append(saved)
    print(settings_line() + "\n")
    print(table(head, cells, left=left))
    if less:
        means = [100 * sum(column) / len(less) for column in zip(*less)]
        print(f"\nOn average {means[0]:.1f} % less than with the host's {collective}, {means[1]:.1f} % less than with Plait's, "
              f"{means[2]:.1f} % less than the best chunks.")
    if results:
        with open(results, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


def best_chunks(seconds):
    """Of a program's ways (perf/fused_timing.h) the best one in chunks: its name, such as "4 chunks, host", and its time."""
    return min(((name, value) for name, value in seconds.items() if " chunks, " in name), key=lambda one: one[1])


# ---- Options -----------------------------------------------------------------------------------------------------


def numbers(text):
    return [int(part) for part in text.split(",")]


# ---- Tables ------------------------------------------------------------------------------------------------------


def table(head, rows, left=1):
    rules = ["---" if column < left else "---:" for column in range(len(head))]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, rules, *rows]) + "\n"


def milliseconds(seconds, digits=2):
    return f"{1e3 * seconds:.{digits}f}"


def percent(share, digits=0):
    return f"{100 * share:.{digits}f} %"


def microseconds(value):
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def bytes_text(count):
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size and count % (size // 4) == 0:
            return f"{count / size:g} {unit}"
    return f"{count} B"


def write_into_page(name, text, path=PAGE):
    """Replaces what stands between the page's markers of that name."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    if begin not in page or end not in page:
        raise Refusal(f"{path} has no {begin} ... {end}")
    block = re.escape(begin) + ".*?" + re.escape(end)
    page = re.sub(block, lambda _: f"{begin}\n\n{text.strip()}\n\n{end}", page, flags=re.S)
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)
