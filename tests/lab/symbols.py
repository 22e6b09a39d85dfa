#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 400
"""In the lab (run.sh): samples of guests whose time is known, by symbol.

Our own guest (tests/guests/hotcode.c) spends known shares in known functions. The QEMU guests run
the lab's own kernel, without KASLR, so that the lab's /proc/kallsyms is theirs; what they are busy
with is told by their load, and by perf of the same seconds.
"""

import collections
import datetime
import json
import os
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lab_guests
import native as n

RESULTS = os.environ.get("RESULTS", "/tmp")
TMP = os.environ.get("TEST_TMP", "/tmp")
HOT = os.path.join(n.BUILD, "guests/hotcode")
KALLSYMS, MODULES = (os.path.join(TMP, x) for x in ("kallsyms", "modules"))
GUEST = ("guest-kernel", "guest-user")
# Not kvmtop's 997: timers of one period keep their distance, and one that always comes just behind the other's interrupt
# sees the guest where that let it go on.
PERF_HZ = "1103"


class Hot:
    """hotcode, running; .shares by function."""

    def __init__(self):
        self.p = n.child([HOT, KALLSYMS, MODULES], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        lines = n.Lines(self.p.stdout)
        words = lines.next(20).split()
        self.pid, self.tid = (int(w.partition("=")[2]) for w in words[1:3])
        self.shares = {}
        while (line := lines.next(20)) != "go":
            _, name, share = line.split()
            self.shares[name] = int(share)
        self.shares["[guest 0x400000]"] = self.shares.pop("hot_user")

    def end(self):
        self.p.stdin.close()
        self.p.wait(10)


def keep(name, records):
    with open(os.path.join(RESULTS, f"symbols-{name}.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(r) + "\n" for r in records)


def symbols_of(records, pid):
    """{(domain, symbol): samples} of a VM over all records; of the row `other` the domain is None."""
    total = collections.Counter()
    for r in records:
        for vm in n.vms_of(r, pid):
            for x in vm["symbols"]:
                total[x["domain"], x["symbol"]] += x["samples"]
    return total


def watch(pid, *args, seconds=5, delay=0.5, ready=None):
    """Records of some seconds, from when the VM is there (and `ready` is true of it)."""
    top = n.Kvmtop("--max-overhead", "0", *args, delay=delay)
    found = top.until(lambda r: any((ready or (lambda _: True))(vm) for vm in n.vms_of(r, pid)), 30,
                      "the VM is sampled")
    first = len(top.records)
    if found:
        top.skip(int(seconds / delay))
    top.end()
    return top.records[first:]


def named(vm):
    return any(x["domain"] == "guest-kernel" and not x["reason"] for x in vm["symbols"])


def sampled(vm):
    return bool(vm["samples"])


def error(share, *counts):
    """Three standard errors of a share, or of a difference of two shares, in points."""
    p = share / 100
    return 100 * 3 * sum(p * (1 - p) / max(c, 1) for c in counts) ** 0.5


def domain_samples(records, pid, domain):
    """All of one domain, with those that have no row of their own."""
    return sum(vm["samples"] * (vm[f"{domain}_pct"] or 0) / 100 for r in records for vm in n.vms_of(r, pid))


def shares_among(counts, domains=GUEST):
    got = collections.Counter()
    for (d, s), v in counts.items():
        if d in domains:
            got[s] += v
    return {s: 100 * v / got.total() for s, v in got.items()}


# --- known shares ------------------------------------------------------------------------------
def known_shares():
    g = Hot()
    r = watch(g.pid, "--guestkallsyms", KALLSYMS, "--guestmodules", MODULES, ready=named, seconds=8)
    keep("known", r)
    counts = symbols_of(r, g.pid)
    got = shares_among(counts)
    for name, share in g.shares.items():
        # a machine that is busy with others leaves few samples
        n.near(got.get(name), share, max(3, error(share, counts.total())), f"{name}: {share}% of the guest's samples")
    last = n.vms_of(r[-1], g.pid)[-1]
    rows = {x["symbol"]: x for x in last["symbols"]}
    n.same({x["domain"] for s, x in rows.items() if s.startswith("hot_")}, {"guest-kernel"},
           "what the kernel's symbols name is guest kernel")
    n.same((rows["[guest 0x400000]"]["domain"], rows["[guest 0x400000]"]["domain_guessed"]), ("guest-user", False),
           "the lower half is guest user, for sure")
    n.same((rows["hot_virtio_poll"]["module"], rows["hot_queue_lock"]["module"]), ("hotmod", None),
           "the module's symbol has its module")
    n.same(last["hot_symbol"], "k:hot_queue_lock", "HOT SYMBOL names it")
    # on a busy machine waits for a CPU, or exits that have such waits in them, may be the larger reason
    why = {(vm["why"] or "").split()[0] for x in r for vm in n.vms_of(x, g.pid) if vm["why"]}
    n.ok({w for w in why if ":" in w} <= {"k:hot_queue_lock"}, "and no other symbol is in WHY", why)
    vcpu = last["vcpus"][0]
    n.same(vcpu["hot_symbol"], "k:hot_queue_lock", "the vCPU's too")
    all_ = sum(vm["samples"] for x in r for vm in n.vms_of(x, g.pid))
    seconds = sum(x["interval_s"] for x in r)
    # An emulated clock misses many of its ticks, but it makes none up.
    n.ok(500 < all_ < 1.05 * 997 * seconds, "no more samples than 997 a second", (all_, seconds))
    n.same(sum(x["host"]["sampling_lost"] for x in r), 0, "none is lost")
    g.end()


def without_symbols():
    """Pages, a reason, and the command that brings names; where the halves are not known, a guess."""
    g = Hot()
    r = watch(g.pid, seconds=3, ready=lambda vm: any(x["reason"] == "no symbols of this guest" or
                                                     x["domain"] == "guest-kernel" for x in vm["symbols"]))
    keep("without", r)
    counts = symbols_of(r[2:], g.pid)
    got = shares_among(counts)
    n.near(got.get("[guest 0xffffffff81001000]"), 40, 1 + error(40, counts.total()), "a page of the kernel has its share")
    n.near(got.get("[guest 0x400000]"), 15, 1 + error(15, counts.total()), "a page of user code has its share")
    rows = {x["symbol"]: x for x in n.vms_of(r[-1], g.pid)[-1]["symbols"]}
    n.ok(rows["[guest 0x400000]"]["domain_guessed"], "without symbols the lower half is a guess")
    high = rows["[guest 0xffffffff81001000]"]
    n.ok(high["domain"] == "guest-kernel" and not high["domain_guessed"], "the upper half is the kernel's in any case")
    n.ok(high["reason"], "each has its reason", high)
    text = n.sh(n.KVMTOP, "-b", "-n", "2", "-d", "0.5", "--table", "symbol", "-p", str(g.pid))
    n.ok("[guest_0xffffffff81001000]" in text, "the text format has them too", text)
    g.end()


def of_another_kernel():
    """A kallsyms that is shifted: no name is better than a wrong one."""
    g = Hot()
    shifted = os.path.join(TMP, "shifted")
    with open(KALLSYMS, encoding="ascii") as src, open(shifted, "w", encoding="ascii") as out:
        for line in src:
            addr, rest = line.split(" ", 1)
            out.write(f"{int(addr, 16) + 0x8000000:016x} {rest}")
    top = n.Kvmtop("--max-overhead", "0", "--guestkallsyms", shifted, delay=0.5)
    # not at once: the table is read first, by a thread of its own
    top.until(lambda r: any("another kernel" in (x["reason"] or "") for vm in n.vms_of(r, g.pid) for x in vm["symbols"]
                            if x["domain"] == "guest-kernel"), 60, "it is said why a table of another kernel is not used")
    top.skip(4).end()
    keep("another", top.records)
    why = {x["reason"] or "" for vm in n.vms_of(top.records[-1], g.pid) for x in vm["symbols"] if x["domain"] == "guest-kernel"}
    n.ok(any("another kernel" in w for w in why), "and it stays so", why)
    counts = symbols_of(top.records, g.pid)
    n.same([s for d, s in counts if s.startswith("hot_")], [], "no name of it is used, neither before that nor after")
    g.end()


def throttled():
    """A kernel that allows one sample a clock tick: it throttles, the rate is lowered, and both are said."""
    path = "/proc/sys/kernel/perf_event_max_sample_rate"
    with open(path, encoding="ascii") as f:
        most = f.read()
    g = Hot()
    top = n.Kvmtop("--max-overhead", "0", delay=0.5)
    top.until(lambda r: any(vm["samples"] for vm in n.vms_of(r, g.pid)), 30, "the VM is sampled")
    try:
        with open(path, "w", encoding="ascii") as f:
            f.write("100\n")
        r = top.until(lambda r: r["host"]["sampling_hz"] and r["host"]["sampling_hz"] < 300, 20, "the rate is lowered")
        why = [x for x in (r or {"sources": []})["sources"] if x["name"] == "guest_sampling"]
        n.ok(why and "throttled" in why[0]["why"] and "instead of 997" in why[0]["why"] and why[0]["state"] == "partial",
             "by itself, and it is said why", why)
        r = top.skip(3).records[-1]
        n.ok(any(vm["samples"] for vm in n.vms_of(r, g.pid)), "samples go on", r["host"]["samples"])
    finally:
        with open(path, "w", encoding="ascii") as f:
            f.write(most)
    top.end()
    keep("throttled", top.records)
    g.end()


# --- beside perf -------------------------------------------------------------------------------
def seconds_of(records):
    """(begin, end) of what they cover, by the clock that perf's records have here (perf_record)."""
    offset = time.monotonic() - time.time()
    first, last = (datetime.datetime.fromisoformat(records[i]["time"]).timestamp() + offset for i in (0, -1))
    return first - records[0]["interval_s"], last


def perf_split(data, tid, seconds):
    """(host samples, guest samples) of a thread in these seconds, by the record's cpumode (4, 5: guest)."""
    text = n.sh("perf", "script", "-D", "-i", data, "-f")
    found = re.findall(rf"^\d+ (\d+) 0x[0-9a-f]+ .*PERF_RECORD_SAMPLE\(IP, 0x([0-9a-f]+)\): \d+/{tid}: ", text, re.M)
    modes = [int(mode, 16) & 7 for ns, mode in found if seconds[0] < int(ns) / 1e9 <= seconds[1]]
    guest = sum(m in (4, 5) for m in modes)
    return len(modes) - guest, guest


def perf_record(data, *args):
    """
    Records the whole host, as kvmtop samples it, from now on until end_perf(). It begins before kvmtop does and ends
    after it: what is compared are kvmtop's seconds (seconds_of).
    """
    (told, tell), (answer, answers) = os.pipe(), os.pipe()
    p = n.child(["perf", *args, "record", "-B", "-N", "-q", "-a", "-e", "cpu-clock", "-F", PERF_HZ, "-k", "CLOCK_MONOTONIC",
                 "-D", "-1", "--control", f"fd:{told},{answers}", "-o", data],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, pass_fds=(told, answers))
    for fd in (told, answers):
        os.close(fd)
    os.write(tell, b"enable\n")
    if not select.select([answer], [], [], 120)[0] or not os.read(answer, 64).startswith(b"ack"):
        raise RuntimeError("perf record does not start")
    p.ends = tell, answer
    return p


def end_perf(p):
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=120)
    for fd in p.ends:
        os.close(fd)


def split_beside_perf():
    """Half of the guest's time is in exits: host and guest shares of the same seconds."""
    g = n.Guest("-m", "user", "-l", "inf", "out:40 spin:3")
    data = os.path.join(TMP, "split.data")
    g.go()
    perf = perf_record(data)
    r = watch(g.pid, seconds=10, ready=sampled)
    end_perf(perf)
    g.stop()
    keep("split", r)
    host, guest = perf_split(data, g.tid(0), seconds_of(r))
    mine = collections.Counter()
    for x in r:
        for vm in n.vms_of(x, g.pid):
            v = vm["vcpus"][0]
            for d in ("host_kernel", "host_user", "guest_kernel", "guest_user"):
                mine[d.split("_")[0]] += v["samples"] * (v[f"{d}_pct"] or 0) / 100
    n.say(f"perf: host {host} guest {guest}; kvmtop: {dict(mine)}")
    if n.ok(host + guest > 500 and mine.total() > 500, "both have samples", (host, guest, mine)):
        share = 100 * guest / (host + guest)
        n.near(100 * mine["guest"] / mine.total(), share, max(3, error(share, host + guest, mine.total())),
               "the guest's share is perf's of the same seconds")


# --- QEMU guests -------------------------------------------------------------------------------
LOADS = {  # what of it must be hot, by a part of the symbol's name
    "syscall": r"entry_SYSCALL_64|syscall|do_syscall_64|exit_to_user|getppid|pid_vnr|pid_nr",
    "memory": r"clear_page|page_fault|pagevec|rmqueue|alloc|free|lru|fault|zap|mem_cgroup|exc_",
    "net": r"native_write_msr|memset|udp|sk|net|ip_|sock|dst|copy|entry_SYSCALL|csum|alloc|lock",
}


def perf_kvm_top(data, seconds):
    """
    [(share, symbol)] of guest kernel samples of these seconds as perf kvm report has them; not all addresses are of
    the kernel.
    """
    text = n.sh("perf", "kvm", "--guest", "--guestkallsyms=/proc/kallsyms", "--guestmodules=/proc/modules", "report",
                "-i", data, "-f", "--time", "{:.9f},{:.9f}".format(*seconds), "--stdio", "--sort", "sym", "-q", env={**os.environ, "PAGER": "cat"})
    rows = re.findall(r"^\s*([\d.]+)%\s+\[g\] (?!0x0000)(\S+)", text, re.M)
    all_ = sum(float(p) for p, _ in rows) or 1
    return [(100 * float(p) / all_, s) for p, s in rows], text


def beside_perf_kvm(guest, load):
    data = os.path.join(TMP, f"{load}.data")
    guest.load(load)
    perf = perf_record(data, "kvm", "--guest", "--guestkallsyms=/proc/kallsyms", "--guestmodules=/proc/modules")
    r = watch(guest.pid, "--guestkallsyms", "web01=/proc/kallsyms", seconds=6, delay=1, ready=named)
    end_perf(perf)
    guest.rest()
    keep(load, r)
    samples = domain_samples(r, guest.pid, "guest_kernel")
    mine = {s: 100 * v / samples for (d, s), v in symbols_of(r, guest.pid).items() if d == "guest-kernel"}
    theirs, text = perf_kvm_top(data, seconds_of(r))
    with open(os.path.join(RESULTS, f"perf-{load}.txt"), "w", encoding="utf-8") as f:
        f.write(text)
    top = sorted(mine.items(), key=lambda x: -x[1])
    n.say(f"{load}: {[(s, round(p, 1)) for s, p in top[:6]]}; perf: {theirs[:6]}")
    work = [s for s, _ in top if not re.fullmatch(lab_guests.TIMER, s)]
    n.ok(work and re.search(LOADS[load], work[0]), f"{load}: the hottest symbol is of that work", top[:5])
    unnamed = sum(p for s, p in top if s.startswith("["))
    n.ok(unnamed < 3, f"{load}: nearly all of the guest's kernel has names", unnamed)
    n.ok(sum(p for _, p in top) > 60, f"{load}: the rows are most of it", sum(p for _, p in top))
    if not n.ok(theirs, f"{load}: perf kvm has guest symbols", text[:2000]):
        return
    ours, perfs = [s for s, _ in top[:8]], [s for _, s in theirs[:3]]
    n.ok(set(perfs) <= set(ours), f"{load}: perf's first three are among the first eight", (perfs, ours))
    for share, name in theirs[:2]:
        n.near(mine.get(name), share, 2 + error(share, samples, samples),
               f"{load}: {name} has perf's share within the error of sampling")


def exit_code(guest):
    """Which guest code makes the exits: port writes by the driver of /dev/port, MSR writes by one function."""
    guest.load("port")
    top = n.Kvmtop("--max-overhead", "0", "--table", "exit-code", "--guestkallsyms", "web01=/proc/kallsyms", delay=1)
    top.until(lambda r: any(x["domain"] == "guest-kernel" and not x["reason"] and x["key"] == "io"
                            for vm in n.vms_of(r, guest.pid) for x in vm["exit_code"]), 30, "exits by guest code")
    first = len(top.records)
    top.skip(3).end()
    guest.rest()
    keep("code", top.records)
    rows = [x for r in top.records[first:] for vm in n.vms_of(r, guest.pid) for x in vm["exit_code"]]
    for key, symbol in (("io", "write_port"), ("msr", "native_write_msr")):
        mine = [x for x in rows if x["key"] == key]
        of = collections.Counter()
        for x in mine:
            of[x["symbol"]] += x["count"]
        n.ok(of and of.most_common(1)[0][0] == symbol and of[symbol] > 0.8 * of.total(),
             f"{key} exits are made by {symbol}", of.most_common(4))
        n.ok(mine and max(x["pct"] for x in mine) <= 100, f"{key}: shares are of the exits of that reason", mine[:3])


def qemu_guests():
    why = lab_guests.missing()
    if why:
        n.skip("hot symbols of QEMU guests", why)
        return
    web01, _ = lab_guests.pair()
    for load in LOADS:
        beside_perf_kvm(web01, load)
    exit_code(web01)


def main():
    parts = {f.__name__: f for f in (known_shares, without_symbols, of_another_kernel, throttled, split_beside_perf, qemu_guests)}
    for name in sys.argv[1:] or parts:
        start = time.monotonic()
        parts[name]()
        n.say(f"{name}: {time.monotonic() - start:.1f} s")
        n.end_children()
    n.done()


main()
