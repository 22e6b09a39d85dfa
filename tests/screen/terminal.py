#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: kvm, root, tmux, cmd:localedef, cmd:tic
# limit: 240
# beside: yes
"""The terminal: resize storm, suspend, crash, ASCII, no colours, unknown TERM, no terminal at all."""

import fcntl
import os
import pty
import random
import re
import select
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native  # noqa: E402
from screen_lib import Terminal, width  # noqa: E402

guest = native.Guest("-n", "-c", 2, "-p", native.CPUS[-1], "-l", "inf", "spin:20 sleep:20",
                     program=native.posing_as("qemu-system-x86_64"), tail=("-name", "guest=vm-名前-ñ"))


def resize_storm():
    t = Terminal(native.KVMTOP)
    t.sees("vm-名前-ñ", "a wide name is shown")
    rnd = random.Random(1)
    for i in range(200):
        t.resize(rnd.randint(2, 220), rnd.randint(2, 70))
        if i % 20 == 0:
            t.keys(rnd.choice(["v", "1", "2", "5", "6", "?", "Escape", "Tab"]))
            time.sleep(0.02)
    native.ok(t.alive(), "200 sizes: it is alive", t.text())
    t.resize(10, 3)
    native.ok(t.until(lambda s: s.strip() != "") is not None and t.alive(), "tiny window", t.text())
    for size in ((80, 24), (40, 10), (132, 43)):
        t.resize(*size)
        t.keys("Escape")
        t.until(lambda s: "kvmtop" in s)
        time.sleep(0.3)
        native.ok(native.every(width(ln) <= size[0] for ln in t.lines()), f"no line too wide at {size}", t.text())
    t.keys("q")
    t.until(lambda s: not t.alive(), 5)
    if t.alive():  # help was open
        t.keys("q")
    native.ok(t.until(lambda s: not t.alive(), 5) is not None, "q quits after the storm", t.text())


def in_a_shell():
    t = Terminal("PS1='$ ' bash --norc --noprofile")
    t.keys("stty -a > $HOME/before; echo begin-mark", "Enter")
    t.sees("begin-mark", "a shell")
    t.keys(native.KVMTOP, "Enter")
    t.sees(" %CPU", "kvmtop under it")
    t.keys("C-z")
    t.sees("Stopped", "^Z suspends")
    native.ok("begin-mark" in t.text(), "the shell's screen is back", t.text())
    t.keys("fg", "Enter")
    native.ok(t.until(lambda s: " %CPU" in s and "begin-mark" not in s) is not None, "fg brings it back",
              t.text())
    job = subprocess.run(["pgrep", "-P", str(t.pid()), "-x", "kvmtop"], capture_output=True, text=True,
                         check=False).stdout.split()
    native.ok(len(job) == 1, "its process", job)
    os.kill(int(job[0]), 11)
    native.ok(t.until(lambda s: "begin-mark" in s and "fault" in s.lower(), 10) is not None,
              "SIGSEGV leaves the alternate screen", t.text())
    t.keys("stty -a > $HOME/after; echo typed-mark", "Enter")
    t.sees("typed-mark", "what is typed is echoed again")
    native.ok(t.until(lambda s: re.search(r"^typed-mark", s, re.M)) is not None, "and run")
    home = t.env["HOME"]
    with open(f"{home}/before", encoding="ascii") as a, open(f"{home}/after", encoding="ascii") as b:
        native.same(b.read(), a.read(), "the terminal's settings are as before")
    t.keys("exit", "Enter")


def german():
    """A locale of our own making: the machine need not have it."""
    where = os.environ.get("TEST_TMP", "/tmp")
    subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{where}/de_DE.UTF-8"], check=False,
                   capture_output=True)
    t = Terminal(native.KVMTOP, env={"LC_ALL": "de_DE.UTF-8", "LOCPATH": where})
    native.ok(t.until(lambda s: re.search(r"usr +\d+\.\d", s)) is not None, "numbers are not localised",
              t.text())
    native.ok("vm-名前-ñ" in t.text(), "and characters are those of the locale", t.text())
    t.keys("q")


def kinds_of_terminal():
    t = Terminal(native.KVMTOP, env={"LC_ALL": "C"})
    t.sees("%CPU", "C locale")
    t.keys("5")
    time.sleep(1.5)
    body = t.text()
    native.ok(body.isascii(), "only ASCII is drawn there", ascii(body))
    t.keys("q")
    german()
    t = Terminal(native.KVMTOP, env={"NO_COLOR": "1"})
    t.until(lambda s: "%CPU" in s)
    time.sleep(0.5)
    native.ok(not re.search(r"\x1b\[[0-9;]*(3[0-7]|38|4[0-7]|48)[;m]", t.text(True)), "NO_COLOR: no colour",
              ascii(t.text(True)[:600]))
    t.keys("q")
    t = Terminal(f"TERM=no-such-terminal {native.KVMTOP}")
    native.ok(t.until(lambda s: "%CPU" in s) is not None, "an unknown TERM falls back", t.text())
    t.keys("q")


def output(term, seconds=2.5, **env):
    """What kvmtop writes to a terminal whose TERM is this."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ.update(TERM=term, **env)
        os.execv(native.KVMTOP, [native.KVMTOP])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    got, end = b"", time.monotonic() + seconds * (6 if native.SANITIZED else 1)
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            got += os.read(fd, 65536)
    os.write(fd, b"q")
    while select.select([fd], [], [], 5)[0]:
        try:
            if not os.read(fd, 65536):
                break
        except OSError:  # its end
            break
    os.waitpid(pid, 0)
    os.close(fd)
    return got


def true_colours():
    """COLORTERM is believed where there is a description with direct colours; else the nearest of 256."""
    where = os.path.join(os.environ.get("TEST_TMP", "/tmp"), "terminfo")

    def describe(text):
        subprocess.run(["tic", "-x", "-o", where, "-"], input=text, text=True, check=True, capture_output=True)

    describe("kvmtop-test-256color|test,\n\tuse=xterm-256color,\n")
    env = {"TERMINFO": where, "LC_ALL": "C.UTF-8", "COLORTERM": "truecolor"}
    got = output("kvmtop-test-256color", **env)
    native.ok(b"\x1b[38;5;" in got and not re.search(rb"[34]8[;:]2[;:]", got),
              "true colours without a description of them: the nearest of 256", got[:300])
    native.ok(b"\x1b[?1049h" in got and not re.search(rb"\x1b\[\?(9|10[01][0-9])h", got),
              "the mouse stays the terminal's, so that text can be copied", got[:300])
    describe("kvmtop-direct|test,\n\tcolors#0x1000000, pairs#0x7fff, RGB,\n"
             "\tsetaf=\\E[38;2;%p1%{65536}%/%d;%p1%{256}%/%{255}%&%d;%p1%{255}%&%dm,\n"
             "\tsetab=\\E[48;2;%p1%{65536}%/%d;%p1%{256}%/%{255}%&%d;%p1%{255}%&%dm,\n"
             "\tuse=xterm-256color,\n")
    got = output("kvmtop-test-256color", **env)
    native.ok(b"\x1b[38;2;127;200;248m" in got and b"38;5;" not in got, "with one: the theme's own", got[:300])
    env["COLORTERM"] = ""
    native.ok(b"38;2;" not in output("kvmtop-test-256color", **env), "and only where the terminal says so")


def no_terminal():
    p = native.run()
    native.ok(p.returncode != 0 and "--batch" in p.stderr and p.stderr.count("\n") == 1,
              "without a terminal one line says what to use", (p.returncode, p.stderr))


resize_storm()
in_a_shell()
kinds_of_terminal()
true_colours()
no_terminal()
native.done()
