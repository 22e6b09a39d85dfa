#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 60
# beside: yes
"""Trees for --root whose files are cut, mixed up, huge, folders, fifos, links to themselves or gone
while they are read: it ends in time with status 0 or 1, and whatever it prints is possible."""

import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

ROUNDS = 64
RECORDED = os.path.join(n.TOP, "tests/data/roots/tinyvm-6.18")
NUMBERS = (b"18446744073709551615", b"-1", b"0", b"99999999999999999999999", b"9223372036854775807", b"2147483648")
SPOIL = (("bytes",), ("bytes",), ("bytes", "gone"), ("bytes", "gone", "fifo", "folder", "loop"), ("fifo",), ("folder",),
         ("loop",), ("gone",))
CONTROL = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]")


def damaged(rnd, data):
    what = rnd.randrange(9)
    if what == 0:
        return b""
    if what == 1:
        return rnd.randbytes(rnd.choice((1, 10, 300, 5000)))
    if what == 2:
        return data[:rnd.randrange(len(data) + 1)]
    if what == 3:
        at = rnd.randrange(len(data) + 1)
        return data[:at] + rnd.randbytes(4) + data[at + 4:]
    if what == 4:
        return re.sub(rb"\d+", lambda m: rnd.choice((m[0], *NUMBERS)), data)
    if what == 5:
        return re.sub(rb"\d{1,18}", lambda m: str(int(m[0]) + rnd.choice((0, 0, 1, 10 ** 6))).encode(), data)
    if what == 6:
        return data * rnd.choice((2, 50, 3000))
    if what == 7:
        return data.replace(b" ", b"")
    return data.replace(b"\n", b"\0\x1b[2J\n")


def spoil(rnd, path, ways):
    way = rnd.choice(ways)
    link = os.readlink(path).encode() if os.path.islink(path) else None
    data = b""
    if link is None and way == "bytes":
        with open(path, "rb") as f:
            data = f.read()
    os.unlink(path)
    if way == "fifo":
        os.mkfifo(path)
    elif way == "folder":
        os.mkdir(path)
    elif way == "loop":
        os.symlink(os.path.basename(path), path)
    elif way == "bytes" and link is not None:
        os.symlink(damaged(rnd, link).replace(b"\0", b"")[:2000] or b"x", os.fsencode(path))
    elif way == "bytes":
        with open(path, "wb") as f:
            f.write(damaged(rnd, data))


def spoil_some(rnd, tree, share, ways):
    for folder, folders, files in os.walk(tree):
        for name in files + [f for f in folders if os.path.islink(os.path.join(folder, f))]:
            path = os.path.join(folder, name)
            if rnd.random() < share and (os.path.isfile(path) or os.path.islink(path)):
                spoil(rnd, path, ways)


def numbers(value, path=""):
    if isinstance(value, dict):
        for k, v in value.items():
            yield from numbers(v, f"{path}.{k}")
    elif isinstance(value, list):
        for i, v in enumerate(value):
            yield from numbers(v, f"{path}[{i}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def impossible(line):
    """What a line of JSON has that cannot be."""
    record = json.loads(line)
    bad = [(p, v) for p, v in numbers(record) if not math.isfinite(v) or v < 0]
    bad += [(p, v) for p, v in numbers(record) if p.endswith("_pct") and v > 1e5]
    most = 100 * max(record["host"]["ncpu"] or 0, os.cpu_count())
    bad += [("tasks", t["cpu_pct"]) for t in record["tasks"] if (t["cpu_pct"] or 0) > most]
    for vm in record["vms"]:
        for row in vm["vcpus"]:
            bad += [(k, row[k]) for k in ("cpu_pct", "guest_pct", "usr_pct", "sys_pct", "steal_pct", "exit_pct")
                    if (row[k] or 0) > 101]
            bad += [("csw_per_s", row["csw_per_s"])] if (row["csw_per_s"] or 0) > 5e6 else []
    return bad


def one_round(seed, source, tree):
    """What was wrong, "" for nothing."""
    rnd = random.Random(seed)
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(source, tree, symlinks=True)
    ways, share, first = SPOIL[seed % len(SPOIL)], rnd.choice((0.02, 0.2, 0.6, 1)), seed // len(SPOIL) % 2
    if first:
        spoil_some(rnd, tree, share, ways)
    p = subprocess.Popen([n.KVMTOP, "-b", "-n", "3", "-d", "0.1", "--format", "json", "--root", tree],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not first:
        time.sleep(0.2)  # a moment within the run: what it has open and what it opens are both hit
        spoil_some(rnd, tree, share, ways)
    try:
        out, err = p.communicate(timeout=60 if n.SANITIZED else 10)
    except subprocess.TimeoutExpired:
        p.kill()
        p.communicate()
        return f"{ways}, {share}: it hangs"
    what = f"{ways}, {share}, first {first}: "
    if p.returncode not in (0, 1) or err.count(b"\n") > 1:
        return what + f"status {p.returncode}, {err[-2000:].decode(errors='replace')}"
    if CONTROL.search(out + err):
        return what + f"control characters: {out[:200]!r} {err!r}"
    bad = [x for line in out.splitlines() for x in impossible(line)]
    return what + f"{bad[:10]}" if bad else ""


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        made = os.path.join(folder, "made")
        n.sh(sys.executable, os.path.join(n.TOP, "tests/bench/make_root.py"), made, "4", "3", "10")
        for name, source in (("a recorded tree", RECORDED), ("a tree with names, UUIDs and cgroups", made)):
            wrong = [(seed, w) for seed in range(ROUNDS // 2)
                     if (w := one_round(seed, source, os.path.join(folder, "tree")))]
            n.same(wrong, [], f"{name}, damaged in {ROUNDS // 2} ways")
    n.done()


main()
