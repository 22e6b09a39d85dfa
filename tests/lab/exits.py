#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 180
# lab-sanitize: yes
"""In the lab (run.sh): pairs of real kvm_exit and kvm_entry, against guests whose exits are known.

Counts are exact. Times have a truth of their own where the VMM sleeps inside an exit for a known
time; else they are held to what must be true of any (perf.py compares them with perf's). An exit
has in it what its thread waits for a CPU, so nothing here is asserted that a busy machine makes untrue.
"""

import collections
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lab_guests
import native as n
import screen_lib

RESULTS = os.environ.get("RESULTS", "/tmp")
SVM = {"io", "msr", "cpuid", "npf", "hlt", "interrupt", "vintr", "nmi"}
HELD = 9 if n.SANITIZED else 4  # seconds
HEAT = "\u2591\u2592\u2593\u2588"


def watched(guests, *args, delay=0.5):
    """The guests' whole lives under kvmtop, all kinds of events; its records."""
    if lab_guests.shared_cpu():
        delay = max(delay, 1)  # with ASan it could not print more, and says that it skipped intervals
    top = n.Kvmtop("--event", "all", "--max-overhead", "0", *args, delay=delay).skip(2)
    for g in guests:
        g.go()
    for g in guests:
        g.wait(120)
    return top.settle().end()


def keep(name, records):
    """For whoever wants to know why a test failed."""
    with open(os.path.join(RESULTS, f"{name}.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(r) + "\n" for r in records)


def rows_of(records, pid, kind):
    """{key: sums} of a process's rows of a kind over all records."""
    total = {}
    for r in records:
        for vm in n.vms_of(r, pid):
            for x in vm["exits"]:
                if x["kind"] == kind:
                    t = total.setdefault(x["key"], {"count": 0, "timed": 0, "time_ns": 0, "max_ns": 0,
                                                  "min_ns": 1 << 62})
                    for f in ("count", "timed", "time_ns"):
                        t[f] += x[f] or 0
                    if x["timed"]:
                        t["max_ns"] = max(t["max_ns"], x["max_ns"])
                        t["min_ns"] = min(t["min_ns"], x["min_ns"])
    return total


def inner(records, pid):
    """(interval in s, VM) of the intervals in all of which the guest ran."""
    rows = [(r["interval_s"], vm) for r in records for vm in n.vms_of(r, pid)
            if any(x["kind"] == "vmexit" and x["count"] for x in vm["exits"])]
    return rows[1:-1]


def mean(records, pid, field):
    v = [vm[field] for _, vm in inner(records, pid)]
    return sum(v) / len(v) if v and None not in v else None


def busy_rows(vm):
    return [x for x in vm["exits"] if x["kind"] == "vmexit" and not x["idle"]]


def vmexits(vm, field):
    return sum(x[field] for x in busy_rows(vm))


def longest(records, pid):
    """ns of the longest exit that was no waiting; whatever is open at a tick is no longer."""
    return max((x["max_ns"] for r in records for vm in n.vms_of(r, pid) for x in busy_rows(vm) if x["timed"]), default=0)


def exit_pct_is_rows(records, pid, name):
    """
    %EXIT of an interval and the times in its table differ by what is open at its ends: the table
    has an exit in the interval that it ends in.
    """
    both = [(vm["exit_pct"] * dt * 1e7, vmexits(vm, "time_ns")) for dt, vm in inner(records, pid)]
    most = 2 * longest(records, pid) + 1e6
    n.ok(both and all(abs(a - b) < most + b / 1000 for a, b in both), name, (most, both))
    a, b = sum(x for x, _ in both), sum(x for _, x in both)
    n.ok(abs(a - b) < most + b / 1000, f"{name}: of all together", (most, a, b))


def top_exit_is_rows(records, pid):
    """TOP EXIT is the row that took most of the interval's time, with its share. Whichever: an exit has waits in it."""
    wrong = []
    for _, vm in inner(records, pid):
        rows = sorted(busy_rows(vm), key=lambda x: -x["time_ns"])
        share = 100 * rows[0]["time_ns"] / (vmexits(vm, "time_ns") or 1)
        if vm["top_exit"] != rows[0]["key"] or abs(vm["top_exit_pct"] - share) > 0.1:
            wrong.append((vm["top_exit"], vm["top_exit_pct"], [(x["key"], x["time_ns"]) for x in rows]))
    n.same(wrong, [], "TOP EXIT is what took most of the time, with its share")


def sane_times(records, pid, name):
    """What must be true of every row, whatever the times are."""
    bad = []
    for r in records:
        for vm in n.vms_of(r, pid):
            for x in vm["exits"]:
                p = [x[f] for f in ("min_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns")]
                if x["timed"] == 0:
                    continue
                # a percentile is the middle of a step of its histogram: 3%
                if None in p or not all(a <= b * 1.04 + 2 for a, b in zip(p, p[1:])):
                    bad.append(x)
                elif abs(x["avg_ns"] * x["timed"] - x["time_ns"]) > 1 + x["time_ns"] / 1000:
                    bad.append(x)
                elif not x["min_ns"] <= x["avg_ns"] <= x["max_ns"]:
                    bad.append(x)
    n.same(bad, [], name)


def late(records):
    """
    Events that came after the interval that they belong to. An emulated CPU that is held up, for lack of a real
    one, between an event's time and its place in the ring makes some; they are counted, and their pair has no time.
    """
    return sum(r["host"]["late"] for r in records)


def all_timed(records, count, timed):
    """Each pair has its time: but perhaps the last, and those around what came late."""
    return 0 <= count - timed <= 1 + 2 * late(records)


def truth(counts):
    """The exits that the guest's own counts ask for; an NPF also where memory is touched first."""
    return {"io": sum(c["port_out"] + c["port_in"] for c in counts),
            "msr": sum(c["rdmsr"] + c["wrmsr"] for c in counts),
            "cpuid": sum(c["cpuid"] for c in counts),
            "hlt": sum(c["hlt"] for c in counts)}


def exact():
    g = n.Guest("out:1500 in:700 mmior:400 mmiow:300 rdmsr:600 wrmsr:500 cpuid:800 hlt:50")
    r = watched([g])
    keep("exact", r)
    want, got = truth(g.counts), rows_of(r, g.pid, "vmexit")
    n.same({k: got.get(k, {}).get("count") for k in want}, want, "vm exits by reason: the guest's own counts")
    npf = got.get("npf", {"count": 0})["count"]
    n.ok(700 <= npf <= 700 + 32, "nested page faults: one an MMIO access, a few where memory is touched first", npf)
    n.same(n.only(n.counted(r, g.pid), "ioport", "mmio", "msr", "userexit"), n.truth(g.counts),
           "accesses and user exits: the guest's own counts")
    n.same(sorted(set(got) - SVM), [], "each reason has the name that the kernel's format gives it")
    total = {k: sum(x[k] for x in got.values()) for k in ("count", "timed")}
    n.ok(all_timed(r, **total), "each exit has its time, but perhaps the last", (total, late(r)))
    short = {(kind, key): x for kind in ("ioport", "mmio", "msr", "userexit")
             for key, x in rows_of(r, g.pid, kind).items() if not all_timed(r, x["count"], x["timed"])}
    n.same(short, {}, "each access and user exit as well")
    sane_times(r, g.pid, "minimum, percentiles, mean and maximum are in order")
    n.same(n.lost(r), 0, "nothing was lost")
    n.same([x["host"]["unmatched"] for x in r if x["host"]["unmatched"]], [], "nothing was unmatched")
    n.ok(late(r) <= total["count"] // 1000, "hardly anything came late", late(r))


def heavy_and_spinner():
    heavy = n.Guest("-m", "user", "-p", 0, "-l", "inf", "out:100 cpuid:10")
    spin = n.Guest("-m", "user", "-p", 1, "spin:inf")
    top = n.Kvmtop("--event", "vmexit", "--max-overhead", "0", delay=0.5).skip(1)
    heavy.go(), spin.go()
    top.skip(8)
    heavy.stop(), spin.stop()
    r = top.settle().end()
    keep("heavy", r)
    a, b = mean(r, heavy.pid, "exit_pct"), mean(r, spin.pid, "exit_pct")
    n.say(f"%EXIT: {a} of the one that does little but exit, {b} of the spinner")
    n.ok(a is not None and a > 30, "%EXIT of a guest that does nothing but exit", a)
    # An exit contains the time that its thread waits for a CPU, so the mean of a spinner's says more
    # of this machine than of the guest; the median does not.
    own = [vm["exits_per_s"] * vm["p50_ns"] / 1e7 for _, vm in inner(r, spin.pid) if vm["p50_ns"] is not None]
    n.ok(own and sorted(own)[len(own) // 2] < 2, "%EXIT of a guest that spins, but for waits", (b, own))
    vms = [vm for _, vm in inner(r, heavy.pid)]
    top_exit_is_rows(r, heavy.pid)
    n.same(collections.Counter(vm["top_exit"] for vm in vms).most_common(1)[0][0], "io", "which is io nearly always")
    n.ok(n.every(vm["p50_ns"] and vm["p99_ns"] >= vm["p50_ns"] for vm in vms), "p50 and p99 of the VM")
    off = [(vm["exits_per_s"], vmexits(vm, "count") / dt) for dt, vm in inner(r, heavy.pid)]
    n.ok(n.every(abs(p - q) <= 0.001 * q for p, q in off), "EXIT/s is the rows' counts by the interval", off)
    exit_pct_is_rows(r, heavy.pid, "%EXIT is the rows' times by the interval")
    name = n.vm_of(r[5], heavy.pid)["name"]
    said = [f["text"] for f in r[5]["findings"] if f["rule"] == "exits"]
    n.ok(any(text.startswith(f"{name}: ") for text in said), "a finding names it", said)
    n.same(n.lost(r), 0, "nothing was lost at this rate")


def idle():
    """HLT that waits in the kernel for 50 ms, and a few port writes between."""
    g = n.Guest("-H", 50, "-l", 60, "hlt:1 out:20")
    r = watched([g])
    keep("idle", r)
    hlt = rows_of(r, g.pid, "vmexit").get("hlt", {"count": 0, "time_ns": 0})
    n.same(hlt["count"], 60, "halts are exits")
    wake = rows_of(r, g.pid, "halt")
    waited = sum(x["time_ns"] for k, x in wake.items() if "size" not in k)
    n.ok(waited and waited < hlt["time_ns"] < 1.05 * waited + 60 * longest(r, g.pid),
         "and have the time that the guest waited, and a little more", (waited, hlt))
    vms = [vm for _, vm in inner(r, g.pid)]
    exit_pct_is_rows(r, g.pid, "which is not in %EXIT")
    n.same({vm["top_exit"] for vm in vms} & {"hlt"}, set(), "not in TOP EXIT")
    # 3%: a percentile is the middle of a step of its histogram
    most = [(vm["p99_ns"] or 0, max((x["max_ns"] for x in busy_rows(vm) if x["timed"]), default=0)) for vm in vms]
    n.ok(n.every(p <= 1.04 * m for p, m in most), "not in the percentiles", most)
    # an interrupt's exit may be open at a tick, when the thread waits for a CPU
    n.same({vm["open_exit"] for vm in vms} & {"hlt"}, set(), "and is not shown as an open exit")
    n.same(sum(x["count"] for k, x in wake.items() if "size" not in k), 60, "one wake-up a halt")


def known_times():
    """The VMM sleeps 25 ms inside each of 40 exits."""
    g = n.Guest("-m", "user", "-l", 40, "hold:25 out:5 spin:10")
    start = time.monotonic()
    r = watched([g])
    most = (time.monotonic() - start) * 1e9  # a vCPU is in one exit at a time
    keep("known", r)
    for kind, key in (("vmexit", "io"), ("ioport", "0xf1:POUT"), ("userexit", "KVM_EXIT_IO")):
        x = rows_of(r, g.pid, kind).get(key, {"time_ns": 0, "max_ns": 0})
        n.ok(40 * 25e6 <= x["time_ns"] < most, f"{kind} {key}: 40 exits of 25 ms, no more than all of the time", (most, x))
        n.ok(25e6 <= x["max_ns"] <= x["time_ns"] - 39 * 25e6, f"{kind} {key}: the longest", x)
    port = rows_of(r, g.pid, "ioport").get("0xf1:POUT", {"count": 0, "min_ns": 0, "max_ns": 0})
    n.ok(port["count"] == 40 and port["min_ns"] >= 25e6, "none of them is shorter", port)
    x = [v for q in r for vm in n.vms_of(q, g.pid) for v in vm["exits"] if v["key"] == "0xf1:POUT"]
    n.ok(n.every(0.96 * v["min_ns"] < v["p50_ns"] < 1.04 * v["max_ns"] for v in x if v["timed"]),
         "and the median is that of one", x)


def spent(records, pid, field):
    """Seconds of the guest's one vCPU, over all records that have it."""
    rows = [(r["interval_s"], vm["vcpus"][0]) for r in records for vm in n.vms_of(r, pid) if vm["vcpus"]]
    return sum(dt * (v[field] or 0) / 100 for dt, v in rows)


def on_and_off():
    """
    The VMM sleeps 25 ms in each of 40 exits: without a CPU, and in nothing else is the thread for long.
    The first exits are before anybody looks at who has a CPU: kvmtop does that once it saw one.
    """
    warm = n.Guest("-m", "user", "-l", "inf", "out:1 hold:20").go()
    g = n.Guest("-m", "user", "-l", 40, "hold:25 out:5 spin:10")
    top = n.Kvmtop("--event", "vmexit", "--max-overhead", "0", delay=0.5).skip(4)
    g.go().wait(120)
    r = top.settle().end()
    warm.stop()
    keep("on-off", r)
    if os.environ.get("TEST_EVENTS_BY") == "perf":
        n.same({vm[f] for x in r for vm in x["vms"] for f in ("exit_on_pct", "exit_off_pct")}, {None},
               "by the rings no part of %EXIT is told")
        n.ok(any("--events-by bpf" in s["why"] and "vm.exit_on_pct" in s.get("fields", ()) for x in r for s in x["sources"]),
             "and the reason is there", r[-1]["sources"])
        return
    on, off, both = (spent(r, g.pid, f) for f in ("exit_on_pct", "exit_off_pct", "exit_pct"))
    n.say(f"s in exits: {both:.3f}, {on:.3f} of it with a CPU, {off:.3f} without")
    # A tick that falls into a sleep may count its last ms in neither part as without a CPU.
    n.ok(off > 40 * 0.025 - 0.05, "40 sleeps of 25 ms in exits are time without a CPU", (on, off, both))
    wrong = [(v["exit_on_pct"], v["exit_off_pct"], v["exit_pct"]) for x in r[1:] for vm in n.vms_of(x, g.pid)
             for v in [vm] + vm["vcpus"] if v["exit_pct"] is not None and
             (v["exit_on_pct"] is None or abs(v["exit_on_pct"] + v["exit_off_pct"] - v["exit_pct"]) > 0.01)]
    n.same(wrong, [], "the two parts are all of %EXIT, of the VM and of the vCPU")
    busy = n.Guest("-m", "user", "-p", 0, "-l", "inf", "out:100 cpuid:10").go()
    top = n.Kvmtop("--event", "vmexit", "--max-overhead", "0", delay=0.5).skip(8)
    with open(f"/proc/{busy.pid}/task/{busy.tid(0)}/schedstat", encoding="ascii") as f:
        waited_s = int(f.read().split()[1]) / 1e9  # for a CPU, by the scheduler
    busy.stop()
    r = top.settle().end()
    on, off = (spent(r, busy.pid, f) for f in ("exit_on_pct", "exit_off_pct"))
    n.ok(on > 0 and off < waited_s + 0.3, "who only exits has a CPU in that, but when it waits for one", (on, off, waited_s))


def held_open():
    # under a sanitizer and beside others' work an interval may take a second and more
    g = n.Guest("-m", "user", f"out:100 hold:{HELD * 1000} out:100")
    top = n.Kvmtop("--event", "vmexit,userexit", delay=0.5).skip(2)
    start = time.monotonic()
    g.go()
    top.skip(5)
    g.wait()
    most = (time.monotonic() - start) * 1e9
    r = top.settle().end()
    keep("open", r)
    every = [(x["interval_s"] * 1e9, vm["vcpus"][0]) for x in r for vm in n.vms_of(x, g.pid) if vm["vcpus"]]
    rows = [v for _, v in every]
    held = [v for v in rows if (v.get("open_ns") or 0) > 1e8]
    n.ok(len(held) >= 3, f"an exit of {HELD} s shows while it is open", rows)
    n.same({v["open_exit"] for v in held}, {"KVM_EXIT_IO"}, "by what the VMM was asked to do")
    grown = [(b["open_ns"] - a["open_ns"], dt) for (_, a), (dt, b) in zip(every, every[1:]) if a in held and b in held]
    n.ok(grown and all(abs(by - dt) < 0.01 * dt for by, dt in grown), "it grows by the interval", grown)
    n.ok(len(held) > 1 and all(v["exit_pct"] > 95 for v in held[1:]), "it is in %EXIT",
         [v["exit_pct"] for v in held])
    n.ok(any(f["rule"] == "open-exit" for x in r for f in x["findings"]), "a finding says so from one second on")
    io = rows_of(r, g.pid, "vmexit").get("io", {"max_ns": 0})
    n.ok(HELD * 1e9 <= io["max_ns"] < most, "the table has its time when it ends", (most, io))
    n.ok(n.every(v["exit_pct"] is None or v["exit_pct"] <= 100 for v in rows), "and %EXIT never passes 100")


def thread_changes():
    """A vCPU that two threads take from each other, in the middle of exits."""
    g = n.Guest("-s", "hop", "-k", 50, "-t", "", "out:2000 mmior:500 cpuid:300")
    r = watched([g], delay=0.2)
    keep("hop", r)
    got = rows_of(r, g.pid, "vmexit")
    n.same((got["io"]["count"], got["cpuid"]["count"]), (2001, 300), "a vCPU that changes threads: counts")
    total = {k: sum(x[k] for x in got.values()) for k in ("count", "timed")}
    n.ok(all_timed(r, **total), "its exits have their times", (total, late(r)))
    both = [(vm["exit_pct"], vm["vcpus"][0]["exit_pct"]) for _, vm in inner(r, g.pid)]
    n.ok(both and all(abs(a - b) < 0.1 for a, b in both), "%EXIT of the VM is that of its only vCPU", both)


def losses():
    """Rings too small: an exit whose entry was lost is not open, and no pair spans a loss."""
    g = n.Guest("-m", "user", "out:15000 cpuid:5000")
    top = n.Kvmtop("--event", "all", "--max-overhead", "0", env={"KVMTOP_TEST_SMALL_RING": "1"}, delay=0.5).skip(2)
    g.go().wait(120)
    r = top.settle().end()
    keep("losses", r)
    n.ok(n.lost(r) > 0, "events are lost")
    wrong = [vm["open_ns"] for x in r for vm in n.vms_of(x, g.pid) if (vm["open_ns"] or 0) > 3e8]
    n.same(wrong, [], "no exit is shown as open whose entry was lost")


def thread_ends():
    """A vCPU whose thread ended while the VM lives: nobody is in its last exit any more."""
    g = n.Guest("-c", 2, "-m", "user", "out:50 hold:700 out:50", "spin:inf")
    top = n.Kvmtop("--event", "vmexit,userexit", delay=0.5).skip(2)
    g.go()
    while os.path.exists(f"/proc/{g.pid}/task/{g.tid(0)}"):
        top.skip(1)
    top.settle().skip(6)
    upto = len(top.records)  # they end before the other vCPU is stopped, which is an exit too
    g.stop()
    r = top.end()[:upto]
    keep("thread", r)
    rows = [next((v for v in vm["vcpus"] if v["vcpu"] == 0), None) for x in r for vm in n.vms_of(x, g.pid)]
    held = [v for v in rows if v and v["open_exit"] == "KVM_EXIT_IO"]
    n.ok(held, "a vCPU's exit is open", rows)
    last = [v for v in rows if v and v["quality"] == "gone"]
    n.ok(last and not any(v["open_exit"] for v in last), "but no more when its thread ended in one", last)
    n.same(rows[-4:], [None] * 4, "its row goes with the interval in which it ended")
    n.same(n.counted(r, g.pid, vcpu=0).get(("userexit", "KVM_EXIT_IO")), g.counts[0]["io"], "which has the last of it")
    n.same([vm["open_exit"] for x in r[-4:] for vm in n.vms_of(x, g.pid) if vm["open_exit"] == "KVM_EXIT_IO"], [],
           "nor is it open for the VM")
    n.same([f["text"] for x in r[-4:] for f in x["findings"] if f["rule"] == "open-exit"], [], "no finding names it")


# --- the screen ----------------------------------------------------------------------------------
def screen():
    g = n.Guest("-m", "user", "-l", "inf", "out:20 cpuid:20 hold:1 mmiow:5").go()
    t = screen_lib.Terminal(f"{n.KVMTOP} --color never", 100, 30)
    host = t.until(lambda s: "io" in s and "CPU" in s, 30)
    n.ok(host is not None, "the host screen names the exit that takes most time", t.text())
    t.keys("Enter")
    t.keys("2")
    pane = t.until(lambda s: "cpuid" in s and "npf" in s and any(c in s for c in HEAT), 30)
    n.ok(pane is not None, "the pane has the reasons and the histogram over time", t.text())
    time.sleep(4)
    shot = t.text()
    n.ok(n.every(screen_lib.width(line) <= 100 for line in shot.splitlines()), "no line is wider than the window")
    t.keys("e")
    time.sleep(3)
    with open(os.path.join(RESULTS, "screens.txt"), "w", encoding="utf-8") as f:
        f.write("\n=====\n".join([host or "", shot, t.text()]))
    t.keys("q")
    t.end()
    g.stop()


def main():
    parts = {f.__name__: f for f in (exact, heavy_and_spinner, idle, known_times, on_and_off, held_open,
                                    thread_changes, losses, thread_ends, screen)}
    # A sanitizer's build is slow here: of what goes the same ways through it, one.
    some = ("exact", "held_open", "thread_changes", "losses", "thread_ends", "screen") if n.SANITIZED else \
        [p for p in parts if p != "screen" or not os.environ.get("TEST_EVENTS_BY")]  # the same there
    for name in sys.argv[1:] or some:
        start = time.monotonic()
        parts[name]()
        n.say(f"{name}: {time.monotonic() - start:.1f} s")
        n.end_children()
    n.done()


main()
