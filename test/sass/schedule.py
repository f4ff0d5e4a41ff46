"""schedule.py -- how many clocks straight code takes on one scheduler of an SM, by a model of what limits an epilogue:
one instruction per clock, in order within a warp, of the first warp that has its operands and whose unit is free.

The numbers are those of an H200, where the model is within -10 .. +5 % of 69 measurements (three forms of the
activation with ten orders of instructions, 1, 2 and 4 warps per scheduler). Nobody has measured the schedulers of
sm_100.
"""
MUFU_CLOCKS = 8       # between two special functions of one scheduler: 4 lanes per clock
MUFU_LATENCY = 20
ALU_CLOCKS = 2        # comparisons, selections, minima, conversions, integers: 16 lanes per clock
ALU_LATENCY = 5
FLOAT_LATENCY = 4     # FMUL, FADD, FFMA: 32 lanes per clock
FLOAT = {"FMUL", "FADD", "FFMA", "FMUL2", "FADD2", "FFMA2"}
IGNORED = {"NOP", "BSSY", "BSYNC", "BRA"}


def clocks(code, warps, repetitions):
    """Until the last instruction of `repetitions` runs through the code is issued, by each of some warps."""
    code = [x for x in code if x.mnemonic not in IGNORED]
    ready = [{} for _ in range(warps)]  # register -> clock from which on it can be read
    position = [0] * warps
    free = {"MUFU": 0, "ALU": 0, "FLOAT": 0}
    busy = {"MUFU": MUFU_CLOCKS, "ALU": ALU_CLOCKS, "FLOAT": 1}
    latency = {"MUFU": MUFU_LATENCY, "ALU": ALU_LATENCY, "FLOAT": FLOAT_LATENCY}
    now = last = 0
    while min(position) < repetitions * len(code):
        for warp in [(last + i) % warps for i in range(warps)]:
            if position[warp] == repetitions * len(code): continue
            x = code[position[warp] % len(code)]
            unit = "MUFU" if x.mnemonic == "MUFU" else "FLOAT" if x.mnemonic in FLOAT else "ALU"
            if free[unit] > now or any(ready[warp].get(s, 0) > now for s in x.sources): continue
            free[unit] = now + busy[unit]
            ready[warp].update({r: now + latency[unit] for r in x.results})
            position[warp] += 1
            last = warp
            break
        now += 1
    return now


def clocks_per_result(code, results, warps):
    """In the steady state, for one result of all lanes of a warp."""
    return (clocks(code, warps, 4) - clocks(code, warps, 2)) / (2 * results * warps)
