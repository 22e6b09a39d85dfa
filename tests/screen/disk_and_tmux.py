#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, tmux, mount-namespace
# limit: 120
# beside: yes
"""A file system that is really full; tmux that lets go and comes back at another size, and that is killed."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native  # noqa: E402
from screen_lib import Terminal, width  # noqa: E402

ROOT = os.path.join(native.TOP, "tests/data/roots/tinyvm-6.18")
FULL = os.path.join(os.environ.get("TEST_TMP", "/tmp"), "full")
KVMTOP = f"{native.KVMTOP} --root {ROOT}"


def fill(name):
    """Writes until there is no room; how much there was."""
    n = 0
    with open(os.path.join(FULL, name), "wb", buffering=0) as f:
        try:
            while True:
                n += f.write(b"x" * 4096)
        except OSError:
            return n


def with_full_tmpfs():
    os.mkdir(FULL)
    native.sh("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", FULL)  # of our own mount namespace
    open(os.path.join(FULL, "csv"), "wb").close()
    os.mkdir(os.path.join(FULL, "kvmtop"))
    fill("ballast")


def batch_into_it():
    with open(os.path.join(FULL, "csv"), "wb") as out:
        p = subprocess.run([native.KVMTOP, "--root", ROOT, "-b", "-n", "3", "-d", "0.1"], check=False, stdout=out,
                           stderr=subprocess.PIPE, text=True)
    native.ok(p.returncode == 1 and "No space left" in p.stderr and p.stderr.count("\n") == 1,
              "--batch into a full file system: one line, status 1", (p.returncode, p.stderr))


def keys_into_it():
    before = sorted(os.listdir(FULL))
    t = Terminal(f"cd {FULL} && XDG_CONFIG_HOME={FULL} {KVMTOP}")
    t.sees("%CPU", "the screen")
    t.keys("P")
    time.sleep(0.5)
    t.keys("Enter")
    t.sees("No space left", "P says why nothing was saved")
    t.keys("W")
    native.ok(t.until(lambda s: re.search(r"kvmtoprc.*No space left", s)) is not None, "and so does W", t.text())
    native.same((sorted(os.listdir(FULL)), os.listdir(os.path.join(FULL, "kvmtop"))), (before, []),
                "no part of a file is left behind")
    time.sleep(2.5)
    t.keys("?")
    t.sees("Columns", "and it goes on")
    t.keys("q")
    os.unlink(os.path.join(FULL, "ballast"))
    t.keys("P")
    time.sleep(0.5)
    t.keys("Enter")
    native.ok(t.until(lambda s: any(f not in before for f in os.listdir(FULL))) is not None,
              "with room again P saves", t.text())
    t.keys("q")
    native.ok(t.until(lambda s: not t.alive(), 5) is not None, "q ends it", t.text())


class Client:
    """A terminal of this size that is attached to the server."""

    def __init__(self, t, cols, rows):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("tmux", ["tmux", "-u", "-L", t.socket, "attach", "-t", "t:1"],
                       {**t.env, "TERM": "xterm-256color"})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            while select.select([self.fd], [], []) and os.read(self.fd, 1 << 16):
                pass
        except OSError:
            pass

    def leave(self):
        """As when the connection breaks: the terminal is gone."""
        os.kill(self.pid, signal.SIGHUP)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def whole(t, cols, rows):
    """The window has this size (less tmux's own line), and the screen fits it."""
    got = t.until(lambda s: t.size() == (cols, rows - 1) and
                  len(lines := s.rstrip("\n").split("\n")) == rows - 1 and " kvmtop" in lines[0] and
                  "quit" in lines[-1] and max(map(width, lines)) <= cols)
    return got is not None


def detach_and_attach():
    t = Terminal(KVMTOP)
    t.tmux("set", "-g", "window-size", "latest")
    t.tmux("set", "-w", "-t", "t:1", "window-size", "latest")
    t.sees("%CPU", "in tmux")
    for cols, rows in ((80, 24), (132, 43), (50, 12), (100, 31)):
        c = Client(t, cols, rows)
        native.ok(whole(t, cols, rows), f"attached at {cols}x{rows}: the screen is whole", f"{t.size()}\n{t.text()}")
        if rows >= 30:
            native.ok("1 vCPUs" in t.text(), "and has its pane from 30 lines on", t.text())
        c.leave()
        time.sleep(0.2)
        native.ok(t.alive(), "detached: it goes on")
    t.keys("q")
    native.ok(t.until(lambda s: not t.alive(), 5) is not None, "q ends it", t.text())


def lives(pid):
    """It is there as kvmtop, and no zombie that nobody has waited for."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            stat = f.read()
    except FileNotFoundError:
        return False
    return "(kvmtop)" in stat and stat.rsplit(")", 1)[1].split()[0] != "Z"


def killed():
    t = Terminal("exec " + KVMTOP)
    t.sees("%CPU", "in another tmux")
    pid = t.pid()
    native.ok(lives(pid), "kvmtop is its process")
    os.kill(int(t.tmux("display-message", "-p", "#{pid}")), signal.SIGKILL)
    native.ok(native.wait_for(lambda: not lives(pid)), "kill -9 of tmux: kvmtop ends")


with_full_tmpfs()
batch_into_it()
keys_into_it()
detach_and_attach()
killed()
native.done()
