"""Where jobs are hurt: emulated clusters (scripts/cluster), whose nodes have a network, a /dev/shm and a host name of
their own, so that a fault meets nobody else. A job on one node runs on the first node of one."""
import os
import re
import subprocess
import threading

import lab

NODES = 3
STATE = "/run/plait-cluster"
HOST_FILES = ("mpich_shar_tmp", "ucx_shm_posix_")  # MPICH's in /dev/shm, which it leaves where a rank is killed early
SHM_BYTES = 1 << 29  # of a node's /dev/shm: a fault must not take the machine's memory

making = threading.Lock()   # held while a cluster is made
closed = threading.Event()  # the program ends: none is made any more


def close():
    with making:
        closed.set()


class Cluster:
    def __init__(self, name, rails):
        self.name, self.rails = name, rails
        self.holders = []

    def up(self):
        self.down()
        with making:
            if closed.is_set():
                raise lab.Refusal("the program ends")
            # It does not outlive this program, after whose end what it has made by then is removed.
            subprocess.run(["setpriv", "--pdeathsig", "KILL", lab.CLUSTER, "up", "--name", self.name, "--nodes", str(NODES),
                            "--rails", str(self.rails)], check=True)
        with open(f"{STATE}/{self.name}/holders", encoding="ascii") as file:
            self.holders = [int(line) for line in file]
        for node in range(NODES):
            self.remount(node, f"size={SHM_BYTES}")

    def down(self):
        self.holders = []
        subprocess.run([lab.CLUSTER, "down", "--name", self.name], stderr=subprocess.DEVNULL, check=False)

    def alive(self):
        return len(self.holders) == NODES and all(os.path.exists(f"/proc/{holder}") for holder in self.holders)

    def inside(self, node, command, **options):
        """A process that runs in the node."""
        enter = [lab.CLUSTER, "exec", "--name", self.name, "--node", str(node), "--"]
        return subprocess.Popen(enter + command, **options)

    # ---- Shared memory ----

    def shm(self, node):
        return f"/proc/{self.holders[node]}/root/dev/shm"

    def shm_bytes_used(self, node):
        """Also by files that have no name any more."""
        state = os.statvfs(self.shm(node))
        return (state.f_blocks - state.f_bfree) * state.f_frsize

    def remount(self, node, options):
        """Of a node's /dev/shm. False where the kernel refuses."""
        enter = ["nsenter", "--target", str(self.holders[node]), "--mount"]
        mount = ["mount", "-o", "remount," + options, "/dev/shm"]
        return subprocess.run(enter + mount, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def fill_shm(self, node):
        """Leaves it no page more than is in use."""
        return self.remount(node, f"size={max(self.shm_bytes_used(node), 4096)}")

    def restore_shm(self, node):
        self.remount(node, f"rw,size={SHM_BYTES},nr_inodes=0")

    def system_v_segments(self, node):
        command = ["nsenter", "--target", str(self.holders[node]), "--ipc", "cat", "/proc/sysvipc/shm"]
        return len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()) - 1

    # ---- Rails ----

    def cut(self, node, rail, way):
        """down: the node's own interface; unplugged: at the switch, so that the node's link is lost as well; silent:
        the switch passes nothing on, and the link stays."""
        if way == "down":
            self._link("node", node, f"eth{rail}", "down")
        elif way == "unplugged":
            self._link("switch", None, f"n{node}r{rail}", "down")
        else:
            self._link("switch", None, f"n{node}r{rail}", "nomaster")

    def mend(self, node, rail):
        self._link("switch", None, f"n{node}r{rail}", "master", f"rail{rail}", "up")
        self._link("node", node, f"eth{rail}", "up")

    def _link(self, where, node, *arguments):
        namespace = f"plait-{self.name}-{where}{'' if node is None else node}"
        subprocess.run(["ip", "-n", namespace, "link", "set", *arguments], check=True)

    # ---- Between runs ----

    def traces(self):
        """What a job has left on the nodes."""
        found = []
        for node in range(NODES):
            names = os.listdir(self.shm(node))
            found += [f"node{node}:/dev/shm/{name}" for name in names if not name.startswith(HOST_FILES)]
            if not names and self.shm_bytes_used(node):
                found.append(f"{self.shm_bytes_used(node)} bytes without a name in the /dev/shm of node{node}")
            if self.system_v_segments(node):
                found.append(f"{self.system_v_segments(node)} System V segments on node{node}")
            local = f"/proc/{self.holders[node]}/root{STATE}/{self.name}/local"
            found += [f"node{node}:{local}/{name}" for name in os.listdir(local)]
        return found

    def clear_shm(self):
        for node in range(NODES):
            for name in os.listdir(self.shm(node)):
                os.remove(os.path.join(self.shm(node), name))


def leftovers(names):
    """Of clusters that are to be gone."""
    pattern = re.compile("|".join(f"(plait-)?{re.escape(name)}(-switch|-node[0-9]+)?" for name in names))
    return [os.path.join(folder, entry) for folder in (STATE, "/run/netns") if os.path.isdir(folder)
            for entry in os.listdir(folder) if pattern.fullmatch(entry)]
