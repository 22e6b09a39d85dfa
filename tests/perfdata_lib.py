# SPDX-License-Identifier: GPL-2.0-only
"""Real perf.data files taken apart and put together again, for tests that need recordings nobody made:
with losses, VMX reasons, a million events. What is not changed stays as perf wrote it."""

import lzma
import re
import struct

LOST, SAMPLE, LOST_SAMPLES, ROUND = 2, 9, 13, 68
FEATURE_TRACING, FEATURES_AT = 1, 72
IP, TID, TIME, ADDR, ID, STREAM, CPU, PERIOD, RAW, IDENTIFIER = (
    1, 2, 4, 8, 64, 512, 128, 256, 1024, 1 << 16)


class Recording:
    def __init__(self, path):
        opener = lzma.open if str(path).endswith(".xz") else open
        with opener(path, "rb") as f:
            self.bytes = f.read()
        size, self.attr_size, attrs, attrs_size, data, data_size = struct.unpack_from("<6Q", self.bytes, 8)
        assert size >= 104
        self.head = bytearray(self.bytes[:data])
        self.tail = bytearray(self.bytes[data + data_size:])
        self.data, self.old_end = data, data + data_size
        self.attrs = [self.bytes[attrs + i:attrs + i + self.attr_size]
                      for i in range(0, attrs_size, self.attr_size)]
        self.sample_type = struct.unpack_from("<Q", self.attrs[0], 24)[0]
        self.records = list(split(self.bytes[data:data + data_size]))
        self.fields = formats(bytes(self.tail))

    # --- fields of a sample -------------------------------------------------------------------
    def offset(self, bit):
        """Where a field of a sample stands in its record."""
        at = 8
        for b in (IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM, CPU, PERIOD):
            if b == bit:
                return at
            at += 8 * bool(self.sample_type & b)
        return at  # RAW: its length; these recordings have neither counters nor call chains

    def raw(self, record):
        return self.offset(RAW) + 4

    def event(self, record):
        """The name of a sample's tracepoint."""
        if struct.unpack_from("<I", record)[0] != SAMPLE:
            return None
        kind = struct.unpack_from("<H", record, self.raw(record))[0]
        return next((n for n, f in self.fields.items() if f["ID"] == kind), None)

    def get(self, record, event, field):
        at, size = self.fields[event][field]
        return int.from_bytes(record[self.raw(record) + at:self.raw(record) + at + size], "little")

    def set(self, record, event, field, value):
        at, size = self.fields[event][field]
        at += self.raw(record)
        out = bytearray(record)
        out[at:at + size] = value.to_bytes(size, "little")
        return bytes(out)

    def tid(self, record):
        return struct.unpack_from("<I", record, self.offset(TID) + 4)[0]

    def time(self, record):
        return struct.unpack_from("<Q", record, self.offset(TIME))[0]

    def later(self, record, ns):
        """The same sample or other record, ns later (perf's own records have no time)."""
        kind, = struct.unpack_from("<I", record)
        if kind >= 64:
            return record
        out = bytearray(record)
        at = self.offset(TIME)
        if kind != SAMPLE:
            at = len(out) - 8 * sum(bool(self.sample_type & b) for b in (TIME, ID, STREAM, CPU, IDENTIFIER))
        time, = struct.unpack_from("<Q", out, at)
        if time:
            struct.pack_into("<Q", out, at, time + ns)
        return bytes(out)

    def trailer(self, like):
        """What stands at the end of other records, of the time, CPU and event of a sample."""
        return b"".join(like[self.offset(b):self.offset(b) + 8] for b in (TID, TIME, ID, STREAM, CPU, IDENTIFIER)
                        if self.sample_type & b)

    def lost(self, like, n):
        """A LOST record of n events."""
        ident = self.offset(IDENTIFIER if self.sample_type & IDENTIFIER else ID)
        body = like[ident:ident + 8] + struct.pack("<Q", n) + self.trailer(like)
        return struct.pack("<IHH", LOST, 0, 8 + len(body)) + body

    def lost_samples(self, like, n):
        """How many events the kernel lost all in all, which perf 6.1 adds at the end."""
        body = struct.pack("<Q", n) + self.trailer(like)
        return struct.pack("<IHH", LOST_SAMPLES, 0, 8 + len(body)) + body

    # --- as a file ----------------------------------------------------------------------------
    def save(self, path, records=None, tail=None):
        """Writes it with other records; `records` may be an iterator of any length."""
        with open(path, "wb") as f:
            f.write(self.head)
            for r in self.records if records is None else records:
                f.write(r)
            end = f.tell()
            f.write(self.moved_tail(bytes(self.tail if tail is None else tail), end - self.old_end))
            f.seek(48)
            f.write(struct.pack("<Q", end - self.data))

    def features(self):
        """number: content, of all that the end of the file has."""
        bits = int.from_bytes(self.head[FEATURES_AT:FEATURES_AT + 32], "little")
        found = {}
        for i, bit in enumerate(b for b in range(256) if bits >> b & 1):
            offset, size = struct.unpack_from("<2Q", self.tail, 16 * i)
            found[bit] = bytes(self.tail[offset - self.old_end:offset - self.old_end + size])
        return found

    def save_pipe(self, path, records=None):
        """The same in pipe mode, as perf record -o - writes it: what the header has as records first."""
        features = self.features()
        tracing = features.pop(FEATURE_TRACING)
        tracing += bytes(-len(tracing) % 8)
        with open(path, "wb") as f:
            f.write(b"PERFILE2" + struct.pack("<Q", 16))
            for a in self.attrs:
                offset, size = struct.unpack_from("<2Q", a, len(a) - 16)
                body = a[:-16] + self.bytes[offset:offset + size]
                f.write(struct.pack("<IHH", 64, 0, 8 + len(body)) + body)
            for bit, content in features.items():
                body = struct.pack("<Q", bit) + content + bytes(-len(content) % 8)
                if len(body) < 65000:
                    f.write(struct.pack("<IHH", 80, 0, 8 + len(body)) + body)
            f.write(struct.pack("<IHHII", 66, 0, 16, len(tracing), 0) + tracing)
            for r in self.records if records is None else records:
                f.write(r)

    def moved_tail(self, tail, by):
        out = bytearray(tail)
        bits = int.from_bytes(self.head[FEATURES_AT:FEATURES_AT + 32], "little")
        for i in range(bin(bits).count("1")):
            offset, = struct.unpack_from("<Q", out, 16 * i)
            struct.pack_into("<Q", out, 16 * i, offset + by)
        return out


def split(data):
    at = 0
    while at < len(data):
        size = struct.unpack_from("<H", data, at + 6)[0]
        yield data[at:at + size]
        at += size


def formats(tail):
    """Offsets and sizes of the fields of each format text that stands in the file's end."""
    found = {}
    for text in re.findall(rb"name: kvm_\w+\nID: \d+\nformat:\n(?:.*\n)*?\nprint fmt", tail):
        text = text.decode()
        fields = {m[1]: (int(m[2]), int(m[3])) for m in
                  re.finditer(r"field:[^;]*?(\w+);\s*offset:(\d+);\s*size:(\d+);", text)}
        fields["ID"] = int(re.search(r"ID: (\d+)", text)[1])
        found[re.match(r"name: (\w+)", text)[1]] = fields
    return found


def repeat(rec, events):
    """The recording's records again and again, each time later, until there are that many samples: what
    a longer run would have given, in rounds as long as a busy host's."""
    samples = [r for r in rec.records if struct.unpack_from("<I", r)[0] == SAMPLE]
    others = [r for r in rec.records if struct.unpack_from("<I", r)[0] not in (SAMPLE, ROUND)]
    end = struct.pack("<IHH", ROUND, 0, 8)
    span = max(map(rec.time, samples)) - min(map(rec.time, samples)) + 1000
    cpus = {}
    for r in samples:
        cpus.setdefault(struct.unpack_from("<I", r, rec.offset(CPU))[0], []).append(r)
    yield from others
    for i in range(-(-events // len(samples))):
        for of_cpu in cpus.values():
            yield b"".join(rec.later(r, i * span) for r in sorted(of_cpu, key=rec.time))
        yield end
