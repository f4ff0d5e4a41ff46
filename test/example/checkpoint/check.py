#!/usr/bin/env python3
"""check.py PROGRAM FOLDER FIXTURE OPTIONS... -- runs from_checkpoint on a fixture and compares what it says and
writes with the fixture as layouts.py decodes it. The program judges its launch with fp64 and a derived bound, but by
its own idea of what the tensors mean. Here that idea is tested: each fixture's layout is written down once more, and
C is computed from activations that were never quantised. Quantisation moves C by a tenth or so; another order of
rows, rank, scale or convention by its whole size. FIXTURE `refused` tries files that are no such checkpoint, `edges`
those that nearly are none, `equal` the same tensors in other types, names, shapes and files: C is the same bytes.
Needs Python alone."""
import itertools
import json
import math
import pathlib
import re
import shutil
import struct
import subprocess
import sys

from layouts import FIXTURES, bf16, down_of, experts_of, linear_of, located, read, rows_of

PROGRAM, FOLDER, NAME, *OPTIONS = sys.argv[1:]


def option(name, default):
    return int(OPTIONS[OPTIONS.index(name) + 1]) if name in OPTIONS else default


def activation(g, u):
    if "--gpt-oss" in OPTIONS or NAME in ("gpt_oss_mxfp4", "gpt_oss_layer"):  # whose names say it
        g, u = min(g, 7), max(-7, min(u, 7)) + 1
        return g / (1 + math.exp(-1.702 * g)) * u
    return g / (1 + math.exp(-g)) * u


def rank(rows):
    """The part of this rank, of rows, of biases or of columns."""
    n = len(rows) // option("--tp-size", 1)
    return rows[option("--tp-rank", 0) * n:][:n]


def product(x, side, part=rank):
    """One row of x with a weight; `part` takes of its rows those that a launch has."""
    rows, scale, _, bias = side
    return [scale * sum(map(float.__mul__, x, row)) + b for row, b in zip(part(rows), part(bias or [0] * len(rows)))]


def outputs(x, expert):
    """C of one row of x."""
    return [activation(g, u) for g, u in zip(*(product(x, side) for side in expert))]


def distance(got, expected):
    return math.dist(got, expected) / math.hypot(*expected)


def expect(condition, what):
    if not condition:
        sys.exit("check.py: " + what)


def run(files):
    """Of each launch what the program says, and A and C."""
    dump = pathlib.Path(FOLDER) / re.sub(r"\W", "_", " ".join([NAME, *OPTIONS]))
    ran = subprocess.run([PROGRAM, *map(str, files), "--dump", str(dump), *OPTIONS], stdout=subprocess.PIPE, text=True)
    print(ran.stdout)
    said = [{line[:12].strip(): line[13:] for line in part.splitlines() if line[0] != " "}
            for part in ran.stdout.split("\n\n")]
    expect(ran.returncode == 0 and all(one["verdict"].startswith("correct, as read: 0 of ") for one in said),
           "the program's verdict")
    parts = "xc" if len(said) == 1 else ("x", "c", "down")
    return said, [bf16(pathlib.Path(f"{dump}.{part}").read_bytes()) for part in parts]


def check_alpha(said, name, expected):
    got = [float(word) for word in said[name].split()]
    expect(len(got) == len(expected) and all(math.isclose(*two, rel_tol=1e-6) for two in zip(got, expected)),
           f"{name} is {got}, expected {expected}")


def rows_by_expert(said, x, k):
    """Each row of x with its expert."""
    first = [int(word) for word in said["rows"].split()]
    owners = [e for e in range(len(first) - 1) for _ in range(first[e], first[e + 1])]
    expect(len(x) == len(owners) * k, "the rows do not belong to the experts")
    return [(x[row * k:][:k], e) for row, e in enumerate(owners)]


def check_c(c, straight, other, what):
    expect(len(straight) == len(c), f"C has {len(c)} numbers, expected {len(straight)}")
    print(f"C is {distance(c, straight):.3f} from the checkpoint's, {distance(c, other):.3f} with {what}")
    expect(distance(c, straight) < 0.25 and distance(c, other) > 0.5, "that is not C")


def check_mlp(said, experts, x, c):
    for name, side in (("alpha1", 0), ("alpha2", 1)):
        check_alpha(said, name, [e[side][1] * max(e[0][2] or 1, e[1][2] or 1) if e[0][2] else e[side][1]
                                 for e in experts])
    expect(("none: " in said["input scale"]) == (experts[0][0][2] is None), "what it says of the input scale")
    expect(("differ" in said["input scale"]) == any(e[0][2] != e[1][2] for e in experts), "what it says of both")
    rows = rows_by_expert(said, x, len(experts[0][0][0][0]))
    straight, swapped = ([value for row, e in rows for value in outputs(row, experts[e][::order])]
                         for order in (1, -1))
    check_c(c, straight, swapped, "gate as up")


def check_linear(said, weights, x, c, part):
    """One product; of its rows a launch has `part`."""
    expect("alpha2" not in said and "activation" not in said, "of one product there is no second")
    check_alpha(said, "alpha1", [weight[1] * (weight[2] or 1) for weight in weights])
    expect(("none: " in said["input scale"]) == (weights[0][2] is None), "what it says of the input scale")
    rows = rows_by_expert(said, x, len(weights[0][0][0]))
    straight, moved = ([value for row, e in rows for value in product(row[turn:] + row[:turn], weights[e], part)]
                       for turn in (0, 16))
    check_c(c, straight, moved, "K moved by 16")


def first_has_bias(side):
    """Of the ranks that share K."""
    return (*side[:3], None if option("--tp-rank", 0) else side[3])


def check_fixture():
    if "--linear" in OPTIONS:
        weight = linear_of(NAME, OPTIONS[OPTIONS.index("--linear") + 1])
        (said,), (x, c) = run([FIXTURES / (NAME + ".safetensors")])
        if "--cut-k" in OPTIONS:
            check_linear(said, [first_has_bias((list(map(rank, weight[0])), *weight[1:]))], x, c, lambda rows: rows)
        else:
            check_linear(said, [weight], x, c, rank)
        return
    files, experts = experts_of(NAME, rank)
    said, (x, c, *down) = run(files)
    expect(len(said) == 1 + ("--down" in OPTIONS), "how many launches there were")
    check_mlp(said[0], experts, x, c)
    if down:  # multiplies C
        check_linear(said[1], list(map(first_has_bias, down_of(NAME, rank))), c, *down, lambda rows: rows)


def file(name, data):
    path = pathlib.Path(FOLDER) / f"{NAME}_{name}"  # tests run side by side
    path.write_bytes(data)
    return path


def safetensors(name, tensors, **metadata):
    """A file of (dtype, shape, data)."""
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for key, (dtype, shape, data) in tensors.items():
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    return file(name, struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def contents(path):
    """What `safetensors` takes."""
    data, places = located(path)
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    return {name: (header[name]["dtype"], shape, data[place]) for name, (shape, place) in places.items()}


def one(name, dtype, shape, size):
    return safetensors("refused.safetensors", {name: (dtype, shape, bytes(size))})


def changed(path, name, at, value):
    """The file with other bytes in one of its tensors."""
    data, places = located(path)
    begin = places[name][1].start + at
    return file("changed" + path.suffix, data[:begin] + value + data[begin + len(value):])


def beside(path, name, dtype, shape, data, **metadata):
    """The file, and one tensor more."""
    return safetensors("beside.safetensors", contents(path) | {name: (dtype, shape, data)}, **metadata)


def gguf_with(key, text):
    """dense.gguf, and one pair more in front, as long as blanks make it a multiple of the alignment."""
    data = (FIXTURES / "dense.gguf").read_bytes()
    tensors, pairs = struct.unpack_from("<QQ", data, 8)
    text += " " * (-(20 + len(key) + len(text)) % 32)
    pair = struct.pack(f"<Q{len(key)}sIQ{len(text)}s", len(key), key.encode(), 8, len(text), text.encode())
    return file("pair.gguf", struct.pack("<4sIQQ", b"GGUF", 3, tensors, pairs + 1) + pair + data[24:])


def refused():
    """Arguments, and what the program says of them."""
    dense, gguf = FIXTURES / "modelopt_dense.safetensors", FIXTURES / "dense.gguf"
    layer = "model.layers.0.mlp."
    gate = layer + "gate_proj.weight"
    with_down = FIXTURES / "modelopt_layer.safetensors"
    return (
        (lambda: [dense, "--down"], layer + "down_proj.weight: is missing"),
        (lambda: [with_down, "--down", "--tp-rank", "1", "--tp-size", "4"],
         layer + "down_proj.weight: U8 [24, 32] has K = 64, of which each of 4 ranks needs a multiple of 32"),
        (lambda: [with_down, "--linear", layer + "down_proj"], layer + "down_proj: is missing"),
        (lambda: [dense, "--linear", "model.layers.0.post_attention_layernorm.weight"],
         "model.layers.0.post_attention_layernorm.weight: BF16 [64] has neither 2 nor 3 dimensions"),
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
         layer + "experts.gate_up_proj_scales: is missing"),
        (lambda: beside(dense, layer + "gate_proj.svdquant_lora_a", "BF16", [4, 64], bytes(512)),
         layer + "gate_proj.svdquant_lora_a: BF16 [4, 64] is of a low-rank branch"),
        (lambda: beside(dense, layer + "up_proj.weight_g_idx", "I32", [64], bytes(256)),
         layer + "up_proj.weight_g_idx: I32 [64] is an order of columns"),
        (lambda: beside(dense, "x", "U8", [1], b"1", quantization_config="{}"),
         'metadata: has "quantization_config": "{}", which is about quantisation and is not known here'),
        (lambda: changed(FIXTURES / "gpt_oss_mxfp4.safetensors", layer + "experts.gate_up_proj_scales", 0, b"\x90"),
         layer + "experts.gate_up_proj_blocks (expert 0): DUALGEMM_STATUS_NOT_SUPPORTED: scales: factors reach from"),
        (lambda: beside(dense, layer + "pre_quant_scale", "BF16", [64], bytes(128)),
         layer + "pre_quant_scale: BF16 [64] is AWQ's"),
        (lambda: beside(dense, "base_model.model." + layer + "gate_proj.lora_A.weight", "BF16", [4, 64], bytes(512)),
         layer + "gate_proj.lora_A.weight: BF16 [4, 64] is of a low-rank branch"),
        (lambda: gguf_with("quantization.rotation", "hadamard"),
         'metadata: has "quantization.rotation": "hadamard'),
        (lambda: folder("awq", [dense], config={"llm_config": {"quantization_config": {"quant_method": "awq"}}}),
         'config.json: llm_config.quantization_config: has "quant_method": "awq"'),
        (lambda: folder("layers", [dense], hf_quant_config={"quantization": {"quantized_layers": {
            gate.removesuffix(".weight"): {"quant_algo": "NVFP4", "pre_quant_scale": True}}}}),
         'has "pre_quant_scale": true, which is not done here'),
        (lambda: folder("gelu", [dense], config={"hidden_act": "gelu"}), 'has "hidden_act": "gelu", and of '),
        (lambda: folder("no_weights", []), "refused_no_weights: has neither .safetensors nor .gguf files"))


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


def as_type(tensors, end, dtype, last=1):
    """Tensors whose names end so, of another type, with their last dimension so many times as long."""
    return {name: ((dtype, [*shape[:-1], shape[-1] * last], data) if name.endswith(end) else (was, shape, data))
            for name, (was, shape, data) in tensors.items()}


def stacked(tensors, stem, fused, scales, each):
    """Gate and up of three experts in one tensor, each with its two scales."""
    def part(e, leaf, end):
        return tensors[f"{stem}{e}.{leaf}_proj.{end}"]

    def joined(end, of_rows):
        parts = [part(e, leaf, end) for e in range(3) for leaf in ("gate", "up")]
        (dtype, shape, _), data = parts[0], b"".join(part[2] for part in parts)
        return dtype, [3, 2 * shape[0], shape[1]] if of_rows else each, data
    return {stem + fused: joined("weight", True), stem + scales + "weight_scale": joined("weight_scale", True),
            stem + scales + "weight_scale_2": joined("weight_scale_2", False),
            stem + scales + "input_scale": joined("input_scale", False)}


def gguf_in_one():
    """experts.gguf with gate's rows and up's in one tensor, written by hand. Both have the same scales."""
    t = read(FIXTURES / "experts.gguf")
    (experts, n, k), _ = t["blk.0.ffn_gate_exps.weight"]
    both = [rows_of(t[f"blk.0.ffn_{leaf}_exps.weight"][1], experts) for leaf in ("gate", "up")]
    expect(t["blk.0.ffn_gate_exps.scale"] == t["blk.0.ffn_up_exps.scale"], "the fixture's scales")
    tensors = ((b"blk.0.ffn_gate_up_exps.weight", (k, 2 * n, experts), 40, b"".join(map(b"".join, zip(*both)))),
               (b"blk.0.ffn_gate_up_exps.scale", (experts,), 0, t["blk.0.ffn_gate_exps.scale"][1]))
    head, data = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), 0), b""
    for name, shape, kind, content in tensors:
        data += bytes(-len(data) % 32)
        head += struct.pack(f"<Q{len(name)}sI{len(shape)}QIQ", len(name), name, len(shape), *shape, kind, len(data))
        data += content
    return file("in_one.gguf", head + bytes(-len(head) % 32) + data)


def as_comfy(path):
    """Gate, up and down as ComfyUI stores them: the first element in the high nibble, factors in atoms, and a mark."""
    tensors = {name: tensor for name, tensor in contents(path).items() if ".mlp." in name}
    for name in [name for name in tensors if name.endswith(".weight")]:
        (_, (n, width), codes), (_, (_, columns), factors) = tensors[name], tensors[name + "_scale"]
        shape = [-(-n // 128) * 128, -(-columns // 4) * 4]
        atoms = bytearray(math.prod(shape))
        for row, column in itertools.product(range(n), range(columns)):
            atoms[(row // 128 * (shape[1] // 4) + column // 4) * 512 + row % 32 * 16 + row // 32 % 4 * 4 +
                  column % 4] = factors[row * columns + column]
        mark = b'{"format": "nvfp4"}'
        tensors |= {name: ("U8", [n, width], bytes(b >> 4 | (b & 15) << 4 for b in codes)),
                    name + "_scale": ("F8_E4M3", shape, bytes(atoms)),
                    name.removesuffix("weight") + "comfy_quant": ("U8", [len(mark)], mark)}
    return safetensors("comfy.safetensors", tensors)


def folder(name, files, **others):
    """A folder with these files, whose names are theirs, and with texts of JSON."""
    path = pathlib.Path(FOLDER) / f"{NAME}_{name}"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for one_file in files: shutil.copy(one_file, path)
    for key, value in others.items(): (path / (key.replace("_json", "") + ".json")).write_text(json.dumps(value))
    return path


def equal():
    """Files, and others that hold the same. Options come last."""
    layer, second = FIXTURES / "modelopt_layer.safetensors", ["--down", "--tp-rank", "1", "--tp-size", "2"]
    dense, gguf = FIXTURES / "modelopt_dense.safetensors", FIXTURES / "experts.gguf"
    oss = FIXTURES / "modelopt_gpt_oss.safetensors"
    parts = [FIXTURES / f"modelopt_experts-{i}-of-2.safetensors" for i in (1, 2)]
    stem, experts = "model.layers.3.mlp.experts.", contents(parts[0]) | contents(parts[1])
    where = {name: part.name for part in parts for name in contents(part)}
    index = {"metadata": {}, "weight_map": where}
    shifted = {re.sub(r"experts\.(\d)", lambda m: f"experts.{int(m[1]) + 4}", name): tensor
               for name, tensor in experts.items()}
    return (
        ([dense], "U8 factors", lambda: safetensors("u8.safetensors", as_type(contents(dense), "weight_scale", "U8"))),
        ([dense], "I8 elements", lambda: safetensors("i8.safetensors", as_type(contents(dense), "proj.weight", "I8"))),
        ([dense], "F4 elements",
         lambda: safetensors("f4.safetensors", as_type(contents(dense), "proj.weight", "F4", 2))),
        ([dense], "a type of the future", lambda: beside(dense, "other", "F8_E3M4_NEW", [3, 5], bytes(7))),
        (parts, "experts 4 to 6", lambda: safetensors("rank.safetensors", shifted)),
        (parts, "w13_weight, scales [3, 2]",
         lambda: safetensors("w13.safetensors", stacked(experts, stem, "w13_weight", "w13_", [3, 2]))),
        (parts, "gate_up_proj, scales [3, 2]",
         lambda: safetensors("in_one.safetensors", stacked(experts, stem, "gate_up_proj", "gate_up_proj_", [3, 2]))),
        (parts, "an index", lambda: folder("index", parts, model_safetensors_index=index) /
         "model_safetensors_index.json"),
        (parts, "a folder", lambda: folder("folder", parts)),
        (parts, "a folder with its configuration", lambda: folder(
            "config", parts, config={"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}})),
        ([oss, "--gpt-oss"], "gpt-oss by its configuration",
         lambda: folder("gpt_oss", [oss], config={"model_type": "gpt_oss", "swiglu_limit": 7.0})),
        ([layer, *second], "ComfyUI's", lambda: [as_comfy(layer), *second]),
        ([gguf], "ffn_gate_up_exps", gguf_in_one))


def result_of(files):
    """Of files and options."""
    dump = pathlib.Path(FOLDER) / f"{NAME}_dump"
    ran = subprocess.run([PROGRAM, *map(str, files), "--dump", str(dump)], stdout=subprocess.PIPE, text=True)
    expect(ran.returncode == 0, ran.stdout)
    said = [line for line in ran.stdout.splitlines() if line.startswith("alpha")]
    parts = ("x", "c", "down") if "--down" in files else "xc"
    return said, *(pathlib.Path(f"{dump}.{part}").read_bytes() for part in parts)


def check_equal():
    known = {}
    for files, what, make in equal():
        key = tuple(files)
        if key not in known: known[key] = result_of(files)
        expect(all(map(any, known[key])), "C is zero")
        made = make()
        expect(result_of(made if isinstance(made, list) else [made]) == known[key],
               f"{what}: not the result of {files[0].name}")
        print(f"{files[0].name} as {what}: the same alphas, the same C")


if __name__ == "__main__":
    if NAME == "edges":
        check_edges()
    elif NAME == "refused":
        check_refused()
    elif NAME == "equal":
        check_equal()
    else:
        check_fixture()
