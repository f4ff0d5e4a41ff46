#!/usr/bin/env python3
"""torch_nn_loading_test.py -- how layers of dualgemm.nn take tensors and give them back, on the CPU and on a GPU if
there is one: load_state_dict, tensors set by name, copies. Exits with 77 where there is no torch, or where its
operators are not built.

    torch_nn_loading_test.py MODULE [unittest's arguments]
"""
import copy
import io
import itertools
import sys
import unittest

sys.path.insert(0, sys.argv[1])
try:
    import torch
    from dualgemm import nn
    from nvfp4_layers import (BF16, DEVICES, E4M3, EXPERTS, FORMATS, FP16, HIDDEN, INNER, INPUT_SCALE, STEMS, Case,
                              dense, each_expert, exact, fuse, module_of, named, stacked, weight)
except ImportError as error:
    print(f"torch_nn_loading_test.py: skipped: {error}")
    sys.exit(77)


class Loading(Case):
    def test_no_weight_is_held_twice(self):
        for device in DEVICES:
            tensors = {name: t.to(device) for name, t in weight(256, 256, 0.02).items()}
            module = nn.Linear(256, 256, bias=False, device="meta")
            self.assertEqual(module(torch.empty(3, 256, dtype=BF16, device="meta")).shape, (3, 256))
            module.load_state_dict(tensors, assign=True)
            self.assertEqual(module.weight.data_ptr(), tensors["weight"].data_ptr())
            held = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in module.buffers()}
            self.assertLess(sum(held.values()), 256 * 256 // 2 + 256 * 256 // 16 + 1024)
            self.same_tensors(module.state_dict(), tensors)

    def test_tensors_at_any_address(self):
        """As a file that is mapped into memory has them. A launch takes multiples of 16."""
        def moved(tensor):
            room = torch.zeros(tensor.numel() * tensor.element_size() + 16, dtype=torch.uint8)
            begin = -room.data_ptr() % 16 + 8
            place = room[begin:begin + room.numel() - 16].view(tensor.dtype).reshape(tensor.shape)
            return place.copy_(tensor) if tensor.dtype != E4M3 else (place.view(torch.uint8).copy_(
                tensor.view(torch.uint8)), place)[1]
        tensors = {**weight(40, 96, 0.02), "bias": torch.randn(40).to(BF16)}
        apart, x = {name: moved(tensor) for name, tensor in tensors.items()}, torch.randn(3, 96).to(BF16)
        wanted = module_of(nn.Linear, tensors, "cpu", 96, 40)(x)
        module = nn.Linear(96, 40, device="meta")
        module.load_state_dict(apart, assign=True)
        self.same(module(x), wanted)
        by_name = nn.Linear(96, 40)
        for _ in range(2):  # the second time behind a forward
            for name, tensor in apart.items(): setattr(by_name, name, tensor)
            self.same(by_name(x), wanted)
        self.same_tensors(nn.quantize_weight(moved(torch.ones(8, 32))), nn.quantize_weight(torch.ones(8, 32)))

    def test_copies_have_the_same_bits(self):
        for device, format in itertools.product(DEVICES, FORMATS):
            tensors = dense(format, INPUT_SCALE)
            module = module_of(nn.GatedMLP, tensors, device, HIDDEN, INNER, a_format="nvfp4")
            x, file = exact(3, HIDDEN).to(device), io.BytesIO()
            torch.save(module, file)
            file.seek(0)
            again = torch.load(file, weights_only=False)
            fresh = nn.GatedMLP(HIDDEN, INNER, a_format="nvfp4", device=device)
            fresh.load_state_dict(module.state_dict())
            for other in (copy.deepcopy(module), again, fresh, module.half(), module.to(BF16).to(torch.float64),
                          module.to("cpu").to(device)):
                self.same_tensors(other.state_dict(), tensors)
                self.same(other(x), again(x))

    def test_a_later_checkpoint_keeps_addresses(self):
        """As where a trainer hands over new weights, and CUDA graphs hold the addresses."""
        first, second = (dense("modelopt", INPUT_SCALE, scales=scales) for scales in ((0.01, 0.03, 0.02),
                                                                                     (0.02, 0.01, 0.05)))
        for a_format in ("16bit", "nvfp4"):
            module = module_of(nn.GatedMLP, first, "cpu", HIDDEN, INNER, a_format=a_format)
            x = exact(3, HIDDEN)
            module(x)
            places = {name: t.data_ptr() for name, t in module.named_buffers()}
            module.load_state_dict(second)
            wanted = module_of(nn.GatedMLP, second, "cpu", HIDDEN, INNER, a_format=a_format)(x)
            self.same(module(x), wanted)
            self.assertEqual(places, {name: t.data_ptr() for name, t in module.named_buffers()})
            module.load_state_dict(first)
            part = {name[len("up_proj."):]: t for name, t in second.items() if name.startswith("up_proj.")}
            module.up_proj.load_state_dict(part)  # a part alone
            mixed = {**first, **named("up_proj.", part)}
            self.same(module(x), module_of(nn.GatedMLP, mixed, "cpu", HIDDEN, INNER, a_format=a_format)(x))

    def test_loaded_tensors_are_never_written_to(self):
        """With assign=True, of which a module holds what it is given: other weights, and the first ones again."""
        x = exact(3, HIDDEN)
        for format, a_format, scale in itertools.product(FORMATS, ("16bit", "nvfp4"), (None, INPUT_SCALE)):
            first, second = (dense(format, scale, scales=scales) for scales in ((0.01, 0.03, 0.02), (0.02, 0.01, 0.05)))
            for tensors in (first, second):
                tensors.update({f"{stem}_proj.bias": torch.randn(n).to(BF16)
                                for stem, n in (("gate", INNER), ("up", INNER), ("down", HIDDEN))})
            before = copy.deepcopy(first)
            module, other = (nn.GatedMLP(HIDDEN, INNER, bias=True, device="meta", a_format=a_format) for _ in range(2))
            for each in (module, other): each.load_state_dict(first, assign=True)
            wanted, saved = module(x), module.state_dict()
            with self.subTest(format, a_format=a_format, scale=scale):
                for again in (first, saved):
                    module.load_state_dict(second, assign=True)
                    self.assertFalse(torch.equal(module(x), wanted))
                    self.same(other(x), wanted)
                    self.same_tensors(first, before)
                    module.load_state_dict(again, assign=True)
                    self.same(module(x), wanted)

    def test_no_two_buffers_share_memory(self):
        """A later checkpoint may have two numbers where one had the same, or input scales where one had none."""
        fused, scaled = fuse(dense(), ("gate_up_proj", "down_proj")), dense("modelopt", INPUT_SCALE)
        fused["gate_up_proj.weight_scale_2"] = torch.tensor(0.02)
        x = exact(3, HIDDEN)
        for tensors, a_format, assign in itertools.product((fused, dense()), ("16bit", "nvfp4"), (False, True)):
            module = nn.GatedMLP(HIDDEN, INNER, device="meta", a_format=a_format)
            module.load_state_dict(copy.deepcopy(tensors), assign=True)
            module(x)
            held = [t for t in module.buffers() if t.numel() == 1]
            self.assertEqual(len({t.data_ptr() for t in held}), len(held))
            module.load_state_dict(copy.deepcopy(scaled), assign=assign)
            self.same(module(x), module_of(nn.GatedMLP, scaled, "cpu", HIDDEN, INNER, a_format=a_format)(x))

    def test_inference_mode(self):
        """What is made under it cannot be written to outside, so nothing that stays is made under it."""
        x, (first, second) = exact(3, HIDDEN), (dense("modelopt", INPUT_SCALE, scales=scales) for scales in (
            (0.01, 0.03, 0.02), (0.02, 0.01, 0.05)))
        for tensors in (first, second): tensors["down_proj.bias"] = torch.randn(HIDDEN).to(FP16)

        def forward(module): module(x)

        def half(module): module.half()

        def load(module): module.load_state_dict(first, assign=False)

        def by_name(module):
            for name, tensor in first.items():  # these are the caller's, and made under it
                setattr(module.get_submodule(name.split(".")[0]), name.split(".")[1], tensor.clone())
            module(x)
        for inside, a_format in itertools.product((forward, half, load, by_name), ("16bit", "nvfp4")):
            wanted = module_of(nn.GatedMLP, second, "cpu", HIDDEN, INNER, a_format=a_format)(x)
            module = nn.GatedMLP(HIDDEN, INNER, a_format=a_format)
            module.down_proj.bias = torch.zeros(HIDDEN, dtype=FP16)
            with self.subTest(inside.__name__, a_format=a_format):
                with torch.inference_mode(): inside(module)
                module.load_state_dict(second)
                self.same(module(x), wanted)
        with torch.inference_mode(): module = nn.GatedMLP(HIDDEN, INNER)  # as it is built
        for tensors in (first, second): module.load_state_dict(tensors)
        self.same(module(x), module_of(nn.GatedMLP, second, "cpu", HIDDEN, INNER)(x))

    def test_tensors_that_are_set_by_name(self):
        """As programs do that place layers on several devices."""
        tensors = dense()
        module = nn.GatedMLP(HIDDEN, INNER, device="meta")
        for name, tensor in tensors.items():
            owner, leaf = module.get_submodule(name.split(".")[0]), name.split(".")[1]
            self.assertEqual(getattr(owner, leaf).shape, tensor.shape)
            owner._buffers[leaf] = tensor
        x = torch.randn(3, HIDDEN).to(BF16)
        self.same(module(x), module_of(nn.GatedMLP, tensors, "cpu", HIDDEN, INNER)(x))
        self.same_tensors(module.state_dict(), tensors)

    def test_tensors_that_are_set_by_name_after_a_forward(self):
        x = exact(3, HIDDEN)
        first, second = (dense("modelopt", INPUT_SCALE, scales=scales) for scales in ((0.01, 0.03, 0.02),
                                                                                     (0.02, 0.01, 0.05)))
        for a_format, stems, compiled in itertools.product(("16bit", "nvfp4"), (STEMS, STEMS[1:2], STEMS[2:]),
                                                           (False, True)):
            module = module_of(nn.GatedMLP, first, "cpu", HIDDEN, INNER, a_format=a_format)
            torch._dynamo.reset()
            run = torch.compile(module, backend="eager", fullgraph=True) if compiled else module
            run(x)
            mixed = {**first, **{name: tensor for name, tensor in second.items() if name.startswith(stems)}}
            for name, tensor in second.items():
                if name.startswith(stems):
                    setattr(module.get_submodule(name.split(".")[0]), name.split(".")[1], tensor)
            with self.subTest(a_format, stems=stems, compiled=compiled):
                wanted = module_of(nn.GatedMLP, mixed, "cpu", HIDDEN, INNER, a_format=a_format)
                self.same(run(x), wanted(x))
                self.same(module(x), wanted(x))
                self.same_tensors(module.state_dict(), mixed)
                module.prepare()
                self.assertTrue(all(each.weight_scale is None for each in module.children()))
                self.same(run(x), wanted(x))
                self.same_tensors(module.state_dict(), mixed)
        linear = module_of(nn.Linear, weight(40, HIDDEN, 0.02), "cpu", HIDDEN, 40, False)
        linear(x)
        for name, tensor in (tensors := weight(40, HIDDEN, 0.05)).items(): setattr(linear, name, tensor)
        self.same(linear(x), module_of(nn.Linear, tensors, "cpu", HIDDEN, 40, False)(x))

    def test_functional_call(self):
        """Takes other tensors for one call; the module and the tensors stay what they are."""
        x = exact(3, HIDDEN)
        first, second = (dense("modelopt", INPUT_SCALE, scales=scales) for scales in ((0.01, 0.03, 0.02),
                                                                                     (0.02, 0.01, 0.05)))
        for a_format, stems in itertools.product(("16bit", "nvfp4"), (STEMS, STEMS[1:2], STEMS[2:])):
            module = module_of(nn.GatedMLP, first, "cpu", HIDDEN, INNER, a_format=a_format)
            y, given = module(x), {name: tensor for name, tensor in second.items() if name.startswith(stems)}
            kept = copy.deepcopy(given)
            wanted = module_of(nn.GatedMLP, {**first, **given}, "cpu", HIDDEN, INNER, a_format=a_format)(x)
            with self.subTest(a_format, stems=stems):
                self.same(torch.func.functional_call(module, given, (x,)), wanted)
                self.same_tensors(given, kept)
                self.same(module(x), y)
                self.same_tensors(module.state_dict(), first)

    def test_functional_call_of_experts(self):
        """By the module's own names, which are stacks, also if the checkpoint had each expert alone."""
        first, second, x = stacked("modelopt"), stacked("modelopt"), exact(3, HIDDEN)
        module = module_of(nn.MoE, each_expert(first), "cpu", HIDDEN, INNER, EXPERTS, 2)
        args = (x, torch.randn(3, EXPERTS))
        wanted = module_of(nn.MoE, second, "cpu", HIDDEN, INNER, EXPERTS, 2)(*args)
        named_buffers = dict(module.named_buffers())
        self.assertLessEqual({name for name in second if not name.endswith("weight_scale")}, named_buffers.keys())
        self.same(torch.func.functional_call(module, second, args), wanted)
        self.same_tensors(module.state_dict(), each_expert(first))

    def test_refusals(self):
        tensors = weight(40, 64, 0.02)
        for text, wrong in ((r"weight: is \[40, 48\], and must be \[40, 32\]",
                             dict(weight=torch.zeros(40, 48, dtype=torch.uint8))),
                            ("weight: is torch.bfloat16, and must be torch.uint8",
                             dict(weight=torch.zeros(40, 32).to(BF16))),
                            (r"weight_scale: is torch.float32", dict(weight_scale=torch.zeros(40, 4))),
                            (r"weight_scale_2: is torch.float32 \[2\], and must be 1 numbers",
                             dict(weight_scale_2=torch.ones(2))),
                            ("Unexpected key.*input_quantizer", {"input_quantizer": torch.ones(1)})):
            with self.subTest(text), self.assertRaisesRegex(RuntimeError, text):
                nn.Linear(64, 40, bias=False).load_state_dict({**tensors, **wrong})
        with self.assertRaisesRegex(RuntimeError, "Missing key.*weight_scale_2"):
            nn.Linear(64, 40, bias=False).load_state_dict({k: v for k, v in tensors.items() if k != "weight_scale_2"})
        with self.assertRaisesRegex(RuntimeError, "lies on meta: pass assign=True"):
            nn.Linear(64, 40, bias=False, device="meta").load_state_dict(tensors)
        experts = {k: v for k, v in each_expert(stacked("modelopt")).items() if not k.startswith("experts.2.w3.")}
        with self.assertRaisesRegex(RuntimeError, r"experts\.2\.w3\.weight"):
            nn.MoE(HIDDEN, INNER, EXPERTS, 2).load_state_dict(experts)
        every = each_expert(stacked("modelopt"))
        for experts, kind, args in ((EXPERTS - 1, nn.MoE, (EXPERTS - 1, 2)), (0, nn.GatedMLP, ())):
            with self.assertRaises(RuntimeError) as raised: kind(HIDDEN, INNER, *args).load_state_dict(every)
            self.assertRegex(str(raised.exception), rf"experts\.{EXPERTS - 1}\.w[123]\..*: is of expert {EXPERTS - 1}, "
                             f"and the module has {experts} experts")
            if experts: self.assertNotIn("Missing", str(raised.exception))

    def test_numbers_that_are_no_scales(self):
        inf, nan = float("inf"), float("nan")
        for format, of_weight, of_a in (("modelopt", (nan, -1.0, inf), (nan, -1.0, inf, 0.0)),
                                        ("compressed-tensors", (nan, -1.0, 0.0), (nan, -1.0, inf, 0.0))):
            good = stacked(format, INPUT_SCALE)
            for name, numbers in zip(FORMATS[format][2:], (of_weight, of_a)):
                for number in numbers:
                    scales = good[f"up_proj.{name}"].clone()
                    scales[EXPERTS - 1] = number
                    with self.subTest(name, number=number), \
                            self.assertRaisesRegex(RuntimeError, f"up_proj.{name}: is {number}, and must be positive"):
                        nn.MoE(HIDDEN, INNER, EXPERTS, 2).load_state_dict({**good, f"up_proj.{name}": scales})
        zeros = torch.zeros(())  # as a weight of zeros may have it
        module = module_of(nn.Linear, {**weight(40, HIDDEN, 0.02), "weight_scale_2": zeros}, "cpu", HIDDEN, 40, False)
        self.assertFalse(module(exact(3, HIDDEN)).any())

    def test_weights_that_are_no_numbers(self):
        for number, place in itertools.product((float("nan"), float("inf"), -float("inf")), (0, 127)):
            linears = [torch.nn.Linear(HIDDEN, 128, dtype=BF16) for _ in range(2)]
            linears[1].weight.data[place, 5] = number
            for function in (lambda: nn.Linear.from_float(linears[1]), lambda: nn.Linear.from_floats(linears),
                             lambda: nn.quantize_weight(linears[1].weight)):
                with self.assertRaisesRegex(ValueError, "weight: has an element that is NaN or infinite"): function()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
