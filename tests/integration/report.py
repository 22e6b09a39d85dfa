#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""kvmtop report against Debian's perf, which reads the same files: --perf-compat to the byte, for every
event, order, vCPU and process; the figures without it row by row; and where the two differ, that
--explain-perf tells the whole difference."""
# needs: cmd:perf
# limit: 400
# beside: yes

import csv
import functools
import io
import json
import lzma
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests"))
import perfdata_lib as pd  # noqa: E402
import native  # noqa: E402
from native import done, ok  # noqa: E402

TMP, TOP = os.environ["TEST_TMP"], os.environ.get("TOP", ".")
DATA = f"{TOP}/tests/data/perf"
EVENTS = ("vmexit", "mmio", "ioport", "msr")


run = functools.partial(native.run, "report", limit=300)


def perf(file, *args):
    """What perf says: on its standard error."""
    return subprocess.run(["perf", "kvm", "-i", file, "stat", "report", "-f", *args], check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, text=True,
                          stderr=subprocess.PIPE, env={**os.environ, "PAGER": "cat"}).stderr


def rows(text):
    """perf's rows: name, samples and the figures as they are printed."""
    found = {}
    for line in text.splitlines():
        m = re.match(r" *(\S.*?) +(\d+) +([\d.]+)% +([\d.]+)% +([\d.]+)us +([\d.]+)us +([\d.]+)us "
                     r"\( \+- *([\d.na-]+)% \)$", line)
        if m:
            found.setdefault(m[1], []).append((int(m[2]), *m.groups()[2:]))
    return found


# --- to the byte ---------------------------------------------------------------------------------

def same_bytes(file, what, options=()):
    wrong = []
    for event in EVENTS:
        for key in ("sample", "time"):
            theirs = perf(file, "--event", event, "-k", key, *options)
            ours = run("-i", file, "--event", event, "-k", key, "--perf-compat", *options).stdout
            if theirs != ours:
                wrong.append(f"{event} -k {key} {options}\n{theirs}\n{ours}")
    ok(not wrong, f"{what} {' '.join(options)}: as perf to the byte, every event and order", "\n".join(wrong))


# --- figures -------------------------------------------------------------------------------------

def our_rows(file, event, options):
    out = run("-i", file, "--event", event, "--format", "csv", *options)
    return {r["key"]: r for r in csv.DictReader(io.StringIO(out.stdout))}


def differences(file, event, options):
    """name: pairs and ns that perf has not."""
    out = run("-i", file, "--event", event, "--explain-perf", *options).stdout
    diff, names = {}, {}
    for m in re.finditer(rf"^{event} (.+) ([+-]\d+) ([+-]\d+) ns: (.*)$", out, re.M):
        n, ns = diff.get(m[1], (0, 0))
        diff[m[1]] = (n + int(m[2]), ns + int(m[3]))
        if m[4].startswith("perf calls it "):
            names[m[1]] = m[4].removeprefix("perf calls it ")
    return diff, names


def default_is_perf_and_the_list(file, what, options=()):
    """Each row of perf's is ours less what the list says, with perf's own digits for mean and shares."""
    wrong, listed = [], 0
    for event in EVENTS:
        ours = our_rows(file, event, options)
        diff, names = differences(file, event, options)
        listed += sum(abs(n) for n, _ in diff.values())
        wanted = {}
        for key in {*ours, *diff}:
            n, ns = diff.get(key, (0, 0))
            r = ours.get(key, {"timed": 0, "time_ns": 0})
            timed, time = int(r["timed"]) - n, int(r["time_ns"] or 0) - ns
            if timed or time:
                wanted.setdefault(names.get(key, key).split("(")[0], []).append((timed, f"{time / timed / 1000:.2f}" if timed else time))
        theirs = {k: sorted((v[0], v[5]) for v in vs) for k, vs in rows(perf(file, "--event", event, *options)).items()}
        wanted = {k: sorted(v) for k, v in wanted.items()}
        if theirs != wanted:
            wrong.append(f"{event}: perf {theirs}\nkvmtop and its list {wanted}")
    ok(not wrong, f"{what} {' '.join(options)}: figures = perf's and the list of --explain-perf ({listed} pairs)",
       "\n".join(wrong))
    return listed


def rows_like_perf(file, what):
    wrong, n = [], 0
    for event in EVENTS:
        ours = our_rows(file, event, ())
        for name, found in rows(perf(file, "--event", event)).items():
            r = ours.get(name)
            n += 1
            mine = r and (int(r["timed"]), f"{float(r['timed_pct']):.2f}", f"{float(r['time_pct']):.2f}",
                          f"{int(r['min_ns']) / 1000:.2f}", f"{int(r['max_ns']) / 1000:.2f}",
                          f"{int(r['time_ns']) / int(r['timed']) / 1000:.2f}", f"{float(r['stderr_pct']):.2f}")
            if not r or found != [mine]:
                wrong.append(f"{event} {name}: perf {found} kvmtop {mine}")
    ok(not wrong and n > 8, f"{what}: all {n} rows have perf's figures", "\n".join(wrong))


# --- recordings that nobody made -----------------------------------------------------------------

def no_first_entries(rec):
    """Each thread's recording begins with an exit."""
    seen = set()
    for r in rec.records:
        event = rec.event(r)
        if event and rec.tid(r) not in seen:
            if event != "kvm_exit":
                continue
            seen.add(rec.tid(r))
        yield r


def vmx(rec):
    """Reasons of VMX, some with flags, some that perf 6.1 does not know."""
    reasons = [30, 10, 32, 48, 0x8000001e, 0x0800000a, 0x54, 0x80000021, 12, 0x4d]
    for i, r in enumerate(rec.records):
        if rec.event(r) == "kvm_exit":
            old = rec.get(r, "kvm_exit", "exit_reason")
            r = rec.set(r, "kvm_exit", "exit_reason", reasons[(old + (i // 40)) % len(reasons)])
            r = rec.set(r, "kvm_exit", "isa", 1)
        yield r


def losses(rec):
    for i, r in enumerate(rec.records):
        if rec.event(r) and i % 900 == 450:
            yield rec.lost(r, 7)
        yield r


def lost_samples(rec, n):
    """The losses as records, and n as the kernel's own count of them, as perf record adds it."""
    yield from losses(rec)
    yield rec.lost_samples(next(r for r in rec.records if rec.event(r)), n)


def lost_once(file, n):
    """A loss that is told of twice is one."""
    out = run("-i", file, "--format", "json")
    ok(json.loads(out.stdout)["lost"] == n and f": {n} events were lost" in out.stderr, f"{n} events were lost, told of twice",
       out.stderr)


def late_loss(rec, file):
    """A CPU that tells of its loss at the end only: no pair in between is timed."""
    last = max((r for r in rec.records if rec.event(r)), key=rec.time)
    cpu = last[rec.offset(pd.CPU):rec.offset(pd.CPU) + 4]
    first = min((r for r in rec.records if rec.event(r) and r[rec.offset(pd.CPU):rec.offset(pd.CPU) + 4] == cpu), key=rec.time)
    kept = [r for r in rec.records if rec.event(r) and r[rec.offset(pd.CPU):rec.offset(pd.CPU) + 4] != cpu]
    kept = [r for r in rec.records if not rec.event(r)] + [first, *kept, rec.lost(last, 5000)]
    rec.save(file, kept)
    out = run("-i", file, "--format", "json")
    j = json.loads(out.stdout)
    ok(j["lost"] == 5000 and j["torn"] > 100 and sum(e["timed"] for e in j["exits"]) < 10 and "5000 events were lost" in out.stderr,
       "a loss that is told of at the end: what came before it is not timed either", out.stdout[:500] + out.stderr)


def other_vcpu(rec):
    """From its middle on each thread runs another vCPU."""
    half = sorted(rec.time(r) for r in rec.records if rec.event(r))[5000]
    for r in rec.records:
        event = rec.event(r)
        if event in ("kvm_entry", "kvm_exit") and rec.time(r) > half:
            r = rec.set(r, event, "vcpu_id", rec.get(r, event, "vcpu_id") ^ 1)
        yield r


def mixed_mmio(rec):
    """Where an exit read unsatisfied, it wrote in place of it: then the write and the read are in one exit."""
    for i, r in enumerate(rec.records):
        if rec.event(r) == "kvm_mmio" and rec.get(r, "kvm_mmio", "type") == 0 and i % 5 == 0:
            r = rec.set(r, "kvm_mmio", "type", 2)
        yield r


def missing_entries(rec):
    n = 0
    for r in rec.records:
        if rec.event(r) == "kvm_entry":
            n += 1
            if n % 97 == 0:
                continue
        yield r


def disorder(rec):
    """Rounds in the middle of everything: what comes late is handed out late, as perf does."""
    for i, r in enumerate(rec.records):
        yield r
        if i % 500 == 499:
            yield b"\x44\0\0\0\0\0\x08\0"


def made(rec, name, records, tail=None):
    path = f"{TMP}/{name}.data"
    rec.save(path, records, tail)
    return path


def all_variants(rec):
    intel = bytes(rec.tail).replace(b"AuthenticAMD", b"GenuineIntel")
    yield "first exits", made(rec, "first", no_first_entries(rec)), True
    yield "VMX", made(rec, "vmx", vmx(rec), intel), True
    yield "losses", made(rec, "lost", losses(rec)), True
    yield "few lost samples", made(rec, "lost1", lost_samples(rec, 200)), True
    yield "many lost samples", made(rec, "lost2", lost_samples(rec, 3000)), True
    yield "two vCPUs a thread", made(rec, "vcpu", other_vcpu(rec)), False
    yield "mixed MMIO", made(rec, "mixed", mixed_mmio(rec)), True
    yield "missing entries", made(rec, "missing", missing_entries(rec)), False
    yield "many rounds", made(rec, "rounds", disorder(rec)), False


# --- how it is read ------------------------------------------------------------------------------

def ways_to_read(file, rec):
    whole = run("-i", file, "--event", "all", "--format", "csv").stdout
    with open(file, "rb") as f:
        again = run("-i", "-", "--event", "all", "--format", "csv", stdin=f).stdout
    ok(again == whole and whole.count("\n") > 10, "standard input that is a file")
    for options, word in (("-p", "1"), "-p"), (("--vcpu", "99"), "--vcpu"), (("-p", "1", "--vcpu", "99"), "-p and --vcpu"):
        p = run("-i", file, *options, "--format", "csv")
        ok(p.returncode == 0 and p.stdout.count("\n") == 1 and p.stderr.endswith(f"none is of what {word} chose\n"),
           f"{' '.join(options)} finds nothing: it is said", p.stderr + p.stdout)
    with open("/dev/full", "wb") as full:
        p = subprocess.run([native.KVMTOP, "report", "-i", file], stdin=subprocess.DEVNULL, stdout=full,
                           stderr=subprocess.PIPE, text=True, check=False)
    ok(p.returncode == 1 and p.stderr == "kvmtop: cannot write the tables: No space left on device\n", "a full disk is said",
       p.stderr)
    pipe = f"{TMP}/pipe.data"
    rec.save_pipe(pipe)
    with open(pipe, "rb") as f:
        cat = subprocess.Popen(["cat"], stdin=f, stdout=subprocess.PIPE)
        piped = run("-i", "-", "--event", "all", "--format", "csv", stdin=cat.stdout)
        cat.stdout.close()
        cat.wait()
    ok(piped.stdout == whole, "perf's pipe mode, through a pipe", piped.stderr + piped.stdout)
    ok(run("-i", pipe, "--event", "all", "--format", "csv").stdout == whole, "pipe mode kept in a file")
    cat = subprocess.Popen(["cat", file], stdout=subprocess.PIPE)
    refused = run("-i", "-", stdin=cat.stdout)
    cat.stdout.close()
    cat.wait()
    ok(refused.returncode == 1 and "give its name" in refused.stderr and refused.stderr.count("\n") == 1,
       "a file through a pipe is refused in one line", refused.stderr)
    return pipe


def cut_short(file, pipe):
    size = os.path.getsize(pipe)
    with open(pipe, "rb") as f:
        data = f.read()
    part = f"{TMP}/part.data"
    with open(part, "wb") as f:
        f.write(data[:size * 2 // 3 + 1])
    out = run("-i", part, "--format", "json")
    j = json.loads(out.stdout or "{}")
    ok(out.returncode == 0 and j.get("cut") and j["events"] > 1000 and out.stderr.count("\n") == 1 and
       "ends before its end" in out.stderr, "cut off: read as far as it is whole, said in one line", out.stderr)
    with open(file, "rb") as f:
        data = f.read()
    with open(part, "wb") as f:
        f.write(data[:len(data) // 2])
    out = run("-i", part)
    ok(out.returncode in (0, 1) and out.stderr.count("\n") == 1, "a file without its end: one line", out.stderr)


def a_folder():
    out = run("-i", TMP)
    ok(out.returncode == 1 and "record without --threads" in out.stderr and out.stderr.count("\n") == 1,
       "a folder of perf record --threads is refused in one line", out.stderr)


def kinds_of_a_file(file):
    """A file without kvm_exit: what is not in it is no 0, and what is in it is said."""
    old = f"{TMP}/native.data"
    with open(old, "wb") as f, lzma.open(f"{DATA}/native-zstd-6.18.perf.data.xz") as xz:
        f.write(xz.read())
    shown = [run("-i", old, *e).stderr.replace(f"kvmtop: {old}: ", "").splitlines() for e in
             ((), ("--event", "hypercall,userexit"), ("--event", "mmio"), ("--event", "vmexit", "--perf-compat"))]
    has = "none of these events in it; of others: --event mmio,ioport,msr,userexit"
    ok(shown == [["not recorded: vmexit: perf record -a -e 'kvm:*' has all kinds", has],
                 ["not recorded: hypercall: perf record -a -e 'kvm:*' has all kinds"], [], []],
       "kinds that were not recorded, and those that were", shown)
    text = run("-i", old, "--event", "vmexit,ioport").stdout
    ok("# vmexit: not recorded\n" in text and "# ioport: " in text and text.count("REASON") == 1,
       "a kind that was not recorded has no table", text)
    ok(not any("not recorded" in run("-i", file, "--event", e).stderr for e in ("vmexit,mmio,ioport", "all")),
       "nothing is missing of perf kvm stat's")


def formats_of_output(file):
    j = json.loads(run("-i", file, "--event", "vmexit,msr", "--format", "json").stdout)
    c = list(csv.DictReader(io.StringIO(run("-i", file, "--event", "vmexit,msr", "--format", "csv").stdout)))
    ok(c and [(e["kind"], e["key"], e["count"], e["time_ns"]) for e in j["exits"]] ==
       [(r["kind"], r["key"], int(r["count"]), int(r["time_ns"])) for r in c], "JSON and CSV have the same rows")
    for word, column in (("max_t", "max_ns"), ("min_t", "min_ns"), ("mean_t", "avg_ns"), ("p99", "p99_ns"), ("time", "time_ns")):
        c = [float(r[column]) for r in csv.DictReader(io.StringIO(run("-i", file, "-k", word, "--format", "csv").stdout))]
        back = [float(r[column]) for r in csv.DictReader(io.StringIO(run("-i", file, "-rk", word, "--format", "csv").stdout))]
        ok(c == sorted(c, reverse=True) and back == c[::-1] and len(c) > 4, f"ordered by {word}, and turned round")
    c = list(csv.DictReader(io.StringIO(run("-i", file, "--event", "all", "--format", "csv").stdout)))
    wrong = [r for r in c
             if not float(r["min_ns"]) <= float(r["p50_ns"]) <= float(r["p99_ns"]) <= float(r["p999_ns"]) <= float(r["max_ns"])]
    ok(c and not wrong, "percentiles lie between minimum and maximum", wrong)


def main():
    version = subprocess.run(["perf", "version"], capture_output=True, text=True, check=False).stdout
    if not version.startswith("perf version 6.1."):
        print(f"1..0 # SKIP needs:cmd:perf its version is 6.1 ({version.strip()})")
        return
    rec = pd.Recording(f"{DATA}/kvm-6.1-svm.perf.data.xz")
    file = f"{TMP}/kvm.data"
    with open(file, "wb") as f, lzma.open(f"{DATA}/kvm-6.1-svm.perf.data.xz") as xz:
        f.write(xz.read())
    pids = sorted({int.from_bytes(r[rec.offset(pd.TID):rec.offset(pd.TID) + 4], "little") for r in rec.records if rec.event(r)})
    same_bytes(file, "recording")
    work = f"{TMP}/work.data"
    with open(work, "wb") as f, lzma.open(f"{DATA}/workloads-6.1-svm.perf.data.xz") as xz:
        f.write(xz.read())
    for options in ((), ("--vcpu", "0"), ("--vcpu", "1"), ("-p", "139"), ("-p", "135", "--vcpu", "1")):
        same_bytes(work, "workloads", options)
        default_is_perf_and_the_list(work, "workloads", options)
    for options in (("--vcpu", "0"), ("--vcpu", "1"), ("--vcpu", "9"), *(("-p", str(p)) for p in pids),
                    ("-p", ",".join(map(str, pids)), "--vcpu", "1"), ("-p", "1")):
        same_bytes(file, "recording", options)
    rows_like_perf(file, "recording")
    default_is_perf_and_the_list(file, "recording")
    ways = ways_to_read(file, rec)
    cut_short(file, ways)
    a_folder()
    kinds_of_a_file(file)
    formats_of_output(file)
    late_loss(rec, f"{TMP}/late.data")
    listed = 0
    for what, path, must in all_variants(rec):
        same_bytes(path, what)
        same_bytes(path, what, ("--vcpu", "1"))
        n = default_is_perf_and_the_list(path, what)
        n += default_is_perf_and_the_list(path, what, ("--vcpu", "1"))
        ok(n or not must, f"{what}: there are differences")
        listed += n
    lost_once(f"{TMP}/lost2.data", 3000)
    ok(listed > 20, f"{listed} differences were explained")
    done()


if __name__ == "__main__":
    main()
