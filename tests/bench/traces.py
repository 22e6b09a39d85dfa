# SPDX-License-Identifier: GPL-2.0-only
"""make bench, part merge: a host's and a guest's trace into one order."""

import os
import tempfile

import native
import procs
import tracedat_lib
from rows import Row

TRACE_LINES, TRACE_OFFSET = 500000, 713253499428  # of each of two texts
TRACE_CPUS = 64  # of either


def make_traces(host, guest):
    with open(host, "w", encoding="ascii") as h, open(guest, "w", encoding="ascii") as g:
        for i in range(TRACE_LINES):
            at = 50550079203669 + 2000 * i
            h.write(f"       CPU 0/KVM-2687    [{i % TRACE_CPUS:03d}] d..1. {at}: kvm_exit: vcpu 0 reason msr rip 0xffffffff8105dd54 "
                    "info1 0x0000000000000000 info2 0x0000000000000000 intr_info 0x00000000 error_code 0x00000000\n")
            g.write(f"          <idle>-0       [{i % TRACE_CPUS:03d}] d..2. {at + 700 - TRACE_OFFSET}: sched_switch: prev_comm=swapper/0 "
                    "prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=kworker/0:1 next_pid=23157 next_prio=120\n")


def merge():
    return [*merge_texts(), *merge_dat()]


def merge_texts():
    """By hand one would do it with awk and sort -m."""
    by_hand = ("awk '{print $5 + 0, $0}' \"$0\" > \"$0.t\"; awk -v o=%d '{print $4 + o, $0}' \"$1\" > \"$1.t\"; "
               "sort -m -s -n -k 1,1 \"$0.t\" \"$1.t\"" % TRACE_OFFSET)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        host, guest = (os.path.join(folder, n) for n in ("host", "guest"))
        make_traces(host, guest)
        ours, two, each, theirs = [], [], [], []
        for _ in range(5):
            one = [native.KVMTOP, "merge", "-H", host, "-G", guest, "--offset", str(-TRACE_OFFSET)]
            ours.append(procs.cpu_of_command(one) / 1000)
            theirs.append(procs.cpu_of_command(["bash", "-c", by_hand, host, guest]) / 1000)
            two.append(procs.cpu_of_command([*one, "--offset", f"vcpu1:{5 - TRACE_OFFSET}"]) / 1000)
        for _ in range(3):
            own = [w for v in range(TRACE_CPUS) for w in ("--offset", f"vcpu{v}:{v - TRACE_OFFSET}")]
            each.append(procs.cpu_of_command([*one, *own]) / 1000)
    million = f"{2 * TRACE_LINES / 1e6:g} million lines"
    return [Row(f"merge: {million}, one offset", "s", ours, "awk, sort -m", theirs, ratio=1, limit=1),
            Row(f"merge: {million}, {TRACE_CPUS} vCPUs of two offsets", "s", two, limit=1),
            Row(f"merge: {million}, {TRACE_CPUS} vCPUs, each of its own", "s", each)]


DAT_EVENTS = 300000


def merge_dat():
    """
    Twice the same real events. trace-cmd report reads its own format alone, of which kvmtop has the text made by it;
    ftrace's text of the same events is what a kernel without trace-cmd gives.
    """
    if not tracedat_lib.possible():
        return []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        dat, text = (os.path.join(folder, n) for n in ("trace.dat", "trace.txt"))
        with open(text, "w", encoding="utf-8") as f:
            f.write(tracedat_lib.record("x86-tsc", dat, DAT_EVENTS, 1 << 16))
        texts, dats, theirs = [], [], []
        for _ in range(3):
            for inputs, into in ((text, texts), (dat, dats)):
                one = [native.KVMTOP, "merge", "-H", inputs, "-G", inputs, "--offset", "0"]
                into.append(procs.cpu_of_command(one) / 1000)
            theirs.append(procs.cpu_of_command(["trace-cmd", "report", "-i", dat, "-i", dat]) / 1000)
        with open(text, encoding="utf-8") as f:
            million = f"{2 * sum('kvm_pio: ' in line for line in f) / 1e6:.2g} million real events"
    return [Row(f"merge: {million}, as text", "s", texts, "trace-cmd report", theirs),
            Row(f"merge: {million}, as trace.dat", "s", dats, "trace-cmd report", theirs)]
