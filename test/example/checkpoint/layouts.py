"""layouts.py -- the fixtures as they are decoded once more: each format's bytes, names, scales and order of rows. Knows
nothing of the program. Needs Python alone."""
import json
import math
import pathlib
import struct

FIXTURES = pathlib.Path(__file__).parent / "fixtures"
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
E2M1 += [-x for x in E2M1]
E4M3 = [((8 + b % 8) * 2.0 ** (b // 8 - 10) if b > 7 else b * 2.0 ** -9) for b in range(127)]


def locate_safetensors(data):
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
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


def comfy(t, stem):
    """The first element has the high nibble, and factors lie in atoms of 128 rows by 4: 32 lines of 4 x 4 bytes."""
    (n, width), codes = t[stem + ".weight"]
    columns, (_, atoms) = width // 8, t[stem + ".weight_scale"]
    factors = bytes(atoms[(row // 128 * -(-columns // 4) + column // 4) * 512 + row % 32 * 16 + row // 32 % 4 * 4 +
                          column % 4] for row in range(n) for column in range(columns))
    a = t.get(stem + ".input_scale")
    return (matrix(((n, width), bytes(b >> 4 | (b & 15) << 4 for b in codes)), ((n, columns), factors)),
            floats(t[stem + ".weight_scale_2"])[0], floats(a)[0] if a else None)


def mxfp4(t, stem, experts, step, rank, columns=lambda row: row):
    """gpt-oss as shipped: of each expert the rows in `step` turns. The largest factor of the rows and columns that a
    rank has becomes 2^8, so its alpha has the rest."""
    codes = [columns([E2M1[b >> shift & 15] for b in row for shift in (0, 4)])
             for row in rows_of(t[stem + "_blocks"][1], math.prod(t[stem + "_blocks"][0][:2]))]
    powers = [columns([byte - 127 for byte in row]) for row in rows_of(t[stem + "_scales"][1], len(codes))]
    bias = bf16(t[stem + "_bias"][1])

    def side(rows):
        used = [p for row in rank(rows) for i, p in enumerate(powers[row]) if any(codes[row][32 * i:32 * i + 32])]
        scale = 2.0 ** (max(used) - 8)
        return ([[value * 2.0 ** powers[row][i // 32] / scale for i, value in enumerate(codes[row])] for row in rows],
                scale, None, [bias[row] for row in rows])
    count = len(codes) // experts
    return [[side(range(e * count + first, (e + 1) * count, step)) for first in range(step)] for e in range(experts)]


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


def of_gguf(t, stem):
    return blocks(t[stem + ".weight"]), floats(t[stem + ".scale"])[0], floats(t[stem + ".input_scale"])[0], None


def halves(rows):
    return (rows[:len(rows) // 2], rows[len(rows) // 2:]) if rows else (None, None)


def alternate(rows):
    return (rows[::2], rows[1::2]) if rows else (None, None)


def experts_of(name, rank):
    """What the fixture is: for each expert gate and up, and of each the rows, scale, input scale and bias; `rank` takes
    those rows of a side that a launch has."""
    files = sorted(FIXTURES.glob(name + "*.safetensors"))
    t = {key: value for file in files for key, value in read(file).items()}
    if name in ("modelopt_dense", "modelopt_layer"):
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
    if name == "comfy_marked":
        stem = "layers.0.feed_forward."
        return files, [[(*comfy(t, stem + leaf), None) for leaf in ("w1", "w3")]]
    if name == "comfy_metadata":
        stem = "model.diffusion_model.layers.0.feed_forward."
        return files, [[(*comfy(t, stem + leaf), None) for leaf in ("w1", "w3")]]
    if name == "gpt_oss_mxfp4":
        return files, mxfp4(t, "model.layers.0.mlp.experts.gate_up_proj", 3, 2, rank)
    if name == "gpt_oss_layer":
        return files, mxfp4(t, "model.layers.0.mlp.experts.gate_up_proj", 2, 2, rank)
    if name in ("compressed_dense", "compressed_weights"):
        return files, [pair(compressed, t, "model.layers.0.mlp.")]
    if name == "compressed_experts":
        return files, [pair(compressed, t, f"model.language_model.layers.0.mlp.experts.{e}.") for e in range(3)]
    if name == "compressed_layer":
        return files, [pair(compressed, t, f"model.layers.0.mlp.experts.{e}.") for e in range(2)]
    if name in ("dense_gguf", "layer_gguf"):
        file = FIXTURES / name.replace("_", ".")
        return [file], [[of_gguf(read(file), stem) for stem in ("blk.0.ffn_gate", "blk.0.ffn_up")]]
    if name == "shared_gguf":
        t = read(FIXTURES / "shared.gguf")
        return [FIXTURES / "shared.gguf"], [[(blocks(t[stem + ".weight"]), floats(t[stem + ".scale"])[0], None, None)
                                             for stem in ("blk.0.ffn_gate_shexp", "blk.0.ffn_up_shexp")]]
    assert name == "experts_gguf"
    t = read(FIXTURES / "experts.gguf")
    sides = [zip(rows_of(blocks(t[stem + ".weight"]), 2), floats(t[stem + ".scale"]))
             for stem in ("blk.0.ffn_gate_exps", "blk.0.ffn_up_exps")]
    return [FIXTURES / "experts.gguf"], [[(*side, None, None) for side in expert] for expert in zip(*sides)]


def down_of(name, columns):
    """The down projection of a fixture, as a side of experts_of; `columns` takes of a row what a launch has."""
    if name == "layer_gguf":
        sides = [of_gguf(read(FIXTURES / "layer.gguf"), "blk.0.ffn_down")]
    else:
        t, stem = read(FIXTURES / (name + ".safetensors")), "model.layers.0.mlp."
        if name == "gpt_oss_layer":
            return [side for side, in mxfp4(t, stem + "experts.down_proj", 2, 1, lambda rows: rows, columns)]
        if name == "compressed_layer":
            sides = [(*compressed(t, f"{stem}experts.{e}.down_proj"), None) for e in range(2)]
        else:
            assert name == "modelopt_layer"
            sides = [(*modelopt(t, stem + "down_proj"), None)]
    return [(list(map(columns, rows)), *others) for rows, *others in sides]


def linear_of(name, tensor):
    """One weight of a fixture, by the name of its elements."""
    t, (stem, end) = read(FIXTURES / (name + ".safetensors")), tensor.rsplit(".", 1)
    weight = compressed(t, stem) if end == "weight_packed" else modelopt(t, stem)
    return (*weight, bf16(t[stem + ".bias"][1]) if stem + ".bias" in t else None)
