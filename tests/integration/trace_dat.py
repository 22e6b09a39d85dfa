#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, cmd:trace-cmd
# sanitize: no, the reading is trace-cmd's
# limit: 120
"""kvmtop merge reads trace.dat: the same events as the text of the same trace, or a refusal that says why."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n
import tracedat_lib

WRITES = 20


def merge(host, guest, **env):
    return n.run("merge", "-H", host, "-G", guest, "--offset", "0", env=env)


def stamps(text):
    return [int(x) for x in re.findall(r"(\d+): kvm_pio: ", text)]


def main():
    with tempfile.TemporaryDirectory() as folder:
        dat, guest, cut = (os.path.join(folder, x) for x in ("host.dat", "guest", "cut.dat"))
        text = tracedat_lib.record("x86-tsc", dat, WRITES)
        middle = stamps(text)[WRITES // 2]
        n.put(guest, f"comm-1 [000] d..1. {middle + 1}: here\n")
        r = merge(dat, guest)
        n.same((r.returncode, r.stderr), (0, ""), "trace.dat: merged")
        n.same(stamps(r.stdout), stamps(text), "its events are those of the text, with the same stamps")
        before, after = r.stdout.split(": here\n", 1)
        n.same((len(stamps(before)), len(stamps(after)) > 0), (WRITES // 2 + 1, True), "the guest's line is among them")
        r = merge(dat, guest, PATH=folder)
        n.ok(r.returncode == 1 and "install trace-cmd" in r.stderr, "without trace-cmd: what is missing", r.stderr)
        with open(dat, "rb") as f, open(cut, "wb") as to:
            to.write(f.read(100000))
        r = merge(cut, guest)
        n.ok(r.returncode == 1 and "is it whole?" in r.stderr, "cut off: refused", (r.returncode, r.stderr))
        tracedat_lib.record("local", dat, WRITES)
        r = merge(dat, guest)
        n.ok(r.returncode == 1 and "are seconds" in r.stderr, "another clock: refused", r.stderr)
    n.done()


main()
