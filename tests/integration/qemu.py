#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, cmd:qemu-system-x86_64
# limit: 120
# beside: yes
"""Real QEMUs: what each calls itself and says of its vCPUs is what kvmtop shows, whatever its options,
and through a vCPU's plugging and unplugging, a stop, a kill and an orderly end."""

import csv
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n
from qemu_guest import PORT, Qemu, has_kvm

UUID = "8f7c2c1e-1b2d-4c3e-9f00-00000000c0de"
CPU = "qemu64-x86_64-cpu"
# Registers of the PC's CPU hotplug controller (QEMU's docs/specs/acpi_cpu_hotplug): selector, flags.
HOTPLUG, HOTPLUG_FLAGS, EJECT = 0xaf00, 0xaf04, 8

# Of each: its options, and the name that it must have (None: comm:pid).
CASES = {
    "six": (("-name", "guest=web01,debug-threads=on", "-uuid", UUID, "-smp", "6,sockets=2,cores=3",
             "-object", "iothread,id=disk0"), "web01"),
    "comma": (("-name", "a,,b c", "-smp", "2"), "a,b c"),
    "unicode": (("-name", "guest=\u6f22\u5b57-\u00fc\U0001f427,debug-threads=on"),
                "\u6f22\u5b57-\u00fc\U0001f427"),
    "plain": (("-name", "web02"), "web02"),
    "nameless": ((), None),
    "twin1": (("-name", "twin"), "twin"),
    "twin2": (("-name", "twin"), "twin"),
    "alike": (("-name", "guest=alike,debug-threads=off", "-smp", "3"), "alike"),
    "process": (("-name", "guest=other,process=renamed,debug-threads=on"), "other"),
    "twice": (("-name", "first", "-name", "a,guest=last"), "last"),
    "options": (("-name", "debug-threads=on,guest=late"), "late"),
    "sandbox": (("-name", "boxed,debug-threads=on", "-smp", "2", "-sandbox",
                 "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"), "boxed"),
    "paused": (("-name", "paused,debug-threads=on", "-smp", "2", "-S"), "paused"),
    "incoming": (("-name", "incoming,debug-threads=on", "-smp", "2", "-incoming", "defer"), "incoming"),
    "microvm": (("-M", "microvm", "-name", "micro,debug-threads=on", "-smp", "2"), "micro"),
}


WRITES = 1000  # to a port, when the paused one is let go


def start():
    guests = {}
    for case, (args, _) in CASES.items():
        guests[case] = Qemu(*args, writes={"six": None, "paused": WRITES}.get(case, 0))
    guests["daemon"] = Qemu("-name", "daemon,debug-threads=on", "-smp", "2", daemon=True)
    guests["plug"] = Qemu("-name", "plug,debug-threads=on", "-smp", "2,maxcpus=4", qtest=True)
    guests["inside"] = Qemu("-name", "inside,debug-threads=on", "-smp", "2",
                            wrap=("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"))
    for q in guests.values():
        q.qmp("query-status")
    return guests


def all_there(guests, r):
    return all(n.vm_of(r, q.pid) and len(n.vm_of(r, q.pid)["vcpus"]) == len(q.threads())
               for q in guests.values())


def names(guests, r):
    for case, q in guests.items():
        vm = n.vm_of(r, q.pid) or {}
        want = CASES[case][1] if case in CASES else case
        n.same((vm.get("name"), vm.get("vmm")), (want or f"qemu-system-x86:{q.pid}", "qemu"),
               f"{case}: its name")
        n.same(len(n.vms_of(r, q.pid)), 1, f"{case}: one row")
        n.same(q.qmp("query-name").get("name"), want, f"{case}: so QEMU says")
    six = n.vm_of(r, guests["six"].pid)
    n.same((six["uuid"], six["vm_id"]), (UUID, UUID), "six: its UUID is its id")
    twins = [n.vm_of(r, guests[t].pid)["vm_id"] for t in ("twin1", "twin2")]
    n.same(len(set(twins)), 2, "two of one name have two ids")


def vcpus(guests, r):
    for case, q in guests.items():
        if case == "inside":
            continue  # QEMU's word is of its own pid namespace
        n.same(n.tids_of(n.vm_of(r, q.pid)), q.threads(),
               f"{case}: each vCPU's number and thread are as QEMU says")
    n.same([(v["vcpu"], v["kvm_id"], v["vcpu_guessed"]) for v in n.vm_of(r, guests["six"].pid)["vcpus"]],
           [(i, k, False) for i, k in enumerate((0, 1, 2, 4, 5, 6))],
           "six: numbers 0 to 5 are KVM's ids 0, 1, 2, 4, 5, 6")
    n.same([v["vcpu_guessed"] for v in n.vm_of(r, guests["alike"].pid)["vcpus"]], [True] * 3,
           "alike: numbers that no thread's name bears are marked as guessed")


def inside(guests, r):
    """QEMU as process 1 of a container: the kernel calls its timer's thread kvm-pit/1."""
    q = guests["inside"]
    comm = {}
    for t in os.listdir(f"/proc/{q.pid}/task"):
        with open(f"/proc/{q.pid}/task/{t}/comm", encoding="ascii") as f:
            comm[f.read().strip()] = int(t)
    n.same(n.tids_of(n.vm_of(r, q.pid)), {i: comm[f"CPU {i}/KVM"] for i in (0, 1)},
           "inside a container: its vCPUs' threads, by the host's numbers")
    helpers = [t["comm"] for t in thread_rows(q).values() if t["role"] == "helper"]
    n.ok("kvm-pit/1" in helpers, "inside a container: its kernel threads are its own", helpers)


def thread_rows(q):
    """{thread: row of the table `thread`} of one VM."""
    p = n.run("-b", "-n", "1", "-d", "0.5", "-p", q.pid, "--format", "csv", "--table", "thread", check=True)
    return {int(r["tid"]): r for r in csv.DictReader(p.stdout.splitlines())}


def threads(guests):
    """The process's other threads."""
    q = guests["six"]
    rows = thread_rows(q)
    io = q.qmp("query-iothreads")[0]["thread-id"]
    n.same((rows.get(io, {}).get("comm"), rows.get(io, {}).get("role")), ("IO disk0", "vmm"),
           "six: the I/O thread is a thread of the VMM")
    real = {int(t) for t in os.listdir(f"/proc/{q.pid}/task")}
    n.same(real - set(rows), set(q.threads().values()), "six: every thread but the vCPUs' is there")
    n.ok(any(r["role"] == "helper" and r["comm"].startswith(("kvm-pit", "kvm-nx-lpage-re"))
             for r in rows.values()), "six: the kernel's threads that work for it are helpers", rows)


def events(guests, top):
    """The firmware's accesses, and a guest whose every access is known."""
    q = guests["paused"]
    seen = len(top.records)
    q.qmp("cont")
    top.settle().skip(2)
    got = n.counted(top.records[seen:], q.pid, vcpu=0)
    n.same((got.get(("ioport", f"{PORT:#x}:POUT")), got.get(("userexit", "KVM_EXIT_IO"))), (WRITES, WRITES),
           "paused: let go, each of its port writes is counted once, at its vCPU")
    got = n.counted(top.records, guests["six"].pid)
    n.ok(any(kind == "ioport" for kind, _ in got), "six: its firmware's port accesses are counted", got)
    n.same(n.lost(top.records), 0, "nothing was lost")


def plugging(q, top):
    """Two vCPUs more, one of them away again (KVM keeps it: QEMU parks it), and back on another thread."""
    def shows(what):
        want = q.threads()
        if top.until(lambda r: n.tids_of(n.vm_of(r, q.pid)) == want, 10, what):
            n.ok(True, what)

    free = [c["props"] for c in q.qmp("query-hotpluggable-cpus") if "qom-path" not in c]
    free.sort(key=lambda props: props["core-id"])
    q.qmp("device_add", driver=CPU, id="cpu2", **free[0])
    q.qmp("device_add", driver=CPU, id="cpu3", **free[1])
    shows("two vCPUs plugged in are there")
    q.out("b", HOTPLUG, 0)  # from the old register layout to the new one
    q.out("l", HOTPLUG, 2)
    q.out("b", HOTPLUG_FLAGS, EJECT)
    n.same(sorted(q.threads()), [0, 1, 3], "QEMU has let the third vCPU go")
    shows("an unplugged vCPU is gone, the others keep their numbers")
    q.qmp("device_add", driver=CPU, id="again", **free[0])
    shows("plugged in again it is there, on its new thread")


def migration(top):
    """From one QEMU to another on the same host: one name, one UUID, two processes."""
    same = ("-name", "moved,debug-threads=on", "-uuid", UUID[:-4] + "cafe", "-smp", "2")
    here = Qemu(*same)
    where = f"unix:{here.dir}/migration"
    here.qmp("query-status")
    there = Qemu(*same, "-incoming", where)
    there.qmp("query-status")
    both = (here, there)
    if not top.until(lambda r: all(n.tids_of(n.vm_of(r, q.pid)) == q.threads() for q in both), 10,
                     "migration: both ends are there"):
        return
    here.qmp("migrate", uri=where)
    end = time.monotonic() + 20
    while (status := here.qmp("query-migrate").get("status")) != "completed" and time.monotonic() < end:
        top.skip(1)
    r = top.settle().skip(2).records[-1]
    n.same((status, [n.vm_of(r, q.pid)["name"] for q in both],
            len({n.vm_of(r, q.pid)["vm_id"] for q in both})), ("completed", ["moved"] * 2, 2),
           "migration: afterwards too, each with an id of its own")
    here.end()
    if top.until(lambda r: not n.vm_of(r, here.pid), 10, "migration: the source ends"):
        n.same(n.tids_of(n.vm_of(top.records[-1], there.pid)), there.threads(),
               "migration: the source ends, the target stays")
    there.end()


def lives(q, top, how, end):
    top.until(lambda r: n.vm_of(r, q.pid), 10, f"{how}: it is there")
    end(q)
    if top.until(lambda r: not n.vm_of(r, q.pid), 10, f"{how}: its row ends"):
        n.ok(True, f"{how}: its row ends")


def stopped(q, top):
    was = q.threads()
    os.kill(q.pid, signal.SIGSTOP)
    top.settle().skip(3)
    vm = n.vm_of(top.records[-1], q.pid)
    n.same((n.tids_of(vm), {v["state"] for v in vm["vcpus"]} if vm else None, vm and vm["cpu_pct"] < 1),
           (was, {"T"}, True), "SIGSTOP: the VM is there, its threads are stopped")
    os.kill(q.pid, signal.SIGCONT)
    q.qmp("query-status")


def main():
    works, why = has_kvm()
    if not works:
        n.skip("QEMU with KVM", why)
        n.done()
    guests = start()
    top = n.Kvmtop("--event", "ioport,mmio,userexit")
    r = top.until(lambda r: all_there(guests, r), 30, "every QEMU is found, with its vCPUs")
    if r:
        names(guests, r)
        vcpus(guests, r)
        inside(guests, r)
        threads(guests)
        events(guests, top)
        plugging(guests["plug"], top)
        stopped(guests["sandbox"], top)
        migration(top)
        lives(guests["plain"], top, "kill -9", lambda q: os.kill(q.pid, signal.SIGKILL))
        lives(guests["twin1"], top, "quit", lambda q: q.quit())
        lives(guests["daemon"], top, "a daemon's quit", lambda q: q.qmp("quit"))
        n.ok(n.vm_of(top.next(), guests["twin2"].pid), "the other one of its name is there still")
    bad = [x for r in top.end() for x in n.finite(r)]
    n.same((top.status, bad), (0, []), "every figure is possible")
    for q in guests.values():
        q.end()
    n.done()


main()
