#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
"""In the lab (run.sh): a QEMU guest traces itself while the host traces KVM, and kvmtop merge puts each event of the guest
between its vCPU's kvm_entry and kvm_exit: with one offset, with a vCPU that writes its TSC meanwhile, forwards and
back, and with vCPUs of different offsets. It takes the offsets from the host's trace and of the running VM by itself.
Two guests at once are in trace.py.

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
# An emptied trace shows what is later than that, by the TSC of the CPU on which it was emptied: CPU 1, whose TSC is
# never ahead of the other's, or the events of a second were hidden.
TRACE = f"""cd {GUEST} || exit 1
traced() {{ # that many events on each CPU
	for stats in per_cpu/cpu*/stats; do
		read -r _ entries <$stats
		[ "$entries" -ge "$1" ] || return 1
	done
}}
taskset 2 sh -c 'echo >trace'
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


def script(guest, text, to, name):
    """A shell of the guest's runs it; its output goes into the file. What it said on its standard error."""
    with open(f"{TMP}/script", "w", encoding="ascii") as f:
        f.write(text)
    with open(f"{TMP}/script", "rb") as f, open(to, "wb") as out:
        shell = n.child([*guest.shell(), "sh"], stdin=f, stdout=out, stderr=subprocess.PIPE, text=True)
        said = shell.communicate()[1]
    n.same(shell.returncode, 0, f"{name}: the guest's half")
    return said


def traced(host, guest, name, command=":"):
    """Host and guest at once, merged by its name; what the guest said."""
    host.begin()
    said = script(guest, TRACE % command, f"{TMP}/guest.txt", name)
    host.end(f"{TMP}/host.txt")
    r = n.run("merge", "-H", f"{TMP}/host.txt", "-G", f"{guest.name}={TMP}/guest.txt", limit=300)
    n.same((r.returncode, r.stderr), (0, ""), f"{name}: merged")
    placed = Placed(r.stdout, [guest])
    placed.check(name)
    return placed, said


def writes(host, guest, name, cycles):
    """vCPU 0 goes on with another TSC in the middle of its trace; by how much, all in all."""
    placed, said = traced(host, guest, name, f"/write_tsc 0 {cycles}")
    values = in_the_middle(placed, guest, name, cycles)
    n.same("".join(f"{b - a}\n" for a, b in zip(values, values[1:])), said, f"{name}: by as much as it says")
    return values[-1] - values[0]


def main():
    if why := lab_guests.missing():
        n.skip("traces of a guest", why)
        n.done()
    web01, = lab_guests.start(("web01",))
    web01.ready().rest()
    host = Host()
    n.same(script(web01, PREPARE, os.devnull, "it gets ready"), "", "it gets ready: without a word")
    web01.load("hop")
    placed, said = traced(host, web01, "one offset")
    n.same(said, "", "one offset: without a word")
    moved = writes(host, web01, "a guest that writes its TSC", CYCLES)
    two, _ = traced(host, web01, "two offsets")
    n.same(apart(two), apart(placed) + moved, "two offsets: those of its vCPUs are as far apart as it moved one")
    writes(host, web01, "a guest that sets its TSC back", -CYCLES)
    os.rmdir(host.at)
    web01.rest()
    n.same(script(web01, f"rmdir {GUEST}", os.devnull, "it tidies up"), "", "it tidies up: nothing stays")
    n.done()


main()
