#!/usr/bin/env python3
"""speed_up.py -- draws how many times faster than others the library is, against M, of a report that --json wrote on a
Hopper GPU. The numbers are the means of hopper.py. It needs no matplotlib, so the same report gives the same file, and
a test compares the committed pictures with the committed reports.

    speed_up.py        writes h100.svg and h200.svg beside their reports in results/ (`make pages` does)
"""
from typing import NamedTuple

import hopper

PICTURES = ("h100", "h200")
# A mark for each of the others besides its colour. Marlin with INT4 weights is left to the tables: it multiplies other
# numbers.
MARKS = {"cuBLASLt": '<circle r="4"/>', "vLLM's Marlin": '<rect x="-4" y="-4" width="8" height="8"/>',
         "Triton": '<path d="M0 -5 L5 4 L-5 4 Z"/>', "Humming": '<path d="M0 -6 L5 0 L0 6 L-5 0 Z"/>'}

# Colours are those of the reader's theme. The picture has a ground of its own, so that it is readable on any page.
COLOURS = {
    "light": dict(ground="#ffffff", ink="#1f2328", faint="#59636e", grid="#d1d9e0",
                  lines=("#0969da", "#bc4c00", "#1a7f37", "#8250df")),
    "dark": dict(ground="#0d1117", ink="#f0f6fc", faint="#b1bac4", grid="#3d444d",
                 lines=("#58a6ff", "#ffa657", "#56d364", "#d2a8ff")),
}
APART = 18  # the least distance between two names beside the ends of their lines


class Layout(NamedTuple):
    width: int
    height: int
    left: int  # the four sides of the plot
    right: int
    top: int
    bottom: int
    beside: bool  # the names of the others stand beside the ends of their lines, else below the plot

    def lines(self, words, mark):
        """A heading, which a narrow picture breaks behind these marks."""
        return [words] if self.beside else words.replace(mark + " ", mark + "\n").split("\n")


WIDE = Layout(820, 420, 70, 690, 78, 360, True)
SMALL = ".small { font-size: 11px; }\n"
NARROW = Layout(400, 520, 52, 394, 150, 410, False)  # for a telephone


def colours(theme):
    rules = [f"text {{ fill: {theme['ink']}; }} .faint {{ fill: {theme['faint']}; }}",
             f".ground {{ fill: {theme['ground']}; }} .grid {{ stroke: {theme['grid']}; }}",
             f".equal {{ stroke: {theme['faint']}; }}"]
    return "\n".join(rules + [f".line{i} {{ stroke: {colour}; }} .mark{i}, .name{i} {{ fill: {colour}; }}"
                              for i, colour in enumerate(theme["lines"])])


STYLE = f"""
svg {{ font: 14px sans-serif; }} .head {{ font-size: 17px; font-weight: bold; }}
.mid {{ text-anchor: middle; }} .end {{ text-anchor: end; }} .name {{ font-weight: bold; }}
polyline {{ fill: none; stroke-width: 2.5; }} .equal {{ stroke-dasharray: 6 4; stroke-width: 1.5; }}
{colours(COLOURS["light"])}
@media (prefers-color-scheme: dark) {{
{colours(COLOURS["dark"])}
}}
"""


def series(report):
    """Of each of the others that the report has: (M, the mean of its times over ours)."""
    rows = [row for row in report["results"] if row["mode"] == "none" and row["problems"] == 1 and "graph" in row
            and any("graph" in way for way in row.get("baselines", []))]
    out = {}
    for other in MARKS:
        means = [(m, hopper.mean(rows, m, other)) for m in sorted({row["m"] for row in rows})]
        if points := [(m, mean) for m, mean in means if mean is not None]: out[other] = points
    return out


def text(x, y, words, kind=""):
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{words}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"/>'


class Axes:
    """Every M that was measured is a step to the right; upwards the scale is linear from 0."""

    def __init__(self, lines, layout):
        self.layout = layout
        self.ms = sorted({m for points in lines.values() for m, _ in points})
        self.top = 0.5 * (int(2 * max(mean for points in lines.values() for _, mean in points)) + 1)

    def x(self, m):
        room = self.layout.right - self.layout.left
        return self.layout.left + 20 + self.ms.index(m) * (room - 30) / (len(self.ms) - 1)

    def y(self, mean):
        return round(self.layout.bottom - mean * (self.layout.bottom - self.layout.top) / self.top, 1)

    def drawn(self):
        _, _, left, right, top, bottom, beside = self.layout
        halves = [step / 2 for step in range(int(2 * self.top) + 1)]
        out = [line(left, self.y(half), right, self.y(half), "equal" if half == 1 else "grid") for half in halves]
        out += [text(left - 8, self.y(half) + 5, f"{half:g}", "end faint") for half in halves]
        out += [text(self.x(m), bottom + 20, m, "mid faint" if beside else "mid faint small") for m in self.ms]
        side = left - 46 if beside else 14
        return out + [text((left + right) / 2, bottom + 44, "M: tokens, rows of A", "mid"),
                      f'<text transform="translate({side} {(top + bottom) / 2:g}) rotate(-90)" class="mid">'
                      "times faster</text>",
                      text(right - 4, self.y(1) + 18, "1: equally fast", "end faint")]

    def names(self, lines):
        """The names of the others, each beside the end of its line or above the name below; or two in a row."""
        out, lowest = [], self.layout.bottom
        if self.layout.beside:
            for other in sorted(lines, key=lambda name: lines[name][-1][1]):
                lowest = min(self.y(lines[other][-1][1]), lowest)
                out.append(text(self.layout.right + 8, lowest + 5, other, f"name name{list(MARKS).index(other)}"))
                lowest -= APART
            return out
        for place, other in enumerate(lines):
            x, y = self.layout.left + 20 + place % 2 * 170, self.layout.bottom + 75 + place // 2 * 24
            index = list(MARKS).index(other)
            out += [f'<g transform="translate({x} {y - 5})" class="name{index}">{MARKS[other]}</g>',
                    text(x + 12, y, other, f"name name{index}")]
        return out


def picture(report, layout=WIDE):
    """The picture as SVG, or None where the report has too few M."""
    lines = series(report)
    if max(map(len, lines.values()), default=0) < 3: return None
    axes, device = Axes(lines, layout), report["device"]["name"].removeprefix("NVIDIA ")
    title = f"libdualgemm on an {device}: times faster than others"
    a_type, b_type = (report.get(name, "nvfp4").upper() for name in ("a_dtype", "b_dtype"))
    what = (f"{report['times'].upper()}: weights {b_type}, A {a_type}, C {report['dtype'].upper()}; geometric means; "
            "operands cold, in a CUDA graph")
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width} {layout.height}" role="img">',
             f"<title>{title}</title>", f"<style>{STYLE}{'' if layout.beside else SMALL}</style>",
             f'<rect width="{layout.width}" height="{layout.height}" class="ground"/>']
    edge = layout.left if layout.beside else 8
    for words, mark, first, kind in ((title, ":", 30, "head"), (what, ";", 54 if layout.beside else 78, "faint")):
        parts += [text(edge, first + 22 * row, part, kind) for row, part in enumerate(layout.lines(words, mark))]
    parts += axes.drawn()
    for other, points in lines.items():
        index, places = list(MARKS).index(other), [(axes.x(m), axes.y(mean)) for m, mean in points]
        path = " ".join(f"{x:g},{y:g}" for x, y in places)
        parts += [f'<polyline points="{path}" class="line{index}"/>']
        parts += [f'<g transform="translate({x:g} {y:g})" class="mark{index}">{MARKS[other]}</g>' for x, y in places]
    return "\n".join(parts + axes.names(lines) + ["</svg>", ""])


def main():
    for name in PICTURES:
        (hopper.RESULTS / f"{name}.svg").write_text(picture(hopper.report(name)), encoding="utf-8")


if __name__ == "__main__": main()
