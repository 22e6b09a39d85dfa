#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: kvm
# limit: 240
# beside: yes
"""kvmtop bundle: what is in it, that it is said before, and that --anonymize lets no name through."""

import ctypes
import datetime
import functools
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

TMP = os.environ["TEST_TMP"]
FILE = f"{TMP}/r.db"
UUID = "8f7c2c1e-1b2d-4c3e-9f00-0000000000bb"
NAMES = "secretweb01", "secret db, \u6f22"
# None of these may be in an anonymized bundle.
WORDS = ["secretweb01", "secretweb", "secret db", "secret\\x20db", "\u6f22", UUID, "hiddenpassword", "hidden-title"]


run = functools.partial(n.run, limit=150)


def record():
    program = n.posing_as("qemu-system-x86_64")
    g = [n.Guest("-l", "inf", "-r", "1000", "out:10 sleep:1", "spin:inf", program=program,
                 tail=("-name", f"guest={NAMES[0]},debug-threads=on", "-uuid", UUID, "-append", "hiddenpassword")).go(),
         n.Guest("-l", "inf", "-r", "500", "in:10 sleep:1", "-t", f"qemu:{NAMES[0]}", program=program,
                 tail=("-name", f"guest={NAMES[1]}", "-comment", "hidden-title")).go()]
    time.sleep(0.3)
    p = run("record", "-o", FILE, "-d", "0.1", "-n", "15", "--event", "userexit,ioport")
    n.ok(p.returncode == 0, "recorded", p.stderr)
    for x in g:
        x.kill()


def content(file):
    """{name below the folder: bytes} of an archive."""
    with tarfile.open(file) as t:
        members = t.getmembers()
        n.ok(n.every(m.isfile() and m.mode == 0o600 and "/" in m.name and not m.name.startswith(("/", ".."))
                 for m in members), "files only, below one folder, 0600", [m.name for m in members])
        return {m.name.split("/", 1)[1]: t.extractfile(m).read() for m in members}


def unpack(data, length):
    """What zstd packed: the library that kvmtop is linked with, since Python has none of its own."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    zstd.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    out = ctypes.create_string_buffer(length)
    if zstd.ZSTD_decompress(out, length, data, len(data)) != length:
        raise ValueError(f"not {length} bytes packed by zstd")
    return out.raw


def frames(db_bytes):
    """All that a recording has of text: its tables, and its frames unpacked."""
    file = f"{TMP}/look.db"
    with open(file, "wb") as f:
        f.write(db_bytes)
    db = sqlite3.connect(file)
    db.text_factory = bytes
    out = [db_bytes]
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type='table'").fetchall():
        for row in db.execute(f"SELECT * FROM {table.decode()}"):
            out += [v if isinstance(v, bytes) else str(v).encode() for v in row]
    out += [unpack(data, length) for data, length in db.execute("SELECT data, length FROM frame")]
    db.close()
    return b"\n".join(out)


def intervals(file):
    with sqlite3.connect(file) as db:
        return db.execute("SELECT count(*) FROM interval").fetchone()[0]


def extract(parts, name="recording.db"):
    file = f"{TMP}/out.db"
    with open(file, "wb") as f:
        f.write(parts[name])
    return file


def whole():
    file = f"{TMP}/whole.tar.gz"
    p = run("bundle", FILE, "-o", file)
    n.ok(p.returncode == 0 and p.stderr == "", "bundle: status 0, nothing on stderr", p.stderr)
    said = p.stdout
    n.ok(said.index("will contain") < said.index("recording.db") < said.index("written:"),
         "what it will contain is said before it is written", said)
    n.same(os.stat(file).st_mode & 0o7777, 0o600, "nobody else may read it")
    parts = content(file)
    for name in "README.txt", "versions.txt", "doctor.txt", "facts.txt", "findings.txt", "recording.db", \
            "tables/vm.txt", "tables/exit.txt", "tables/host.txt":
        n.ok(parts.get(name), f"{name} is in it", sorted(parts))
    n.ok(NAMES[0].encode() in parts["tables/vm.txt"], "with the VMs' names")
    db = extract(parts)
    n.same(intervals(db), 15, "all intervals")
    args = "-b", "--format", "json"
    n.same(run("replay", db, *args).stdout, run("replay", FILE, *args).stdout,
           "which replay shows as those of the recording")
    n.same([x for x in json.loads(run("diff", FILE, db, "--format", "json").stdout)["rows"] if x["change"]], [],
           "and diff finds the same")
    with sqlite3.connect(db) as a, sqlite3.connect(FILE) as b:
        a.text_factory = b.text_factory = bytes  # whatever others call their VMs
        facts = "SELECT name, value FROM facts ORDER BY name"
        n.same(a.execute(facts).fetchall(), b.execute(facts).fetchall(), "with the host's facts")
        tsc = "SELECT * FROM tsc ORDER BY rowid"
        n.same(a.execute(tsc).fetchall(), b.execute(tsc).fetchall(), "and the TSC offsets")
        n.same(a.execute("PRAGMA integrity_check").fetchone()[0], b"ok", "a sound database")
    p = run("bundle", FILE, "-o", file)
    n.ok(p.returncode == 1 and "it is there already" in p.stderr and p.stdout == "", "it is never written over",
         p.stderr)
    return parts


def anonymized():
    file = f"{TMP}/anon.tar.gz"
    p = run("bundle", FILE, "-o", file, "--anonymize")
    n.ok(p.returncode == 0, "bundle --anonymize", p.stderr)
    parts = content(file)
    everything = {name: frames(data) if name.endswith(".db") else data for name, data in parts.items()}
    host = os.uname().nodename
    words = WORDS + ([host] if len(host) >= 6 else [])
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        words.append(f.read().strip())
    found = [(name, w) for name, data in everything.items() for w in words if w.encode() in data]
    n.same(found, [], "no name, UUID, host name or command line is in any part")
    n.same([w for w in WORDS[:1] + [UUID, "hiddenpassword"] if w.encode() not in frames(open(FILE, "rb").read())],
           [], "all of which are in the recording")
    vms = {vm["name"] for line in run("replay", extract(parts), "-b", "--format", "json").stdout.splitlines()
           for vm in json.loads(line)["vms"]}
    n.ok(len(vms) >= 2 and all(v.startswith("vm-") for v in vms), "VMs have other names", vms)
    table = parts["tables/vm.txt"].decode()
    n.ok(n.every(v in table for v in vms), "the same in the tables", table)
    before = run("replay", FILE, "-b", "--format", "csv", "--table", "vm", "--fields", "cpu_pct,steal_pct").stdout
    after = run("replay", extract(parts), "-b", "--format", "csv", "--table", "vm", "--fields",
                "cpu_pct,steal_pct").stdout
    figures = [[line.split(",")[-2:] for line in text.splitlines()] for text in (before, after)]
    n.same(sorted(figures[0]), sorted(figures[1]), "figures stay")


def ranges():
    with sqlite3.connect(FILE) as db:
        last = db.execute("SELECT max(time) FROM interval").fetchone()[0]
    second = datetime.datetime.fromtimestamp(last // 10**9)
    at = f"{second.isoformat()}..{(second + datetime.timedelta(seconds=5)).isoformat()}"
    with sqlite3.connect(FILE) as db:
        want = db.execute("SELECT count(*) FROM interval WHERE time>=?", (last // 10**9 * 10**9,)).fetchone()[0]
    file = f"{TMP}/range.tar.gz"
    p = run("bundle", FILE, "--at", at, "-o", file)
    n.ok(p.returncode == 0 and f" {want} intervals of " in p.stdout, "--at: that range only", p.stdout + p.stderr)
    n.same(intervals(extract(content(file))), want, "as many as were said")


def with_perf():
    file = f"{TMP}/perf.tar.gz"
    p = run("bundle", FILE, "-o", file, "--perf", "0.5s")
    parts = content(file)
    if "perf.data" in parts:
        n.ok(parts["perf.data"][:8] == b"PERFILE2" and p.stderr == "", "--perf: a perf.data", p.stderr)
    else:
        n.ok(p.stderr.startswith("kvmtop: no perf.data: perf") and b"no perf.data: " in parts["README.txt"],
             "--perf: without it, why not", p.stderr)
    p = run("bundle", FILE, "-o", f"{TMP}/none.tar.gz", "--perf", "0.5s", env={**os.environ, "PATH": TMP})
    n.ok(p.returncode == 0 and "perf cannot be run: No such file" in p.stderr, "no perf: said, and the rest is there",
         p.stderr)
    n.ok("perf.data" not in content(f"{TMP}/none.tar.gz"), "and is not in it")


def refusals():
    for args, status, want in [
            (("/nonexistent.db",), 1, "No such file"), ((FILE, "--at", "25:00"), 2, "not a range of time"),
            ((FILE, "--at", "2001-01-01..2001-01-02"), 1, "no interval lies in that range"),
            ((FILE, "--anonymize", "--perf", "1s"), 2, "leave --anonymize or --perf away"),
            ((FILE, "--perf", "x"), 2, "--perf"), ((FILE, FILE), 2, "one word too many"),
            ((FILE, "-o", "/nonexistent/x.tar.gz"), 1, "/nonexistent/x.tar.gz: No such file"),
            (("/etc/passwd",), 1, "/etc/passwd")]:
        p = run("bundle", *args, cwd=TMP)
        n.ok(p.returncode == status and want in p.stderr and p.stderr.count("\n") == 1,
             f"bundle {' '.join(os.path.basename(a) for a in args)}: {status}, one line", p.stderr)
    left = [f for f in os.listdir(TMP) if f.startswith((".kvmtop-bundle", "kvmtop-bundle"))]
    n.same(left, [], "nothing is left behind")


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def interrupted():
    """While perf still records: it is another, which says its process's number and waits."""
    folder, file = f"{TMP}/waits", f"{TMP}/int.tar.gz"
    os.mkdir(folder)
    with open(folder + "/perf", "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\necho $$ > {folder}/new && mv {folder}/new {folder}/pid && exec sleep 100\n")
    os.chmod(folder + "/perf", 0o755)
    for number in signal.SIGTERM, signal.SIGHUP, signal.SIGKILL:
        w = n.child([n.KVMTOP, "bundle", FILE, "-o", file, "--perf", "60s"], stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    env={**os.environ, "PATH": folder + ":" + os.environ["PATH"]})
        end = time.monotonic() + 60
        while time.monotonic() < end and not os.path.exists(folder + "/pid"):
            time.sleep(0.02)
        with open(folder + "/pid", encoding="ascii") as f:
            perf = int(f.read())
        os.unlink(folder + "/pid")
        w.send_signal(number)
        _, err = w.communicate(timeout=50)
        n.ok(w.returncode != 0 and not os.path.exists(file), f"signal {number}: no half bundle", err)
        while time.monotonic() < end and not is_gone(perf):
            time.sleep(0.02)
        n.ok(is_gone(perf), f"signal {number}: perf does not run on")


def without_recording():
    file = f"{TMP}/bare.tar.gz"
    if not n.no_default_recording():
        n.skip("without a recording", "needs:root this host has one")
        return
    p = run("bundle", "-o", file)
    parts = content(file)
    n.ok(p.returncode == 0 and "no recording: " in p.stdout and "recording.db" not in parts,
         "without a recording: the rest, and why", p.stdout + p.stderr)
    n.ok(io.BytesIO(parts["doctor.txt"]).readline().startswith(b"kvmtop "), "doctor is in it")


def main():
    record()
    for test in whole, anonymized, ranges, with_perf, refusals, interrupted, without_recording:
        test()
    n.done()


main()
