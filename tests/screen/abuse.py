#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 120
# beside: yes
"""What a terminal, a user and a disk can do to the full screen: random keys and sizes, a terminal
that goes away or that nobody reads, signals, odd environments, no room for what is saved."""

import fcntl
import os
import pty
import random
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native  # noqa: E402

SLOW = 6 if native.SANITIZED else 1
LEAVE = b"\x1b[?1049l"  # out of the alternate screen
ROOT = os.path.join(native.TOP, "tests/data/roots/tinyvm-6.18")
KEYS = ([bytes([c]) for c in range(1, 127) if c not in (3, 26, ord("q"), ord("D"))] +
        [b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\x1b[5~", b"\x1b[6~", b"\x1b[H", b"\x1b[F", b"\x1bOQ",
         b"\x1b[17~", b"\x1b[Z", b"\x1b[200~", b"\x1b", "é".encode(), "漢".encode(), b"\xff", b"\xc3"] +
        [b"\r", b"\x1b", b"\t"] * 3)
SIZES = ((1, 1), (2, 2), (39, 9), (40, 10), (80, 24), (100, 30), (132, 43), (500, 200), (1, 200), (500, 1), (0, 0))


class Pty:
    """kvmtop as the leader of a session whose terminal is ours."""

    def __init__(self, *args, cols=80, rows=24, env=None, folder=None, limit=False):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            os.chdir(folder or "/")
            e = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8",
                 "XDG_CONFIG_HOME": folder or "/nonexistent", **(env or {})}
            os.execve(native.KVMTOP, [native.KVMTOP, "--root", ROOT, *map(str, args)], e)
        self.status, self.got, self.begun = None, b"", False
        self.size(cols, rows)

    def size(self, cols, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def read(self, seconds, until=None):
        """What it writes; False when it is gone."""
        end = time.monotonic() + seconds
        while until is None or until not in self.got:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                return True
            try:
                data = os.read(self.fd, 1 << 16)
            except OSError:
                return False
            if not data:
                return False
            self.got = (self.got + data)[-200000:]
            if not self.begun and LEAVE in self.got:  # once before the first screen: see term_open()
                self.got, self.begun = self.got.partition(LEAVE)[2], True
        return True

    def ready(self):
        self.read(10 * SLOW, b"%CPU")
        return self

    def keys(self, keys):
        try:
            os.write(self.fd, keys)
        except OSError:
            pass

    def wait(self, seconds=5):
        """Its status, None when it does not end; then it is killed."""
        end = time.monotonic() + seconds * SLOW
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None

    def quit(self):
        """Out of whatever is open."""
        for _ in range(20):
            self.keys(b"\x1b")
            if not self.read(0.15 * SLOW):
                break
            self.keys(b"q")
            if not self.read(0.15 * SLOW):
                break
        return self.wait()


def random_keys(folder):
    for seed in (1, 2):
        rnd = random.Random(seed)
        t = Pty("-d", "0.2", folder=folder).ready()
        end, alive, typed = time.monotonic() + 5, True, []
        while time.monotonic() < end and alive:
            if rnd.random() < 0.06:
                t.size(*rnd.choice(SIZES))
            typed.append(b"".join(rnd.choice(KEYS) for _ in range(rnd.choice((1, 1, 1, 3, 10)))))
            t.keys(typed[-1])
            alive = t.read(0.02)
        t.size(80, 24)
        native.same(t.quit(), 0, f"5 s of random keys and sizes, seed {seed}: it lives, and q ends it")
        if not alive:
            native.say(f"last keys: {typed[-20:]}")


def paste(folder):
    t = Pty(folder=folder).ready()
    t.keys(b"/")
    for _ in range(100):
        t.keys(b"A" * 1000)
        t.read(0.005)
    native.same(t.quit(), 0, "100 kB are pasted into a prompt")


def times_on_screen(t, what):
    t.got = b""
    t.keys(b"\x0c")
    t.read(10 * SLOW, what)
    t.read(0.3)
    return set(re.findall(rb"\d\d:\d\d:\d\d", t.got))


def keys_between_ticks():
    """A minute between two ticks: a key is obeyed at once, and makes no tick."""
    t = Pty("-d", 60).ready()
    t.read(2)  # the first intervals are short
    t.keys(b"v")
    t.read(20 * SLOW, b"TID")
    native.ok(b"TID" in t.got, "a key is obeyed before the next tick", t.got[-600:])
    for _ in range(3):  # a slow machine may still be at the short ones
        before = times_on_screen(t, b"TID")
        for key in (b"v", b"5", b"2", b"6", b"\x1b", b"v"):
            t.keys(key)
            t.read(0.2)
        after = times_on_screen(t, b"TID")
        if before == after:
            break
    native.ok(len(before) == 1 and before == after, "and the figures stay those of the last tick", (before, after))
    native.same(t.quit(), 0, "a minute between two ticks: q ends it at once")


def goes_away():
    t = Pty().ready()
    os.close(t.fd)
    native.ok(t.wait() is not None, "a terminal that goes away ends it")
    t = Pty("-d", "0.1").ready()
    time.sleep(3)  # nobody reads
    os.kill(t.pid, signal.SIGTERM)
    native.ok(t.wait(8) is not None, "SIGTERM ends it on a terminal that nobody reads")
    for sig in (signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGXCPU):
        t = Pty().ready()
        os.kill(t.pid, sig)
        t.read(2 * SLOW, LEAVE)
        native.ok(LEAVE in t.got and t.wait() is not None, f"{sig.name}: the terminal is given back")


def environments():
    t = Pty("-n", 1, "-d", 0.1, env={"LINES": "99999", "COLUMNS": "-1"})
    t.read(5 * SLOW, LEAVE)
    native.ok(b"%CPU" in t.got and t.wait() == 0, "LINES and COLUMNS of nonsense: the terminal is asked",
              t.got[-300:])
    for name, env in (("no HOME", {"HOME": "", "XDG_CONFIG_HOME": ""}), ("an unknown locale", {"LC_ALL": "xx_YY.Z"}),
                      ("a TERM of 5000 characters", {"TERM": "x" * 5000}),
                      ("a long XDG_CONFIG_HOME", {"XDG_CONFIG_HOME": "/a" * 4000})):
        t = Pty("-n", 1, "-d", 0.1, env=env)
        t.read(5 * SLOW, LEAVE)
        native.ok(b"%CPU" in t.got and t.wait() == 0, name, t.got[-300:])
    t = Pty("-n", 1, "-d", 0.1, env={"TERM": "dumb"})
    t.read(3 * SLOW)
    native.ok(b"--batch" in t.got and t.wait() == 1 << 8, "TERM=dumb: one line says what to use", t.got)


def settings_of_all_kinds(folder):
    path = os.path.join(folder, "kvmtop/kvmtoprc")
    os.makedirs(os.path.dirname(path))

    def starts(name):
        t = Pty("-n", 1, "-d", 0.1, folder=folder)
        t.read(5 * SLOW, LEAVE)
        native.ok(b" VM" in t.got and t.wait() == 0, f"kvmtoprc is {name}: it starts", t.got[-300:])

    os.mkfifo(path)
    starts("a fifo")
    os.unlink(path)
    os.mkdir(path)
    starts("a folder")
    os.rmdir(path)
    os.symlink("kvmtoprc", path)
    starts("a link to itself")
    os.unlink(path)
    rnd = random.Random(3)
    for name, data in (("noise", rnd.randbytes(100000)), ("of 10 MB", b"columns.vms = VM,%CPU # and so on\n" * 300000),
                       ("of odd values", b"sort.vms=\xff\ncolumns.vms=,,,\npane=\x1b\ncolumns.=x\n=\nsort.vms")):
        with open(path, "wb") as f:
            f.write(data)
        starts(name)
    os.unlink(path)


def no_room(folder):
    """RLIMIT_FSIZE stands for the full disk: the same call fails."""
    before = set(os.listdir(folder))
    t = Pty(folder=folder, limit=True).ready()
    t.keys(b"P")
    t.read(0.5)
    t.keys(b"\r")
    t.read(3 * SLOW, b"too large")
    native.ok(b"too large" in t.got, "P without room says why", t.got[-600:])
    t.keys(b"W")
    t.read(1 * SLOW)
    native.same(t.quit(), 0, "and it goes on")
    left = [f for f in set(os.listdir(folder)) - before if os.path.isfile(os.path.join(folder, f))]
    native.same(left + os.listdir(os.path.join(folder, "kvmtop")), [], "no half file is left behind")


def batch_without_room():
    p = subprocess.run([native.KVMTOP, "--root", ROOT, "-b", "-n", "1", "-d", "0.1"], check=False,
                       stdout=open("/dev/full", "wb"), stderr=subprocess.PIPE)
    native.ok(p.returncode == 1 and b"No space" in p.stderr and p.stderr.count(b"\n") == 1,
              "--batch on a full disk: one line, status 1", (p.returncode, p.stderr))


def roots_of_no_host(folder):
    path = os.path.join(folder, "\x1b[2J")
    for what in ("a file", "an empty folder"):
        if what == "a file":
            open(path, "wb").close()
        else:
            os.unlink(path)
            os.mkdir(path)
        p = native.run("-b", "-n", "1", "--root", path, text=False)
        status = 2 if what == "a file" else 1
        native.ok(p.returncode == status and b"proc and sys" in p.stderr and p.stderr.count(b"\n") == 1 and
                  b"\x1b" not in p.stderr and not p.stdout, f"--root at {what}: one line, status {status}",
                  (p.returncode, p.stderr))


def main():
    with tempfile.TemporaryDirectory() as folder:
        random_keys(folder)
        paste(folder)
    with tempfile.TemporaryDirectory() as folder:
        roots_of_no_host(folder)
        settings_of_all_kinds(folder)
        no_room(folder)
    keys_between_ticks()
    goes_away()
    environments()
    batch_without_room()
    native.done()


main()
