#!/usr/bin/env python3
"""snippets.py BUILD [-v] -- everything that a page says to type, and every piece of code on a page, is tried: in
an empty folder, where build/, test/ and the rest are links to those of this build. A command is a line of a block, or a
span between backticks, that begins as COMMANDS says. What is done with it says the first fitting line of TREATMENTS:

    run       as it stands
    list      with the tests only listed, which have to be some: `make test` runs them
    dry       a target of make by `make -n`, one of the build by ninja: it builds, writes the tree, takes more than ten
              seconds or wants a GPU, and has a name for that reason
    options   only that the program has these options: the line is a synopsis, or one of those that take minutes

C is put into fragment.c, compiled by the README's own line, and run on the simulated GPU; of Python the names of
arguments are looked for in dualgemm.h, of layers in dualgemm.nn. What another test or a target of make runs stands in
ELSEWHERE. Other blocks are quotations (QUOTED) and drawings, of which each page has as many as DRAWINGS says: a new
block is either a command, or code, or somebody has counted it there.
"""
import ast
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from pages import ROOT, pages

COMMANDS = re.compile(r"(make|ctest|cmake|ninja|gcc|g\+\+|nvcc|bash|sh|sudo|git|grep|sed|python3?|apt-get|export"
                      r"|docker)(?= )|[A-Z][A-Z_]+=\S+ +\S|(build|\.|test(/\w+)*)/[\w-]+(\.sh|\.py)?(?= )"
                      r"|(\$HOME/dualgemm/bin/)?dualgemm[_-](bench|sim|report)(?= )")
TREATMENTS = [
    (r"make help", "run"),
    (r"make |bash \.ci/run|cmake --build|ninja |\S+ make |build/fuzz_test FILE", "dry"),
    (r"ctest |(SIM_MACHINE=\S+ )?build/\w+_test\b", "list"),
    (r"(build/)?dualgemm_bench|dualgemm-sim|build/mutation|build/sim_speed|build/soak .*\*", "options"),
    (r"", "run"),
]
# What a block or a span begins with, and what runs it: a target of make, a test, or nobody here.
ELSEWHERE = {
    "mkdir -p build/h0 build/h1": "make by-hand",
    "cmake -B build -DCMAKE_PREFIX_PATH": "ctest -R 'package: as a subproject'",  # with the files of the page
    "python3 -m venv": None,  # Debian's python3 has no venv without a package that nothing else here needs
    "pip install ./host/python": "ctest -R 'python: the module as pip installs it'",
    "pip install -e './host/python[transformers]'": None,  # needs PyTorch and transformers
    "python3 -m dualgemm.transformers": "make test-torch",
    "sh bench/contenders/triton.sh": None,  # needs Triton
    "dualgemm-tune --config": "ctest -R 'package: dualgemm-tune'",  # a model's configuration is not here
    "pip install --find-links build/wheels": "make wheels-test",
    "python3 first-hour-pack/first_hour.py": "ctest -R 'first hour'",  # with a folder that is packed there
    "git tag -a": None,  # a release has one tag
    "make release-test": None,  # goes on in a clone, which a dry run does not make
    "popcorn-cli": None,  # needs an account and a GPU of the contest's
}
ARGUMENTS_OF_TRANSFORMERS = "config device_map cache_implementation quantization_config"
QUOTED = {"test/sim/defects/README.md": ["test/sim/defects/defects.def", "test/sim/defects/*.cu"]}
DRAWINGS = {"README.md": 1, "bench/README.md": 1, "host/DEBUGGING.md": 2, "host/FORMATS.md": 6, "host/GROUPS.md": 3,
            "host/README.md": 1, "host/SOURCES.md": 1, "host/TUNING.md": 1, "kernel/README.md": 4, "test/README.md": 1,
            "test/example/checkpoint/README.md": 1, "test/sim/JUDGE.md": 3, "test/sim/README.md": 2}
# Placeholders of the pages, and smaller numbers for those that take long: a page says what is worth running, while the
# line is tried for its words.
PLACEHOLDERS = [("./program args...", "./program 16 8 64"), ("--test-dir build", "--test-dir tests"),
                ("$HOME/dualgemm/bin/dualgemm-", "build/dualgemm-"),
                ("--mode all --seeds 8", "--mode all --seeds 1"),
                ("--dtype nvfp4 --shape 200x512x1024", "--dtype nvfp4 --shape 40x128x256")]


class Page:
    def __init__(self, name, text):
        text = re.sub(r"<!-- printed by:.*?<!-- end -->", "", text, flags=re.S)
        self.name, self.blocks = name, []  # (language or None, text)
        rest = re.sub(r"^```(\w*)\n(.*?)^```$", lambda m: self.take(m[1] or "?", m[2]), text, flags=re.S | re.M)
        rest = re.sub(r"(?<=\n\n)((?: {4,}\S.*\n)+)", lambda m: self.take(None, m[1]), rest)
        self.spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", rest)]

    def take(self, language, text):
        self.blocks.append((language, text))
        return "\n\n"


def joined(block):
    """The lines of a block, those that are indented further put behind the one before."""
    margin = min(len(line) - len(line.lstrip()) for line in block.splitlines() if line.strip())
    return re.sub(r"\n +", " ", "\n".join(line[margin:] for line in block.splitlines() if line.strip())).splitlines()


class Tries:
    def __init__(self, build, verbose):
        self.verbose, self.failed = verbose, []
        self.folder = tempfile.TemporaryDirectory(prefix="pages")
        self.place = pathlib.Path(self.folder.name)
        for entry in ROOT.iterdir():
            if entry.name not in ("build", ".git"): (self.place / entry.name).symlink_to(entry)
        (self.place / "build").symlink_to(build)
        for name, program in (("program", "example/quickstart"),
                              ("any_program_with_embedded_sm_100_ptx", "example/quickstart"),
                              ("any_program_with_embedded_sm_90_ptx", "example/quickstart")):
            (self.place / name).symlink_to(build / program)
        (self.place / "tests").mkdir()  # CTest writes where it runs, and may be running in build/
        (self.place / "tests/CTestTestfile.cmake").write_text(f'subdirs("{build}")\n')
        nvcc = (build / "cuda.mk").read_text().split()[-1]
        self.environment = dict(os.environ, CUDA=str(pathlib.Path(nvcc).parent.parent))

    def shell(self, command, **more):
        done = subprocess.run(["bash", "-c", command], cwd=self.place, env={**self.environment, **more}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
        return done.returncode, done.stdout

    def require(self, holds, where, what, said=""):
        if self.verbose: print("ok  " if holds else "BAD ", where, "|", what)
        if not holds: self.failed.append(f"{where}: {what}\n{said[-2000:]}")

    def command(self, where, typed):
        typed = re.sub(r"\s+# .*$", "", typed)
        for begin, elsewhere in ELSEWHERE.items():
            if typed.startswith(begin): return elsewhere and self.command(f"{where}, elsewhere", elsewhere)
        treatment = next(name for pattern, name in TREATMENTS if re.match(pattern, typed))
        for part in typed.split(" && "): getattr(self, treatment)(f"{where} ({treatment})", part)
        return None

    def run(self, where, typed):
        for placeholder, value in PLACEHOLDERS: typed = typed.replace(placeholder, value)
        status, said = self.shell(typed)
        self.require(status == 0, where, typed, said)

    def list(self, where, typed):
        if typed.startswith("cmake"): return self.dry(where, typed)
        for placeholder, value in PLACEHOLDERS: typed = typed.replace(placeholder, value)
        if typed.startswith("ctest"): typed = f"{typed if '--test-dir' in typed else typed + ' --test-dir tests'} -N"
        elif "--list" not in typed: typed += " --list-tests"
        _, said = self.shell(typed)
        counted = re.search(r"^(?:Total Tests: )?(\d+)(?: matching| test| tag|$)", said, re.M)
        return self.require(counted and int(counted[1]) > 0, where, typed, said)

    def dry(self, where, typed):
        if typed == "build/fuzz_test FILE": typed = "make fuzz"  # there is none without clang
        if typed.startswith("build/"): return self.list(where, typed)
        if typed.startswith("cmake"):
            status, said = self.shell(f"ninja -C build -t query {typed.split('--target ')[1]}")
        elif typed.startswith("ninja"): status, said = self.shell(typed.replace("-C build", "-C build -t query"))
        elif typed.startswith("bash"): status, said = self.shell(typed.replace("bash", "bash -n", 1))
        else: status, said = self.shell(re.sub(r"\bmake ", "make -n ", typed, count=1))
        return self.require(status == 0, where, typed, said)

    def options(self, where, typed):
        program = typed.split()[0]
        program = program if "/" in program else f"build/{program}"
        _, said = self.shell(f"{program} --help", LD_LIBRARY_PATH="build/sim")
        unknown = [option for option in re.findall(r"--[\w-]+", typed) if not re.search(rf"{option}\b", said)]
        self.require("Usage" in said and not unknown, where, typed, f"not in its --help: {unknown}\n{said}")

    def compiler(self, line):
        """A page's line for the compiler, with this build in the place of one by `make lib`."""
        return line.replace("build/lib/", "build/").replace("$CUDA/lib64", "build/sim")

    def c(self, where, code):
        (self.place / "fragment.inc").write_text(code)
        line = self.compiler(re.search(r"^    (gcc .*?)(?: +# .*)?$", (ROOT / "README.md").read_text(), re.M)[1])
        line = line.replace("program.c", "-I. test/tree/fragment.c -o fragment")
        status, said = self.shell(f"{line} -Wall -Werror && LD_LIBRARY_PATH=build/sim ./fragment")
        self.require(status == 0 and "correct" in said, where, "C", said)

    def python(self, where, code):
        header = (ROOT / "host/include/dualgemm.h").read_text()
        if "nn." in code: header += "".join(file.read_text() for file in ROOT.glob("host/python/dualgemm/nn/*.py"))
        if "transformers" in code: header += ARGUMENTS_OF_TRANSFORMERS
        arguments = [node.arg for node in ast.walk(ast.parse(code)) if isinstance(node, ast.keyword)]
        unknown = [name for name in arguments if not re.search(rf"\b{name}\b", header)]
        self.require(arguments and not unknown, where, "Python", f"not in dualgemm.h or dualgemm.nn: {unknown}")


def tried(page, tries):
    """Tries what is on a page, and returns how many blocks nothing was to be done with."""
    drawings = 0
    sources = [file for pattern in QUOTED.get(page.name, []) for file in ROOT.glob(pattern)]
    quoted = "".join(file.read_text() for file in sources)
    for language, block in page.blocks:
        first = block.strip().splitlines()[0].strip()
        where = f"{page.name}: {first[:40]}"
        if language == "c": tries.c(where, block)
        elif language == "python": tries.python(where, block)
        elif language in ("cmake", "make"): continue  # test/package takes these files from the page
        elif language not in (None, "sh"): tries.require(False, where, f"nobody tries code in {language}")
        elif first.startswith("gcc "): continue  # every C snippet is compiled by this line
        elif first.startswith("g++ "): tries.run(where, tries.compiler(first))
        elif first.startswith("launch("): tries.python(where, re.sub(r"^    ", "", block, flags=re.M))
        elif first.startswith(tuple(ELSEWHERE)): tries.command(where, first)
        elif COMMANDS.match(first):
            for line in joined(block):
                known = COMMANDS.match(line) or line.startswith(tuple(ELSEWHERE))
                tries.require(known, where, f"a command among others? {line}")
                tries.command(where, line)
        elif first.startswith("{"):
            (tries.place / "names.json").write_text(json.dumps(json.loads(block)))
            tries.run(where, "build/dualgemm-sim --names names.json ./program 16 8 64")
        elif quoted:
            for line in block.splitlines(): tries.require(line.strip() in quoted, where, f"quotes {line.strip()}")
        else: drawings += 1
    for span in page.spans:
        if COMMANDS.match(span) and not span.startswith("gcc"): tries.command(f"{page.name}: in the text", span)
    return drawings


def main():
    tries = Tries(pathlib.Path(sys.argv[1]).resolve(), "-v" in sys.argv)
    for page in pages():
        name = str(page.relative_to(ROOT))
        drawings = tried(Page(name, page.read_text(encoding="utf-8")), tries)
        counted = DRAWINGS.get(name, 0)
        tries.require(drawings == counted, name, f"{drawings} blocks are neither commands, nor code that is tried, nor "
                      f"quotations; DRAWINGS counts {counted} drawings")
    if tries.failed: sys.exit("snippets.py: " + "\nsnippets.py: ".join(tries.failed))


if __name__ == "__main__":
    main()
