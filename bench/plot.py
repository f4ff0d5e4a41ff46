#!/usr/bin/env python3
"""plot.py -- pictures of a report of dualgemm_bench --json, as SVG.

    plot.py REPORT.json FOLDER

roofline.svg  operations per second against operations per byte: the shapes of the report, published kernels, two roofs
rows.svg      time against M for the N and K that have the most rows, with the range of the times
others.svg    how many times faster than others the library is, against M, by speed_up.py
parts.svg     where the microseconds of one launch go, by the cost model

Needs matplotlib; without it the status is 77 and a line says how to get it. `make plot` does all of that.
"""
import json
import pathlib
import sys

import speed_up

SCHEMA = 1
PARTS = [("launch", "launch: gap, prologue, drain"), ("first_copies", "first copies"), ("tensor_core", "tensor core"),
         ("waiting", "waiting: bytes, epilogues between tiles"), ("exchange", "exchange between slices of K"),
         ("epilogue", "last epilogue")]
# A long launch beside short ones would hide their parts.
LONGEST, MOST_BARS = 5, 20
TOO_FEW = "not drawn, the report has too few shapes for it"


def pyplot():
    try:
        import matplotlib
    except ImportError:
        print("plot.py: no matplotlib: `make plot` installs it, or apt install python3-matplotlib", file=sys.stderr)
        sys.exit(77)
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "dualgemm"  # the same report gives the same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # text is text, and the file small
    import matplotlib.pyplot
    return matplotlib.pyplot


def read(path):
    try:
        report = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        sys.exit(f"plot.py: {path}: {error.strerror}")
    except (ValueError, RecursionError) as error:
        sys.exit(f"plot.py: {path} is no JSON: {error}")
    if not isinstance(report, dict): sys.exit(f"plot.py: {path} is no report of dualgemm_bench --json")
    if report.get("schema") != SCHEMA: sys.exit(f"plot.py: {path} has schema {report.get('schema')}, not {SCHEMA}")
    results = report.get("results")
    if not isinstance(results, list) or not all(isinstance(row, dict) for row in results):
        sys.exit(f"plot.py: {path} is no report of dualgemm_bench --json: it has no results")
    rows = [row for row in results if "us" in row]
    if not rows: sys.exit(f"plot.py: {path} has no times of the library")
    return report, rows


def shape(row):
    size = f"{row['m']} x {row['n']} x {row['k']}"
    if row["mode"] != "none": return f"{row['problems']} groups, {size}"
    return f"{row['problems']} of {size}" if row["problems"] > 1 else size


def times(report):
    """What every title says of the times."""
    return f"{report['times'].upper()}, {report['device']['name']}"


def span(row):
    """The lowest and the highest time of a row: what is modelled with constants at their ends, or measured."""
    if "stream" in row: return row["stream"]["p10_us"], row["stream"]["p90_us"]
    return row["modelled"]["low_us"], row["modelled"]["high_us"]


def point(row):
    """Operations per byte, and tera-operations per second."""
    return row["flops"] / row["dram_bytes"], row["flops"] / row["us"] * 1e-6


def roofline(plt, report, rows):
    figure, axes = plt.subplots(figsize=(9, 6))
    roofs = report["device"]["roofs"]
    peak, rate = 1e3 * roofs["tensor_pflop_per_s"], roofs["dram_tb_per_s"]
    points = [point(row) for row in rows]
    left, right = min(x for x, _ in points) / 2, max(max(x for x, _ in points) * 2, 4 * peak / rate)
    axes.plot([left, peak / rate, right], [left * rate, peak, peak], color="black",
              label=f"roofs: {rate:.2f} TB/s of DRAM pins, {peak:.0f} TFLOP/s of NVFP4")
    axes.scatter(*zip(*points), s=28, color="tab:blue", label=f"libdualgemm, {report['times']}", zorder=3)
    published = report.get("published", [])
    kernels = sorted({row["kernel"] for row in published})
    for kernel, marker in zip(kernels, "sDv^P*X"):
        of_kernel = [point(row) for row in published if row["kernel"] == kernel]
        axes.scatter(*zip(*of_kernel), s=34, marker=marker, facecolors="none", edgecolors="tab:red",
                     label=f"{kernel}: published, on a B200", zorder=3)
    axes.set(xscale="log", yscale="log", xlabel="operations per byte of DRAM", ylabel="TFLOP/s",
             title=f"Roofline. {times(report)}")
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize="small", loc="lower right")
    return figure


def rows_axis(axes, ms):
    """M in powers of two."""
    axes.set_xscale("log", base=2)
    powers = [m for m in ms if m & (m - 1) == 0]
    axes.set_xticks(powers, [str(m) for m in powers])


def against_rows(plt, report, rows):
    weights = {}
    for row in rows:
        if row["mode"] == "none" and row["problems"] == 1:
            weights.setdefault((row["n"], row["k"]), {})[row["m"]] = row
    if not weights: return None
    (n, k), by_m = max(weights.items(), key=lambda item: len(item[1]))
    if len(by_m) < 3: return None
    ms = sorted(by_m)
    figure, axes = plt.subplots(figsize=(9, 6))
    low, high = zip(*(span(by_m[m]) for m in ms))
    measured = report["times"] == "measured"
    axes.fill_between(ms, low, high, alpha=0.25,
                      label="10th to 90th percentile" if measured else "with one constant of the model at either end")
    axes.plot(ms, [by_m[m]["us"] for m in ms], marker="o", label=f"libdualgemm, {report['times']}")
    if measured:
        axes.plot(ms, [by_m[m]["modelled"]["us"] for m in ms], linestyle="--", label="modelled")
    theirs = [row for row in report.get("published", []) if (row["n"], row["k"]) == (n, k)]
    for kernel, marker in zip(sorted({row["kernel"] for row in theirs}), "sDv^P*X"):
        axes.scatter(*zip(*((row["m"], row["us"]) for row in theirs if row["kernel"] == kernel)), marker=marker,
                     facecolors="none", edgecolors="tab:red", label=f"{kernel}: published, on a B200", zorder=3)
    axes.set(yscale="log", xlabel="M", ylabel="us from launch to launch",
             title=f"Time against M, N = {n}, K = {k}. {times(report)}")
    rows_axis(axes, ms)
    for which in axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter: which("{x:.0f}")
    axes.grid(True, which="both", alpha=0.25)
    axes.legend(fontsize="small")
    return figure


def parts(plt, report, rows):
    modelled = {shape(row): row for row in rows if "modelled" in row}
    if not modelled: return None
    shortest = min(row["modelled"]["us"] for row in modelled.values())
    bars = [(name, row) for name, row in modelled.items() if row["modelled"]["us"] <= LONGEST * shortest][:MOST_BARS]
    figure, axes = plt.subplots(figsize=(9, 2.2 + 0.3 * len(bars)))
    names, left = [name for name, _ in bars], [0.0] * len(bars)
    for key, label in PARTS:
        widths = [row["modelled"]["parts_us"][key] for _, row in bars]
        axes.barh(names, widths, left=left, label=label)
        left = [a + b for a, b in zip(left, widths)]
    axes.invert_yaxis()
    device = report["device"]["name"]
    axes.set(xlabel="us", title=f"Where the microseconds of one launch go. MODELLED, {device}")
    axes.grid(True, axis="x", alpha=0.25)
    below = -0.6 / figure.get_figheight() - 0.04
    axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, below), ncol=3)
    return figure


def main():
    if len(sys.argv) != 3: sys.exit(__doc__)
    report, rows = read(sys.argv[1])
    plt = pyplot()
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in {"roofline": roofline, "rows": against_rows, "parts": parts}.items():
        figure = draw(plt, report, rows)
        if figure is None:
            print(f"{name}.svg: {TOO_FEW}")
            continue
        figure.tight_layout()
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)
        print(folder / f"{name}.svg")
    if picture := speed_up.picture(report):
        (folder / "others.svg").write_text(picture, encoding="utf-8")
        print(folder / "others.svg")
    else: print(f"others.svg: {TOO_FEW}")


if __name__ == "__main__":
    main()
