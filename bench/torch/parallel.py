#!/usr/bin/env python3
"""parallel.py -- tensor parallelism of two ranks, on two GPUs (NCCL), or with --device cpu on one machine (gloo):
layers of Qwen3-32B's shapes with random weights. Every linear layer and gated MLP is compared with fp64 on the same
inputs, within a bound that follows from the types, and the logits with those of one rank: their Kullback-Leibler
divergence.

    parallel.py [--model NAME] [--layers N] [--device cuda|cpu]      (`make bench-model` runs it, too)
"""
import argparse
import copy
import os

import torch
import torch.distributed as dist

import model as models
from dualgemm import nn
from dualgemm.transformers import convert
from errors import weight_of

RANKS = 2
BF16 = 2.0**-8  # largest relative error of rounding to nearest
# Of a sum of k products, as a part of the sum of their magnitudes and of k: tensor cores align 16 products and what was
# added up before to the largest of them, cut each of the 17 off 25 places below it, and the sum to 24 bits: at most
# 2^-23 + 17 * 2^-25 for 16 products. This allows three times as much.
STEP = 17 / 16 * 2.0**-23


def rounded(y, error, times=1):
    """The error of y after it was rounded to bf16: once, or as ranks' parts and then as their sums. A part may be as
    large as the magnitude that `error` leaves out, so `y` are magnitudes there."""
    return error + times * BF16 * (y.abs() + error)


def product(x, weight, row):
    """x W^T in fp64, how far a launch may be from it, and what a rank alone has of it. Of a `row` each rank has a part
    of k, which it rounds; the sum of the parts is rounded once more."""
    y, error = x @ weight.T, STEP * weight.shape[1] * (x.abs() @ weight.abs().T)
    if not row: return y, rounded(y, error), None
    parts = [part @ w.T for part, w in zip(x.chunk(RANKS, -1), weight.chunk(RANKS, -1))]
    return y, rounded(sum(part.abs() for part in parts), error, 2), parts[0]


def activated(x, gate, up):
    """The hidden activations in fp64, and their bound: silu changes by 1.1 of its argument's change at most, and is
    computed to 2^-20."""
    (g, g_error, _), (u, u_error, _) = product(x, gate, False), product(x, up, False)
    act = torch.nn.functional.silu(g)
    error = 1.1 * g_error * (u.abs() + u_error) + (act.abs() + 2.0**-20) * u_error + 2.0**-20 * (act * u).abs()
    return act * u, rounded(act * u, error)


def divided(model, rank):
    """The model with this rank's part of every layer."""
    part = dict(tp_rank=rank, tp_size=RANKS)
    for layer in model.model.layers:
        attention = layer.self_attn
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            parallel = "row" if name == "o_proj" else "column"
            setattr(attention, name, nn.Linear.from_float(getattr(attention, name), parallel=parallel, **part))
        layer.mlp = nn.GatedMLP.from_float(layer.mlp, **part)
    return model


def worst(y, expected, bound):
    """The largest error as a part of its bound, which NaN does not pass."""
    ratio = (y.double() - expected).abs() / bound
    return float(ratio.nan_to_num(float("inf")).max())


def share(rank, *tensors):
    """A rank's columns."""
    return [tensor.chunk(RANKS, -1)[rank].contiguous() for tensor in tensors]


def check_linear(linear, part, x, rank, row):
    y = part(*share(rank, x)) if row else part(x)
    expected, bound, alone = product(x.double(), weight_of(linear), row)
    if row: check_bound(expected, bound, alone)
    else: expected, bound = share(rank, expected, bound)
    check_bound(expected, bound)
    return worst(y, expected, bound)


def check_mlp(mlp, part, x, rank):
    """Its two stages: what gate and up make of x, and what down makes of that."""
    seen, down = [], part.down_proj.product

    def noted(operands, *others):
        seen.append(operands[0])
        return down(operands, *others)
    part.down_proj.product = noted
    y = part(x)
    del part.down_proj.product
    hidden, bound = share(rank, *activated(x.double(), weight_of(mlp.gate_proj), weight_of(mlp.up_proj)))
    check_bound(hidden, bound)
    gathered = [torch.empty_like(seen[0]) for _ in range(RANKS)]
    dist.all_gather(gathered, seen[0].contiguous())
    expected, down_bound, alone = product(torch.cat(gathered, -1).double(), weight_of(mlp.down_proj), True)
    check_bound(expected, down_bound, alone)
    return worst(seen[0], hidden, bound), worst(y, expected, down_bound)


def check_bound(expected, bound, *others):
    """The bound says something: zeros are beyond it, and so is what a rank has alone."""
    for other in (torch.zeros_like(expected), *others):
        if worst(other, expected, bound) <= 1: raise SystemExit("a bound is wider than what it bounds")


def check_layers(whole, parts, rank, device):
    """The worst of all layers, by name. Inputs are the same on both ranks."""
    generator, results = torch.Generator(device).manual_seed(3), {}

    def note(name, error): results[name] = max(results.get(name, 0), error)
    for one, part in zip(whole.model.layers, parts.model.layers):
        def inputs(k): return torch.randn(16, k, generator=generator, device=device).bfloat16()
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            linear = getattr(one.self_attn, name)
            x = inputs(linear.in_features)
            note(name, check_linear(linear, getattr(part.self_attn, name), x, rank, name == "o_proj"))
        hidden, down = check_mlp(one.mlp, part.mlp, inputs(one.mlp.gate_proj.in_features), rank)
        note("gate and up", hidden)
        note("down_proj", down)
    return results


@torch.no_grad()
def of_rank(rank, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    device = f"cuda:{rank}" if options.device == "cuda" else "cpu"
    models.DEVICE = device
    if options.device == "cuda": torch.cuda.set_device(rank)
    dist.init_process_group("nccl" if options.device == "cuda" else "gloo", rank=rank, world_size=RANKS)
    config = models.config_of(options.model, options.layers)
    floats = models.built(config)
    for parameter in floats.parameters(): dist.broadcast(parameter, 0)
    parts = divided(copy.deepcopy(floats), rank)
    gathered = [None] * RANKS
    dist.all_gather_object(gathered, check_layers(floats, parts, rank, device))
    ids = torch.arange(options.tokens, device=device)[None] * 7 % config.vocab_size
    two = parts(ids, use_cache=False).logits.double().log_softmax(-1)
    one = convert(floats)(ids, use_cache=False).logits.double().log_softmax(-1)
    divergence = (one.exp() * (one - two)).sum(-1)
    if rank == 0:
        print(f"{torch.cuda.get_device_name() if options.device == 'cuda' else 'CPU'}, torch {torch.__version__}, "
              f"transformers {models.transformers.__version__}: {options.model}, {config.num_hidden_layers} layers, "
              f"{RANKS} ranks")
        print("largest error / bound, of both ranks and all layers")
        for name in gathered[0]: print(f"{name:11} {max(each[name] for each in gathered):.3f}")
        print(f"KL divergence of the logits from one rank's: mean {float(divergence.mean()):.3g}, "
              f"largest {float(divergence.max()):.3g} nats, of {options.tokens} tokens")
    dist.destroy_process_group()
    if max(error for each in gathered for error in each.values()) > 1: raise SystemExit("an error is over its bound")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="qwen3-32b", choices=models.MODELS)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--port", type=int, default=29511)
    options = parser.parse_args()
    if options.device == "cuda" and torch.cuda.device_count() < RANKS:
        print(f"parallel.py: skipped, there are {torch.cuda.device_count()} GPUs, not {RANKS}")
        return
    torch.multiprocessing.spawn(of_rank, (options,), RANKS)


if __name__ == "__main__": main()
