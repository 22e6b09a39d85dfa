#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 300
# beside: yes
"""kvmtop record and replay as a program: what was recorded is shown, and nothing that happens to the
recorder harms the file."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

TMP = os.environ["TEST_TMP"]
FILE = f"{TMP}/r.db"
KILLS = int(os.environ.get("KILLS", "12"))


def start(*args, **more):
    return n.child([n.KVMTOP, "record", *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE, text=True, **more)


def lines(*args, file=FILE):
    p = n.run("replay", file, "-b", "--format", "json", *args)
    return [json.loads(x) for x in p.stdout.splitlines()], p


def count(file=FILE):
    """Intervals in a sound database."""
    with sqlite3.connect(file) as db:
        sound = db.execute("PRAGMA integrity_check").fetchone()[0]
        both = db.execute("SELECT (SELECT count(*) FROM interval), (SELECT count(*) FROM frame), "
                          "(SELECT count(*) FROM interval JOIN frame ON interval=id)").fetchone()
    db.close()
    return both[0] if sound == "ok" and both[0] == both[1] == both[2] else -1


def intervals(file=FILE):
    db = sqlite3.connect(file, timeout=5)
    try:
        return db.execute("SELECT count(*) FROM interval").fetchone()[0]
    except sqlite3.Error:
        return 0
    finally:
        db.close()  # not when it is collected: a file that is renamed meanwhile is open under its old name


def basics():
    p = n.run("record", "-o", FILE, "-n", "4", "-d", "0.2")
    n.ok(p.returncode == 0 and "4 intervals recorded" in p.stderr, "record: four intervals", p.stderr)
    n.ok(os.stat(FILE).st_mode & 0o7777 == 0o600, "nobody else may read it")
    got, p = lines()
    n.ok(len(got) == 4 and p.returncode == 0, "replay: as many lines", p.stderr)
    n.ok([x["time"] for x in got] == sorted(x["time"] for x in got), "in order of time")
    for form in "text", "csv":
        p = n.run("replay", FILE, "-b", "--format", form, "-n", "2")
        n.ok(p.returncode == 0 and p.stdout.strip(), f"replay as {form}", p.stderr)
    p = n.run("record", "-o", FILE, "-n", "2", "-d", "0.2")
    n.ok(len(lines()[0]) == 6, "a second run goes on with the file", p.stderr)


def not_collected():
    text, doc = (n.run("report", "-i", FILE, "--event", "msr", *form) for form in ((), ("--format", "json")))
    n.ok(text.returncode == 0 and "# msr: not collected\n" in text.stdout and "REASON" not in text.stdout
         and "msr was not collected: " in text.stderr, "report: a kind that was not collected has no table", text.stdout)
    n.same(json.loads(doc.stdout)["collected_seconds"], {"msr": 0}, "and was collected for no time")


def times():
    got, _ = lines()
    last, first = got[-1]["time"], got[0]["time"]
    n.ok([x["time"] for x in lines("--at", last[:19])[0]] == [x["time"] for x in got if x["time"] >= last[:19]],
         "--at: from an ISO time on")
    n.ok(len(lines("--at", "-1d")[0]) == 6, "--at -1d: all of it")
    n.ok(lines("--at", "2020-01-01-2020-01-02")[0] == [], "a range without intervals")
    n.ok(len(lines("--at", f"{first[:10]}..2100-01-01")[0]) == 6, "a range over all")
    early = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - 5 * 86400))
    for at in early, early.replace("T", " "), "2100-01-01T00:00":
        p = n.run("replay", FILE, "-b", "--at", at)
        n.ok(p.returncode == 1 and not p.stdout and f"--at '{at}': the recording holds " in p.stderr,
             f"--at '{at}': a moment that it does not hold is refused", p.stdout[:200] + p.stderr)
        for args in ("bundle", "--at", at, "-o", f"{TMP}/none.tgz", FILE), ("report", "-i", f"{FILE}@{at}"), \
                ("diff", f"{FILE}@{at}", FILE):
            p = n.run(*args)
            n.ok(p.returncode == 1 and not p.stdout and "the recording holds " in p.stderr
                 and not os.path.exists(f"{TMP}/none.tgz"), f"'{at}': {args[0]} refuses it too", p.stdout[:200] + p.stderr)
    for args in ("report", "-i", f"{FILE}@-1d"), ("diff", f"{FILE}@{first[:10]}", FILE):
        p = n.run(*args)
        n.ok(p.returncode == 0 and p.stdout, f"{args[0]}: what begins before it, by a day or by a length", p.stderr)
    n.ok(len(lines("--at", first[:10])[0]) == 6, "--at a day: from its beginning on")
    for bad in "25:00", "yesterday", "03:10-03:00x", "", "-", "2026-13-01", "2026-02-30T03:12":
        p = n.run("replay", FILE, "-b", "--at", bad)
        n.ok(p.returncode == 2 and "--at" in p.stderr, f"--at '{bad}' is refused", p.stderr)


def usage():
    for args, want in [(("replay", "/nonexistent.db", "-b"), "No such file"),
                       (("replay", "/dev/null", "-b"), "not a file"),
                       (("replay", "/etc/passwd", "-b"), "database"),
                       (("record", "-o", "/nonexistent/r.db"), "No such file"),
                       (("record", "-o", TMP), "directory"),
                       (("record", "-o", "/etc/hostname.link"), "")]:
        if args[-1].endswith(".link"):
            args = ("record", "-o", f"{TMP}/link")
            os.symlink("/tmp/elsewhere", args[-1])
        p = n.run(*args)
        n.ok(p.returncode == 1 and want in p.stderr and p.stderr.count("\n") == 1,
             f"{' '.join(args)}: one line, status 1", p.stderr)
    for args in ("record", "--at", "03:12"), ("replay", "-d", "1", FILE), ("replay", "a", "b"), \
            ("record", "--format", "json"), ("replay", FILE, "--format", "json"):
        p = n.run(*args)
        n.ok(p.returncode == 2 and p.stderr.count("\n") == 1, f"{' '.join(args)}: wrong usage", p.stderr)


def command():
    file = f"{TMP}/c.db"
    w = start("-o", file, "-d", "0.2", "--", "sh", "-c", f"until [ -e {TMP}/enough ]; do sleep 0.1; done")
    ok = n.wait_for(lambda: intervals(file) >= 3) and w.poll() is None
    with open(f"{TMP}/enough", "w", encoding="ascii"):
        pass
    status, err = w.wait(60), w.stderr.read()
    n.ok(ok and status == 0 and ", could not" not in err, "as long as a command runs", err)
    before = intervals(file)
    p = n.run("record", "-o", file, "-d", "60", "--", "sleep", "0.5")
    n.ok(p.returncode == 0 and intervals(file) == before + 1, "an interval cut short is recorded too", p.stderr)
    p = n.run("record", "-o", file, "--", "sh", "-c", "exit 3")
    n.ok(p.returncode == 1 and p.stderr.endswith("; sh ended with status 3\n"), "a command that fails shows", p.stderr)
    p = n.run("record", "-o", file, "--", "sh", "-c", "kill -9 $$")
    n.ok(p.returncode == 1 and p.stderr.endswith("; sh was ended by signal 9 (Killed)\n"), "one that is killed", p.stderr)
    p = n.run("record", "-o", file, "--", "sh", "-c", "(sleep 0.3; kill -CONT $$) & kill -STOP $$; wait")
    n.ok(p.returncode == 0 and p.stderr.endswith("recorded in " + file + "\n"), "one that is stopped has not ended", p.stderr)
    p = n.run("record", "-o", file, "-d", "0.1", "-n", "2", "--", "sleep", "100")
    n.ok(p.returncode == 0 and p.stderr.endswith("recorded in " + file + "\n"), "nor has one failed that -n ends", p.stderr)
    p = n.run("record", "-o", file, "--", "/nonexistent")
    n.ok(p.returncode == 1 and "/nonexistent: No such file" in p.stderr, "one that is not there is named", p.stderr)


def deaf_command():
    """One that does not end when it is told to holds nothing up."""
    w = start("-o", f"{TMP}/deaf.db", "-d", "0.2", "--", "sh", "-c",
              f"trap '' TERM INT HUP; : > {TMP}/deaf; while :; do sleep 0.1; done")
    n.wait_for(lambda: os.path.exists(f"{TMP}/deaf"), 60)
    w.send_signal(signal.SIGTERM)
    status, err = w.wait(60), w.stderr.read()
    n.ok(status == 1 and re.search(r" intervals? recorded in ", err), "a command that does not end is ended", (status, err))


def meanwhile():
    file = f"{TMP}/m.db"
    w = start("-o", file, "-d", "0.1")
    ok = n.wait_for(lambda: intervals(file) >= 3)
    seen = []
    for _ in range(3):
        ok = ok and n.wait_for(lambda: intervals(file) > (seen[-1] if seen else 2))
        seen.append(len(lines(file=file)[0]))
    n.ok(ok and 3 <= seen[0] < seen[1] < seen[2], "it is read while it is written, and grows", seen)
    p = n.run("record", "-o", file, "-n", "1")
    n.ok(p.returncode == 1 and "another kvmtop records into it" in p.stderr, "by one only", p.stderr)
    w.send_signal(signal.SIGTERM)
    err = w.communicate(timeout=20)[1]
    n.ok(w.returncode == 0 and re.search(rf"\b{count(file)} intervals? recorded", err), "SIGTERM ends it in order", err)


def kills():
    file, seen, sound = f"{TMP}/k.db", 0, True
    for i in range(KILLS):
        w = start("-o", file, "-d", "0.1")
        n.wait_for(lambda: intervals(file) > seen + 1)
        # Anywhere in an interval, also in its transaction.
        time.sleep((i * 37 % 100) / 1000)
        before = intervals(file)
        w.kill()
        w.wait()
        w.stderr.close()
        now = count(file)
        got, p = lines(file=file)
        # What was committed is there: what was seen before the kill, and nothing is half there.
        sound = sound and now >= before > seen and len(got) == now and p.returncode == 0
        if not sound:
            break
        seen = now
    n.ok(sound, f"{KILLS} kills: the file opens, all intervals are whole", f"{before} seen, {now} left, {p.stderr}")


def renamed():
    """As files are rotated: what was recorded stays in the one, what follows goes into another."""
    file, old = f"{TMP}/n.db", f"{TMP}/old.db"
    w = start("-o", file, "-d", "0.1")
    ok = n.wait_for(lambda: intervals(file) >= 3)
    os.rename(file, old)
    ok = ok and n.wait_for(lambda: os.path.exists(file) and intervals(file) >= 2)
    w.send_signal(signal.SIGTERM)
    err = w.communicate(timeout=20)[1]
    n.ok(ok and w.returncode == 0 and err.count("renamed or removed") == 1, "a renamed recording: said once", err)
    n.ok(count(old) >= 3 and f"{count(old) + count(file)} intervals recorded" in err,
         "each interval is in one of the two", f"{count(old)} {count(file)} {err}")
    with sqlite3.connect(file) as db:
        facts = db.execute("SELECT count(*) FROM facts").fetchone()[0]
    db.close()
    n.ok(facts > 0, "the new one has the host's facts too")


def full_disk():
    folder = f"{TMP}/small"
    os.mkdir(folder)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", folder], check=False,
                      capture_output=True).returncode:
        n.skip("a full file system", "needs:root no tmpfs can be mounted")
        return
    file = f"{folder}/r.db"
    w = start("-o", file, "-d", "0.1")
    n.wait_for(lambda: intervals(file) >= 3)
    with open(f"{folder}/filler", "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass
    time.sleep(3)
    stuck, before = intervals(file), w.poll()
    os.unlink(f"{folder}/filler")
    again = n.wait_for(lambda: intervals(file) > stuck + 3)
    w.send_signal(signal.SIGTERM)
    err = w.communicate(timeout=20)[1]
    n.ok(before is None and again and count(file) > stuck, "a full disk: it goes on when there is room", err)
    n.ok(err.count("no room left") == 1 and err.count("recording again") == 1, "each is said once", err)
    with sqlite3.connect(file) as db:
        skipped = db.execute("SELECT sum(skipped) FROM interval").fetchone()[0]
    db.close()
    n.ok(skipped and f"{skipped} could not be written" in err, "what is missing is counted", f"{skipped}: {err}")
    subprocess.run(["umount", "-l", folder], check=False)


def main():
    """All of it, or what is named: `make bench` wants more kills."""
    for test in basics, not_collected, times, usage, command, deaf_command, meanwhile, renamed, kills, full_disk:
        if not sys.argv[1:] or test.__name__ in sys.argv[1:]:
            test()
    n.done()


main()
