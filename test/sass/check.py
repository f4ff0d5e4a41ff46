#!/usr/bin/env python3
"""check.py -- what ptxas made of the kernels: prints one row per loop of a role and one per epilogue of every instance,
and fails where one is over a limit below. The kernels that move factors and quantise are held to no local memory. Of
those for sm_90a the loops are looked at, not the epilogue.

    check.py INSTANCES OBJECT [--nvdisasm PATH] [--list] [--in-turn]

INSTANCES is what `dualgemm_bench --instances` prints: which entry is which instance.
OBJECT is libdualgemm.a, an object file or a cubin; --list prints the instructions that count against a limit; with
--in-turn one type of every plan is looked at, each type in turn, and no conversion (a spill fails the build).
nvdisasm is looked for beside the compiler of build/cuda.mk, in build/nvdisasm and on the PATH. The exit status is 0
where there is none, and where another compiler than that of the limits made the code: then the tables are for
information.
"""
import argparse
import collections
import functools
import gc
import json
import pathlib
import re
import shutil
import sys

sys.dont_write_bytecode = True
from disassembly import disassemble  # noqa: E402
from image import cubins, kernels, target  # noqa: E402
from schedule import clocks_per_result  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]

COMPILER = "13.0"  # release of the assembler whose code the limits below were made for

# Limits: {measure: (limit, why)}. A role's loop is the innermost around the instruction that issues.
KERNEL = {
    "local memory": (0, "a spill or an array with a computed index: local memory is memory"),
    "lane branches": (0, "a branch on every path to a mma, a copy or a load of tensor memory differs from lane to "
                         "lane: a role is not a whole warp"),
    "BRA.DIV": (0, "ptxas does not see that the warp is together where it has to be, so it brings it together "
                   "first, and keeps nothing in uniform registers around it: the warp's number has to come out of a "
                   "shuffle and reach the choice of the role through no branch of elect"),
    "unread columns": (0, "an arrival that may free columns of tensor memory which a load still reads: PTX has a "
                          "tcgen05.wait::ld between them, and the code has to wait there for the load's scoreboard"),
}
# The kernels that move factors, quantise and prepare A are no instances: they have neither roles nor an epilogue.
CONVERSION = re.compile(r"N8dualgemm(7convert|4sm90(?=14prepare_kernel))\d+(\w+?_kernel)")
# Where the epilogue is a function that the kernel calls, ptxas doubts once, before tensor memory is allocated. The
# loops of the roles show that it costs them nothing.
KERNEL_WITH_CALL = {**KERNEL, "BRA.DIV": (1, KERNEL["BRA.DIV"][1])}
ROLE_LOOP = {
    "R2UR": (0, "a value that all lanes share lives in a vector register and moves to a uniform one in every "
                "iteration. In a loop that the whole warp runs, with a lane elected for the issue alone, it stays "
                "there"),
    "S2R": (2, "a special register read in every iteration: ptxas computes the start of shared memory again rather "
               "than keep it, for each of two waits at most"),
    "division": (0, "some 15 instructions and a special function in every iteration"),
}
# A warpgroup of sm_90a expands the 64 rows of its fragment, gate and up, for each wgmma of 16 elements of K, which has
# them in registers: eight for a thread. What they take beside the wgmma decides how fast weights come in.
MULTIPLY_LOOP = {
    "instructions per element": (5.5, "expansion of a weight: three logical operations for two and one multiplication, "
                                      "and a k-tile's waits, which count twice where two warpgroups share it, and with "
                                      "four those of a k-tile of the others as well"),
    "HMUL2 per element": (0.5625, "one for a pair of weights: their common factor; and one for the factors of 16 or "
                                  "32 weights: 2^7"),
    "R2UR": (16, "descriptors of wgmma that ptxas keeps in vector registers"),
    "S2R": (1, ROLE_LOOP["S2R"][1]),
    "division": ROLE_LOOP["division"],
}
MULTIPLY_LOOP_BF16 = {
    **MULTIPLY_LOOP,
    "instructions per element": (5.125, "expansion of a weight to bf16: two shifts, two logical operations and one "
                                        "multiplication for two, and a k-tile's waits, which count twice where two "
                                        "warpgroups share it"),
}
# A wgmma of FP8 takes 32 elements of K: 16 for a thread.
MULTIPLY_LOOP_MXFP4 = {
    **MULTIPLY_LOOP,
    "instructions per element": (2.625, "expansion of a weight: for four a load, a logical operation, two permutations "
                                        "of bytes and an addition; for eight of a block the magnitudes of its factor, "
                                        "from a table; and a k-tile's waits, which count twice where two warpgroups "
                                        "share it, and for each panel where A comes by panels"),
    "HMUL2 per element": (0, "the magnitudes of a factor come from a table"),
}
KERNEL_90 = {
    **KERNEL,
    "lane branches": (7, "the choice of a role by a warp's number that ptxas keeps in a vector register, which costs "
                         "once, and an arrival by some lanes"),
    "BRA.DIV": (7, "waits of the warps that expand and multiply: ptxas does not see that a warp is together there"),
}
# For one result. One more multiplication than SwiGLU has (those by alpha1, alpha2, log2 e, sigmoid and up) is a fix-up
# of the range of ex2 or rcp. The clocks are modelled, for a result of all lanes of a warp (schedule.py): eight for each
# special function that a result takes, and a third more, which is what 8 or 16 results in flight allow.
PLAIN_EPILOGUE = {
    "EX2": (1, "SwiGLU has one"),
    "RCP": (1, "SwiGLU has one"),
    "other MUFU": (0, "SwiGLU has none"),
    "FMUL": (5, "SwiGLU has this many"),
    "clocks": (22, "above that, special functions wait for each other's users"),
}
# Of one product a plain instance multiplies by alpha.
PLAIN_EPILOGUE_OF_ONE = {
    **{measure: (0, "a plain instance of one product has no activation") for measure in ("EX2", "RCP", "other MUFU")},
    "FMUL": (1, "a result has one, by alpha"),
    "clocks": (5.25, "a result is a multiplication, half a conversion and a part of a store; with swap A/B it is a "
                     "store, too"),
}
# One of each in five activations and three in SiTU, each for all results of a chunk, of which there are at least 8; two
# in the exact functions, and a reciprocal for each 16 elements of an NVFP4 C, for all of them together.
GENERAL_EPILOGUE = {
    "EX2": (8 + 2 / 8, "all activations together have eight for a result"),
    "RCP": (8 + 2 / 8, "all activations together have eight for a result"),
    "instructions": (150, "of the blocks that compute activations or convert, all of them together; the cost model "
                          "prices the steps by their instructions (host/model/epilogue_work.h): count them again"),
}
# One of each in SiLU and the two GELU, and what the exact functions and an NVFP4 C have.
GENERAL_EPILOGUE_OF_ONE = {
    "EX2": (3 + 2 / 8, "all activations of one product together have three for a result"),
    "RCP": (3 + 2 / 8, "all activations of one product together have three for a result"),
    "instructions": (100, GENERAL_EPILOGUE["instructions"][1]),
}
EPILOGUE_WARPS = 2  # per scheduler
ELEMENTS_OF_WGMMA = 64 * 16 // 128  # that a thread expands for one, of FP8 twice as many
# At least:
EPILOGUE_LEAST = {
    "LDTM": (8, "columns per load of tensor memory: few loads, one wait for many columns"),
    "32-byte stores": (1, "for every 32 bytes of neighbouring results in a row there is a store of a whole sector"),
}

ISSUES = re.compile(r"UTC\w*MMA|[HQ]GMMA|UTMALDG")  # QGMMA is the wgmma of FP8


@functools.cache
def issues(opcode):
    return ISSUES.match(opcode) is not None


def find_nvdisasm():
    candidates = []
    makefile = ROOT / "build/cuda.mk"
    if makefile.exists():
        compiler = makefile.read_text().split(":=")[1].strip()
        candidates.append(pathlib.Path(compiler).parent / "nvdisasm")
    candidates += [*ROOT.glob("build/nvdisasm/nvidia/*/bin/nvdisasm"), pathlib.Path("/usr/local/cuda/bin/nvdisasm")]
    if found := shutil.which("nvdisasm"): candidates.append(pathlib.Path(found))
    return next((str(c) for c in candidates if c.exists()), None)


def assembler_release(data):
    """As "13.0", from the note that ptxas leaves in a cubin."""
    found = re.search(rb"Cuda compilation tools, release (\d+\.\d+)", data)
    return found[1].decode() if found else "of an unknown release"


def role_loops(function):
    """{header: blocks} of the innermost loops that issue mma or copies."""
    heads = {function.inner[b] for b, x in function.each(function.reachable)
             if issues(x.opcode) and b in function.inner}
    return {h: function.loops[h] for h in heads}


def measure_role_loop(function, blocks):
    """{measure: instructions}"""
    found = collections.defaultdict(list)
    for _, x, lanes in function.walk(blocks):
        found["instructions"].append(x)
        if x.mnemonic == "R2UR" and not any(s in lanes for s in x.sources): found["R2UR"].append(x)
        if x.mnemonic in ("S2R", "S2UR", "CS2R") and "SRZ" not in x.operands: found["S2R"].append(x)
        if x.mnemonic == "F2I": found["division"].append(x)
        if re.match(r"UTC\w*MMA|[HQ]GMMA", x.opcode): found["mma"].append(x)
        if x.mnemonic == "HMUL2": found["HMUL2"].append(x)
        if x.mnemonic in ("UTCCP", "UTMALDG"): found[x.mnemonic].append(x)
    return found


def lane_branches(function):
    """Branches that all paths to some work of a role take and whose predicate differs between lanes. That at the end of
    the work's own block comes after it."""
    work = {b for b, x in function.each(function.reachable) if issues(x.opcode) or x.mnemonic == "LDTM"}
    required = set.union(set(), *[function.dominators[b] - {b} for b in work])
    return [x for _, x, lanes in function.walk(required)
            if x.branches() and "U" not in x.modifiers and any(s in lanes for s in x.sources)]


def unread_columns(function, heed_waits=True):
    """Arrivals at a barrier, and deallocations, that a path from a load of tensor memory reaches without a wait for it.
    The loads of a warp end in order: ptxas lets it wait for the last of several alone."""
    def step(state, x):
        """`state`: the scoreboards of last loads that nobody has waited for, None for a load without one."""
        if heed_waits: state = {board for board in state if board is None or not x.waits >> board & 1}
        return {x.sets} if x.mnemonic == "LDTM" else state

    before, work, found = {i: set() for i in function.reachable}, list(function.order), []
    while work:
        block = work.pop(0)
        state = before[block]
        for x in function.blocks[block].instructions: state = step(state, x)
        for successor in function.blocks[block].successors:
            if not state <= before[successor]:
                before[successor] = before[successor] | state
                work.append(successor)
    for block in function.reachable:
        state = before[block]
        for x in function.blocks[block].instructions:
            state = step(state, x)
            frees = "ARRIVE" in x.modifiers or x.mnemonic in ("BAR", "UCGABAR_ARV", "UTCATOMSWS")
            if state and frees: found.append(x)
    return found


def measure_epilogue(function):
    """{measure: instructions} over the blocks that compute results."""
    found = collections.defaultdict(list)
    for b in function.reachable:
        code = function.blocks[b].instructions
        found["LDTM"] += [x for x in code if x.mnemonic == "LDTM"]
        found["32-byte stores"] += [x for x in code if x.mnemonic == "STG" and "256" in x.modifiers]
        if not any(x.opcode == "MUFU.EX2" or x.mnemonic == "F2FP" for x in code): continue
        last = {}  # the instruction that wrote a register
        found["code"] += code
        for x in code:
            if x.mnemonic in ("FMUL", "FMUL2"): found["FMUL"] += [x] * (2 if x.mnemonic == "FMUL2" else 1)
            if x.mnemonic == "MUFU" and not any(last.get(s) == "I2F" for s in x.sources):  # that would be a division
                found[x.modifiers[0] if x.modifiers[0] in ("EX2", "RCP") else "other MUFU"].append(x)
            last.update({r: x.mnemonic for r in x.results})
    return found


class Report:
    """What is over a limit, as (where, text), why the limit is there, and the instructions to blame."""

    def __init__(self):
        self.failures, self.reasons, self.listing = [], {}, []

    def check(self, where, measure, value, limits, least=False, instructions=()):
        limit, why = limits[measure]
        if not (value >= limit if least else value <= limit):
            self.failures.append([where, f"{measure} is {value:g}, at {'least' if least else 'most'} {limit:g}"])
            self.reasons[measure] = why
            self.listing += [f"{where[0]} {where[1]}: {measure}: {x}" for x in instructions]


def check_kernel(function, instance, report):
    name, limits = instance["name"], KERNEL_WITH_CALL if instance["epilogue"]["general"] else KERNEL
    if function.target == "sm_90": limits = KERNEL_90
    code = function.instructions()
    # The epilogue, and what comes behind the roles, keep nothing in uniform registers.
    issuing = function.leading_to(b for b, x in function.each(function.reachable) if issues(x.opcode))
    found = {"local memory": [x for x in code if x.mnemonic in ("LDL", "STL")],
             "lane branches": lane_branches(function),
             "BRA.DIV": [x for b in issuing for x in function.blocks[b].instructions
                         if x.mnemonic == "BRA" and "DIV" in x.modifiers],
             "unread columns": unread_columns(function)}
    for measure, instructions in found.items():
        report.check((name, "kernel"), measure, len(instructions), limits, instructions=instructions)
    return [[name, len(code), *(len(x) for x in found.values())]]


def check_conversion(function, report):
    name = CONVERSION.search(function.name)[2]
    spilled = [x for x in function.instructions() if x.mnemonic in ("LDL", "STL")]
    what = (f"{name}, {function.target}", "conversion")
    report.check(what, "local memory", len(spilled), KERNEL, instructions=spilled)


def check_roles(function, name, report):
    rows = []
    for _, blocks in sorted(role_loops(function).items()):
        found = measure_role_loop(function, blocks)
        role = "mma" if found["mma"] else "load"
        multiplies = function.target == "sm_90" and role == "mma"
        fp8 = "_afp8_" in name
        of_multiply = MULTIPLY_LOOP_BF16 if "_abf16_" in name else MULTIPLY_LOOP_MXFP4 if fp8 else MULTIPLY_LOOP
        limits = of_multiply if multiplies else ROLE_LOOP
        for measure in ROLE_LOOP:
            report.check((name, f"{role} loop"), measure, len(found[measure]), limits, instructions=found[measure])
        if multiplies:
            elements = ELEMENTS_OF_WGMMA * (2 if fp8 else 1) * len(found["mma"])
            for measure, part in (("instructions per element", "instructions"), ("HMUL2 per element", "HMUL2")):
                report.check((name, "mma loop"), measure, len(found[part]) / elements, limits)
        rows.append([name, role] +
                    [len(found[m]) for m in ("mma", "UTCCP", "UTMALDG", "instructions", "R2UR", "S2R", "division")])
    if {row[1] for row in rows} != {"mma", "load"}:
        report.failures.append([(name, "roles"), "there is no loop with mma, or none with copies"])
    return rows


def check_epilogue(function, instance, report):
    found, name, kind = measure_epilogue(function), instance["name"], instance["epilogue"]
    products = instance["plan"]["mma"]["accumulators"]
    limits = {(2, False): PLAIN_EPILOGUE, (2, True): GENERAL_EPILOGUE, (1, False): PLAIN_EPILOGUE_OF_ONE,
              (1, True): GENERAL_EPILOGUE_OF_ONE}
    where, most = (name, "epilogue"), limits[products, kind["general"]]
    columns = [int(m[1:]) for x in found["LDTM"] for m in x.modifiers if re.fullmatch(r"x\d+", m)]
    if not columns:
        report.failures.append([where, "it was not found: no LDTM"])
        return []
    # An accumulator of each. Where K is split, others finish what half of the loads bring.
    results = sum(columns) // products // (2 if instance["plan"]["tile"]["split_k"] > 1 else 1)
    per = {m: len(found[m]) / results for m in most if m != "instructions"}
    if kind["general"]: per["instructions"] = len(found["code"]) / results
    if "clocks" in most: per["clocks"] = clocks_per_result(found["code"], results, EPILOGUE_WARPS)
    for measure in most: report.check(where, measure, per[measure], most)
    least = {"LDTM": min(columns)}
    # With swap A/B a lane holds a column of C, so that a warp writes 64 bytes of a row at a time. A general epilogue
    # has the stores of every type of C, and of D1, and of two products D2, in those of 16 and 32 bits.
    bits = sum(x["bits"] for x in kind["outputs"] if x["bits"] >= 16 and x["store_bytes"] == 32)
    if kind["general"]: bits *= 1 + products
    if not instance["plan"]["mma"]["swap_ab"]:
        least["32-byte stores"] = 256 / bits * len(found["32-byte stores"]) / results
    for measure, value in least.items(): report.check(where, measure, value, EPILOGUE_LEAST, least=True)
    stores = f"{least['32-byte stores']:g}" if "32-byte stores" in least else "-"
    measures = [f"{per[m]:.3g}" if m in per else "-" for m in PLAIN_EPILOGUE]
    return [[name, results, *measures, f"x{least['LDTM']}", stores]]


def table(title, head, rows):
    print(f"\n{title}")
    for cells in [head, ["---"] * len(head)] + rows: print("| " + " | ".join(map(str, cells)) + " |")


def merge(rows, outputs):
    """One row for the instances that differ in the output type alone, of which `outputs` has the names."""
    groups, output = {}, re.compile(rf"_({'|'.join(outputs)})$")
    for name, *cells in rows: groups.setdefault((output.sub("", name), *map(str, cells)), set()).add(name)
    return [[key[0] if len(names) > 1 else min(names), *key[1:]] for key, names in groups.items()]


def in_turn(named):
    """Of instances by their entry, one of those that differ alone in the type of C, or in which 16-bit type A has, the
    types in turn."""
    plans = {}
    for entry, x in named.items():
        of_any_output = re.sub(rf"_{x['epilogue']['outputs'][0]['name']}$", "", x["name"])
        plans.setdefault(re.sub(r"_a(bf16|fp16)(?=_|$)", "_a16", of_any_output), []).append(entry)
    return [outputs[i % len(outputs)] for i, outputs in enumerate(plans.values())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instances")
    parser.add_argument("object")
    parser.add_argument("--nvdisasm", default=find_nvdisasm())
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--in-turn", action="store_true")
    arguments = parser.parse_args()
    gc.disable()  # what is read of the code stays, and looking through it again and again takes long
    if arguments.nvdisasm is None:
        print("check.py: skipped: there is no nvdisasm on this machine")
        return 0
    instances, report = json.loads(pathlib.Path(arguments.instances).read_text(encoding="utf-8")), Report()
    code = pathlib.Path(arguments.object).read_bytes()
    named = {(x["entry"], x["plan"]["arch"].rstrip("af")): x for x in instances}
    held = {(name, target(cubin)) for cubin in cubins(code) for name in kernels(cubin)}
    conversions = sorted(entry for entry in held if CONVERSION.search(entry[0]))
    for entry in sorted(held - named.keys() - set(conversions)):
        report.failures.append([(entry[0], "kernel"), f"{arguments.instances} does not have it"])
    for entry in sorted(named.keys() - held):
        report.failures.append([(named[entry]["name"], "kernel"), f"{arguments.object} does not have it"])
    looked_at = [] if arguments.in_turn else conversions
    chosen = {entry: named[entry] for entry in (in_turn(named) if arguments.in_turn else named) if entry in held}
    functions = {(f.name, f.target): f
                 for f in disassemble(arguments.nvdisasm, code, {*chosen, *looked_at})}
    outputs = sorted({output["name"] for x in instances for output in x["epilogue"]["outputs"]})
    kernel_rows, role_rows, epilogue_rows = [], [], []
    for entry, instance in sorted(chosen.items(), key=lambda x: x[1]["name"]):
        function = functions[entry]
        kernel_rows += check_kernel(function, instance, report)
        role_rows += check_roles(function, instance["name"], report)
        if function.target != "sm_90": epilogue_rows += check_epilogue(function, instance, report)
    loading = [f for f in functions.values() if any(x.mnemonic == "LDTM" for x in f.instructions())]
    if loading and not any(unread_columns(f, heed_waits=False) for f in loading):
        report.failures.append([("all", "kernels"), "no columns are unread even where waits are not heeded: the check "
                                                    "has lost sight of loads or arrivals"])
    for entry in looked_at: check_conversion(functions[entry], report)
    table("Kernels", ["instance", "instructions", *KERNEL], merge(kernel_rows, outputs))
    table("Loops that issue, per iteration",
          ["instance", "role", "mma", "scale copies", "TMA", "instructions", "R2UR of a shared value", "S2R",
           "divisions"],
          merge(role_rows, outputs))
    table("Epilogue, per result",
          ["instance", "results in the code", *PLAIN_EPILOGUE, "LDTM", "32-byte stores per 32 bytes"],
          merge(epilogue_rows, outputs))
    print()
    if arguments.list: print("\n".join(report.listing) + "\n")
    for name, part, text in merge([[name, part, text] for (name, part), text in report.failures], outputs):
        print(f"over a limit: {name}, {part}: {text}")
    for measure, why in report.reasons.items(): print(f"why {measure}: {why}")
    compiler = assembler_release(code)
    note = "" if compiler == COMPILER else (f"; made by CUDA {compiler}, while the limits are for {COMPILER}: "
                                            "not a failure")
    print(f"check.py: {len(chosen)} of {len(instances)} instances, {len(conversions)} conversions, "
          f"{len(report.failures)} over a limit{note}")
    return 1 if report.failures and not note else 0


if __name__ == "__main__":
    sys.exit(main())
