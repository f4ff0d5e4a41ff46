"""disassembly.py -- the machine code of an object file as a flow graph: instructions, basic blocks, loops, and the
registers that differ from lane to lane. It reads what nvdisasm prints and knows nothing of what is checked.
"""
import ctypes
import re
import struct
import subprocess
import tempfile

ELF_CUDA = 190  # e_machine
SECTION_NOBITS = 8  # sh_type of what takes no room in the file
SYMBOL_BYTES, GLOBAL_FUNCTION = 24, 0x12  # of a symbol table: an entry, and st_info of a kernel
FATBIN_MAGIC = struct.pack("<IH", 0xBA55ED50, 1)
FATBIN_CUBIN, FATBIN_ZSTD = 2, 0x8000
LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P(?:\d+|T))\s+)?([A-Z][\w.]*)\s*(.*)$")
LABEL = re.compile(r"^(\.L_\w+|\$[\w$]+):")
FUNCTION = re.compile(r"^\.text\.(\w+):")
TARGETS = re.compile(r'BRANCH_TARGETS ([^"]*)"')
REGISTER = re.compile(r"(?<![\w.])(U?R|U?P)(\d+)(\.64)?")
RESULT = re.compile(r"U?[RP](\d+|Z|T)")
WITHOUT_RESULT = re.compile(
    r"(BRA|BRX|BRXU|EXIT|RET|CALL|BSSY|BSYNC|BREAK|ST|STG|STS|STL|STAS|BAR|NOP|FENCE|MEMBAR|CCTL|UCGABAR\w*|ERRBAR|"
    r"WARPSYNC|YIELD|NANOSLEEP|DEPBAR|UTMA?\w+|UBLK\w+|UTCBAR|UTCCP|UTC\w*MMA|RED|REDG|ACQBULK|PREEXIT|UVIRTCOUNT|"
    r"BPT|LDGDEPBAR)(\.|$)|SYNCS\.(ARRIVE|EXCH)")
RESULT_BEHIND_PREDICATE = {"SHFL", "R2UR", "UTCATOMSWS"}
LANE_REGISTERS = ("SR_TID", "SR_LANEID", "SR_EQMASK", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK", "SR_GEMASK", "SR_CLOCK")


class Instruction:
    """One line, as `@P1 ISETP.GE.AND P2, PT, R8, R5, PT`."""

    known = {}  # what was read of a line's text, which stands in many kernels

    def __init__(self, address, guard, opcode, rest):
        key = (guard, opcode, rest)
        if key not in Instruction.known:
            self.read(guard, opcode, rest)
            Instruction.known[key] = vars(self).copy()
        vars(self).update(Instruction.known[key], address=address)

    def read(self, guard, opcode, rest):
        self.guard, self.opcode = guard, opcode
        targets = TARGETS.search(rest)
        self.targets = targets[1].split(",") if targets else re.findall(r"`\((\.L_\w+|\$[\w$]+)\)", rest)
        text = rest.split("(*")[0].split(";")[0].strip()
        self.operands = [x.strip() for x in text.split(",")] if text else []
        self.mnemonic, *self.modifiers = opcode.split(".")
        leading = self._leading()
        self.results = self._names(self.operands[:leading])
        self.sources = self._names(self.operands[leading:] + [self.guard or ""])

    def __str__(self):
        guard = f"@{self.guard} " if self.guard else ""
        return f"{self.address:05x} {guard}{self.opcode} {', '.join(self.operands)}".rstrip()

    def _leading(self):
        """How many operands are results."""
        if WITHOUT_RESULT.match(self.opcode): return 0
        is_result = lambda i: i < len(self.operands) and RESULT.fullmatch(self.operands[i]) is not None
        predicate = lambda i: is_result(i) and "P" in self.operands[i]
        if not is_result(0): return 0
        count = 1
        if predicate(0):
            return 2 if is_result(1) and (predicate(1) or self.mnemonic in RESULT_BEHIND_PREDICATE) else 1
        while count < 3 and predicate(count): count += 1
        return count

    def _width(self):
        """Registers of one vector operand."""
        for modifier in self.modifiers:
            if self.mnemonic == "LDTM" and re.fullmatch(r"x\d+", modifier): return int(modifier[1:])
            if modifier == "256" or modifier == "128": return 4
        return 2 if self.mnemonic == "CS2R" or {"64", "WIDE"} & set(self.modifiers) else 1

    def _names(self, operands):
        names = []
        for operand in operands:
            for kind, number, wide in REGISTER.findall(operand):
                address = "[" in operand or self.mnemonic.startswith("UTC")
                count = 1 if kind.endswith("P") else 2 if wide else 1 if address else self._width()
                names += [f"{kind}{int(number) + i}" for i in range(count)]
        return names

    def branches(self):
        return self.mnemonic in ("BRA", "BRX", "BRXU")

    def conditional(self):
        return self.guard is not None or any(re.fullmatch(r"!?U?P\d", x) for x in self.operands)

    def ends(self):
        return self.mnemonic in ("EXIT", "RET") and self.guard is None


class Block:
    def __init__(self):
        self.instructions, self.successors, self.predecessors = [], [], []


class Function:
    """Blocks of a kernel and of the functions it calls, in the order of their addresses; the first is the entry."""

    def __init__(self, name, lines, target):
        self.name, self.target = name, target
        self.blocks = []
        labels, pending, start = {}, [], True
        for item in lines:
            if isinstance(item, str):
                pending.append(item)
                start = True
                continue
            if start: self.blocks.append(Block())
            for label in pending: labels[label] = len(self.blocks) - 1
            pending = []
            self.blocks[-1].instructions.append(item)
            start = item.branches() or item.ends() or item.mnemonic in ("BSYNC", "CALL")
        for i, block in enumerate(self.blocks):
            last = block.instructions[-1]
            if last.branches() or last.mnemonic == "CALL":  # a function of the kernel's own goes on behind its CALL
                block.successors += [labels[t] for t in last.targets if t in labels]
            if not last.ends() and not (last.branches() and not last.conditional()) and i + 1 < len(self.blocks):
                block.successors.append(i + 1)
            block.successors = sorted(set(block.successors))
        for i, block in enumerate(self.blocks):
            for s in block.successors: self.blocks[s].predecessors.append(i)
        self._reach()
        self._dominate()
        self._find_loops()
        self._find_lanes()

    def instructions(self):
        return [x for i in self.reachable for x in self.blocks[i].instructions]

    def leading_to(self, blocks):
        """Blocks from which one of these can be reached, themselves included."""
        found, work = set(), list(blocks)
        while work:
            block = work.pop()
            if block in found: continue
            found.add(block)
            work += self.blocks[block].predecessors
        return found

    def _reach(self):
        """Blocks that the entry reaches, in reverse postorder as `order`."""
        seen, order, stack = {0}, [], [(0, iter(self.blocks[0].successors))]
        while stack:
            block, successors = stack[-1]
            for s in successors:
                if s not in seen:
                    seen.add(s)
                    stack.append((s, iter(self.blocks[s].successors)))
                    break
            else:
                order.append(block)
                stack.pop()
        self.order, self.reachable = order[::-1], sorted(seen)

    def _dominate(self):
        everything = set(self.reachable)
        self.dominators = {i: everything for i in self.reachable}
        self.dominators[0] = {0}
        changed = True
        while changed:
            changed = False
            for i in self.order[1:]:
                known = [self.dominators[p] for p in self.blocks[i].predecessors if p in everything]
                new = set.intersection(*known) | {i}
                if new != self.dominators[i]:
                    self.dominators[i], changed = new, True

    def _find_loops(self):
        """`loops`: header -> blocks, natural loops of one header taken together. `inner`: block -> header of the
        smallest loop around it."""
        self.loops = {}
        for tail in self.reachable:
            for head in self.blocks[tail].successors:
                if head not in self.dominators[tail]: continue
                body, work = self.loops.setdefault(head, {head}), [tail]
                while work:
                    block = work.pop()
                    if block in body: continue
                    body.add(block)
                    work += [p for p in self.blocks[block].predecessors if p in self.dominators]
        self.inner = {}
        for head, body in sorted(self.loops.items(), key=lambda x: -len(x[1])):
            for block in body: self.inner[block] = head

    def _find_lanes(self):
        """`lanes`: block -> registers that may differ between lanes when it starts. A join takes both sides'; that
        lanes may arrive at different times is not followed."""
        self.lanes = {i: set() for i in self.reachable}
        work = list(self.order)
        while work:
            i = work.pop(0)
            state = set(self.lanes[i])
            for x in self.blocks[i].instructions: step_lanes(state, x)
            for s in self.blocks[i].successors:
                if not state <= self.lanes[s]:
                    self.lanes[s] |= state
                    if s not in work: work.append(s)

    def each(self, blocks):
        """(block, instruction) of some blocks."""
        return ((i, x) for i in sorted(blocks) for x in self.blocks[i].instructions)

    def walk(self, blocks):
        """(block, instruction, registers that differ between lanes before it) of some blocks."""
        for i in sorted(blocks):
            state = set(self.lanes[i])
            for x in self.blocks[i].instructions:
                yield i, x, state
                step_lanes(state, x)


def step_lanes(state, x):
    """Updates the set of registers that differ between lanes for one instruction."""
    if not x.results: return
    differs = any(s in state for s in x.sources)
    if x.mnemonic in ("S2R", "CS2R"): differs = any(o.startswith(LANE_REGISTERS) for o in x.operands)
    elif x.mnemonic == "LDTM": differs = True
    elif x.mnemonic == "SHFL" and "IDX" in x.modifiers: differs = any(s in state for s in x.sources[1:])
    elif x.mnemonic in ("ELECT", "SYNCS"): differs = False  # lanes part on purpose; see check.py
    for r in x.results:
        if r.startswith("U"): continue  # one value per warp
        if differs: state.add(r)
        elif x.guard is None: state.discard(r)


def kernels(cubin):
    """The kernels of an image: {name: its place in the table of symbols}."""
    of, found = sections(cubin), {}
    for i in range(len(of[".symtab"]) // SYMBOL_BYTES):
        name, info = struct.unpack_from("<IB", of[".symtab"], i * SYMBOL_BYTES)
        if info == GLOBAL_FUNCTION: found[of[".strtab"][name:of[".strtab"].index(b"\0", name)].decode()] = i
    return found


def disassemble(nvdisasm, data, entries):
    """Of the kernels in the bytes of a file those that are named, each with what it is compiled for."""
    functions = []
    for cubin in cubins(data):
        symbols = [str(i) for name, i in kernels(cubin).items() if (name, target(cubin)) in entries]
        if not symbols: continue
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            command = [nvdisasm, "-c", "-fun", ",".join(symbols), file.name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode: raise RuntimeError(f"{nvdisasm} fails: {done.stderr.strip()}")
        functions += parse(done.stdout, target(cubin))
    return functions


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


def sections(cubin):
    """The sections of an ELF image by name: their bytes."""
    start = struct.unpack_from("<Q", cubin, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, start + i * size) for i in range(count)]
    strings = headers[names][4]
    name = lambda at: cubin[strings + at:cubin.index(b"\0", strings + at)].decode()
    return {name(h[0]): cubin[h[4]:h[4] + h[5]] for h in headers if h[1] != SECTION_NOBITS}


def parse(text, compiled_for):
    functions, name, lines = [], None, []
    for line in text.splitlines() + [".text.:"]:
        if (head := re.match(r"^\.text\.(\S*):", line)):
            if name: functions.append(Function(name, lines, compiled_for))
            name, lines = head[1], []
        elif label := LABEL.match(line): lines.append(label[1])
        elif found := LINE.match(line): lines.append(Instruction(int(found[1], 16), found[2], found[3], found[4]))
    return functions
