#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 60
# beside: yes
"""What kvmtop makes of the recorded hosts in tests/data/roots (ORIGIN there says what they are)."""

import csv
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

ROOTS = os.path.join(n.TOP, "tests/data/roots")
UUID = "8f7c2c1e-1b2d-4c3e-9f00-0000000000"
SCOPE = "/machine.slice/machine-qemu\\x2d%s.scope/libvirt/emulator"

# Of each VM: name, UUID, title, VMM, quota, cgroup; of each of its vCPUs: number, KVM's id, thread, pin.
EXPECTED = {
    "tinyvm-6.18": {
        17876: (("tinyvm-run:17876", None, None, "tinyvm-run", None, "/"),
                [(0, 0, 17879, "0-1"), (1, 3, 17880, "0-1")]),
    },
    "libvirt-9.0-nosystemd": {
        28831: (("instance-000000a1", UUID + "a1", "web-frontend", "qemu", 30,
                 "/machine/qemu-1-instance-000000a1.libvirt-qemu/emulator"),
                [(0, 0, 28839, "0"), (1, 1, 28840, "0-1")]),
        28850: (("db,1 \u6f22", UUID + "db", "The database & more", "qemu", None,
                 "/machine/qemu-2-db1.libvirt-qemu/emulator"), [(0, 0, 28856, "0-1")]),
    },
    "libvirt-9.0-systemd": {
        28121: (("instance-000000a1", UUID + "a1", "Web front & mail", "qemu", 30,
                 SCOPE % r"1\x2dinstance\x2d000000a1"), [(0, 0, 28825, "0"), (1, 1, 28828, "0-1")]),
        28883: (("db,1 \u6f22-b", UUID + "db", "The database & more", "qemu", None,
                 SCOPE % r"2\x2ddb1\x2db"), [(0, 0, 28890, "0-1")]),
    },
}
# Threads of a VM that are not its vCPUs: name and role, in order of names.
THREADS = {
    "libvirt-9.0-nosystemd": [("IO iothread1", "vmm"), ("IO iothread2", "vmm"), ("IO mon_iothread", "vmm"),
                              ("kvm-nx-lpage-re", "helper"), ("kvm-pit/28831", "helper"),
                              ("qemu-system-x86", "vmm"), ("qemu-system-x86", "vmm")],
    "libvirt-9.0-systemd": [("IO iothread1", "vmm"), ("IO iothread2", "vmm"), ("IO mon_iothread", "vmm"),
                            ("kvm-nx-lpage-re", "helper"), ("qemu-system-x86", "vmm"), ("qemu-system-x86", "vmm")],
}


def batch(root, *args):
    p = n.run("-b", "-n", "2", "-d", "0.1", "--root", os.path.join(ROOTS, root), *args)
    n.same((p.returncode, p.stderr), (0, ""), f"{root} {' '.join(args)}: it ends well and says nothing")
    return p.stdout


def main():
    for root, expected in EXPECTED.items():
        record = json.loads(batch(root, "--format", "json").splitlines()[-1])
        text = batch(root, "--format", "csv", "--table", "vcpu", "--fields", "tid,pin")
        pin = {int(r["tid"]): r["pin"] for r in csv.DictReader(text.splitlines())}
        n.same({vm["pid"] for vm in record["vms"]}, set(expected), f"{root}: its VMs, and no others")
        for vm in record["vms"]:
            want = expected.get(vm["pid"])
            n.same((tuple(vm[f] for f in ("name", "uuid", "title", "vmm", "quota_pct", "cgroup")),
                    [(v["vcpu"], v["kvm_id"], v["tid"], pin.get(v["tid"])) for v in vm["vcpus"]]), want,
                   f"{root}: {vm['name']} is as recorded")
    for root, want in THREADS.items():
        text = batch(root, "--format", "csv", "--table", "thread", "-M", "instance-000000a1")
        got = {r["tid"]: (r["comm"], r["role"]) for r in csv.DictReader(text.splitlines())}
        n.same(sorted(got.values()), want,
               f"{root}: the VM's other threads")
    n.done()


main()
