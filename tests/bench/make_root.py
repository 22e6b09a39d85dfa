#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes a tree for --root with many VMs: make_root.py DIR VMS VCPUS [OTHERS]

The files have the form of a 6.18 host's (52 fields in stat, three in schedstat,
debugfs folders kvm/<pid>-<fd>/vcpu<N>/pid) under libvirt: each vCPU has a cgroup of
its own. One vCPU in eight is runnable, the rest sleep. DIR should be on a tmpfs.
OTHERS is the number of processes that are no VM (default 200).
"""

import os
import sys

BOOT_TICKS = 1000000


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def stat_line(pid, comm, state, nthreads, start, cpu, ticks):
    f = [pid, f"({comm})", state, 1, pid, pid, 0, -1, 4194560, 100, 0, 0, 0]
    f += [ticks, ticks // 10, 0, 0, 20, 0, nthreads, 0, start, 4 << 30, 100000]
    f += [18446744073709551615] + [0] * 13
    f += [cpu, 0, 0, 0, ticks // 2, 0] + [0] * 7 + [0]
    return " ".join(str(x) for x in f[:52]) + "\n"


def task(path, tid, comm, pid, nthreads, start, cpu, ticks, state="S"):
    os.makedirs(path)
    write(f"{path}/stat", stat_line(tid, comm, state, nthreads, start, cpu, ticks))
    write(f"{path}/schedstat", f"{ticks * 10000000} {ticks * 1000000} {ticks * 3}\n")
    write(f"{path}/comm", comm + "\n")
    write(f"{path}/status", f"Name:\t{comm}\nTgid:\t{pid}\nPid:\t{tid}\nCpus_allowed_list:\t0-63\n")


def cgroup(root, path):
    where = f"{root}/sys/fs/cgroup{path}"
    os.makedirs(where)
    write(f"{where}/cpu.stat", "usage_usec 5000000\nuser_usec 4000000\nsystem_usec 1000000\n"
                               "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n")
    write(f"{where}/cpu.max", "max 100000\n")


def vm(root, n, pid, vcpus):
    p = f"{root}/proc/{pid}"
    name = f"vm{n:04d}"
    nthreads = vcpus + 1
    task(f"{p}/task/{pid}", pid, "qemu-system-x86", pid, nthreads, BOOT_TICKS + n, n % 64, 100)
    for f in ("stat", "schedstat", "comm", "status"):
        os.link(f"{p}/task/{pid}/{f}", f"{p}/{f}")
    args = ["qemu-system-x86_64", "-name", f"guest={name},debug-threads=on", "-uuid",
            f"00000000-0000-4000-8000-{n:012d}", "-smp", str(vcpus)]
    write(f"{p}/cmdline", "\0".join(args) + "\0")
    scope = f"/machine.slice/machine-qemu\\x2d{n}\\x2d{name}.scope"
    for group in ("", "/libvirt", "/libvirt/emulator"):
        cgroup(root, scope + group)
    write(f"{p}/cgroup", f"0::{scope}/libvirt/emulator\n")
    os.link(f"{p}/cgroup", f"{p}/task/{pid}/cgroup")
    os.makedirs(f"{p}/fd")
    os.symlink("/dev/kvm", f"{p}/fd/9")
    os.symlink("anon_inode:kvm-vm", f"{p}/fd/10")
    dbg = f"{root}/sys/kernel/debug/kvm/{pid}-10"
    for v in range(vcpus):
        tid = pid + 1 + v
        task(f"{p}/task/{tid}", tid, f"CPU {v}/KVM", pid, nthreads, BOOT_TICKS + n, v % 64, 500 + v,
             "S" if v % 8 else "R")
        cgroup(root, f"{scope}/libvirt/vcpu{v}")
        write(f"{p}/task/{tid}/cgroup", f"0::{scope}/libvirt/vcpu{v}\n")
        os.symlink(f"anon_inode:kvm-vcpu:{v}", f"{p}/fd/{11 + v}")
        os.makedirs(f"{dbg}/vcpu{v}")
        write(f"{dbg}/vcpu{v}/pid", f"{tid}\n")


def host(root):
    line = " 1000 0 500 100000 10 5 5 0 800 0"
    text = "cpu " + line + "\n" + "".join(f"cpu{c}{line}\n" for c in range(64))
    write(f"{root}/proc/stat", text + f"btime 1700000000\nprocesses {BOOT_TICKS}\n")
    write(f"{root}/proc/loadavg", "1.00 1.00 1.00 1/100 1\n")
    write(f"{root}/proc/meminfo", "MemTotal: 263000000 kB\nMemAvailable: 100000000 kB\n")
    os.makedirs(f"{root}/sys/devices/system/cpu")
    write(f"{root}/sys/devices/system/cpu/online", "0-63\n")


def main():
    root, vms, vcpus = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    others = int(sys.argv[4]) if len(sys.argv) > 4 else 200
    os.makedirs(f"{root}/proc")
    os.makedirs(f"{root}/sys/kernel/debug/kvm")
    host(root)
    for i in range(others):
        pid = 300 + i
        task(f"{root}/proc/{pid}/task/{pid}", pid, f"daemon{i}", pid, 1, BOOT_TICKS + i, i % 64, 10)
        for f in ("stat", "schedstat", "comm", "status"):
            os.link(f"{root}/proc/{pid}/task/{pid}/{f}", f"{root}/proc/{pid}/{f}")
        write(f"{root}/proc/{pid}/cmdline", f"daemon{i}\0")
        write(f"{root}/proc/{pid}/cgroup", "0::/system.slice/d.service\n")
        os.makedirs(f"{root}/proc/{pid}/fd")
    for n in range(vms):
        vm(root, n, 10000 + n * (vcpus + 4), vcpus)


main()
