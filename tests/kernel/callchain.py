#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 300
"""In the lab on the patched kernel (kernel-support/boot.sh): call chains of guests in samples.

The guests are chain-run's: three functions that call each other, in each of the modes that a chain can come from, and
frame pointers that lead in circles, to where nothing is, to what is no address, or over more pages than are worth it.
"""

import collections
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n  # noqa: E402

CHAIN_RUN = os.path.join(n.BUILD, "guests/chain-run")
TMP = os.environ.get("TEST_TMP", "/tmp")
DATA = os.path.join(TMP, "chains.data")
TOGETHER = 4  # guests on two CPUs; more, and all else crawls
GUEST_KERNEL, GUEST_USER = 2**64 - 2176, 2**64 - 2560  # the marks, PERF_CONTEXT_…
USER_MARK = 2**64 - 512
MODES = {4: GUEST_KERNEL, 5: GUEST_USER}  # of a sample, PERF_RECORD_MISC_…
KERNEL = 0xffffff8000000000
HOLE, OUTSIDE, LOST, LARGE = 0x1ff000, 0x1fe000, 0x400000, 0x200000
MAX_STACK, MAX_PAGES = 127, 16  # perf's limit of addresses, the kernel's of pages


def frames(*at, ret=0x100000):
    """Frames at these addresses, each pointing to the next one; the last one to 0. They return to ret + 1, …"""
    words = []
    for i, (this, following) in enumerate(zip(at, (*at[1:], 0))):
        words += [f"{this:#x}={following:#x}", f"{this + 8:#x}={ret + 1 + i:#x}"]
    return words


def returns(count, ret=0x100000):
    return [ret + 1 + i for i in range(count)]


# Name: (what chain-run gets, the callers that must be seen). All spin in inner() with the given frame pointer.
ODD = {
    "in the kernel's half": (("kernel", hex(KERNEL + 0x10000), *frames(0x10000)), returns(1)),
    "a large page": (("user", hex(LARGE + 0x10000), *frames(0x10000)), returns(1)),
    "a frame over two pages": (("user", "0x10ff8", *frames(0x10ff8)), returns(1)),
    "a frame that points to itself": (("user", "0x10000", "0x10000=0x10000", "0x10008=0x100001"), returns(1)),
    "a loop of two frames": (("kernel", "0x10000", *frames(0x10000, 0x10100)[:2], "0x10100=0x10000",
                              "0x10108=0x100002"), returns(2)),
    "frames that go down": (("user", "0x10100", *frames(0x10100, 0x10000)), returns(1)),
    "no frame": (("user", "0"), []),
    "an odd frame pointer": (("user", "0x10001", *frames(0x10001)), []),
    "not mapped": (("user", hex(HOLE)), []),
    "not mapped further up": (("user", "0x10000", f"0x10000={HOLE:#x}", "0x10008=0x100001"), returns(1)),
    "mapped to no memory": (("user", hex(OUTSIDE)), []),
    "page tables in no memory": (("kernel", hex(LOST)), []),
    "no page table at all": (("kernel", hex(1 << 40)), []),
    "no address": (("kernel", hex(1 << 63)), []),
    "the last word": (("kernel", hex(2**64 - 8)), []),
    "a user who points into the kernel": (("user", hex(KERNEL + 0x10000), *frames(0x10000)), []),
    "a return to nowhere": (("user", "0x10000", "0x10000=0x10100", *frames(0x10100)), []),
    "a return to a mark of perf's": (("kernel", "0x10000", "0x10000=0x10100", f"0x10008={USER_MARK:#x}",
                                      *frames(0x10100)), []),
    "300 frames": (("user", "0x10000", *frames(*range(0x10000, 0x10000 + 300 * 16, 16))), returns(MAX_STACK - 1)),
    "a page each": (("kernel", "0x10000", *frames(*range(0x10000, 0x10000 + 40 * 0x1000, 0x1000))),
                    returns(MAX_PAGES)),
    "compat: no address": (("compat", "0xfffffffc"), []),
    "without paging": (("flat",), []),
}
CALLED = ("kernel", "user", "compat")


class Guest:
    def __init__(self, *args):
        self.mode = args[0]
        # nice: whoever records them, on as many CPUs, comes first
        self.p = n.child(["nice", "-n", "19", CHAIN_RUN, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.functions = json.loads(self.p.stdout.readline())

    def stop(self):
        self.p.stdin.close()
        return self.p.wait(30 * n.PATIENCE)

    def name(self, address):
        return next((f for f, (start, end) in self.functions.items() if start <= address < end), hex(address))


def record(pids):
    n.sh("perf", "record", "-B", "-N", "-q", "-g", "-e", "cpu-clock", "-F", "250", "-p", ",".join(map(str, pids)),
         "-o", DATA, "--", "sleep", "3")


def chains(pids):
    """{pid: [(mode's mark, the chain)]} of the samples of guests."""
    dump = subprocess.Popen(["perf", "script", "-D", "-i", DATA], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, errors="replace")
    found, chain = {pid: [] for pid in pids}, None
    for line in dump.stdout:
        if m := re.search(r"PERF_RECORD_SAMPLE\(IP, 0x([0-9a-f]+)\): (\d+)/", line):
            mark, chain = MODES.get(int(m.group(1), 16) & 7), []
            if mark and int(m.group(2)) in found:
                found[int(m.group(2))].append((mark, chain))
        elif m := re.match(r"\.\.\.\.\. +\d+: ([0-9a-f]{16})", line):
            chain.append(int(m.group(1), 16))
    dump.wait()
    return found


def check(guest, what, samples, callers):
    """Each of a guest's samples: the mark of its mode, where it is, and the same callers."""
    n.ok(len(samples) >= 5, f"{what}: samples of the guest", len(samples))
    n.same({c[:1] == [mark] for mark, c in samples}, {True}, f"{what}: each chain begins with the mark of its mode")
    n.same({mark for mark, _c in samples}, {GUEST_USER if guest.mode in ("user", "compat") else GUEST_KERNEL},
           f"{what}: which is {guest.mode}")
    n.same({guest.name(c[1]) for _mark, c in samples}, {"inner"}, f"{what}: it goes on with where it is")
    seen = collections.Counter(tuple(c[2:]) for _mark, c in samples)
    n.ok(set(seen) == {tuple(callers)}, f"{what}: the callers", f"{callers} was wanted, and were got {seen}")


def check_called(guest, what, samples):
    n.ok(len(samples) >= 5, f"{what}: samples of the guest", len(samples))
    n.same({tuple(map(guest.name, c[1:])) for _mark, c in samples}, {("inner", "middle", "outer", "entry")},
           f"{what}: who called")
    n.same({c[:1] == [mark] for mark, c in samples}, {True}, f"{what}: behind the mark of its mode")


def run(args):
    """[(guest, name, its samples)] of guests that run at the same time."""
    guests = {name: Guest(*a) for name, a in args.items()}
    pids = [g.p.pid for g in guests.values()]
    record(pids)
    n.same([name for name, g in guests.items() if g.p.poll() is not None], [], "all guests ran on")
    for g in guests.values():
        g.stop()
    samples = chains(pids)
    return [(g, name, samples[g.p.pid]) for name, g in guests.items()]


def main():
    for g, name, samples in run({mode: (mode,) for mode in CALLED}):
        check_called(g, name, samples)
    names = list(ODD)
    for i in range(0, len(names), TOGETHER):
        for g, name, samples in run({name: ODD[name][0] for name in names[i:i + TOGETHER]}):
            check(g, name, samples, ODD[name][1])
    n.done()


if __name__ == "__main__":
    main()
