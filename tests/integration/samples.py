#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, perf-events
# limit: 120
"""Samples of real VMs: whose they are, that all add up, what is open when, and what is said."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

PARTS = ("host_kernel_pct", "host_user_pct", "guest_kernel_pct", "guest_user_pct")


def named(vm):
    """The symbols of the host's side are loaded."""
    rows = [x for x in vm["symbols"] if not x["reason"] and not x["other"]]
    return {x["domain"] for x in rows} >= {"host-kernel", "host-user"}


def watch(guests, *args, records=5, delay=0.5, ready=None):
    """Records in which the guests run; `ready`: once this is true of the last of them."""
    top = n.Kvmtop("--max-overhead", "0", *args, delay=delay)
    for g in guests:
        g.go()
    top.until(lambda r: all(any(vm["samples"] for vm in n.vms_of(r, g.pid)) for g in guests), 30, "all are sampled")
    if ready:
        top.until(lambda r: any(ready(vm) for vm in n.vms_of(r, guests[-1].pid)), 40, "names are there")
    first = len(top.records)
    top.skip(records)
    for g in guests:
        g.stop()
    top.end()
    return top.records[first:first + records]


def of(records, g):
    return [vm for r in records for vm in n.vms_of(r, g.pid)]


def cpu_ms(vms, records):
    return sum(vm["cpu_pct"] * r["interval_s"] * 10 for vm, r in zip(vms, records) if vm["cpu_pct"])


def whose():
    spin = n.Guest("-m", "user", "-p", n.CPUS[0], "spin:inf")
    port = n.Guest("-m", "user", "-p", n.CPUS[-1], "out:inf")
    r = watch([spin, port], ready=named)
    a, b = of(r, spin), of(r, port)
    n.ok(n.every(vm["guest_user_pct"] + vm["guest_kernel_pct"] > 80 for vm in a), "a guest that spins is in the guest",
         [vm["guest_user_pct"] for vm in a])
    n.ok(n.every(vm["host_kernel_pct"] + vm["host_user_pct"] > 30 for vm in b), "one that leaves it all the time is in the host",
         [vm["host_kernel_pct"] for vm in b])
    rows = [x for vm in b for x in vm["symbols"]]
    n.ok(any(x["domain"] == "host-kernel" and not x["reason"] and x["symbol"].startswith(("kvm_", "native_", "vcpu_"))
             for x in rows), "the host's kernel has names", sorted({x["symbol"] for x in rows}))
    n.ok(any(x["domain"] == "host-user" and x["module"] for x in rows), "so has the VMM's code, with its file",
         sorted({(x["symbol"], x["module"]) for x in rows if x["domain"] == "host-user"}))
    off = [(vm["name"], sum(vm[p] for p in PARTS)) for vm in a + b if abs(sum(vm[p] for p in PARTS) - 100) > 0.1]
    n.same(off, [], "the four domains are all")
    off = [(vm["samples"], sum(x["samples"] for x in vm["symbols"])) for vm in a + b
           if vm["samples"] != sum(x["samples"] for x in vm["symbols"])]
    n.same(off, [], "the rows, with `other`, are all samples")
    off = [vm["name"] for vm in a + b if sum(v["samples"] for v in vm["vcpus"]) > vm["samples"]]
    n.same(off, [], "vCPUs have no more than their VM")
    ms, samples = cpu_ms(a, r), sum(vm["samples"] for vm in a)
    n.ok(0.7 < samples / (ms * 0.997) < 1.3, "as many samples as its CPU time has at 997 Hz", (samples, ms))
    hosts = [x["host"] for x in r]
    sums = [(h["samples"], sum(vm["samples"] for vm in x["vms"])) for h, x in zip(hosts, r)]
    n.ok(n.every(h >= v for h, v in sums), "the host's sum is that of its VMs", sums)
    n.same({(h["sampling"], h["sampling_hz"]) for h in hosts} - {("cycles", 997)}, {("cpu-clock", 997)},
           "the event and its rate are said")
    n.same([b for x in r for b in n.finite(x)], [], "no absurd figure")


def sides():
    for flag, mine, other in (("--guest", "guest", "host"), ("--host", "host", "guest")):
        g = n.Guest("-m", "user", "-l", "inf", "out:20 spin:2")
        vms = of(watch([g], flag, records=3), g)
        n.ok(n.every(vm[f"{mine}_user_pct"] + vm[f"{mine}_kernel_pct"] > 99.9 for vm in vms if vm["samples"]),
             f"{flag}: only that side", vms[:1])
        n.same({x["domain"].split("-")[0] for vm in vms for x in vm["symbols"] if x["domain"]} - {mine}, set(),
               f"{flag}: no row of the {other}'s")


def records_of(*args):
    return n.run("-b", "-d", "0.3", "-n", "2", *args, check=True).stdout


def only_on_demand():
    """Nobody who reads no samples pays for them."""
    text = records_of("--format", "json", "--table", "exit")
    r = json.loads(text.splitlines()[-1])
    n.same((r["host"]["sampling"], r["host"]["sampling_hz"], r["host"]["samples"]), (None, None, None),
           "a table without samples opens none")
    text = records_of("--format", "csv", "--table", "vm", "--fields", "name,cpu_pct")
    n.ok("hot_symbol" not in text, "nor do fields without them")
    r = json.loads(records_of("--format", "json", "-F", "0").splitlines()[-1])
    n.same(r["host"]["sampling"], None, "-F 0 takes none")
    why = [s["why"] for s in r["sources"] if s["name"] == "guest_sampling"]
    n.ok(why and "-F 0" in why[0], "and says so", why)
    r = json.loads(records_of("--format", "json", "--collectors", "sched").splitlines()[-1])
    n.same(r["host"]["samples"], None, "without the collector there are none")


def what_runs():
    r = json.loads(records_of("--format", "json", "--sample-with", "clock", "-F", "97").splitlines()[-1])
    n.same((r["host"]["sampling"], r["host"]["sampling_hz"]), ("cpu-clock", 97), "--sample-with clock, -F 97")
    r = json.loads(records_of("--format", "json", "--sample-with", "hw").splitlines()[-1])
    why = [s for s in r["sources"] if s["name"] == "guest_sampling"][0]
    if os.path.exists("/sys/bus/event_source/devices/cpu/type"):
        n.skip("what runs instead of hardware cycles", "this machine has a PMU")
    else:
        n.ok(r["host"]["sampling"] == "cpu-clock" and why["state"] == "partial" and "no hardware PMU" in why["why"],
             "--sample-with hw without a PMU: what really runs is said", why)


def kernel_limit():
    """The kernel takes no rate above its limit: the lower one is used, and said."""
    path = "/proc/sys/kernel/perf_event_max_sample_rate"
    with open(path, encoding="ascii") as f:
        most = int(f.read())
    r = json.loads(records_of("--format", "json", "-F", "100000").splitlines()[-1])
    why = [s["why"] for s in r["sources"] if s["name"] == "guest_sampling"][0]
    hz = r["host"]["sampling_hz"]
    if most >= 100000:
        n.ok(hz == 100000 or (0 < hz < 100000 and "throttled" in why), "a rate that the kernel takes, or throttles", (hz, why))
        return
    n.ok(0 < hz <= most and "instead of 100000" in why, "a rate above the kernel's limit is lowered", (hz, why))


def losses():
    """A ring that is far too small for the rate, and read too late: what is lost is counted."""
    g = n.Guest("-m", "user", "spin:inf")
    top = n.Kvmtop("--max-overhead", "0", "-F", "20000", delay=1, env={"KVMTOP_TEST_SMALL_RING": "1"})
    g.go()
    top.skip(4)
    g.stop()
    top.end()
    lost = [r["host"]["sampling_lost"] for r in top.records[1:]]
    n.ok(any(lost), "lost samples are counted", lost)
    n.same([b for x in top.records for b in n.finite(x)], [], "and no figure is absurd")


def not_root():
    """Somebody without rights is told what is missing."""
    p = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", n.KVMTOP, "-b", "-d", "0.3",
                        "-n", "1", "--format", "json"], capture_output=True, text=True, check=False)
    r = json.loads(p.stdout.splitlines()[-1])
    said = [s for s in r["sources"] if s["name"] == "guest_sampling"]
    n.ok(said and said[0]["state"] == "off" and "CAP_PERFMON" in said[0]["why"] + (said[0]["mend"] or ""),
         "without rights the reason and what mends it are said", said or p.stderr)


def main():
    for part in (whose, sides, only_on_demand, what_runs, kernel_limit, losses, not_root):
        part()
        n.end_children()
    n.done()


main()
