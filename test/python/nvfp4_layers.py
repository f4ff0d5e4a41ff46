"""What tests of dualgemm.nn share: tensors of checkpoints with random numbers, a decoder of them in fp64 that shares
nothing with the library, and what a layer of them computes, with a bound. Raises ImportError where there is no
torch."""
import itertools
import unittest

import torch

GPU = torch.cuda.is_available()
DEVICES = ("cpu", "cuda") if GPU else ("cpu",)
HOPPER = not GPU or torch.cuda.get_device_capability() == (9, 0)
BF16, FP16, FP32, FP64, E4M3 = (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.float8_e4m3fn)
HALF_ULP = {BF16: 2.0**-8, FP16: 2.0**-11}  # relative, of a normal number
FORMATS = {"modelopt": ("weight", "weight_scale", "weight_scale_2", "input_scale"),
           "compressed-tensors": ("weight_packed", "weight_scale", "weight_global_scale", "input_global_scale")}
HIDDEN, INNER, EXPERTS = 64, 96, 4
STEMS = ("gate_proj.", "up_proj.", "down_proj.")
INPUT_SCALE = 2.0**-9  # A of exact() is exact in it

# ---- an oracle ----

CODES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=FP64)
FACTORS = torch.tensor([(8 + b % 8) * 2.0**(b // 8 - 10) if b > 7 else b * 2.0**-9 for b in range(127)], dtype=FP64)


def decoded(elements, factors):
    """[..., n, k/2] and [..., n, k/16] as numbers."""
    elements, factors = elements.cpu().view(torch.uint8).long(), factors.cpu().view(torch.uint8).long()
    codes = torch.stack((elements & 15, elements >> 4), -1).flatten(-2)
    return CODES[codes] * FACTORS[factors].repeat_interleave(16, -1)


def decoded_weight(tensors, stem=""):
    for format, (elements, factors, scale, _) in FORMATS.items():
        if stem + elements not in tensors: continue
        number = tensors[stem + scale].double().cpu().reshape(-1, 1, 1)
        w = decoded(tensors[stem + elements], tensors[stem + factors])
        w = w * (number if format == "modelopt" else 1 / number)
        return w if w.dim() == tensors[stem + elements].dim() else w[0]
    raise KeyError(stem)


def product(x, w, bias=None):
    """x W^T in fp64, and what a launch may be off before it is rounded: each of k products and sums keeps 22 places of
    what has the largest magnitude, which is below the sum of the magnitudes."""
    y, size = x @ w.mT, x.abs() @ w.abs().mT
    return (y, size * x.shape[-1] * 2.0**-22) if bias is None else \
        (y + bias.double().cpu(), (size + bias.double().cpu().abs()) * x.shape[-1] * 2.0**-22)


def silu(x):
    return x * torch.sigmoid(x)


def parts_of(x, w, ranks):
    """The magnitudes of the parts that ranks have of a product, added up."""
    return sum((a @ b.mT).abs() for a, b in zip(x.chunk(ranks, -1), w.chunk(ranks, -1)))


BY_ROW = "a scale for each row"


def decode_of_h(tensors):
    """The scale that a checkpoint says for the A of down, of each expert if there are some."""
    for format, (_, _, _, scale) in FORMATS.items():
        if STEMS[2] + scale not in tensors: continue
        number = tensors[STEMS[2] + scale].double().cpu().flatten()
        return number if format == "modelopt" else 1 / number
    return BY_ROW


def in_nvfp4(h, off, decode):
    """h [..., k], which may be off by so much, in NVFP4, and a bound. Factors and elements are rounded to nearest. So
    what h becomes lies between what its ends become, each with either factor that its block may have."""
    of_decode = 0.0  # how far it may be off
    if decode is BY_ROW:
        place = h.abs().argmax(-1, keepdim=True)
        largest = h.abs().gather(-1, place)
        decode, of_decode = largest / (6 * 448), off.gather(-1, place) / largest
        off = off + h.abs() * of_decode
    blocks, off = (h / decode).unflatten(-1, (-1, 16)), ((off + h.abs() * 2.0**-22) / decode).unflatten(-1, (-1, 16))
    largest, room = blocks.abs().amax(-1, keepdim=True), off.amax(-1, keepdim=True)

    def rounded(elements, largest):
        factors = (largest / 6).clamp(0, 448).to(E4M3).double()
        nearest = (elements.abs() / factors).nan_to_num()[..., None].sub(CODES[:8]).abs().argmin(-1)
        return (CODES[nearest] * elements.sign() * factors).flatten(-2) * decode
    middle = rounded(blocks, largest)
    ends = [rounded(blocks + side * off, largest + other * room) for side in (-1, 1) for other in (-1, 1)]
    return middle, (torch.stack(ends) - middle).abs().amax(0) * (1 + of_decode) + middle.abs() * of_decode


def mlp(x, gate, up, down, dtype, biases=(None, None, None), act=silu, decode=None, ranks=1, value=lambda u: u,
        quantise=in_nvfp4, product=product):
    """The MLP, and a bound. 1.2 is above every derivative of an activation here, that of `value` is at most 1, and a
    GPU's sigmoid or erf has 20 places behind the point. h is rounded in between: to `dtype`, or with `decode`, the
    scale of h, by `quantise`. Behind BY_ROW it is both."""
    (g, eg), (u, eu) = product(x, gate, biases[0]), product(x, up, biases[1])
    u = value(u)
    h = act(g) * u
    eh = 1.2 * eg * (u.abs() + eu) + act(g).abs() * eu + (1 + g.abs()) * u.abs() * 2.0**-20 + 2.0**-24
    if decode is None or decode is BY_ROW: eh = eh + (h.abs() + eh) * HALF_ULP[dtype]
    if decode is not None: h, eh = quantise(h, eh, decode)
    y, ey = product(h, down, biases[2])
    ey = ey + eh @ down.abs().mT
    if ranks > 1:  # each part is rounded; those that are added differ from these by what h differs
        ey = ey * (1 + HALF_ULP[dtype]) + HALF_ULP[dtype] * parts_of(h, down, ranks)
        if biases[2] is not None: ey = ey + HALF_ULP[dtype] * biases[2].double().abs()
    return y, ey


def oracle_of_experts(x, ids, weights, tensors, dtype, quantised=False, ranks=1, decoded_weight=decoded_weight, **how):
    """Each token's choices one by one, and a bound. Rows of experts are rounded, and with ranks each rank's sum. `how`
    is what mlp() takes."""
    biases = [tensors.get(stem + "bias", [None] * EXPERTS) for stem in STEMS]
    gate, up, down = (decoded_weight(tensors, stem) for stem in STEMS)
    decode = decode_of_h(tensors) if quantised else None
    total, bound = torch.zeros(x.shape, dtype=FP64), torch.zeros(x.shape, dtype=FP64)
    for t, s in itertools.product(range(ids.shape[0]), range(ids.shape[1])):
        e, share = int(ids[t, s]), float(weights[t, s])
        if not 0 <= e < EXPERTS: continue
        y, off = mlp(x[t:t + 1].double(), gate[e], up[e], down[e], dtype, [bias[e] for bias in biases], ranks=ranks,
                     decode=decode[e] if isinstance(decode, torch.Tensor) else decode, **how)
        total[t] += share * y[0]
        bound[t] += share * (off[0] * min(ranks, 2) + y[0].abs() * (HALF_ULP[dtype] + 2.0**-20))
    return total, bound


# ---- tensors of a checkpoint ----

def weight(n, k, scale, format="modelopt", input_scale=None, experts=None):
    """Random elements, and factors none of which is NaN."""
    lead = () if experts is None else (experts,)
    names, given = FORMATS[format], [scale] if input_scale is None else [scale, input_scale]
    if format != "modelopt": given = [1 / number for number in given]
    tensors = {names[0]: torch.randint(256, (*lead, n, k // 2), dtype=torch.uint8),
               names[1]: torch.randint(0x28, 0x40, (*lead, n, k // 16), dtype=torch.uint8).view(E4M3)}
    shape = (*lead,) if format == "modelopt" else (*lead, 1)
    for name, number in zip(names[2:], given): tensors[name] = torch.full(shape, number) * (
        1 if experts is None else torch.arange(1, experts + 1).reshape(shape) / 2)
    return tensors


def named(stem, tensors):
    return {stem + name: tensor for name, tensor in tensors.items()}


def dense(format="modelopt", input_scale=None, hidden=HIDDEN, inner=INNER, scales=(0.01, 0.03, 0.02)):
    """Gate, up and down, whose scales differ."""
    return {**named("gate_proj.", weight(inner, hidden, scales[0], format, input_scale)),
            **named("up_proj.", weight(inner, hidden, scales[1], format, input_scale)),
            **named("down_proj.", weight(hidden, inner, scales[2], format, input_scale))}


def exact(*shape, dtype=BF16):
    """Activations that NVFP4 holds exactly, with INPUT_SCALE or with a scale of each row: a 6 in each block, and the
    largest factor in each row."""
    k = shape[-1]
    codes = torch.randint(16, (*shape[:-1], k // 16, 16))
    codes[..., 0] = 7
    factors = torch.randint(0x58, 0x68, (*shape[:-1], k // 16, 1))
    factors[..., 0, :] = 0x7E
    return (CODES[codes] * FACTORS[factors]).flatten(-2).to(dtype) * INPUT_SCALE


def stacked(format, input_scale=None):
    return {**named("gate_proj.", weight(INNER, HIDDEN, 0.01, format, input_scale, EXPERTS)),
            **named("up_proj.", weight(INNER, HIDDEN, 0.03, format, input_scale, EXPERTS)),
            **named("down_proj.", weight(HIDDEN, INNER, 0.02, format, input_scale, EXPERTS))}


def each_expert(tensors, words=("w1", "w3", "w2"), before="experts."):
    return {f"{before}{e}.{name}": t[e].clone() for e in range(EXPERTS) for name, t in rename(tensors, words).items()}


def in_one(tensors, words=("w13", "w2"), before="", bare=False, rows="stacked"):
    """[experts, 2 n, ...], gate's rows first or in turn, and scales [experts, 2]."""
    found = {}
    for name, tensor in tensors.items():
        stem, leaf = name.split(".")
        end = "" if bare and leaf == "weight" else "_" + leaf
        if stem == "down_proj": found[before + words[1] + end] = tensor
        if stem != "gate_proj": continue
        up = tensors[f"up_proj.{leaf}"]
        scales = "scale_2" in leaf or "input" in leaf
        found[before + words[0] + end] = joined = torch.stack((tensor, up), 1) if scales else torch.cat((tensor, up), 1)
        if rows == "interleaved" and not scales: joined[:, ::2], joined[:, 1::2] = tensor, up
    return found


# ---- other words for them ----

def rename(tensors, words):
    known = dict(zip(("gate_proj", "up_proj", "down_proj"), words))
    return {".".join([*name.split(".")[:-2], known[name.split(".")[-2]], name.split(".")[-1]]): t
            for name, t in tensors.items()}


def fuse(tensors, words, rows="stacked"):
    """Gate's rows, then up's, or in turn; scales are two."""
    fused = {}
    for name, tensor in tensors.items():
        stem, leaf = name.split(".")
        if stem == "down_proj": fused[f"{words[1]}.{leaf}"] = tensor
        if stem != "gate_proj": continue
        both = tensor, tensors[f"up_proj.{leaf}"]
        joined = torch.stack([t.squeeze() for t in both]) if tensor.dim() < 2 else torch.cat(both)
        if rows == "interleaved" and tensor.dim() == 2:
            for side in range(2): joined[side::2] = both[side]
        fused[f"{words[0]}.{leaf}"] = joined
    return fused


# ---- modules ----

class FloatMlp(torch.nn.Module):
    def __init__(self, act_fn, bias=False, dtype=BF16, hidden=HIDDEN, inner=INNER):
        super().__init__()
        self.gate_proj, self.up_proj = (torch.nn.Linear(hidden, inner, bias, dtype=dtype) for _ in range(2))
        self.down_proj, self.act_fn = torch.nn.Linear(inner, hidden, bias, dtype=dtype), act_fn


def bits(tensor):
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(11)

    def same(self, got, wanted):
        self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
        self.assertTrue(torch.equal(bits(got), bits(wanted)))

    def same_tensors(self, got, wanted):
        self.assertEqual(got.keys(), wanted.keys())
        for name in wanted:
            with self.subTest(name): self.same(got[name], wanted[name])

    def close(self, got, wanted, bound, times=3):
        wanted, bound = wanted.reshape(got.shape), bound.reshape(got.shape)
        off = (got.double().cpu() - wanted).abs() - bound - (wanted.abs() + bound) * HALF_ULP[got.dtype]
        self.assertLessEqual(float(off.max()), 0, f"bound {float(bound.max())}")
        # No result of zeros passes; with the usual 3 `times` not even half of the right one does.
        self.assertGreater(float(wanted.norm()), times * float(bound.norm()))


def module_of(kind, tensors, device="cpu", *args, **options):
    module = kind(*args, device=device, **options)
    module.load_state_dict(tensors)
    return module


def a_formats(device):
    return ("nvfp4", "16bit", "auto") if device == "cpu" or HOPPER else ("nvfp4", "auto")
