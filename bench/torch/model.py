#!/usr/bin/env python3
"""model.py -- a language model as the package transformers runs it, on a Hopper GPU: with its weights in bf16, and with
its linear layers replaced by dualgemm.transformers.convert; where the package `humming` can be imported, with Humming's
NVFP4 kernels in their place, too, and with those of each FILE.so (../contender.h). These get gate and up in one launch,
and q, k and v in one, which serves them better. The models have the shapes of published ones and random weights.

Measured are a step of decoding, captured into a CUDA graph the same way for each (with --compile through
torch.compile), and a prefill. Prints and, with --json, keeps medians; of a run that is stopped what was measured stays.

    make bench-model ARGS="[--models qwen3-32b,qwen3-8b] [--layers N] [--batches 1,8] [--contender FILE.so]...
                           [--compile] [--json FILE]"
"""
import argparse
import copy
import gc
import json
import statistics
import sys

import torch
from torch.nn import functional

import dualgemm
from contender import Linear, add_option, quantised
try:
    import transformers
    from dualgemm.transformers import convert
except ImportError as error:
    sys.exit(f"bench/torch needs the package transformers: {error}")

try:
    from humming.layer import HummingLayer
except ImportError:
    HummingLayer = None

DEVICE = "cuda"
# hidden, intermediate, layers, heads, heads of keys and values; 128 elements a head, 151936 tokens.
MODELS = {"qwen3-32b": (5120, 25600, 64, 64, 8), "qwen3-8b": (4096, 12288, 36, 32, 8), "tiny": (256, 384, 2, 2, 2)}
PROMPT, BLOCK, BLOCKS = 256, 20, 5  # tokens before the steps; steps timed together, and how often
CACHE = PROMPT + BLOCK * (BLOCKS + 2)


def config_of(name, layers):
    hidden, intermediate, all_layers, heads, kv_heads = MODELS[name]
    return transformers.Qwen3Config(
        hidden_size=hidden, intermediate_size=intermediate, num_hidden_layers=layers or all_layers,
        num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=128,
        vocab_size=1024 if name == "tiny" else 151936, tie_word_embeddings=False, eos_token_id=None, bos_token_id=None,
        max_position_embeddings=40960)


def built(config):
    torch.manual_seed(1)
    with torch.device(DEVICE):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")
    return model.eval()


# ---- the contenders ----

class HummingLinear(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.n, k = weight.shape
        self.layer = HummingLayer(shape_n=self.n, shape_k=k, torch_dtype=weight.dtype,
                                  weight_config={"dtype": "float4e2m1", "group_size": 16, "scale_dtype": "float8e4m3",
                                                 "scale_2_type": "tensor"}).to(DEVICE)
        self.layer.load_from_unquantized(weight)
        self.layer.transform()

    def forward(self, x):
        return self.layer(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], self.n)


class MLP(torch.nn.Module):
    """Gate and up in one launch."""

    def __init__(self, mlp, linear):
        super().__init__()
        self.gate_up = linear(torch.cat((mlp.gate_proj.weight, mlp.up_proj.weight)))
        self.down = linear(mlp.down_proj.weight)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, -1)
        return self.down(functional.silu(gate) * up)


class First(torch.nn.Module):
    """Of linears of one input that are called one after the other: computes all of them in one launch."""

    def __init__(self, linear, sizes):
        super().__init__()
        self.linear, self.sizes, self.others = linear, sizes, []

    def forward(self, x):
        first, *self.others[:] = self.linear(x).split(self.sizes, -1)
        return first


class Next(torch.nn.Module):
    def __init__(self, first):
        super().__init__()
        self.others = first.others

    def forward(self, x): return self.others.pop(0)


@torch.no_grad()
def replaced(model, linear):
    """With linear(weight) for each of its linear layers."""
    for layer in model.model.layers:
        layer.mlp = MLP(layer.mlp, linear)
        attention = layer.self_attn
        weights = [getattr(attention, name).weight for name in ("q_proj", "k_proj", "v_proj")]
        attention.q_proj = First(linear(torch.cat(weights)), [len(weight) for weight in weights])
        attention.k_proj, attention.v_proj = (Next(attention.q_proj) for _ in range(2))
        attention.o_proj = linear(attention.o_proj.weight)
    return model


def of_contender(contender):
    return lambda model: replaced(model, lambda weight: Linear(contender, *quantised(weight), weight.dtype))


CONTENDERS = {"bf16": lambda model: model, "dualgemm": convert,
              "dualgemm, PDL, static": lambda model: convert(
                  model, flags=dualgemm.FLAG_PDL | dualgemm.FLAG_STATIC_WEIGHTS),
              "dualgemm, batch invariant": lambda model: convert(model, flags=dualgemm.FLAG_BATCH_INVARIANT)}
if HummingLayer: CONTENDERS["Humming"] = lambda model: replaced(model, HummingLinear)


# ---- measurements ----

def timed(function, calls):
    """Milliseconds a call, of `calls` of them one after the other."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(calls): function()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / calls


def decode(model, batch):
    """Of a step of decoding: the token of every sequence, from the logits of the one before."""
    token = torch.randint(0, model.config.vocab_size, (batch, PROMPT), device=DEVICE)
    cache = transformers.StaticCache(config=model.config, max_cache_len=CACHE)
    token = model(token, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1:].argmax(-1)

    def step():
        logits = model(token, past_key_values=cache, use_cache=True).logits
        token.copy_(logits[:, -1:].argmax(-1))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3): step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): step()
    timed(graph.replay, BLOCK // 2)
    return statistics.median(timed(graph.replay, BLOCK) for _ in range(BLOCKS))


def prefill(model, tokens):
    ids = torch.randint(0, model.config.vocab_size, (1, tokens), device=DEVICE)
    def whole(): model(ids, use_cache=False, logits_to_keep=1)
    for _ in range(2): whole()
    return statistics.median(timed(whole, 1) for _ in range(7))


def bytes_of_linears(model):
    """Bytes that the layers' modules hold. Norms are in them, a ten-thousandth of the rest."""
    layers = model.model.layers
    return sum(tensor.numel() * tensor.element_size() for tensor in (*layers.parameters(), *layers.buffers()))


def output(model):
    """Hidden states behind the first layer, of tokens that are the same for every contender."""
    ids = torch.arange(64, device=DEVICE)[None] % model.config.vocab_size
    return model.model(ids, use_cache=False, output_hidden_states=True).hidden_states[1].double()


def free():
    torch.compiler.reset()  # which otherwise gives up compiling after a few models
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


@torch.no_grad()
def measure(config, contender, options, first):
    """Of one contender. `first`: the output of the float model; contenders whose error is that of other numbers than
    four bits' are not timed."""
    free()
    model = CONTENDERS[contender](built(copy.deepcopy(config)))  # convert notes in it what it has done
    free()
    result = {"contender": contender, "layers": config.num_hidden_layers, "linears_gb": bytes_of_linears(model) / 1e9}
    out = output(model)
    if first is not None:
        result["error"] = float((out - first).norm() / first.norm())
        if not result["error"] < 0.5: raise RuntimeError(f"another model: relative error {result['error']:.3f}")
    if options.prefill: result["prefill_ms"] = prefill(model, options.prefill)
    called = torch.compile(model, dynamic=False) if options.compile else model
    for batch in options.batches: result[f"decode{batch}_ms"] = decode(called, batch)
    result["peak_gb"] = torch.cuda.max_memory_allocated() / 1e9
    return result, out if first is None else first


# ---- the report ----

def write(path, options, results):
    """As dualgemm_bench writes a report: a line for each result."""
    if not path: return
    lines = ",\n".join("    " + json.dumps(result) for result in results)
    head = {"compiled": options.compile, "device": torch.cuda.get_device_name(), "prefill": options.prefill,
            "prompt": PROMPT, "torch": torch.__version__, "transformers": transformers.__version__}
    fields = "".join(f'  "{key}": {json.dumps(value)},\n' for key, value in head.items())
    with open(path, "w", encoding="utf-8") as file: file.write(f'{{\n{fields}  "results": [\n{lines}\n  ]\n}}\n')


def arguments():
    def numbers(text): return [int(number) for number in text.split(",") if number]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="qwen3-8b,qwen3-32b", help=", ".join(MODELS))
    parser.add_argument("--layers", type=int, default=0, help="0: all that the model has")
    parser.add_argument("--batches", type=numbers, default=[1, 8], help="sequences that are decoded together")
    parser.add_argument("--prefill", type=int, default=2048, help="tokens; 0: none")
    parser.add_argument("--contenders", help="of these alone, with semicolons: " + "; ".join(CONTENDERS))
    add_option(parser)
    parser.add_argument("--compile", action="store_true", help="decode through torch.compile")
    parser.add_argument("--json")
    return parser.parse_args()


def main():
    options, results = arguments(), []
    CONTENDERS.update((contender.title, of_contender(contender)) for contender in options.contender)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, transformers {transformers.__version__}; "
          f"{PROMPT} tokens before the steps", flush=True)
    for name in options.models.split(","):
        config, first = config_of(name, options.layers), None
        for contender in options.contenders.split(";") if options.contenders else CONTENDERS:
            try:
                result, first = measure(config, contender, options, first)
            except torch.cuda.OutOfMemoryError as error:
                print(f"{name}, {contender}: {error}", flush=True)
                continue
            results.append({"model": name, **result})
            print(f"{name}: " + ", ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{value}"
                                          for key, value in result.items()), flush=True)
            write(options.json, options, results)


if __name__ == "__main__": main()
