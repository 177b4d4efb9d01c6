"""One job that is hurt: started, watched, its processes found by what they carry in their environment."""
import os
import re
import signal
import subprocess
import time

import lab

LOOK_S = 0.02
SETUP_LIMIT_S = 300  # scripts/cluster ends what this program could not
RANK = re.compile(rb"\0(?:OMPI_COMM_WORLD_RANK|PMI_RANK)=(\d+)\0")
BEGUN, IDLE, DONE = "soak_job: begun", "soak_job: idle", "soak_job: done"


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def environment(process):
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return b"\0" + file.read()
    except OSError:
        return b""


def carriers(mark):
    """Processes with this variable; a dead one's environment is empty."""
    sought = b"\0" + mark.encode() + b"\0"
    return {process: text for process in processes() if sought in (text := environment(process))}


def state(process):
    """One letter, as in /proc/PID/stat; none: it is gone."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def running(process):
    return state(process) not in ("", "Z", "X")


class Job:
    def __init__(self, command, mark, ranks, folder):
        """`mark`: a variable K=V that the command gives all ranks."""
        self.mark, self.expected = mark, ranks
        self.path = os.path.join(folder, "output")
        with open(self.path, "wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                            start_new_session=True)
        self.started = time.monotonic()
        self.ended = None  # when `scripts/cluster run` was over
        self.launcher, self.launcher_ended, self.outlived_s = None, None, 0.0
        self._ranks = {}

    # ---- Looking ----

    def look(self):
        """Whether it is still there. Notes what is only to be seen while it goes on."""
        now = time.monotonic()
        if self.launcher and not self.launcher_ended and not running(self.launcher):
            self.launcher_ended = now
        if self.launcher_ended and any(running(process) for process in self._ranks.values()):
            self.outlived_s = now - self.launcher_ended
        if self.ended is None and self.process.poll() is not None:
            self.ended = now
        return self.ended is None

    def wait_until(self, condition, seconds):
        """Looks until it holds, or the job or the time is over. Whether it held."""
        deadline = time.monotonic() + seconds
        while self.look() and time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(LOOK_S)
        return False

    def wait(self, seconds):
        """Whether it is still there afterwards."""
        self.wait_until(lambda: False, seconds)
        return self.look()

    def output(self):
        with open(self.path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def has_begun(self):
        return BEGUN in self.output() and len(self.ranks()) == self.expected

    def is_idle(self):
        return self.has_begun() and IDLE in self.output()

    # ---- Its processes ----

    def ranks(self):
        """Process by rank, of those that have appeared."""
        if len(self._ranks) < self.expected:
            for process, text in carriers(self.mark).items():
                if found := RANK.search(text + b"\0"):
                    self._ranks.setdefault(int(found.group(1)), process)
            self._find_launcher()
        return self._ranks

    def _find_launcher(self):
        # It is what became of the first child of `scripts/cluster run`.
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
                children = [int(child) for child in file.read().split()]
        except OSError:
            return
        for child in children:
            try:
                with open(f"/proc/{child}/comm", encoding="ascii") as file:
                    if file.read().startswith("mpi"):
                        self.launcher = child
            except OSError:
                pass

    def signal(self, rank, number):
        """Whether there was somebody to take it."""
        process = self.ranks().get(rank)
        try:
            if process is None or not running(process):
                return False
            os.kill(process, number)
            return True
        except ProcessLookupError:
            return False

    def memory_bytes(self, rank):
        with open(f"/proc/{self.ranks()[rank]}/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    def open_files(self, rank):
        return len(os.listdir(f"/proc/{self.ranks()[rank]}/fd"))

    def stacks(self):
        """What all its ranks are at, for who has to find out why it hangs."""
        texts = []
        for rank, process in sorted(self.ranks().items()):
            command = ["gdb", "-p", str(process), "-batch", "-nx", "-ex", "thread apply all backtrace 40"]
            try:
                text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
            except (OSError, subprocess.TimeoutExpired) as error:
                text = f"{error}\n"
            texts.append(f"---- rank {rank}, process {process}, state {state(process) or 'gone'}\n{text}")
        return "\n".join(texts)

    # ---- Its end ----

    def end(self):
        """In good order if it can."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
                try:
                    self.process.wait(lab.FAREWELL_S)
                except subprocess.TimeoutExpired:
                    pass
        self.look()

    def left_behind(self, seconds):
        """Processes with its mark that do not vanish in that time; they are killed then."""
        deadline = time.monotonic() + seconds
        while (left := carriers(self.mark)) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return sorted(left)
