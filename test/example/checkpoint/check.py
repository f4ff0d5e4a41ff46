#!/usr/bin/env python3
"""check.py PROGRAM FOLDER FIXTURE OPTIONS... -- runs from_checkpoint on a fixture and compares what it says and writes
with the fixture as it is decoded here. The program judges its launch with fp64 and a derived bound, but by its own idea
of what the tensors mean. Here that idea is tested: each fixture's layout is written down once more, and C is computed
from activations that were never quantised. Quantisation moves C by a tenth or so; another order of rows, rank, scale or
convention by its whole size. FIXTURE `refused` tries files that are no such checkpoint, `edges` those that nearly are
none. Needs Python alone."""
import itertools
import json
import math
import pathlib
import struct
import subprocess
import sys

PROGRAM, FOLDER, NAME, *OPTIONS = sys.argv[1:]
FIXTURES = pathlib.Path(__file__).parent / "fixtures"
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
E2M1 += [-x for x in E2M1]
E4M3 = [((8 + b % 8) * 2.0 ** (b // 8 - 10) if b > 7 else b * 2.0 ** -9) for b in range(127)]


def option(name, default):
    return int(OPTIONS[OPTIONS.index(name) + 1]) if name in OPTIONS else default


def locate_safetensors(data):
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    return {name: (entry["shape"], slice(*(8 + length + offset for offset in entry["data_offsets"])))
            for name, entry in header.items()}


def locate_gguf(data):
    at = 0

    def take(form):
        nonlocal at
        at += struct.calcsize("<" + form)
        return struct.unpack_from("<" + form, data, at - struct.calcsize("<" + form))

    def string():
        return take(f"{take('Q')[0]}s")[0].decode()

    _, version, tensors, pairs = take("4sIQQ")
    assert version == 3
    for _ in range(pairs):
        string()
        kind, = take("I")
        if kind == 9:  # the fixtures have arrays of strings alone
            for _ in range(take("IQ")[1]):
                string()
        else:
            string() if kind == 8 else take("I")
    entries = []
    for _ in range(tensors):
        name, dimensions = string(), take("I")[0]
        entries.append((name, list(take(f"{dimensions}Q"))[::-1], *take("IQ")))
    begin = -(-at // 32) * 32
    size = {0: lambda count: count * 4, 8: lambda count: count // 32 * 34, 40: lambda count: count // 64 * 36}
    return {name: (shape, slice(begin + offset, begin + offset + size[kind](math.prod(shape))))
            for name, shape, kind, offset in entries}


def located(path):
    """The file, and of each tensor the shape and where in the file it is."""
    data = path.read_bytes()
    return data, (locate_gguf if data[:4] == b"GGUF" else locate_safetensors)(data)


def read(path):
    data, places = located(path)
    return {name: (shape, data[place]) for name, (shape, place) in places.items()}


def floats(tensor):
    return struct.unpack(f"<{len(tensor[1]) // 4}f", tensor[1])


def bf16(data):
    return [struct.unpack("<f", bytes((0, 0)) + data[i:i + 2])[0] for i in range(0, len(data), 2)]


def rows_of(data, count):
    width = len(data) // count
    return [data[i * width:(i + 1) * width] for i in range(count)]


def values(codes, factors):
    """One row."""
    return [E2M1[codes[i // 2] >> i % 2 * 4 & 15] * E4M3[factors[i // 16]] for i in range(2 * len(codes))]


def matrix(elements, factors):
    """All rows, of all experts."""
    count = math.prod(elements[0][:-1])
    return [values(*row) for row in zip(rows_of(elements[1], count), rows_of(factors[1], count))]


def blocks(tensor):
    """All rows of GGUF's."""
    shape, data = tensor
    rows = []
    for row in rows_of(data, math.prod(shape[:-1])):
        rows.append([])
        for block in rows_of(row, len(row) // 36):
            for part in range(4):
                codes = block[4 + part * 8:][:8]
                rows[-1] += [E2M1[c] * E4M3[block[part]] for c in [b & 15 for b in codes] + [b >> 4 for b in codes]]
    return rows


def transposed(tensor):
    (experts, columns, rows), data = tensor
    moved = bytes(data[(e * columns + column) * rows + row] for e in range(experts) for row in range(rows)
                  for column in range(columns))
    return [experts, rows, columns], moved


def modelopt(t, stem):
    return (matrix(t[stem + ".weight"], t[stem + ".weight_scale"]), floats(t[stem + ".weight_scale_2"])[0],
            floats(t[stem + ".input_scale"])[0])


def compressed(t, stem):
    a = t.get(stem + ".input_global_scale")
    return (matrix(t[stem + ".weight_packed"], t[stem + ".weight_scale"]),
            1 / floats(t[stem + ".weight_global_scale"])[0], 1 / floats(a)[0] if a else None)


def pair(linear, t, before):
    return [(*linear(t, before + "gate_proj"), None), (*linear(t, before + "up_proj"), None)]


def fused(t, stem, experts, split, turn=lambda x: x):
    """Experts in one tensor, whose rows `split` takes apart."""
    rows = matrix(turn(t[stem]), turn(t[stem + "_weight_scale"]))
    bias = bf16(t[stem + "_bias"][1]) if stem + "_bias" in t else None
    scales = floats(t[stem + "_weight_scale_2"])[0], floats(t[stem + "_input_scale"])[0]
    return [[(part, *scales, some) for part, some in zip(split(of_one), split(bias_one))]
            for of_one, bias_one in zip(rows_of(rows, experts), rows_of(bias, experts) if bias else [None] * experts)]


def halves(rows):
    return (rows[:len(rows) // 2], rows[len(rows) // 2:]) if rows else (None, None)


def alternate(rows):
    return (rows[::2], rows[1::2]) if rows else (None, None)


def experts_of(name):
    """What the fixture is: for each expert gate and up, and of each the rows, scale, input scale and bias."""
    files = sorted(FIXTURES.glob(name + "*.safetensors"))
    t = {key: value for file in files for key, value in read(file).items()}
    if name == "modelopt_dense":
        return files, [pair(modelopt, t, "model.layers.0.mlp.")]
    if name == "modelopt_fused":
        rows, *scales = modelopt(t, "model.layers.0.mlp.gate_up_proj")
        return files, [[(part, *scales, None) for part in halves(rows)]]
    if name == "modelopt_experts":
        return files, [pair(modelopt, t, f"model.layers.3.mlp.experts.{e}.") for e in range(3)]
    if name == "modelopt_llama4":
        return files, fused(t, "language_model.model.layers.0.feed_forward.experts.gate_up_proj", 2, halves, transposed)
    if name == "modelopt_gpt_oss":
        return files, fused(t, "model.layers.0.mlp.experts.gate_up_proj", 3, alternate)
    if name in ("compressed_dense", "compressed_weights"):
        return files, [pair(compressed, t, "model.layers.0.mlp.")]
    if name == "compressed_experts":
        return files, [pair(compressed, t, f"model.language_model.layers.0.mlp.experts.{e}.") for e in range(3)]
    if name == "dense_gguf":
        t = read(FIXTURES / "dense.gguf")
        return [FIXTURES / "dense.gguf"], [[
            (blocks(t[stem + ".weight"]), floats(t[stem + ".scale"])[0], floats(t[stem + ".input_scale"])[0], None)
            for stem in ("blk.0.ffn_gate", "blk.0.ffn_up")]]
    if name == "shared_gguf":
        t = read(FIXTURES / "shared.gguf")
        return [FIXTURES / "shared.gguf"], [[(blocks(t[stem + ".weight"]), floats(t[stem + ".scale"])[0], None, None)
                                             for stem in ("blk.0.ffn_gate_shexp", "blk.0.ffn_up_shexp")]]
    assert name == "experts_gguf"
    t = read(FIXTURES / "experts.gguf")
    sides = [zip(rows_of(blocks(t[stem + ".weight"]), 2), floats(t[stem + ".scale"]))
             for stem in ("blk.0.ffn_gate_exps", "blk.0.ffn_up_exps")]
    return [FIXTURES / "experts.gguf"], [[(*side, None, None) for side in expert] for expert in zip(*sides)]


def activation(g, u):
    if "--gpt-oss" in OPTIONS:
        g, u = min(g, 7), max(-7, min(u, 7)) + 1
        return g / (1 + math.exp(-1.702 * g)) * u
    return g / (1 + math.exp(-g)) * u


def rank(rows):
    """The part of this rank, of rows or of biases."""
    n = len(rows) // option("--tp-size", 1)
    return rows[option("--tp-rank", 0) * n:][:n]


def outputs(x, expert):
    """C of one row of x."""
    def product(side):
        rows, scale, _, bias = side
        added = rank(bias or [0] * len(rows))
        return [scale * sum(map(float.__mul__, x, row)) + b for row, b in zip(rank(rows), added)]
    return [activation(g, u) for g, u in zip(*map(product, expert))]


def distance(got, expected):
    return math.dist(got, expected) / math.hypot(*expected)


def expect(condition, what):
    if not condition:
        sys.exit("check.py: " + what)


def check_fixture():
    files, experts = experts_of(NAME)
    dump = pathlib.Path(FOLDER) / "".join([NAME, *OPTIONS])
    ran = subprocess.run([PROGRAM, *map(str, files), "--dump", str(dump), *OPTIONS], stdout=subprocess.PIPE, text=True)
    print(ran.stdout)
    said = {line[:12].strip(): line[13:] for line in ran.stdout.splitlines() if line[0] != " "}
    expect(ran.returncode == 0 and said["verdict"].startswith("correct"), "the program's verdict")

    for name, side in (("alpha1", 0), ("alpha2", 1)):
        expected = [e[side][1] * max(e[0][2] or 1, e[1][2] or 1) if e[0][2] else e[side][1] for e in experts]
        got = [float(word) for word in said[name].split()]
        expect(len(got) == len(expected) and all(math.isclose(*two, rel_tol=1e-6) for two in zip(got, expected)),
               f"{name} is {got}, expected {expected}")
    expect(("none: " in said["input scale"]) == (experts[0][0][2] is None), "what it says of the input scale")
    expect(("differ" in said["input scale"]) == any(e[0][2] != e[1][2] for e in experts), "what it says of both")

    first = [int(word) for word in said["rows"].split()]
    k = len(experts[0][0][0][0])
    x, c = (bf16(pathlib.Path(f"{dump}.{part}").read_bytes()) for part in "xc")
    owners = [e for e in range(len(experts)) for _ in range(first[e], first[e + 1])]
    expect(len(x) == len(owners) * k, "the rows do not belong to the experts")
    straight, swapped = ([value for row, e in enumerate(owners)
                          for value in outputs(x[row * k:][:k], experts[e][::order])] for order in (1, -1))
    expect(len(straight) == len(c), f"C has {len(c)} numbers, expected {len(straight)}")
    print(f"C is {distance(c, straight):.3f} from the checkpoint's, {distance(c, swapped):.3f} with gate as up")
    expect(distance(c, straight) < 0.25 and distance(c, swapped) > 0.5, "that is not C")


def file(name, data):
    path = pathlib.Path(FOLDER) / f"{NAME}_{name}"  # tests run side by side
    path.write_bytes(data)
    return path


def one(name, dtype, shape, size):
    header = json.dumps({name: {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}).encode()
    return file("refused.safetensors", struct.pack("<Q", len(header)) + header + bytes(size))


def changed(path, name, at, value):
    """The file with other bytes in one of its tensors."""
    data, places = located(path)
    begin = places[name][1].start + at
    return file("changed" + path.suffix, data[:begin] + value + data[begin + len(value):])


def beside(path, name, dtype, shape, data):
    """The file, and one tensor more behind its others."""
    old = path.read_bytes()
    length, = struct.unpack("<Q", old[:8])
    header, old = json.loads(old[8:8 + length]), old[8 + length:]
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(old), len(old) + len(data)]}
    text = json.dumps(header).encode()
    return file("beside.safetensors", struct.pack("<Q", len(text)) + text + old + data)


def refused():
    """Arguments, and what the program says of them."""
    dense, gguf = FIXTURES / "modelopt_dense.safetensors", FIXTURES / "dense.gguf"
    layer = "model.layers.0.mlp."
    gate = layer + "gate_proj.weight"
    return (
        (lambda: file("cut.safetensors", dense.read_bytes()[:-1]), layer + "up_proj.weight: data_offsets"),
        (lambda: file("cut.safetensors", dense.read_bytes()[:500]), "cut off in its header"),
        (lambda: file("cut.gguf", gguf.read_bytes()[:-1024]), "blk.0.ffn_up.weight: its data reaches outside the file"),
        (lambda: changed(dense, gate + "_scale", 5, b"\xff"),
         gate + "_scale: F8_E4M3 [352, 4] has a factor that is NaN in row 1, columns 16 to 31"),
        (lambda: changed(dense, gate + "_scale", 5, b"\xb8"),
         gate + "_scale: F8_E4M3 [352, 4] has a factor that is negative in row 1, columns 16 to 31"),
        (lambda: changed(gguf, "blk.0.ffn_gate.weight", 36 + 3, b"\xb8"),
         "blk.0.ffn_gate.weight: NVFP4 [24, 128] has a factor that is negative in row 0, columns 112 to 127"),
        (lambda: changed(dense, gate + "_scale_2", 0, struct.pack("<f", 1e30)),
         gate + "_scale_2: F32 [] is 1.00000002e+30, which is no scale"),
        (lambda: beside(dense, layer + "up_proj.pre_quant_scale", "BF16", [64], bytes((0x80, 0x3F)) * 64),
         layer + "up_proj.pre_quant_scale: BF16 [64] is AWQ's: activations would have to be multiplied"),
        (lambda: [FIXTURES / "shared.gguf", "--gate", "blk.0.ffn_gate_exps.weight"],
         "blk.0.ffn_gate_exps.weight: Q8_0 [2, 8, 64] is ggml's type 8: of a GGUF's weights NVFP4 alone is read"),
        (lambda: file("empty", b""), "too short"),
        (lambda: FIXTURES / "none.safetensors", "No such file"),
        (lambda: FIXTURES / "modelopt_experts-1-of-2.safetensors",
         "model.layers.3.mlp.experts.0.up_proj.weight: is missing"),
        (lambda: FIXTURES / "modelopt_experts-2-of-2.safetensors",
         "model.layers.3.mlp.experts.0.up_proj.input_scale: F32 [] is the first of 12 tensors"),
        (lambda: one(gate, "F8_E4M3", [16, 64], 1024), gate + ": F8_E4M3 [16, 64] is not NVFP4"),
        (lambda: one(gate, "BF16", [16, 64], 2048), gate + ": BF16 [16, 64] is not NVFP4"),
        (lambda: one(layer + "experts.gate_up_proj_blocks", "U8", [2, 32, 2, 16], 2048),
         layer + "experts.gate_up_proj_blocks: U8 [2, 32, 2, 16] belongs to no"))


def check_refused():
    for make, expected in refused():
        made = make()
        arguments = made if isinstance(made, list) else [made]
        ran = subprocess.run([PROGRAM, *map(str, arguments)], stderr=subprocess.PIPE, text=True)
        print(ran.stderr, end="")
        expect(ran.returncode == 1 and expected in ran.stderr, f"{arguments} is not refused with: {expected}")


def check_edges():
    """Scales at either end of what is taken, a row without weights, and a factor that is the other zero."""
    dense = FIXTURES / "modelopt_dense.safetensors"
    stems = [f"model.layers.0.mlp.{name}." for name in ("gate_proj", "up_proj")]
    for weight, a in itertools.product((2 ** -41, 2 ** 18), (2 ** -41, 2 ** -10, 2 ** 18)):
        path = dense
        for stem in stems:
            path = changed(path, stem + "weight_scale_2", 0, struct.pack("<f", weight))
            path = changed(path, stem + "input_scale", 0, struct.pack("<f", a))
        path = changed(path, stems[0] + "weight_scale", 3 * 4, bytes((0, 0, 0x80, 0)))
        ran = subprocess.run([PROGRAM, str(path)], stdout=subprocess.PIPE, text=True)
        print(weight, a, ran.stdout, sep="\n")
        expect(ran.returncode == 0 and "verdict      correct" in ran.stdout, f"scales {weight} and {a}")


if __name__ == "__main__":
    if NAME == "edges":
        check_edges()
    elif NAME == "refused":
        check_refused()
    else:
        check_fixture()
