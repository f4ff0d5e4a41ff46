#!/usr/bin/env python3
"""torch_experts_test.py -- what bench/torch/experts.py measures, on the CPU: its contenders but Humming, against
experts in fp64 that are written here, and the table of a report. Exits with 77 where there is no torch, or where its
operators are not built.

    torch_experts_test.py MODULE [unittest's arguments]
"""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [sys.argv[1], str(ROOT / "bench/torch"), str(ROOT / "bench")]
try:
    import torch
except ImportError as error:
    print(f"torch_experts_test.py: skipped, there is no torch: {error}")
    sys.exit(77)
try:
    import experts as bench
except ImportError as error:
    print(f"torch_experts_test.py: skipped: {error}")
    sys.exit(77)
import hopper  # noqa: E402

bench.DEVICE = "cpu"
torch.compile = lambda function: function  # the compiler is PyTorch's own matter
CODES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def decoded(weight, expert):
    """An Nvfp4's weight of an expert: e4m3 by its exponent and its fraction, all of them normal numbers."""
    low, high = CODES[(weight.codes[expert] & 15).long()], CODES[(weight.codes[expert] >> 4).long()]
    byte = weight.factors[expert].long()
    factors = (1 + (byte & 7) / 8) * 2.0 ** ((byte >> 3) - 7).double()
    return torch.stack((low, high), -1).flatten(1) * factors.repeat_interleave(16, 1) * weight.scale


def in_fp64(model, batch):
    rows = []
    for x, ids, weights in zip(batch.x.double(), batch.ids.tolist(), batch.weights.double()):
        row = torch.zeros(model.hidden, dtype=torch.float64)
        for expert, weight in zip(ids, weights):
            both = decoded(model.gate_up, expert) @ x
            gate, up = both[:model.intermediate], both[model.intermediate:]
            row += weight * (decoded(model.down, expert) @ (gate / (1 + torch.exp(-gate)) * up))
        rows.append(row)
    return torch.stack(rows)


def error_of(y, expected):
    return float((y.double() - expected).norm() / expected.norm())


class Contenders(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        self.model = bench.Model("tiny")
        self.batches = [bench.Batch(self.model, tokens) for tokens in (1, 6)]

    def test_reference(self):
        for batch in self.batches:
            self.assertLess(error_of(batch.reference(self.model), in_fp64(self.model, batch)), 1e-5)

    def test_every_contender_and_set(self):
        names = [name for name in bench.CONTENDERS if name != "Humming"]
        self.assertGreaterEqual(len(names), 5)
        for name in names:
            contender = bench.CONTENDERS[name](self.model)
            contender.add_set()
            for batch in self.batches:
                expected = in_fp64(self.model, batch)
                for weights in contender.sets:
                    with self.subTest(name=name, tokens=len(batch.x)):
                        y = contender(weights, batch)
                        self.assertEqual((y.dtype, y.shape), (torch.bfloat16, batch.x.shape))
                        self.assertLess(error_of(y, expected), bench.ALLOWED_ERROR / 2)

    def test_those_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "others.py")
            path.write_text("class Other:\n    bits = 3\nCONTENDERS = {'another': Other}\n", encoding="utf-8")
            self.assertEqual({name: made.bits for name, made in bench.contenders_of(path).items()}, {"another": 3})
            path.write_text("", encoding="utf-8")
            with self.assertRaisesRegex(AttributeError, "CONTENDERS"): bench.contenders_of(path)

    def test_bf16_has_the_same_numbers(self):
        for weights, held in zip(self.model.in_bf16()[0], (self.model.gate_up, self.model.down)):
            for expert in range(self.model.experts):
                self.assertTrue(torch.equal(weights[expert].double(), decoded(held, expert)))

    def test_sets_do_not_share_memory(self):
        for name in ("dualgemm", "bf16, eager"):
            contender = bench.CONTENDERS[name](self.model)
            contender.add_set()
            for one, other in zip(*contender.sets[:2]): self.assertNotEqual(one.data_ptr(), other.data_ptr())


class Table(unittest.TestCase):
    def test_fastest_bf16_and_layers_without_a_time(self):
        results = [{"shape": "a", "tokens": 1,
                    "us": {"dualgemm": 10, "bf16, eager": 40, "bf16, compiled": 20, "Humming": 5}},
                   {"shape": "b", "tokens": 1, "us": {"dualgemm": 10, "bf16, eager": 80}},
                   {"shape": "a", "tokens": 8, "us": {"dualgemm": 12.4, "bf16, compiled": 31, "another": 62}}]
        printed = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
            path, hopper.RESULTS = hopper.RESULTS, pathlib.Path(folder)
            self.addCleanup(setattr, hopper, "RESULTS", path)
            (hopper.RESULTS / "made.json").write_text(json.dumps({"results": results}), encoding="utf-8")
            hopper.torch_experts("made")
        self.assertEqual(printed.getvalue().splitlines(), [
            "| tokens | us, a | us, b | bf16 | lowest | layers | Humming | lowest | layers | another "
            "| lowest | layers |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            "| 1 | 10 | 10 | 4.00 | 2.00 | 2 | 0.50 | 0.50 | 1 | - | - | 0 |",
            "| 8 | 12 | - | 2.50 | 2.50 | 1 | - | - | 0 | 5.00 | 5.00 | 1 |"])


if __name__ == "__main__": unittest.main(argv=sys.argv[:1] + sys.argv[2:])
