#!/usr/bin/env python3
"""torch_shared_test.py -- linears of dualgemm.nn that share a launch (share_input), on the CPU and on a GPU if there is
one: against the same linears alone, and against one launch of weights that are put together here. Exits with 77 where
there is no torch, or where its operators are not built.

    torch_shared_test.py MODULE [unittest's arguments]
"""
import contextlib
import copy
import io
import itertools
import pickle
import sys
import unittest
import weakref

sys.path.insert(0, sys.argv[1])
try:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from dualgemm import FLAG_BATCH_INVARIANT, nn, torch_op
except ImportError as error:
    print(f"torch_shared_test.py: skipped: {error}")
    sys.exit(77)

DEVICES = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
HOPPER = DEVICES[-1] == "cpu" or torch.cuda.get_device_capability() == (9, 0)
A_FORMATS = ("16bit", "nvfp4") if HOPPER else ("nvfp4",)
BF16, E4M3 = torch.bfloat16, torch.float8_e4m3fn
NAMES = {"modelopt": ("weight", "weight_scale", "weight_scale_2", "input_scale"),
         "compressed-tensors": ("weight_packed", "weight_scale", "weight_global_scale", "input_global_scale")}
K, ROWS = 96, (256, 128, 72)  # k, and rows of q, k and v: those of the last are no multiple of an atom's
SCALE, INPUT_SCALE = 2.0**-6, 2.0**-7
ops = torch.ops.dualgemm


def tensors(n, format="modelopt", scale=SCALE, input_scale=None, bias=None):
    """A checkpoint's, of random elements and factors."""
    names = NAMES[format]
    held = {names[0]: torch.randint(256, (n, K // 2), dtype=torch.uint8),
            names[1]: torch.randint(0x28, 0x40, (n, K // 16), dtype=torch.uint8).view(E4M3)}
    for name, number in ((names[2], scale), (names[3], input_scale)):
        if number is not None: held[name] = torch.tensor(number if format == "modelopt" else 1 / number)
    if bias is not None: held["bias"] = torch.randn(n, dtype=bias)
    return held


def checkpoints(**options):
    torch.manual_seed(1)
    return [tensors(n, **options) for n in ROWS]


def modules(held, device="cpu", **options):
    made = []
    for each in held:
        linear = nn.Linear(K, len(next(iter(each.values()))), "bias" in each, device, getattr(each.get("bias"), "dtype",
                                                                                              None), **options)
        linear.load_state_dict(each)
        made.append(linear)
    return made


def pairs(device="cpu", a_format="auto", **options):
    """The same linears, three that share and three that do not."""
    held = checkpoints(**options)
    shared, alone = (modules(held, device, a_format=a_format) for _ in range(2))
    nn.share_input(*shared)
    return shared, alone


def numbers(*shape, device="cpu", dtype=BF16):
    return torch.randn(*shape, K).to(device, dtype)


class Launches(TorchDispatchMode):
    """Rows of the weights of each launch."""

    def __enter__(self):
        self.rows = []
        return super().__enter__()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is ops.linear.default: self.rows.append(len(args[1]))
        return function(*args, **(kwargs or {}))


@contextlib.contextmanager
def no_log(test):
    with test.assertNoLogs("dualgemm.nn", "WARNING"): yield


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def same(self, got, wanted):
        self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
        self.assertTrue(torch.equal(got.cpu().contiguous().flatten().view(torch.uint8),
                                    wanted.cpu().contiguous().flatten().view(torch.uint8)))

    def check(self, shared, alone, rows, x=None):
        """All three have the results of the others, in launches of this many rows."""
        x = numbers(2, 5, device=shared[0].device) if x is None else x
        with Launches() as launches: got = [each(x) for each in shared]
        self.assertEqual(launches.rows, list(rows))
        for a, b in zip(got, alone): self.equal(a, b(x))
        return got

    def equal(self, got, wanted):
        """Bits on the CPU. A GPU's instance for more rows may add in another order."""
        if got.device.type == "cpu": self.same(got, wanted)
        else: torch.testing.assert_close(got, wanted, rtol=2.0**-7, atol=2.0**-7 * float(wanted.abs().max()))


ONE, THREE = (sum(ROWS),), ROWS


class Results(Case):
    def test_of_every_kind(self):
        for device, a_format, format, input_scale, bias, dtype in itertools.product(
                DEVICES, A_FORMATS, NAMES, (None, INPUT_SCALE), (None, BF16, torch.float16, torch.float32),
                (BF16, torch.float16)):
            with self.subTest(device=device, a_format=a_format, format=format, bias=bias, dtype=dtype):
                shared, alone = pairs(device, a_format, format=format, input_scale=input_scale, bias=bias)
                got = self.check(shared, alone, ONE, x=numbers(2, 5, device=device, dtype=dtype))
                self.assertEqual([each.shape for each in got], [(2, 5, n) for n in ROWS])
                for shape in ((), (1,)): self.check(shared, alone, ONE, numbers(*shape, device=device))

    def test_is_a_launch_of_all_rows(self):
        for device in DEVICES:
            if not HOPPER: continue
            shared, _ = pairs(device)
            held, x = checkpoints(), numbers(9, device=device)
            elements, factors = (torch.cat([each[name] for each in held]).to(device) for name in NAMES["modelopt"][:2])
            wanted = ops.linear(x, elements, None, ops.sf_swizzle(factors), SCALE, BF16)
            self.same(torch.cat([each(x) for each in shared], -1), wanted)
            self.check(*pairs(device), ONE, numbers(130, device=device))

    def test_two_and_flags(self):
        held = checkpoints()
        shared, alone = (modules(held[:2], flags=FLAG_BATCH_INVARIANT) for _ in range(2))
        nn.share_input(*shared)
        self.check(shared, alone, (256 + 128,))

    def test_modes(self):
        for mode in (torch.no_grad, torch.inference_mode, contextlib.nullcontext):
            shared, alone = pairs()
            for _ in range(2):
                with mode(): self.check(shared, alone, ONE)
            with torch.autocast("cpu", BF16), mode(): self.check(shared, alone, ONE, numbers(3, dtype=torch.float32))

    @unittest.skipUnless("cuda" in DEVICES, "needs a GPU")
    def test_cuda_graph(self):
        shared, _ = pairs("cuda")
        x = numbers(4, device="cuda")
        wanted = [each(x) for each in shared]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph): got = [each(x) for each in shared]
        other = numbers(4, device="cuda")
        x.copy_(other)
        graph.replay()
        for a, b, linear in zip(got, wanted, shared):
            self.assertFalse(torch.equal(a, b))
        again = [each(other) for each in shared]
        for a, b in zip(got, again): self.same(a, b)


class Calls(Case):
    """Whatever is called in whatever order, results are those of the linears alone."""

    def count(self, calls, launches, **options):
        """How many launches there are besides those of `alone`."""
        shared, alone = pairs()
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(self.assertLogs("dualgemm.nn", "WARNING") if options.get("warns")
                                      else no_log(self))
            seen = []
            for what, *x in calls:
                if callable(what):
                    what()
                    continue
                with Launches() as mine: got = shared[what](*x)
                seen += mine.rows
                self.same(got, alone[what](*x))
        self.assertEqual(seen, launches)
        if options.get("warns"): self.assertEqual(len(log.output), 1)
        return shared

    def test_patterns(self):
        x, y, all_rows = numbers(4), numbers(4), sum(ROWS)
        q, k, v = ROWS
        for name, calls, launches in (
                ("in order", [(0, x), (1, x), (2, x)] * 2, [all_rows] * 2),
                ("v before k", [(0, x), (2, x), (1, x)], [all_rows]),
                ("k twice", [(0, x), (1, x), (1, x), (2, x)], [all_rows, k]),
                ("k before q", [(1, x), (0, x), (2, x), (1, x)], [k, all_rows]),
                ("k alone", [(1, x), (1, x)], [k, k]),
                ("another x", [(0, x), (1, y), (1, x), (2, x)], [all_rows, k]),
                ("equal numbers", [(0, x), (1, x.clone()), (1, x), (2, x)], [all_rows, k]),
                ("a view of all", [(0, x), (1, x[:]), (1, x), (2, x)], [all_rows, k]),
                ("behind all", [(0, x), (1, x), (2, x), (2, x), (1, x)], [all_rows, v, k]),
                ("q twice, then on", [(0, x), (0, y), (1, y), (2, y), (1, x)], [all_rows, all_rows, k])):
            with self.subTest(name): self.count(calls, launches)

    def test_x_that_changes(self):
        x = numbers(4)
        self.count([(0, x), (lambda: x.mul_(2),), (1, x), (2, x)], [sum(ROWS), *ROWS[1:]])
        self.count([(0, x), (1, x), (lambda: x.add_(1),), (2, x)], [sum(ROWS), ROWS[2]])
        self.count([(0, x), (lambda: x[0].zero_(),), (1, x), (2, x)], [sum(ROWS), *ROWS[1:]])

    def test_x_that_an_operator_writes(self):
        x, reversed_rows = numbers(4), torch.tensor([3, 2, 1, 0], dtype=torch.int32)
        for functions in (ops, torch_op.direct):
            self.count([(0, x), (lambda: functions.moe_gather_out(x.clone(), reversed_rows, x),), (1, x), (2, x)],
                       [sum(ROWS), *ROWS[1:]])

    def test_results_that_change(self):
        """Parts of one tensor do not overlap."""
        shared, alone = pairs()
        x = numbers(4)
        got = [each(x).mul_(2) for each in shared]
        for a, b in zip(got, alone): self.same(a, b(x).mul_(2))

    def test_only_the_first(self):
        """What nobody wants is no longer computed, from the third call on; and is not held."""
        x, all_rows = numbers(4), sum(ROWS)
        shared = self.count([(0, x)] * 4, [all_rows, all_rows, ROWS[0], ROWS[0]], warns=True)
        self.assertIsNone(shared[0].shared)
        shared = self.count([(0, x), (1, x)] * 4, [all_rows] * 2 + [ROWS[0], ROWS[1]] * 2, warns=True)
        for each in shared: self.assertIsNone(each.shared)

    def test_an_exception_in_between(self):
        """One lost call ends nothing."""
        x, y = numbers(4), numbers(4)
        calls = [(0, x), (0, y), (1, y), (2, y)] * 4
        self.count(calls, [sum(ROWS)] * 8)
        shared, alone = pairs()
        for _ in range(4):
            shared[0](x)
            with self.assertRaisesRegex(ValueError, "last dimension"): shared[1](x[:, :32])
            self.check(shared, alone, ONE)

    def test_nested_and_interleaved(self):
        """Two models, and one that runs inside of itself."""
        (first, alone), (second, others), x = pairs(), pairs(scale=0.5), numbers(4)
        for _ in range(3):
            got = [first[0](x), second[0](x), second[1](x), first[1](x), first[2](x), second[2](x)]
            for a, b in zip(got, (alone[0], others[0], others[1], alone[1], alone[2], others[2])): self.same(a, b(x))
            outer = first[0](x)
            self.check(first, alone, ONE)
            self.same(outer, alone[0](x))
            self.same(first[1](x), alone[1](x))
            self.same(first[2](x), alone[2](x))

    def test_nothing_is_held(self):
        shared, _ = pairs()
        for inference in (False, True):
            with torch.inference_mode(inference):
                x = numbers(4)
                there = weakref.ref(x)
                for each in shared: y = each(x)
                whole = weakref.ref(y)
            del x, y
            self.assertIsNone(there())
            self.assertIsNone(whole())


class Memory(Case):
    def buffers(self, shared):
        """The tensors that a launch takes, each with how many bytes it has to have."""
        for name in (shared[0].names.elements, "atoms", "launch_bias"):
            if shared[0]._buffers[name] is not None: yield name, [each._buffers[name] for each in shared]

    def joined(self, shared):
        for name, parts in self.buffers(shared):
            self.assertEqual(len({each.untyped_storage().data_ptr() for each in parts}), 1, name)
            self.assertEqual(parts[0].untyped_storage().nbytes(), sum(each.nbytes for each in parts), name)
            for one, next in zip(parts, parts[1:]): self.assertEqual(one.data_ptr() + one.nbytes, next.data_ptr())

    def test_is_one(self):
        for bias in (None, BF16, torch.float16):
            shared, alone = pairs(bias=bias)
            self.joined(shared)
            self.assertEqual(len(list(self.buffers(shared))), 2 if bias is None else 3)
            held = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes()
                    for linear in shared for each in linear.buffers()}
            self.assertEqual(sum(held.values()), sum(each.nbytes for linear in alone for each in linear.buffers()))

    def test_state_dict(self):
        for format, bias in itertools.product(NAMES, (None, BF16)):
            held = checkpoints(format=format, input_scale=INPUT_SCALE, bias=bias)
            shared = modules(held)
            nn.share_input(*shared)
            for linear, each in zip(shared, held):
                self.assertEqual(linear.state_dict().keys(), each.keys())
                for name, tensor in linear.state_dict().items(): self.same(tensor, each[name])

    def test_loading_again(self):
        """Other weights go to the same addresses; weights whose scales differ are computed alone, while they do."""
        for assign, format in itertools.product((False, True), NAMES):
            shared, _ = pairs(format=format)
            before = [parts[0].data_ptr() for _, parts in self.buffers(shared)]
            for scales, rows in (((0.5, 0.5, 0.5), ONE), ((0.5, 0.25, 0.5), THREE), ((0.5, 0.5, 0.25), THREE),
                                 ((2.0, 2.0, 2.0), ONE)):
                held = [tensors(n, format, scale) for n, scale in zip(ROWS, scales)]
                for linear, each in zip(shared, held): linear.load_state_dict(each, assign=assign)
                self.check(shared, modules(held), rows)
            self.joined(shared)
            if not assign: self.assertEqual([parts[0].data_ptr() for _, parts in self.buffers(shared)], before)
            other = "modelopt" if format != "modelopt" else "compressed-tensors"
            held = [tensors(n, other) for n in ROWS]
            shared[1].load_state_dict(held[1])
            self.assertEqual(shared[1].format, other)
            x = numbers(4)
            self.same([each(x) for each in shared][1], modules(held)[1](x))
            for linear, each in zip(shared, held): linear.load_state_dict(each)
            self.check(shared, modules(held), ONE)

    def test_old_weights_are_freed(self):
        shared, _ = pairs()
        there = [weakref.ref(each.weight) for each in shared]
        for linear, n, scale in zip(shared, ROWS, (1.0, 2.0, 3.0)):
            linear.load_state_dict(tensors(n, scale=scale), assign=True)
        self.assertEqual([each() for each in there], [None] * 3)

    def test_input_scales_that_differ(self):
        held = [tensors(n, input_scale=scale) for n, scale in zip(ROWS, (0.5, 0.25, 0.5))]
        for last, rows in ((0.25, THREE), (None, THREE), (0.5, ONE)):
            held[1] = tensors(ROWS[1], input_scale=last)
            shared = modules(held, a_format="nvfp4")
            nn.share_input(*shared)
            self.check(shared, modules(held, a_format="nvfp4"), rows)

    def test_before_loading(self):
        """On meta, with tensors that are set by name, and prepared by the first forward."""
        for by_name in (False, True):
            held = checkpoints(bias=BF16)
            shared = [nn.Linear(K, n, True, "meta", BF16) for n in ROWS]
            nn.share_input(*shared)
            for linear, each in zip(shared, held):
                if not by_name: linear.load_state_dict(each, assign=True)
                else:
                    for name, tensor in each.items(): setattr(linear, name, tensor)
            if by_name: [each.prepare() for each in shared]
            self.check(shared, modules(held), ONE)
            self.joined(shared)

    def test_types_and_devices(self):
        shared, alone = pairs(bias=BF16)
        block, others = torch.nn.ModuleList(shared), torch.nn.ModuleList(alone)
        for change in (lambda module: module.half(), lambda module: module.to(torch.float32),
                       lambda module: module.bfloat16(), lambda module: module._apply(torch.clone),
                       *([lambda module: module.cuda(), lambda module: module.cpu()] if "cuda" in DEVICES else ())):
            change(block), change(others)
            self.check(shared, alone, ONE)
            self.joined(shared)
        shared[1].half()
        self.check(shared, alone[:1] + [alone[1].half()] + alone[2:], THREE)
        shared[1].bfloat16(), alone[1].bfloat16()
        self.check(shared, alone, ONE)

    def test_copies(self):
        shared, alone = pairs(bias=BF16)
        block = torch.nn.ModuleList(shared)
        file = io.BytesIO()
        torch.save(block, file)
        file.seek(0)
        shared[0](numbers(4))  # what is kept of it is not copied
        for made in (copy.deepcopy(block), pickle.loads(pickle.dumps(block)), torch.load(file, weights_only=False)):
            self.check(list(made), alone, ONE)
            self.joined(list(made))
            held = checkpoints(scale=0.25, bias=BF16)
            for linear, each in zip(made, held): linear.load_state_dict(each)
            self.check(list(made), modules(held), ONE)
        one = copy.deepcopy(shared[1])
        self.same(one(x := numbers(4)), alone[1](x))
        self.check(shared, alone, ONE)

    def test_tensors_that_are_set(self):
        """functional_call sets them for the time of one call."""
        shared, alone = pairs()
        held, x = checkpoints(scale=0.25), numbers(4)
        for i, place in itertools.product(range(3), range(3)):
            shared[0](x) if place else None
            got = torch.func.functional_call(shared[i], held[place] if i == place else tensors(ROWS[i]), (x,))
            self.assertEqual(got.shape, (4, ROWS[i]))
            if i == place: self.same(got, modules(held)[i](x))
            for a, b in zip(shared[1:], alone[1:]): self.same(a(x), b(x))


class Compiled(Case):
    def graphs(self, forward, backend, **options):
        made = []

        def count(graph, inputs):
            made.append(sum(str(node.target).startswith("dualgemm.linear") for node in graph.graph.nodes))
            return torch._dynamo.lookup_backend(backend)(graph, inputs)
        torch._dynamo.reset()
        return torch.compile(forward, backend=count, fullgraph=True, **options), made

    def test_one_graph(self):
        for device, backend, a_format in itertools.product(DEVICES, ("eager", "aot_eager"), A_FORMATS):
            with self.subTest(device=device, backend=backend, a_format=a_format), torch.no_grad():
                shared, alone = pairs(device, a_format, bias=BF16)
                compiled, made = self.graphs(lambda x: [each(x) for each in shared], backend, dynamic=True)
                for rows in (4, 9, 33):
                    x = numbers(rows, device=device)
                    for a, b in zip(compiled(x), alone): self.equal(a, b(x))
                    self.assertIsNone(shared[0].shared.kept)
                self.assertEqual(made, [1])
                held = checkpoints(scale=0.25, bias=BF16)
                for linear, each in zip(shared, held): linear.load_state_dict(each)
                for a, b in zip(compiled(x), modules(held, device, a_format=a_format)): self.equal(a, b(x))
                self.assertEqual(made, [1])
                self.check(shared, modules(held, device, a_format=a_format), ONE)

    def test_other_patterns(self):
        for backend in ("eager", "aot_eager"):
            shared, alone = pairs()
            x, y = numbers(4), numbers(4)
            for calls, launches in (((0, 1, 1, 2), 2), ((1, 0, 2), 2), ((0, 0, 1, 2), 2), ((0,), 1), ((1, 2), 2)):
                def run(linears, x): return [linears[i](x) for i in calls]
                compiled, made = self.graphs(lambda x: run(shared, x), backend)
                with torch.no_grad():
                    for a, b in zip(compiled(x), run(alone, x)): self.same(a, b)
                self.assertEqual(made, [launches])
                self.check(shared, alone, ONE)
            compiled, made = self.graphs(lambda x, y: [shared[0](x), shared[1](y), shared[2](x)], backend)
            with torch.no_grad():
                for a, b in zip(compiled(x, y), (alone[0](x), alone[1](y), alone[2](x))): self.same(a, b)

    def test_a_graph_of_each(self):
        """Graphs that end in between."""
        shared, alone = pairs()
        compiled = [self.graphs(each, "eager")[0] for each in shared]
        for x in (numbers(4), numbers(4)):
            with torch.no_grad():
                for a, b in zip(compiled, alone): self.same(a(x), b(x))
                self.same(shared[1](x), alone[1](x))
        self.check(shared, alone, ONE)

    def test_tensors_that_are_set(self):
        shared, _ = pairs()
        held, x = checkpoints(scale=0.25), numbers(4)

        def call(x, held): return [torch.func.functional_call(*each, (x,)) for each in zip(shared, held)]
        compiled, made = self.graphs(call, "eager")
        with torch.no_grad():
            for a, b in zip(compiled(x, held), modules(held)): self.same(a, b(x))
        self.assertEqual(made, [3])

    def test_scales_that_differ(self):
        held = [tensors(n, scale=scale) for n, scale in zip(ROWS, (0.5, 0.25, 0.5))]
        shared, x = modules(held), numbers(4)
        nn.share_input(*shared)
        compiled, made = self.graphs(lambda x: [each(x) for each in shared], "aot_eager")
        for a, b in zip(compiled(x), modules(held)): self.same(a, b(x))
        self.assertEqual(made, [3])


class FromFloats(Case):
    def linears(self, sizes, bias=False):
        made = [torch.nn.Linear(K, n, bias, dtype=BF16) for n in ROWS]
        for linear, size in zip(made, sizes): linear.weight.data.uniform_(-1, 1)[0, 0] = size
        return made

    def test_one_scale(self):
        for format, bias in itertools.product(NAMES, (False, True)):
            linears = self.linears((2, 32, 4), bias)
            made, names = nn.Linear.from_floats(linears, format=format), NAMES[format]
            whole = nn.quantize_weight(torch.cat([each.weight for each in linears]), format)
            for name in names[:2]: self.same(torch.cat([each.state_dict()[name] for each in made]), whole[name])
            for each in made:
                scale = float(each.state_dict()[names[2]])
                self.assertAlmostEqual((scale if format == "modelopt" else 1 / scale) * 6 * 448 / 32, 1, 5)
            self.check(made, modules([each.state_dict() for each in made]), ONE)

    def test_scales_that_are_far_apart(self):
        linears = self.linears((2, 33, 4))
        made = nn.Linear.from_floats(linears)
        for each, linear in zip(made, linears):
            for name, tensor in nn.quantize_weight(linear.weight).items(): self.same(each.state_dict()[name], tensor)
        self.check(made, [nn.Linear.from_float(each) for each in linears], THREE)

    def test_factors_stay_normal(self):
        """Of the smaller one, in blocks with a 1792nd of its largest element, at the largest ratio there may be."""
        linears = self.linears((16, 1, 16))
        linears[1].weight.data.clamp_(-1, 1)[1:] = 2.0**-10.75
        made = nn.Linear.from_floats(linears)
        self.check(made, modules([each.state_dict() for each in made]), ONE)
        factors = made[1].state_dict()["weight_scale"].float()
        self.assertGreaterEqual(float(factors.min()), 2.0**-6)
        self.assertLess(float(factors.min()), 2.0**-5)


class Refusals(Case):
    def test_all(self):
        q, k, v = modules(checkpoints())
        biased, odd = modules([tensors(128, bias=BF16), tensors(72)])
        for text, linears in (
                ("linears: are 1, and must be two at least", [q]),
                (r"linears\[1\]: has out_features=72: all but the last need a multiple of 128", [q, v, k]),
                (r"linears\[1\]: either all have a bias or none", [q, biased, v]),
                (r"linears\[1\]: has k=64, and linears\[0\] 96", [q, nn.Linear(64, 128, False)]),
                (r"has format='compressed-tensors', and linears\[0\] 'modelopt'",
                 [q, nn.Linear(K, 128, False, format="compressed-tensors")]),
                ("has a_format='nvfp4', and", [q, nn.Linear(K, 128, False, a_format="nvfp4")]),
                ("has flags=1, and", [q, nn.Linear(K, 128, False, flags=1)]),
                ("has an activation, or is a rank's part", [q, nn.Linear(K, 128, False, activation="silu")]),
                ("has an activation, or is a rank's part", [q, nn.Linear(K, 256, False, parallel="column", tp_size=2)]),
                (r"linears\[1\]: is there twice", [q, q])):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text): nn.share_input(*linears)
        self.assertTrue(all(each.shared is None for each in (q, k, v, biased, odd)))
        nn.share_input(q, k)
        with self.assertRaisesRegex(ValueError, r"linears\[0\]: shares a launch already"): nn.share_input(q, v)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
