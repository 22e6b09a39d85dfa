#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
"""In the lab (run.sh): a guest whose kernel KASLR moved, and a vmlinux, without the guest's kallsyms.

Debian has no vmlinux with symbols but in a package of its own of a gigabyte. One is made here: the code is
that of the lab's kernel, which is the guest's, the names and their addresses are of the lab's own
/proc/kallsyms, where that kernel runs as it was linked (nokaslr). How far the guest's was moved is
told by the guest itself, to this test only.
"""

import collections
import json
import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lab_guests
import native as n

RESULTS = os.environ.get("RESULTS", "/tmp")
TMP = os.environ.get("TEST_TMP", "/tmp")
STEP = 2 << 20  # KASLR's on x86-64
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_NOTE = 1, 2, 3, 7
HOT = r"entry_SYSCALL_64|syscall|do_syscall_64|exit_to_user|getppid|pid_vnr|pid_nr"  # of the load of that name


# --- the vmlinux ---------------------------------------------------------------------------------
def section_of(path, name):
    """(address, content) of a section."""
    with open(path, "rb") as f:
        header = f.read(64)
        at, = struct.unpack_from("<Q", header, 40)
        size, count, names = struct.unpack_from("<HHH", header, 58)
        f.seek(at)
        table = [struct.unpack("<IIQQQQIIQQ", f.read(size)) for _ in range(count)]
        f.seek(table[names][4])
        strings = f.read(table[names][5])
        for s in table:
            if strings[s[0]:strings.index(b"\0", s[0])].decode() == name:
                f.seek(s[4])
                return s[3], f.read(s[5])
    raise RuntimeError(f"{path} has no section {name}")


def linked_symbols(begin, end):
    """[(address, name)] of code, as linked, by the running kernel, which was not moved."""
    found = []
    with open("/proc/kallsyms", encoding="ascii") as f:
        for line in f:
            if "[" in line:
                break  # modules come last
            addr, kind, name = line.split()
            if kind in "tTwW" and begin <= (at := int(addr, 16)) < end:
                found.append((at, name))
    return found


def make_vmlinux(path, text, notes, symbols):
    """Of .text, the notes (None: without) and symbols, in one segment."""
    addr, code = text
    strings, table = bytearray(b"\0"), bytearray(24)
    for at, name in symbols:
        table += struct.pack("<IBBHQQ", len(strings), 0x12, 0, 1, at, 0)  # STB_GLOBAL, STT_FUNC
        strings += name.encode() + b"\0"
    names = b"\0.text\0.notes\0.symtab\0.strtab\0.shstrtab\0"
    parts = [(".text", SHT_PROGBITS, 6, addr, code, 0, 0), (".notes", SHT_NOTE, 2, 0, notes or b"", 0, 0),
             (".symtab", SHT_SYMTAB, 0, 0, bytes(table), 4, 24), (".strtab", SHT_STRTAB, 0, 0, bytes(strings), 0, 0),
             (".shstrtab", SHT_STRTAB, 0, 0, names, 0, 0)]
    headers, body, start = bytearray(64), bytearray(), 4096
    for name, kind, flags, at, data, link, entry in parts:
        body += bytes(-len(body) % 16)
        headers += struct.pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0"), kind, flags, at, start + len(body),
                               len(data), link, 1 if kind == SHT_SYMTAB else 0, 4, entry)
        body += data
    with open(path, "wb") as f:
        f.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, addr, 64, start + len(body), 0, 64, 56, 1,
                            64, len(parts) + 1, len(parts)))
        f.write(struct.pack("<IIQQQQQQ", 1, 5, start, addr, addr, len(code), len(code), 4096))
        f.write(bytes(start - 64 - 56))
        f.write(body)
        f.write(headers)


# --- the guest -----------------------------------------------------------------------------------
def moved_guest():
    """(the guest, how far its kernel is from where it was linked). Of some 500 places one is none: then once more."""
    linked = next(at for at, name in linked_symbols(0, 1 << 64) if name == "_stext")
    for again in (True, False):
        guest, = lab_guests.start(lab_guests.MOVED)
        guest.ready().rest()
        slide = guest.address("_stext") - linked
        if slide or not again:
            return guest, slide
        guest.end()
    raise AssertionError


def keep(name, records):
    with open(os.path.join(RESULTS, f"kaslr-{name}.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(r) + "\n" for r in records)


def kernel_rows(records, pid):
    return [x for r in records for vm in n.vms_of(r, pid) for x in vm["symbols"] if x["domain"] == "guest-kernel"]


def code_rows(records, pid):
    return [x for r in records for vm in n.vms_of(r, pid) for x in vm["exit_code"] if x["domain"] == "guest-kernel"]


def idle_until_named(top, guest, rows, what):
    """
    What tells the slide: that the guest halts, writes its timer's MSR and talks to its console, of which only some
    exits are looked at. One that is busy makes exits at one or two places for as long as it is, which fit by chance
    as well. The record, or a failed test and None.
    """
    def named(r):
        guest.rest()
        return any(not x["reason"] for x in rows([r], guest.pid))
    return top.until(named, 120, what)


def hot_symbols(guest, vmlinux):
    """The slide is found from the guest's own exits, and samples have the names of its work."""
    top = n.Kvmtop("--max-overhead", "0", "--guestvmlinux", f"{guest.name}={vmlinux}", delay=1)
    if idle_until_named(top, guest, kernel_rows, "the slide is found, without kallsyms"):
        n.say(f"the slide is found in record {len(top.records)}")
    guest.load("syscall")
    top.settle()
    first = len(top.records)
    top.skip(4).end()
    guest.rest()
    keep("hot", top.records)
    hot = collections.Counter()
    for x in kernel_rows(top.records[first:], guest.pid):
        hot[x["symbol"]] += x["samples"]
    work = [s for s, _ in hot.most_common() if not re.fullmatch(lab_guests.TIMER, s)]
    n.ok(work and re.search(HOT, work[0]), "the hottest symbol is of the guest's work", hot.most_common(5))
    unnamed = sum(v for s, v in hot.items() if s.startswith("["))
    n.ok(unnamed < 0.03 * hot.total(), "nearly all of the guest's kernel has names", (unnamed, hot.total()))


def exits_by_code(guest, vmlinux):
    """Exits tell the name of the one function that makes them: a slide that is wrong would tell another."""
    top = n.Kvmtop("--max-overhead", "0", "--table", "exit-code", "--guestvmlinux", vmlinux, delay=1)
    idle_until_named(top, guest, code_rows, "exits have names as well")
    guest.load("port")
    top.settle()
    first = len(top.records)
    top.skip(4).end()
    guest.rest()
    keep("code", top.records)
    for key, symbol in (("io", "write_port"), ("msr", "native_write_msr")):
        of = collections.Counter()
        for x in code_rows(top.records[first:], guest.pid):
            if x["key"] == key:
                of[x["symbol"]] += x["count"]
        n.ok(of and of.most_common(1)[0][0] == symbol and of[symbol] > 0.8 * of.total(),
             f"{key} exits are made by {symbol}", of.most_common(4))


def refused(guest, vmlinux):
    """Of another kernel: no place fits, so nothing is named, and it is said."""
    top = n.Kvmtop("--max-overhead", "0", "--guestvmlinux", f"{guest.name}={vmlinux}", delay=1)
    guest.load("syscall")
    top.until(lambda r: kernel_rows([r], guest.pid), 30, "the guest is sampled")
    top.skip(6).end()
    guest.rest()
    keep("refused", top.records)
    rows = kernel_rows(top.records, guest.pid)
    n.same({x["symbol"] for x in rows if not x["symbol"].startswith("[") and not x["other"]}, set(),
           "a vmlinux of another kernel: nothing is named by it")
    why = {x["reason"] for x in rows[-3:]}
    n.ok(why and all(w and "slide" in w for w in why), "and the reason is told", why)


def main():
    why = lab_guests.missing()
    if why:
        n.skip("a guest with KASLR", why)
        n.done()
    text, notes = section_of(os.environ["LAB_KERNEL"], ".text"), section_of(os.environ["LAB_KERNEL"], ".notes")[1]
    symbols = linked_symbols(text[0], text[0] + len(text[1]))
    right, wrong = (os.path.join(TMP, x) for x in ("vmlinux", "vmlinux-other"))
    make_vmlinux(right, text, notes, symbols)
    # the same names, the code behind them moved: as of another build of it
    make_vmlinux(wrong, (text[0], bytes(24) + text[1][:-24]), None, symbols)
    n.say(f"vmlinux of {len(symbols)} symbols")
    guest, slide = moved_guest()
    n.say(f"the guest's kernel was moved by {slide:#x}")
    n.ok(slide and slide % STEP == 0, "KASLR moved the guest's kernel", hex(slide))
    hot_symbols(guest, right)
    exits_by_code(guest, right)
    refused(guest, wrong)
    n.done()


main()
