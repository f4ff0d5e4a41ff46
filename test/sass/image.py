"""image.py -- CUDA ELF images: those in the bytes of a file, their kernels and sections, and one image made of kernels
of several.
"""
import ctypes
import struct

ELF_CUDA = 190  # e_machine
HEADER_BYTES = 64
SECTION_STRINGS, SECTION_SYMBOLS, SECTION_NOBITS = 3, 2, 8  # sh_type; the last takes no room in the file
SECTION = "<IIQQQQIIQQ"  # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, sh_info, sh_addralign, ...
SYMBOL = "<IBBHQQ"  # st_name, st_info, st_other, st_shndx, st_value, st_size
SIZED = 4  # the format of an attribute that has a size and so many bytes
BRANCH_TARGETS = 0x34  # of .nv.info, the attribute that names the targets of indirect branches
SYMBOL_BYTES, GLOBAL_FUNCTION = 24, 0x12  # an entry, and st_info of a kernel
FATBIN_MAGIC = struct.pack("<IH", 0xBA55ED50, 1)
FATBIN_CUBIN, FATBIN_ZSTD = 2, 0x8000


def target(cubin):
    """As "sm_90": what it is compiled for, without what stands behind the number."""
    return f"sm_{struct.unpack_from('<I', cubin, 0x30)[0] >> 8 & 0xFF}"


def cubins(data):
    """The CUDA ELF images in the bytes of a file, which is such an image or holds fat binaries. The layout of those is
    drawn in test/sim/shim/fatbin.h."""
    if data[:4] == b"\x7fELF" and struct.unpack_from("<H", data, 18)[0] == ELF_CUDA:
        yield data
        return
    container = data.find(FATBIN_MAGIC)
    while container >= 0:
        header, size = struct.unpack_from("<HQ", data, container + 6)
        at = container + header
        end = at + size
        while at < end:
            kind, _, header, padded, compressed = struct.unpack_from("<HHIQI", data, at)
            flags, unpacked = struct.unpack_from("<Q", data, at + 40)[0], struct.unpack_from("<Q", data, at + 56)[0]
            stored = data[at + header:at + header + (compressed or padded)]
            if kind == FATBIN_CUBIN: yield unpack(stored, unpacked, flags) if compressed else stored
            at += header + padded
        container = data.find(FATBIN_MAGIC, end)


def unpack(stored, size, flags):
    out = ctypes.create_string_buffer(size)
    if flags & FATBIN_ZSTD:
        library = ctypes.CDLL("libzstd.so.1")
        library.ZSTD_decompress.restype = ctypes.c_size_t
        made = library.ZSTD_decompress(out, ctypes.c_size_t(size), stored, ctypes.c_size_t(len(stored)))
    else:
        made = ctypes.CDLL("liblz4.so.1").LZ4_decompress_safe(stored, out, len(stored), size)
    if made != size: raise RuntimeError("a fat binary's entry does not unpack")
    return out.raw


def string(strings, at):
    return strings[at:strings.index(b"\0", at)].decode()


def headers(cubin):
    """The headers of the sections of an image, as (name, fields)."""
    start = struct.unpack_from("<Q", cubin, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    found = [struct.unpack_from(SECTION, cubin, start + i * size) for i in range(count)]
    strings = cubin[found[names][4]:found[names][4] + found[names][5]]
    return [(string(strings, h[0]), h) for h in found]


def sections(cubin):
    """The sections of an image by name: their bytes."""
    return {name: cubin[h[4]:h[4] + h[5]] for name, h in headers(cubin) if h[1] != SECTION_NOBITS}


def symbols(cubin):
    """The table of symbols, as (name, fields)."""
    of = sections(cubin)
    return [(string(of[".strtab"], x[0]), x) for x in struct.iter_unpack(SYMBOL, of[".symtab"])]


def kernels(cubin):
    """The names of the kernels of an image."""
    return [name for name, x in symbols(cubin) if x[1] == GLOBAL_FUNCTION]


def branch_targets(attributes):
    """Of the attributes of a kernel those that name targets of branches. Others name symbols by their numbers."""
    at, kept = 0, b""
    while at < len(attributes):
        sized, kind, size = struct.unpack_from("<BBH", attributes, at)
        end = at + 4 + (size if sized == SIZED else 0)
        if kind == BRANCH_TARGETS: kept += attributes[at:end]
        at = end
    return kept


class Joined:
    """An image of kernels of several, with what a disassembler looks at: code, the attributes that name the targets of
    indirect branches, and the symbols of functions."""

    def __init__(self):
        self.strings, self.sections, self.symbols = bytearray(), [], []
        self.section("", 0, 0, 0, 0, 0, 0, b"")
        self.section(".strtab", SECTION_STRINGS, 0, 0, 0, 1, 0, b"")
        self.section(".symtab", SECTION_SYMBOLS, 0, 1, 0, 8, SYMBOL_BYTES, b"")

    def name(self, text):
        self.strings += text.encode() + b"\0"
        return len(self.strings) - len(text.encode()) - 1

    def section(self, name, kind, flags, link, info, align, entry, content):
        self.sections.append([self.name(name), kind, flags, link, info, align, entry, content])
        return len(self.sections) - 1

    def take(self, cubin, names):
        """Adds these kernels of an image."""
        known, table = headers(cubin), symbols(cubin)
        place = {name: i for i, (name, _) in enumerate(known)}
        for kernel in names:
            code = len(self.sections)
            for prefix in (".text.", ".nv.info."):
                _, kind, flags, _, at, size, _, info, align, entry = known[place[prefix + kernel]][1]
                content = cubin[at:at + size]
                # A section of code names its symbol; the byte above that has the registers of the kernel.
                if prefix == ".text.": info &= 0xFF000000
                else: info, content = code, branch_targets(content)
                self.section(prefix + kernel, kind, flags, 2, info, align, entry, content)
            for name, (_, info, other, section, value, size) in table:
                if section == place[".text." + kernel]:
                    self.symbols.append((self.name(name), info, other, code, value, size))

    def image(self, header):
        """The bytes of it, with what the header of another says of the target."""
        ordered = [(0,) * 6] + sorted(self.symbols, key=lambda x: x[1] >> 4 != 0)  # local symbols come first
        for i, x in enumerate(ordered):
            if x[1] == GLOBAL_FUNCTION: self.sections[x[3]][4] |= i
        self.sections[1][7] = bytes(self.strings)
        self.sections[2][4] = sum(x[1] >> 4 == 0 for x in ordered)
        self.sections[2][7] = b"".join(struct.pack(SYMBOL, *x) for x in ordered)
        body, table = bytearray(header[:HEADER_BYTES]), b""
        for name, kind, flags, link, info, align, entry, content in self.sections:
            body += bytes(-len(body) % (align or 1))
            at = len(body) if kind else 0
            table += struct.pack(SECTION, name, kind, flags, 0, at, len(content), link, info, align, entry)
            body += content
        body += bytes(-len(body) % 8)
        struct.pack_into("<QQ", body, 0x20, 0, len(body))  # no program headers; the sections' stand at the end
        struct.pack_into("<HHHHH", body, 0x36, 0, 0, HEADER_BYTES, len(self.sections), 1)
        return bytes(body + table)


def joined(parts):
    """One image of some kernels of several, all for one target: parts are (image, names)."""
    made = Joined()
    for cubin, names in parts: made.take(cubin, names)
    return made.image(parts[0][0])
