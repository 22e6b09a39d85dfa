#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 120
# beside: yes
"""kvmtop --batch --format prometheus, read by a parser that is stricter than Prometheus (tests/prom_text.py),
by Prometheus' own Python one, and where it is installed by promtool; its figures against JSON's."""

import json
import lzma
import os
import shutil
import subprocess
import sys

from prometheus_client.parser import text_string_to_metric_families

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n
import prom_text as prom

TMP = os.environ["TEST_TMP"]
ROOTS = os.path.join(n.TOP, "tests/data/roots")
TABLES = [line.split("\t")[0] for line in subprocess.run(
    [n.KVMTOP, "--dump-tables", "tables"], capture_output=True, text=True, check=True).stdout.splitlines()]
FIRST = ["kvmtop_build_info", "kvmtop_host_info", "kvmtop_time_seconds", "kvmtop_interval_seconds",
         "kvmtop_totals_start_time_seconds"]


def the_same(text, families):
    """What Prometheus' own parser makes of it is what ours makes; the others' faults it has not."""
    theirs = {(s.name, frozenset(s.labels.items())): s.value
              for f in text_string_to_metric_families(text) for s in f.samples}
    ours = {(name, k): v for name, f in families.items() for k, v in f.samples.items()}
    return theirs == ours


def promtool(text):
    if not shutil.which("promtool"):
        return True
    p = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    return p.returncode == 0 and not p.stdout + p.stderr


def read(name, *args, want=None, code=0, prefix=("-b",)):
    """Its expositions as {name: family}, checked; the status and what it says too."""
    p = n.run(*prefix, "--format", "prometheus", *args, text=False)
    text, families, wrong = p.stdout.decode(errors="surrogateescape"), [], None
    try:
        for e in prom.expositions(text):
            families.append(prom.parse(e))
            if list(families[-1])[:5] != FIRST:
                wrong = "it does not begin with the host"
            elif not the_same(e, families[-1]):
                wrong = "Prometheus' parser reads something else"
            elif not promtool(e + "# EOF\n"):
                wrong = "promtool complains"
    except (prom.Bad, UnicodeError) as e:
        wrong = repr(e)
    n.ok(not wrong and (p.returncode, p.stderr) == (code, b"") and (want is None or len(families) == want),
         f"{name}: whole expositions, and nothing is wrong with them", (wrong, len(families), p.returncode, p.stderr))
    return families


def of_this_host():
    one = read("one interval", "-n", "1", "-d", "0.3", want=1)
    if one:
        n.same(prom.value(one[0], "kvmtop_host_cpus"), os.cpu_count(), "the host's CPUs are counted")
        n.near(prom.value(one[0], "kvmtop_interval_seconds"), 0.3, 0.25, "the interval is said")
    for t in TABLES:
        if t != "slow":
            read(f"--table {t}", "-n", "2", "-d", "0.1", "--table", t, want=2)
    read("--when that never holds", "-n", "2", "-d", "0.1", "--table", "host", "--when", "ncpu<0", want=0)
    got = read("--when that holds", "-n", "1", "-d", "0.1", "--table", "host", "--when", "ncpu>0", want=1, code=3)
    n.ok(got and prom.value(got[0], "kvmtop_host_cpus"), "and has its figure", got)


def of_a_recorded_host():
    got = read("a recorded host", "-n", "1", "-d", "0.1", "--root", os.path.join(ROOTS, "libvirt-9.0-systemd"), want=1)
    if not got:
        return
    m = got[0]
    n.same(prom.value(m, "kvmtop_vm_quota_ratio", vm="instance-000000a1"), 0.3, "its VM's quota, of one CPU")
    n.same(prom.value(m, "kvmtop_vm_vcpus", vm="db,1 \u6f22-b"), 1, "and the other one's vCPU")
    n.same(prom.value(m, "kvmtop_vm_info", title="Web front & mail", pid="28121", vmm="qemu",
                      uuid="8f7c2c1e-1b2d-4c3e-9f00-0000000000a1",
                      cgroup="/machine.slice/machine-qemu\\x2d1\\x2dinstance\\x2d000000a1.scope/libvirt/emulator"), 1,
           "what a VM is, with its cgroup to the letter")
    n.same(prom.value(m, "kvmtop_vcpu_info", vm="instance-000000a1", vcpu="1", tid="28828", kvm_id="1"), 1,
           "and what a vCPU is")
    # No event is counted there, and nothing says 0 of what is not known.
    n.same([x for x in m if "exit" in x and x != "kvmtop_host_code_lost_exits_total"], [], "no exits, which are not known")
    n.ok("kvmtop_unknown_figures" in m, "but that they are not", list(m))


HOSTILE = [b'}\n# TYPE x counter\nx{y="1"} 1\n\\', b"=\x1b[31m\xff\xc2\x9b\xe2\x80\xae\"} 1\r\n# EOF\n", b"twice", b"\\n",
           b"{a=\"b\",}", "\u202e\U0001f427 ".encode()]


def hostile_root(name, number):
    """A recorded host whose two VMs have the same name and UUID."""
    root = os.path.join(TMP, f"root{number}")
    shutil.copytree(os.path.join(ROOTS, "libvirt-9.0-nosystemd"), root, symlinks=True)
    shutil.rmtree(os.path.join(root, "run"))
    for pid in ("28831", "28850"):
        path = os.path.join(root, "proc", pid, "cmdline")
        with open(path, "rb") as f:
            words = f.read().split(b"\0")
        for word, value in ((b"-name", b"guest=" + name.replace(b",", b",,")), (b"-uuid", name)):
            words[words.index(word) + 1] = value
        with open(path, "wb") as f:
            f.write(b"\0".join(words))
    return root


def hostile():
    seen = set()
    for i, name in enumerate(HOSTILE):
        root = hostile_root(name, i)
        got = read(f"a VM called {name}", "-n", "1", "-d", "0.1", "--table", "cpu", "--root", root, want=1)
        p = n.run("-b", "-n", "1", "-d", "0.1", "--format", "json", "--root", root)
        called = json.loads(p.stdout)["vms"][0]["name"]
        labels = [dict(x) for x in got[0]["kvmtop_vm_cpu_ratio"].samples] if got else []
        n.ok(len(labels) == 2 and len({x["vm_id"] for x in labels}) == 2 and len({x["vm"] for x in labels}) == 1,
             "two VMs of one name have an id each", labels)
        n.ok(not called.isprintable() or "\\" in called or called == labels[0]["vm"], "a name that can be shown is as it is",
             (called, labels))
        seen.add(labels[0]["vm"] if labels else None)
    n.same(len(seen), len(HOSTILE), "no two names become the same")


def close(a, b):
    return a is None and b is None or (a is not None and b is not None and abs(a - b) <= 1e-9 + 1e-6 * abs(b))


def of_a_recording():
    """Each figure of VMs and vCPUs as JSON has it, in its base unit."""
    file = os.path.join(TMP, "old.db")
    with lzma.open(os.path.join(n.TOP, "tests/data/recording/v4.db.xz")) as f, open(file, "wb") as out:
        out.write(f.read())
    args = ("replay", file, "-b")
    for t in TABLES:
        if t not in ("slow", "vcpu-symbol"):
            read(f"a recording's {t}", "--table", t, prefix=args)
    figures = {"cpu_pct": ("cpu_ratio", 100), "steal_pct": ("steal_ratio", 100), "exits_per_s": ("exits_per_second", 1),
               "exit_pct": ("exit_ratio", 100), "p99_ns": ("exit_p99_seconds", 1e9), "mig_per_s": ("mig_per_second", 1)}
    records = [json.loads(x) for x in n.run(*args, "--format", "json", "--table", "cpu").stdout.splitlines()]
    metrics = read("a recording's VMs and vCPUs", "--table", "cpu", prefix=args, want=len(records))
    wrong, known, unknown = [], 0, 0
    for r, m in zip(records, metrics):
        rows = [("vm", vm, {"vm_id": vm["vm_id"]}) for vm in r["vms"]]
        rows += [("vcpu", v, {"vm_id": vm["vm_id"], "vcpu": str(v["vcpu"])}) for vm in r["vms"] for v in vm["vcpus"]]
        for level, row, labels in rows:
            for field, (name, by) in figures.items():
                got = prom.value(m, f"kvmtop_{level}_{name}", **labels)
                want = None if row[field] is None else row[field] / by
                known, unknown = known + (want is not None), unknown + (want is None)
                if not close(got, want):
                    wrong.append((level, labels, field, got, want))
    n.ok(not wrong and known > 50 and unknown > 5, "each figure is JSON's, and what is null there has no sample",
         (known, unknown, wrong[:5]))
    records = [json.loads(x) for x in n.run(*args, "--format", "json", "--table", "exit", "--totals").stdout.splitlines()]
    metrics = read("a recording's exits", "--table", "exit", prefix=args, want=len(records))
    wrong, known = [], 0
    for r, m in zip(records, metrics):
        for vm in r["vms"]:
            for x in vm["exits"]:
                got = prom.value(m, "kvmtop_vm_exits_total", vm_id=vm["vm_id"], kind=x["kind"], reason=x["key"])
                known += x["count"] is not None
                if not close(got, x["count"]):
                    wrong.append((vm["vm_id"], x["key"], got, x["count"]))
    n.ok(not wrong and known > 20, "counts of exits are those since the start", (known, wrong[:5]))


def for_node_exporter():
    """The man page's way to a file for its textfile collector: at any moment a whole exposition."""
    target = os.path.join(TMP, "kvmtop.prom")
    script = ("\"$KVMTOP\" -b --format prometheus -d 0.2 -n 3 | awk -v f=\"$1\" '{ print > (f \".new\") } "
              "/^# EOF/ { close(f \".new\"); system(\"mv \" f \".new \" f) }'")
    p = subprocess.run(["sh", "-c", script, "sh", target], capture_output=True, text=True, check=False,
                       env={**os.environ, "KVMTOP": n.KVMTOP}, timeout=60 * n.PATIENCE)
    with open(target, encoding="utf-8") as f:
        last = prom.expositions(f.read())
    n.ok(p.returncode == 0 and not p.stderr and len(last) == 1 and prom.parse(last[0]),
         "a file for node_exporter has the last exposition", (p, len(last)))


def main():
    of_this_host()
    of_a_recorded_host()
    hostile()
    of_a_recording()
    for_node_exporter()
    n.done()


main()
