#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Has QEMU translate anew the code to which its emulated CPUs return (tests/lab/run.sh, when a lab is silent).

    qemu_retranslate.py SOCKET      where its gdbserver listens; says what it found

QEMU 7.2 reads the code of a block before it watches the page for writes. When another CPU patches the kernel's text
in between, the block stays as it was read: a breakpoint that is long gone from memory, taken for ever, with
interrupts off. Writing the same byte once more there drops the block. Nothing in the guest changes by it.
"""

import re
import socket
import struct
import sys

CPUS = 2
DEPTH = 512  # bytes of each CPU's stack
RSP, RIP = 7, 16  # of the registers as gdb numbers them
TEXT = range(0xffffffff80000000, 0xffffffffff000000)  # the kernel's and its modules'


class Gdb:
    def __init__(self, path):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(5)
        self.s.connect(path)
        self.rest = b""

    def ask(self, text):
        self.s.sendall(f"${text}#{sum(text.encode()) & 255:02x}".encode())
        while (answer := self.packet()).startswith("T"):
            pass  # not an answer: that it has stopped
        return answer

    def packet(self):
        while not (m := re.search(rb"\$([^#]*)#..", self.rest)):
            got = self.s.recv(65536)
            if not got:
                raise OSError("gdbserver is gone")
            self.rest += got
        self.rest = self.rest[m.end():]
        self.s.sendall(b"+")
        return m[1].decode()

    def registers(self):
        return struct.unpack("<17Q", bytes.fromhex(self.ask("g")[:17 * 16]))

    def memory(self, at, size):
        got = self.ask(f"m{at:x},{size:x}")
        return b"" if got.startswith("E") else bytes.fromhex(got)

    def write_back(self, at):
        """True: there is such a place."""
        byte = self.memory(at, 1)
        return bool(byte) and self.ask(f"M{at:x},1:{byte.hex()}") == "OK"


def places(gdb):
    """Where the CPU is, and what on its stack may be where it returns to: behind the instruction that was taken."""
    registers = gdb.registers()
    stack = gdb.memory(registers[RSP], DEPTH)
    return [registers[RIP]] + [at - 1 for at, in struct.iter_unpack("<Q", stack) if at in TEXT]


def main():
    gdb = Gdb(sys.argv[1])  # QEMU stops its CPUs for it
    for cpu in range(1, CPUS + 1):
        gdb.ask(f"Hg{cpu}")
        found = places(gdb)
        print(f"lab:   CPU {cpu - 1} is at {found[0]:#x}: {sum(map(gdb.write_back, found))} places translated anew")
    gdb.ask("D")


main()
