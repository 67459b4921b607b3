# SPDX-License-Identifier: GPL-2.0
"""What both trainings of the demo share."""
import os

RATE = 0.1
WANTED = float(os.environ.get("ORED_DEMO_WANTED", "0.95"))      # held-out accuracy


def percentile(values, share):
    """The smallest value that at least @share of all don't exceed."""
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def report(name, good, text):
    print(f"  {name:23} {text:52} {'ok' if good else 'FAILED'}", flush=True)
    return good
