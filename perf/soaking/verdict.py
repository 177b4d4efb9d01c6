"""What became of a job, and whether that may be. Knows nothing of processes: a test makes up what was seen."""
import dataclasses
import re

import draw
from job import DONE

MOST_OUTLIVED_S = 3.0  # a rank's end after its launcher's
OWN_LINES = re.compile(r"^.*(?:plait: |soak_job: rank |exited on signal|EXIT CODE|bad_alloc|terminate called).*$", re.M)


@dataclasses.dataclass
class Seen:
    status: int = 0
    output: str = ""
    struck: bool = True       # the fault met a job
    hung: bool = False        # had to be ended
    seconds: float = 0.0      # in all
    failed_after_s: float = 0.0  # from the fault to the job's end
    outlived_s: float = 0.0   # by which a rank outlived its launcher
    left: tuple = ()          # processes, files, segments
    notes: str = ""           # of whoever did it


@dataclasses.dataclass
class Verdict:
    outcome: str              # right, failed, wrong, hung
    violations: list
    named: str = ""           # the line that says what failed


def outcome_of(seen):
    if "wrong bits" in seen.output:
        return "wrong"
    if seen.hung:
        return "hung"
    return "right" if seen.status == 0 and DONE in seen.output else "failed"


def naming_line(output, patterns):
    for pattern in patterns:
        if found := pattern.search(output):
            begin = output.rfind("\n", 0, found.start()) + 1
            end = output.find("\n", found.start())
            return output[begin:end if end >= 0 else None].strip()
    return ""


def judge(run, seen):
    fault = draw.FAULTS[run.fault]
    outcome = outcome_of(seen)
    may = fault.may_end(run.details) if seen.struck else {"right"}
    patterns = fault.patterns(run.details)
    verdict = Verdict(outcome, [])
    if outcome not in may:
        expected = " or ".join(sorted(may))
        verdict.violations.append(f"{outcome} (status {seen.status}), not {expected}: {last_words(seen.output)}")
    elif outcome == "failed":
        verdict.named = naming_line(seen.output, patterns)
        if patterns and not verdict.named:
            verdict.violations.append(f"no line names what failed: {last_words(seen.output)}")
        if seen.failed_after_s > fault.within_s:
            verdict.violations.append(f"failed after {seen.failed_after_s:.1f} s, not within {fault.within_s} s")
    if seen.outlived_s > MOST_OUTLIVED_S:
        verdict.violations.append(f"a rank outlived its launcher by {seen.outlived_s:.1f} s")
    verdict.violations += [f"left behind: {each}" for each in seen.left]
    return verdict


def last_words(output):
    lines = OWN_LINES.findall(output) or output.strip().splitlines()[-1:]
    return lines[-1].strip()[:300] if lines else "no word"
