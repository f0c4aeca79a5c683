#!/usr/bin/env python3
"""Looks in GPU code for what ptxas is known to compile wrong, which no test without a GPU can see.

check_sass.py FILE...    objects or programs of a build with --no-compress, or cubins; exits 1
                         where an instruction below stands, or where there is no sm_90 code at all

ptxas 13.0 makes of max(min(x, c), 0) == c, for sm_90, one VIMNMX.RELU whose predicate it takes for
the comparison. An H100 sets that predicate wherever x is not negative, so that 0 and c are alike.
"""
import struct
import sys

MAGIC, EM_CUDA, SM_90 = b"\x7fELF\x02\x01", 190, 90
VIMNMX = {0x248, 0x848, 0xa48, 0xc48}  # with a register, a number, a constant, a uniform register
RELU, NONE = 1 << 12, 7  # of the upper 64 bits; the predicate that is none


def is_wrong(low, high):
    return (low & 0xfff in VIMNMX and high & RELU
            and ((high >> 17) & 7, (high >> 20) & 7) != (NONE, NONE))


def cubins(data):
    """Where ELF files for GPUs begin."""
    at = data.find(MAGIC)
    while at >= 0:
        if data[at + 18:at + 20] == struct.pack("<H", EM_CUDA):
            yield at
        at = data.find(MAGIC, at + 1)


def architecture(data, at):
    """90 of sm_90. The flags' second byte has it since CUDA 13, the first one before."""
    flags = struct.unpack_from("<I", data, at + 48)[0]
    return flags >> 8 & 0xff if data[at + 8] >= 8 else flags & 0xff


def kernels(data, at):
    """(name, first byte, bytes) of each of a cubin's sections of code."""
    table, = struct.unpack_from("<Q", data, at + 40)
    size, count, names = struct.unpack_from("<HHH", data, at + 58)
    sections = [struct.unpack_from("<IIQQQQ", data, at + table + i * size) for i in range(count)]
    text = at + sections[names][4]
    for name, kind, _, _, offset, length in sections:
        start = text + name
        label = data[start:data.index(b"\0", start)].decode()
        if kind == 1 and label.startswith(".text."):
            yield label[len(".text."):], at + offset, length


def main():
    found = instructions = 0
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            data = file.read()
        for at in cubins(data):
            if architecture(data, at) != SM_90:
                continue
            for kernel, start, length in kernels(data, at):
                for offset in range(start, start + length, 16):
                    instructions += 1
                    if is_wrong(*struct.unpack_from("<QQ", data, offset)):
                        found += 1
                        print(f"{path}: {kernel}: VIMNMX.RELU with a predicate at {offset - start:#x}")
    print(f"check_sass: {instructions} instructions for sm_90, {found} that an H100 does otherwise")
    if not instructions:
        print("check_sass: no code for sm_90 found; was it built with --no-compress?")
    return 1 if found or not instructions else 0


if __name__ == "__main__":
    sys.exit(main())
