#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""kvmtop report on what perf records at this moment of a guest whose accesses are known: a file, a compressed
one, perf's pipe mode through a pipe and into a file, a file that is still being written."""
# needs: root, kvm, tracefs, cmd:perf
# limit: 240

import csv
import io
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ.get("TOP", "."), "tests"))
import native  # noqa: E402

TMP = os.environ["TEST_TMP"]
WANTED = "mmio,ioport,msr,userexit"
EVENTS = [x for e in ("mmio", "pio", "msr", "userspace_exit") for x in ("-e", f"kvm:kvm_{e}")]
RECORD = ["perf", "record", "-q", "-R", "-m", "1024", "-c", "1", "-B", "-N", *EVENTS, "-a"]


GUEST = f"exec {native.TINYVM} -n 'out:600 in:300 mmior:150 mmiow:150 rdmsr:200 wrmsr:200' >{TMP}/guest"


def report(*args, **kw):
    return native.run("report", "--event", WANTED, "--format", "csv", *args, limit=200, **kw)


def counts(text):
    return {(r["kind"], r["key"]): int(r["count"]) for r in csv.DictReader(io.StringIO(text))}


def truth():
    """The guest's process and its own counts, as it wrote them."""
    with open(f"{TMP}/guest", encoding="ascii") as f:
        lines = f.read().splitlines()
    pid = next(w[4:] for x in lines if x.startswith("ready") for w in x.split() if w.startswith("pid="))
    return pid, native.truth([json.loads(x) for x in lines if x.startswith("{")])


def record(*options, **kw):
    return subprocess.run([*RECORD, *options, "--", "sh", "-c", GUEST], stdin=subprocess.DEVNULL, check=False, **kw)


def same(out, what):
    _, wanted = truth()
    native.same(counts(out.stdout), wanted, f"{what}: the guest's own counts")
    if counts(out.stdout) != wanted:
        native.say(out.stderr)


def in_a_file(what, *options):
    file = f"{TMP}/perf.data"
    record("-o", file, *options)
    same(report("-i", file, "-p", truth()[0]), what)
    return file


def through_a_pipe():
    perf = subprocess.Popen([*RECORD, "-o", "-", "--", "sh", "-c", GUEST], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    out = report("-i", "-", stdin=perf.stdout)
    perf.stdout.close()
    perf.wait(60)
    pid, wanted = truth()
    got = counts(out.stdout)  # of all guests: others may run here
    native.ok(wanted and all(got.get(k, 0) >= n for k, n in wanted.items()), "through a pipe: the guest's accesses", (got, wanted))
    pipe = f"{TMP}/pipe.data"
    with open(pipe, "wb") as f:
        record("-o", "-", stdout=f)
    same(report("-i", pipe, "-p", truth()[0]), "pipe mode in a file")


def has_ended(said):
    """The guest's counts are the last that it writes."""
    with open(said, encoding="ascii") as f:
        return any(x.startswith("{") and x.endswith("}\n") for x in f)


def while_it_grows():
    """perf has not ended: nothing of the file's end is there."""
    file = f"{TMP}/growing.data"
    # perf writes when half of a ring is full: a small one, and more than that of events.
    record = [{"1024": "64"}.get(x, x) for x in RECORD]
    said = f"{TMP}/growing"
    guest = GUEST.replace("exec ", "").replace("out:600", "out:8000").replace(f"{TMP}/guest", said)
    perf = native.child([*record, "-o", file, "--", "sh", "-c", guest + "; exec sleep 600"],
                        stdin=subprocess.DEVNULL)
    end, out = time.monotonic() + 60, None
    while time.monotonic() < end:  # until perf's buffer has been written
        out = report("-i", file)
        if out.returncode == 0 and counts(out.stdout):
            break
        time.sleep(0.3)
    native.ok(counts(out.stdout) and "ends before its end" in out.stderr and "this machine's" in out.stderr and
              out.stderr.count("\n") == 1,
              "still being written: read with this machine's formats, which is said in one line", out.stderr)
    while time.monotonic() < end and not has_ended(said):
        time.sleep(0.1)  # perf ends its shell only: the guest would outlive this
    perf.terminate()
    perf.wait(60)


def main():
    plain = in_a_file("a file")
    packed = in_a_file("a compressed one", "-z")
    with open(packed, "rb") as f:
        native.ok(b"\x28\xb5\x2f\xfd" in f.read(), "it is compressed indeed", plain)
    through_a_pipe()
    while_it_grows()
    native.done()


main()
