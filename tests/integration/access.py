#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, cmd:setpriv
# limit: 120
"""A missing right or a missing source: the rest works, and what is missing is said with its cure."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
          "--bounding-set=-all", "--no-new-privs")


def words(record):
    """Everything that the record says about its sources."""
    return "\n".join(f"{s['name']} {s['state']}: {s['why']} | {s['mend']}" for s in record["sources"])


@contextlib.contextmanager
def for_all():
    """A copy of the program that nobody can run: the build may lie where only root can go."""
    with tempfile.TemporaryDirectory(dir="/tmp") as tmp:
        os.chmod(tmp, 0o755)
        copy = shutil.copy(n.KVMTOP, tmp)
        os.chmod(copy, 0o755)
        known = shutil.copy(f"{n.TOP}/tests/lsan.supp", tmp)  # a sanitizer ends where it cannot read it
        os.chmod(known, 0o644)
        before = os.environ.get("LSAN_OPTIONS", "")
        os.environ["LSAN_OPTIONS"] = before.replace(f"{n.TOP}/tests/lsan.supp", known)
        yield copy
        os.environ["LSAN_OPTIONS"] = before


def doctor(wrap=(), program=n.KVMTOP):
    p = subprocess.run([*wrap, program, "doctor"], capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, timeout=60, check=False)
    return p.stdout + p.stderr


def not_root(g):
    with for_all() as copy:
        top = n.Kvmtop(wrap=NOBODY, program=copy).skip(8)  # guessing takes a while
        r = top.end()
        said = doctor(NOBODY, copy)
    n.same(top.status, 0, "not root: it runs and ends well")
    n.ok(n.vm_of(r[-1], g.pid), "not root: the VM is found all the same, by its vCPU's thread",
         [vm["name"] for vm in r[-1]["vms"]])
    vm = n.vm_of(r[-1], g.pid) or {}
    n.ok((vm.get("cpu_pct") or 0) > 0, "not root: and its CPU time is known",
         vm.get("cpu_pct"))
    n.ok(f"sudo {copy}" in words(r[-1]) and "sudo kvmtop" not in words(r[-1]),
         "not root: the sources say what mends it, by a path that is there", words(r[-1]))
    n.ok(f"sudo {copy}" in said and "sudo kvmtop" not in said, "not root: so does doctor", said)
    seen = subprocess.run([*NOBODY, "head", "-n", "9", "/proc/kallsyms"], capture_output=True, text=True, check=True).stdout
    n.same("or give it CAP_SYSLOG" in said, not re.search("^0*[1-9a-f]", seen, re.M),
           "not root: what brings names of the host's kernel, where they are hidden")
    with for_all() as copy:
        said = doctor((*NOBODY, "env", f"PATH=/nonexistent:{os.path.dirname(copy)}:/usr/bin"), "kvmtop")
    n.ok("sudo kvmtop" in said and copy not in said, "in PATH its name will do", said)
    n.ok(not vm.get("exits") and vm.get("exits_per_s") is None,
         "not root: exits are not known, not 0", vm.get("exits_per_s"))


def no_tracefs(g):
    n.unmount(n.TRACEFS)
    n.unmount(n.DEBUGFS)  # it brings a tracefs of its own along
    top = n.Kvmtop("--event", "ioport").skip(3)
    r = top.end()
    n.same(top.status, 0, "no tracefs, no debugfs: it runs and ends well")
    n.ok("mount -t tracefs" in words(r[-1]), "no tracefs: the cure is named", words(r[-1]))
    n.ok("mount -t debugfs" in words(r[-1]), "no debugfs: the cure is named", words(r[-1]))
    vm = n.vm_of(r[-1], g.pid)
    n.ok(vm and vm["cpu_pct"] > 0, "no tracefs, no debugfs: the VM and its CPU time are there",
         [x["name"] for x in r[-1]["vms"]])
    n.ok(vm and len(vm["vcpus"]) == 1 and vm["vcpus"][0]["kvm_id"] == 0,
         "no debugfs: the vCPU is known by its descriptor", vm and vm["vcpus"])
    said = doctor()
    n.ok("mount -t tracefs" in said and "mount -t debugfs" in said, "doctor names both cures", said)
    n.sh("mount", "-t", "tracefs", "tracefs", n.TRACEFS)
    top = n.Kvmtop("--event", "ioport")
    what = "no debugfs: events are counted all the same"
    if top.until(lambda r: n.only(n.counted([r], g.pid), "ioport"), 10, what):
        n.ok(True, what)
    top.end()
    n.sh("mount", "-t", "debugfs", "debugfs", n.DEBUGFS)


def posing_as_debugfs(g):
    """Another file system at debugfs's place is not believed."""
    n.unmount(n.DEBUGFS)
    n.sh("mount", "-t", "tmpfs", "tmpfs", n.DEBUGFS)
    os.makedirs(f"{n.DEBUGFS}/kvm/1-3/vcpu0")
    with open(f"{n.DEBUGFS}/kvm/1-3/vcpu0/pid", "w", encoding="ascii") as f:
        f.write("1\n")
    r = n.Kvmtop().skip(2).end()
    n.ok(not n.vms_of(r[-1], 1) and n.vm_of(r[-1], g.pid),
         "a file system that poses as debugfs makes no VM",
         [(vm["pid"], vm["name"]) for vm in r[-1]["vms"]])
    n.unmount(n.DEBUGFS)
    n.sh("mount", "-t", "debugfs", "debugfs", n.DEBUGFS)


def hidepid(g):
    n.sh("mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc")
    try:
        r = n.Kvmtop().skip(2).end()
        n.ok(n.vm_of(r[-1], g.pid), "hidepid: root sees the VM", words(r[-1]))
        with for_all() as copy:
            top = n.Kvmtop(wrap=NOBODY, program=copy).skip(2)
            r = top.end()
        n.same(top.status, 0, "hidepid, not root: it runs and ends well")
        n.ok("hidepid" in words(r[-1]), "hidepid, not root: it says that others are hidden",
             words(r[-1]))
    finally:
        n.sh("umount", "/proc")


def in_a_container():
    """kvmtop in a pid namespace that has no VM: the figures of events would be another's."""
    top = n.Kvmtop("--event", "ioport", "-n", 3,
                   wrap=("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"))
    r = top.rest()
    n.same(top.status, 0, "in a pid namespace: it runs and ends well")
    n.ok("namespace" in words(r[-1]), "in a pid namespace: it says so", words(r[-1]))
    said = doctor(("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"))
    n.same([x for x in said.splitlines() if x.startswith("ok") and
            x.split()[1] in ("kvm_events", "vcpu_events", "guest_sampling", "waits", "vpmu")], [],
           "in a pid namespace: doctor says of none of the events' collectors that it works")


def a_vm_in_our_container():
    """The events carry the host's thread numbers: none of them may be taken for a thread of ours."""
    top = n.Kvmtop("--event", "ioport,userexit", "-n", 8,  # another VM runs outside
                   wrap=("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                         '"$0" -n -r 2000 -l inf "spin:400 out:10" >/dev/null & exec "$@"', n.TINYVM))
    r = top.rest()
    mine = [vm for x in r for vm in x["vms"] if (vm["cpu_pct"] or 0) > 0]
    n.same(len({vm["vm_id"] for vm in mine}), 1, "in a pid namespace: its VM has CPU time")
    n.same([vm["name"] for x in r for vm in x["vms"] if not vm["vcpus"]], [],
           "in a pid namespace: no VM is made of what others' threads do")
    n.same({(vm["exits_per_s"], len(vm["exits"])) for vm in mine}, {(None, 0)},
           "in a pid namespace: exits are not known, not 0")
    n.ok(any(s["name"] == "kvm_events" and s["state"] == "off" and "--pid=host" in (s["mend"] or "")
             for s in r[-1]["sources"]), "in a pid namespace: the source says so, and what mends it", words(r[-1]))


def without_cap_bpf(g):
    """Root that may see events and may load no programs, as a container's: each event is taken instead."""
    wrap = ("setpriv", "--bounding-set=-bpf,-sys_admin")
    top = n.Kvmtop("--event", "ioport", "-F", "0", wrap=wrap)
    r = top.until(lambda x: n.counted([x], g.pid).get(("ioport", "0x3f8:POUT")), 60, "without CAP_BPF: events are counted")
    top.end()
    n.same(r and r["host"]["events_by"], "perf", "without CAP_BPF: it falls back to taking each event")
    n.ok("BPF programs may not be loaded" in words(top.records[-1]), "without CAP_BPF: and says why", words(top.records[-1]))
    said = doctor(wrap)
    n.ok("CAP_BPF" in said, "without CAP_BPF: so does doctor, and what mends it", said)
    top = n.Kvmtop("--event", "ioport", "--events-by", "bpf", "-F", "0", wrap=wrap)
    r = top.until(lambda x: n.vms_of(x, g.pid) and any(s["name"] == "kvm_events" and s["state"] == "off" and
                                                       "CAP_BPF" in (s["mend"] or "") for s in x["sources"]),
                  60, "without CAP_BPF, and told to count in the kernel: that is said")
    n.same([vm["exits"] for vm in n.vms_of(r, g.pid)] if r else None, [[]], "and nothing else is done in its place")
    top.end()


def few_descriptors():
    """Less than a vCPU needs, and without the right to raise the limit."""
    g = n.Guest("-c", 40, "-l", "inf", "out:1 sleep:20").go()
    top = n.Kvmtop(wrap=("prlimit", "--nofile=48:48", "setpriv", "--bounding-set=-sys_resource"))
    top.skip(3)
    r = top.end()
    vm = n.vm_of(r[-1], g.pid)
    n.same(top.status, 0, "48 descriptors: it runs and ends well")
    n.same(len(vm["vcpus"]) if vm else None, 40, "48 descriptors: all 40 vCPUs are there")
    n.ok(vm and n.every(v["cpu_pct"] is not None for v in vm["vcpus"]),
         "48 descriptors: each vCPU's CPU time is known", words(r[-1]))
    g.stop()
    top = n.Kvmtop(wrap=("prlimit", "--nofile=20:20", "setpriv", "--bounding-set=-sys_resource"))
    r = top.skip(2).end()
    n.same(top.status, 0, "20 descriptors: it runs and ends well")
    said = words(r[-1])
    n.ok("ulimit -n" in said and "KVM is not loaded" not in said and "mount -t debugfs" not in said,
         "20 descriptors: that is what it says, and nothing else is said to be missing", said)


def main():
    g = n.Guest("-r", 2000, "-l", "inf", "spin:400 out:10").go()
    not_root(g)
    no_tracefs(g)
    posing_as_debugfs(g)
    hidepid(g)
    in_a_container()
    a_vm_in_our_container()
    without_cap_bpf(g)
    g.stop()
    few_descriptors()
    n.done()


main()
