#!/usr/bin/env python3
"""header_test.py -- the structures, numbers and prototypes of the Python module against dualgemm.h: a C program prints
where the compiler puts every field.

    header_test.py CC SOURCE
"""
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CC, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
HEADER = (SOURCE / "host/include/dualgemm.h").read_text(encoding="utf-8")
CODE = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
sys.path.insert(0, str(SOURCE / "host/python"))
from dualgemm import _library, _structures as s  # noqa: E402

STRUCTURES = [s.Args, s.Device, s.InstanceInfo, s.SfArgs, s.QuantizeArgs, s.MoePermuteArgs, s.MoeGatherArgs,
              s.MoeCombineArgs, s.PrepareMxfp4Args, s.TuningInfo]
PLAIN = {"float": ctypes.c_float, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64,
         "size_t": ctypes.c_size_t}
NUMBERS = [name for name in dir(s) if re.match(r"(STATUS|DTYPE|(LINEAR_)?ACTIVATION|FLAG|GROUP|SCALE|ROWS)_", name)]


def compiled(lines):
    """What a C program prints that runs these lines."""
    program = "#include <stddef.h>\n#include <stdio.h>\n#include \"dualgemm.h\"\nint main(void) {\n%s\nreturn 0; }\n"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "program.c")
        source.write_text(program % "\n".join(lines))
        include = f"-I{SOURCE / 'host/include'}"
        subprocess.run([CC, "-std=c99", "-w", include, source, "-o", f"{folder}/program"], check=True)
        printed = subprocess.run([f"{folder}/program"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return printed.split("\n")[:-1]


class Header(unittest.TestCase):
    def test_fields_lie_where_the_compiler_puts_them(self):
        lines, expected = [], []
        for kind in STRUCTURES:
            name = kind.__doc__
            lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
            expected.append(f"{name} {ctypes.sizeof(kind)}")
            for field, _ in kind._fields_:
                lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), '
                             f'sizeof((({name}*)0)->{field}));')
                expected.append(f"{name}.{field} {getattr(kind, field).offset} {getattr(kind, field).size}")
        self.assertEqual(expected, compiled(lines))

    def test_fields_are_of_the_header_s_types(self):
        for kind in STRUCTURES:
            body = re.search(r"typedef struct \w+ \{([^}]*)\} " + kind.__doc__ + ";", CODE).group(1)
            found = {}
            for line in body.split(";")[:-1]:
                words_of_line, names = re.match(r"\s*((?:const )?\w+)(.*)", line, re.S).groups()
                for name in names.split(","):
                    plain = PLAIN.get(words_of_line)
                    if "*" in name: plain = ctypes.c_char_p if "char" in words_of_line else ctypes.c_void_p
                    elif "[" in name: plain = ctypes.c_char * int(re.search(r"\[(\d+)\]", name).group(1))
                    found[re.search(r"\w+", name).group()] = plain
            self.assertEqual(list(found.items()), kind._fields_)

    def test_numbers(self):
        declared = set(re.findall(r"\bDUALGEMM_((?:DTYPE|(?:LINEAR_)?ACTIVATION|FLAG|GROUP|SCALE|ROWS)_\w+) = ", CODE))
        declared = {name for name in declared if not name.endswith("MAX_ENUM")}
        self.assertEqual(declared | {"STATUS_SUCCESS"}, set(NUMBERS))
        printed = compiled(f'printf("{name} %d\\n", (int)DUALGEMM_{name});' for name in NUMBERS)
        self.assertEqual([f"{name} {getattr(s, name)}" for name in NUMBERS], printed)

    def test_prototypes(self):
        known = {kind.__doc__: ctypes.POINTER(kind) for kind in STRUCTURES}
        outputs = {"size_t": ctypes.POINTER(ctypes.c_size_t), "int32_t": ctypes.POINTER(ctypes.c_int32)}

        def of(parameter, function):
            word = re.match(r"(?:const )?(\w+)", parameter).group(1)
            if word in known: return known[word]
            if "*" in parameter and word in outputs: return outputs[word]
            if function in ("global_scale_host", "import_mxfp4_host") and re.fullmatch(r"float\* \w*scale", parameter):
                return ctypes.POINTER(ctypes.c_float)
            if "*" in parameter and word == "char": return ctypes.c_char_p
            if "*" in parameter or word == "dualgemm_stream_t": return ctypes.c_void_p
            return PLAIN.get(word, ctypes.c_int)  # an enumeration

        functions = re.findall(r"DUALGEMM_API ([\w* ]+?)\s*\bdualgemm_(\w+)\(([^)]*)\)", CODE)
        self.assertEqual({name for _, name, _ in functions}, set(_library._PROTOTYPES))
        results = {"dualgemm_status_t": _library._STATUS, "const char*": ctypes.c_char_p, "void": None,
                   "int": ctypes.c_int}
        for result, name, parameters in functions:
            with self.subTest(name):
                parameters = [p.strip() for p in " ".join(parameters.split()).split(",") if p.strip() != "void"]
                self.assertEqual((results.get(result, PLAIN.get(result)), [of(p, name) for p in parameters]),
                                 _library._PROTOTYPES[name])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
