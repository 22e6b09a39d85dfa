# SPDX-License-Identifier: GPL-2.0-only
"""What the integration tests share: guests with known counts, kvmtop in batch, TAP.

Importing it as root moves the test into a mount namespace of its own, in which tracefs and debugfs
are mounted: no other process sees them, and the kernel undoes them when the test ends.
"""

import atexit
import ctypes
import datetime
import json
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import threading
import time

from patience import PATIENCE

TOP = os.environ.get("TOP") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
KVMTOP = os.environ.get("KVMTOP", os.path.join(BUILD, "kvmtop"))
TINYVM = os.path.join(BUILD, "guests/tinyvm-run")
SANITIZED = os.path.basename(BUILD) in ("asan", "tsan")

TRACEFS, DEBUGFS = "/sys/kernel/tracing", "/sys/kernel/debug"
HW = any(w in open("/proc/cpuinfo", encoding="ascii", errors="replace").read().split()
         for w in ("vmx", "svm"))
CPUS = sorted(os.sched_getaffinity(0))


# --- TAP ----------------------------------------------------------------------------------------
_results = []


def ok(passed, name, saw=None):
    """One test; `saw` is printed when it failed."""
    _results.append(bool(passed))
    print(f"{'ok' if passed else 'not ok'} {len(_results)} - {name}")
    if not passed and saw is not None:
        for line in str(saw).splitlines()[:40]:
            print(f"# {line}")
    sys.stdout.flush()
    return passed


def every(checks):
    """all() of at least one: what nothing was found of has not been shown."""
    checks = list(checks)
    return bool(checks) and all(checks)


def same(got, wanted, name):
    return ok(got == wanted, name, f"got    {got}\nwanted {wanted}")


def near(got, wanted, within, name):
    good = got is not None and abs(got - wanted) <= within
    return ok(good, name, f"got {got}, wanted {wanted} +- {within}")


def skip(name, reason):
    _results.append(True)
    print(f"ok {len(_results)} - {name} # SKIP {reason}")


def say(text):
    print(f"# {text}")
    sys.stdout.flush()


def done():
    print(f"1..{len(_results)}")
    sys.exit(0 if every(_results) else 1)


# --- mounts -------------------------------------------------------------------------------------
def _private_mounts():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000):  # CLONE_NEWNS
        raise OSError(ctypes.get_errno(), "unshare")
    sh("mount", "--make-rprivate", "/")
    for fs, where in (("tracefs", TRACEFS), ("debugfs", DEBUGFS)):
        if not os.path.ismount(where):
            sh("mount", "-t", fs, fs, where)


def sh(*argv, **kw):
    """Runs a command that must work; returns its output."""
    return subprocess.run(argv, check=True, capture_output=True, text=True, **kw).stdout


def put(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def unmount(where):
    """Also what lies on top of it; only in our own mount namespace."""
    while os.path.ismount(where):
        sh("umount", "-l", where)


def no_default_recording():
    """Hides the host's own one, from this test alone. False: there is one, and it cannot be hidden."""
    there = os.path.exists("/var/lib/kvmtop")
    if there and os.geteuid() == 0:
        sh("mount", "-t", "tmpfs", "none", "/var/lib/kvmtop")
        return True
    return not there


if os.geteuid() == 0:
    _private_mounts()

# --- processes ----------------------------------------------------------------------------------
_children = []


def end_children():
    """All processes that this test started; at its end at the latest."""
    for p in _children:
        if p.poll() is None:
            p.kill()
            p.wait()


atexit.register(end_children)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def child(argv, **kw):
    p = subprocess.Popen(argv, **kw)
    _children.append(p)
    return p


def run(*args, limit=60, env=None, **more):
    """kvmtop to its end, without input; what it printed and its status. `more` as subprocess.run() has it."""
    how = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False, **more}
    if "input" in more:
        del how["stdin"]
    return subprocess.run([KVMTOP, *map(str, args)], timeout=limit * PATIENCE, env={**os.environ, **(env or {})}, **how)


def wait_for(condition, seconds=60):
    """Until condition() holds, a second's fraction between two looks; False: it never did."""
    end = time.monotonic() + seconds * PATIENCE
    while not (held := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return bool(held)


class Lines:
    """The lines of a pipe, with a time limit for each."""

    def __init__(self, pipe):
        self.fd, self.rest = pipe.fileno(), b""

    def next(self, limit):
        """A line without its end, or None at the end of the pipe."""
        end = time.monotonic() + limit * PATIENCE
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise TimeoutError(f"no line for {limit} s, only {self.rest[:200]!r}")
            got = os.read(self.fd, 1 << 16)
            if not got:
                return None
            self.rest += got
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode("utf-8", "surrogateescape")


def posing_as(name):
    """tinyvm-run as a file of another name: a VMM is known by its program's."""
    path = os.path.join(os.environ.get("TEST_TMP", "/tmp"), name)
    if not os.path.exists(path):
        shutil.copy(TINYVM, path)
        atexit.register(os.unlink, path)
    return path


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return int(f.read().split()[0])


class Guest:
    """A process with tiny VMs (tests/guests/tinyvm-run.c has the options)."""

    def __init__(self, *args, tail=(), program=TINYVM, wrap=()):
        argv = [*wrap, program, *map(str, args)] + (["--", *tail] if tail else [])
        self.p = child(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.out = Lines(self.p.stdout)
        self.pid, self.vcpus, self.counts = self.p.pid, [], []
        self._ready()
        if wrap:
            self.pid = child_of(self.p.pid)

    def _ready(self):
        while True:
            line = self.out.next(20)
            if line is None:
                raise RuntimeError("tinyvm-run ended before it was ready")
            if line in ("go?", "go"):
                return
            self._vcpu(line)

    def _vcpu(self, line):
        self.vcpus.append({k: int(v) for k, v in (w.split("=") for w in line.split()[1:])})

    def tid(self, vcpu, vm=0):
        return next(v["tid"] for v in self.vcpus if v["vcpu"] == vcpu and v["vm"] == vm)

    def go(self):
        self.p.stdin.write(b"go\n")
        self.p.stdin.flush()
        return self

    def wait(self, limit=120):
        """Until it ended by itself; its counts, one dict a vCPU."""
        while (line := self.out.next(limit)) is not None:
            if line.startswith("{"):
                self.counts.append(json.loads(line))
            elif line.startswith("ready"):  # -L: made after the go
                self._vcpu(line)
        if self.p.wait(limit * PATIENCE) != 0:
            raise RuntimeError(f"tinyvm-run: exit status {self.p.returncode}")
        return self.counts

    def stop(self):
        """Ends endless guests."""
        self.p.stdin.close()
        return self.wait()

    def kill(self):
        self.p.kill()
        self.p.wait()


class Kvmtop:
    """kvmtop --batch --format json, record by record."""

    def __init__(self, *args, delay=0.25, env=None, wrap=(), program=KVMTOP):
        self.delay = delay
        self.err = open(os.path.join(os.environ.get("TEST_TMP", "/tmp"),
                                     f"kvmtop-{os.getpid()}-{len(_children)}.err"), "w+b")
        how = os.environ.get("TEST_THREADS_BY")  # the same tests with another source of the threads' figures
        args = (*(["--threads-by", how] if how else []), *args)
        how = os.environ.get("TEST_EVENTS_BY")  # and of the events
        args = (*(["--events-by", how] if how else []), *args)
        self.p = child([*wrap, program, "--batch", "--format", "json", "-d", str(delay),
                        *map(str, args)], stdout=subprocess.PIPE, stderr=self.err,
                       stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        self.queue = queue.Queue()
        self.records, self.status = [], None
        # Read at once: kvmtop leaves out intervals when its reader is too slow.
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.p.stdout:
            if line.endswith(b"\n"):  # else it was told to end while its reader was slow
                self.queue.put(line)
        self.queue.put(None)

    def next(self):
        """The next record, None after the last one."""
        try:
            line = self.queue.get(timeout=(self.delay * 5 + 60) * PATIENCE)
        except queue.Empty:
            raise TimeoutError(f"no record; stderr: {self.stderr()}") from None
        if line is None:
            self.queue.put(None)
            return None
        self.records.append(json.loads(line))
        return self.records[-1]

    def skip(self, n):
        for _ in range(n):
            if self.next() is None:
                raise RuntimeError(f"kvmtop ended: {self.stderr()}")
        return self

    def until(self, condition, seconds, what):
        """Records until condition(record); the record, or a failed test and None."""
        end = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < end:
            r = self.next()
            if r is None:
                break
            if condition(r):
                return r
        ok(False, what, f"not within {seconds} s; stderr: {self.stderr()}")
        return None

    def stderr(self):
        self.err.flush()
        with open(self.err.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def settle(self):
        """Until the records reach past this moment; what was written meanwhile is in them too."""
        now = time.time() + 0.1  # an interval ends a few ms before it is written
        while (r := self.next()) is not None:
            if datetime.datetime.fromisoformat(r["time"]).timestamp() > now:
                return self
        raise RuntimeError(f"kvmtop ended: {self.stderr()}")

    def end(self):
        """SIGTERM; reads what is left; all records."""
        self.p.send_signal(signal.SIGTERM)
        return self.rest()

    def rest(self):
        """The records until it ends by itself (-n); all records."""
        while self.next() is not None:
            pass
        self.status = self.p.wait(20 * PATIENCE)
        return self.records


# --- figures ------------------------------------------------------------------------------------
def vms_of(record, pid):
    return [v for v in record["vms"] if v["pid"] == pid]


def vm_of(record, pid):
    found = vms_of(record, pid)
    return found[0] if found else None


def tids_of(vm):
    """{vCPU number: thread} of a VM's row, None where there is none."""
    return {v["vcpu"]: v["tid"] for v in vm["vcpus"]} if vm else None


def opened(record):
    """Kinds of events were opened or closed in its interval: their counts are of a part of it, and marked."""
    return any(s["name"] == "figures" and "not collected over the whole interval" in s["why"] and
               "exit.count" in s["fields"] for s in record["sources"])


def add_counts(rows, into=None):
    """{(kind, key): count} of exit rows, added up."""
    into = {} if into is None else into
    for row in rows or ():
        at = (row["kind"], row["key"])
        into[at] = into.get(at, 0) + row["count"]
    return into


def counted(records, pid, vcpu=None, vm_id=None):
    """{(kind, key): count} of a process's VMs (or one vCPU number in them) over all records."""
    total = {}
    for r in records:
        for vm in vms_of(r, pid):
            if vm_id is not None and vm["vm_id"] != vm_id:
                continue
            if vcpu is None:
                add_counts(vm.get("exits"), total)
            for v in vm["vcpus"]:
                if vcpu is not None and v["vcpu"] == vcpu:
                    add_counts(v.get("exits"), total)
    return total


def truth(counts):
    """What kvmtop must have counted for these vCPUs (dicts of tinyvm-run)."""
    def total(key):
        return sum(c[key] for c in counts)
    want = {
        ("ioport", "0x3f8:POUT"): total("out"),
        ("ioport", "0x60:PIN"): total("in"),
        ("ioport", "0xf4:POUT"): sum(c["finished"] for c in counts),
        ("mmio", "0xd0000:R"): total("mmior"),
        ("mmio", "0xd0000:W"): total("mmiow"),
        ("msr", "0x8b:R"): total("rdmsr"),
        ("msr", "0x8b:W"): total("wrmsr"),
        ("userexit", "KVM_EXIT_IO"): total("io"),
        ("userexit", "KVM_EXIT_MMIO"): total("mmio"),
        ("userexit", "KVM_EXIT_HLT"): total("hlts"),
    }
    return {k: n for k, n in want.items() if n}


def only(counts, *kinds):
    return {k: n for k, n in counts.items() if k[0] in kinds and n}


def lost(records):
    return sum(r["lost"] for r in records)


def finite(record):
    """Nothing negative, no CPU share above what there is."""
    bad = []
    for vm in record["vms"]:
        for row, most in [(vm, 100 * os.cpu_count() + 20)] + [(v, 120) for v in vm["vcpus"]]:
            for field in ("cpu_pct", "guest_pct", "usr_pct", "sys_pct", "throt_pct"):
                x = row.get(field)
                if x is not None and not 0 <= x <= most:
                    bad.append((vm["name"], field, x))
            x = row.get("steal_pct")
            if x is not None and not 0 <= x <= 100:
                bad.append((vm["name"], "steal_pct", x))
    return bad
