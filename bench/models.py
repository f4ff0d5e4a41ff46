#!/usr/bin/env python3
"""models.py -- draws how many times faster than cuBLASLt the library computes linear layers of published models, one
mark for each problem of the suites models-*, against M and against the size of the weights. Like speed_up.py it needs
no matplotlib, and a test compares the committed pictures with the committed reports.

    models.py          writes h100_models.svg and h200_models.svg beside their reports in results/ (`make pages` does)
"""
import math

import hopper
from speed_up import STYLE, line, text

# The panels from top to bottom; of each the two reports, by what follows the name of the GPU.
PANELS = {"gate and up: two products": ("models_gate_up", "models_gate_up_bf16"),
          "qkv, o and down: one product": ("models_linear", "models_linear_bf16")}
# The series of a panel against M, and of one against the weights: few rows, whose weights are what takes time, and
# many. The first of each has round marks, the second square ones.
SERIES = {"M": ("A in NVFP4", "A in bf16"), "weights": ("M below 128", "M from 128 on")}
MANY = 128
WIDTH, HEIGHT = 820, 830
COLUMNS = {"M": (60, 415), "weights": (465, 800)}  # from left to right
TOPS, PANEL = (142, 504), 260
TICKS = {"M": {4 ** i: str(4 ** i) for i in range(7)},
         "weights": {1e6 * 4 ** i: f"{4 ** i}M" if i >= 0 else f"{4.0 ** i:g}M" for i in range(-1, 5)}}
CALLED = {"M": "M: tokens, rows of A", "weights": "weights of one product: N K"}
MARKS = """
.dots { fill: none; stroke-width: 5.5; stroke-opacity: 0.6; }
.round { stroke-linecap: round; } .square { stroke-linecap: square; stroke-width: 4.5; }
.slower { stroke-width: 2; }
"""


def reports_of(name):
    """The names of the reports that a picture is drawn of."""
    return [f"{name.removesuffix('models')}{report}" for pair in PANELS.values() for report in pair]


PICTURES = ("h100_models", "h200_models")


def points(report):
    """(M, weights, times faster) of each problem."""
    return [(row["m"], row["n"] * row["k"], hopper.ratios(row)["cuBLASLt"])
            for row in hopper.timed_rows(report["results"])]


class Panel:
    """Both scales are logarithmic. The vertical one has whole half octaves, and 1 among them."""

    def __init__(self, top, column, known, ratios):
        self.top, (self.left, self.right) = top, COLUMNS[column]
        self.column, self.first, self.last = column, math.log2(min(known)) - 0.3, math.log2(max(known)) + 0.3
        self.low = math.floor(2 * math.log2(min(*ratios, 0.99))) / 2
        self.high = math.ceil(2 * math.log2(max(*ratios, 1.01))) / 2

    def x(self, value):
        share = (math.log2(value) - self.first) / (self.last - self.first)
        return round(self.left + share * (self.right - self.left), 1)

    def y(self, ratio):
        return round(self.top + PANEL - (math.log2(ratio) - self.low) / (self.high - self.low) * PANEL, 1)

    def axes(self):
        steps = [2 ** (step / 2) for step in range(round(2 * self.low), round(2 * self.high) + 1)]
        out = [line(self.left, self.y(step), self.right, self.y(step), "equal slower" if step == 1 else "grid")
               for step in steps]
        out += [text(self.left - 6, self.y(step) + 5, f"{step:.2g}", "end faint") for step in steps]
        ticks = {value: name for value, name in TICKS[self.column].items()
                 if self.first <= math.log2(value) <= self.last}
        out += [text(self.x(value), self.top + PANEL + 18, name, "mid faint") for value, name in ticks.items()]
        return out + [text((self.left + self.right) / 2, self.top + PANEL + 38, CALLED[self.column], "mid")]

    def drawn(self, form, colour, marks):
        """A mark for each problem, and a line through the geometric means over a problem's neighbours: those of the
        same M, or of weights of the same power of two."""
        dots = "".join(f"M{self.x(value):g} {self.y(ratio):g}h.1" for value, ratio in marks)
        near = {}
        for value, ratio in marks:
            place = value if self.column == "M" else 2 ** round(math.log2(value))
            near.setdefault(place, []).append(ratio)
        first, last = 2 ** self.first, 2 ** self.last
        path = " ".join(f"{self.x(min(max(value, first), last)):g},{self.y(hopper.geometric_mean(near[value])):g}"
                        for value in sorted(near))
        return [f'<path d="{dots}" class="dots {form} line{colour}"/>',
                f'<polyline points="{path}" class="line{colour}"/>']


def picture(*reports):
    """The picture of four reports, in the order of reports_of, as SVG."""
    known = [points(report) for report in reports]
    device = reports[0]["device"]["name"].removeprefix("NVIDIA ")
    title = f"Linear layers of 25 models on an {device}: times faster than cuBLASLt"
    what = (f"{reports[0]['times'].upper()}: weights NVFP4, a mark for each of {sum(map(len, known))} problems; "
            "operands cold, in a CUDA graph")
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
             f"<title>{title}</title>", f"<style>{STYLE}{MARKS}</style>",
             f'<rect width="{WIDTH}" height="{HEIGHT}" class="ground"/>', text(20, 30, title, "head"),
             text(20, 54, what, "faint"),
             text(20, 76, "lines: geometric means; dashed: equally fast; below it cuBLASLt is faster", "faint")]
    for index, (top, name) in enumerate(zip(TOPS, PANELS)):
        by_a = known[2 * index:2 * index + 2]
        both = by_a[0] + by_a[1]
        by_m = [[entry for entry in both if (entry[0] >= MANY) == many] for many in (False, True)]
        parts.append(text(20, top - 34, name, "name"))
        for place, (column, series) in enumerate(zip(COLUMNS, (by_a, by_m))):
            panel = Panel(top, column, [entry[place] for entry in both], [entry[2] for entry in both])
            parts += panel.axes()
            for which, (called, form) in enumerate(zip(SERIES[column], ("round", "square"))):
                colour = 2 * place + which
                parts.append(text(panel.left + 130 * which, top - 10, called, f"name name{colour}"))
                parts += panel.drawn(form, colour, [(entry[place], entry[2]) for entry in series[which]])
    return "\n".join(parts + ["</svg>", ""])


def main():
    for name in PICTURES:
        drawn = picture(*map(hopper.report, reports_of(name)))
        (hopper.RESULTS / f"{name}.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__": main()
