#!/usr/bin/env python3
"""snippets.py SOURCE BUILD [-v] -- everything that a page says to type, and every piece of code on a page, is tried: in
an empty folder, where build/, test/ and the rest are links to those of this build. A command is a line of a block, or a
span between backticks, that begins as COMMANDS says. What is done with it says the first fitting line of TREATMENTS:

    run       as it stands
    list      with the tests only listed, which have to be some: `make test` runs them
    dry       a target of make by `make -n`, one of the build by ninja: it builds, writes the tree, takes more than ten
              seconds or wants a GPU, and has a name for that reason
    elsewhere nothing: a test of another room does it
    options   only that the program has these options: the line is a synopsis, or one of those that take minutes

C is put into fragment.c, compiled by the README's own line, and run on the simulated GPU. Blocks of other kinds are
quotations (QUOTED) and drawings, of which each page has as many as DRAWINGS says: a new block is either a command, or
code, or somebody has counted it there.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COMMANDS = re.compile(r"(make|ctest|cmake|ninja|gcc|g\+\+|nvcc|bash|sh|sudo|git|grep|sed|python3?|pip3?|apt-get|export"
                      r"|docker)(?= )|[A-Z][A-Z_]+=\S+ +\S|(build|\.|test(/\w+)*)/[\w-]+(\.sh|\.py)?(?= )"
                      r"|dualgemm[_-](bench|sim)(?= )")
TREATMENTS = [
    (r"make help", "run"),
    (r"pip install ", "elsewhere"),
    (r"make |bash \.ci/run|cmake --build|\S+ make |build/fuzz_test FILE", "dry"),
    (r"ctest |build/\w+_test (?!FILE)|build/\w+_test$", "list"),
    (r"(build/)?dualgemm_bench|dualgemm-sim|build/mutation|build/soak .*\*", "options"),
    (r"", "run"),
]
QUOTED = {"test/defects/README.md": ["test/defects/defects.def", "test/defects/*.cu"]}
DRAWINGS = {"README.md": 2, "bench/README.md": 1, "host/README.md": 8, "host/python/README.md": 1,
            "kernel/README.md": 3, "test/README.md": 1, "test/example/checkpoint/README.md": 1,
            "test/sim/JUDGE.md": 2, "test/sim/README.md": 1}
# Blocks of other commands, by their first lines, and the target of make that runs them.
OTHERS = {"mkdir -p plain general": "make by-hand", "popcorn-cli submit build/contest/submission.py": "make contest"}
# Placeholders of the pages.
PLACEHOLDERS = [("./program args...", "./program 16 8 64"), ("--test-dir build", "--test-dir tests"),
                ("build/lib/libdualgemm.a -L$CUDA/lib64", "build/libdualgemm.a -Lbuild/sim"),
                ("MODEL/model-00001-of-00003.safetensors ...",
                 "test/example/checkpoint/fixtures/modelopt_dense.safetensors")]


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
    def __init__(self, source, build, verbose):
        self.source, self.build, self.verbose, self.failed = source, build, verbose, []
        self.folder = tempfile.TemporaryDirectory(prefix="pages")
        self.place = pathlib.Path(self.folder.name)
        for entry in source.iterdir():
            if entry.name not in ("build", ".git"): (self.place / entry.name).symlink_to(entry)
        (self.place / "build").symlink_to(build)
        for name, program in (("program", "quickstart"), ("any_program_with_embedded_sm_100_ptx", "quickstart"),
                              ("any_program_with_embedded_sm_90_ptx", "sm90_zeros_run")):
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
        treatment = next(name for pattern, name in TREATMENTS if re.match(pattern, typed))
        for part in typed.split(" && "): getattr(self, treatment)(f"{where} ({treatment})", part)

    def run(self, where, typed):
        for placeholder, value in PLACEHOLDERS: typed = typed.replace(placeholder, value)
        status, said = self.shell(typed)
        self.require(status == 0, where, typed, said)

    def list(self, where, typed):
        if typed.startswith("cmake"): return self.dry(where, typed)
        for placeholder, value in PLACEHOLDERS: typed = typed.replace(placeholder, value)
        if "--list" not in typed: typed += " -N" if typed.startswith("ctest") else " --list-tests"
        _, said = self.shell(typed)
        counted = re.search(r"(?:Total Tests: |^)(\d+)(?: (?:matching )?test cases?| tags?|$)", said, re.M)
        return self.require(counted and int(counted[1]) > 0, where, typed, said)

    def elsewhere(self, where, typed):
        """test/python installs the module, into a folder of its own."""
        self.require(typed == "pip install ./host/python", where, typed)

    def dry(self, where, typed):
        if typed == "build/fuzz_test FILE": typed = "make fuzz"  # there is none without clang
        if typed.startswith("build/"): return self.list(where, typed)
        if typed.startswith("cmake"):
            status, said = self.shell(f"ninja -C build -t query {typed.split('--target ')[1]}")
        elif typed.startswith("bash"): status, said = self.shell(typed.replace("bash", "bash -n", 1))
        else: status, said = self.shell(re.sub(r"\bmake ", "make -n ", typed, count=1))
        return self.require(status == 0, where, typed, said)

    def options(self, where, typed):
        program = typed.split()[0]
        program = program if "/" in program else f"build/{program}"
        _, said = self.shell(f"{program} --help", LD_LIBRARY_PATH="build/sim")
        unknown = [option for option in re.findall(r"--[\w-]+", typed) if not re.search(rf"{option}\b", said)]
        self.require("Usage" in said and not unknown, where, typed, f"not in its --help: {unknown}\n{said}")

    def c(self, where, code):
        (self.place / "fragment.inc").write_text(code)
        readme = (self.source / "README.md").read_text()
        line = re.search(r"^    (gcc .*?)(?: +# .*)?$", readme, re.M)[1]
        for typed, here in (("program.c", "-I. test/pages/fragment.c -o fragment"), ("build/lib/", "build/"),
                            ("$CUDA/lib64", "build/sim")):
            if typed not in line: sys.exit(f"snippets.py: the README's gcc line has no {typed}")
            line = line.replace(typed, here)
        status, said = self.shell(f"{line} -Wall -Werror && LD_LIBRARY_PATH=build/sim ./fragment")
        self.require(status == 0 and "correct" in said, where, "C", said)


def tried(page, tries):
    """Tries what is on a page, and returns how many blocks nothing was to be done with."""
    drawings = 0
    sources = [file for pattern in QUOTED.get(page.name, []) for file in tries.source.glob(pattern)]
    quoted = "".join(file.read_text() for file in sources)
    for language, block in page.blocks:
        first = block.strip().splitlines()[0]
        where = f"{page.name}: {first.strip()[:40]}"
        if language == "c": tries.c(where, block)
        elif language == "python": continue  # test/python/installed_test.py runs the example that it is a part of
        elif language not in (None, "sh"): tries.require(False, where, f"nobody tries code in {language}")
        elif first.strip().startswith("gcc "): continue  # every C snippet is compiled by this line
        elif COMMANDS.match(first.strip()):
            for line in joined(block):
                tries.require(COMMANDS.match(line), where, f"a command among others? {line}")
                tries.command(where, line)
        elif first.strip() in OTHERS: tries.dry(where, OTHERS[first.strip()])
        elif first.strip().startswith("{"):
            (tries.place / "names.json").write_text(json.dumps(json.loads(block)))
            tries.run(where, "build/dualgemm-sim --names names.json ./program 16 8 64")
        elif quoted:
            for line in block.splitlines(): tries.require(line.strip() in quoted, where, f"quotes {line.strip()}")
        else: drawings += 1
    for span in page.spans:
        if COMMANDS.match(span) and not span.startswith("gcc"): tries.command(f"{page.name}: in the text", span)
    return drawings


def main():
    source, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    tries = Tries(source, build, "-v" in sys.argv)
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=source, text=True, stdout=subprocess.PIPE, check=False)
    names = listed.stdout.split() or [str(page.relative_to(source)) for page in source.glob("**/*.md")
                                      if "build" not in page.parts]
    for name in names:
        drawings = tried(Page(name, (source / name).read_text(encoding="utf-8")), tries)
        counted = DRAWINGS.get(name, 0)
        tries.require(drawings == counted, name, f"{drawings} blocks are neither commands, nor code that is tried, nor "
                      f"quotations; DRAWINGS counts {counted} drawings")
    if tries.failed: sys.exit("snippets.py: " + "\nsnippets.py: ".join(tries.failed))


if __name__ == "__main__":
    main()
