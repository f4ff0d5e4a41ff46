#!/usr/bin/env python3
"""scale_factors.py -- draws the layout of scale factors, from the formula of host/FORMATS.md. Every place
and every number in the drawing is one that `offset` returns; a test compares `offset` with dualgemm_sf_offset.

    scale_factors.py        writes scale_factors.svg beside itself (`make pages` does)
"""
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
ROWS, K = 300, 176  # the matrix that is drawn: three blocks of 128 rows, three atoms along K, padding at both ends

# Colours are those of the reader's theme. The drawing has a ground of its own, so that it is readable on any page.
COLOURS = {
    "light": dict(ground="#ffffff", ink="#1f2328", faint="#59636e", line="#8c959f",
                  q=("#b6e3ff", "#aceebb", "#fae17d", "#ffd8b5")),
    "dark": dict(ground="#0d1117", ink="#f0f6fc", faint="#b1bac4", line="#656c76",
                 q=("#0b4a8f", "#0f5323", "#693e00", "#762d0a")),
}


def colours(theme):
    rules = [f"text {{ fill: {theme['ink']}; }} .faint {{ fill: {theme['faint']}; }}",
             f".ground {{ fill: {theme['ground']}; }} .cell, .hatch {{ stroke: {theme['line']}; }}",
             f".order {{ stroke: {theme['faint']}; }}"]
    return "\n".join(rules + [f".q{i} {{ fill: {colour}; }}" for i, colour in enumerate(theme["q"])])


STYLE = f"""
svg {{ font: 13px sans-serif; }} .head {{ font-weight: bold; }} .small {{ font-size: 11px; }}
.mid {{ text-anchor: middle; }} .end {{ text-anchor: end; }}
.cell, .order {{ fill: none; }} .pad {{ fill: url(#hatch); }}
{colours(COLOURS["light"])}
@media (prefers-color-scheme: dark) {{
{colours(COLOURS["dark"])}
}}
"""


def padded_factors(k):
    """P of the formula: the factors of a row, up to the end of its last atom."""
    return 4 * -(-k // 64)


def offset(k, row, factor):
    """The byte of a factor in the buffer."""
    return (row // 128 * 128 * padded_factors(k) + factor // 4 * 512 + row % 32 * 16 + row % 128 // 32 * 4 + factor % 4)


def text(x, y, words, kind=""):
    return f'<text x="{x}" y="{y}" class="{kind}">{words}</text>'


def box(x, y, width, height, kind="cell"):
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" class="{kind}"/>'


def matrix(left, top, wide=92, high=96):
    """The atoms of the whole matrix, each with its first byte, in the order in which they lie in memory."""
    blocks, atoms = -(-ROWS // 128), padded_factors(K) // 4
    out = [text(left, top - 46, f"{ROWS} rows, K = {K}: the order of atoms", "head")]
    for atom in range(atoms):
        out += [text(left + (atom + 0.5) * wide, top - 22, f"factors {4 * atom}-{4 * atom + 3}", "mid"),
                text(left + (atom + 0.5) * wide, top - 7, f"k {64 * atom}-{64 * atom + 63}", "mid faint")]
    # Padding: factors beyond the last of a row, rows beyond the last one.
    spare_factors, spare_rows = padded_factors(K) - K // 16, 128 * blocks - ROWS
    right, bottom = left + atoms * wide, top + blocks * high
    out += [box(right - wide * spare_factors / 4, top, wide * spare_factors / 4, blocks * high, "pad"),
            box(left, bottom - high * spare_rows / 128, atoms * wide, high * spare_rows / 128, "pad")]
    places = sorted((offset(K, 128 * block, 4 * atom), block, atom) for block in range(blocks) for atom in range(atoms))
    centres = []
    for byte, block, atom in places:
        x, y = left + atom * wide, top + block * high
        out += [box(x, y, wide, high), text(x + wide / 2, y + 22, f"byte {byte}", "mid")]
        centres.append(f"{x + wide / 2:g},{y + 38:g}")
    out.append(f'<polyline points="{" ".join(centres)}" class="order" marker-end="url(#tip)"/>')
    for block in range(blocks):
        out += [text(left - 8, top + block * high + 26, "rows", "end faint"),
                text(left - 8, top + block * high + 42, f"{128 * block}-{128 * block + 127}", "end")]
    return out + [text(left, bottom + 20, f"hatched: factors from {K // 16} on are zero,", "faint"),
                  text(left, bottom + 36, f"rows from {ROWS} on may hold anything", "faint")]


def atom_as_matrix(left, top, wide=30, high=72):
    """One atom as 128 rows of 4 factors, in four quarters of 32 rows."""
    out = [text(left, top - 46, "one atom", "head")]
    out += [text(left + (factor + 0.5) * wide, top - 7, factor, "mid") for factor in range(4)]
    out.append(text(left + 2 * wide, top - 22, "factor", "mid faint"))
    for quarter in range(4):
        y = top + quarter * high
        out += [box(left, y, 4 * wide, high, f"cell q{quarter}"),
                text(left + 2 * wide, y + high / 2 + 4, f"rows {32 * quarter}-{32 * quarter + 31}", "mid")]
    return out


def atom_in_memory(left, top, wide=34, high=40):
    """The same as 32 lines of 16 bytes: row r of each quarter, four factors of each."""
    drawn = [0, 1, 2, None, 31]
    out = [text(left, top - 46, "the same in memory: 32 lines of 16 bytes", "head"),
           text(left, top - 22, "a cell is a byte: its number, and below it its factor", "faint")]
    for at, line in enumerate(drawn):
        if line is None:
            out.append(text(left + 8 * wide, top + at * high + high / 2, "...", "mid"))
            continue
        for quarter in range(4):
            row = line + 32 * quarter
            for factor in range(4):
                byte = offset(64, row, factor)
                x, y = left + byte % 16 * wide, top + drawn.index(byte // 16) * high
                out += [box(x, y, wide, high, f"cell q{quarter}"), text(x + wide / 2, y + 16, byte, "mid"),
                        text(x + wide / 2, y + 33, f"{row}.{factor}", "mid faint small")]
    below = top + len(drawn) * high
    return out + [text(left, below + 20, "row.factor: four factors of a row, then of the row 32 further on", "faint")]


def drawing():
    width, height = 1120, 440
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
             "<title>The layout of scale factors in 128x4 atoms</title>", f"<style>{STYLE}</style>", "<defs>",
             '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
             '<line x1="0" y1="0" x2="0" y2="6" class="hatch"/></pattern>',
             '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
             '<path d="M0 0 L8 4 L0 8" class="order"/></marker>', "</defs>", box(0, 0, width, height, "ground")]
    parts += ["".join(part) for part in (matrix(88, 76), atom_as_matrix(410, 76), atom_in_memory(566, 76))]
    parts += [text(566, 336, "offset(r, b) = (r/128)*128*P + (b/4)*512 + (r%32)*16 + ((r%128)/32)*4 + b%4"),
              text(566, 358, "P = 4*ceil(K/64)")]
    return "\n".join(parts + ["</svg>", ""])


if __name__ == "__main__":
    (HERE / "scale_factors.svg").write_text(drawing(), encoding="utf-8")
