#!/usr/bin/env python3
"""torch_nn_running_test.py -- layers of dualgemm.nn in PyTorch: torch.compile, autocast, CUDA graphs, batches of any
size, rows at any address. On the CPU, and on a GPU if there is one. Exits with 77 where there is no torch, or where its
operators are not built.

    torch_nn_running_test.py MODULE [unittest's arguments]
"""
import itertools
import sys
import unittest
import warnings

sys.path.insert(0, sys.argv[1])
try:
    import torch
    from dualgemm import FLAG_BATCH_INVARIANT, nn
    from nvfp4_layers import (BF16, DEVICES, EXPERTS, FP16, GPU, HIDDEN, INNER, INPUT_SCALE, Case, FloatMlp, dense,
                              module_of, stacked, weight)
except ImportError as error:
    print(f"torch_nn_running_test.py: skipped: {error}")
    sys.exit(77)


class Torch(Case):
    def layers(self, device, **options):
        tensors = weight(40, HIDDEN, 0.02, input_scale=INPUT_SCALE)
        yield module_of(nn.Linear, tensors, device, HIDDEN, 40, False, **options)
        yield module_of(nn.GatedMLP, dense("modelopt", INPUT_SCALE), device, HIDDEN, INNER, **options)
        experts = module_of(nn.MoE, stacked("modelopt", INPUT_SCALE), device, HIDDEN, INNER, EXPERTS, 2, **options)
        routed = torch.nn.Module()
        routed.experts = experts
        order = torch.arange(EXPERTS, device=device) / EXPERTS
        routed.forward = lambda x: experts(x, (x[..., :EXPERTS] > 0) + order)  # of any type the same
        yield routed

    def test_one_compiled_graph_for_any_number_of_rows(self):
        for device, a_format in itertools.product(DEVICES, ("auto", "nvfp4")):
            for module in self.layers(device, a_format=a_format):
                graphs = []
                torch._dynamo.reset()  # graphs of one piece of code are limited, of whichever module they are

                def backend(graph, _):
                    graphs.append(graph)
                    return graph
                compiled = torch.compile(module, backend=backend, fullgraph=True, dynamic=True)
                lowered = torch.compile(module, backend="aot_eager", fullgraph=True, dynamic=True)
                with self.subTest(device, a_format=a_format, module=type(module).__name__):
                    for rows in (7, 2, 33):
                        x = torch.randn(3, rows, HIDDEN, device=device).to(BF16)
                        self.same(compiled(x), module(x))
                        self.same(lowered(x), module(x))
                    if isinstance(module, nn.GatedMLP):  # other weights need no other graph
                        module.load_state_dict(dense("modelopt", INPUT_SCALE, scales=(0.02, 0.01, 0.05)))
                        self.same(compiled(x), module(x))
                    self.assertEqual(len(graphs), 1)

    def test_a_module_that_nothing_has_prepared_is_compiled(self):
        tensors, x = weight(40, HIDDEN, 0.02), torch.randn(3, HIDDEN).to(BF16)
        module = nn.Linear(HIDDEN, 40, bias=False)
        for name, tensor in tensors.items(): module._buffers[name] = tensor
        y = torch.compile(module, backend="aot_eager", fullgraph=True)(x)
        self.assertFalse(module.prepared)
        self.same(y, module(x))

    def test_nothing_of_a_module_is_hidden(self):
        """By an attribute of the same name: programs call these on every module of a model."""
        for layer in self.layers("cpu"):
            for module in layer.modules():
                for name in dir(torch.nn.Module):
                    if name.startswith("__") or not callable(getattr(torch.nn.Module, name)): continue
                    self.assertTrue(callable(getattr(module, name)), f"{type(module).__name__}.{name}")
            layer.zero_grad()
            self.assertIs(layer.requires_grad_(False), layer)
            self.assertEqual(list(layer.parameters()), [])

    def test_autocast(self):
        for device in DEVICES:
            for module in self.layers(device):
                x = torch.randn(3, HIDDEN, device=device)
                for dtype in (BF16, FP16):
                    wanted = module(x.to(dtype))
                    with torch.autocast(device, dtype=dtype):
                        self.same(module(x.to(dtype)), wanted)
                        self.same(module(x), wanted)
                    with torch.autocast(device, dtype=BF16): self.same(module(x.to(dtype)), wanted)

    def test_rows_of_any_batch_are_alike(self):
        """On a GPU kernels differ with the rows; on the CPU there is one way to compute."""
        for device in DEVICES:
            for module in self.layers(device, flags=FLAG_BATCH_INVARIANT):
                x = torch.randn(64, HIDDEN, device=device).to(BF16)
                whole = module(x)
                for rows in range(1, 65) if device == "cuda" else (1, 2, 33): self.same(module(x[:rows]), whole[:rows])

    def test_rows_of_experts_are_alike(self):
        OnGpu.check_rows_of_experts(self, "cpu", HIDDEN, INNER, (1, 7))

    def test_rows_that_lie_apart(self):
        for device in DEVICES:
            module = next(self.layers(device))
            x = torch.randn(6, 2 * HIDDEN, device=device).to(BF16)
            self.same(module(x[::2, :HIDDEN]), module(x[::2, :HIDDEN].clone()))
            self.same(module(x[:, 4:4 + HIDDEN]), module(x[:, 4:4 + HIDDEN].clone()))

    def test_fake_tensors(self):
        """They have no address: who asks for one is warned."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        module = next(self.layers("cpu"))
        with warnings.catch_warnings(), FakeTensorMode(allow_non_fake_inputs=True):
            warnings.simplefilter("error")
            y = module(torch.empty(3, HIDDEN, dtype=BF16))
        self.assertEqual((y.shape, y.dtype), ((3, 40), BF16))

    def test_rows_at_any_address(self):
        for device, a_format in itertools.product(DEVICES, ("auto", "nvfp4")):
            room = torch.randn(3 * HIDDEN + 8, device=device).to(BF16)
            room = room[-room.data_ptr() % 16 // 2:]
            for module in self.layers(device, a_format=a_format):
                for begin in (1, 4):
                    x = room[begin:begin + 3 * HIDDEN].view(3, HIDDEN)
                    self.assertTrue(x.is_contiguous() and x.data_ptr() % 16)
                    self.same(module(x), module(x.clone()))
            ids = torch.randint(EXPERTS, (13,), device=device, dtype=torch.int32)
            shares = torch.rand(13, device=device)
            apart = ids[1:].view(6, 2), shares[1:].view(6, 2)
            experts, x = module.experts, torch.randn(6, HIDDEN, device=device).to(BF16)
            self.same(experts.apply_experts(x, *apart), experts.apply_experts(x, *(each.clone() for each in apart)))


@unittest.skipUnless(GPU, "there is no GPU")
class OnGpu(Case):
    def test_a_graph_replays(self):
        for module in Torch.layers(self, "cuda"):
            x = torch.randn(5, HIDDEN, device="cuda").to(BF16)
            module(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph): y = module(x)
            x.copy_(torch.randn_like(x))
            graph.replay()
            self.same(y, module(x))

    def check_rows(self, module, hidden):
        """A row's bits are the same in every batch of 1 to 64 rows, and in whatever place."""
        x = torch.randn(64, hidden, device="cuda").to(BF16)
        whole = module(x)
        self.assertFalse(torch.equal(whole[:1].expand_as(whole), whole))
        for rows in range(1, 65): self.same(module(x[:rows]), whole[:rows])
        self.same(module(x.flip(0)), whole.flip(0))

    def test_rows_of_any_batch_are_alike_where_k_could_be_split(self):
        """Of linears as models have them: long and short k, few and many rows of weights, and parts of tiles."""
        for a_format, (k, n) in itertools.product(("auto", "nvfp4"), (
                (4096, 1024), (4096, 6144), (12288, 4096), (25600, 5120), (5120, 128), (2048, 24), (768, 2304),
                (96, 40))):
            linear = torch.nn.Linear(k, n, device="cuda", dtype=BF16)
            module = nn.Linear.from_float(linear, a_format=a_format, flags=FLAG_BATCH_INVARIANT)
            with self.subTest("Linear", k=k, n=n, a_format=a_format): self.check_rows(module, k)

    def test_rows_of_gated_mlps_are_alike_where_k_could_be_split(self):
        for a_format, (hidden, inner) in itertools.product(("auto", "nvfp4"), (
                (4096, 3072), (4096, 12288), (5120, 1728), (2048, 768), (1536, 8960), (96, 160))):
            module = module_of(nn.GatedMLP, dense("modelopt", hidden=hidden, inner=inner), "cuda", hidden, inner,
                               a_format=a_format, flags=FLAG_BATCH_INVARIANT)
            with self.subTest("GatedMLP", hidden=hidden, inner=inner, a_format=a_format):
                self.check_rows(module, hidden)

    def test_rows_of_experts_are_alike_where_k_could_be_split(self):
        """Whichever rows there are besides, and in whatever order: a row's neighbours in a tile are others then."""
        self.check_rows_of_experts("cuda", 2048, 2048, range(1, 65))
        for hidden, inner in (4096, 1536), (768, 3072):
            self.check_rows_of_experts("cuda", hidden, inner, (1, 2, 17, 64))

    def check_rows_of_experts(self, device, hidden, inner, counts):
        sources = [FloatMlp(torch.nn.SiLU(), hidden=hidden, inner=inner).to(device) for _ in range(EXPERTS)]
        for a_format in ("auto", "nvfp4"):
            module = nn.MoE.from_float(sources, 2, a_format=a_format, flags=FLAG_BATCH_INVARIANT)
            x, logits = torch.randn(64, hidden, device=device).to(BF16), torch.randn(64, EXPERTS, device=device)
            whole = module(x, logits)
            self.assertFalse(torch.equal(whole[:1].expand_as(whole), whole))
            for rows in counts:
                for order in (torch.arange(rows), torch.randperm(64)[:rows]):
                    with self.subTest(device, a_format=a_format, rows=rows):
                        order = order.to(device)
                        self.same(module(x[order], logits[order]), whole[order])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
