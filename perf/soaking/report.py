"""Results: a line of JSON a run, and the table of all of them."""
import dataclasses
import json

import draw
import lab


def record(run, seen, verdict):
    return {**dataclasses.asdict(run), "outcome": verdict.outcome, "struck": seen.struck, "seconds": round(seen.seconds, 2),
            "failed_after_s": round(seen.failed_after_s, 2), "named": verdict.named, "notes": seen.notes, "violations": verdict.violations}


def read(paths):
    records = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            records += [json.loads(line) for line in file]
    return records


def table(records):
    """By fault; of those that failed, how long it took at most."""
    rows = []
    for name, fault in draw.FAULTS.items():
        of_fault = [each for each in records if each["fault"] == name]
        if not of_fault:
            continue
        good = [each for each in of_fault if not each["violations"]]
        failed = [each for each in good if each["outcome"] == "failed"]
        longest = f"{max(each['failed_after_s'] for each in failed):.1f} s" if failed else "-"
        rows.append([f"`{name}`: {fault.what}", len(of_fault), len(good) - len(failed), len(failed),
                     len(of_fault) - len(good), longest])
    rows.append(["**all**", *(sum(row[column] for row in rows) for column in range(1, 5)), ""])
    return lab.table(["fault", "runs", "ended right", "failed, and named what", "violations", "failed after at most"], rows)
