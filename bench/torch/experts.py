#!/usr/bin/env python3
"""experts.py -- a layer of experts as PyTorch runs it, on a Hopper GPU, from hidden states and the router's choices to
the sum of each token's experts: the library's five calls with A in bf16 and NVFP4 weights, beside torch._grouped_mm of
the same weights in bf16 and, where the package `humming` can be imported, beside Humming's grouped kernels of the same
NVFP4 weights. Each is captured into a CUDA graph of one layer for each of several sets of weights, so that weights come
from DRAM; the graphs take turns. What each computes is compared with fp32. Prints and, with --json, keeps the median
time of a layer.

torch._grouped_mm is measured between the operators of PyTorch, eager and compiled, and between the library's own
(moe_permute, moe_gather, moe_combine), as Humming is, too. Their activation is one kernel of torch.compile.

    make torch-experts ARGS="[--shapes NAME,...] [--tokens 1,8,...] [--contenders NAME;...] [--contender FILE.py]...
                             [--json FILE]"
"""
import argparse
import copy
import gc
import importlib.util
import json
import math
import statistics
import sys

import torch
from torch.nn import functional

import dualgemm
from contender import E2M1
from dualgemm import torch_op  # noqa: F401

try:
    from humming.layer import HummingLayer
    from humming.tune import get_heuristics_config
except ImportError:
    HummingLayer = None

OPS = torch.ops.dualgemm
DEVICE = "cuda"
# Experts, of which a token has so many, intermediate size, hidden size.
SHAPES = {"qwen3-30b-a3b": (128, 8, 768, 2048), "mixtral-8x7b": (8, 2, 14336, 4096),
          "qwen3-235b-a22b": (128, 8, 1536, 4096), "gpt-oss": (32, 4, 2880, 2880), "tiny": (4, 2, 128, 256)}
COLD_BYTES = 400 << 20  # of weights between two uses of the same: several times an L2
MOST_SETS = 24
REPEATS, WARM = 15, 3
REPLAYS = 3  # one behind the other, so that the start of a graph hides behind the one before
ALLOWED_ERROR = 0.02  # of |y - y32| / |y32|; rounding to bf16 in four places makes less than half of it


# ---- weights and tokens ----

class Nvfp4:
    """A weight [experts, n, k] as a checkpoint holds it: codes, factors in rows, and one power of two for all, with
    which products have about the size of their operands. Every weight is a bf16 number."""

    def __init__(self, experts, n, k):
        self.codes = torch.randint(0, 256, (experts, n, k // 2), dtype=torch.uint8, device=DEVICE)
        # Bytes around 0x38, which is 1.
        self.factors = torch.randint(0x30, 0x40, (experts, n, k // 16), dtype=torch.uint8, device=DEVICE)
        self.scale = 2.0 ** -round(math.log2(3 * math.sqrt(k)))

    def of_expert(self, expert, dtype):
        table = torch.tensor(E2M1 + tuple(-x for x in E2M1), dtype=dtype, device=DEVICE)
        packed = self.codes[expert].int()
        elements = table[torch.stack((packed & 15, packed >> 4), -1)].flatten(1)
        factors = self.factors[expert].view(torch.float8_e4m3fn).to(dtype) * self.scale
        return elements * factors.repeat_interleave(16, 1)

    def dequantised(self):
        return torch.stack([self.of_expert(expert, torch.bfloat16) for expert in range(len(self.codes))])


class Model:
    """The weights of a layer. Rows of gate precede those of up."""

    def __init__(self, name):
        self.experts, self.top_k, self.intermediate, self.hidden = SHAPES[name]
        self.gate_up = Nvfp4(self.experts, 2 * self.intermediate, self.hidden)
        self.down = Nvfp4(self.experts, self.hidden, self.intermediate)
        self.elements_of_expert = 3 * self.intermediate * self.hidden
        self.floats = None

    def in_bf16(self):
        """Sets of weights of all contenders that have these."""
        if self.floats is None: self.floats = [(self.gate_up.dequantised(), self.down.dequantised())]
        return self.floats


class Batch:
    """Tokens and their experts, which are drawn evenly."""

    def __init__(self, model, tokens):
        random = torch.Generator(DEVICE).manual_seed(tokens)
        def uniform(*shape): return torch.rand(*shape, generator=random, device=DEVICE)
        self.x = (uniform(tokens, model.hidden) * 2 - 1).bfloat16()
        self.ids = uniform(tokens, model.experts).topk(model.top_k, -1).indices.int()
        self.weights = functional.softmax(uniform(tokens, model.top_k), -1)
        self.chosen = self.ids.unique().numel()

    def reference(self, model):
        out = torch.zeros(self.x.shape, device=DEVICE)
        for expert in self.ids.unique().tolist():
            token, choice = torch.where(self.ids == expert)
            gate, up = (self.x[token].float() @ model.gate_up.of_expert(expert, torch.float32).t()).chunk(2, -1)
            y = (functional.silu(gate) * up) @ model.down.of_expert(expert, torch.float32).t()
            out.index_add_(0, token, y * self.weights[token, choice, None])
        return out


# ---- the contenders ----

class Ours:
    """The five calls."""
    bits = 4.5
    flags = 0

    def __init__(self, model):
        def operands(weight): return weight.codes.contiguous(), OPS.sf_swizzle(weight.factors.contiguous())
        def half(i):
            rows, weight = slice(i * model.intermediate, (i + 1) * model.intermediate), copy.copy(model.gate_up)
            weight.codes, weight.factors = weight.codes[:, rows], weight.factors[:, rows]
            return operands(weight)
        self.experts = model.experts
        self.sets = [(*half(0), *half(1), *operands(model.down))]
        self.alpha_up, self.alpha_down = (torch.full((model.experts,), weight.scale, device=DEVICE)
                                          for weight in (model.gate_up, model.down))

    def add_set(self): self.sets.append(tuple(tensor.clone() for tensor in self.sets[0]))

    def __call__(self, weights, batch):
        gate, sf_gate, up, sf_up, down, sf_down = weights
        pdl = self.flags & dualgemm.FLAG_PDL
        groups, row_token, token_row, _ = OPS.moe_permute(batch.ids, None, self.experts, flags=pdl)
        a = OPS.moe_gather(batch.x, row_token, flags=pdl)
        h = OPS.swiglu(a, gate, up, None, sf_gate, sf_up, 1.0, 1.0, torch.bfloat16, self.alpha_up, self.alpha_up,
                       group_rows=groups, flags=self.flags)
        y = OPS.linear(h, down, None, sf_down, 1.0, torch.bfloat16, self.alpha_down, group_rows=groups,
                       flags=self.flags)
        return OPS.moe_combine(y, token_row, topk_weights=batch.weights, flags=pdl)


class OursPdl(Ours):
    """The same, each launch depending on the one before programmatically."""
    flags = dualgemm.FLAG_PDL | dualgemm.FLAG_STATIC_WEIGHTS


def activated(gate_up):
    gate, up = gate_up.float().chunk(2, -1)
    return (functional.silu(gate) * up).bfloat16()


class Between:
    """Two grouped products of somebody else's between the same calls of the library as ours."""

    def __init__(self, model):
        self.experts = model.experts
        self.activated = torch.compile(activated)

    def __call__(self, weights, batch):
        groups, row_token, token_row, _ = OPS.moe_permute(batch.ids, None, self.experts)
        gate_up = self.product(OPS.moe_gather(batch.x, row_token), weights[0], groups)
        y = self.product(self.activated(gate_up), weights[1], groups)
        return OPS.moe_combine(y, token_row, topk_weights=batch.weights)


class InBf16:
    bits = 16

    def __init__(self, model):
        super().__init__(model)
        self.sets = model.in_bf16()

    def add_set(self): self.sets.append(tuple(tensor.clone() for tensor in self.sets[0]))


class GroupedMm(InBf16, Between):
    @staticmethod
    def product(a, weight, groups):
        return torch._grouped_mm(a, weight.transpose(-2, -1), offs=groups[1:])


def experts_of_torch(x, ids, weights, gate_up, down):
    """Rows sorted by their experts, whose ends are found on the device; then each token's rows are gathered."""
    tokens, top_k = ids.shape
    sorted_ids, choice = torch.sort(ids.flatten())
    ends = torch.searchsorted(sorted_ids, torch.arange(len(gate_up), dtype=ids.dtype, device=ids.device), right=True,
                              out_int32=True)
    gate, up = torch._grouped_mm(x[choice // top_k], gate_up.transpose(-2, -1), offs=ends).chunk(2, -1)
    y = torch._grouped_mm(functional.silu(gate) * up, down.transpose(-2, -1), offs=ends)
    row = torch.empty_like(choice)
    row[choice] = torch.arange(len(choice), device=ids.device)
    return (y[row].view(tokens, top_k, -1) * weights[..., None]).sum(1).to(x.dtype)


class Plain:
    def __init__(self, model): pass


class Eager(InBf16, Plain):
    function = staticmethod(experts_of_torch)

    def __call__(self, weights, batch): return self.function(batch.x, batch.ids, batch.weights, *weights)


class Compiled(Eager):
    def __init__(self, model):
        super().__init__(model)
        self.function = torch.compile(experts_of_torch)


class Humming(Between):
    """Gate and up are one launch. Of its own choice of tiles those for these numbers of rows are compiled."""
    bits = 4.5
    GROUPED = "grouped_contiguous"
    rows = ()  # that a launch may have, set before the first

    def __init__(self, model):
        super().__init__(model)
        self.sets = [tuple(self.layer(weight) for weight in (model.gate_up, model.down))]
        self.tiles = {}

    @staticmethod
    def layer(weight):
        experts, n, k = *weight.codes.shape[:2], weight.codes.shape[2] * 2
        layer = HummingLayer(shape_n=n, shape_k=k, num_experts=experts, torch_dtype=torch.bfloat16,
                             pad_n_to_multiple=128,  # which its tiles divide
                             weight_config={"dtype": "float4e2m1", "group_size": 16, "scale_dtype": "float8e4m3",
                                            "scale_2_type": "tensor"}).to(DEVICE)
        layer.load_from_tensors({"weight": weight.codes.view(torch.int32),
                                 "weight_scale": weight.factors.view(torch.float8_e4m3fn),
                                 "weight_scale_2": torch.full((experts,), weight.scale, device=DEVICE)})
        layer.transform()
        return layer

    def add_set(self): self.sets.append(tuple(copy.deepcopy(layer) for layer in self.sets[0]))

    def tiles_of(self, layer):
        """Intervals of rows, and the tile of each. The one with a row must be there."""
        key = (layer.shape_n, layer.shape_k)
        if key not in self.tiles:
            def tile(rows): return get_heuristics_config(layer.humming_config, shape_m=rows, gemm_type=self.GROUPED)
            self.tiles[key] = [(0, 1, tile(min(self.rows)))] + [(rows - 1, rows, tile(rows)) for rows in self.rows]
        return self.tiles[key]

    def product(self, a, layer, groups):
        out = torch.empty(len(a), layer.shape_n, dtype=a.dtype, device=a.device)
        return layer(a, outputs=out, expert_layout=groups, compute_config={"gemm_type": self.GROUPED},
                     tuning_config=self.tiles_of(layer))


CONTENDERS = {"dualgemm": Ours, "dualgemm, PDL": OursPdl, "bf16, library's calls around": GroupedMm,
              "bf16, compiled": Compiled, "bf16, eager": Eager}
if HummingLayer: CONTENDERS["Humming"] = Humming


def contenders_of(path):
    """CONTENDERS that a file of somebody else's defines: classes like these."""
    spec = importlib.util.spec_from_file_location("others", path)
    others = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(others)
    return others.CONTENDERS


# ---- measurements ----

class Captured:
    """A graph of a layer for each set of weights."""

    def __init__(self, contender, model, batch):
        touched = batch.chosen * model.elements_of_expert * contender.bits / 8
        count = max(2, min(MOST_SETS, math.ceil(COLD_BYTES / touched)))
        while len(contender.sets) < count: contender.add_set()
        self.sets = contender.sets[:count]

        def run(): return [contender(weights, batch) for weights in self.sets]
        run()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph): self.out = run()

    def check(self, expected):
        self.graph.replay()
        for out in self.out:
            error = float((out.float() - expected).norm() / expected.norm())
            if not error < ALLOWED_ERROR: raise RuntimeError(f"another result: relative error {error:.4f}")
        return error

    def time(self):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(REPLAYS): self.graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000 / (REPLAYS * len(self.sets))


def tried(what, function, *arguments):
    """What the function returns; None, and the reason in print, where it fails: of others times are taken."""
    try:
        return function(*arguments)
    except Exception as error:
        print(f"{what}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return None


def measure(name, model, contenders, tokens):
    batch = Batch(model, tokens)
    expected, graphs, errors = batch.reference(model), {}, {}
    for key, contender in contenders.items():
        what = f"{name}, {tokens} tokens, {key}"
        captured = tried(what, Captured, contender, model, batch)
        error = captured and tried(what, captured.check, expected)
        if error is not None: graphs[key], errors[key] = captured, error
    times = {key: [] for key in graphs}
    for repeat in range(WARM + REPEATS):
        for key, graph in graphs.items():
            us = graph.time()
            if repeat >= WARM: times[key].append(us)
    return {key: statistics.median(us) for key, us in times.items()}, errors


def write(path, results):
    """As dualgemm_bench writes a report: a line for each result."""
    lines = ",\n".join("    " + json.dumps(result) for result in results)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{{\n  "device": {json.dumps(torch.cuda.get_device_name())},\n  "results": [\n{lines}\n  ],\n'
                   f'  "torch": {json.dumps(torch.__version__)}\n}}\n')


def measured_shape(name, options):
    """The results of one shape, each as soon as it is there."""
    torch._dynamo.reset()  # so that only the number of rows becomes symbolic
    model = Model(name)
    Humming.rows = [tokens * model.top_k for tokens in options.tokens]
    made = {key: tried(f"{name}, {key}", CONTENDERS[key], model) for key in options.contenders or CONTENDERS}
    contenders = {key: contender for key, contender in made.items() if contender is not None}
    for tokens in options.tokens:
        us, errors = measure(name, model, contenders, tokens)
        yield {"shape": name, "experts": model.experts, "top_k": model.top_k, "i": model.intermediate,
               "k": model.hidden, "tokens": tokens, "us": us, "error": errors}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    def numbers(text): return [int(number) for number in text.split(",")]
    def names(text): return text.split(",")
    def contenders(text): return text.split(";")
    parser.add_argument("--shapes", type=names, default=[name for name in SHAPES if name != "tiny"],
                        help=", ".join(SHAPES))
    parser.add_argument("--tokens", type=numbers, default=[1, 8, 16, 32, 64, 128, 256, 512, 2048, 4096])
    parser.add_argument("--contenders", type=contenders,
                        help="of these alone, with semicolons: " + "; ".join(CONTENDERS))
    parser.add_argument("--contender", metavar="FILE.py", action="append", default=[],
                        help="kernels of somebody else's: a file that defines CONTENDERS as this one does")
    parser.add_argument("--json")
    return parser.parse_args()


@torch.no_grad()
def main():
    options, results = arguments(), []
    for path in options.contender: CONTENDERS.update(contenders_of(path))
    torch.manual_seed(1)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; us a layer", flush=True)
    for name in options.shapes:
        for result in measured_shape(name, options):
            results.append(result)
            print(f"{name}, {result['tokens']:4} tokens: " +
                  ", ".join(f"{key} {us:.1f}" for key, us in result["us"].items()), flush=True)
            if options.json: write(options.json, results)
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__": main()
