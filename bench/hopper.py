#!/usr/bin/env python3
"""hopper.py -- the tables of HOPPER.md, of the reports in bench/results that --json wrote on Hopper GPUs, and
what plot.py compares.

    hopper.py h200 | h100 | h200_fp16     every problem: our time, and how many times as long the others take
    hopper.py means | means_fp16          geometric means of that over the weights, by M
    hopper.py h200_grouped | h100_grouped groups of rows, and how many times as long cuBLAS takes
    hopper.py REPORT.json                 of --ablation all: what two GEMMs, or one after the other, take over ours
"""
import json
import math
import pathlib
import sys

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
REPORTS = {"means": {"h200": "H200", "h100": "H100"}, "means_fp16": {"h200_fp16": "H200"}}
# By the name before "(".
OTHERS = {"Marlin": "Marlin, INT4", "vLLM Marlin": "vLLM's Marlin", "Triton 3.6": "Triton", "Humming": "Humming"}
# Weights of gpt-oss are small: they stand in the tables and not in the means.
LEFT_OUT = (2880, 2880)


def report(gpu):
    return json.loads((RESULTS / f"{gpu}.json").read_text(encoding="utf-8"))


def graph(entry):
    return entry["graph"]["median_us"]


def ratios(row):
    """Of each other: its time over ours, in a CUDA graph; None where it has none."""
    ours = graph(row)
    out = {"cuBLASLt": min(graph(way) for way in row["baselines"] if "graph" in way) / ours}
    for contender in row.get("contenders", []):
        name = contender["name"].split(" (")[0]
        out[OTHERS.get(name, name)] = graph(contender) / ours if "graph" in contender else None
    return out


def timed(reports):
    """The others that the reports have."""
    known = {name for rows in reports for row in rows for name in ratios(row)}
    return [name for name in ("cuBLASLt", *OTHERS.values()) if name in known]


def text(ratio):
    return "-" if ratio is None else f"{ratio:.2f}"


def line(cells):
    print("| " + " | ".join(cells) + " |")


def problems(gpu):
    columns = timed([report(gpu)["results"]])
    line(["N x K", "M", "instance", "us (p10..p90)", *columns, "TFLOP/s"])
    line(["---"] * (5 + len(columns)))
    for row in report(gpu)["results"]:
        of, times = ratios(row), row["graph"]
        held = " *" if row.get("power_limited", 0) > 0.1 else ""
        line([f"{row['n']} x {row['k']}", str(row["m"]), row["instance"].removesuffix("_fp16").removesuffix("_afp16"),
              f"{times['median_us']:.1f} ({times['p10_us']:.1f}..{times['p90_us']:.1f}){held}",
              *(text(of.get(column)) for column in columns), f"{row['flops'] / graph(row) * 1e-6:.0f}"])


def mean(rows, m, other):
    """The geometric mean over the weights of how many times as long the other takes for M rows; None for none."""
    of = [ratios(row) for row in rows if row["m"] == m and (row["n"], row["k"]) != LEFT_OUT]
    known = [one[other] for one in of if one.get(other) is not None]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def means(gpus):
    reports = [report(name)["results"] for name in gpus]
    columns = timed(reports)
    line(["M", *(f"{gpu}: {column}" for gpu in gpus.values() for column in columns)])
    line(["---"] * (1 + len(gpus) * len(columns)))
    for m in sorted({row["m"] for row in reports[0]}):
        line([str(m), *(text(mean(rows, m, column)) for rows in reports for column in columns)])


def groups(name):
    results = report(name)["results"]
    others = any(row.get("baselines") for row in results)
    line(["groups", "rows of all", "N x K", "instance", "us (p10..p90)", *["cuBLAS"] * others, "TB/s", "TFLOP/s"])
    line(["---"] * (7 + others))
    for row in results:
        rows, times = round(row["flops"] / (4 * row["n"] * row["k"])), row["graph"]
        line([f"{row['problems']}, {row['mode']}", str(rows), f"{row['n']} x {row['k']}",
              row["instance"].removesuffix("_fp16"),
              f"{times['median_us']:.1f} ({times['p10_us']:.1f}..{times['p90_us']:.1f})",
              *([text(ratios(row)["cuBLASLt"])] if others else []),
              f"{row['dram_bytes'] / graph(row) * 1e-6:.2f}", f"{row['flops'] / graph(row) * 1e-6:.0f}"])


def fusion(path):
    """Each problem has two tables, whose first way is ours; of each way the fastest tile was taken."""
    problems_of, of_m = {}, {}
    for row in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["results"]:
        problems_of.setdefault((row["n"], row["k"], row["m"]), {}).setdefault(row["idea"], []).append(row)
    line(["N x K", "M", "instance", "us", "two GEMMs", "over ours", "one after the other", "over ours"])
    line(["---"] * 8)
    for (n, k, m), ideas in problems_of.items():
        cells, times = [], []
        for idea in "two-pass", "sequential":
            ours, other = ideas[idea]
            known = "graph" in ours and "graph" in other
            times.append(graph(other) / graph(ours) if known else None)
            cells += [other["instance"].removesuffix("_fp16") if known else "wrong", text(times[-1])]
        ours = ideas["two-pass"][0]
        line([f"{n} x {k}", str(m), ours["instance"].removesuffix("_fp16"),
              f"{graph(ours):.1f}" if "graph" in ours else "wrong", *cells])
        if (n, k) != LEFT_OUT: of_m.setdefault(m, []).append(times)
    print()
    line(["M", "two GEMMs over ours, mean", "one after the other over ours, mean"])
    line(["---"] * 3)
    for m, times in sorted(of_m.items()):
        columns = [[time for time in column if time] for column in zip(*times)]
        line([str(m), *(text(math.exp(sum(map(math.log, column)) / len(column)) if column else None)
                        for column in columns)])


def main():
    what = sys.argv[1] if len(sys.argv) == 2 else None
    if what in REPORTS: means(REPORTS[what])
    elif what in ("h200_grouped", "h100_grouped"): groups(what)
    elif what and what.endswith(".json"): fusion(what)
    elif any(what in gpus for gpus in REPORTS.values()): problems(what)
    else: sys.exit(__doc__)


if __name__ == "__main__": main()
