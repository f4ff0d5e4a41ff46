#!/usr/bin/env python3
"""package.py -- the library as somebody else builds, installs and links it: from a copy of its sources in a folder with
a space in its name, as a subproject and by FetchContent; then installed, by the README's own line, pkg-config and
find_package. Every program runs on the simulated runtime, and is to print "correct". Without --whole a
subproject compiles the host part alone, and what is installed is the build of the tests; with it the subproject's
library is installed, which ships, and is compared with that of the tests.

    package.py SOURCE BUILD NVCC

SOURCE is the root of the sources, BUILD the build folder of the tests with the simulated runtime in sim/.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

LARGEST = 8 * 1000 * 1000  # bytes of the archive, with every instance of both architectures


def run(command, **more):
    print("+ " + shlex.join(map(str, command)), flush=True)
    done = subprocess.run([str(x) for x in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    require(done.returncode == 0, f"{done.stdout}\nthis command failed: {shlex.join(map(str, command))}")
    return done.stdout


def require(condition, text):
    if not condition: sys.exit(f"package.py: {text}")


class Package:
    def __init__(self, source, build, nvcc):
        self.build, self.sim, self.nvcc = build, build / "sim", nvcc
        self.home = build / "a package"
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        self.source = self.home / "the sources"
        self.source.mkdir()
        for folder in ("host", "kernel", "ptx", "test"): shutil.copytree(source / folder, self.source / folder)
        for file in ("CMakeLists.txt", "README.md"): shutil.copy(source / file, self.source / file)
        shutil.copytree(self.source / "test/package/program", self.home / "program")
        self.prefix = self.home / "prefix"
        self.lib = self.home / "subproject/dualgemm"  # the build folder of the library, which is built once
        self.cuda = pathlib.Path(nvcc).resolve().parent.parent

    def environment(self, **more):
        return {**os.environ, "CUDACXX": str(self.nvcc), "CUDAToolkit_ROOT": str(self.cuda), **more}

    def correct(self, program):
        libraries = f"{self.sim}:{self.prefix / 'lib'}"
        out = run([program], env={**os.environ, "LD_LIBRARY_PATH": libraries})
        require(re.search(r"\bcorrect\b", out), f"{program} printed: {out}")

    def project(self, build, *options, runs=True, target="all"):
        run(["cmake", "-S", self.home / "program", "-B", self.home / build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             "-DCMAKE_SKIP_BUILD_RPATH=ON", *options], env=self.environment())
        run(["cmake", "--build", self.home / build, "--target", target])
        if runs and target == "all": self.correct(self.home / build / "program")

    def as_subproject(self, target="all"):
        for how in ("add_subdirectory", "FetchContent"):
            self.project("subproject", f"-DHOW={how}", f"-DDUALGEMM_SOURCE={self.source}", "-DDUALGEMM_INSTALL=ON",
                         f"-DCMAKE_INSTALL_PREFIX={self.prefix}", "-DCMAKE_INSTALL_LIBDIR=lib", target=target)
        shown = run(["cmake", "--build", self.home / "subproject", "--target", "help"])
        targets = re.findall(r"^([\w-]+): ", shown, re.M)
        require("dualgemm_host" in targets, f"targets: {shown}")
        foreign = [name for name in targets if re.search(r"_test$|bench|cudasim|sim_objects", name)]
        require(not foreign, f"a subproject brings tests with it: {foreign}")

    def ships(self):
        """The library as it ships: small, without paths of the build, with the machine code that the tests look at."""
        archive = self.prefix / "lib/libdualgemm.a"
        require(archive.stat().st_size < LARGEST, f"{archive} has {archive.stat().st_size} bytes")
        for file in (archive, self.prefix / "lib/libdualgemm.so.0"):
            require(str(self.home).encode() not in file.read_bytes(), f"{file} names a path of the build")
        print(run([sys.executable, self.source / "test/sass/same.py", self.build / "libdualgemm.a", archive]))

    def installed(self, build):
        run(["cmake", "--install", build, "--prefix", self.prefix])
        shown = run(["nm", "-D", "--defined-only", self.prefix / "lib/libdualgemm.so"])
        header = (self.source / "host/include/dualgemm.h").read_text()
        declared = set(re.findall(r"DUALGEMM_API[^;]*?\b(dualgemm_\w+)\(", header))
        require({line.split()[-1] for line in shown.splitlines()} == declared,
                f"libdualgemm.so shows other symbols than dualgemm.h declares:\n{shown}")
        for kind in ("dualgemm", "shared"):
            self.project(f"found {kind}", f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DKIND={kind}")
        self.project("found, static runtime", f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DDUALGEMM_CUDART=static",
                     runs=False)

    def simulator(self):
        """The installed command runs an installed program, with nothing of the build in its environment."""
        run(["cmake", "--install", self.build, "--component", "simulator", "--prefix", self.prefix])
        shown = run([self.prefix / "bin/dualgemm-sim", self.home / "found dualgemm/program"], cwd="/")
        require("correct" in shown and "0 E" in shown, f"dualgemm-sim printed: {shown}")
        runtime = self.prefix / "lib/dualgemm/sim"
        shown = run([self.prefix / "bin/dualgemm-report", "16x64x64"], cwd="/",
                    env={**os.environ, "LD_LIBRARY_PATH": str(runtime)})
        installed = os.path.realpath(re.search(r"^library +(/.*), \d+ instances", shown, re.M)[1])
        require(re.search(r"16x64x64.*: m\d+n\d+k\d+", shown) and str(runtime) in shown and
                installed.startswith(os.path.realpath(self.prefix)), f"dualgemm-report printed: {shown}")

    def without_cmake(self):
        quickstart = self.source / "test/example/quickstart.c"
        runtime = self.home / "cudart"  # wheels have no libcudart.so, which -lcudart looks for
        runtime.mkdir()
        real = next(p for folder in ("lib64", "lib") for p in (self.cuda / folder).glob("libcudart.so.1[0-9]"))
        (runtime / "libcudart.so").symlink_to(real)
        gcc = ["gcc", "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-isystem", self.cuda / "include"]

        configured = self.environment(PKG_CONFIG_PATH=str(self.prefix / "lib/pkgconfig"))
        flags = shlex.split(run(["pkg-config", "--cflags", "--libs", "dualgemm"], env=configured))
        run([*gcc, quickstart, *flags, f"-L{runtime}", "-lcudart", "-lm", "-o", self.home / "by pkg-config"])
        self.correct(self.home / "by pkg-config")

        # The line of README.md, with this machine's folders.
        readme = (self.source / "README.md").read_text()
        line = next(x.strip().split("  #")[0] for x in readme.splitlines() if x.strip().startswith("gcc "))
        places = {"-Ihost/include": f"-I{self.prefix}/include", "build/lib/": f"{self.prefix}/lib/",
                  "$CUDA/lib64": runtime, "$CUDA/include": f"{self.cuda}/include"}
        for written, here in places.items():
            require(written in line, f"README.md's line has no {written}: {line}")
            line = line.replace(written, shlex.quote(str(here)))
        (self.home / "program.c").write_text(quickstart.read_text())
        run(["sh", "-c", line], cwd=self.home)
        self.correct(self.home / "a.out")

        # NVIDIA's static runtime needs a driver, so that this one is linked and not run.
        static = [p for folder in ("lib64", "lib") for p in (self.cuda / folder).glob("libcudart_static.a")]
        require(static, f"{self.cuda} has no libcudart_static.a")
        run([*gcc, f"-I{self.prefix}/include", quickstart, self.prefix / "lib/libdualgemm.a", static[0],
             "-lstdc++", "-lm", "-lpthread", "-ldl", "-lrt", "-o", self.home / "static runtime"])

    def by_the_page(self):
        """The CMakeLists.txt and the Makefile of host/BUILDING.md, each in a folder of its own."""
        page = (self.source / "host/BUILDING.md").read_text()
        # As somebody has it who has set nothing but what the page says.
        said = ("CUDACXX", "CUDAToolkit_ROOT", "LD_LIBRARY_PATH")
        environment = {name: value for name, value in os.environ.items() if name not in said}
        for name, kind in (("CMakeLists.txt", "cmake"), ("Makefile", "make")):
            mine = self.home / f"mine, {kind}"
            mine.mkdir()
            (mine / name).write_text(re.search(rf"^```{kind}\n(.*?)^```", page, re.M | re.S)[1])
            shutil.copy(self.source / "test/example/quickstart.c", mine / "program.c")
            if kind == "cmake":
                run(["cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}"], cwd=mine, env=environment)
                run(["cmake", "--build", "build"], cwd=mine)
            else:
                environment["PKG_CONFIG_PATH"] = str(self.prefix / "lib/pkgconfig")
                run(["make", "program"], cwd=mine, env=environment)
            program = mine / ("build/program" if kind == "cmake" else "program")
            shown = run([self.prefix / "bin/dualgemm-sim", program], cwd="/", env=environment)
            require("correct" in shown and "0 E" in shown, f"dualgemm-sim printed: {shown}")

    def by_hand(self):
        page = (self.source / "host/BUILDING.md").read_text()
        lines = re.search(r"^From the root of the sources:\n\n((?:    .*\n)+)", page, re.M)[1]
        path = f"{self.nvcc.parent}:{os.environ['PATH']}"
        run(["sh", "-e", "-c", lines], cwd=self.source, env={**os.environ, "PATH": path})
        real = next(p for folder in ("lib64", "lib") for p in (self.cuda / folder).glob("libcudart.so.1[0-9]"))
        program = self.home / "by hand"
        run(["gcc", "-std=c99", f"-I{self.source}/host/include", f"-I{self.cuda}/include",
             self.source / "test/example/quickstart.c", self.source / "build/libdualgemm.a", real, "-lstdc++", "-lm",
             "-o", program])
        self.correct(program)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("source", "build", "nvcc"): parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--whole", action="store_true", help="compiles the kernels as they ship, too: three minutes")
    parser.add_argument("--by-hand", action="store_true", help="only the commands of host/BUILDING.md without CMake")
    arguments = parser.parse_args()
    package = Package(arguments.source.resolve(), arguments.build.resolve(), arguments.nvcc)
    if arguments.by_hand: return package.by_hand()
    if arguments.whole:
        package.as_subproject()
        package.installed(package.home / "subproject")
        package.ships()
    else:
        package.as_subproject("dualgemm_host")
        package.installed(package.build)
    package.simulator()
    package.without_cmake()
    package.by_the_page()


if __name__ == "__main__":
    main()
