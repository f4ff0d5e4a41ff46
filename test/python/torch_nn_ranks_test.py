#!/usr/bin/env python3
"""torch_nn_ranks_test.py -- layers of dualgemm.nn on several ranks, which are processes of this file: on the CPU, and
on two GPUs if there are as many. Exits with 77 where there is no torch, or where its operators are not built.

    torch_nn_ranks_test.py MODULE [unittest's arguments]
"""
import itertools
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv[1])
try:
    import torch
    from dualgemm import nn
    from nvfp4_layers import (BF16, EXPERTS, GPU, HALF_ULP, HIDDEN, STEMS, Case, bits, decoded_weight, dense,
                              each_expert, fuse, mlp, module_of, named, oracle_of_experts, parts_of, product, weight)
except ImportError as error:
    print(f"torch_nn_ranks_test.py: skipped: {error}")
    sys.exit(77)

RANKS = 2
WIDE = 128  # of the inner dimension, of which each rank has 64


def sharded():
    """What runs on ranks: a class, its arguments and its options."""
    options = dict(bias=True, dtype=BF16)
    return {"Linear, columns": (nn.Linear, (HIDDEN, 48), dict(parallel="column", **options)),
            "Linear, rows": (nn.Linear, (WIDE, 40), dict(parallel="row", **options)),
            "GatedMLP": (nn.GatedMLP, (HIDDEN, WIDE), options), "GatedMLP, fused": (nn.GatedMLP, (HIDDEN, WIDE), {}),
            "MoE": (nn.MoE, (HIDDEN, WIDE, EXPERTS, 2), {}),
            "MoE, biases": (nn.MoE, (HIDDEN, WIDE, EXPERTS, 2), options)}


def rank_main(rank, folder, backend):
    """One rank: loads whole tensors, of which it takes its part, and writes its results."""
    device = f"cuda:{rank}" if backend == "nccl" else "cpu"
    if backend == "nccl": torch.cuda.set_device(rank)
    torch.distributed.init_process_group(backend, init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS)
    given, results = torch.load(f"{folder}/given.pt", weights_only=True), {}
    for name, (kind, args, options) in sharded().items():
        module, again = (kind(*args, device=place, tp_rank=rank, tp_size=RANKS, group=group, **options)
                         for place, group in (("meta", None), (device, torch.distributed.group.WORLD)))
        module.load_state_dict({key: t.to(device) for key, t in given[name]["tensors"].items()}, assign=True)
        inputs = [t.to(device) for t in given[name]["inputs"]]
        if name == "Linear, rows": inputs = [inputs[0].chunk(RANKS, 1)[rank]]
        results[name] = module(*inputs).cpu()
        again.load_state_dict(module.state_dict())  # of this rank
        results[name + ", again"] = again(*inputs).cpu()
        compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
        results[name + ", compiled"] = compiled(*inputs).cpu()
        results[name + ", weights"] = sum(t.numel() for t in module.buffers() if t.dtype == torch.uint8)
    torch.save(results, f"{folder}/rank{rank}.pt")
    torch.distributed.destroy_process_group()


class Ranks(Case):
    """The ranks' sum is rounded, and so is each rank's part of it before."""

    def setUp(self):
        super().setUp()
        self.moe = {**named("gate_proj.", weight(WIDE, HIDDEN, 0.01, experts=EXPERTS)),
                    **named("up_proj.", weight(WIDE, HIDDEN, 0.03, experts=EXPERTS)),
                    **named("down_proj.", weight(HIDDEN, WIDE, 0.02, experts=EXPERTS))}
        self.biased = {**self.moe, **{f"{stem}_proj.bias": torch.randn(EXPERTS, n).to(BF16)
                                      for stem, n in (("gate", WIDE), ("up", WIDE), ("down", HIDDEN))}}
        self.mlp = dense(inner=WIDE)
        self.biases = [torch.randn(n).to(BF16) for n in (WIDE, WIDE, HIDDEN)]
        self.x, self.logits = torch.randn(5, HIDDEN).to(BF16), torch.randn(5, EXPERTS)
        self.tensors = {
            "Linear, columns": {**weight(48, HIDDEN, 0.02), "bias": torch.randn(48).to(BF16)},
            "Linear, rows": {**weight(40, WIDE, 0.02, "compressed-tensors"), "bias": torch.randn(40).to(BF16)},
            "GatedMLP": {**self.mlp, **{f"{n}_proj.bias": b for n, b in zip(("gate", "up", "down"), self.biases)}},
            "GatedMLP, fused": fuse(self.mlp, ("gate_up_proj", "down_proj")), "MoE": each_expert(self.moe),
            "MoE, biases": each_expert(self.biased)}
        self.inputs = {name: [self.x] for name in self.tensors}
        self.inputs.update({"Linear, rows": [torch.randn(5, WIDE).to(BF16)], "MoE": [self.x, self.logits],
                            "MoE, biases": [self.x, self.logits]})

    def run_ranks(self, backend):
        with tempfile.TemporaryDirectory() as folder:
            torch.save({name: dict(tensors=t, inputs=self.inputs[name]) for name, t in self.tensors.items()},
                       f"{folder}/given.pt")
            ranks = [subprocess.Popen([sys.executable, __file__, sys.argv[1], "--rank", str(rank), folder, backend])
                     for rank in range(RANKS)]
            self.assertEqual([rank.wait() for rank in ranks], [0] * RANKS)
            return [torch.load(f"{folder}/rank{rank}.pt", weights_only=True) for rank in range(RANKS)]

    def check(self, backend):
        results, x = self.run_ranks(backend), self.x.double()
        for name, result in itertools.product(self.tensors, results):
            with self.subTest(name):
                if name != "Linear, columns": self.same(result[name], results[0][name])
                self.same(result[name + ", again"], result[name])
                self.same(result[name + ", compiled"], result[name])
                self.assertEqual(result[name + ", weights"], results[0][name + ", weights"])
        held = self.tensors["Linear, columns"]
        self.close(torch.cat([result["Linear, columns"] for result in results], -1),
                   *product(x, decoded_weight(held), held["bias"]))
        held, (of_rows,) = self.tensors["Linear, rows"], self.inputs["Linear, rows"]
        y, off = product(of_rows.double(), decoded_weight(held), held["bias"])
        parts = parts_of(of_rows.double(), decoded_weight(held), RANKS) + held["bias"].double().abs()
        self.close(results[0]["Linear, rows"], y, off + parts * HALF_ULP[BF16])
        w = [decoded_weight(self.mlp, stem) for stem in STEMS]
        self.close(results[0]["GatedMLP, fused"], *mlp(x, *w, BF16, ranks=RANKS))
        self.close(results[0]["GatedMLP"], *mlp(x, *w, BF16, self.biases, ranks=RANKS))
        shares = self.logits.double().softmax(1)
        weights, ids = shares.topk(2, 1)
        weights = weights / weights.sum(1, keepdim=True)
        for name, tensors in (("MoE", self.moe), ("MoE, biases", self.biased)):
            self.close(results[0][name], *oracle_of_experts(self.x, ids, weights, tensors, BF16, ranks=RANKS))

    @unittest.skipUnless(torch.distributed.is_available() and torch.distributed.is_gloo_available(), "there is no gloo")
    def test_gloo(self):
        self.check("gloo")

    @unittest.skipUnless(GPU and torch.cuda.device_count() >= RANKS, "there are no two GPUs")
    def test_nccl(self):
        self.check("nccl")

    def test_a_rank_is_a_part(self):
        """Without a group: the parts of the ranks, put together, are the whole."""
        parts = [module_of(nn.GatedMLP, self.mlp, "cpu", HIDDEN, WIDE, tp_rank=rank, tp_size=2).state_dict()
                 for rank in range(2)]
        for name, whole in self.mlp.items():
            if whole.dim() < 2: self.same(parts[1][name], whole)
            else: self.same(torch.cat([bits(part[name]).reshape(part[name].shape) for part in parts],
                                      1 if "down" in name else 0).view(whole.dtype), whole)
        with self.assertRaisesRegex(ValueError, "out_features=96: tensor parallelism by tp_size=5 needs a multiple"):
            nn.GatedMLP(HIDDEN, 96, tp_size=5)
        with self.assertRaisesRegex(ValueError, "in_features=96: tensor parallelism by tp_size=2 needs .* 2 x 32"):
            nn.GatedMLP(HIDDEN, 96, tp_size=2)

    def test_no_activation_of_a_part_of_a_sum(self):
        with self.assertRaisesRegex(ValueError, "^activation='silu': is not possible with parallel='row'"):
            nn.Linear(WIDE, 40, activation="silu", parallel="row", tp_size=RANKS)
        for size, options in ((RANKS, dict(parallel="column")), (1, dict(parallel="row"))):
            self.assertEqual(nn.Linear(WIDE, 48, activation="silu", tp_size=size, **options).tp_size, size)


if __name__ == "__main__":
    if sys.argv[2:3] == ["--rank"]: rank_main(int(sys.argv[3]), *sys.argv[4:])
    else: unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
