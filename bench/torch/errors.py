#!/usr/bin/env python3
"""errors.py -- the error of a gated MLP of dualgemm.nn, as engines may run it, against fp64: of the checkpoint's own
weights on the same activations, whose tokens are drawn from a normal distribution. The error is |y - y64| / |y64| of
all elements, and the worst of a token.

- with activations of 16 bits, and with activations in NVFP4, by an input scale or by a scale for each row
- of a checkpoint whose gate and up have global scales that differ by 2, as it is, and as an engine runs it that has
  one scale for both and takes the larger
- of NVFP4 itself: the first against the float weights that were quantised

    errors.py [--shape HIDDENxINTERMEDIATE] [--tokens N] [--device cuda|cpu]      (`make bench-model` runs it, too)
"""
import argparse

import torch

from dualgemm import nn

NAMES = ("gate_proj", "up_proj", "down_proj")
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)


def weight_of(linear):
    """What a float linear's weight is in NVFP4, in fp64."""
    held = nn.quantize_weight(linear.weight)
    table = torch.tensor(E2M1 + tuple(-x for x in E2M1), dtype=torch.float64, device=linear.weight.device)
    packed = held["weight"].int()
    elements = table[torch.stack((packed & 15, packed >> 4), -1)].flatten(1)
    factors = held["weight_scale"].double().repeat_interleave(16, 1)
    return elements * factors * held["weight_scale_2"].double()


def linears(hidden, intermediate, device):
    """Of bf16; up's weights are twice as large as gate's."""
    torch.manual_seed(5)
    made = {}
    for name in NAMES:
        n, k = (hidden, intermediate) if name == "down_proj" else (intermediate, hidden)
        made[name] = torch.nn.Linear(k, n, bias=False, device=device, dtype=torch.bfloat16)
        made[name].weight.copy_((2 if name == "up_proj" else 1) * torch.randn(n, k, device=device) / k**0.5)
    gate, up = made["gate_proj"].weight, made["up_proj"].weight
    largest = 2 * float(gate.abs().max())  # so the scales differ by 2
    up.clamp_(-largest, largest)
    up[0, 0] = largest
    return made


def in_fp64(x, gate, up, down):
    return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T


def checkpoint(made, x):
    """As ModelOpt stores it, with input scales of these activations."""
    tensors = {f"{name}.{key}": tensor for name, linear in made.items()
               for key, tensor in nn.quantize_weight(linear.weight).items()}
    hidden = x.double() @ made["gate_proj"].weight.double().T
    hidden = torch.nn.functional.silu(hidden) * (x.double() @ made["up_proj"].weight.double().T)
    for name in NAMES:
        largest = (hidden if name == "down_proj" else x).abs().max()
        tensors[f"{name}.input_scale"] = (largest / (6 * 448)).float()
    return tensors


def run(tensors, x, a_format, drop=(), common_scale=False):
    """The module's output; `common_scale`: gate and up with the larger of their scales, and factors as they are."""
    tensors = {name: tensor.clone() for name, tensor in tensors.items() if not name.endswith(drop)}
    if common_scale:
        scales = [tensors[f"{name}.weight_scale_2"] for name in NAMES[:2]]
        for name in NAMES[:2]: tensors[f"{name}.weight_scale_2"] = torch.maximum(*scales)
    hidden, intermediate = tensors["down_proj.weight"].shape[0], tensors["gate_proj.weight"].shape[0]
    mlp = nn.GatedMLP(hidden, intermediate, device="meta", dtype=torch.bfloat16, a_format=a_format)
    mlp.load_state_dict(tensors, assign=True)
    return mlp(x).double()


def report(what, y, expected):
    of_tokens = (y - expected).norm(dim=-1) / expected.norm(dim=-1)
    print(f"{what:58} {float((y - expected).norm() / expected.norm()):9.2%} {float(of_tokens.max()):9.2%}")


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="4096x12288")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    hidden, intermediate = map(int, options.shape.split("x"))
    made = linears(hidden, intermediate, options.device)
    x = torch.randn(options.tokens, hidden, device=options.device).bfloat16()
    tensors, x64 = checkpoint(made, x), x.double()
    exact = in_fp64(x64, *(weight_of(made[name]) for name in NAMES))
    of_floats = in_fp64(x64, *(made[name].weight.double() for name in NAMES))
    device = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    ratio = float(tensors["up_proj.weight_scale_2"] / tensors["gate_proj.weight_scale_2"])
    print(f"{device}: {options.shape}, {options.tokens} tokens, up's scale / gate's = {ratio:.3f}\n"
          f"{'against fp64 of the same weights':58} {'all':>9} {'a token':>9}")
    y = run(tensors, x, "16bit")
    report("activations of 16 bits", y, exact)
    report("activations in NVFP4, by input_scale", run(tensors, x, "nvfp4"), exact)
    report("activations in NVFP4, by a scale for each row", run(tensors, x, "nvfp4", ("input_scale",)), exact)
    report("16 bits, gate and up by the larger of their scales", run(tensors, x, "16bit", common_scale=True), exact)
    print("against fp64 of the float weights")
    report("activations of 16 bits", y, of_floats)


if __name__ == "__main__": main()
