#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 120
"""In the lab on the patched kernel (kernel-support/boot.sh): a vCPU's file pmu in debugfs.

What the file says of a guest that uses no counter (soft_pmu.py has those that do), and that it can be read all the
time while vCPUs run, are made and go away, without a word in the kernel's log.
"""

import glob
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

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


def readers_and_deaths():
    """Guests come and go under readers that never pause."""
    stop, reads, gone, odd = threading.Event(), [0], [0], []

    def reader():
        while not stop.is_set():
            for path in files():
                try:
                    if not read(path).startswith("format=1 "):
                        odd.append(path)
                    reads[0] += 1
                except OSError:  # it went away meanwhile
                    gone[0] += 1

    threads = [threading.Thread(target=reader) for _ in range(2)]
    for t in threads:
        t.start()
    end, lives = time.monotonic() + 25, 0
    while time.monotonic() < end:
        g = n.Guest("-c", 2, "-l", 50, "out:1").go()
        g.wait(60)
        lives += 1
    stop.set()
    for t in threads:
        t.join()
    n.say(f"{lives} VMs, {reads[0]} reads, {gone[0]} of a file that just went")
    n.ok(lives > 3 and reads[0] > 100, "vCPUs came and went under readers", (lives, reads))
    n.same(odd, [], "each read was a whole one, or an error")


def main():
    before = kernel_log()
    one_guest()
    readers_and_deaths()
    log = kernel_log()
    new = [line for line in log[len(os.path.commonprefix((before, log))):].splitlines() if any(b in line for b in BAD)]
    n.same(new, [], "nothing in the kernel's log")
    n.done()


main()
