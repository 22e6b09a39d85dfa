#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 300
"""In the lab on the patched kernel (kernel-support/boot.sh): a vCPU's file pmu in debugfs.

What the file says of a guest that uses no counter (soft_pmu.py has those that do), and that it can be read all the
time while vCPUs run, are made and go away, without a word in the kernel's log.
"""

import glob
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import native as n  # noqa: E402
from patience import DEBUG_KERNEL
import soft_pmu as s  # noqa: E402

KEYS = ["format", "enabled", "version", "gp", "fixed", "gp_width", "fixed_width", "global_ctrl",
        "global_status", "fixed_ctr_ctrl", "soft"]
BAD = ("WARNING", "BUG:", "Oops", "general protection", "refcount", "hung task")


def files(pid="*"):
    return sorted(glob.glob(os.path.join(n.DEBUGFS, f"kvm/{pid}-*/vcpu*/pmu")))


def words(line):
    """{key: value} of one line."""
    return dict(w.split("=") for w in line.split())


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def kernel_log():
    return n.sh("dmesg")


def one_guest():
    g = n.Guest("-c", 2, "spin:inf").go()
    found = files(g.pid)
    n.same([os.path.basename(os.path.dirname(p)) for p in found], ["vcpu0", "vcpu1"], "a file for each vCPU")
    for path in found:
        text = read(path)
        first = words(text.splitlines()[0])
        n.same(list(first), KEYS, f"{os.path.basename(os.path.dirname(path))}: the keys of the first line")
        n.same(first["format"], "1", "and the format's number")
        n.same(len(text.splitlines()), 1 + int(first["gp"]) + int(first["fixed"]), "a line for each counter")
        pmu = os.path.exists("/sys/bus/event_source/devices/cpu")
        n.ok(pmu or (first["enabled"], first["soft"]) == ("1", "1"), "no PMU on the host: the guest's is soft", text)
    n.same(os.stat(found[0]).st_mode & 0o222, 0, "nobody writes to it")
    g.stop()
    n.same(files(g.pid), [], "it goes with its VM")


def watch(path, reads):
    """Many reads of one file, opened once; whether each was a whole one. OSError: it went away."""
    fd = os.open(path, os.O_RDONLY)
    try:
        for _ in range(100):
            if not os.pread(fd, 4096, 0).startswith(b"format=1 "):
                return False
            reads[0] += 1
        return True
    finally:
        os.close(fd)


def churn():
    """VMs that live for a moment: one whose guests use no counter, one whose guest starts and stops them."""
    g = n.Guest("-c", 2, "-l", 50, "out:1").go()
    g.wait(60)
    if os.path.exists(s.EVENTS):
        s.run(" ".join([s.count(s.CYCLES), s.count(s.EXITS, 1), s.count(s.USERSPACE, 2), "spin:20000", "out:20",
                        "rdpmc:0 rdpmc:1"] * 20))


def readers_and_deaths():
    """Guests come and go under readers that never pause."""
    stop, reads, gone, odd = threading.Event(), [0], [0], []

    def reader():
        while not stop.is_set():
            for path in files():
                try:
                    if not watch(path, reads):
                        odd.append(path)
                except OSError:
                    gone[0] += 1

    threads = [threading.Thread(target=reader) for _ in range(2)]
    for t in threads:
        t.start()
    wanted, limit = (100000, 3000) if DEBUG_KERNEL else (10000, 200)
    end, lives = time.monotonic() + limit, 0
    while (left := end - time.monotonic()) > 0 and (reads[0] < wanted or lives < 5):
        churn()
        lives += 1
    stop.set()
    for t in threads:
        t.join()
    n.say(f"{lives} times two VMs, {reads[0]} reads, {gone[0]} of a file that just went, {max(left, 0):.0f} s left")
    n.ok(lives >= 5 and reads[0] >= wanted, f"vCPUs came and went under {wanted} reads", (lives, reads))
    n.same(odd, [], "each read was a whole one, or an error")


def main():
    before = kernel_log()
    one_guest()
    if os.path.exists(s.EVENTS):
        s.allow(s.ALL)
    readers_and_deaths()
    if os.path.exists(s.EVENTS):
        s.allow("none")
    log = kernel_log()
    new = [line for line in log[len(os.path.commonprefix((before, log))):].splitlines() if any(b in line for b in BAD)]
    n.same(new, [], "nothing in the kernel's log")
    n.done()


main()
