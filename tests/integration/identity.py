#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, perf-events
# limit: 180
# beside: yes
"""Which VM and which vCPU an event or a second of CPU time belongs to, in the awkward cases."""

import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

KINDS = ("ioport", "mmio", "userexit")


def watch(*args):
    return n.Kvmtop("--event", ",".join(KINDS), *args).skip(2)


def finish(top, g):
    g.wait()
    return top.settle().end()


def two_vms_in_one_process():
    g = n.Guest("-V", 2, "-c", 2, "-t", "", "out:300 in:20 sleep:600", "mmiow:70 sleep:600")
    top = watch()
    g.go()
    r = finish(top, g)
    ids = {vm["vm_id"] for x in r for vm in n.vms_of(x, g.pid)}
    n.ok(max(len(n.vms_of(x, g.pid)) for x in r) == 2, "two VMs in one process are two rows",
         ids)
    n.same(n.only(n.counted(r, g.pid), "ioport", "mmio").get(("ioport", "0x3f8:POUT")), 600,
           "two VMs in one process: the events of both are counted once")
    each = sorted(n.counted(r, g.pid, vm_id=i).get(("ioport", "0x3f8:POUT"), 0) for i in ids)
    n.same(each[-2:], [300, 300], "two VMs in one process: each has its own events")


def one_thread_two_vcpus(how):
    name = f"one thread runs two vCPUs ({how})"
    g = n.Guest("-c", 2, "-s", "one", "-k", 7, "-l", "inf", "-r", 2000, "out:5 spin:2", "in:3 spin:2")
    top = watch("--events-by", how)
    g.go()

    def both(r):
        vm = n.vm_of(r, g.pid)
        return vm and vm["exits"] and {v["tid"] for v in vm["vcpus"]} == {g.tid(0)} and len(vm["vcpus"]) == 2
    n.ok(top.until(both, 20, name), f"{name}: both rows name the thread")
    first = len(top.records)
    top.skip(4)
    g.stop()
    r = top.settle().end()
    got = n.only(n.counted(r, g.pid), "ioport")
    n.same((got.get(("ioport", "0x3f8:POUT")), got.get(("ioport", "0x60:PIN"))),
           (g.counts[0]["out"], g.counts[1]["in"]), f"{name}: the VM's counts are exact")
    cpu = [vm["cpu_pct"] for x in r for vm in n.vms_of(x, g.pid) if vm["cpu_pct"] is not None]
    n.ok(cpu and max(cpu) <= 120, f"{name}: its time is counted once", cpu)
    unsure(name, g, [x for x in r[first:] if both(x)])


def unsure(name, g, records):
    """Which of them an access is of no event tells; where kvm_entry fires, it does for most."""
    rows = [v for x in records for vm in n.vms_of(x, g.pid) for v in vm["vcpus"]]
    exits = [e for v in rows for e in v["exits"] if e["count"] and e["kind"] in KINDS]
    if n.HW:
        n.ok(exits and all(e["partial"] for e in exits), f"{name}: what a vCPU has is marked", exits[:3])
        return
    n.same((exits, {v["exits_per_s"] for v in rows}), ([], {None}), f"{name}: no vCPU has what may be the other's")
    why = "the thread runs several vCPUs"
    n.ok(n.every(any(s["why"] == why and "vcpu.exits_per_s" in s["fields"] for s in x["sources"] if s["name"] == "figures")
             for x in records), f"{name}: and the reason is said", records[0]["sources"])


def vcpu_changes_threads():
    g = n.Guest("-s", "hop", "-k", 50, "-t", "", "out:4000 mmior:500")
    top = watch()
    g.go()
    r = finish(top, g)
    n.same(n.only(n.counted(r, g.pid), *KINDS), n.truth(g.counts),
           "a vCPU that changes threads: its counts are exact")
    n.same(max(len(vm["vcpus"]) for x in r for vm in n.vms_of(x, g.pid)), 1,
           "a vCPU that changes threads stays one vCPU")


def short_life():
    top = watch()
    g = n.Guest("-L", "-e", 50, "-t", "", "-r", 20000, "out:inf")
    g.go()
    g.wait()
    r = top.settle().skip(2).end()
    mine = [vm for x in r for vm in x["vms"] if vm["pid"] in (g.pid, g.tid(0))]
    n.ok(mine, "a VM that lives 50 ms is seen", [vm["name"] for x in r for vm in x["vms"]])
    total = {}
    for vm in mine:
        n.add_counts(vm["exits"], total)
    n.same(total.get(("ioport", "0x3f8:POUT")), g.counts[0]["out"],
           "a VM that lives 50 ms: its events are counted")
    n.ok(not any(vm["pid"] == g.pid for vm in r[-1]["vms"]), "and its row ends")


def a_vcpu_ends(how):
    """Its thread ends while the VM lives: the last of its counts are in a row of its own."""
    g = n.Guest("-c", 3, "-m", "user", "out:40 sleep:300 out:300", "mmiow:20 sleep:420 mmiow:200", "sleep:2500")
    top = watch("--events-by", how)
    g.go()
    r = finish(top, g)
    for i, c in enumerate(g.counts[:2]):
        n.same(n.only(n.counted(r, g.pid, vcpu=i), *KINDS), n.only(n.truth([c]), *KINDS) | slept(c),
               f"a vCPU that ends before its VM ({how}): vCPU {i}'s rows have all its counts")
        rows = [[v["quality"] for v in vm["vcpus"] if v["vcpu"] == i] for x in r for vm in n.vms_of(x, g.pid)
                if not vm["quality"]]
        rows = "".join("g" if row == ["gone"] else "+" if row else "-" for row in rows)
        n.ok(re.fullmatch("[+]+g+-+", rows), f"a vCPU that ends before its VM ({how}): the last row is marked", rows)


def slept(c):
    """SLEEP of a guest in user mode is a port write."""
    return {("ioport", "0xf2:POUT"): c["sleep"]} if c["sleep"] else {}


def one_row_of_many_threads():
    """Where it is counted in the kernel each thread's process is known, also of one that ended at once."""
    top = watch("--events-by", "bpf")
    guests = [n.Guest("-n", "-c", 6, "-t", "", "out:3") for _ in range(10)]
    for g in guests:
        g.wait()
    r = top.settle().skip(2).end()
    rows = {g.pid: [[vm for vm in x["vms"] if vm["pid"] in {g.pid, *(v["tid"] for v in g.vcpus)}] for x in r]
            for g in guests}
    n.same([[vm["name"] for vm in x] for of in rows.values() for x in of if len(x) > 1], [],
           "VMs of six threads that live for a moment: one row each")
    n.same({vm["pid"] for of in rows.values() for x in of for vm in x}, set(rows), "by the number of their process")
    n.same([sum(n.add_counts(vm["exits"]).get(("ioport", "0x3f8:POUT"), 0) for x in of for vm in x)
            for of in rows.values()], [18] * len(rows), "with all events of their threads")


def ids_with_gaps():
    ids = [0, 2, 9, 11]
    for names, what in (("CPU %d/KVM", "named threads"), ("", "threads without names")):
        g = n.Guest("-c", 4, "-i", "0,2,9,11", "-t", names, "out:100 sleep:700", "out:200 sleep:700",
                    "out:300 sleep:700", "out:400 sleep:700")
        top = watch()
        g.go()
        r = finish(top, g)
        full = [vm for x in r for vm in n.vms_of(x, g.pid) if len(vm["vcpus"]) == 4]
        n.same([(v["vcpu"], v["kvm_id"]) for v in full[-1]["vcpus"]] if full else None,
               list(enumerate(ids)), f"vCPU ids with gaps, {what}: number and id")
        got = [n.counted(r, g.pid, vcpu=i).get(("ioport", "0x3f8:POUT")) for i in range(4)]
        n.same(got, [100, 200, 300, 400], f"vCPU ids with gaps, {what}: events")


def one_name_twice():
    qemu = n.posing_as("qemu-system-x86_64")
    guests = [n.Guest(f"out:{k} sleep:700", program=qemu,
                      tail=("-name", "guest=twin,,a,debug-threads=on")) for k in (100, 200)]
    top = watch()
    for g in guests:
        g.go()
    for g in guests:
        g.wait()
    r = top.settle().end()
    rows = {(vm["name"], vm["vm_id"]) for x in r for g in guests for vm in n.vms_of(x, g.pid)}
    n.same({name for name, _ in rows}, {"twin,a"}, "two VMs of one name: and it is theirs")
    n.same(len({i for _, i in rows}), 2, "two VMs of one name stay two")
    for g, want in zip(guests, (100, 200)):
        n.same(n.counted(r, g.pid).get(("ioport", "0x3f8:POUT")), want,
               "two VMs of one name: each has its events")


def in_a_container():
    """The guest's own pids are other numbers; the kernel's events carry the host's."""
    g = n.Guest("-c", 2, "out:300 sleep:700", "mmiow:200 sleep:700",
                wrap=("unshare", "--pid", "--fork", "--kill-child"))
    n.ok(g.vcpus[0]["pid"] == 1 and g.pid != 1, "a VM in a pid namespace of its own has pid 1 there")
    top = watch()
    g.go()
    r = finish(top, g)
    n.same(n.only(n.counted(r, g.pid), "mmio", "userexit"),
           {k: c for k, c in n.truth(g.counts).items() if k[0] in ("mmio", "userexit")},
           "a VM in a pid namespace of its own: counts are exact")
    n.same(n.counted(r, g.pid, vcpu=1).get(("mmio", "0xd0000:W")), 200, "and each vCPU has its own")


def a_row_follows_its_thread():
    """CPU and steal are those of the thread that runs the vCPU now, also where no event tells it."""
    g = n.Guest("-s", "hop", "-k", 3000, "-r", 1000, "-l", "inf", "-t", "", "out:100 spin:50").go()
    top = n.Kvmtop(delay=0.5).skip(3)
    right = []
    for _ in range(30):
        r = top.next()
        with open(glob.glob(f"{n.DEBUGFS}/kvm/{g.pid}-*/vcpu0/pid")[0], encoding="ascii") as f:
            now = int(f.read())
        right.append(any(v["tid"] == now for vm in n.vms_of(r, g.pid) for v in vm["vcpus"]))
    wrong = max(len(run) for run in "".join("+" if x else "-" for x in right).split("+"))
    n.ok(wrong <= 3, "a vCPU that changes threads: its row follows within two seconds", right)
    top.end()
    g.kill()


def main():
    two_vms_in_one_process()
    for how in ("bpf", "perf"):
        one_thread_two_vcpus(how)
        a_vcpu_ends(how)
    vcpu_changes_threads()
    a_row_follows_its_thread()
    short_life()
    one_row_of_many_threads()
    ids_with_gaps()
    one_name_twice()
    in_a_container()
    n.done()


main()
