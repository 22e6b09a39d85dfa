#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 300
# beside: yes
"""kvmtop --batch as a program: formats by real parsers, ends, errors."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

TABLES = [line.split("\t")[0] for line in subprocess.run(
    [n.KVMTOP, "--dump-tables", "tables"], capture_output=True, text=True,
    check=True).stdout.splitlines()]


RECORDED = os.path.join(n.TOP, "tests/data/roots/tinyvm-6.18")


def run(*args, limit=60, env=None, **more):
    return subprocess.run([n.KVMTOP, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=limit, check=False, env={**os.environ, **(env or {})}, **more)


def start(*args, stdout=subprocess.PIPE):
    return n.child([n.KVMTOP, "--batch", *args], stdin=subprocess.DEVNULL, stdout=stdout,
                   stderr=subprocess.PIPE)


def schema():
    with open(f"{n.TOP}/docs/kvmtop.schema.json", encoding="utf-8") as f:
        s = json.load(f)
    jsonschema.Draft202012Validator.check_schema(s)
    check = jsonschema.Draft202012Validator(s)
    for args in [(), ("--event", "all", "--totals"), ("--fields", "cpu_pct,steal_pct,pin"),
                 *(("--table", t) for t in TABLES)]:
        p = run("-b", "-n", "2", "-d", "0.1", "--format", "json", *args)
        lines = p.stdout.splitlines()
        errors = [f"{list(e.absolute_path)}: {e.message[:200]}" for line in lines
                  for e in check.iter_errors(json.loads(line))]
        n.ok(len(lines) == 2 and not errors and p.returncode == 0,
             f"json {' '.join(args)}: two lines that the schema takes", errors[:5] or p.stderr)


def tables():
    for t in TABLES:
        p = run("-b", "-n", "2", "-d", "0.1", "--format", "csv", "--table", t)
        rows = list(csv.reader(io.StringIO(p.stdout, newline="")))
        n.ok(rows and len(set(rows[0])) == len(rows[0]) and {len(r) for r in rows} == {len(rows[0])},
             f"csv {t}: no column twice, all rows as wide as the head", rows[:2])
        n.same(rows[0][:10] if rows else None, "time interval_s node level vm vm_id pid vcpu table key".split(),
               f"csv {t}: the columns in front")


def text():
    p = run("-b", "-n", "2", "-d", "0.1", env={"TZ": "Asia/Kolkata", "LC_ALL": "de_DE.UTF-8",
                                               "LC_NUMERIC": "de_DE.UTF-8"})
    n.ok("\x1b" not in p.stdout and p.stderr == "", "text has no escape codes", p.stderr)
    n.same(len([x for x in p.stdout.splitlines() if x.startswith("TIME")]), 2,
           "a line of titles every interval")
    n.ok(re.search(r"^# \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+05:30 ", p.stdout),
         "the time has its zone", p.stdout[:100])
    rows = [x.split() for x in p.stdout.splitlines() if not x.startswith("#")]
    n.same(len({len(r) for r in rows}), 1, "all rows have as many cells as there are titles")
    n.ok(not re.search(r"\d,\d", p.stdout), "numbers are not localised", p.stdout)


def rhythm():
    p = start("-d", "1", "--format", "json")
    began = time.monotonic()
    first = json.loads(p.stdout.readline())
    took = time.monotonic() - began
    n.ok(0.9 < first["interval_s"] < 1.3, "the first record is of one interval", first["interval_s"])
    n.ok(took < 30, "and comes after it", took)
    n.ok(json.loads(p.stdout.readline())["interval_s"] > 0.5, "the next one as well")
    for sig, name in ((signal.SIGTERM, "SIGTERM"), (signal.SIGINT, "SIGINT")):
        if sig == signal.SIGINT:
            p = start("-d", "0.1", "--format", "json")
            p.stdout.readline()
        p.send_signal(sig)
        rest, err = p.communicate(timeout=20)
        n.same((p.returncode, err), (0, b""), f"{name}: ends well and says nothing")
        n.ok(rest == b"" or rest.endswith(b"}\n"), f"{name}: after a whole record", rest[-80:])


def gone_readers():
    p = subprocess.run(["bash", "-o", "pipefail", "-c",
                        f"'{n.KVMTOP}' -b -d 0.1 --format csv | head -n 2 | wc -l"],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    n.same((p.stdout.strip(), p.stderr, p.returncode), ("2", "", 0), "| head ends it quietly")
    p = start("-d", "0.1", "--when", "cpu_pct<0")
    p.stdout.close()
    try:
        n.same(p.wait(20), 0, "a reader that went away is noticed also when nothing is to be written")
    except subprocess.TimeoutExpired:
        n.ok(False, "a reader that went away is noticed also when nothing is to be written")
        p.kill()
    p = start("-d", "0.1", "--format", "json")
    time.sleep(3)  # nobody reads: the pipe is full by then, or soon
    p.send_signal(signal.SIGTERM)
    try:
        n.same(p.wait(20), 0, "SIGTERM ends it also while nobody reads")
    except subprocess.TimeoutExpired:
        n.ok(False, "SIGTERM ends it also while nobody reads")
        p.kill()
    p.stdout.close()


def slow_reader():
    p = start("-d", "0.1", "--format", "json", "--event", "all")
    p.stdout.readline()
    time.sleep(8 if not n.SANITIZED else 15)  # the pipe fills, then the intervals that may wait
    threading.Timer(1, p.send_signal, (signal.SIGTERM,)).start()
    rest, err = p.communicate(timeout=30)
    n.ok(n.every(json.loads(x)["schema"] == 1 for x in rest.splitlines()), "a slow reader gets whole records")
    n.ok(b"intervals were skipped" in err, "and is told of those that it missed", err)


def errors():
    with open("/dev/full", "wb") as full:
        p = start("-d", "0.1", "-n", "3", stdout=full)
        _, err = p.communicate(timeout=60)
    n.ok(p.returncode == 1 and b"No space left" in err and err.count(b"\n") == 1,
         "a full disk: status 1 and one line", (p.returncode, err))
    p = subprocess.run(["bash", "-c", f"exec '{n.KVMTOP}' -b -d 0.1 -n 2 >&-"], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=60, check=False)
    n.ok(p.returncode == 1 and p.stderr.count("\n") == 1, "no standard output: status 1 and one line",
         (p.returncode, p.stderr))
    p = run("-b", "-n", "1", "-d", "x")
    n.ok(p.returncode == 2 and p.stderr.count("\n") == 1 and not p.stdout, "wrong usage: status 2",
         (p.returncode, p.stderr))
    p = run()
    n.ok(p.returncode == 1 and "--batch" in p.stderr and p.stderr.count("\n") == 1,
         "without a terminal the full screen says how to go on", (p.returncode, p.stderr))
    p = run("-b", "-n", "1", "-d", "0.1", "--root", "/nonexistent")
    n.ok(p.returncode == 1 and p.stderr.count("\n") == 1, "no such root: status 1 and one line",
         (p.returncode, p.stderr))
    p = run("-b", "-n", "2", "-d", "0.1", "-M", "no such VM")
    n.ok(p.returncode == 0 and p.stderr.count("\n") == 1, "a VM that is not there is told once", p.stderr)
    p = run("-b", "-n", "2", "-d", "0.1", "--vcpu", "77", "--root", RECORDED)
    n.ok(p.returncode == 0 and "--vcpu" in p.stderr and p.stderr.count("\n") == 1,
         "so is a vCPU that no VM has", p.stderr)
    p = run("-b", "-n", "2", "-d", "0.1", "--vcpu", "0", "--root", RECORDED)
    n.same((p.returncode, p.stderr), (0, ""), "and one that is there is not")


def conditions():
    p = run("-b", "-n", "3", "-d", "0.1", "--table", "host", "--when", "ncpu>0 for 2", "--format", "json")
    n.same((p.returncode, len(p.stdout.splitlines())), (3, 2), "--when … for 2: from the second interval on")
    p = run("-b", "-n", "2", "-d", "0.1", "--table", "host", "--when", "ncpu<0")
    n.same((p.returncode, p.stdout), (0, ""), "--when that never holds: nothing, status 0")


def doctor():
    p = run("doctor")
    n.ok(p.returncode == 0 and "perf_event_paranoid" in p.stdout, "doctor reports", p.stderr)
    n.ok(re.search(r"^ok +symbols +host kernel +works: \d{4,} names$", p.stdout, re.M), "and counts the host kernel's names",
         p.stdout)
    r = json.loads(run("doctor", "--format", "json").stdout)
    n.ok(n.every(s["state"] in ("ok", "partial", "off") and s["why"] for s in r["sources"]),
         "each source has a state and words", r["sources"])
    n.ok({"kernel", "lockdown", "capabilities"} <= set(r["host"]), "and the host is described", r["host"])
    p = run("doctor", "--root", os.environ.get("TEST_TMP", "/tmp"))
    n.ok("mount" in p.stdout or "KVM" in p.stdout, "an empty root: it says what is missing", p.stdout)


# Line ends, escape codes, quotes, a formula, bytes that are no UTF-8, a C1 control, right-to-left.
HOSTILE = b'=evil ;"x"\n\x1b[31m\xff\xc2\x9b\xe2\x80\xae$(reboot)'


def hostile_name():
    g = n.Guest("-r", 1000, "-l", "inf", "spin:100 out:3", program=n.posing_as("qemu-system-x86_64"),
                tail=("-name", b"guest=" + HOSTILE + b",debug-threads=on")).go()
    r = [json.loads(x) for x in run("-b", "-n", "2", "-d", "0.3", "--format", "json", "--event", "ioport",
                                    "-p", str(g.pid)).stdout.splitlines()]
    vm = n.vm_of(r[-1], g.pid) or {}
    n.same(vm.get("name"), HOSTILE.replace(b"\xff", b"\\xff").decode(), "json: a hostile name as it is")
    n.ok(vm.get("exits") and vm["exits"][0]["key"] == "0x3f8:POUT", "json: its exits", vm.get("exits"))
    for fmt in ("csv", "text"):
        p = subprocess.run([n.KVMTOP, "-b", "-n", "3", "-d", "0.5", "--format", fmt, "--table", "vm", "-p",
                            str(g.pid)], stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                           check=False)
        n.ok(b"$(reboot)" in p.stdout and not re.search(rb"[\x00-\x09\x0b-\x1f\x7f\xff]|\xc2\x9b|\xe2\x80\xae",
                                                      p.stdout),
             f"{fmt}: nothing in a hostile name reaches a terminal", p.stdout)
        lines = [x for x in p.stdout.decode().splitlines() if not x.startswith("#")]
        rows = [x.split() for x in lines] if fmt == "text" else list(csv.reader(lines))
        n.ok(len(rows) > 1 and len({len(r) for r in rows}) == 1, f"{fmt}: and a line is a row", lines)
        if fmt == "csv":
            n.ok(rows[-1][4].startswith("\\x3devil ;\"x\"\\n\\e[31m"), "csv: no formula for a spreadsheet",
                 rows)
    schema()
    tables()
    g.kill()


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def large_host():
    """Finding 1,500 VMs takes longer than an interval: the first record has them all, with figures."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMP", "/tmp")) as root:
        tail = " 1 0 0 0 9 0 0 0 20 0 1 0 5000 1 4 " + "0 " * 19 + "9 0 0 0 0 0 0 0 0 0\n"
        for pid in range(1000, 4000, 2):
            tid, proc = pid + 1, f"{root}/proc/{pid}"
            put(f"{proc}/stat", f"{pid} (qemu-system-x86) S 1 1 1 0 -1 4194304{tail}")
            put(f"{proc}/cmdline", f"qemu-system-x86_64\0-name\0vm{pid}\0")
            put(f"{proc}/task/{pid}/stat", f"{pid} (qemu-system-x86) S 1 1 1 0 -1 4194304{tail}")
            put(f"{proc}/task/{tid}/stat", f"{tid} (CPU 0/KVM) S 1 1 1 0 -1 4194368{tail}")
            put(f"{proc}/status", f"Name:\tq\nTgid:\t{pid}\n")
            os.mkdir(f"{proc}/fd")
            os.symlink("anon_inode:kvm-vm", f"{proc}/fd/9")
            put(f"{root}/sys/kernel/debug/kvm/{pid}-9/vcpu0/pid", f"{tid}\n")
        p = run("-b", "-n", "1", "-d", "0.1", "--format", "json", "--root", root)
        vms = json.loads(p.stdout)["vms"]
        n.same((p.returncode, p.stderr, len(vms)), (0, "", 1500), "a large host: the first record has every VM")
        n.same([vm["name"] for vm in vms if len(vm["vcpus"]) != 1 or vm["cpu_pct"] is None], [],
               "a large host: and each has its vCPU and figures")
        p = run("-b", "-n", "1", "-d", "0.1", "--format", "csv", "--table", "vm", "-M", "vm3998", "--root", root)
        n.same(len(p.stdout.splitlines()), 2, "a large host: one that is asked for by name is found at once")


def pid_is_used_again():
    """A VM ends and another's process and vCPU thread get its numbers, with counters that begin anew."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMP", "/tmp")) as root:
        def vm(name, start, ticks):
            tail = f" 1 0 0 0 {ticks} {ticks // 3} 0 0 20 0 2 0 {start} 1 4 {'0 ' * 19}{ticks // 2} 0 0 0 0 0 0 0 0 0\n"
            put(f"{root}/proc/1000/cmdline", f"qemu-system-x86_64\0-name\0{name}\0")
            put(f"{root}/proc/1000/status", "Name:\tq\nTgid:\t1000\n")
            for tid, comm in ((1000, "qemu-system-x86"), (1001, "CPU 0/KVM")):
                put(f"{root}/proc/1000/task/{tid}/schedstat", f"{ticks * 10000000} {ticks * 5000000} {ticks}\n")
                put(f"{root}/proc/1000/task/{tid}/stat", f"{tid} ({comm}) S 1 1 1 0 -1 4194304{tail}")
            put(f"{root}/proc/1000/stat", f"1000 (qemu-system-x86) S 1 1 1 0 -1 4194304{tail}")

        vm("first", 5000, 100000)
        os.mkdir(f"{root}/proc/1000/fd")
        os.symlink("anon_inode:kvm-vm", f"{root}/proc/1000/fd/9")
        top = n.Kvmtop("--root", root).skip(4)
        before = top.records[-1]["vms"]
        vm("second", 9000, 3)
        top.until(lambda r: [x["name"] for x in r["vms"]] == ["second"] and r["vms"][0]["cpu_pct"] is not None, 30,
                  "a pid that is used again: the new VM takes the old one's place, with figures of its own")
        r = top.end()
    n.same([x["name"] for x in before], ["first"], "a pid that is used again: the VM before")
    n.ok(len({x["vm_id"] for y in r for x in y["vms"]}) == 2, "a pid that is used again: two VMs",
         [[x["vm_id"] for x in y["vms"]] for y in r])
    n.same([b for x in r for b in n.finite(x)], [], "a pid that is used again: no figure is absurd")


def main():
    if os.access("/dev/kvm", os.R_OK | os.W_OK) and os.geteuid() == 0:
        hostile_name()
    else:
        n.skip("a hostile name", "needs:kvm,root")
        schema()
        tables()
    large_host()
    pid_is_used_again()
    text()
    rhythm()
    gone_readers()
    slow_reader()
    errors()
    conditions()
    doctor()
    n.done()


main()
