# SPDX-License-Identifier: GPL-2.0-only
"""Other programs' CPU time, tick by tick, and what is shown in a pseudo terminal."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native  # noqa: E402


def cpu_ms(pid):
    """CPU time of all threads of a process so far."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
        except OSError:
            continue
    return total / 1e6


def rss_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) / 1024


def readable(fd, seconds):
    """select() cannot have descriptors from 1,024 on, and hundreds of guests have each some."""
    p = select.poll()
    p.register(fd, select.POLLIN)
    return bool(p.poll(seconds * 1000))


def end(p):
    p.kill()
    p.wait()


def per_tick(argv, marker, skip, ticks, limit=60, idle=None):
    """CPU ms a tick of a program that prints `marker` once a tick, after `skip` of them.

    idle(seconds) is called again and again meanwhile.
    """
    p = native.child(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    seen, first, stop, rest = 0, None, time.monotonic() + limit, b""
    try:
        while time.monotonic() < stop:
            if idle:
                idle(0.01)
            if not readable(p.stdout.fileno(), 1):
                continue
            got = os.read(p.stdout.fileno(), 1 << 16)
            if not got:
                break
            rest += got
            seen += rest.count(marker)
            rest = rest[rest.rfind(marker) + len(marker):] if marker in rest else rest[-len(marker):]
            if first is None and seen > skip:
                first, at = cpu_ms(p.pid), seen
            elif first is not None and seen >= at + ticks:
                return (cpu_ms(p.pid) - first) / (seen - at)
    finally:
        end(p)
    raise TimeoutError(f"{argv[0]}: {seen} ticks in {limit} s")


class Screen:
    """The full screen program in a pseudo terminal that is always read."""

    def __init__(self, *args, rows=24, cols=80):
        self.start, self.text = time.monotonic(), b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
            os.execv(native.KVMTOP, [native.KVMTOP, *args])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def read_some(self, seconds):
        if readable(self.fd, seconds):
            try:
                self.text += os.read(self.fd, 1 << 16)
            except OSError:  # it ended
                time.sleep(seconds)

    def read(self, seconds):
        stop = time.monotonic() + seconds
        while (left := stop - time.monotonic()) > 0:
            self.read_some(left)

    def until(self, pattern, limit=30):
        """Seconds from the start until what was drawn matches."""
        while not re.search(pattern, self.text, re.S):
            if time.monotonic() - self.start > limit:
                raise TimeoutError(f"no {pattern!r} on screen in {limit} s")
            self.read_some(0.5)
        return time.monotonic() - self.start

    def until_vcpus(self, n, limit=60):
        """Seconds from the start until the header counts so many vCPUs, to half a second."""
        while True:
            self.text = b""
            os.write(self.fd, b"\x0c")  # drawn anew, whole
            self.read(0.5)
            took = time.monotonic() - self.start
            if any(int(x) >= n for x in re.findall(rb"VM +(\d+) vCPU", self.text)):
                return took
            if took > limit:
                raise TimeoutError(f"not {n} vCPUs on screen in {limit} s")

    def cpu_samples(self, n, seconds=1.0):
        """CPU ms a second, n times."""
        out = []
        for _ in range(n):
            cpu, at = cpu_ms(self.pid), time.monotonic()
            self.read(seconds)
            out.append((cpu_ms(self.pid) - cpu) / (time.monotonic() - at))
        return out

    def close(self):
        os.kill(self.pid, 15)
        stop = time.monotonic() + 5
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > stop:
                os.kill(self.pid, 9)
                os.waitpid(self.pid, 0)
                break
            self.read(0.02)
        os.close(self.fd)


def cpu_of_command(argv):
    """Its CPU time in ms, and that of what it ran."""
    p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(p.pid, 0)
    p.returncode = 0
    return (used.ru_utime + used.ru_stime) * 1000
