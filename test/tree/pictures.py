#!/usr/bin/env python3
"""pictures.py -- the pictures of speed that are committed beside the reports in bench/results: is each what its script
draws of its report now, and does each mark stand where the report's times put it? The second is computed here anew."""
import copy
import json
import math
import pathlib
import re
import statistics
import sys

sys.dont_write_bytecode = True
from pages import ROOT

sys.path.insert(0, str(ROOT / "bench"))
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


def main():
    for path in sorted(RESULTS.glob("*.svg")):
        report, picture = json.loads(path.with_suffix(".json").read_text()), path.read_text(encoding="utf-8")
        if speed_up.picture(report) != picture:
            sys.exit(f"pictures.py: {path.name} is not what bench/speed_up.py draws; `make pages` writes it anew")
        changed = copy.deepcopy(report)
        changed["results"][0]["graph"]["median_us"] *= 1.5
        if speed_up.picture(changed) == picture: sys.exit(f"pictures.py: {path.name} does not depend on its report")
        for other, name in CALLED.items():
            drawn, expected = marks(picture, other), means(report, name)
            near = len(drawn) == len(expected) and all(abs(a - b) < 0.01 for a, b in zip(drawn, expected))
            if not near: sys.exit(f"pictures.py: {path.name}: {other} stands at {drawn}, its times say {expected}")
    if sorted(path.stem for path in RESULTS.glob("*.svg")) != sorted(speed_up.PICTURES):
        sys.exit("pictures.py: bench/results has other pictures than bench/speed_up.py draws")


if __name__ == "__main__":
    main()
