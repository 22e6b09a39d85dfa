#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
"""In the lab (run.sh): QEMU guests trace themselves while the host traces KVM, and kvmtop merge puts each event of a guest
between its vCPU's kvm_entry and kvm_exit: with one offset, with a vCPU that writes its TSC meanwhile, forwards and
back, with vCPUs of different offsets, and with two guests at once. It takes the offsets from the host's trace and of the
running VMs by itself.

Each tracepoint is switched on once and off once, and few of them: patching kernels is what the emulation does not stand (run.sh)."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
import lab_guests  # noqa: E402
import native as n  # noqa: E402
from lab_placed import CYCLES, Placed, apart, in_the_middle  # noqa: E402

TMP = os.environ.get("TEST_TMP", "/tmp")
INSTANCE = "instances/kvmtop-test"
GUEST = f"/sys/kernel/tracing/{INSTANCE}"
EVENTS = ("kvm_entry", "kvm_exit", "kvm_write_tsc_offset")
PREPARE = f"""t=/sys/kernel/tracing
[ -d $t/instances ] || mount -t tracefs tracefs $t
mkdir {GUEST} && cd {GUEST} || exit 1
echo 0 >tracing_on
echo x86-tsc >trace_clock
echo 4096 >buffer_size_kb
echo 1 >events/sched/sched_switch/enable
"""
TRACE = f"""cd {GUEST} || exit 1
traced() {{ # that many events on each CPU
	for stats in per_cpu/cpu*/stats; do
		read -r _ entries <$stats
		[ "$entries" -ge "$1" ] || return 1
	done
}}
echo >trace
echo 1 >tracing_on
until traced 200; do sleep 0.2; done
%s
until traced 600; do sleep 0.2; done
echo 0 >tracing_on
cat trace
"""


class Host:
    """The host's half: one instance for all of the test."""

    def __init__(self):
        self.at = f"{n.TRACEFS}/{INSTANCE}"
        os.mkdir(self.at)
        self.put("tracing_on", "0")
        self.put("trace_clock", "x86-tsc")
        self.put("buffer_size_kb", "16384")
        for e in EVENTS:
            self.put(f"events/kvm/{e}/enable", "1")

    def put(self, name, text):
        with open(f"{self.at}/{name}", "w", encoding="ascii") as f:
            f.write(text)

    def begin(self):
        self.put("trace", "")
        self.put("tracing_on", "1")

    def end(self, path):
        self.put("tracing_on", "0")
        with open(f"{self.at}/trace", "rb") as f, open(path, "wb") as to:
            to.write(f.read())


def script(guest, text, to):
    """A shell of the guest's that runs it; its output goes into the file."""
    with open(f"{TMP}/{guest.name}.sh", "w", encoding="ascii") as f:
        f.write(text)
    with open(f"{TMP}/{guest.name}.sh", "rb") as f, open(to, "wb") as out:
        return n.child([*guest.shell(), "sh"], stdin=f, stdout=out, stderr=subprocess.PIPE, text=True)


def ended(shell, name):
    """What it said on its standard error."""
    said = shell.communicate()[1]
    n.same(shell.returncode, 0, f"{name}: the guest's half")
    return said


def traced(host, guests, name, command=":"):
    """Host and guests at once, merged by their names; what the guests said."""
    host.begin()
    shells = [script(g, TRACE % command, f"{TMP}/{g.name}.txt") for g in guests]
    said = "".join(ended(s, f"{name}, {g.name}") for s, g in zip(shells, guests))
    host.end(f"{TMP}/host.txt")
    words = [w for g in guests for w in ("-G", f"{g.name}={TMP}/{g.name}.txt")]
    r = n.run("merge", "-H", f"{TMP}/host.txt", *words, limit=300)
    n.same((r.returncode, r.stderr), (0, ""), f"{name}: merged")
    placed = Placed(r.stdout, guests)
    placed.check(name)
    return placed, said


def writes(host, guest, name, cycles):
    """vCPU 0 goes on with another TSC in the middle of its trace; by how much, all in all."""
    placed, said = traced(host, [guest], name, f"/write_tsc 0 {cycles}")
    values = in_the_middle(placed, guest, name, cycles)
    n.same("".join(f"{b - a}\n" for a, b in zip(values, values[1:])), said, f"{name}: by as much as it says")
    return values[-1] - values[0]


def main():
    if why := lab_guests.missing():
        n.skip("traces of guests", why)
        n.done()
    guests = lab_guests.pair()
    web01 = guests[0]
    host = Host()
    for g in guests:
        n.same(ended(script(g, PREPARE, os.devnull), f"{g.name} gets ready"), "", f"{g.name}: without a word")
        g.load("hop")
    placed, said = traced(host, [web01], "one guest")
    n.same(said, "", "one guest: without a word")
    moved = writes(host, web01, "a guest that writes its TSC", CYCLES)
    both, _ = traced(host, guests, "two guests")
    n.same(apart(both), apart(placed) + moved, "two guests: web01's vCPUs have different offsets")
    writes(host, web01, "a guest that sets its TSC back", -CYCLES)
    os.rmdir(host.at)
    for g in guests:
        g.rest()
        n.same(ended(script(g, f"rmdir {GUEST}", os.devnull), f"{g.name} tidies up"), "", f"{g.name}: nothing stays")
    n.done()


main()
