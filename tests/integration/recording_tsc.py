#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs
# limit: 120
# beside: yes
"""A recording has each write of a real guest's TSC offset with its moment, and merge takes them from there."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

TMP = os.environ.get("TEST_TMP", "/tmp")
FILE = f"{TMP}/tsc.db"
WRAP = 2**64


def rows(name):
    with sqlite3.connect(FILE, timeout=10) as db:
        got = db.execute("SELECT vcpu,at,prev,next FROM tsc WHERE vm=? ORDER BY rowid", (name,)).fetchall()
    db.close()
    return got


def traces(p):
    """Are its instance and its event there and on? The kernel makes an instance with tracing on and events off, and
    kvmtop switches tracing off, the event on and, last, tracing on."""
    try:
        for file in ("events/kvm/kvm_write_tsc_offset/enable", "tracing_on"):
            with open(f"{n.TRACEFS}/instances/kvmtop-{p.pid}-record/{file}", encoding="ascii") as f:
                if f.read().strip() != "1":
                    return False
    except OSError:
        return False
    return True


def started():
    p = n.child([n.KVMTOP, "record", "-o", FILE, "-d", "0.25"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not n.wait_for(lambda: traces(p) and os.path.exists(FILE)):
        raise SystemExit("no trace instance of the recorder within 60 s")
    return p


def guest(name, *args):
    return n.Guest(*args, tail=("-name", f"guest={name}"), program=n.posing_as("qemu-system-x86_64"))


def wait_rows(name, enough):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            if enough(rows(name)):
                break
        except sqlite3.Error:
            pass
        time.sleep(0.2)
    return rows(name)


def merge(*args):
    return n.run("merge", *args)


def by_default():
    """The VM has ended, and its trace and a recording in the usual place are all that there is."""
    command = ("-H", f"{TMP}/host", "-G", f"tsc-a={TMP}/guest")
    if not n.no_default_recording():
        n.skip("the default recording", "needs:never there is one, and it cannot be hidden")
        return
    os.makedirs("/var/lib/kvmtop", exist_ok=True)
    r = merge(*command)
    n.ok(r.returncode == 1 and "--recording FILE" in r.stderr, "no recording: refused, with the ways out", r.stderr)
    shutil.copy(FILE, "/var/lib/kvmtop/recording.db")
    r = merge(*command)
    asked = merge(*command, "--recording", FILE)
    n.same(r.stdout.replace("# the next guest's offsets are those of /var/lib/kvmtop/recording.db\n", "", 1), asked.stdout,
           "the default recording is taken where nothing else is known")
    n.ok("those of /var/lib/kvmtop/recording.db" in r.stdout and r.returncode == 0, "which is said", r.stdout)


def main():
    p = started()
    old = guest("tsc-a", "-c", 2, "-r", 50, "out:inf").go()
    other = guest("tsc-b", "-r", 50, "out:inf").go()
    got = wait_rows("tsc-a", lambda r: len([x for x in r if x[1]]) >= 2 and len([x for x in r if not x[1]]) >= 2)
    wait_rows("tsc-b", lambda r: any(x[1] for x in r) and any(not x[1] for x in r))
    writes, read = [x for x in got if x[1]], {x[0]: x[3] for x in got if not x[1]}
    n.same(sorted({x[0] for x in writes}), [0, 1], "a VM that starts: the writes of both vCPUs are there")
    n.ok(len(writes) >= 2 and all(x[2] == 0 for x in writes[:2]), "from the first one on", writes)
    n.ok(n.every(abs(x[3] + x[1]) < 5 * 10**9 for x in writes[:1]), "a new guest's TSC begins at about 0: offset = -host",
         writes)
    n.same(sorted(read), [0, 1], "and what was read of each")
    p.send_signal(2)
    p.wait(30)
    n.same([x for x in os.listdir(n.TRACEFS + "/instances") if x.startswith(f"kvmtop-{p.pid}-")], [],
           "its instance is gone with it")

    now = writes[0][1] + 10**9
    with open(f"{TMP}/host", "w", encoding="ascii") as f:
        f.write(f"CPU 0/KVM-7 [000] d..1. {now}: a\nCPU 0/KVM-7 [000] d..1. {now + 1000}: b\n")
    with open(f"{TMP}/guest", "w", encoding="ascii") as f:
        f.write(f"sh-7 [001] d..1. {(now + 500 + read[1]) % WRAP}: g\n")
    r = merge("-H", f"{TMP}/host", "-G", f"tsc-a={TMP}/guest", "--recording", FILE)
    n.same([x.rsplit(": ", 1)[1] for x in r.stdout.splitlines() if x and x[0] != "#"], ["a", "g", "b"],
           "merge --recording: the guest's line is where it belongs")
    n.ok(f": {now + 500}: g" in r.stdout or f" {now + 500}: g" in r.stdout, "with the host's TSC", r.stdout)
    r = merge("-H", f"{TMP}/host", "-G", f"nobody={TMP}/guest", "--recording", FILE)
    n.ok(r.returncode == 2 and "no TSC offsets of a VM 'nobody'" in r.stderr, "a VM that is not in it", r.stderr)
    r = merge("-H", f"{TMP}/host", "-G", f"{TMP}/guest", "--recording", FILE)
    n.ok(r.returncode == 2 and "name the guest" in r.stderr, "a guest without a name", r.stderr)
    r = merge("-H", f"{TMP}/host", "-G", f"tsc-a={TMP}/guest", "--recording", f"{TMP}/host")
    n.ok(r.returncode == 2 and r.stderr.count("\n") == 1, "a file that is no recording", r.stderr)
    old.kill()
    other.kill()
    by_default()
    n.done()


main()
