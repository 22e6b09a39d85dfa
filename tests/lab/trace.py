#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
# by-hand: yes, it switches so many tracepoints that the emulation fails in every second run (run.sh)
"""In the lab (run.sh): `kvmtop trace` of QEMU guests, whose kernels trace themselves, both halves by its own scripts. In
what is merged each event of a guest lies between its vCPU's kvm_entry and kvm_exit, as in tsc_merged.py,
which switches on less and runs with the others; and so with two guests at once."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../integration")]
import lab_guests  # noqa: E402
import merge  # noqa: E402
import native as n  # noqa: E402
from lab_placed import CYCLES, Placed, apart, in_the_middle  # noqa: E402

TMP = os.environ.get("TEST_TMP", "/tmp")


def start(guest, name, *words):
    """kvmtop traces a guest; words: of shell.py."""
    folder = os.path.join(TMP, name)
    command = [n.KVMTOP, "trace", guest.name, "-o", folder, "--for", "1", "--", *guest.shell(), *words]
    return folder, n.child(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(folder, process, name):
    """What the guest's half says."""
    out, err = process.communicate()
    n.same((process.returncode, out), (0, f"{folder}/merged\n"), f"{name}: one command traces and merges both halves")
    return err


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as f:
        return f.read()


def merged(guest, name, *words):
    """A guest, traced and merged; what its half said."""
    folder, process = start(guest, name.replace(" ", "-"), *words)
    said = finish(folder, process, name)
    return Placed(read(folder, "merged"), [guest]), said


def writes(guest, name, cycles):
    """vCPU 0 goes on with another TSC in the middle of its trace."""
    placed, said = merged(guest, name, "--asleep", f"/write_tsc 0 {cycles}")
    placed.check(name)
    values = in_the_middle(placed, guest, name, cycles)
    n.same("".join(f"{b - a}\n" for a, b in zip(values, values[1:])), said, f"{name}: by as much as it says")
    return values[-1] - values[0]


def together(guests, distance):
    """Two guests and one host, whose half is traced by hand; the offsets of the first one's vCPUs are that far apart."""
    name = "two guests"
    with merge.traced(("kvm_entry", "kvm_exit"), 16384) as host:
        runs = [start(g, g.name) for g in guests]
        for folder, process in runs:
            n.same(finish(folder, process, f"{name} at once"), "", f"{name} at once: without a word")
    words = [word for g, (folder, _) in zip(guests, runs) for word in ("-G", f"{g.name}={folder}/guest")]
    r = merge.merge("-H", merge.write("host", host[0]), *words)
    n.same((r.returncode, r.stderr), (0, b""), f"{name}: merged by their names")
    placed = Placed(r.stdout.decode(errors="replace"), guests)
    placed.check(name)
    n.same(apart(placed), distance, f"{name}: web01's vCPUs have different offsets")


def main():
    if why := lab_guests.missing():
        n.skip("traces of guests", why)
        n.done()
    guests = lab_guests.pair()
    web01, db02 = guests
    web01.load("hop")
    placed, said = merged(web01, "one guest")
    placed.check("one guest")
    n.same(said, "", "one guest: without a word")
    moved = writes(web01, "a guest that writes its TSC", CYCLES)
    db02.load("hop")
    together(guests, apart(placed) + moved)
    db02.rest()
    writes(web01, "a guest that sets its TSC back", -CYCLES)
    web01.rest()
    n.done()


main()
