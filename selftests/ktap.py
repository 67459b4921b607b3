# SPDX-License-Identifier: GPL-2.0
"""What a test program's TAP says, and how results are counted."""
import re

PLAN = re.compile(r"1\.\.(\d+)(?:\s+#\s*skip\b\s*(.*))?", re.IGNORECASE)
CASE = re.compile(r"(ok|not ok)\b\s*(\d+)?\s*-?\s*(.*)")
SKIP = re.compile(r"#\s*skip\b", re.IGNORECASE)
TOTALS = re.compile(r"# Totals: pass:(\d+) fail:(\d+) skip:(\d+)")
KSFT_SKIP = 4


class Tally:
    """passed, failed, skipped."""

    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def totals(self):
        return (f"# Totals: pass:{self.passed} fail:{self.failed} "
                f"skip:{self.skipped}")

    def closing(self):
        return (f"{self.passed} passed, {self.failed} failed, "
                f"{self.skipped} skipped")


def count(lines):
    """The Tally of TAP lines at the top level, and what is wrong with them
    as a whole or None."""
    tally, plan, seen, all_skipped = Tally(), None, 0, None
    for line in lines:
        found = PLAN.fullmatch(line.rstrip())
        if found:
            if plan is not None:
                return tally, "it has two plans"
            plan, all_skipped = int(found[1]), found[2]
            continue
        found = CASE.match(line)
        if not found:
            continue
        seen += 1
        if found[2] and int(found[2]) != seen:
            return tally, f"result {seen} is numbered {found[2]}"
        if found[1] == "not ok":
            tally.failed += 1
        elif SKIP.search(found[3]):
            tally.skipped += 1
        else:
            tally.passed += 1
    if plan is None:
        return tally, "it printed no plan"
    if plan != seen:
        return tally, f"it planned {plan} tests and ran {seen}"
    if plan == 0:
        tally.skipped += 1
        if all_skipped is None:
            return tally, "it has no tests"
    return tally, None


def judge(lines, status, trouble=None):
    """The Tally of a test program and what is wrong with it or None.

    status is its exit status, trouble what its surroundings hold against it.
    What is wrong with a program as a whole counts as one more failure.
    """
    if status == KSFT_SKIP and not any(CASE.match(line) for line in lines):
        return Tally(skipped=1), trouble
    tally, wrong = count(lines)
    if status not in (0, KSFT_SKIP) and not tally.failed and not wrong:
        wrong = f"it ended with status {status}, all its tests passed"
    if status == 0 and tally.failed:
        wrong = "it ended with status 0, though tests failed"
    wrong = trouble or wrong
    if wrong:
        tally.failed += 1
    return tally, wrong
