# SPDX-License-Identifier: GPL-2.0-only
"""What the lab's tests of merged traces share: a merged text, taken apart, and whether each event of a guest lies
where it must."""

import bisect
import collections
import re

import native as n

OUTSIDE = 0.001  # the share of a guest's events that may lie elsewhere
LEAST = 100  # events of each vCPU, or nothing was shown
PAGE = 255  # events of 16 bytes, the least, that a page of a ring buffer has
CYCLES = 1 << 31  # what a guest adds to its TSC: about a second
THREAD = re.compile(r"-(\d+) +(?:\([ \d-]+\) +)?$")  # what stands before [CPU], with or without its group
Event = collections.namedtuple("Event", "key stamp inside late line")


class Placed:
    """A merged text, taken apart: which events of which vCPU lie where."""

    def __init__(self, text, guests):
        self.notes, self.strange, self.late = [], [], set()
        self.events = {(g.name, v): [] for g in guests for v in range(g.ncpus)}
        self.turns = {key: [] for key in self.events}  # (stamp, it is entered)
        self.vcpus = {str(tid): (g.name, v) for g in guests for v, tid in g.vcpu_tids().items()}
        for line in text.splitlines():
            if line.startswith("#"):
                self._note(line)
            else:
                self._take(line)

    def _note(self, line):
        """Where a TSC is set back, a guest's ring buffer has wrong times for a while, and merge says which."""
        self.notes.append(line)
        where, _, what = line.partition("]: ")
        if what.startswith("the guest's TSC was set back"):
            name, cpu = where.removeprefix("# ").rsplit(None, 1)
            (self.late.add if "lines are somewhat later" in what else self.late.discard)((name, int(cpu[1:])))

    def _take(self, line):
        """`web01 comm-12 [000] d..2. 1234: sched_waking: …`, `h CPU 0/KVM-34 [001] d.... 1234: kvm_entry: …`."""
        head, _, tail = line.partition("] ")
        words = tail.split(None, 3)
        if len(words) < 3:
            self.strange.append(line)
            return
        name, stamp, event = head.split(None, 1)[0], int(words[1][:-1]), words[2]
        task, _, cpu = head.rpartition("[")
        if name != "h":
            key = name, int(cpu)
            turns = self.turns[key]
            self.events[key].append(Event(key, stamp, bool(turns) and turns[-1][1], key in self.late, line))
        elif event in ("kvm_entry:", "kvm_exit:"):
            key = self.vcpus.get(THREAD.search(task)[1])
            if key:
                self.turns[key].append((stamp, event == "kvm_entry:"))

    def explain(self, event):
        """What the host says of the moment."""
        turns, line = self.turns[event.key], event.line
        at = bisect.bisect(turns, (event.stamp, True))
        for what, turn in (("after", turns[at - 1:at]), ("before", turns[at:at + 1])):
            for when, entered in turn:
                line += f"; {abs(event.stamp - when)} cycles {what} kvm_{'entry' if entered else 'exit'}"
        n.say(f"outside: {' '.join(line.split())}")

    def misplaced(self, key, by):
        """The share of a vCPU's events that would lie outside if they were so much later."""
        turns, events = self.turns[key], self.events[key]
        found = [bisect.bisect(turns, (e.stamp + by, True)) for e in events]
        return sum(not at or at == len(turns) or not turns[at - 1][1] for at in found) / max(len(events), 1)

    def check(self, name):
        """Each event between an entry and an exit; and by another offset they would not be."""
        events = [e for of in self.events.values() for e in of]
        late, outside = [e for e in events if e.late], [e for e in events if not e.inside and not e.late]
        for e in outside[:20]:
            self.explain(e)
        share = len(outside) / max(len(events), 1)
        n.same(self.strange, [], f"{name}: all lines are events")
        n.ok(share <= OUTSIDE, f"{name}: of {len(events)} events {len(outside)} lie outside of guest mode: {share:.3%}")
        n.say(f"{len(late)} events are said to be late, of which {sum(not e.inside for e in late)} lie outside")
        few = {key: len(of) for key, of in self.events.items() if len(of) < LEAST}
        n.same(few, {}, f"{name}: each vCPU has events")
        shares = {f"{key[0]}/{key[1]}": round(self.misplaced(key, CYCLES), 3) for key in self.events}
        n.ok(min(shares.values()) > 10 * OUTSIDE, f"{name}: another offset would put many outside", shares)
        n.say(f"with another offset: {shares}")


def offsets(placed):
    """{"web01/0": [offset, …]} by the merge's own words, and the moments of their changes."""
    found, moments = collections.defaultdict(list), []
    for note in placed.notes:
        words = note.replace(",", "").split()
        if words[3:5] == ["is", "vCPU"]:
            values = words[words.index("offset") + 1:]
            found[f"{words[1]}/{words[5].rstrip(':')}"] = [int(values[0]), *map(int, values[1::4])]
            moments += map(int, values[3::4])
    return found, moments


def in_the_middle(placed, guest, name, cycles):
    """vCPU 0's TSC was written once, by so many cycles; what its first and last offset differ by."""
    values, moments = offsets(placed)
    values = values[f"{guest.name}/0"]
    events = placed.events[guest.name, 0]
    before = sum(e.stamp < moments[0] for e in events) if moments else 0
    n.ok(LEAST / 2 < before < len(events) - LEAST / 2, f"{name}: in the middle", (before, len(events)))
    late = sum(e.late for e in events)
    n.ok(late <= (PAGE if cycles < 0 else 0), f"{name}: only lines behind a step back have no certain place", late)
    return values


def apart(placed):
    """How far the offsets of web01's vCPUs are from each other."""
    found, _ = offsets(placed)
    return found["web01/0"][0] - found["web01/1"][0]
