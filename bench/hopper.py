#!/usr/bin/env python3
"""hopper.py -- the tables of HOPPER.md and one of the front page, of the reports in bench/results that --json wrote on
Hopper GPUs, and the means that speed_up.py draws.

    hopper.py front                  six problems on an H100: our time, and how many times faster than others it is
    hopper.py h200 | h100 | h200_fp16 | h100_fp16
                                     every problem: our time, and how many times as long the others take
    hopper.py means | means_fp16     geometric means of that over the weights, by M
    hopper.py fp8                    weights in MXFP4 and an A in FP8: how many times as long our A of 16 bits and
                                     cuBLASLt in FP8 take, geometric means over the weights, by M, and the lowest
    hopper.py h200_grouped | h100_grouped
                                     groups of rows, and how many times as long cuBLAS takes
    hopper.py h200_fusion | h100_fusion
                                     every problem: what two GEMMs, or one after the other, take over ours
    hopper.py fusion                 geometric means of that over the weights, by M
    hopper.py h100_linear | h200_linear
                                     one product: geometric means over the weights, by M, and the lowest of them
    hopper.py h100_torch_linear | h200_torch_linear
                                     one product in PyTorch (torch/linear.py): the same, beside torch.mm and others
    hopper.py h100_torch_experts | h200_torch_experts
                                     layers of experts in PyTorch (torch/experts.py): our time, and how many times as
                                     long others take, geometric means over the layers and the lowest
    hopper.py h100_models | h200_models
                                     linear layers of 25 models (suites models-*), beside cuBLASLt: how many problems
                                     are slower, geometric means, the lowest
    hopper.py h100_models_by_m | h200_models_by_m
                                     of the same the geometric means by M, and the lowest of them
    hopper.py h100_models_worst | h200_models_worst
                                     the thirty of these that are slowest beside cuBLASLt
    hopper.py h100_ffn | h200_ffn    layers of two launches: our time, and how many times as long cuBLASLt takes
    hopper.py h100_model | h100_model_static | h100_model_compiled
                                     a model (torch/model.py): milliseconds, and how many times faster than in bf16
"""
import json
import math
import pathlib
import sys

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
REPORTS = {"means": {"h200": "H200", "h100": "H100"}, "means_fp16": {"h200_fp16": "H200", "h100_fp16": "H100"}}
# By the name before "(".
OTHERS = {"Marlin": "Marlin, INT4", "vLLM Marlin": "vLLM's Marlin", "Triton 3.6": "Triton", "Triton 3.9": "Triton",
          "Humming": "Humming"}
# cuBLASLt's time over ours where our launches depend on each other programmatically.
WITH_PDL = "cuBLASLt, PDL"
# (M, N, K): from one token to thousands; the weights of gpt-oss where cuBLASLt is faster, too.
FRONT = [(1, 28672, 8192), (16, 4096, 7168), (64, 14336, 4096), (128, 2048, 7168), (256, 2880, 2880),
         (4096, 4096, 7168)]
# Weights of gpt-oss are small: they stand in the tables and not in the means.
LEFT_OUT = (2880, 2880)
# The reports of the suites models-*: by what a table calls them, what follows the name of the GPU.
MODELS = {"two products, A in NVFP4": "models_gate_up", "two products, A in bf16": "models_gate_up_bf16",
          "one product, A in NVFP4": "models_linear", "one product, A in bf16": "models_linear_bf16"}
WORST = 30


def report(gpu):
    return json.loads((RESULTS / f"{gpu}.json").read_text(encoding="utf-8"))


def graph(entry):
    return entry["graph"]["median_us"]


def ratios(row):
    """Of each other: its time over ours, in a CUDA graph; None where it has none."""
    ours = graph(row)
    cublas = min(graph(way) for way in row["baselines"] if "graph" in way)
    out = {"cuBLASLt": cublas / ours}
    if "pdl" in row: out[WITH_PDL] = cublas / graph(row["pdl"])
    for contender in row.get("contenders", []):
        name = contender["name"].split(" (")[0]
        out[OTHERS.get(name, name)] = graph(contender) / ours if "graph" in contender else None
    return out


def timed(reports):
    """The others that the reports have."""
    known = {name for rows in reports for row in rows for name in ratios(row)}
    return [name for name in dict.fromkeys(("cuBLASLt", WITH_PDL, *OTHERS.values())) if name in known]


def text(ratio):
    return "-" if ratio is None else f"{ratio:.2f}"


def line(cells):
    print("| " + " | ".join(cells) + " |")


def rates(row):
    """TB/s of what has to come from DRAM and go there, and TFLOP/s."""
    return [f"{row['dram_bytes'] / graph(row) * 1e-6:.2f}", f"{row['flops'] / graph(row) * 1e-6:.0f}"]


def problems(gpu):
    columns = timed([report(gpu)["results"]])
    line(["N x K", "M", "instance", "us (p10..p90)", *columns, "TB/s", "TFLOP/s"])
    line(["---"] * (6 + len(columns)))
    for row in report(gpu)["results"]:
        of, times = ratios(row), row["graph"]
        held = " *" if row.get("power_limited", 0) > 0.1 else ""
        line([f"{row['n']} x {row['k']}", str(row["m"]), row["instance"].removesuffix("_fp16").removesuffix("_afp16"),
              f"{times['median_us']:.1f} ({times['p10_us']:.1f}..{times['p90_us']:.1f}){held}",
              *(text(of.get(column)) for column in columns), *rates(row)])


def front():
    rows = {(row["m"], row["n"], row["k"]): row for row in report("h100")["results"]}
    others = ["cuBLASLt", "vLLM's Marlin", "Humming", "Triton"]
    line(["M x N x K", "us", *others])
    line(["---"] * (2 + len(others)))
    for problem in FRONT:
        of = ratios(rows[problem])
        line(["x".join(map(str, problem)), f"{graph(rows[problem]):.1f}", *(text(of.get(other)) for other in others)])


def geometric_mean(ratios_):
    return math.exp(sum(map(math.log, ratios_)) / len(ratios_)) if ratios_ else None


def mean(rows, m, other):
    """The geometric mean over the weights of how many times as long the other takes for M rows; None for none."""
    of = [ratios(row) for row in rows if row["m"] == m and (row["n"], row["k"]) != LEFT_OUT]
    return geometric_mean([one[other] for one in of if one.get(other) is not None])


def means(gpus):
    reports = [report(name)["results"] for name in gpus]
    columns = timed(reports)
    line(["M", *(f"{gpu}: {column}" for gpu in gpus.values() for column in columns)])
    line(["---"] * (1 + len(gpus) * len(columns)))
    for m in sorted({row["m"] for row in reports[0]}):
        line([str(m), *(text(mean(rows, m, column)) for rows in reports for column in columns)])


def fp8():
    sixteen = {(row["m"], row["n"], row["k"]): graph(row) for row in report("h200_fp16")["results"]}
    by_m = {}
    for row in report("h200_fp8")["results"]:
        of = sixteen[row["m"], row["n"], row["k"]] / graph(row), ratios(row)["cuBLASLt"]
        by_m.setdefault(row["m"], []).append(of)
    line(["M", "A in fp16", "lowest", "cuBLASLt", "lowest"])
    line(["---"] * 5)
    for m, rows in by_m.items():
        line([str(m), *(text(f(of)) for of in zip(*rows) for f in (geometric_mean, min))])


def groups(name):
    results = report(name)["results"]
    others = any(row.get("baselines") for row in results)
    line(["groups", "rows of all", "N x K", "instance", "us (p10..p90)", *["cuBLAS"] * others, "TB/s", "TFLOP/s"])
    line(["---"] * (7 + others))
    for row in results:
        rows, times = round(row["flops"] / (4 * row["n"] * row["k"])), row["graph"]
        held = " *" if row.get("power_limited", 0) > 0.1 else ""
        line([f"{row['problems']}, {row['mode']}", str(rows), f"{row['n']} x {row['k']}",
              row["instance"].removesuffix("_fp16"),
              f"{times['median_us']:.1f} ({times['p10_us']:.1f}..{times['p90_us']:.1f}){held}",
              *([text(ratios(row)["cuBLASLt"])] if others else []),
              *rates(row)])


def forms(name):
    """Of each problem the row of ours and those of the other two forms, of each of which the fastest tile was taken."""
    of = {}
    for row in report(name)["results"]:
        of.setdefault((row["n"], row["k"], row["m"]), {}).setdefault(row["idea"], []).append(row)
    return {problem: (ideas["two-pass"][0], *(ideas[idea][1] for idea in ("two-pass", "sequential")))
            for problem, ideas in of.items()}


def fusion(name):
    line(["N x K", "M", "instance", "us", "two GEMMs", "over ours", "one after the other", "over ours"])
    line(["---"] * 8)
    for (n, k, m), (ours, *others) in forms(name).items():
        cells = [cell for other in others for cell in (other["instance"].removesuffix("_fp16"),
                                                       text(graph(other) / graph(ours)))]
        line([f"{n} x {k}", str(m), ours["instance"].removesuffix("_fp16"), f"{graph(ours):.1f}", *cells])


def fusion_means():
    gpus = {"h200_fusion": "H200", "h100_fusion": "H100"}
    line(["M", *(f"{gpu}: {form}" for gpu in gpus.values() for form in ("two GEMMs", "one after the other"))])
    line(["---"] * 5)
    known = [forms(name) for name in gpus]
    for rows in sorted({m for n, k, m in known[0]}):
        cells = []
        for of in known:
            of_m = [of[problem] for problem in of if problem[2] == rows and problem[:2] != LEFT_OUT]
            cells += [text(geometric_mean([graph(row[form]) / graph(row[0]) for row in of_m])) for form in (1, 2)]
        line([str(rows), *cells])


def linear(name):
    results = report(name)["results"]
    columns = timed([results])
    line(["M", *(cell for column in columns for cell in (column, "lowest"))])
    line(["---"] * (1 + 2 * len(columns)))
    for m in sorted({row["m"] for row in results}):
        cells = []
        for column in columns:
            of = [ratios(row)[column] for row in results if row["m"] == m]
            cells += [text(geometric_mean(of)), text(min(of))]
        line([str(m), *cells])


def timed_rows(results):
    """Those with a time of ours and one of cuBLASLt's."""
    return [row for row in results if "graph" in row and any("graph" in way for way in row.get("baselines", []))]


def of_models(gpu):
    """Of each of the four reports: its rows."""
    return {kind: timed_rows(report(f"{gpu}_{name}")["results"]) for kind, name in MODELS.items()}


def beside_cublas(rows):
    return [ratios(row)["cuBLASLt"] for row in rows]


def models(gpu):
    line(["", "problems", "slower than cuBLASLt", "below 0.95", "below 0.9", "geometric mean", "lowest"])
    line(["---"] * 7)
    for kind, rows in of_models(gpu).items():
        of = beside_cublas(rows)
        line([kind, str(len(of)), *(str(sum(ratio < bound for ratio in of)) for bound in (1, 0.95, 0.9)),
              text(geometric_mean(of)), text(min(of))])


def models_by_m(gpu):
    kinds = of_models(gpu)
    line(["M", *(cell for kind in kinds for cell in (kind, "lowest"))])
    line(["---"] * (1 + 2 * len(kinds)))
    for m in sorted({row["m"] for rows in kinds.values() for row in rows}):
        cells = []
        for rows in kinds.values():
            of = beside_cublas(row for row in rows if row["m"] == m)
            cells += [text(geometric_mean(of)), text(min(of, default=None))]
        line([str(m), *cells])


def models_worst(gpu):
    all_rows = [(ratios(row)["cuBLASLt"], kind, row) for kind, rows in of_models(gpu).items() for row in rows]
    line(["cuBLASLt", "M x N x K", "layer", "products, A", "instance", "us", "cuBLASLt, us"])
    line(["---"] * 7)
    for ratio, kind, row in sorted(all_rows, key=lambda entry: entry[0])[:WORST]:
        line([text(ratio), f"{row['m']} x {row['n']} x {row['k']}", row["label"], kind.replace(" products, A in", ",")
              .replace(" product, A in", ","), row["instance"].split("_")[0], f"{graph(row):.1f}",
              f"{ratio * graph(row):.1f}"])


def torch_linear(name):
    results = report(name)["results"]
    others = [name for name in results[0]["us"] if not name.startswith("A in ")]
    others.sort(key=lambda name: name == "torch.mm")  # which is no kernel of NVFP4
    columns = [(ours, other) for other in others for ours in ("A in fp16", "A in NVFP4")]
    line(["M", *(cell for ours, other in columns for cell in (f"{other}, {ours}", "lowest"))])
    line(["---"] * (1 + 2 * len(columns)))
    for m in sorted({row["m"] for row in results}):
        cells = []
        for ours, other in columns:
            of = [row["us"][other] / row["us"][ours] for row in results if row["m"] == m]
            cells += [text(geometric_mean(of)), text(min(of))]
        line([str(m), *cells])


def torch_experts(name):
    """Of the ways with weights in bf16 the fastest stands for all. A shape that another has no time of is not in its
    columns."""
    results = report(name)["results"]
    def fastest(us, kind): return min((time for key, time in us.items() if key.startswith(kind)), default=None)
    names = [name for row in results for name in row["us"] if not name.startswith("dualgemm")]
    columns = list(dict.fromkeys("bf16" if name.startswith("bf16") else name for name in names))
    shapes = list(dict.fromkeys(row["shape"] for row in results))
    line(["tokens", *(f"us, {shape}" for shape in shapes),
          *(cell for column in columns for cell in (column, "lowest", "layers"))])
    line(["---"] * (1 + len(shapes) + 3 * len(columns)))
    for tokens in sorted({row["tokens"] for row in results}):
        of_tokens = {row["shape"]: row["us"] for row in results if row["tokens"] == tokens}
        cells = [f"{of_tokens[shape]['dualgemm']:.0f}" if shape in of_tokens else "-" for shape in shapes]
        for column in columns:
            of = [time / us["dualgemm"] for us in of_tokens.values() if (time := fastest(us, column)) is not None]
            cells += [text(geometric_mean(of)), text(min(of, default=None)), str(len(of))]
        line([str(tokens), *cells])


def layers(name):
    results = report(name)["results"]
    line(["I x K", "M", "us", "with PDL", "cuBLASLt", "cuBLASLt, PDL"])
    line(["---"] * 6)
    for row in results:
        times = [graph(row), graph(row["pdl"])]
        line([f"{row['i']} x {row['k']}", str(row["m"]), *(f"{us:.1f}" for us in times),
              *(text(graph(row["baseline"]) / us) for us in times)])


def model(name):
    """Milliseconds, and how many times faster than in bf16."""
    line(["model", "layers", "weights of linear layers", "prefill", "decode, batch 1", "decode, batch 8",
          "memory of the layers' weights, GB", "peak while running, GB"])
    line(["---"] * 8)
    for row in report(name)["results"]:
        if row["contender"] == "bf16": base = row
        times = [f"{row[key]:.2f} ms, {base[key] / row[key]:.2f}" if row.get(key) else "" for key in
                 ("prefill_ms", "decode1_ms", "decode8_ms")]
        line([row["model"], str(row["layers"]), row["contender"], *times, f"{row['linears_gb']:.2f}",
              f"{row['peak_gb']:.1f}"])


def main():
    what = sys.argv[1] if len(sys.argv) == 2 else None
    if what in REPORTS: means(REPORTS[what])
    elif what == "front": front()
    elif what == "fp8": fp8()
    elif what == "fusion": fusion_means()
    elif what in ("h200_fusion", "h100_fusion"): fusion(what)
    elif what in ("h200_grouped", "h100_grouped"): groups(what)
    elif what in ("h100_linear", "h200_linear"): linear(what)
    elif what in ("h200_torch_linear", "h100_torch_linear"): torch_linear(what)
    elif what in ("h200_torch_experts", "h100_torch_experts"): torch_experts(what)
    elif what in ("h200_models", "h100_models"): models(what[:4])
    elif what in ("h200_models_by_m", "h100_models_by_m"): models_by_m(what[:4])
    elif what in ("h200_models_worst", "h100_models_worst"): models_worst(what[:4])
    elif what in ("h200_ffn", "h100_ffn"): layers(what)
    elif what in ("h100_model", "h100_model_static", "h100_model_compiled"): model(what)
    elif any(what in gpus for gpus in REPORTS.values()): problems(what)
    else: sys.exit(__doc__)


if __name__ == "__main__": main()
