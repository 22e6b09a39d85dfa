#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
# beside: yes
"""Recordings with bytes that are others, pages that are mixed up or gone: each command reads what is left, or says in
one line why not, and leaves nothing behind."""

import datetime
import os
import random
import re
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

TMP = os.environ["TEST_TMP"]
FILE = f"{TMP}/r.db"
ROUNDS = 10
PAGE = 4096
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def content(file):
    with open(file, "rb") as f:
        return f.read()


def write(file, data):
    for suffix in "-wal", "-shm":
        if os.path.exists(file + suffix):
            os.unlink(file + suffix)
    with open(file, "wb") as f:
        f.write(data)


def damaged(rnd, data):
    data, pages = bytearray(data), len(data) // PAGE
    way = rnd.randrange(5)
    if way == 0:
        del data[rnd.randrange(len(data)):]
    elif way == 1:
        for _ in range(rnd.choice((1, 20, 200))):
            data[rnd.randrange(len(data))] = rnd.randrange(256)
    elif way == 2:
        for _ in range(3):
            data[rnd.randrange(100)] = rnd.randrange(256)
    elif way == 3:
        a, b = rnd.randrange(pages) * PAGE, rnd.randrange(pages) * PAGE
        data[a:a + PAGE], data[b:b + PAGE] = data[b:b + PAGE], data[a:a + PAGE]
    else:
        at = rnd.randrange(pages) * PAGE
        data[at:at + PAGE] = rnd.randbytes(PAGE) if rnd.random() < 0.5 else bytes(PAGE)
    return bytes(data)


def wrong(file, *args):
    """What is wrong with how a command takes the file, "" for nothing."""
    p = n.run(*args, limit=60)
    lines = p.stderr.count("\n")
    if p.returncode not in (0, 1) or (p.returncode == 1 and lines != 1):
        return f"{' '.join(args)}: status {p.returncode}, {p.stderr}"
    if CONTROL.search(p.stdout + p.stderr) or "Bad message" in p.stderr:
        return f"{' '.join(args)}: {p.stderr!r}"
    return ""


def any_damage(sound):
    found = []
    for seed in range(ROUNDS):
        file, archive = f"{TMP}/d.db", f"{TMP}/d.tar.gz"
        write(file, damaged(random.Random(seed), sound))
        for args in ("replay", file, "-b", "--format", "json"), ("diff", file, f"{file}@-1d"), ("report", "-i", file), \
                ("bundle", file, "-o", archive, "--anonymize"):
            found += [f"{seed}: {w}" for w in [wrong(file, *args)] if w]
        if os.path.exists(archive):
            os.unlink(archive)
    n.same(found, [], f"damaged in {ROUNDS} ways: it is read as far as it is whole, or one line says why not")
    n.same([f for f in os.listdir(TMP) if f.startswith(".")], [], "and nothing is left behind")


def one_interval(sound):
    file = f"{TMP}/one.db"
    write(file, sound)
    with sqlite3.connect(file) as db:
        db.execute("UPDATE frame SET data=zeroblob(length(data)) WHERE interval=3")
    db.close()
    p = n.run("replay", file, "-b", "--table", "host", "--format", "csv")
    n.ok(p.returncode == 0 and p.stdout.count("\n") == 6 and p.stderr == "kvmtop: 1 interval is damaged and left out\n",
         "a damaged interval is left out, and that is said", p.stdout + p.stderr)
    p = n.run("replay", file, "-b", "--at", "-1d", "-n", "2", "--table", "host", "--format", "csv")
    n.ok(p.returncode == 0 and p.stdout.count("\n") == 3, "those before it are there", p.stderr)
    p = n.run("diff", file, file)
    n.ok("1 interval could not be read" in p.stdout, "diff says so too", p.stdout[:400])
    with sqlite3.connect(file) as db:
        db.execute("UPDATE frame SET data=zeroblob(length(data))")
    db.close()
    p = n.run("replay", file, "-b")
    n.ok(p.returncode == 1 and p.stdout == "" and p.stderr == "kvmtop: the recording cannot be read: it is damaged\n",
         "nothing is left", p.stdout + p.stderr)


def out_of_order(sound):
    """One byte: the id of a row in the middle is larger than those behind it. By ids in order it would be come to
    again and again."""
    file, archive = f"{TMP}/order.db", f"{TMP}/order.tar.gz"
    write(file, sound)
    with sqlite3.connect(file) as db:
        root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name='interval'").fetchone()[0]
    db.close()
    data, page = bytearray(content(file)), (root - 1) * PAGE
    cells = [page + int.from_bytes(data[page + 8 + 2 * i:page + 10 + 2 * i], "big") for i in range(6)]
    n.same([data[page]] + [data[c + 1] for c in cells], [13, 1, 2, 3, 4, 5, 6], "the table is one page of six rows")
    data[cells[2] + 1] = 123
    write(file, data)
    for args in ("replay", file, "-b"), ("report", "-i", file), ("diff", file, file), \
            ("bundle", file, "-o", archive, "--anonymize"):
        p = n.run(*args, limit=30)
        n.ok(p.returncode == 1 and p.stderr.count("\n") == 1 and "it is damaged" in p.stderr
             and not os.path.exists(archive), f"{args[0]}: ids that are not in order are damage, and it ends",
             f"{p.returncode} {p.stderr}")


def none_makes_sense(sound):
    """Rows that cannot be: that is damage, and not a recording in which nothing is yet."""
    file, archive = f"{TMP}/sense.db", f"{TMP}/sense.tar.gz"
    for change in ("dt=-1", "dt=9223372036854775807", "session=-1", "time=-5", "time=9223372036854775807",
                   "time='now'"):
        write(file, sound)
        with sqlite3.connect(file) as db:
            db.execute(f"UPDATE interval SET {change}")
        db.close()
        for args in ("replay", file, "-b"), ("report", "-i", file), ("diff", file, file), ("bundle", file, "-o", archive):
            p = n.run(*args, limit=30)
            n.ok(p.returncode == 1 and p.stdout == "" and p.stderr.count("\n") == 1 and "it is damaged" in p.stderr
                 and not os.path.exists(archive), f"{args[0]}: {change} of all intervals is damage",
                 f"{p.returncode} {p.stdout[:200]} {p.stderr}")


def bundle_without(sound):
    """What a bundle could not read is said, and one of nothing is none."""
    file, archive = f"{TMP}/without.db", f"{TMP}/without.tar.gz"
    write(file, sound)
    for where, wanted in ("WHERE interval=2", (0, f"kvmtop: {file}: 1 of 6 intervals could not be read and is missing\n")), \
            ("", (1, f"kvmtop: {file}: it is damaged\n")):
        with sqlite3.connect(file) as db:
            db.execute(f"UPDATE frame SET length=9223372036854775807 {where}")
        db.close()
        p = n.run("bundle", file, "-o", archive, limit=60)
        n.same((p.returncode, p.stderr), wanted, f"bundle: frames that cannot be {where or 'at all'}")
        n.same(os.path.exists(archive), not wanted[0], "and there is one, or none")
        if not wanted[0]:
            os.unlink(archive)


def put_back():
    """The clock was put back between two intervals: of a range all is found, before and after that."""
    file = f"{TMP}/back.db"
    write(file, content(FILE))
    with sqlite3.connect(file) as db:
        first = db.execute("SELECT min(time) FROM interval").fetchone()[0] // 10 ** 9
        db.execute("UPDATE interval SET time=(?+10+id%3)*1000000000, dt=1000000000", (first,))
    db.close()
    ten, eleven = (datetime.datetime.fromtimestamp(first + s).isoformat() for s in (10, 11))
    for args, want in (("--at", "-1d"), 6), (("--at", f"{ten}..{eleven}"), 2), ((), 6):
        p = n.run("replay", file, "-b", "--table", "host", "--format", "csv", *args)
        n.ok(p.returncode == 0 and p.stdout.count("\n") == 1 + want, f"a clock put back, {' '.join(args) or 'all'}",
             p.stdout + p.stderr)


def main():
    p = n.run("record", "-o", FILE, "-d", "0.1", "-n", "6")
    n.ok(p.returncode == 0, "recorded", p.stderr)
    sound = content(FILE)
    for test in any_damage, one_interval, out_of_order, none_makes_sense, bundle_without:
        test(sound)
    put_back()
    n.done()


main()
