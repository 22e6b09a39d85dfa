#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# beside: yes
"""Recordings of older versions (tests/data/recording/README.md): the same figures come out, and they are gone on with."""

import json
import lzma
import os
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

DATA = os.path.join(n.TOP, "tests/data/recording")
FILE = os.path.join(os.environ["TEST_TMP"], "old.db")


def unpacked(name):
    with lzma.open(os.path.join(DATA, name)) as f:
        return f.read()


def replayed():
    p = n.run("replay", FILE, "--batch", "--format", "json", env={"TZ": "UTC"})
    return p.returncode, p.stderr, [json.loads(line) for line in p.stdout.splitlines()]


def differs(old, new, where=""):
    """Where what was there is not there any more, or another; a newer version may say more."""
    if isinstance(old, dict) and isinstance(new, dict):
        return next((d for k, v in old.items() if k != "version"
                     for d in [differs(v, new.get(k, "missing"), f"{where}.{k}")] if d), None)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return next((d for i, v in enumerate(old) for d in [differs(v, new[i], f"{where}[{i}]")] if d), None)
    return None if old == new else f"{where}: was {old}, is {new}"


def main():
    with open(FILE, "wb") as f:
        f.write(unpacked("v4.db.xz"))
    old = [json.loads(line) for line in unpacked("v4.json.xz").decode().splitlines()]
    code, said, new = replayed()
    n.same((code, said, len(new)), (0, "", len(old)), "version 4: all intervals are read")
    n.same(differs(old, new), None, "and every figure is what it was")
    with sqlite3.connect(FILE) as db:
        views = [db.execute(f"SELECT count(*) FROM {v}").fetchone()[0] for v in ("hosts", "vms", "vcpus", "waits")]
    n.ok(n.every(views) and views[0] == len(old), "its views have rows", views)
    with sqlite3.connect(FILE) as db:
        db.executescript("CREATE VIEW mine AS SELECT at FROM hosts; CREATE VIEW segments AS SELECT tier FROM segment")
    db.close()
    p = n.run("record", "-o", FILE, "-d", "0.2", "-n", "2", "--keep", "1s:36500d")
    n.same(p.returncode, 0, "it is gone on with")
    code, said, new = replayed()
    n.same((code, said, len(new)), (0, "", len(old) + 2), "and what was there and what came are both read")
    n.same(differs(old, new[:len(old)]), None, "what was there as before")
    with sqlite3.connect(FILE) as db:
        n.same(db.execute("PRAGMA user_version").fetchone()[0], 6, "the file is of version 6 now")
        n.same(db.execute("SELECT count(*) FROM mine").fetchone()[0], len(old) + 2, "with somebody's own view of it")
        n.ok(db.execute("SELECT max(findings) FROM hosts").fetchone()[0] is not None, "and findings")
    n.done()


main()
