#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: kvm, tracefs, root
# limit: 120
# sanitize: no, memory and rates are those of the real program
"""A terminal that takes nothing for 10 s: nothing lost, memory flat.

Events are taken through perf, whose rings lose what nobody reads: those of 10 s fill them twenty times over.
What is counted in the kernel (the default) cannot be lost.
"""

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native  # noqa: E402


def start():
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
        os.execv(native.KVMTOP, [native.KVMTOP, "-d", "0.25", "--max-overhead", "0", "--events-by", "perf"])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    return pid, fd


def drain(fd, seconds):
    got, end = b"", time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            try:
                got += os.read(fd, 1 << 16)
            except OSError:  # the program ended
                break
    return got


def rss_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])


guest = native.Guest("-n", "-c", 1, "-p", native.CPUS[-1], "-l", "inf", "-r", 30000, "out:1")
pid, fd = start()
drain(fd, 2)
os.write(fd, b"3e")  # pane Access, ioport: its events are open
drain(fd, 3)
before = rss_kb(pid)
time.sleep(10)  # nobody reads: the pty fills up, the screen thread stands still
after = rss_kb(pid)
with open(f"/proc/{pid}/stat", encoding="ascii") as f:
    native.ok(f.read().split(")")[1].split()[0] in "SRD", "it is alive")
drain(fd, 3)
os.write(fd, b"\x0c")  # ^L: the whole screen, not only what changed
text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\(B", " ", drain(fd, 2).decode("utf-8", "replace"))
lost = re.findall(r"lost +(\d+)", text)
native.say(f"RSS {before} KiB before, {after} KiB after 10 s; lost seen: {lost[-3:]}")
native.ok(after - before <= 20480, "memory stays flat", f"{before} -> {after} KiB")
native.ok(lost and not [n for n in lost if n != "0"], "no event was lost", (lost, text[-3000:]))
native.ok(re.search(r"0x3f8:POUT +COM1 data +\d", text), "and they are counted", text[-3000:])
os.write(fd, b"q")
drain(fd, 1)
native.same(os.waitpid(pid, 0)[1], 0, "q ends it")
native.done()
