# SPDX-License-Identifier: GPL-2.0-only
"""The table of `make bench`: our figure, the peer's from the same run, their ratio, the bound."""

import json
import statistics

WIDTHS = (46, 26, 14, 26, 18, 9)


def short(x):
    if x is None:
        return "-"
    return f"{x:.0f}" if abs(x) >= 1000 else f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}"


def spread(samples):
    """median (min-max), or the one figure there is."""
    if not samples:
        return "-"
    middle = short(statistics.median(samples))
    return f"{middle} ({short(min(samples))}-{short(max(samples))})" if len(samples) > 1 else middle


class Row:
    """ours and theirs: samples in the order in which they were taken, in turn."""

    def __init__(self, what, unit, ours, peer="", theirs=(), ratio=None, limit=None):
        self.what, self.unit, self.ours, self.peer, self.theirs = what, unit, ours, peer, theirs
        self.ratio_bound, self.limit = ratio, limit

    def ratios(self):
        """Of neighbours in time, so that what else the machine did meanwhile hits both."""
        return [a / b for a, b in zip(self.ours, self.theirs) if b]

    def verdict(self):
        if not self.ours:
            return "MISSED" if self.ratio_bound or self.limit else ""
        checks = []
        if self.ratio_bound:
            ratios = self.ratios()
            checks.append(bool(ratios) and statistics.median(ratios) <= self.ratio_bound)
        if self.limit:
            checks.append(statistics.median(self.ours) <= self.limit)
        return "" if not checks else "holds" if all(checks) else "MISSED"

    def bound(self):
        parts = [f"<= {self.ratio_bound:g} x"] if self.ratio_bound else []
        return ", ".join(parts + ([f"<= {self.limit:g} {self.unit}"] if self.limit else []))

    def cells(self):
        return (f"{self.what} [{self.unit}]", spread(self.ours), self.peer, spread(self.theirs),
                spread(self.ratios()) if self.theirs else "-", f"{self.bound():<14}{self.verdict()}")


def line(cells):
    return "  ".join(f"{c:<{w}}" for c, w in zip(cells, WIDTHS)).rstrip()


def header():
    titles = ("what [unit]", "kvmtop: median (min-max)", "peer", "peer: median (min-max)", "ratio",
              "bound")
    return f"{line(titles)}\n{'-' * (sum(WIDTHS) + 2 * len(WIDTHS))}"


def from_json(text):
    """The rows that a C program of this folder printed, one object a line."""
    return [Row(**json.loads(ln)) for ln in text.splitlines() if ln.startswith("{")]
