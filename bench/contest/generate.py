#!/usr/bin/env python3
"""generate.py -- the kernel as one file in the format of the public NVFP4 dual-GEMM contest (README.md).

    DUALGEMM_LIBRARY=libdualgemm.so.0 generate.py OUTPUT

The library is asked which instance it would choose for each shape on a B200; it needs no GPU for that.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "host/python"))
import dualgemm  # noqa: E402

from shapes import TESTS, TIMED  # noqa: E402

B200 = dict(cc_major=10, sm_count=148, driver_version=13000, clusters_of_2=74, clusters_of_4=34)
# What no file of the contest may contain, as participants report, in whatever case.
FORBIDDEN = "stream"
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//[^\n]*|/\*.*?\*/', re.S)
INCLUDE = re.compile(r'^#include ([<"])([^>"]+)[>"]\n', re.M)
OPTIONS = re.compile(r"constexpr sm100::Options (\w+)\{(.*?)\};", re.S)
# Clusters are an attribute of the launch in the library; here the kernel itself has to say it.
LAUNCH_BOUNDS = "__launch_bounds__(Traits::kPlan.threads, 1)"
CLUSTER_DIMS = f"__cluster_dims__(Traits::kPlan.cluster_size(), 1, 1) {LAUNCH_BOUNDS}"


def require(condition, text):
    if not condition: sys.exit(f"generate.py: {text}")


def without_comments(source):
    """The source with comments gone, and with them the lines that held nothing else."""
    source = TOKEN.sub(lambda found: found[0] if found[0][0] in "\"'" else "", source)
    return "".join(f"{line.rstrip()}\n" for line in source.split("\n") if line.strip())


class Inliner:
    """Sources, each once, behind those that they include; what they include of the system comes first."""

    def __init__(self):
        self.seen, self.system, self.text = set(), set(), []

    def add(self, name):
        if name in self.seen: return
        self.seen.add(name)
        source = without_comments((ROOT / name).read_text(encoding="utf-8")).replace("#pragma once\n", "")
        for kind, included in INCLUDE.findall(source):
            if kind == "<": self.system.add(included)
            else: self.add(included)
        self.text.append(INCLUDE.sub("", source))

    def __str__(self):
        return "".join(f"#include <{name}>\n" for name in sorted(self.system)) + "".join(self.text)


def chosen_for(m, n, k):
    """What the API says of the instance that a B200 would run. Pointers are compared, never followed."""
    a, b1, b2, sfa, sfb1, sfb2, out = ((i + 1) << 32 for i in range(7))
    args = dualgemm.arguments(a, b1, b2, sfa, sfb1, sfb2, out, m=m, n=n, k=k, c_dtype=dualgemm.DTYPE_FP16)
    return dualgemm.instance_info(dualgemm.select_instance(args, dualgemm.device(**B200)))


def options_of(info):
    """The options of an instance as they stand in the source of its rows."""
    unit = f"m{info.tile_m}"
    source = (ROOT / f"kernel/sm100/instances/{unit}.cu").read_text(encoding="utf-8")
    known = {"split_k": 1, "scale_k_tiles": 1, "acc_stages": 1, "grouped": 0}
    matching = []
    for name, body in OPTIONS.findall(source):
        given = dict(re.findall(r"\.(\w+) = (\w+)", body))
        numbers = {**known, **{x: int(v == "true") if v in ("true", "false") else int(v) for x, v in given.items()}}
        if all(getattr(info, field, value) == value for field, value in numbers.items()):
            matching.append(f"constexpr sm100::Options {unit}_{name}{{{' '.join(body.split())}}};")
    require(len(matching) == 1, f"{info.name}: {len(matching)} options in {unit}.cu are its")
    return matching[0]


def table():
    """The instances, and the function that is called with a problem."""
    kernels, lines = {}, []
    for shape in dict.fromkeys(TESTS + TIMED):
        info = chosen_for(*shape)
        require(not info.general and not info.grouped, f"{shape}: {info.name} is no instance of a plain launch")
        options = options_of(info)
        kernel = kernels.setdefault(info.name.decode(), (f"K{len(kernels)}", options))[0]
        m, n, k = shape
        lines.append(f"  if (m == {m} && n == {n} && k == {k}) return launch<{kernel}>(t, m, n, k);\n")
    declared = ""
    for name, (kernel, options) in kernels.items():
        constant = re.search(r"Options (\w+)", options)[1]
        declared += (f"{options}\nstruct {kernel} : Instance<{kernel}, {constant}> {{}};\n"
                     f'static_assert(named<{kernel}>("{name}"));\n')
    return ("namespace contest {\n" + declared + "}\n"
            'extern "C" int dualgemm_contest(const void* a, const void* b1, const void* b2, const void* sfa,\n'
            "                                const void* sfb1, const void* sfb2, void* c, int m, int n, int k) {\n"
            "  using namespace contest;\n  const Tensors t{a, b1, b2, sfa, sfb1, sfb2, c};\n" + "".join(lines) +
            "  return cudaErrorInvalidValue;\n}")


def main():
    sources = Inliner()
    sources.add("bench/contest/entry.cuh")
    cuda = str(sources)
    require(cuda.count(LAUNCH_BOUNDS) == 1, "the kernel's __launch_bounds__ are not where they were")
    cuda = cuda.replace(LAUNCH_BOUNDS, CLUSTER_DIMS) + table()
    # No kernel here has stream-K, whose names get another word. What CUDA calls so is not in these sources.
    cuda = cuda.replace("stream", "spread").replace("Stream", "Spread")
    text = (HERE / "template.py").read_text(encoding="utf-8")
    text = text.replace("@VERSION@", ".".join(map(str, dualgemm.version()))).replace("@CUDA_SOURCE@", cuda)
    at = text.lower().find(FORBIDDEN)
    require(at < 0, f"the file would contain '{FORBIDDEN}': {text[at - 60:at + 60]!r}")
    output = pathlib.Path(sys.argv[1])
    output.write_text(text, encoding="utf-8")
    print(f"{output}: {len(text)} characters, {len(text.splitlines())} lines")


if __name__ == "__main__":
    main()
