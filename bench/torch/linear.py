#!/usr/bin/env python3
"""linear.py -- a linear layer as PyTorch runs it, on a Hopper GPU: torch.ops.dualgemm.linear with A in fp16 and
in NVFP4, beside torch.mm of fp16 weights and, with A in fp16, NVFP4 kernels of others: Humming's where the package
`humming` can be imported, and those of each FILE.so (../contender.h). Each is captured into a CUDA graph of one launch
for each of many sets of weights, so that weights come from DRAM; the graphs take turns. Prints and, with --json, keeps
the median time of a launch.

    make torch-linear ARGS="[--shapes 5120x25600,...] [--rows 1,8,...] [--contender FILE.so]... [--json FILE]"
"""
import argparse
import copy
import json
import statistics
import sys

import torch

import dualgemm
from contender import Linear, add_option, quantised
from dualgemm import torch_op  # noqa: F401

try:
    from humming.layer import HummingLayer
except ImportError:
    HummingLayer = None

OPS = torch.ops.dualgemm
# N x K of Qwen3-32B: qkv, o, gate or up, down; whole, and cut for two GPUs where that is another shape of its kind.
SHAPES = "10240x5120,5120x8192,25600x5120,5120x25600,5120x4096,5120x12800"
COLD_BYTES = 400 << 20  # of weights between two uses of the same: several times an L2
REPEATS, WARM = 15, 3
REPLAYS = 3  # one behind the other, so that the start of a graph hides behind the one before


def sets_for(weight_bytes):
    return max(3, min(64, -(-COLD_BYTES // weight_bytes)))


class Ours:
    """The library's linear, with A of 16 bits or packed."""

    def __init__(self, packed, m, n, k, sets):
        self.name = "A in NVFP4" if packed else "A in fp16"
        self.packed, self.k = packed, k
        def codes(rows): return torch.randint(0, 256, (rows, k // 2), dtype=torch.uint8, device="cuda")
        def factors(rows):  # bytes around 0x38, which is 1
            return torch.randint(0x30, 0x40, (dualgemm.sf_size(rows, k),), dtype=torch.uint8, device="cuda")
        self.weights = [(codes(n), factors(n)) for _ in range(sets)]
        self.a = codes(m) if packed else torch.rand(m, k, dtype=torch.float16, device="cuda") - 0.5
        self.sfa = factors(m) if packed else None
        self.out = torch.empty(m, n, dtype=torch.float16, device="cuda")

    def run(self):
        for b, sfb in self.weights: OPS.linear_out(self.a, b, self.sfa, sfb, self.out, 1 / self.k)


class Mm:
    name = "torch.mm"

    def __init__(self, m, n, k, sets):
        sets = max(3, sets // 4)  # four times the bytes
        self.weights = [torch.rand(n, k, dtype=torch.float16, device="cuda") - 0.5 for _ in range(sets)]
        self.a = torch.rand(m, k, dtype=torch.float16, device="cuda") - 0.5
        self.out = torch.empty(m, n, dtype=torch.float16, device="cuda")

    def run(self):
        for b in self.weights: torch.mm(self.a, b.t(), out=self.out)


class Humming:
    name = "Humming"

    def __init__(self, m, n, k, sets):
        weight = torch.randn(n, k, dtype=torch.float16, device="cuda")
        layer = HummingLayer(shape_n=n, shape_k=k, torch_dtype=torch.float16,
                             weight_config={"dtype": "float4e2m1", "group_size": 16, "scale_dtype": "float8e4m3",
                                            "scale_2_type": "tensor"}).cuda()
        layer.load_from_unquantized(weight)
        layer.transform()
        self.weights = [layer] + [copy.deepcopy(layer) for _ in range(sets - 1)]
        self.a = torch.rand(m, k, dtype=torch.float16, device="cuda") - 0.5
        self.out = torch.empty(m, n, dtype=torch.float16, device="cuda")
        self.check(weight)

    def check(self, weight):
        """Four bits have an error of a tenth; a kernel that computes something else has more."""
        self.weights[0](self.a, outputs=self.out)
        expected = self.a.float() @ weight.float().t()
        error = (self.out.float() - expected).norm() / expected.norm()
        if not error < 0.2: raise RuntimeError(f"Humming's product is another: relative error {error:.3f}")

    def run(self):
        for layer in self.weights: layer(self.a, outputs=self.out)


class Other:
    """A contender's layers, which are checked as they are made."""

    def __init__(self, contender, m, n, k, sets):
        self.name = contender.title
        exact, scale = quantised(torch.randn(n, k, dtype=torch.float16, device="cuda"))
        self.weights = [Linear(contender, exact, scale, torch.float16) for _ in range(sets)]
        self.a = torch.rand(m, k, dtype=torch.float16, device="cuda") - 0.5
        self.out = torch.empty(m, n, dtype=torch.float16, device="cuda")

    def run(self):
        for layer in self.weights: layer.multiply(self.a, self.out)


def captured(contender):
    contender.run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): contender.run()
    return graph


def time_of(graph, launches):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(REPLAYS): graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / (REPLAYS * launches)


def measure(m, n, k, others):
    sets = sets_for(n * k * 9 // 16)
    contenders = [Ours(False, m, n, k, sets), Ours(True, m, n, k, sets), Mm(m, n, k, sets)]
    if HummingLayer: contenders.append(Humming(m, n, k, sets))
    contenders += [Other(other, m, n, k, sets) for other in others]
    graphs = [captured(c) for c in contenders]
    times = [[] for _ in contenders]
    for repeat in range(WARM + REPEATS):
        for graph, contender, kept in zip(graphs, contenders, times):
            us = time_of(graph, len(contender.weights))
            if repeat >= WARM: kept.append(us)
    return {c.name: statistics.median(t) for c, t in zip(contenders, times)}


def write(path, results):
    """As dualgemm_bench writes a report: a line for each result."""
    lines = ",\n".join("    " + json.dumps(result) for result in results)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{{\n  "device": {json.dumps(torch.cuda.get_device_name())},\n  "results": [\n{lines}\n  ],\n'
                   f'  "torch": {json.dumps(torch.__version__)}\n}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=SHAPES, help="N x K of weights, with commas")
    parser.add_argument("--rows", default="1,8,16,32,64,128,256,512,2048")
    add_option(parser)
    parser.add_argument("--json")
    options = parser.parse_args()
    results = []
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; us a launch", flush=True)
    for shape in options.shapes.split(","):
        n, k = map(int, shape.split("x"))
        for m in map(int, options.rows.split(",")):
            try:
                times = measure(m, n, k, options.contender)
            except Exception as error:  # of one shape: the others are measured
                print(f"{m} x {n} x {k}: {error}", file=sys.stderr, flush=True)
                continue
            results.append({"m": m, "n": n, "k": k, "us": times})
            print(f"{m:5} x {n} x {k}: " + ", ".join(f"{name} {us:.2f}" for name, us in times.items()), flush=True)
            if options.json: write(options.json, results)


if __name__ == "__main__":
    main()
