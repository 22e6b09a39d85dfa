# SPDX-License-Identifier: GPL-2.0-only
"""A trace of real accesses to ports, as ftrace's text and as trace-cmd's trace.dat."""

import os
import re
import shutil
import subprocess

import native as n


def possible():
    return os.path.exists(f"{n.TRACEFS}/events/kvm/kvm_pio/enable") and shutil.which("trace-cmd") is not None


def extract(name, to):
    """False: trace-cmd refused, as it does when /proc/kallsyms grows while it is read, for programs of others come."""
    r = subprocess.run(["trace-cmd", "extract", "-B", name, "-o", to], capture_output=True, cwd=os.path.dirname(to),
                       check=False, timeout=60)
    return r.returncode == 0


def record_once(clock, to, writes, buffer_kb):
    """None: there is no trace.dat, and what a refused one had read is gone from the buffers."""
    name = f"kvmtop-test-{os.getpid()}"
    at = f"{n.TRACEFS}/instances/{name}"
    os.mkdir(at)
    try:
        n.put(f"{at}/trace_clock", clock)
        n.put(f"{at}/buffer_size_kb", str(buffer_kb))
        n.put(f"{at}/events/kvm/kvm_pio/enable", "1")
        n.Guest(f"out:{writes}").go().wait()
        n.put(f"{at}/tracing_on", "0")
        with open(f"{at}/trace", encoding="utf-8") as f:
            text = f.read()
        return text if extract(name, to) else None
    finally:
        if os.path.exists(at):  # trace-cmd takes it away with its trace
            os.rmdir(at)


def record(clock, to, writes, buffer_kb=1408):
    """One trace of a guest's writes, its text; `to` becomes the trace.dat, whose clock is that of the main buffer."""
    main_clock = f"{n.TRACEFS}/trace_clock"
    with open(main_clock, encoding="ascii") as f:
        before = re.search(r"\[(\S+)\]", f.read())[1]
    n.put(main_clock, clock)
    try:
        for _ in range(20):
            text = record_once(clock, to, writes, buffer_kb)
            if text is not None:
                return text
    finally:
        n.put(main_clock, before)
    raise RuntimeError("trace-cmd extract: refused twenty times")
