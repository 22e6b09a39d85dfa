#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 300
"""In the lab (run.sh): kvmtop beside `perf kvm stat record`, at the same time over the same guests.

Two QEMU guests boot and work, small ones with known counts run meanwhile, vCPU threads are moved,
stopped and killed. Every guest begins after both watchers did; the small ones end before both, and
the QEMU guests (other tests want them) are stopped before both, which for a watcher is the same.

Then the recording itself goes through kvmtop's rings, decoding, pairing and model (tests/tools/kvmstat.c):
of one record both must say the same to the last digit.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lab_guests
import native as n

RESULTS = os.environ.get("RESULTS", "/tmp")
TMP = os.environ.get("TEST_TMP", "/tmp")
DATA = os.path.join(TMP, "perf.data")
KVMSTAT = os.path.join(os.environ.get("TOP", "."), "build/tools/kvmstat")
KINDS = ("vmexit", "mmio", "ioport", "msr")
PORT_WRITES = 2000
# Each watcher looks at the clock for itself. An emulated CPU that is held up between the two, for lack of
# a real one, makes times differ by milliseconds, which no average of some thousand stands.
BUSY = 0.3
LATE = 20  # of a hundred thousand
POLL = "7"  # the number of poll(2)
ENV = {**os.environ, "HOME": TMP, "PAGER": "cat"}


def record():
    """`perf kvm stat record`, once it waits for events: it turns them on right before."""
    with open(os.path.join(TMP, ".perfconfig"), "w", encoding="ascii") as f:
        f.write("[record]\n\tbuild-id = skip\n")  # a slow pass at the end, of no use here
    perf = n.child(["perf", "kvm", "stat", "record", "-a", "-o", DATA], env=ENV, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    seen, end = 0, time.monotonic() + 60
    while seen < 5 and perf.poll() is None and time.monotonic() < end:
        time.sleep(0.2)
        with open(f"/proc/{perf.pid}/syscall", encoding="ascii") as f:
            seen = seen + 1 if f.read().split()[0] == POLL else 0
    if seen < 5:
        raise RuntimeError(f"perf does not record: {perf.communicate()[1] if perf.poll() else ''}")
    return perf


def move(tids):
    """All of them from CPU to CPU and back, then where the kernel wants."""
    for cpus in ({0}, {1}, {0}, {0, 1}):
        for tid in tids:
            os.sched_setaffinity(tid, cpus)
        time.sleep(0.2)


def small_guests():
    """Known counts; one is moved and stopped meanwhile, another killed. The two that came to their end."""
    plain = n.Guest("out:1500 in:500 mmior:400 mmiow:300 rdmsr:600 wrmsr:500 cpuid:800 hlt:50").go()
    plain.wait(120)
    # six rounds: seconds, so that it is still there when it was moved about
    driven = n.Guest("-c", 2, "-l", 6, "out:1200 mmior:300 mmiow:300 rdmsr:400 cpuid:500").go()
    killed = n.Guest("-m", "user", "-l", "inf", "out:10 cpuid:10").go()
    move([driven.tid(0), driven.tid(1)])
    os.kill(driven.pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(driven.pid, signal.SIGCONT)
    driven.wait(120)
    killed.kill()
    return plain, driven


def watch():
    """(kvmtop's records, small guests, QEMU guests) with DATA written meanwhile."""
    perf = record()
    # Without samples: a single exit that is taken for the place where it left its guest makes perf's time of it longer.
    top = n.Kvmtop("--event", ",".join(KINDS), "--max-overhead", "0", "--freq", "0", delay=5,
                   env={"KVMTOP_TEST_MANY_KEYS": "1"}).skip(1)  # records are large, and slow to read here
    start = time.monotonic()
    qemu = lab_guests.start()
    small = small_guests()
    for g in qemu:
        g.ready()
    n.say(f"QEMU guests up after {time.monotonic() - start:.0f} s")
    for what in ("syscall", "lock", "memory", "net"):
        for g in qemu:
            g.load(what)
        move([t for g in qemu for t in g.vcpu_tids().values()])
        for g in qemu:
            g.rest()
    for g in qemu:
        g.load("port", PORT_WRITES)
    n.say(f"loads done after {time.monotonic() - start:.0f} s")
    for g in qemu:
        g.freeze()
    records = top.settle().end()
    perf.send_signal(signal.SIGINT)
    said = perf.communicate(timeout=120)[1].decode()
    for g in qemu:
        g.freeze(False)
    n.say(f"all watched after {time.monotonic() - start:.0f} s")
    n.say(said.strip().splitlines()[-1] if said.strip() else "perf says nothing")
    return records, small, qemu


# --- tables --------------------------------------------------------------------------------------
# Samples, Samples%, Time%, Min, Max, Avg, +-: as printed
ROW = re.compile(r"\s*(\S.*?)\s+(\d+)\s+([\d.]+)%\s+([\d.]+)%\s+([\d.]+)us\s+([\d.]+)us\s+([\d.]+)us\s+"
                 r"\(?\s*\+-\s*([\d.]+)%")


def parse(line):
    m = ROW.match(line)
    return (m[1], (int(m[2]), *(float(x) for x in m.groups()[2:]))) if m else None


def perf_report(kind, *options):
    """What perf says, which is on its standard error."""
    p = subprocess.run(["perf", "kvm", "-i", DATA, "stat", "report", "--event", kind, *options], check=False,
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, env=ENV)
    return p.stderr


def perf_table(kind):
    text = perf_report(kind)
    with open(os.path.join(RESULTS, f"report.{kind}.txt"), "w", encoding="utf-8") as f:
        f.write(text)
    return dict(filter(None, map(parse, text.splitlines())))


def same_text():
    """kvmtop report --perf-compat beside perf, to the byte; integration/report.py has all options, of a part of such a file."""
    for kind in KINDS:
        for options in ((), ("-k", "time", "--vcpu", "1")):
            ours = n.run("report", "-i", DATA, "--perf-compat", "--event", kind, *options, limit=120)
            n.same((ours.stdout, ours.stderr), (perf_report(kind, *options), ""),
                   f"report --perf-compat --event {kind} {' '.join(options)}: perf's text to the byte")


def replayed(*options):
    """({kind: table}, counts) by kvmtop's own code out of the same recording."""
    out = n.sh(KVMSTAT, *options, DATA).splitlines()
    with open(os.path.join(RESULTS, f"kvmstat{''.join(options)}.txt"), "w", encoding="utf-8") as f:
        f.writelines(line + "\n" for line in out)
    tables = {k: {} for k in KINDS}
    for line in out[:-1]:
        kind, _, rest = line.partition(" ")
        key, figures = parse(rest)
        tables[kind][key] = figures
    words = out[-1].split()
    return tables, {k: int(v) for k, v in zip(words[::2], words[1::2])}


def live_table(records, kind):
    """{key: [timed, time_ns, count]} of all VMs, provisional ones too."""
    total = {}
    for r in records:
        for vm in r["vms"]:
            for x in vm["exits"]:
                if x["kind"] == kind:
                    t = total.setdefault(x["key"], [0, 0, 0])
                    for i, f in enumerate(("timed", "time_ns", "count")):
                        t[i] += x[f] or 0
    return total


# --- what must be true ----------------------------------------------------------------------------
def one_record(perf, as_perf, counts):
    n.say(f"recording: {counts}")
    n.ok(counts["samples"] > 50000 and not counts["lost"], "perf's recording is whole", counts)
    n.same((counts["broken"], counts["undecoded"], counts["late"]), (0, 0, 0), "all of it is read")
    for kind in KINDS:
        n.same({k: v for k, v in as_perf[kind].items() if perf[kind].get(k) != v},
               {k: perf[kind].get(k) for k, v in as_perf[kind].items() if perf[kind].get(k) != v},
               f"one record, {kind}: each row of kvmtop's is perf's, to the last digit")
        n.same(sorted(perf[kind]), sorted(as_perf[kind]), f"one record, {kind}: the same rows ({len(perf[kind])})")


def counts_side_by_side(kind, live, perf, left_out, late):
    """
    left_out: {key: pairs of the first exits that perf drops}, out of the recording. Around each event that came
    late (an emulated CPU was held up in the middle of writing it) a pair or two have no time; perf waits longer.
    """
    timed = {k: t[0] for k, t in live.items() if t[0]}
    want = {k: v[0] + left_out.get(k, 0) for k, v in perf.items()}
    missing = {k: v - timed.get(k, 0) for k, v in want.items()}
    if late and min(missing.values()) >= 0 and sum(missing.values()) <= 2 * late:
        n.say(f"{kind}: {late} came late, without time: {({k: v for k, v in missing.items() if v})}")
        timed = {k: v + missing.get(k, 0) for k, v in timed.items()}
    n.same({k: (v, live[k][2]) for k, v in timed.items() if want.get(k) != v},
           {k: (want.get(k), live[k][2]) for k, v in timed.items() if want.get(k) != v},
           f"{kind}: as many of each as perf kvm stat recorded (timed, counted)")
    n.same(sorted(set(want) - set(timed)), [], f"{kind}: and none is missing ({sum(timed.values())} in {len(timed)} rows)")


def times_side_by_side(kind, live, perf, busy):
    """Of each row with a thousand or more; the figures are printed in any case."""
    off = {}
    for key, (count, _, _, _, _, avg, _) in perf.items():
        t = live.get(key)
        if not t or not t[0] or count < 1000:
            continue
        ours = t[1] / t[0] / 1000
        n.say(f"{kind} {key}: {count} times, {ours:.2f} us, perf {avg:.2f} us")
        if abs(ours - avg) > max(0.05 * avg, 2):
            off[key] = (ours, avg)
    time_ns = sum(t[1] for t in live.values()) or 1
    shares = {key: (100 * live[key][1] / time_ns, row[2]) for key, row in perf.items()
              if key in live and abs(100 * live[key][1] / time_ns - row[2]) > 1}
    if (off or shares) and busy > BUSY:
        n.say(f"{kind}: farther off: averages {off}, shares {shares}")
        n.skip(f"{kind}: times beside perf's", f"needs:lab-quiet the lab's CPUs waited {busy:.0%} of the time for real ones")
        return
    n.same(off, {}, f"{kind}: averages within 5% or 2 us of perf's, of all with 1,000 or more")
    n.same(shares, {}, f"{kind}: shares of time within 1 point of perf's")


def main():
    why = lab_guests.missing()
    if why:
        n.skip("beside perf kvm stat", why)
        n.done()
    start, waited = time.monotonic(), lab_guests.waited()
    records, small, qemu = watch()
    busy = (lab_guests.waited() - waited) / (time.monotonic() - start)
    n.say(f"the lab's CPUs waited {busy:.0%} of the time for real ones")
    with open(os.path.join(RESULTS, "perf.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(r) + "\n" for r in records)
    n.same(n.lost(records), 0, "kvmtop lost nothing")
    late = sum(r["host"]["late"] for r in records)
    n.ok(late <= LATE, "hardly anything came late", late)
    perf = {kind: perf_table(kind) for kind in KINDS}
    full, counts = replayed()
    as_perf, _ = replayed("--as-perf")
    n.say(f"reports made after {time.monotonic() - start:.0f} s")
    one_record(perf, as_perf, counts)
    same_text()
    n.say(f"and compared after {time.monotonic() - start:.0f} s")
    for kind in KINDS:
        left_out = {k: v[0] - as_perf[kind].get(k, (0,))[0] for k, v in full[kind].items()}
        n.say(f"{kind}: perf leaves out {({k: v for k, v in left_out.items() if v})}")
        live = live_table(records, kind)
        counts_side_by_side(kind, live, perf[kind], left_out, late)
        times_side_by_side(kind, live, perf[kind], busy)
    for name, g in zip(("a small guest", "one that was moved and stopped"), small):
        n.same(n.only(n.counted(records, g.pid), "ioport", "mmio", "msr"),
               n.only(n.truth(g.counts), "ioport", "mmio", "msr"), f"{name}: the guest's own counts")
    for g in qemu:
        got = n.counted(records, g.pid)
        n.same(got.get(("ioport", "0xed:POUT")), PORT_WRITES, f"{g.name}: the guest's own count of its port writes")
    n.done()


main()
