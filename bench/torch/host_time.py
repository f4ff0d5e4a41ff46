#!/usr/bin/env python3
"""host_time.py -- what a call of an operator costs the CPU, beside PyTorch's own: microseconds, median of many
blocks of calls. The GPU's work is small, and the stream is drained between blocks, so that no call waits for it.
Without a GPU it measures tensors without memory: all but the launch.

`direct` are the functions of torch_op.direct, which call the operators without PyTorch's dispatcher. The last lines say
how far a call may come down. With no rows an operator takes its arguments, looks at its tensors, and launches nothing,
on the CPU if there is no GPU. `torch.cuda._sleep(0)` launches an almost empty kernel, and does nothing else.

    PYTHONPATH=host/python python3 bench/torch/host_time.py [BLOCKS]
"""
import statistics
import sys
import time

import torch

import dualgemm as d
from dualgemm import nn, torch_op

BLOCKS, CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 200, 50
GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "meta"
ops = torch.ops.dualgemm if GPU else torch.ops.dualgemm_meta
direct = torch_op.direct
M, N, K = 8, 256, 256


def drain():
    if GPU: torch.cuda.synchronize()


def median(function):
    for _ in range(200): function()
    times = []
    for _ in range(BLOCKS):
        drain()
        start = time.perf_counter()
        for _ in range(CALLS): function()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(times)


def operands(device=DEVICE):
    def packed(rows): return torch.zeros(rows, K // 2, dtype=torch.uint8, device=device)
    def factors(rows): return torch.zeros(d.sf_size(rows, K), dtype=torch.uint8, device=device)
    return (packed(M), packed(N), packed(N)), (factors(M), factors(N), factors(N))


def cases():
    """Name, and what is called."""
    (a, b1, b2), (sfa, sfb1, sfb2) = operands()
    two, one = (a, b1, b2, sfa, sfb1, sfb2), (a, b1, sfa, sfb1)
    x = torch.zeros(M, K, dtype=torch.bfloat16, device=DEVICE)
    out = torch.zeros(M, N, dtype=torch.bfloat16, device=DEVICE)
    rows = torch.zeros(N, K // 16, dtype=torch.uint8, device=DEVICE)
    ids = torch.zeros(M, 2, dtype=torch.int32, device=DEVICE)
    rows_of_experts = torch.zeros(2 * M, N, dtype=torch.bfloat16, device=DEVICE)
    wide = torch.zeros(2 * N, K, dtype=torch.bfloat16, device=DEVICE)
    bias = torch.zeros(N, dtype=torch.bfloat16, device=DEVICE)
    yield "torch.mm", lambda: torch.mm(x, wide.t())
    yield "torch.mm, silu, mul", lambda: torch_layer(x, wide)
    yield "torch.add", lambda: torch.add(x, x)
    yield "swiglu", lambda: ops.swiglu(*two, 0.5, 0.5)
    yield "swiglu.default", lambda f=ops.swiglu.default: f(*two, 0.5, 0.5)
    yield "swiglu.plain", lambda f=ops.swiglu.plain: f(*two, 0.5, 0.5)
    yield "swiglu, biases and a limit", lambda: ops.swiglu(*two, 0.5, 0.5, bias1=bias, bias2=bias, swiglu_limit=7.0)
    yield "swiglu, A of 16 bits", lambda: ops.swiglu(x, b1, b2, None, sfb1, sfb2)
    yield "swiglu_nvfp4", lambda: ops.swiglu_nvfp4(*two, 0.5, 0.5)
    yield "swiglu_out", lambda: ops.swiglu_out(*two, out, 0.5, 0.5)
    yield "swiglu_out.plain", lambda f=ops.swiglu_out.plain: f(*two, out, 0.5, 0.5)
    yield "linear", lambda: ops.linear(*one, 0.5)
    yield "linear.plain", lambda f=ops.linear.plain: f(*one, 0.5)
    yield "linear_out", lambda: ops.linear_out(*one, out, 0.5)
    yield "linear_out.plain", lambda f=ops.linear_out.plain: f(*one, out, 0.5)
    yield "quantize", lambda: ops.quantize(x, 2.0)
    yield "sf_swizzle", lambda: ops.sf_swizzle(rows)
    yield "moe_permute", lambda: ops.moe_permute(ids, None, 8)
    yield "moe_gather", lambda: ops.moe_gather(x, ids[0])
    yield "moe_combine", lambda: ops.moe_combine(rows_of_experts, ids)
    if GPU: yield from direct_cases(two, one, out, x, bias)
    yield from cases_without_rows("cuda" if GPU else "cpu")
    if not GPU: return
    yield "torch.cuda._sleep(0)", lambda: torch.cuda._sleep(0)
    yield "ctypes: launch", lambda: d.launch(*two, out, 0.5, 0.5, stream=torch.cuda.current_stream())
    prepared, stream = d.prepare(*two, out, 0.5, 0.5), torch.cuda.current_stream().cuda_stream
    yield "ctypes: prepared", lambda: prepared(stream=stream)
    yield "ctypes: prepared, other tensors", lambda: prepared(stream=stream, a=two[0], out=out)


def direct_cases(two, one, out, x, bias):
    alpha = torch.ones(1, device=DEVICE)
    as_a_layer = dict(a_row_scale=None, bias=bias, activation=0, flags=0)
    yield "direct swiglu", lambda f=direct.swiglu: f(*two, 0.5, 0.5)
    yield "direct swiglu_nvfp4", lambda f=direct.swiglu_nvfp4: f(*two, 0.5, 0.5)
    yield "direct swiglu_out", lambda f=direct.swiglu_out: f(*two, out, 0.5, 0.5)
    yield "direct linear", lambda f=direct.linear: f(*one, 0.5)
    yield "direct linear_out", lambda f=direct.linear_out: f(*one, out, 0.5)
    yield "direct quantize", lambda f=direct.quantize: f(x, 2.0)
    yield "linear as nn.Linear calls it", lambda f=ops.linear: f(*one, 1.0, torch.bfloat16, alpha, **as_a_layer)
    yield "direct linear, the same", lambda f=direct.linear: f(*one, 1.0, torch.bfloat16, alpha, **as_a_layer)
    layer = nn.Linear.from_float(torch.nn.Linear(K, N, device=DEVICE, dtype=torch.bfloat16))
    yield "nn.Linear", lambda: layer(x)


def cases_without_rows(device):
    (a, b, _), (sfa, sfb, _) = operands(device)
    out = torch.zeros(0, N, dtype=torch.bfloat16, device=device)
    args = a[:0], b, sfa[:0], sfb
    yield "linear_out.plain, no rows", lambda f=torch.ops.dualgemm.linear_out.plain: f(*args, out, 0.5)
    yield "direct linear_out, no rows", lambda f=direct.linear_out: f(*args, out, 0.5)
    yield "linear.plain, no rows", lambda f=torch.ops.dualgemm.linear.plain: f(*args, 0.5)
    yield "direct linear, no rows", lambda f=direct.linear: f(*args, 0.5)


def torch_layer(x, wide):
    gate, up = torch.mm(x, wide.t()).chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


def main():
    device = torch.cuda.get_device_name() if GPU else "no GPU: tensors without memory"
    print(f"{device}, torch {torch.__version__}; median us a call on the host of {BLOCKS} blocks of {CALLS} calls")
    with torch.inference_mode():
        for name, function in cases():
            if GPU and "16 bits" in name and torch.cuda.get_device_capability() != (9, 0): continue
            print(f"{name:30} {median(function):8.2f}")


if __name__ == "__main__":
    main()
