#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a formatter does not see: the length of files and functions, and things left for later."""

import json
import re
import subprocess
import sys

FILE_LINES = 800
FUNCTION_LINES = 80
# Spelled with classes, so that this file passes its own check.
LATER = re.compile(r"\b(TOD[O]|FIXM[E]|XX[X])\b")


def git_files(*patterns):
    out = subprocess.run(["git", "ls-files", "-z", "--", *patterns], check=True, capture_output=True)
    return [f for f in out.stdout.decode().split("\0") if f]


def main():
    problems = []
    sources = git_files("*.c", "*.h", "*.sh", "*.py", "Makefile", "tests/run")
    for path in sources:
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
        if len(lines) > FILE_LINES:
            problems.append(f"{path}: {len(lines)} lines, at most {FILE_LINES}")
        for n, line in enumerate(lines, 1):
            if LATER.search(line):
                problems.append(f"{path}:{n}: left for later: {line.strip()}")
            if line != line.rstrip():
                problems.append(f"{path}:{n}: blanks at the end of the line")
    code = [f for f in sources if f.endswith((".c", ".h"))]
    tags = subprocess.run(["ctags", "--output-format=json", "--fields=+ne", "--languages=C,C++",
                           "--langmap=C:.c.h", "--kinds-C=f", "-f", "-", *code],
                          check=True, capture_output=True, text=True)
    lengths = []
    for line in tags.stdout.splitlines():
        tag = json.loads(line)
        if tag.get("kind") != "function" or "end" not in tag:
            continue
        lengths.append(tag["end"] - tag["line"] + 1)
        if lengths[-1] > FUNCTION_LINES:
            problems.append(f"{tag['path']}:{tag['line']}: {tag['name']}() has {lengths[-1]} lines, "
                            f"at most {FUNCTION_LINES}")
    lengths.sort()
    if lengths:
        print(f"# {len(lengths)} functions, median {lengths[len(lengths) // 2]} lines, "
              f"95th percentile {lengths[len(lengths) * 95 // 100]}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
