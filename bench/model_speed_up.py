#!/usr/bin/env python3
"""model_speed_up.py -- draws how many times faster than in bf16 a model decodes with its linear layers in NVFP4, of a
report that torch/model.py --json wrote. Like speed_up.py it needs no matplotlib, and a test compares the committed
picture with the committed report.

    model_speed_up.py  writes h100_model.svg beside its report in results/ (`make pages` does)
"""
import hopper
from speed_up import STYLE, line, text

PICTURES = ("h100_model",)
# Contenders, and which of the style's colours each has.
BARS = {"dualgemm": 0, "vLLM's Marlin (NVFP4)": 1, "Humming": 3}
CALLED = {"qwen3-32b": "Qwen3-32B", "qwen3-8b": "Qwen3-8B"}
WIDTH, LEFT, RIGHT, TOP = 820, 190, 700, 92
BAR, GAP, BELOW = 18, 16, 52


def groups(report):
    """(its name, {contender: times faster}) of each model and number of sequences."""
    out, models = [], {}
    for row in report["results"]: models.setdefault(row["model"], {})[row["contender"]] = row
    for model, rows in models.items():
        for key in sorted(key for key in rows["bf16"] if key.startswith("decode")):
            batch = key.removeprefix("decode").removesuffix("_ms")
            speeds = {name: rows["bf16"][key] / rows[name][key] for name in BARS if name in rows}
            out.append((f"{CALLED[model]}, batch {batch}", speeds))
    return out


def picture(report):
    drawn = groups(report)
    top = 0.5 * (int(2 * max(max(speeds.values()) for _, speeds in drawn)) + 1)
    def x(speed): return round(LEFT + speed * (RIGHT - LEFT) / top, 1)
    y, bars = TOP, []
    for name, speeds in drawn:
        bars.append(text(LEFT - 10, y + BAR * len(speeds) / 2 + 5, name, "end"))
        for contender, speed in speeds.items():
            colour = BARS[contender]
            bars.append(f'<rect x="{LEFT}" y="{y + 2}" width="{x(speed) - LEFT:g}" height="{BAR - 4}" '
                        f'class="mark{colour}"/>')
            bars.append(text(x(speed) + 6, y + BAR - 4, f"{speed:.2f} {contender}", f"name{colour}"))
            y += BAR
        y += GAP
    halves = [step / 2 for step in range(int(2 * top) + 1)]
    grid = [line(x(half), TOP - 6, x(half), y, "equal" if half == 1 else "grid") for half in halves]
    grid += [text(x(half), y + 18, f"{half:g}", "mid faint") for half in halves]
    device = report["device"].removeprefix("NVIDIA ")
    title = f"Decoding on an {device}: times faster than in bf16"
    what = "MEASURED: linear layers in NVFP4, activations in bf16; a step in a CUDA graph, for all contenders"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + BELOW}" role="img">',
        f"<title>{title}</title>", f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{y + BELOW}" class="ground"/>', text(20, 30, title, "head"),
        text(20, 54, what, "faint"), *grid, *bars, text((LEFT + RIGHT) / 2, y + 40, "times faster", "mid"),
        "</svg>", ""])


def main():
    for name in PICTURES:
        (hopper.RESULTS / f"{name}.svg").write_text(picture(hopper.report(name)), encoding="utf-8")


if __name__ == "__main__": main()
