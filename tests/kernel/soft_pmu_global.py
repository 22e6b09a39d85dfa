#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
"""In the lab on the patched kernel (kernel-support/boot.sh): guests with a register for all counters at once (patch 9).

That is AMD's PerfMonV2, on a host that has no PMU. soft_pmu.py has the guests without it; what it says of overflows
holds here, too. With all counters stopped by the guest, the host's file and the guest's RDPMC have to be equal.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import native as n  # noqa: E402
import soft_pmu as s  # noqa: E402

STATUS, CONTROL, CLEAR = 0xc0000300, 0xc0000301, 0xc0000302
COUNTERS = 6
EVERY = (1 << COUNTERS) - 1
END = 1 << s.WIDTH
WORK = "cpuid:5 out:7 spin:200000"  # something of all that the four events count, but halts
READ = " ".join(f"rdpmc:{i}" for i in range(COUNTERS))


def set_up():
    """Counters 0 to 3: exits, cycles, exits to the VMM, and those again, from 3 below its end on."""
    return s.program(s.count(s.EXITS), s.count(s.CYCLES, 1), s.count(s.USERSPACE, 2), s.count(s.USERSPACE, 3, -3))


def control(value):
    return f"wrmsr:{CONTROL:#x}:{value:#x}"


def values(counters):
    return [int(counters[f"gp{i}"]["value"], 16) for i in range(COUNTERS)]


def enabled(counters):
    return [int(counters[f"gp{i}"]["enabled"]) for i in range(COUNTERS)]


def registers(first):
    return int(first["global_ctrl"], 16), int(first["global_status"], 16)


def offered():
    vm, = s.run(s.program(f"leaf:{s.PERFMON_V2:#x}", f"leaf:{s.PERFMON_V2:#x}:1", "leaf:0x80000000", f"rdmsr:{STATUS:#x}",
                          f"rdmsr:{CONTROL:#x}", f"rdmsr:{CLEAR:#x}", "mark"))
    leaf, rest, highest, *msrs = vm["read"]
    n.same((leaf & 0xffffffff, leaf >> 32, rest), (1, COUNTERS, 0), "CPUID: the registers are there, for six counters")
    n.ok(highest & 0xffffffff >= s.PERFMON_V2, "and no leaf above is the highest", hex(highest))
    n.same(msrs, [0, EVERY, 0], "at first nothing has overflowed, and all counters may count")
    n.same(vm["mark"][0]["faults"], 0, "no #GP")


def not_offered():
    """A VMM that does not pass the leaf on."""
    reads = [f"rdmsr:{msr:#x}" for msr in (STATUS, CONTROL, CLEAR)]
    argv, s.VMM[:] = list(s.VMM), [s.PMU_RUN, "-w", hex(s.PERFMON_V2)]
    try:
        vm, = s.run(s.program(f"leaf:{s.PERFMON_V2:#x}", "mark", *reads, "mark", set_up(), control(0), "mark", WORK,
                              "rdpmc:0", "rdpmc:1", "rdpmc:2"))
    finally:
        s.VMM[:] = argv
    n.same(vm["read"][0], 0, "a guest whose VMM does not pass it on: no leaf")
    n.same([m["faults"] for m in vm["mark"]], [0, len(reads), len(reads) + 1], "a #GP for each access to the registers")
    n.ok(n.every(value > 0 for value in vm["read"][-3:]), "and its counters count", vm["read"])


def stopped_and_shown():
    """Started, stopped by global control alone, read by both sides; the same again when they went on."""
    w = s.Waiting(s.program(set_up(), WORK, control(0), READ, WORK, READ, f"rdmsr:{STATUS:#x}", "wait", control(EVERY), WORK,
                            "wait", control(0), READ, f"rdmsr:{STATUS:#x}", "wait"))
    shown = []
    while w.wait():
        shown.append(s.show(w.id()))
        w.go()
    reads = w.vm["read"]
    at_once, later, status, again, status_again = (reads[:6], reads[6:12], reads[12], reads[13:19], reads[19])
    (stopped, counters), (running, counting), (ended, last) = shown
    n.same((stopped["version"], stopped["gp"]), ("2", str(COUNTERS)), "the file: version 2, six counters")
    n.ok(n.every(value > 0 for value in at_once[:3]), "what counted before counted something", at_once)
    n.same(later, at_once, "with global control 0 all stand still, while the guest works on")
    n.same(values(counters), later, "and the file in debugfs shows, value for value, what the guest read by RDPMC")
    n.same((registers(stopped), status), ((0, 1 << 3), 1 << 3), "control 0, and an overflow of the fourth, on both sides")
    n.same(enabled(counters), [0] * COUNTERS, "none is enabled")
    n.same((registers(running)[0], enabled(counting)), (EVERY, [1] * 4 + [0] * 2), "turned on again: those that are selected")
    n.ok(n.every(now > before for now, before in zip(values(counting)[:4], later)), "they go on", (values(counting), later))
    n.same(values(last), again, "stopped once more: the same on both sides again")
    n.ok(n.every(now > before for now, before in zip(again[:4], later)), "and more than before", (again, later))
    n.same((registers(ended), status_again), ((0, 1 << 3), 1 << 3), "the overflow stays until it is cleared")


def one_of_them():
    vm, = s.run(s.program(control(0), set_up(), WORK, READ, control(1 << 2), WORK, control(0), READ))
    before, after = vm["read"][:COUNTERS], vm["read"][COUNTERS:]
    n.same(before, [0, 0, 0, END - 3, 0, 0], "nothing counts before its bit of global control is set")
    n.same(after[:2] + after[3:], before[:2] + before[3:], "with one bit the others stand still")
    n.same(after[2], 7, "and that one counts, the 7 exits to the VMM")


def status():
    """Who overflowed; the guest cannot write that, but clear it."""
    def over(nr):
        return s.count(s.USERSPACE, nr, -2)

    read = f"rdmsr:{STATUS:#x}"
    vm, = s.run(s.program(over(0), over(3), "out:4", read, f"wrmsr:{STATUS:#x}:0", read, f"wrmsr:{STATUS:#x}:0x3f", read,
                          f"wrmsr:{CLEAR:#x}:0x1", read, f"wrmsr:{CLEAR:#x}:0x3f", read, f"wrmsr:{CONTROL:#x}:{2**64 - 1:#x}",
                          f"rdmsr:{CONTROL:#x}", "mark"))
    n.same(vm["read"], [9, 9, 9, 8, 0, EVERY],
           "two overflows: as they are whatever is written, cleared one by one; control has no other bits")
    n.same(vm["mark"][0]["faults"], 0, "no #GP")


def overflow_while_stopped():
    vm, = s.run(s.program(s.count(s.USERSPACE, 0, -2, s.ON | s.INTERRUPT), control(0), "out:9", "mark",
                          f"rdmsr:{STATUS:#x}", control(1), "out:3", "mark", f"rdmsr:{STATUS:#x}"))
    n.same((vm["mark"][0]["nmis"], vm["read"][0]), (0, 0), "a counter that global control stops does not overflow")
    n.same((vm["mark"][1]["nmis"], vm["read"][1]), (1, 1), "let go it does: one interrupt, and its bit of status")


def moved():
    """In another VM, to which the MSRs came that KVM says are to be saved."""
    w = s.Waiting(s.program(set_up(), WORK, control(0), READ, "move", READ, f"rdmsr:{STATUS:#x}", f"rdmsr:{CONTROL:#x}", "wait",
                            control(EVERY), WORK, control(0), READ, "wait"))
    shown = []
    while w.wait():
        shown.append(s.show(w.id()))
        w.go()
    reads = w.vm["read"]
    before, after, last = reads[:6], reads[6:12], reads[14:]
    n.say(f"{w.vm['moved']} MSRs moved, {w.vm['refused']} not taken")
    n.same(after, before, "after a migration the counters have what they had")
    n.same(reads[12:14], [1 << 3, 0], "status and control as well")
    n.same((values(shown[0][1]), registers(shown[0][0])), (after, (0, 1 << 3)), "so the file says")
    n.ok(n.every(now > then for now, then in zip(last[:4], after)), "and they go on there", (last, after))
    n.same(values(shown[1][1]), last, "as the file says")


def main():
    if os.path.exists("/sys/bus/event_source/devices/cpu") or not os.path.exists(s.EVENTS):
        n.skip("global control", "the host has a PMU, or its kernel is not the patched one")
        n.done()
    s.VMM[:] = [s.PMU_RUN]
    s.allow(s.ALL)
    try:
        for test in (offered, not_offered, stopped_and_shown, one_of_them, status, overflow_while_stopped, moved,
                     s.overflows, s.cycles, s.cycles_interrupt):
            test()
    finally:
        s.allow("none")
    n.done()


main()
