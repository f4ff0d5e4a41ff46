"""disassembly.py -- the machine code of an object file as a flow graph: instructions, basic blocks, loops, and the
registers that differ from lane to lane. It reads what nvdisasm prints and knows nothing of what is checked.
"""
import functools
import re
import subprocess
import tempfile

from image import cubins, joined, kernels, target

LINE = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+([^;]*;?)")
UPPER_HALF = re.compile(r"\s+/\* 0x([0-9a-f]{16}) \*/")  # of an instruction's 128 bits, on a line of its own
INSTRUCTION = re.compile(r"(?:@(!?U?P(?:\d+|T))\s+)?([A-Z][\w.]*)\s*(.*)$")
LABEL = re.compile(r"^(\.L_\w+|\$[\w$]+):")
FUNCTION = re.compile(r"^\.text\.(\S*):")
TARGETS = re.compile(r'BRANCH_TARGETS ([^"]*)"')
REGISTER = re.compile(r"(?<![\w.])(U?R|U?P)(\d+)(\.64)?")
RESULT = re.compile(r"U?[RP](\d+|Z|T)")
WITHOUT_RESULT = re.compile(
    r"(BRA|BRX|BRXU|EXIT|RET|CALL|BSSY|BSYNC|BREAK|ST|STG|STS|STL|STAS|BAR|NOP|FENCE|MEMBAR|CCTL|UCGABAR\w*|ERRBAR|"
    r"WARPSYNC|YIELD|NANOSLEEP|DEPBAR|UTMA?\w+|UBLK\w+|UTCBAR|UTCCP|UTC\w*MMA|RED|REDG|ACQBULK|PREEXIT|UVIRTCOUNT|"
    r"BPT|LDGDEPBAR)(\.|$)|SYNCS\.(ARRIVE|EXCH)")
RESULT_BEHIND_PREDICATE = {"SHFL", "R2UR", "UTCATOMSWS"}
LANE_REGISTERS = ("SR_TID", "SR_LANEID", "SR_EQMASK", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK", "SR_GEMASK", "SR_CLOCK")


@functools.cache
def can_be_result(operand):
    return RESULT.fullmatch(operand) is not None


@functools.cache
def registers(operand, width):
    """The registers that an operand names, a vector of `width` each unless it says otherwise."""
    return [f"{kind}{int(number) + i}" for kind, number, wide in REGISTER.findall(operand)
            for i in range(1 if kind.endswith("P") else 2 if wide else width)]


class Instruction:
    """One line, as `@P1 ISETP.GE.AND P2, PT, R8, R5, PT`."""

    known = {}  # what was read of a line's text, which stands in many kernels
    sets, waits = None, 0  # the scoreboard that its results release, and a mask of those that it waits for

    def __init__(self, address, text):
        if text not in Instruction.known:
            self.read(*INSTRUCTION.match(text).groups())
            Instruction.known[text] = self.__dict__
        self.__dict__ = Instruction.known[text].copy()
        self.address = address

    def control(self, upper):
        """Reads the control bits, which nvdisasm does not spell: from bit 105 four of stall and one of yield, then
        three bits for the scoreboard of results (7: none), three for that of sources, and six of those to wait for."""
        self.sets, self.waits = (upper >> 46 & 7), upper >> 52 & 63
        if self.sets == 7: self.sets = None

    def read(self, guard, opcode, rest):
        self.guard, self.opcode = guard, opcode
        targets = TARGETS.search(rest)
        self.targets = targets[1].split(",") if targets else re.findall(r"`\((\.L_\w+|\$[\w$]+)\)", rest)
        text = rest.split("(*")[0].split(";")[0].strip()
        self.operands = [x.strip() for x in text.split(",")] if text else []
        self.mnemonic, *self.modifiers = opcode.split(".")
        leading = self._leading()
        self.results = self._names(self.operands[:leading])
        self.sources = self._names(self.operands[leading:] + ([guard] if guard else []))
        self.of_lanes = [r for r in self.results if not r.startswith("U")]  # the others are one value per warp
        self.ends_block = self.branches() or self.ends() or self.mnemonic in ("BSYNC", "CALL")

    def __str__(self):
        guard = f"@{self.guard} " if self.guard else ""
        return f"{self.address:05x} {guard}{self.opcode} {', '.join(self.operands)}".rstrip()

    def _leading(self):
        """How many operands are results."""
        if WITHOUT_RESULT.match(self.opcode): return 0
        is_result = lambda i: i < len(self.operands) and can_be_result(self.operands[i])
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
        one, width = self.mnemonic.startswith("UTC"), self._width()
        return [name for operand in operands for name in registers(operand, 1 if one or "[" in operand else width)]

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
            start = item.ends_block
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
    if not x.of_lanes: return
    differs = not state.isdisjoint(x.sources)
    if x.mnemonic in ("S2R", "CS2R"): differs = any(o.startswith(LANE_REGISTERS) for o in x.operands)
    elif x.mnemonic == "LDTM": differs = True
    elif x.mnemonic == "SHFL" and "IDX" in x.modifiers: differs = not state.isdisjoint(x.sources[1:])
    elif x.mnemonic in ("ELECT", "SYNCS"): differs = False  # lanes part on purpose; see check.py
    if differs: state.update(x.of_lanes)
    elif x.guard is None: state.difference_update(x.of_lanes)


def disassemble(nvdisasm, data, entries):
    """Of the kernels in the bytes of a file those that are named, each with what it is compiled for. nvdisasm takes
    longer to start than to read an image: it is given one for each target."""
    images = {}
    for cubin in cubins(data):
        names = [name for name in kernels(cubin) if (name, target(cubin)) in entries]
        if names: images.setdefault(target(cubin), []).append((cubin, names))
    functions = []
    for compiled_for, parts in images.items():
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(joined(parts))
            file.flush()
            with_bits = ["-hex"] if compiled_for == "sm_100" else []  # for Instruction.control
            done = subprocess.run([nvdisasm, "-c", *with_bits, file.name], capture_output=True, text=True, check=False)
        if done.returncode: raise RuntimeError(f"{nvdisasm} fails: {done.stderr.strip()}")
        functions += parse(done.stdout, compiled_for)
    return functions


def parse(text, compiled_for):
    functions, name, lines = [], None, []
    for line in text.splitlines() + [".text.:"]:
        if found := LINE.match(line):
            lines.append(Instruction(int(found[1], 16), found[2]))
        elif upper := UPPER_HALF.match(line):
            lines[-1].control(int(upper[1], 16))
        elif head := FUNCTION.match(line):
            if name: functions.append(Function(name, lines, compiled_for))
            name, lines = head[1], []
        elif label := LABEL.match(line):
            lines.append(label[1])
    return functions
