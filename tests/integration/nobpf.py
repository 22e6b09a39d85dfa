#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# sanitize: no, it makes a program of its own
"""make BPF=0: the whole program without clang and libbpf, and what it says of itself: that it has no BPF, what mends
that, and that auto takes the other way."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

B = "build/nobpf"
K = f"{B}/kvmtop"
WITHOUT = os.path.join(os.environ["TEST_TMP"], "without")
NO_BPF = "kvmtop was made without BPF"
EVENTS = "/sys/kernel/tracing/events/kvm/kvm_exit/id"


def output(*argv):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout


def put(path, text):
    with open(os.path.join(WITHOUT, path), "w", encoding="ascii") as f:
        f.write(text)
        os.fchmod(f.fileno(), 0o755)


def as_without():
    """As on a machine that has neither clang nor libbpf: who asks for them fails."""
    os.makedirs(f"{WITHOUT}/include/bpf")
    os.makedirs(f"{WITHOUT}/bin")
    for header in ("bpf", "btf", "libbpf", "bpf_helpers"):
        put(f"include/bpf/{header}.h", "#error made without BPF, but it wants libbpf\n")
    put("bin/pkg-config", '#!/bin/sh\ncase "$*" in *libbpf*) echo "no libbpf here" >&2; exit 1 ;; esac\n'
        f'exec {shutil.which("pkg-config")} "$@"\n')
    for tool in ("clang", "llvm-strip", "bpftool"):
        put(f"bin/{tool}", "#!/bin/sh\necho no clang here >&2\nexit 127\n")
    return {**os.environ, "PATH": f"{WITHOUT}/bin:{os.environ['PATH']}"}


def users():
    """The files that differ without BPF."""
    found = []
    for path in sorted(glob.glob("*/*.c")):
        with open(path, encoding="utf-8") as f:
            if re.search(r"^#\s*if.*\bKVMTOP_BPF\b", f.read(), re.M):
                found.append(path[:-2])
    return found


def make():
    """Only these are compiled: the other objects are those of a program with BPF, as the flags are."""
    flags = [output("make", "-s", "--no-print-directory", f"BPF={bpf}", "B=build", "print-cflags") for bpf in (0, 1)]
    n.same(flags[0], flags[1], "what knows nothing of BPF is compiled as it is in a program with it")
    shutil.rmtree(B, ignore_errors=True)
    shutil.copytree(os.path.join(n.BUILD, "obj"), f"{B}/obj")  # with their times
    differ = users()
    for path in differ:
        for kind in "od":
            os.unlink(f"{B}/obj/{path}.{kind}")
    p = subprocess.run(["make", "BPF=0", f"B={B}", f"CFLAGS=-isystem {WITHOUT}/include", "-o", f"{B}/flags"],
                       env=as_without(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, check=False)
    n.same(p.returncode, 0, "make BPF=0 makes the program where there is no clang and no libbpf") or n.say(p.stdout)
    n.same(sorted(re.findall(r"^CC (\S+)\.c$", p.stdout, re.M)), differ, "the files that use BPF were compiled for it")


def linked():
    n.ok("libbpf" in output("readelf", "-d", n.KVMTOP), "a program with BPF is linked with libbpf")
    n.ok("libbpf" not in output("readelf", "-d", K), "the one without is not")
    n.ok("libbpf" not in output("ldd", K), "nor is a library that it uses")
    names = output("readelf", "--syms", "--dyn-syms", "-W", K)
    n.same(re.findall(r" (libbpf_\S+|bpf_(?:object|program|map)__\S+|ring_buffer__\S+|\S+_bpf_o)$", names, re.M), [],
           "it asks for nothing of libbpf and has no programs for the kernel in it")


def doctor():
    """Lines of kvmtop doctor: (collector, source): [state, why, mend]."""
    p = subprocess.run([K, "doctor", "--format", "json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    return {(s["collector"], s["source"]): [s["state"], s["why"], s["mend"]] for s in json.loads(p.stdout)["sources"]}


def batch(*args, program=K):
    """One record, and its sources by name: [state, why, mend]."""
    p = subprocess.run([program, "--batch", "-n", "1", "-d", "0.2", "--format", "json", *args], timeout=60,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True)
    if p.returncode or p.stderr:
        n.ok(False, f"--batch {' '.join(args)} ends well", p.stderr)
        return {}, {}
    record = json.loads(p.stdout)
    return record, {s["name"]: [s["state"], s["why"], s["mend"]] for s in record["sources"]}


def says():
    n.same(output(K, "--version"), output(n.KVMTOP, "--version"), "it is the same version")
    by_proc = ["partial", f"read from /proc, ten times dearer: {NO_BPF}", "make BPF=1"]
    n.same(doctor().get(("sched", "threads")), by_proc, "doctor says that it has no BPF, and what mends it")
    record, sources = batch()
    n.same(sources.get("threads"), by_proc, "--batch says it too")
    n.ok(record.get("host", {}).get("usr_pct") is not None, "and has the host's figures")


def events():
    if not os.path.exists(EVENTS) and os.geteuid() == 0:
        subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], stderr=subprocess.DEVNULL,
                       check=False)
    if not os.path.exists(EVENTS):
        n.skip("events without BPF", "needs:tracefs no kvm events here" if os.geteuid() == 0 else "needs:root")
        return
    counting = ["counting in the kernel: " + NO_BPF, "make BPF=1"]
    lines = doctor()
    for where, state in ((("kvm_events", "kvm counting"), "partial"), (("waits", "waits"), "off"),
                         (("vpmu", "vpmu"), "off")):
        n.same(lines.get(where), [state, *counting], f"doctor: {where[1]}")
    # who asks for what it has not is told so, and gets no figures of the other source in its place
    record, sources = batch("--events-by", "bpf")
    n.same((record["host"]["events_by"], sources["kvm_events"]), ("none", ["off", *counting]),
           "--events-by bpf: no events are taken, and it is said why and what mends it")
    p = subprocess.run([K, "--batch", "-n", "1", "-d", "0.2", "--events-by", "bpf"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False, text=True)
    n.same([line for line in p.stdout.splitlines() if NO_BPF in line], [f"# ? kvm_events: {': '.join(counting)}"],
           "--events-by bpf: as text that is one line")
    if batch("--events-by", "perf", program=n.KVMTOP)[0]["host"]["events_by"] != "perf":
        n.skip("--events-by auto without BPF", "needs:perf-events")
        return
    record, sources = batch("--events-by", "auto")
    n.same(record["host"]["events_by"], "perf", "--events-by auto: each event is taken")
    n.same(sources["kvm_events"], ["ok", f"works: each event is taken; {counting[0]}", None],
           "--events-by auto: it says why")


if __name__ == "__main__":
    make()
    linked()
    says()
    events()
    n.done()
