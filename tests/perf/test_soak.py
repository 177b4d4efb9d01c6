#!/usr/bin/env python3
"""perf/soak without a job: what a seed draws, what is said of what was seen, what a stranger takes for a listener."""
import io
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "perf"), os.path.join(ROOT, "perf/soaking")]
sys.dont_write_bytecode = True

import draw  # noqa: E402
import report  # noqa: E402
import stranger  # noqa: E402
from verdict import Seen, judge  # noqa: E402

DECK = sum(fault.weight for fault in draw.FAULTS.values())
RUNS = [draw.draw("test", number) for number in range(20 * DECK)]
DONE = "soak_job: begun\nsoak_job: done: 12 rounds, plan host\n"


def run_of(fault, **details):
    """The first run of that fault with such details."""
    return next(run for run in RUNS if run.fault == fault and details.items() <= run.details.items())


class Draws(unittest.TestCase):
    def test_a_seed_gives_the_same_runs(self):
        self.assertEqual(RUNS, [draw.draw("test", number) for number in range(len(RUNS))])
        self.assertNotEqual(RUNS, [draw.draw("other", number) for number in range(len(RUNS))])

    def test_each_deck_has_every_fault_by_its_weight(self):
        for begin in range(0, len(RUNS), DECK):
            dealt = [run.fault for run in RUNS[begin:begin + DECK]]
            self.assertEqual({name: dealt.count(name) for name in draw.FAULTS},
                             {name: fault.weight for name, fault in draw.FAULTS.items()})

    def test_named_faults_come_once_in_so_many_runs(self):
        names = ("kill", "none", "shm")
        for begin in (0, 3, 6):
            dealt = [draw.dealt("test", number, names) for number in range(begin, begin + 3)]
            self.assertEqual(sorted(dealt), sorted(names))

    def test_faults_meet_what_the_job_has(self):
        for run in RUNS:
            fault, nodes = draw.FAULTS[run.fault], len(run.counts)
            self.assertIn(nodes, fault.nodes, run)
            self.assertIn(run.mpi, fault.mpis, run)
            self.assertIn(run.rails, fault.rails, run)
            self.assertTrue(run.mpi == "openmpi" or (nodes == 1 and run.binding == "preload"), run)
            ranks = [run.details.get("rank", 0), *run.details.get("ranks", ())]
            self.assertTrue(all(-1 <= rank < sum(run.counts) for rank in ranks), run)
            self.assertTrue(all(run.details.get(key, 0) < nodes for key in ("node", "from", "at")), run)
            self.assertLess(run.details.get("rail", 0), run.rails, run)

    def test_there_is_all_of_everything(self):
        for values in ({run.mpi for run in RUNS}, {run.binding for run in RUNS}, {len(run.counts) for run in RUNS},
                       {bool(run.settings) for run in RUNS}, {run.program["memory"] for run in RUNS}):
            self.assertGreater(len(values), 1)

    def test_settings_are_variables_of_plait(self):
        with open(os.path.join(ROOT, "core/config.cpp"), encoding="utf-8") as file:
            known = set(re.findall(r'\{\{"(PLAIT_[A-Z_]+)"', file.read()))
        self.assertTrue(known)
        self.assertEqual(set(draw.SETTINGS) - known, set())


class Verdicts(unittest.TestCase):
    def violations(self, run, **seen):
        return judge(run, Seen(**seen)).violations

    def test_right_is_right(self):
        for fault in ("none", "stop", "shm", "files", "rail-1s", "stranger"):
            self.assertEqual(self.violations(run_of(fault), output=DONE), [])

    def test_a_failure_that_may_not_be(self):
        for fault in ("none", "stop", "shm", "rail-1s", "stranger"):
            said = "plait: tcp: rank 1 on node1, rail eth0: gone\n"
            violations = self.violations(run_of(fault), status=1, output=said)
            self.assertEqual(len(violations), 1, fault)
            self.assertIn("rail eth0: gone", violations[0])

    def test_an_end_without_a_word_is_no_right_end(self):
        self.assertEqual(len(self.violations(run_of("none"), output="soak_job: begun\n")), 1)
        self.assertEqual(len(self.violations(run_of("none"), status=139, output=DONE)), 1)

    def test_a_killed_rank_must_end_the_job_and_be_named(self):
        run = run_of("kill", moment="loop")
        rank = run.details["rank"]
        named = f"mpirun noticed that process rank {rank} with PID 7 on node node1 exited on signal 9 (Killed).\n"
        self.assertEqual(self.violations(run, status=137, output=named, failed_after_s=2), [])
        self.assertEqual(judge(run, Seen(status=137, output="x\n" + named)).named, named.strip())
        self.assertEqual(len(self.violations(run, output=DONE)), 1)
        another = named.replace(f"rank {rank} ", f"rank {rank + 1} ")
        self.assertEqual(len(self.violations(run, status=137, output=another)), 1)
        self.assertEqual(len(self.violations(run, status=137, output=named, failed_after_s=11)), 1)
        # It was not struck: the job had ended.
        self.assertEqual(self.violations(run, output=DONE, struck=False), [])
        self.assertEqual(len(self.violations(run, status=137, output=named, struck=False)), 1)

    def test_a_cut_rail_is_named(self):
        run = run_of("rail-cut")
        named = "soak_job: rank 0: error after 11 s in bcast: plait: ucx: rank 3 on node1, rail eth1: unreachable\n"
        self.assertEqual(self.violations(run, status=3, output=named, failed_after_s=12), [])
        another = named.replace("eth1", "eth0")
        self.assertEqual(len(self.violations(run, status=3, output=another, failed_after_s=12)), 1)
        self.assertEqual(len(self.violations(run, status=3, output=named, failed_after_s=31)), 1)

    def test_an_idle_job_does_not_notice(self):
        failed = {"status": 3, "output": "plait: tcp: rank 0 on node0, rail eth0: its host cannot be reached\n"}
        self.assertEqual(len(self.violations(run_of("rail-30s", idle=True), **failed)), 1)

    def test_memory_is_named_by_plait_and_not_by_who_refuses_it(self):
        run = run_of("memory")
        self.assertEqual(self.violations(run, output=DONE), [])
        self.assertEqual(self.violations(run, status=3, output="plait: there is no memory for a schedule\n"), [])
        said = "refusals: memory refused, call 1\nbad_alloc\n"
        self.assertEqual(len(self.violations(run, status=134, output=said)), 1)

    def test_wrong_bits_and_hangs_always_count(self):
        for fault in draw.FAULTS:
            self.assertEqual(judge(run_of(fault), Seen(hung=True)).outcome, "hung")
            self.assertTrue(self.violations(run_of(fault), hung=True), fault)
            said = "soak_job: rank 1: wrong bits in round 3: scan\n"
            self.assertTrue(self.violations(run_of(fault), status=1, output=said), fault)

    def test_what_is_left_behind_counts(self):
        self.assertEqual(self.violations(run_of("none"), output=DONE, left=("process 7", "node0:/dev/shm/x")),
                         ["left behind: process 7", "left behind: node0:/dev/shm/x"])
        self.assertEqual(len(self.violations(run_of("none"), output=DONE, outlived_s=4)), 1)


class Reports(unittest.TestCase):
    def test_a_row_a_fault(self):
        run = run_of("kill", moment="loop")
        said = f"process rank {run.details['rank']} with PID 7 on node n exited on signal 9"
        seen = Seen(status=137, output=said, failed_after_s=2.34)
        bad = Seen(output=DONE)
        records = [report.record(run, each, judge(run, each)) for each in (seen, seen, bad)]
        lines = report.table(records).splitlines()
        self.assertRegex(lines[2], r"^\| `kill`: .* \| 3 \| 0 \| 2 \| 1 \| 2.3 s \|$")
        self.assertRegex(lines[3], r"^\| \*\*all\*\* \| 3 \| 0 \| 2 \| 1 \|  \|$")
        self.assertEqual(len(lines), 4)


class Strangers(unittest.TestCase):
    TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100000A:C001 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 00000000:0400 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1
   2: 0100007F:C002 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 3 1
   3: 0100000A:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4 1
   4: 0100000A:C003 0200000A:C001 01 00000000:00000000 00:00000000 00000000     0        0 5 1
"""

    def test_listeners_of_a_network_but_for_spared_ports(self):
        self.assertEqual(stranger.listeners(io.StringIO(self.TABLE), range(20000, 30000)), [("10.0.0.1", 0xC001)])


if __name__ == "__main__":
    unittest.main()
