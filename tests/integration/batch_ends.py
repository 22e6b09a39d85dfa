#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 250
# beside: yes
"""kvmtop --batch as a program: hosts made of files, its rhythm, readers that go away or are slow, errors."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

RECORDED = os.path.join(n.TOP, "tests/data/roots/tinyvm-6.18")


def start(*args, stdout=subprocess.PIPE):
    return n.child([n.KVMTOP, "--batch", *args], stdin=subprocess.DEVNULL, stdout=stdout,
                   stderr=subprocess.PIPE)


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def large_host():
    """Finding 1,500 VMs takes longer than an interval: the first record has them all, with figures. Under a sanitizer a third
    of them does: more is not found in the time that a first record waits."""
    size = 500 if n.SANITIZED else 1500
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMP", "/tmp")) as root:
        tail = " 1 0 0 0 9 0 0 0 20 0 1 0 5000 1 4 " + "0 " * 19 + "9 0 0 0 0 0 0 0 0 0\n"
        for pid in range(1000, 1000 + 2 * size, 2):
            tid, proc = pid + 1, f"{root}/proc/{pid}"
            put(f"{proc}/stat", f"{pid} (qemu-system-x86) S 1 1 1 0 -1 4194304{tail}")
            put(f"{proc}/cmdline", f"qemu-system-x86_64\0-name\0vm{pid}\0")
            put(f"{proc}/task/{pid}/stat", f"{pid} (qemu-system-x86) S 1 1 1 0 -1 4194304{tail}")
            put(f"{proc}/task/{tid}/stat", f"{tid} (CPU 0/KVM) S 1 1 1 0 -1 4194368{tail}")
            put(f"{proc}/status", f"Name:\tq\nTgid:\t{pid}\n")
            os.mkdir(f"{proc}/fd")
            os.symlink("anon_inode:kvm-vm", f"{proc}/fd/9")
            put(f"{root}/sys/kernel/debug/kvm/{pid}-9/vcpu0/pid", f"{tid}\n")
        p = n.run("-b", "-n", "1", "-d", "0.1", "--format", "json", "--root", root)
        vms = json.loads(p.stdout)["vms"]
        n.same((p.returncode, p.stderr, len(vms)), (0, "", size), "a large host: the first record has every VM")
        n.same([vm["name"] for vm in vms if len(vm["vcpus"]) != 1 or vm["cpu_pct"] is None], [],
               "a large host: and each has its vCPU and figures")
        p = n.run("-b", "-n", "1", "-d", "0.1", "--format", "csv", "--table", "vm", "-M", f"vm{998 + 2 * size}", "--root", root)
        n.same(len(p.stdout.splitlines()), 2, "a large host: one that is asked for by name is found at once")


def pid_is_used_again():
    """A VM ends and another's process and vCPU thread get its numbers, with counters that begin anew."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMP", "/tmp")) as root:
        def vm(name, start, ticks):
            tail = f" 1 0 0 0 {ticks} {ticks // 3} 0 0 20 0 2 0 {start} 1 4 {'0 ' * 19}{ticks // 2} 0 0 0 0 0 0 0 0 0\n"
            put(f"{root}/proc/1000/cmdline", f"qemu-system-x86_64\0-name\0{name}\0")
            put(f"{root}/proc/1000/status", "Name:\tq\nTgid:\t1000\n")
            for tid, comm in ((1000, "qemu-system-x86"), (1001, "CPU 0/KVM")):
                put(f"{root}/proc/1000/task/{tid}/schedstat", f"{ticks * 10000000} {ticks * 5000000} {ticks}\n")
                put(f"{root}/proc/1000/task/{tid}/stat", f"{tid} ({comm}) S 1 1 1 0 -1 4194304{tail}")
            put(f"{root}/proc/1000/stat", f"1000 (qemu-system-x86) S 1 1 1 0 -1 4194304{tail}")

        vm("first", 5000, 100000)
        os.mkdir(f"{root}/proc/1000/fd")
        os.symlink("anon_inode:kvm-vm", f"{root}/proc/1000/fd/9")
        top = n.Kvmtop("--root", root).skip(4)
        before = top.records[-1]["vms"]
        vm("second", 9000, 3)
        top.until(lambda r: [x["name"] for x in r["vms"]] == ["second"] and r["vms"][0]["cpu_pct"] is not None, 30,
                  "a pid that is used again: the new VM takes the old one's place, with figures of its own")
        r = top.end()
    n.same([x["name"] for x in before], ["first"], "a pid that is used again: the VM before")
    n.ok(len({x["vm_id"] for y in r for x in y["vms"]}) == 2, "a pid that is used again: two VMs",
         [[x["vm_id"] for x in y["vms"]] for y in r])
    n.same([b for x in r for b in n.finite(x)], [], "a pid that is used again: no figure is absurd")


def rhythm():
    p = start("-d", "1", "--format", "json")
    began = time.monotonic()
    first = json.loads(p.stdout.readline())
    took = time.monotonic() - began
    n.ok(0.9 < first["interval_s"] < 1.3, "the first record is of one interval", first["interval_s"])
    n.ok(took < 30, "and comes after it", took)
    n.ok(json.loads(p.stdout.readline())["interval_s"] > 0.5, "the next one as well")
    for sig, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")):
        if sig == signal.SIGINT:
            p = start("-d", "0.1", "--format", "json")
            p.stdout.readline()
        p.send_signal(sig)
        rest, err = p.communicate(timeout=20)
        n.same((p.returncode, err), (0, b""), f"{name}: ends well and says nothing")
        n.ok(rest == b"" or rest.endswith(b"}\n"), f"{name}: after a whole record", rest[-80:])


def gone_readers():
    p = subprocess.run(["bash", "-o", "pipefail", "-c",
                        f"'{n.KVMTOP}' -b -d 0.1 --format csv | head -n 2 | wc -l"],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    n.same((p.stdout.strip(), p.stderr, p.returncode), ("2", "", 0), "| head ends it quietly")
    p = start("-d", "0.1", "--when", "cpu_pct<0")
    p.stdout.close()
    try:
        n.same(p.wait(20), 0, "a reader that went away is noticed also when nothing is to be written")
    except subprocess.TimeoutExpired:
        n.ok(False, "a reader that went away is noticed also when nothing is to be written")
        p.kill()
    p = start("-d", "0.1", "--format", "json")
    time.sleep(3)  # nobody reads: the pipe is full by then, or soon
    p.send_signal(signal.SIGTERM)
    try:
        n.same(p.wait(20), 0, "SIGTERM ends it also while nobody reads")
    except subprocess.TimeoutExpired:
        n.ok(False, "SIGTERM ends it also while nobody reads")
        p.kill()
    p.stdout.close()


def slow_reader():
    p = start("-d", "0.1", "--format", "json", "--event", "all")
    p.stdout.readline()
    time.sleep(8 if not n.SANITIZED else 15)  # the pipe fills, then the intervals that may wait
    threading.Timer(1, p.send_signal, (signal.SIGTERM,)).start()
    rest, err = p.communicate(timeout=30)
    n.ok(n.every(json.loads(x)["schema"] == 1 for x in rest.splitlines()), "a slow reader gets whole records")
    n.ok(b"intervals were skipped" in err, "and is told of those that it missed", err)


def errors():
    with open("/dev/full", "wb") as full:
        p = start("-d", "0.1", "-n", "3", stdout=full)
        _, err = p.communicate(timeout=60)
    n.ok(p.returncode == 1 and b"No space left" in err and err.count(b"\n") == 1,
         "a full disk: status 1 and one line", (p.returncode, err))
    p = subprocess.run(["bash", "-c", f"exec '{n.KVMTOP}' -b -d 0.1 -n 2 >&-"], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=60, check=False)
    n.ok(p.returncode == 1 and p.stderr.count("\n") == 1, "no standard output: status 1 and one line",
         (p.returncode, p.stderr))
    p = n.run("-b", "-n", "1", "-d", "x")
    n.ok(p.returncode == 2 and p.stderr.count("\n") == 1 and not p.stdout, "wrong usage: status 2",
         (p.returncode, p.stderr))
    p = n.run()
    n.ok(p.returncode == 1 and "--batch" in p.stderr and p.stderr.count("\n") == 1,
         "without a terminal the full screen says how to go on", (p.returncode, p.stderr))
    p = n.run("-b", "-n", "1", "-d", "0.1", "--root", "/nonexistent")
    n.ok(p.returncode == 2 and p.stderr.count("\n") == 1, "no such root: status 2 and one line",
         (p.returncode, p.stderr))
    p = n.run("-b", "-n", "2", "-d", "0.1", "-M", "no such VM")
    n.ok(p.returncode == 0 and p.stderr.count("\n") == 1, "a VM that is not there is told once", p.stderr)
    copy = os.path.join(n.TOP, "tests/data/symbols/kallsyms-6.1.txt")
    p = n.run("-b", "-n", "2", "-d", "0.1", "--guestkallsyms", f"nosuchvm={copy}", "--root", RECORDED)
    n.ok(p.returncode == 0 and "'nosuchvm'" in p.stderr and p.stderr.count("\n") == 1,
         "symbols for a VM that is not there are told once", p.stderr)
    p = n.run("-b", "-n", "1", "-d", "0.1", "--table", "exit", "--fields", "name", "--root", RECORDED)
    n.ok(p.returncode != 0 and "the VM's name is vm" in p.stderr and p.stderr.count("\n") == 1,
         "a VM's name has another id in other tables", p.stderr)
    p = n.run("-b", "-n", "2", "-d", "0.1", "--vcpu", "77", "--root", RECORDED)
    n.ok(p.returncode == 0 and "--vcpu" in p.stderr and p.stderr.count("\n") == 1,
         "so is a vCPU that no VM has", p.stderr)
    p = n.run("-b", "-n", "2", "-d", "0.1", "--vcpu", "0", "--root", RECORDED)
    n.same((p.returncode, p.stderr), (0, ""), "and one that is there is not")


def main():
    large_host()
    pid_is_used_again()
    rhythm()
    gone_readers()
    slow_reader()
    errors()
    n.done()


main()
