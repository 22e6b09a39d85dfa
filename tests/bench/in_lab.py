#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Inside the lab (tests/lab/run.sh): what watching costs where kvm_entry and kvm_exit are real.

One guest does nothing but exits that it counts, unwatched and under each watcher in turn, each on a
terminal of its own as somebody would use it. The first seconds, in which a watcher finds its guest and the
emulation translates the watcher's code, are not measured. Prints rows as JSON for tests/bench/bench.py.
    in_lab.py [KVM_STAT]   the path of the kernel's kvm_stat, where there is one
"""

import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native
import procs

ROUNDS = 3
FIRST, WINDOW = 3, 8  # seconds
LOOP = ["-m", "user", "-l", "inf", "out:100 cpuid:120"]


def watchers(kvm_stat):
    """`exits`, `stream`: with exits alone, as perf has them, counted in the kernel and taken one by one; kvmtop
    samples what the CPUs run besides."""
    kvmtop = f"{native.KVMTOP} --max-overhead 0"
    found = {"none": None, "kvmtop": kvmtop, "exits": f"{kvmtop} --freq 0 --events-by bpf",
             "stream": f"{kvmtop} --freq 0 --events-by perf", "perf": "perf kvm stat live"}
    if kvm_stat:
        found["kvm_stat"] = f"/usr/bin/python3 {kvm_stat} -t"
    return found


def start(command):
    """(its process on a terminal, the watcher's own pid); the terminal's input never says anything."""
    quiet, _ = os.pipe()
    p = native.child(["script", "-qfec", f"exec {command}", "/dev/null"], stdin=quiet, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL, cwd="/tmp",  # perf live makes a file where it is
                     env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"})
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            return p, native.child_of(p.pid)
        except (IndexError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"{command} does not start")


def settled(pid):
    """Until it took little CPU for three seconds on end: it has started and waits for events. One would not do: a
    watcher that starts also waits, for the kernel to attach what it asked for."""
    end, before, quiet = time.monotonic() + 90, procs.cpu_ms(pid), 0
    while time.monotonic() < end and quiet < 3:
        time.sleep(1)
        now = procs.cpu_ms(pid)
        quiet = quiet + 1 if now - before < 300 else 0
        before = now


def one(command):
    """(the guest's exits a second, the watcher's CPU in us an exit)."""
    p, pid = start(command) if command else (None, None)
    if pid:
        settled(pid)
    guest = native.Guest(*LOOP)
    begin = time.monotonic()
    guest.go()
    time.sleep(FIRST)
    before, since = procs.cpu_ms(pid) if pid else 0, time.monotonic()
    time.sleep(WINDOW)
    used, window = procs.cpu_ms(pid) - before if pid else 0, time.monotonic() - since
    counts = guest.stop()
    rate = sum(c["port_out"] + c["cpuid"] for c in counts) / (time.monotonic() - begin)
    if p:
        os.kill(pid, 15)
        p.wait(60)
    return rate, used * 1000 / (rate * window)


def main():
    commands = watchers(sys.argv[1] if len(sys.argv) > 1 else None)
    rate, cpu = ({w: [] for w in commands} for _ in range(2))
    for _ in range(ROUNDS):
        for who, command in commands.items():
            r, c = one(command)
            rate[who].append(r)
            cpu[who].append(c)
            print(f"# {who}: {r:.0f} exits/s, {c:.1f} us an exit", flush=True)
    took = {w: [1e6 / r for r in rate[w]] for w in rate}  # us an exit of the guest's
    added = {w: [t - u for t, u in zip(took[w], took["none"])] for w in rate}  # within one round
    rows = [("CPU of the watcher, an exit [us]", "kvmtop", "perf", cpu, 0.5),
            ("  with exits alone, as perf has them [us]", "exits", "perf", cpu, 0.5),
            ("guest's time an exit, watched [us]", "kvmtop", "perf", took, 1.05),
            ("  against nobody watching", "kvmtop", "none", took, None),
            ("  perf kvm stat live's against nobody", "perf", "none", took, None),
            ("what watching adds to an exit, counted", "exits", "perf", added, 0.2),
            ("  taken one by one", "stream", "perf", added, None)]
    if "kvm_stat" in commands:
        rows[3:3] = [("  CPU beside kvm_stat", "kvmtop", "kvm_stat", cpu, None),
                     ("  guest's time beside kvm_stat", "kvmtop", "kvm_stat", took, None)]
        rows.append(("  counted, beside kvm_stat", "exits", "kvm_stat", added, None))
    names = {"perf": "perf kvm live", "none": "unwatched", "kvm_stat": "kvm_stat -t"}
    for what, ours, theirs, table, bound in rows:
        print(json.dumps({"what": f"lab: {what}".replace(" [us]", ""), "unit": "us", "ours": table[ours],
                          "peer": names[theirs], "theirs": table[theirs], "ratio": bound}), flush=True)


main()
