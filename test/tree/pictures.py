#!/usr/bin/env python3
"""pictures.py -- the pictures of speed that are committed beside the reports in bench/results: is each what its script
draws of its report now, and does each mark stand where the report's times put it? The second is computed here anew."""
import copy
import math
import pathlib
import re
import statistics
import sys

sys.dont_write_bytecode = True
from pages import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import hopper
import model_speed_up
import models
import speed_up

RESULTS = ROOT / "bench/results"
# What reports call the others of the pictures; None is the fastest way of cuBLASLt.
CALLED = {"cuBLASLt": None, "vLLM's Marlin": "vLLM Marlin (NVFP4)", "Triton": "Triton 3.6 (NVFP4)",
          "Humming": "Humming (NVFP4)"}
SMALL = 2880  # columns of the weights that stand in tables only


def means(report, name):
    """By M: the geometric mean over the weights of another's time over the library's."""
    logarithms = {}
    for row in report["results"]:
        if row["n"] == SMALL: continue
        others = row["contenders"] if name else row["baselines"]
        times = [other["graph"]["median_us"] for other in others if "graph" in other and other.get("name") == name]
        ratio = min(times, default=None) and math.log(min(times) / row["graph"]["median_us"])
        logarithms.setdefault(row["m"], []).append(ratio)
    present = {m: [ratio for ratio in ratios if ratio is not None] for m, ratios in logarithms.items()}
    return [math.exp(statistics.mean(present[m])) for m in sorted(present)]


def marks(picture, other):
    """The heights of another's marks from left to right, read by the numbers beside the vertical axis."""
    index = re.search(rf'class="name name(\d)">{re.escape(other)}<', picture)[1]
    heights = [float(y) for y in re.findall(rf'<g transform="translate\(\S+ (\S+)\)" class="mark{index}">', picture)]
    labels = re.findall(r'<text x="\S+" y="(\S+)" class="end faint">(\d\S*)</text>', picture)
    (zero, one), (upper, value) = [(float(y), float(label)) for y, label in (labels[0], labels[-1])]
    return [one + (value - one) * (y + 5 - zero) / (upper - zero) for y in heights]  # a label stands 5 below its line


def check_marks(name, report, picture):
    for other, called in CALLED.items():
        drawn, expected = marks(picture, other), means(report, called)
        near = len(drawn) == len(expected) and all(abs(a - b) < 0.01 for a, b in zip(drawn, expected))
        if not near: sys.exit(f"pictures.py: {name}: {other} stands at {drawn}, its times say {expected}")


def check_bars(name, report, picture):
    """The lengths of the bars, read by the numbers below the horizontal axis, and the numbers beside them."""
    labels = [(float(x), float(label)) for x, label in
              re.findall(r'<text x="(\S+)" y="\S+" class="mid faint">(\S+)</text>', picture)]
    (zero, _), (last, value) = labels[0], labels[-1]
    widths = re.findall(r'<rect x="\d+" y="\S+" width="(\S+)"', picture)
    drawn = [float(width) / (last - zero) * value for width in widths]
    written = [float(number) for number in re.findall(r'class="name\d">(\S+) ', picture)]
    rows = {(row["model"], row["contender"]): row for row in report["results"]}
    models, names = dict.fromkeys(model for model, _ in rows), ("dualgemm", "vLLM's Marlin (NVFP4)", "Humming")
    expected = [rows[model, "bf16"][key] / rows[model, contender][key] for model in models
                for key in ("decode1_ms", "decode8_ms") for contender in names]
    for read in (drawn, written):
        if len(read) != len(expected) or any(abs(a - b) > 0.01 for a, b in zip(read, expected)):
            sys.exit(f"pictures.py: {name} says {read}, its times say {expected}")


def check_dots(name, *reports_and_picture):
    """Both coordinates of every mark, read by the numbers beside and below the axes of its panel; without regard for
    the two series of a panel."""
    *reports, picture = reports_and_picture
    labels = [(float(x), float(y), word) for x, y, word in
              re.findall(r'<text x="(\S+)" y="(\S+)" class="(?:end|mid) faint">([^<]+)</text>', picture)]
    paths = re.findall(r'<path d="([^"]+)" class="dots', picture)
    for panel in range(4):
        left, top = (0, 455)[panel % 2], (0, 480)[panel // 2]
        of = [(x, y, word) for x, y, word in labels if left <= x < left + 420 and top <= y < top + 480 - 40]
        ratios = [(math.log2(float(word)), y - 5) for x, y, word in of if x == min(of)[0]]
        sizes = [(math.log2(float(word.rstrip("M")) * (1e6 if "M" in word else 1)), x) for x, y, word in of
                 if y == max(y for _, y, _ in of)]
        def read(place, known):
            (low, begin), (high, end) = min(known), max(known)
            return low + (place - begin) / (end - begin) * (high - low)
        marks = [mark for path in paths[2 * panel:2 * panel + 2] for mark in re.findall(r"M(\S+) (\S+?)h", path)]
        drawn = [(read(float(x), sizes), read(float(y), ratios)) for x, y in marks]
        rows = [row for report in reports[panel // 2 * 2:panel // 2 * 2 + 2] for row in report["results"]]
        expected = [(math.log2(row["n"] * row["k"] if panel % 2 else row["m"]),
                     math.log2(min(way["graph"]["median_us"] for way in row["baselines"]) / row["graph"]["median_us"]))
                    for row in rows]
        def among(point, points): return any(abs(point[0] - x) < 0.05 and abs(point[1] - y) < 0.03 for x, y in points)
        near = (all(among(point, drawn) for point in expected) and all(among(point, expected) for point in drawn))
        if not near or len(drawn) != len(expected):
            sys.exit(f"pictures.py: {name}: panel {panel} is not what its times say")


def faster(report):
    """The same report with one time halved."""
    changed = copy.deepcopy(report)
    row = changed["results"][1]
    if "graph" in row: row["graph"]["median_us"] /= 2
    else: row["decode1_ms"] /= 2
    return changed


def main():
    kinds = {**{name: (speed_up, check_marks, [name]) for name in speed_up.PICTURES},
             **{name: (model_speed_up, check_bars, [name]) for name in model_speed_up.PICTURES},
             **{name: (models, check_dots, models.reports_of(name)) for name in models.PICTURES}}
    for path in sorted(RESULTS.glob("*.svg")):
        if path.stem not in kinds: sys.exit(f"pictures.py: {path.name} is drawn by no script of bench/")
        script, check, names = kinds[path.stem]
        reports, picture = [hopper.report(name) for name in names], path.read_text(encoding="utf-8")
        if script.picture(*reports) != picture:
            sys.exit(f"pictures.py: {path.name} is not what {script.__name__}.py draws; `make pages` writes it anew")
        for index, report in enumerate(reports):
            changed = [*reports[:index], faster(report), *reports[index + 1:]]
            if script.picture(*changed) == picture:
                sys.exit(f"pictures.py: {path.name} does not hang on {names[index]}")
        check(path.name, *reports, picture)
    # Telephones get narrow ones, which are not committed.
    for name in speed_up.PICTURES:
        check_marks(f"{name}, narrow", hopper.report(name), speed_up.picture(hopper.report(name), speed_up.NARROW))
    # models.py draws any reports beside cuBLASLt's: here of other suites.
    reports = [hopper.report(name) for name in ("h100", "h100_fp16", "h100_linear", "h100_linear")]
    check_dots("models.py", *reports, models.picture(*reports))
    missing = kinds.keys() - {path.stem for path in RESULTS.glob("*.svg")}
    if missing: sys.exit(f"pictures.py: bench/results lacks {', '.join(sorted(missing))}")


if __name__ == "__main__":
    main()
