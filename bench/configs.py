#!/usr/bin/env python3
"""configs.py -- the table of kernel instances: what the library says of each configuration (dualgemm_bench --configs,
as JSON on standard input) beside the registers and spills that ptxas reports for its kernel.

    dualgemm_bench --configs | configs.py NVCC PTX...
"""
import concurrent.futures
import json
import re
import subprocess
import sys

DTYPES = {0: "bf16", 1: "fp16"}  # CType, as it stands in a mangled name
# Config<tile_m, tile_n, split_k, c_type, Options{stages, scale_stages, scale_k_tiles, acc_stages, grouped, ...}>
KERNEL = re.compile(r"Compiling entry function '\w*?6ConfigILi(\d+)ELi(\d+)ELi(\d+)ELNS_5CTypeE(\d)E"
                    r"XtlNS_7OptionsELi(\d+)ELi(\d+)ELi(\d+)ELi(\d+)ELb(\d)E")
KEY = ("tile_m", "tile_n", "split_k", "dtype", "stages", "scale_stages", "scale_k_tiles", "acc_stages", "grouped")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def ptxas_output(nvcc, ptx):
    done = subprocess.run([nvcc, "-arch=sm_100f", "-cubin", "-Xptxas", "-v", ptx, "-o", "/dev/null"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"configs.py: {nvcc} fails on {ptx}:\n{done.stderr}")
    return done.stdout + done.stderr


def ptxas_report(nvcc, files):
    """{KEY: (registers, spilled bytes)} of every kernel in the files."""
    report, key, spilled = {}, None, None
    with concurrent.futures.ThreadPoolExecutor() as pool:
        outputs = list(pool.map(lambda ptx: ptxas_output(nvcc, ptx), files))
    for line in "".join(outputs).splitlines():
        if kernel := KERNEL.search(line):
            m, n, split, dtype, *options = map(int, kernel.groups())
            key, spilled = (m, n, split, DTYPES[dtype], *options), None
        elif spills := SPILLS.search(line):
            spilled = int(spills[2]) + int(spills[3])
        elif (registers := REGISTERS.search(line)) and key is not None and spilled is not None:
            if key in report:
                sys.exit(f"configs.py: two kernels are {key}")
            report[key] = int(registers[1]), spilled
            key = None
    return report


def row(configs, report):
    """One line for the configurations of one name, which differ in the output type alone."""
    c = configs[0]
    for other in configs[1:]:
        if differing := [k for k in c if k not in ("name", "dtype") and c[k] != other[k]]:
            sys.exit(f"configs.py: {c['name']} and {other['name']} differ in {', '.join(differing)}")
    keys = [tuple(x[field] for field in KEY) for x in configs]
    if missing := [str(k) for k in keys if k not in report]:
        sys.exit(f"configs.py: ptxas says nothing of {', '.join(missing)}")
    both = lambda i: " / ".join(dict.fromkeys(str(report[k][i]) for k in keys))
    name = c["name"].removesuffix("_" + c["dtype"])
    return [f"{name}_{{{','.join(x['dtype'] for x in configs)}}}", f"{c['tile_m']} x {c['tile_n']}",
            c["split_k"], c["cta_group"] * c["split_k"], f"{c['mmas_per_step']} of N = {c['mma_n']}",
            c["stages"], f"{c['scale_stages']} x {c['scale_k_tiles']}",
            f"{c['acc_stages']}{', overlapped' if c['overlapped'] else ''}", both(0), both(1), f"{c['smem_bytes']:,} B", c["tmem_columns"]]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    configs = json.load(sys.stdin)
    report = ptxas_report(sys.argv[1], sys.argv[2:])
    groups = {}
    for c in configs:
        groups.setdefault(c["name"].removesuffix("_" + c["dtype"]), []).append(c)
    head = ["instance", "tile M x N", "K split", "CTAs of a cluster", "mma per 64 of K", "stages",
            "slots of scale factors x k-tiles", "accumulator pairs", "registers", "spilled", "shared memory", "TMEM columns"]
    for cells in [head, ["---"] * len(head)] + [row(group, report) for group in groups.values()]:
        print("| " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()
