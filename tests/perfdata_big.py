# SPDX-License-Identifier: GPL-2.0-only
"""A perf.data file as a machine of the other byte order would have written it: each number of a real little-endian one turned
round as the format has it (tools/perf/Documentation/perf.data-file-format.txt, <linux/perf_event.h>), text left alone, what
tracepoints recorded by their formats. What a recording's own kind of machine is stays what it was, so that all that is read
out of the twin must be what is read out of the original. It knows what stands in the recordings of tests/data/perf and
raises an error at anything else; BPF programs, which are C structs of their own, are left out."""

import ctypes
import ctypes.util
import functools
import re
import struct

SAMPLE, MMAP2, COMPRESSED, TRACING, FEATURE = 9, 10, 81, 66, 80
MMAP2_BUILD_ID = 1 << 14
ID, TID, TIME, STREAM, CPU, IDENTIFIER = 64, 2, 4, 512, 128, 1 << 16
# What a sample has in this order, before its raw data; the trailer of other records has some of them.
IN_SAMPLE = ((IDENTIFIER, "Q"), (1, "Q"), (TID, "II"), (TIME, "Q"), (8, "Q"), (ID, "Q"), (STREAM, "Q"), (CPU, "II"), (256, "Q"))
IN_TRAILER = ((TID, "II"), (TIME, "Q"), (ID, "Q"), (STREAM, "Q"), (CPU, "II"), (IDENTIFIER, "Q"))
RAW, CALLCHAIN, PERIOD = 1024, 32, 256
KNOWN = RAW | CALLCHAIN | sum(bit for bit, _ in IN_SAMPLE)


def flags(value):
    """The bits of an attribute: the first of them is the highest of the first byte; precise_ip has two."""
    out, at = 0, 0
    for width in [1] * 15 + [2] + [1] * 47:
        out |= (value >> at & ((1 << width) - 1)) << (64 - at - width)
        at += width
    return struct.pack(">Q", out)


class Bytes:
    """Reads little-endian from the front, and writes the same big-endian."""

    def __init__(self, data):
        self.data, self.at, self.out = data, 0, []

    def num(self, fmt):
        v = struct.unpack_from("<" + fmt, self.data, self.at)
        self.out.append(struct.pack(">" + fmt, *v))
        self.at += struct.calcsize("<" + fmt)
        return v[0]

    def raw(self, n):
        got = self.data[self.at:self.at + n]
        assert len(got) == n
        self.out.append(got)
        self.at += n
        return got

    def text(self):  # with its length in front, as perf's header has it
        return self.raw(self.num("I"))

    def string(self):
        return self.raw(self.data.index(b"\0", self.at) + 1 - self.at)

    def rest(self, fmt=""):
        while fmt and self.left() >= struct.calcsize("<" + fmt):
            self.num(fmt)
        self.raw(self.left())
        return self.done()

    def left(self):
        return len(self.data) - self.at

    def done(self):
        out = b"".join(self.out)
        assert self.at == len(self.data) == len(out), (self.at, len(self.data), len(out))
        return out


def swap(fmt, data):
    b = Bytes(data)
    b.num(fmt)
    return b.rest()


def attr(data):
    size, = struct.unpack_from("<I", data, 4)
    b = Bytes(data[:size])
    b.num("IIQQQQ")
    b.out.append(flags(struct.unpack_from("<Q", data, 40)[0]))
    b.at += 8
    b.num("IIQQQQIiQIHHII")
    return b.rest("Q")


# ---- what tracepoints record ----

def formats(tracing):
    """number: [(offset, size, how many of them), …] of what is more than a byte, of the tracing data's texts."""
    found = {}
    for text in re.findall(rb"name: \S+\nID: \d+\nformat:\n(?:.*\n)*?\nprint fmt", tracing):
        text = text.decode()
        fields = []
        for m in re.finditer(r"field:([^;]*);\s*offset:(\d+);\s*size:(\d+);", text):
            many = re.search(r"\[(\d+)\]", m[1])
            n = 1 if "__data_loc" in m[1] or not many else int(many[1])
            fields.append((int(m[2]), int(m[3]) // n, n))
        found[int(re.search(r"ID: (\d+)", text)[1])] = fields
    return found


def tracing_data(data):
    b = Bytes(data)
    assert b.raw(10) == b"\x17\x08\x44tracing"
    b.string()
    assert b.data[b.at] == 0
    b.out.append(b"\1")
    b.at += 1
    b.raw(1)
    b.num("I")
    for _ in range(2):
        b.string()
        b.raw(b.num("Q"))
    for _ in range(b.num("I")):
        b.raw(b.num("Q"))
    for _ in range(b.num("I")):
        b.string()
        for _ in range(b.num("I")):
            b.raw(b.num("Q"))
    for fmt in "IIQ":  # kallsyms, printk formats, command lines: seeds of the fuzzer have none
        if b.left():
            b.raw(b.num(fmt))
    return b.rest()


# ---- the header's features ----

def event_desc(b):
    n, size = b.num("I"), b.num("I")
    for _ in range(n):
        b.out.append(attr(b.data[b.at:b.at + size]))
        b.at += size
        ids = b.num("I")
        b.text()
        for _ in range(ids):
            b.num("Q")


def cpu_topology(b, cpus):
    for _ in range(2):
        for _ in range(b.num("I")):
            b.text()
    for _ in range(2 * cpus):
        b.num("I")
    if b.left():
        for _ in range(b.num("I")):
            b.text()
        for _ in range(cpus):
            b.num("I")


def numa(b):
    for _ in range(b.num("I")):
        b.num("IQQ")
        b.text()


def pmus(b):
    for _ in range(b.num("I")):
        b.num("I")
        b.text()


def caches(b):
    b.num("I")
    for _ in range(b.num("I")):
        b.num("IIII")
        for _ in range(3):
            b.text()


def strings(b):
    for _ in range(b.num("I")):
        b.text()


def pmu_caps(b):
    for _ in range(b.num("I")):
        for _ in range(2 * b.num("I") + 1):
            b.text()


BPF = (25, 26)
PLAIN = {7: "I", 10: "Q", 21: "Q", 22: "Q", 27: "I"}
OF = {11: strings, 12: event_desc, 14: numa, 16: pmus, 20: caches, 31: pmu_caps}


def feature(number, data, cpus):
    b = Bytes(data)
    if number == 1:
        return tracing_data(data)
    if number in BPF:
        return bytes(4)
    if number in (3, 4, 5, 6, 8, 9):
        b.text()
        return b.rest()
    if number in PLAIN:
        return b.rest(PLAIN[number])
    if number == 13:
        cpu_topology(b, cpus)
    elif number == 32:  # numbers alone: the test below would show if there was text
        return b.rest("I")
    else:
        OF[number](b)
    return b.rest()


# ---- records ----

def cpu_map(b):
    kind = b.num("H")
    if kind == 0:
        return b.rest("H")
    if kind == 1:
        b.num("HH")
        b.raw(-b.at % 8)
        return b.rest("Q")
    b.raw(2)
    b.num("HH")
    return b.rest()


def event_update(b):
    kind = b.num("Q")
    b.num("Q")
    if kind == 3:
        b.out.append(cpu_map(Bytes(b.data[b.at:])))
        b.at = len(b.data)
        return b.done()
    return b.rest("Q" if kind == 1 else "")


def thread_map(b):
    for _ in range(b.num("Q")):
        b.num("Q")
        b.raw(16)
    return b.rest()


# What stands in front of the text or the end, by kind.
FRONT = {1: "IIQQQ", 2: "QQ", 3: "II", 4: "IIIIQ", 7: "IIIIQ", 13: "Q"}


class Records:
    def __init__(self, types, tracing):
        """types: id: sample_type, of which all have the same at a record's end."""
        self.types = types
        self.type = next(iter(types.values()))
        for t in types.values():
            assert not t & ~KNOWN and t & ~PERIOD == self.type & ~PERIOD, types
        assert self.type & IDENTIFIER or len(set(types.values())) == 1
        self.formats = formats(tracing)
        self.cpus = 0

    def raw_data(self, data):
        out = bytearray(data)
        for at, size, n in self.formats[struct.unpack_from("<H", data)[0]]:
            for i in range(at, at + size * n, size):
                out[i:i + size] = out[i:i + size][::-1]
        return bytes(out)

    def sample(self, b):
        kind = self.types[struct.unpack_from("<Q", b.data)[0]] if self.type & IDENTIFIER else self.type
        for bit, fmt in IN_SAMPLE:
            if kind & bit:
                b.num(fmt)
        if self.type & CALLCHAIN:
            for _ in range(b.num("Q")):
                b.num("Q")
        if self.type & RAW:
            n = b.num("I")
            b.out.append(self.raw_data(b.data[b.at:b.at + n]))
            b.at += n
        return b.done()

    def of_kernel(self, kind, misc, data):
        end = len(data) - 8 * sum(bool(self.type & bit) for bit, _ in IN_TRAILER)
        b = Bytes(data[:end])
        if kind == MMAP2:
            b.num("IIQQQ")
            if misc & MMAP2_BUILD_ID:
                b.raw(24)
            else:
                b.num("IIQQ")
            b.num("II")
        else:
            b.num(FRONT[kind])
        trailer = Bytes(data[end:])
        out = b.rest()
        for bit, fmt in IN_TRAILER:
            if self.type & bit:
                trailer.num(fmt)
        return out + trailer.done()

    def body(self, kind, misc, data):
        b = Bytes(data)
        if kind == SAMPLE:
            return self.sample(b)
        if kind < 64:
            return self.of_kernel(kind, misc, data)
        if kind == 64:
            size, = struct.unpack_from("<I", data, 4)
            return attr(data[:size]) + Bytes(data[size:]).rest("Q")
        if kind == FEATURE:
            number = b.num("Q")
            if number == 7:
                self.cpus, = struct.unpack_from("<I", data, 8)
            if number in BPF:
                return struct.pack(">QQ", number, 0)
            out = padded_feature(number, data[8:], self.cpus)
            return b.out[0] + out
        if kind == TRACING:
            return b.rest("I")
        special = {73: thread_map, 74: cpu_map, 78: event_update}
        if kind in special:
            return special[kind](b)
        if kind in (68, 82):
            return data
        assert kind in (69, 79), kind
        return b.rest("Q")

    def one(self, record):
        kind, misc, _ = struct.unpack_from("<IHH", record)
        body = self.body(kind, misc, record[8:])
        return struct.pack(">IHH", kind, misc, 8 + len(body)) + body

    def all(self, data):
        """Records one after the other; compressed ones as one stream, which is cut anew."""
        out, packed, at = [], b"", 0
        while at < len(data):
            kind, _, size = struct.unpack_from("<IHH", data, at)
            record = data[at:at + size]
            at += size
            if kind == COMPRESSED:
                packed += record[8:]
                continue
            out.append(self.one(record))
            if kind == TRACING:
                n = struct.unpack_from("<I", record, 8)[0] + 7 & ~7
                text = data[at:at + n].rstrip(b"\0")
                out.append(padded_feature(1, data[at:at + n], 0))
                assert text
                at += n
        if packed:
            out += compressed(self.all(unpacked(packed)))
        return b"".join(out)


def padded_feature(number, data, cpus):
    """In a record zeros may follow, which are no part of it."""
    for pad in range(8):
        if pad and data[-pad]:
            break
        try:
            return feature(number, data[:len(data) - pad], cpus) + bytes(pad)
        except (AssertionError, struct.error, ValueError):
            continue
    return feature(number, data, cpus)


# ---- compressed ----

@functools.cache
def zstd():
    lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    for name in ("ZSTD_createDStream", "ZSTD_createCStream"):
        getattr(lib, name).restype = ctypes.c_void_p
    for name in ("ZSTD_compress", "ZSTD_decompressStream", "ZSTD_compressBound"):
        getattr(lib, name).restype = ctypes.c_size_t
    return lib


class Buffer(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


def unpacked(data):
    """Of a stream that perf did not end."""
    lib, room = zstd(), ctypes.create_string_buffer(64 << 20)
    source = ctypes.create_string_buffer(data, len(data))
    src = Buffer(ctypes.addressof(source), len(data), 0)
    dst = Buffer(ctypes.addressof(room), len(room), 0)
    stream = ctypes.c_void_p(lib.ZSTD_createDStream())
    while src.pos < src.size:
        assert lib.ZSTD_decompressStream(stream, ctypes.byref(dst), ctypes.byref(src)) < 1 << 32
    lib.ZSTD_freeDStream(stream)
    return room.raw[:dst.pos]


def compressed(data):
    lib = zstd()
    room = ctypes.create_string_buffer(lib.ZSTD_compressBound(ctypes.c_size_t(len(data))))
    n = lib.ZSTD_compress(room, ctypes.c_size_t(len(room)), data, ctypes.c_size_t(len(data)), 1)
    for at in range(0, n, 3000):  # so that records begin in one piece and end in the next
        piece = room.raw[at:min(at + 3000, n)]
        yield struct.pack(">IHH", COMPRESSED, 0, 8 + len(piece)) + piece


# ---- files ----

def ids_of(a, ids):
    return {i: struct.unpack_from("<Q", a, 24)[0] for i, in struct.iter_unpack("<Q", ids)}


def pipe(data):
    at, types, tracing = 16, {}, b""
    while at < len(data):
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if kind == 64:
            end, = struct.unpack_from("<I", data, at + 8 + 4)
            types.update(ids_of(data[at + 8:at + 8 + end], data[at + 8 + end:at + size]))
        at += size
        if kind == TRACING:
            n = struct.unpack_from("<I", data, at - size + 8)[0] + 7 & ~7
            tracing = data[at:at + n]
            at += n
    return b"2ELIFREP" + struct.pack(">Q", 16) + Records(types, tracing).all(data[16:])


def twin(data):
    """The bytes of a whole recording, of perf's file or pipe mode."""
    assert data[:8] == b"PERFILE2"
    size, attr_size, attrs, attrs_size, start, length = struct.unpack_from("<6Q", data, 8)
    if size == 16:
        return pipe(data)
    head = bytearray(swap("13Q", data[:start]))
    head[:8] = b"2ELIFREP"
    types = {}
    for at in range(attrs, attrs + attrs_size, attr_size):
        a = data[at:at + attr_size]
        head[at:at + attr_size] = attr(a[:-16]) + swap("QQ", a[-16:])
        ids, n = struct.unpack("<QQ", a[-16:])
        head[ids:ids + n] = Bytes(data[ids:ids + n]).rest("Q")
        types.update(ids_of(a, data[ids:ids + n]))
    bits = [b for b in range(256) if int.from_bytes(data[72:104], "little") >> b & 1]
    spans = {b: struct.unpack_from("<QQ", data, start + length + 16 * i) for i, b in enumerate(bits)}
    content = {b: data[o:o + n] for b, (o, n) in spans.items()}
    cpus = struct.unpack_from("<I", content.get(7, bytes(4)))[0]
    records = Records(types, content.get(1, b"")).all(data[start:start + length])
    struct.pack_into(">Q", head, 48, len(records))
    out, table, at = [], [], start + len(records) + 16 * len(bits)
    for b in bits:
        out.append(feature(b, content[b], cpus))
        table.append(struct.pack(">QQ", at, len(out[-1])))
        at += len(out[-1])
    return b"".join([bytes(head), records, *table, *out])
