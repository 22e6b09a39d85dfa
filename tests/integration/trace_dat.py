#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, cmd:trace-cmd
# sanitize: no, the reading is trace-cmd's
# limit: 120
"""kvmtop merge reads trace.dat: the same events as the text of the same trace, or a refusal that says why."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

WRITES = 20


def put(path, value):
    with open(path, "w", encoding="ascii") as f:
        f.write(value)


def extract(name, to):
    """trace-cmd refuses when /proc/kallsyms grows while it is read: programs of others come and go."""
    for _ in range(20):
        r = subprocess.run(["trace-cmd", "extract", "-B", name, "-o", to], capture_output=True, cwd=os.path.dirname(to),
                           check=False, timeout=60)
        if r.returncode == 0:
            return
    raise RuntimeError(f"trace-cmd extract: {r.stderr!r}")


def record(clock, to):
    """One trace, as text and as trace.dat, whose clock is that of the main buffer."""
    name = f"kvmtop-test-{os.getpid()}"
    at, main_clock = f"{n.TRACEFS}/instances/{name}", f"{n.TRACEFS}/trace_clock"
    with open(main_clock, encoding="ascii") as f:
        before = re.search(r"\[(\S+)\]", f.read())[1]
    os.mkdir(at)
    try:
        put(main_clock, clock)
        put(f"{at}/trace_clock", clock)
        put(f"{at}/events/kvm/kvm_pio/enable", "1")
        n.Guest(f"out:{WRITES}").go().wait()
        put(f"{at}/tracing_on", "0")
        with open(f"{at}/trace", encoding="utf-8") as f:
            text = f.read()
        extract(name, to)
    finally:
        put(main_clock, before)
        if os.path.exists(at):  # trace-cmd takes it away with its trace
            os.rmdir(at)
    return text


def merge(host, guest, **env):
    return subprocess.run([n.KVMTOP, "merge", "-H", host, "-G", guest, "--offset", "0"], capture_output=True, text=True,
                          check=False, timeout=60, env={**os.environ, **env})


def stamps(text):
    return [int(x) for x in re.findall(r"(\d+): kvm_pio: ", text)]


def main():
    with tempfile.TemporaryDirectory() as folder:
        dat, guest, cut = (os.path.join(folder, x) for x in ("host.dat", "guest", "cut.dat"))
        text = record("x86-tsc", dat)
        middle = stamps(text)[WRITES // 2]
        put(guest, f"comm-1 [000] d..1. {middle + 1}: here\n")
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
        record("local", dat)
        r = merge(dat, guest)
        n.ok(r.returncode == 1 and "are seconds" in r.stderr, "another clock: refused", r.stderr)
    n.done()


main()
