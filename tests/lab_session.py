#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs test scripts one after the other in one boot of the lab (tests/lab/run.sh):

    tests/lab/run.sh tests/lab_session.py NAME=BUILD:LIMIT:SCRIPT…

What a script prints stands between the lines `lab-begin NAME` and `lab-end NAME STATUS SECONDS`
(tests/run takes it apart); STATUS is `limit` when it ran longer than LIMIT seconds, and `left` is added
where it left processes behind. QEMU guests (lab_guests.py) are not its own.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time


def alive(group):
    try:
        os.killpg(group, 0)
        return True
    except ProcessLookupError:
        return False


def end_group(group):
    """True when something of it was left, a moment after its script ended."""
    for wait, sig in ((1, 0), (3, signal.SIGTERM), (3, signal.SIGKILL)):
        end = time.monotonic() + wait
        while alive(group):
            if sig:
                os.killpg(group, sig)
                sig = 0
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        else:
            return wait != 1
    return True


def run(name, build, limit, script):
    print(f"lab-begin {name}", flush=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as tmp:
        results = os.path.join(os.environ["RESULTS"], name.replace("/", "-"))
        os.makedirs(results, exist_ok=True)
        log = f"log_path={results}/sanitizer"
        env = {**os.environ, "BUILD": build, "KVMTOP": f"{build}/kvmtop", "RESULTS": results, "TEST_TMP": tmp,
               "TMPDIR": tmp, "LC_ALL": "C.UTF-8", "TZ": "UTC", "PAGER": "cat",
               "ASAN_OPTIONS": f"exitcode=99:{log}", "UBSAN_OPTIONS": f"print_stacktrace=1:{log}",
               "LSAN_OPTIONS": f"suppressions={os.environ['TOP']}/tests/lsan.supp:print_suppressions=0"}
        # ASan and addresses chosen at random do not always agree
        argv = (["setarch", "-R"] if "/asan" in build else []) + ["/usr/bin/python3", script]
        p = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                             start_new_session=True)
        try:
            status = p.wait(limit)
        except subprocess.TimeoutExpired:
            status = "limit"
            os.killpg(p.pid, signal.SIGTERM)
        if end_group(p.pid) and status != "limit":
            status = f"{status} left"
        p.wait()
        for report in sorted(f for f in os.listdir(results) if f.startswith("sanitizer")):
            with open(os.path.join(results, report), encoding="utf-8", errors="replace") as f:
                print(f"not ok 1 - a sanitizer's report: {report}\n{f.read()}", flush=True)
    print(f"lab-end {name} {status} {time.monotonic() - start:.1f}", flush=True)


def main():
    for word in sys.argv[1:]:
        name, _, rest = word.partition("=")
        build, limit, script = rest.split(":")
        run(name, build, int(limit), script)


main()
