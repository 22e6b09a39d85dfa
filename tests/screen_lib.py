# SPDX-License-Identifier: GPL-2.0-only
"""kvmtop in a real terminal: a tmux server of our own, keys in, screens out."""

import atexit
import os
import subprocess
import time
import unicodedata

import native


class Terminal:
    """One tmux window; its server has its own socket and no configuration."""

    count = 0

    def __init__(self, command, cols=80, rows=24, env=None):
        Terminal.count += 1
        self.socket = f"kvmtop-{os.getpid()}-{Terminal.count}"
        e = {k: v for k, v in os.environ.items() if k not in ("TMUX", "TMUX_PANE", "NO_COLOR")}
        e.update({"LC_ALL": "C.UTF-8", "HOME": os.environ.get("TEST_TMP", "/tmp"), **(env or {})})
        self.env = e
        # Two windows: the server lives on when the program in the first one ends.
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", cols, "-y", rows, "sleep 600")
        self.tmux("set", "-g", "remain-on-exit", "on")
        # "t:" and not "t": that may be a window whose name begins with it.
        self.tmux("new-window", "-t", "t:", command)
        self.resize(cols, rows)
        atexit.register(self.end)

    def tmux(self, *args):
        return subprocess.run(["tmux", "-u", "-L", self.socket, *map(str, args)], env=self.env, check=True,
                              capture_output=True, text=True, errors="surrogateescape").stdout

    def resize(self, cols, rows):
        self.tmux("resize-window", "-t", "t:1", "-x", cols, "-y", rows)

    def keys(self, *keys):
        self.tmux("send-keys", "-t", "t:1", *keys)

    def text(self, colours=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if colours else []), "-t", "t:1")

    def lines(self):
        return self.text().rstrip("\n").split("\n")

    def until(self, condition, seconds=10):
        """The screen as soon as condition(text) holds; None when it never did."""
        end = time.monotonic() + seconds * (6 if native.SANITIZED else 1)
        while time.monotonic() < end:
            text = self.text()
            if condition(text):
                return text
            time.sleep(0.05)
        return None

    def sees(self, what, name, seconds=10):
        """A test: this text comes to the screen."""
        got = self.until(lambda t: what in t, seconds)
        native.ok(got is not None, name, f"wanted {what!r}\n{self.text()}")
        return got

    def alive(self):
        return self.tmux("display-message", "-p", "-t", "t:1", "#{pane_dead}").strip() == "0"

    def pid(self):
        return int(self.tmux("display-message", "-p", "-t", "t:1", "#{pane_pid}"))

    def size(self):
        """Columns and lines of the window."""
        return tuple(map(int, self.tmux("display-message", "-p", "-t", "t:1", "#{pane_width} #{pane_height}").split()))

    def end(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], env=self.env, capture_output=True,
                       check=False)


def width(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in line)
