#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs
# limit: 240
"""kvmtop trace: a real guest's side of the host, a shell's side as the guest's, merged; nothing is left behind.

The shell runs on the host: its TSC is what a guest's with offset 0 is."""

import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

INSTANCES = n.TRACEFS + "/instances"
SHELL = ("env", "-i", "PATH=" + os.environ["PATH"])


OTHERS = set(os.listdir(INSTANCES))


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as f:
        return f.read()


def events(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def ours():
    """Others on this host may trace, and a kvmtop that records has an instance as well."""
    return [x for x in os.listdir(INSTANCES)
            if x.startswith("kvmtop-") and x not in OTHERS and not x.endswith("-record")]


def trace(*args, **kw):
    return subprocess.run([n.KVMTOP, "trace", *map(str, args)], capture_output=True, text=True,
                          timeout=120, check=False, **kw)


def started(out, *args):
    """kvmtop trace in the background, once it traces."""
    p = n.child([n.KVMTOP, "trace", *map(str, args), "-o", out], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while time.monotonic() < end and not os.path.exists(out + "/guest.sh") and not os.path.exists(out + "/guest"):
        time.sleep(0.05)
    return p


def whole(guest, folder):
    """Both halves at once, and their merge."""
    out = os.path.join(folder, "whole")
    r = trace(guest.pid, "-o", out, "--for", 1, "--", *SHELL)
    n.same((r.returncode, r.stderr), (0, ""), "host and guest are traced")
    n.same(r.stdout, f"{out}/merged\n", "and it is said where")
    n.same(sorted(os.listdir(out)), ["epochs", "guest", "host", "merged", "offsets"], "the folder has all parts")
    n.same({os.stat(os.path.join(out, x)).st_mode & 0o777 for x in os.listdir(out)}, {0o600}, "for nobody else")
    host, merged = events(read(out, "host")), events(read(out, "merged"))
    pio = [x for x in host if " kvm_pio: " in x]
    n.ok(len(pio) > 20, "the host's half has the guest's exits", len(pio))
    mine = {str(guest.tid(0))}
    seen = {x.split(" [")[0].rsplit("-", 1)[1].split()[0] for x in pio}
    n.same(seen, mine, "and of no other VM")
    n.ok(any(x.startswith("h ") and " kvm_pio: " in x for x in merged), "merged: the host's lines", merged[:5])
    n.ok(any(not x.startswith("h ") and " sched_switch: " in x for x in merged), "merged: the guest's", merged[:5])
    stamps = [int(x.split("] ", 1)[1].split(": ", 1)[0].split()[-1]) for x in merged]
    n.ok(stamps == sorted(stamps), "in one order")
    n.same(ours(), [], "no instance is left")
    return out


def by_hand(guest, folder):
    """Without a way into the guest: a script for it, and the merge to be made."""
    out = os.path.join(folder, "hand")
    p = started(out, guest.pid, "--for", 2)
    with open(out + "/guest.sh", encoding="ascii") as script, open(folder + "/mine", "w", encoding="utf-8") as to:
        text = script.read().replace("sleep 2", "sleep 0.3")
        n.same(subprocess.run(["sh"], input=text, stdout=to, text=True, timeout=60, check=False).returncode, 0,
               "the script runs by itself")
    said, err = p.communicate(timeout=120)
    n.same(p.returncode, 0, "without a command")
    n.ok(f"sh < {out}/guest.sh" in err, "what to do in the guest is said", err)
    words = said.split()
    n.same(words[:4], ["kvmtop", "merge", "-H", f"{out}/host"], "and how to merge")
    words = [w.replace("GUEST_TRACE", folder + "/mine") for w in words]
    merged = subprocess.run([n.KVMTOP, *words[1:]], capture_output=True, text=True, timeout=60, check=False)
    n.same((merged.returncode, merged.stderr), (0, ""), "which works")
    n.same(ours(), [], "no instance is left, neither of the guest's half")


def ended_early(guest, folder):
    for what, number in (("interrupted", signal.SIGINT), ("told to end", signal.SIGTERM)):
        out = os.path.join(folder, what.split()[0])
        p = started(out, guest.pid, "--for", 60)
        p.send_signal(number)
        _, err = p.communicate(timeout=60)
        n.same(p.returncode, 0, f"{what}: it ends in order")
        n.ok(os.path.exists(out + "/offsets"), f"{what}: what was traced is kept")
        n.same(ours(), [], f"{what}: no instance is left")
    p = started(os.path.join(folder, "killed"), guest.pid, "--for", 60)
    p.kill()
    p.wait()
    n.same(len(ours()), 2, "killed: its instances stay")
    trace("nosuch", "--for", 1)
    r = trace(guest.pid, "-o", os.path.join(folder, "next"), "--for", 0.5, "--", *SHELL)
    n.same((r.returncode, r.stderr), (0, ""), "another trace")
    n.same(ours(), [], "took them away")
    p = started(os.path.join(folder, "looked"), guest.pid, "--for", 60)
    host = next(x for x in ours() if x.endswith("-host"))
    with open(f"{INSTANCES}/{host}/trace_pipe", "rb", buffering=0):
        p.send_signal(signal.SIGINT)
        time.sleep(0.5)
    p.communicate(timeout=60)
    n.same(ours(), [], "one that somebody looked into at the end is taken away as well")


def refused(guest, folder):
    def no(name, word, *args):
        r = trace(*args)
        n.ok(r.returncode == (2 if not args else 1) and word in r.stderr and r.stderr.count("\n") >= 1, name,
             (r.returncode, r.stderr))

    no("no VM named", "give the VM")
    no("no such VM", "no VM of this name", "nosuch")
    no("a folder that is there", "give another folder", guest.pid, "-o", folder)
    no("a command that fails", "ended with status 1", guest.pid, "-o", folder + "/f1", "--for", 0.2, "--", "false")
    no("a command that prints nothing", "printed no trace", guest.pid, "-o", folder + "/f2", "--for", 0.2, "--", "true")
    no("a command that is not there", "No such file", guest.pid, "-o", folder + "/f3", "--for", 0.2, "--", "/nosuch")
    r = trace(guest.pid, "--for", "0")
    n.ok(r.returncode == 2 and "give 0.1 to 3600" in r.stderr, "a time that is none", r.stderr)
    r = trace("ev\x1b[31mil")
    n.ok("\x1b" not in r.stderr, "names are escaped", r.stderr)
    n.same(ours(), [], "no instance is left of those")


def main():
    guest = n.Guest("-r", 300, "out:inf")
    guest.go()
    with tempfile.TemporaryDirectory() as folder:
        whole(guest, folder)
        by_hand(guest, folder)
        ended_early(guest, folder)
        refused(guest, folder)
    guest.kill()
    n.done()


main()
