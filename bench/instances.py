#!/usr/bin/env python3
"""instances.py -- a table of kernel instances for each architecture: their plans (dualgemm_bench --instances, as JSON
on standard input) beside the registers and spills that ptxas reported when their kernels were compiled.

    dualgemm_bench --instances | instances.py LOG...
"""
import json
import re
import sys

ENTRY = re.compile(r"Compiling entry function '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def ptxas_report(log):
    """{entry: (registers, spilled bytes)} of every kernel of the compiler's log."""
    report, entry, spilled = {}, None, None
    with open(log, encoding="utf-8") as file:
        for line in file:
            if found := ENTRY.search(line): entry, spilled = found[1], None
            elif found := SPILLS.search(line): spilled = int(found[2]) + int(found[3])
            elif (found := REGISTERS.search(line)) and entry is not None and spilled is not None:
                report[entry], entry = (int(found[1]), spilled), None
    return report


def columns(plan):
    """What a table says of a plan between its tile and its registers: {heading: cell}."""
    tile, mma, operands, scales, tmem = (plan[part] for part in ("tile", "mma", "operands", "scales", "tmem"))
    shared = {"tile M x N": f"{tile['m']} x {tile['n']}", "split-K": tile["split_k"]}
    if plan["arch"] == "sm_90a":
        consumers, a16, registers = plan["consumers"], plan["a16"], plan["registers"]
        preparing = a16["warps"] or ("none" if plan["a_type"] == "FP8_E4M3" else "a pass")
        return {**shared, "CTAs of an SM": plan["ctas_per_sm"],
                "column groups x k groups": f"{consumers['column_groups']} x {consumers['k_groups']}",
                "warps that prepare A": preparing, "stages": operands["stages"],
                "of scale factors": scales["stages"], "of A's own ring": a16["stages"],
                "registers of roles": f"{registers['feed']}, {registers['consume']}"}
    return {**shared, "CTAs of a cluster": plan["cluster_size"],
            "mma per 64 of K": f"{mma['per_step']} of N = {mma['n']}", "stages": operands["stages"],
            "stages of scale factors x k-tiles": f"{scales['stages']} x {scales['k_tiles']}",
            "accumulator pairs": f"{tmem['acc_stages']}{', overlapped' if tmem['shared_columns'] else ''}"}


def row(instances, report):
    """One line, {heading: cell}, for the instances of one plan and arithmetic, which differ in the output alone."""
    plan = instances[0]["plan"]
    for other in instances[1:]:
        if other["plan"] != plan:
            sys.exit(f"instances.py: {instances[0]['name']} and {other['name']} have different plans")
    if missing := [x["name"] for x in instances if x["entry"] not in report]:
        sys.exit(f"instances.py: ptxas says nothing of {', '.join(missing)}")
    each = lambda values: " / ".join(dict.fromkeys(map(str, values)))
    outputs = ",".join(x["epilogue"]["outputs"][0]["name"] for x in instances)
    if len(instances) > 1: outputs = f"{{{outputs}}}"
    tmem = {"TMEM columns": plan["tmem"]["allocated"]} if plan["tmem"]["allocated"] else {}
    return {"instance": name_without_output(instances[0]).replace("*", outputs), **columns(plan),
            "registers": each(report[x["entry"]][0] for x in instances),
            "spilled": each(report[x["entry"]][1] for x in instances),
            "shared memory": each(f"{x['smem_bytes']:,} B" for x in instances), **tmem}


def name_without_output(instance):
    """The name with * for the output. That of a general instance, which writes any, has none."""
    return re.sub(rf"_{instance['epilogue']['outputs'][0]['name']}$", "_*", instance["name"])


def main():
    if len(sys.argv) < 2: sys.exit(__doc__)
    report, groups = {}, {}
    for log in sys.argv[1:]: report.update(ptxas_report(log))
    for instance in json.load(sys.stdin): groups.setdefault(name_without_output(instance), []).append(instance)
    rows = {}
    for group in groups.values(): rows.setdefault(group[0]["plan"]["arch"], []).append(row(group, report))
    for arch, table in rows.items():
        print(f"### {arch}")
        for cells in [table[0], ["---"] * len(table[0])] + [x.values() for x in table]:
            print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()
