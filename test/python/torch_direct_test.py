#!/usr/bin/env python3
"""torch_direct_test.py -- the operators of torch_op.direct, on the CPU and on a GPU if there is one. They pass all
tests of the operators themselves; here is which calls the dispatcher gets to see, and that nothing but the time tells
the others apart. Exits with 77 where there is no torch, where its operators are not built, or where this torch or this
Python has no other way than the dispatcher.

    torch_direct_test.py MODULE [unittest's arguments]
"""
import ctypes
import gc
import sys
import types
import unittest
import warnings
import weakref

import torch_operators_test as operators  # exits with 77, too

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

import dualgemm as d
from dualgemm import nn, torch_op
from dualgemm.nn import _weights

from torch_operators_test import BF16, DEVICES, FP32, K, M, N, Case, vector

ops, direct = torch.ops.dualgemm, torch_op.direct
if direct is ops:
    print("torch_direct_test.py: skipped: this torch or this Python has no other way than the dispatcher")
    sys.exit(77)


class Spied:
    """A function as torch_op.direct has it, which counts the calls that the dispatcher gets to see."""

    def __init__(self, name):
        self.dispatched, self.seen = getattr(ops, name).default, 0
        self.function = direct._function(name, self.dispatch, tuple(torch_op._arguments(self.dispatched._schema)), "")

    def dispatch(self, *args, **named):
        self.seen += 1
        return self.dispatched(*args, **named)

    def __call__(self, *args, **named):
        return self.function(*args, **named)


def copied(args):
    return [arg.clone() if isinstance(arg, torch.Tensor) else arg for arg in args]


def one_product(device="cpu"):
    a, b, _, sfa, sfb, _ = operators.operands(device)
    return a, b, sfa, sfb


class ByDirect(unittest.TestCase):
    """Whatever the tests of the operators call, they call here without the dispatcher, if that may be."""
    def setUp(self):
        super().setUp()
        operators.ops = direct

    def tearDown(self):
        operators.ops = ops


class Launches(ByDirect, operators.Launches):
    test_plain_forms = None  # the dispatcher alone has them


class Conversions(ByDirect, operators.Conversions):
    pass


class Experts(ByDirect, operators.Experts):
    pass


class Empty(ByDirect, operators.Empty):
    pass


class Versions(ByDirect, operators.Versions):
    pass


@unittest.skipUnless(operators.GPU, "there is no GPU")
class OnGpu(ByDirect, operators.OnGpu):
    test_the_default_backend_of_compile = None  # it traces operators


class Same(Case):
    def test_bits_and_strides(self):
        """And the dispatcher sees none of these calls."""
        seen = set()
        for device in DEVICES:
            for name, args, named in operators.calls(device):
                spied = Spied(name)
                with self.subTest(device, name=name, named=list(named)):
                    args, wanted_args = copied(args), copied(args)
                    named, wanted_named = (dict(zip(named, copied(named.values()))) for _ in range(2))
                    got, wanted = spied(*args, **named), getattr(ops, name)(*wanted_args, **wanted_named)
                    self.assertEqual(spied.seen, 0)
                    self.assertIs(type(got), type(wanted))
                    if name == "swiglu" and "group_rows" in named: continue  # rows of nobody hold anything
                    pairs = [*zip(args, wanted_args), *((named[key], wanted_named[key]) for key in named)]
                    if wanted is not None: pairs += zip(got, wanted) if isinstance(wanted, tuple) else [(got, wanted)]
                    for one, other in pairs:
                        if not isinstance(one, torch.Tensor): continue
                        self.same(one, other)
                        self.assertEqual((one.stride(), one.device), (other.stride(), other.device))
                seen.add(name)
        self.assertEqual(seen, set(torch_op._SHAPES))

    def test_arguments_by_name(self):
        """In whatever order, and with names that Python has made only now."""
        for name, args, named in operators.calls():
            spied, names = Spied(name), [each.name for each in getattr(ops, name).default._schema.arguments]
            every = {**dict(zip(names, args)), **named}
            backwards = {"".join(list(key)): every[key] for key in reversed(every)}
            with self.subTest(name, named=list(named)):
                spied(**backwards)
                self.assertEqual(spied.seen, 0)

    def test_numbers_and_types(self):
        args, spied = one_product(), Spied("linear")
        for more in ((2,), (0.5, torch.float8_e4m3fn), (0.5, FP32, vector("cpu", 1))):
            self.same(spied(*args, *more), ops.linear(*args, *more))
        self.assertEqual(spied.seen, 0)

    def test_results_belong_to_the_mode_of_the_call(self):
        args = one_product()
        with torch.inference_mode(): self.assertTrue(direct.linear(*args).is_inference())
        result = direct.linear(*args)
        self.assertFalse(result.is_inference() or result.requires_grad)
        self.assertEqual(result._version, ops.linear(*args)._version)

    def test_parameters(self):
        args, spied = one_product(), Spied("linear")
        wrapped = [torch.nn.Parameter(arg, requires_grad=False) for arg in args]
        self.same(spied(*wrapped), ops.linear(*args))
        self.assertEqual(spied.seen, 0)

    def test_refusals(self):
        """The same exception with the same sentence, of a rule, of the library, and of the schema."""
        a, b, sfa, sfb = args = one_product()
        for broken, named in (((a, b[:, 16:], sfa, sfb), {}), (args, dict(activation=17)),
                              (args, dict(max_sms=1 << 32)), (args, dict(bias=torch.ones(N - 1))),
                              (args, dict(bias=torch.ones(N).double())),
                              (args, dict(flags=1 << 70)), ((*args, 1 << 2000), {}), ((*args, "one"), {}),
                              ((*args, 1.0, torch.int64), {}), ((*args, 1.0, torch.uint8), {}),
                              ((a.to(torch.complex64), b, sfa, sfb), {}), ((a, None, sfa, sfb), {}), (args[:3], {}),
                              (args, dict(b=b)), (args, dict(unknown=1)), ((*args, 1.0, BF16, None, None), {}),
                              ((a, b, sfa.to("meta"), sfb), {})):
            with self.subTest(named=list(named)):
                said = []
                for function in (ops.linear.default, direct.linear):
                    with self.assertRaises(Exception) as raised: function(*broken, **named)
                    said.append((type(raised.exception), str(raised.exception).splitlines()[0]))
                self.assertEqual(*said)

    def test_nothing_is_held_and_nothing_is_lost(self):
        a, b, sfa, sfb = args = one_product()
        alpha, out = vector("cpu", 1), torch.empty(M, N, dtype=BF16)
        watched = [*args, alpha, out, BF16, direct.linear, torch.empty_strided, torch.float32]

        def every_way():
            for _ in range(50):
                direct.linear(*args, 1.0, BF16, alpha, flags=0)
                direct.linear_nvfp4(*args)
                direct.linear_out(*args, out, alpha_dev=alpha)
                for wrong in (dict(activation=17), dict(unknown=1)):
                    with self.assertRaises(Exception): direct.linear(*args, **wrong)
                with torch.device("cpu"): direct.linear(*args)
        every_way()
        gc.collect()
        before, objects = list(map(sys.getrefcount, watched)), len(gc.get_objects())
        every_way()
        gc.collect()
        self.assertEqual(list(map(sys.getrefcount, watched)), before)
        self.assertLess(abs(len(gc.get_objects()) - objects), 50)  # of 50 calls of each kind
        result = direct.linear(*args)
        gone = weakref.ref(result)
        del result
        self.assertIsNone(gone())

    def test_threads_run_meanwhile(self):
        import threading
        args, ticks, done = operators.operands("cpu", m=256, n=256, k=2048), [], threading.Event()

        def tick():
            while not done.wait(0.001): ticks.append(None)
        thread = threading.Thread(target=tick)
        thread.start()
        before = len(ticks)
        direct.swiglu(*args)  # in fp64 on the CPU: a long time
        during = len(ticks) - before
        done.set()
        thread.join()
        self.assertGreater(during, 1)

    def test_layers_call_them(self):
        self.assertIs(_weights.calls(), direct)
        layer = nn.Linear.from_float(torch.nn.Linear(64, 16).to(BF16), a_format="16bit")
        x, called = torch.randn(3, 64).to(BF16), []

        class Counting:
            def __getattr__(self, name):
                called.append(name)
                return getattr(direct, name)
        torch_op.direct = Counting()
        try:
            layer(x)
        finally:
            torch_op.direct = direct
        self.assertEqual(called, ["linear"])


class Marked(torch.Tensor):
    pass


class ToTheDispatcher(Case):
    def sees(self, *args, spied=None, **named):
        """The dispatcher sees the call, and whatever it makes of that is what the caller gets."""
        spied = spied or Spied("linear")
        got = spied(*args, **named)
        self.assertEqual(spied.seen, 1)
        return got

    def test_derivatives(self):
        x = torch.randn(M, K, requires_grad=True)
        spied = Spied("quantize")
        with torch.no_grad(): spied(x)
        with torch.inference_mode(): spied(x)
        self.assertEqual(spied.seen, 0)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                self.sees(x, scale_mode=d.SCALE_ROW, spied=spied)[2].sum().backward()
            except RuntimeError as error:  # or refuses at once
                said.append(error)
        self.assertIn("autograd kernel was not registered", " ".join(str(getattr(x, "message", x)) for x in said))

    def test_classes_of_tensors(self):
        a, b, sfa, sfb = one_product()
        self.assertIsInstance(self.sees(a.as_subclass(Marked), b, sfa, sfb), Marked)

    def test_modes(self):
        args = one_product()
        wanted = ops.linear(*args)
        with torch.device("cpu"): self.same(self.sees(*args), wanted)

        class Counting(TorchDispatchMode):
            seen = []

            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                self.seen.append(str(function))
                return function(*args, **(kwargs or {}))
        with Counting(): self.same(self.sees(*args), wanted)
        self.assertIn("dualgemm.linear.default", Counting.seen)
        with FakeTensorMode() as mode:
            fake = self.sees(*map(mode.from_tensor, args))
        self.assertIsInstance(fake, torch._subclasses.FakeTensor)

    def test_tracers(self):
        a, b, sfa, sfb = one_product()
        traced = torch.jit.trace(lambda a: self.sees(a, b, sfa, sfb), (a,), check_trace=False)
        self.assertIn("dualgemm::linear", str(traced.graph))
        for pre_dispatch in (False, True):
            graph = make_fx(lambda a: self.sees(a, b, sfa, sfb), pre_dispatch=pre_dispatch)(a)
            self.assertIn("dualgemm.linear", graph.code)

    def test_profilers(self):
        args = one_product()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile: self.sees(*args)
        self.assertIn("dualgemm::linear", [event.name for event in profile.events()])

    def test_transforms(self):
        _, b, sfa, sfb = one_product()
        batch, spied = torch.stack([one_product()[0] for _ in range(2)]), Spied("linear")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = torch.func.vmap(lambda a: spied(a, b, sfa, sfb))(batch)
        self.assertEqual(spied.seen, 1)
        self.same(got, torch.stack([ops.linear(a, b, sfa, sfb) for a in batch]))
        self.same(torch.func.functionalize(lambda a: self.sees(a, b, sfa, sfb))(batch[0]), got[0])

    def test_numbers_that_memory_does_not_tell(self):
        args = one_product()
        negated = torch.complex(torch.tensor([1.0]), torch.tensor([0.25])).conj().imag
        self.assertTrue(negated.is_neg())
        for alpha in (negated, negated[0].flatten(), negated.reshape(1, 1)[:, 0]):
            self.same(self.sees(*args, alpha_dev=alpha), ops.linear(*args, alpha_dev=torch.tensor([-0.25])))
        zero = torch._efficientzerotensor((1,))
        self.same(self.sees(*args, alpha_dev=zero), ops.linear(*args, alpha_dev=torch.zeros(1)))

    def test_tensors_without_memory(self):
        meta = [torch.empty_like(t, device="meta") for t in one_product()]
        self.assertEqual(self.sees(*meta).device.type, "meta")

    def test_numbers_of_other_classes(self):
        args = one_product()
        self.same(self.sees(*args, torch.tensor(0.5)), ops.linear(*args, 0.5))
        self.same(self.sees(*args, True), ops.linear(*args, 1.0))


# ---- without a GPU: tensors that only say where they lie ----

class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


Describe = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))


class Exchange(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("prev_api", ctypes.c_void_p),
                ("managed", ctypes.c_void_p * 3), ("describe", Describe), ("stream", ctypes.c_void_p)]

    def capsule(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self), b"dlpack_exchange_api", None)


class Elsewhere:
    """A tensor of bytes."""
    requires_grad = False
    CUDA, ROCM = 2, 10

    def __init__(self, device_type, device_id, *shape):
        strides = (shape[-1], 1)[-len(shape):]
        self.tensor = DLTensor(1 << 40, device_type, device_id, len(shape), 1, 8, 1,
                               (ctypes.c_int64 * len(shape))(*shape), (ctypes.c_int64 * len(shape))(*strides), 0)

    def is_neg(self):
        return False


@Describe
def describe(tensor, out):
    out[0] = tensor.tensor
    return 0


def start(module):
    direct._start(module, tuple(getattr(torch._C, name) for name in torch_op._WATCHERS), torch.autograd.profiler,
                  "_is_profiler_enabled", torch._C._increment_version)


class ByDLPack(Case):
    def tearDown(self):
        start(torch)

    def start(self, exchange):
        Elsewhere.__dlpack_c_exchange_api__ = exchange.capsule()
        self.exchange = exchange  # the capsule does not hold it
        named = {name: getattr(torch, name) for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)}
        start(types.SimpleNamespace(Tensor=Elsewhere, nn=types.SimpleNamespace(Parameter=Marked), empty_strided=None,
                                    **named))

    def linear(self, *where):
        """a, b, sfa and sfb at these places."""
        spied = Spied("linear")
        spied.dispatched = lambda *args: "dispatched"
        return spied(*(Elsewhere(*place, *shape) for place, shape in
                       zip(where, ((M, K // 2), (N, K // 2), (d.sf_size(M, K),), (d.sf_size(N, K),)))))

    def test_unknown_flag(self):
        """A PyTorch whose profiler has no such flag is refused before any call, so that the operators stand in."""
        with self.assertRaises(AttributeError): direct._start(torch, (), torch.autograd.profiler, "_no_such_flag", None)

    def test_places(self):
        """What lies on several GPUs is refused before anybody asks CUDA."""
        self.start(Exchange(1, 3, None, (ctypes.c_void_p * 3)(), describe, None))
        first, second = (Elsewhere.CUDA, 0), (Elsewhere.CUDA, 1)
        self.refused("^b: lies on cuda:1, and a on cuda:0$", self.linear, first, second, first, first)
        self.refused("^sfa: lies on cuda:0, and a on cuda:1$", self.linear, second, second, first, first)
        self.refused("^sfb: lies on cpu, and a on cuda:1$", self.linear, second, second, second, (1, 0))
        self.assertEqual(self.linear(first, first, first, (Elsewhere.ROCM, 0)), "dispatched")

    def test_versions(self):
        nothing = (ctypes.c_void_p * 3)()
        first = Exchange(1, 3, None, nothing, describe, None)
        self.start(Exchange(2, 0, ctypes.addressof(first), nothing, Describe(), None))
        self.refused("^b: lies on cuda:1", self.linear, (2, 0), (2, 1), (2, 0), (2, 0))
        for other in (Exchange(2, 0, None, nothing, describe, None), Exchange(1, 3, None, nothing, Describe(), None)):
            with self.assertRaises(ImportError): self.start(other)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
