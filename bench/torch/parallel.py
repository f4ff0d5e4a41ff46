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
import transformers

import model as models
from dualgemm import nn
from dualgemm.transformers import convert
from errors import weight_of

RANKS = 2
BF16, FP32 = 2.0**-8, 2.0**-24  # largest relative error of rounding to nearest


def product(x, error, weight):
    """x W^T in fp64, and how far a sum in fp32 may be from it whose x is off by `error`. A sum of k terms in any order
    is off by k roundings of their magnitudes at most; the scale of the weight is one more."""
    magnitudes = x.abs() @ weight.abs().T
    return x @ weight.T, error @ weight.abs().T + (weight.shape[1] + 1) * FP32 * magnitudes


def rounded(y, error, times=1):
    """The error of y after it was rounded to bf16: once, or as ranks' parts and then as their sums. A part may be as
    large as the magnitude that `error` leaves out, so `y` are magnitudes there."""
    return error + times * BF16 * (y.abs() + error)


def linear_bound(linear, x, row):
    weight = weight_of(linear)
    y, error = product(x, torch.zeros_like(x), weight)
    if not row: return y, rounded(y, error)
    parts = sum((part @ w.T).abs() for part, w in zip(x.chunk(RANKS, -1), weight.chunk(RANKS, -1)))
    return y, rounded(parts, error, 2)


def mlp_bound(mlp, x):
    """silu changes by 1.1 of its argument's change at most; the activation itself is computed to 2^-20."""
    none = torch.zeros_like(x)
    (gate, gate_error), (up, up_error) = (product(x, none, weight_of(each)) for each in (mlp.gate_proj, mlp.up_proj))
    act = torch.nn.functional.silu(gate)
    h = act * up
    h_error = 1.1 * gate_error * (up.abs() + up_error) + (act.abs() + 2.0**-20) * up_error + 2.0**-20 * h.abs()
    h_error = rounded(h, h_error)
    weight = weight_of(mlp.down_proj)
    y, error = product(h, h_error, weight)
    parts = sum((part @ w.T).abs() for part, w in zip(h.chunk(RANKS, -1), weight.chunk(RANKS, -1)))
    return y, rounded(parts, error, 2)


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


def check_layers(whole, parts, rank, device):
    """Prints the worst of all layers. Inputs are the same on both ranks."""
    generator, results = torch.Generator(device).manual_seed(3), {}
    for one, part in zip(whole.model.layers, parts.model.layers):
        for name in ("q_proj", "k_proj", "v_proj", "o_proj", "mlp"):
            float_module = one.mlp if name == "mlp" else getattr(one.self_attn, name)
            module = part.mlp if name == "mlp" else getattr(part.self_attn, name)
            k = one.mlp.gate_proj.in_features if name == "mlp" else float_module.in_features
            x = torch.randn(16, k, generator=generator, device=device).bfloat16()
            row = name == "o_proj"
            y = module(x.chunk(RANKS, -1)[rank] if row else x)
            expected, bound = mlp_bound(float_module, x.double()) if name == "mlp" else \
                linear_bound(float_module, x.double(), row)
            if name in ("q_proj", "k_proj", "v_proj"):
                expected, bound = expected.chunk(RANKS, -1)[rank], bound.chunk(RANKS, -1)[rank]
            results[name] = max(results.get(name, 0), worst(y, expected, bound))
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
              f"transformers {transformers.__version__}: {options.model}, {config.num_hidden_layers} layers, "
              f"{RANKS} ranks")
        for name in gathered[0]:
            print(f"{name:7} largest error / bound, of both ranks and all layers: {max(g[name] for g in gathered):.3f}")
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
