# SPDX-License-Identifier: GPL-2.0-only
"""A real QEMU for the integration tests, with what it says of itself: QMP, and qtest where asked.

The guest is some bytes in place of the firmware (so many port writes, then HLT for ever), or QEMU's own
firmware with no disk to boot from, which is busy for some seconds and then wakes ten times a second.
QEMU's own word (query-cpus-fast, query-iothreads) is the truth to compare with.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import native as n

PROGRAM = "qemu-system-x86_64"
BASE = ("-accel", "kvm", "-display", "none", "-nodefaults", "-m", "32")
PORT = 0x80  # that the ROM writes to
_roms = {}


def rom(writes, then=b"\xf4\xeb\xfd"):
    """A file for -bios: so many writes to PORT with interrupts off, then HLT for ever or `then`."""
    if (writes, then) not in _roms:
        loop = b"\xb9" + writes.to_bytes(2, "little") + bytes((0xe6, PORT)) + b"\xe2\xfc"
        code = b"\xfa" + (loop if writes else b"") + then
        image = code.ljust(0xfff0, b"\0") + b"\xea\0\0\0\xf0"  # the first jump, to the code
        path = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMP", "/tmp")), "rom")
        with open(path, "wb") as f:
            f.write(image.ljust(0x10000, b"\0"))
        _roms[writes, then] = path
    return _roms[writes, then]


def end_daemon(pidfile):
    """Ends the QEMU of that file, where there is one: its number may be another's by now."""
    try:
        with open(pidfile, encoding="ascii") as f:
            pid = int(f.read())
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            if f.read().startswith("qemu-system"):
                os.kill(pid, signal.SIGKILL)
    except (OSError, ValueError):
        pass


class Qmp:
    """A monitor; a call returns what the command returned, an error raises."""

    def __init__(self, path, limit=30):
        self.s = connect(path, limit)
        self.f = self.s.makefile("r")
        self.f.readline()  # the greeting
        self("qmp_capabilities")

    def __call__(self, command, **arguments):
        self.s.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while line := self.f.readline():
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise RuntimeError(f"{command}: {answer['error']}")
        raise RuntimeError(f"{command}: QEMU ended")


def connect(path, limit):
    end = time.monotonic() + limit
    while True:
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(path)
            s.settimeout(limit)
            return s
        except OSError:
            s.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


class Qemu:
    """
    Started at once; what needs its monitor waits for it. `wrap` runs it as another program's child;
    writes=None: with its own firmware.
    """

    def __init__(self, *args, writes=0, wrap=(), qtest=False, daemon=False):
        self.dir = tempfile.mkdtemp(dir=os.environ.get("TEST_TMP", "/tmp"))
        self.log = open(os.path.join(self.dir, "log"), "w+", encoding="utf-8")
        argv = [*wrap, PROGRAM, *BASE, "-qmp", f"unix:{self.dir}/qmp,server=on,wait=off", *args]
        if writes is not None:
            argv += ["-bios", rom(writes)]
        if qtest:
            argv += ["-qtest", f"unix:{self.dir}/qtest,server=on,wait=off"]
        if daemon:
            argv += ["-daemonize", "-pidfile", f"{self.dir}/pid"]
        self.daemon, self.wrapped = daemon, bool(wrap)
        self.p = n.child(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.pid, self.monitor = self.p.pid, None
        if daemon:
            atexit.register(end_daemon, f"{self.dir}/pid")

    @property
    def qmp(self):
        if not self.monitor:
            self.monitor = Qmp(f"{self.dir}/qmp")
            if self.wrapped:
                self.pid = n.child_of(self.p.pid)
            if self.daemon:
                with open(f"{self.dir}/pid", encoding="ascii") as f:
                    self.pid = int(f.read())
        return self.monitor

    def threads(self):
        """{vCPU number: thread}, as QEMU says."""
        return {c["cpu-index"]: c["thread-id"] for c in self.qmp("query-cpus-fast")}

    def out(self, width, port, value):
        """An access to a port of the machine, as if the guest had made it (qtest)."""
        s = connect(f"{self.dir}/qtest", 10)
        with s, s.makefile("r") as f:
            s.sendall(f"out{width} {port:#x} {value:#x}\n".encode())
            while not f.readline().startswith("OK"):
                pass

    def lives(self):
        """Its number may be another's by now: the command line tells."""
        try:
            with open(f"/proc/{self.pid}/cmdline", "rb") as f:
                return self.dir.encode() in f.read()
        except OSError:
            return False

    def end(self):
        """Whatever it does; nothing of it is left afterwards."""
        end = time.monotonic() + 10
        while self.lives() and time.monotonic() < end:
            os.kill(self.pid, signal.SIGKILL)
            self.p.poll()
            time.sleep(0.02)
        try:
            self.p.wait(5)  # what wraps it ends by itself, and waits for it first
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait(20)

    def quit(self):
        self.qmp("quit")
        self.p.wait(20)


def has_kvm():
    """QEMU itself can make a VM here; else why not."""
    p = subprocess.run([PROGRAM, *BASE, "-S", "-monitor", "stdio"], input="quit\n", text=True,
                       capture_output=True, timeout=60, check=False)
    return p.returncode == 0, p.stderr.strip()[-200:]
