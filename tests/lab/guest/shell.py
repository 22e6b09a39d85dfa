#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What `ssh guest sh` is elsewhere: runs standard input as a script in a QEMU guest of the lab, and ends as it does.

    shell.py SOCKET [--asleep COMMAND] sh

SOCKET is the guest's second port, at which it waits (tests/lab_guests.py, shell()); the script ends with `exit` or its
input. With --asleep each of its sleeps is twice as long, and the guest does COMMAND in the middle.
"""

import argparse
import socket
import sys

END = b"\x04"  # no trace has it


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("socket")
    ap.add_argument("--asleep")
    ap.add_argument("shell")
    args = ap.parse_args()
    script = sys.stdin.read() + "\nexit\n"
    if args.asleep:
        script = f'sleep() {{ command sleep "$1"; {args.asleep}; command sleep "$1"; }}\n' + script
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(args.socket)
        s.sendall(f"{args.shell}\n{script}".encode())
        got, ends = [], 0
        while ends < 2:
            part = s.recv(65536)
            if not part:
                sys.exit("the guest has gone")
            got.append(part)
            ends += part.count(END)
    output, rest, _ = b"".join(got).split(END)
    status, errors = rest.split(b"\n", 1)
    sys.stdout.buffer.write(output)
    sys.stdout.flush()
    sys.stderr.buffer.write(errors)
    sys.exit(int(status))


main()
