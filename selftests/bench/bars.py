# SPDX-License-Identifier: GPL-2.0
"""Bars of a bench group: figures with limits, printed and kept as JSON."""
import json
import os

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def percentile(values, share):
    """The least of them that so many are not above"""
    return sorted(values)[max(0, -int(-len(values) * share // 1) - 1)]


class Bars:
    """bar() each figure that has a limit, note() the others; then close()."""

    def __init__(self, group):
        self.group, self.bars, self.notes = group, [], {}

    def bar(self, name, figure, relation, limit):
        ok = figure <= limit if relation == "<=" else figure >= limit
        self.bars.append({"name": name, "figure": figure, "relation": relation,
                          "limit": limit, "ok": ok})
        print(f"BAR {name} {figure:g} {relation} {limit:g} {'ok' if ok else 'MISSED'}",
              flush=True)

    def note(self, name, figure):
        self.notes[name] = figure

    def close(self):
        """Writes build/bench/GROUP.json; the exit status: 1 if one is missed."""
        folder = os.path.join(TOP, "build/bench")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{self.group}.json"), "w", encoding="ascii") as file:
            json.dump({"bars": self.bars, "notes": self.notes}, file, indent=1)
            file.write("\n")
        return int(not self.bars or not all(bar["ok"] for bar in self.bars))
