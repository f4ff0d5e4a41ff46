#!/usr/bin/env python3
"""first_hour.py -- the first hour on a GPU: every instance verified, constants of the cost model measured, times
beside the model's and cuBLASLt's, and a tuning file. FIRST_HOUR.md says how to run it. At the end, and after every
step, there are first_hour.json and first_hour.md in the folder of results, which are what to send.

The exit status is 0 if all was run and nothing is wrong, 1 if not, 130 after Ctrl-C.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import page  # noqa: E402
from driver import Driver  # noqa: E402
from steps import Place, all_steps  # noqa: E402

SCHEMA = 1
PROGRAMS = ["dualgemm_bench", "kernel_test_gpu", "microbenchmarks", "dualgemm-tune", "accuracy"]
CARRIED = HERE / "programs"  # of a folder that was packed


def options(arguments):
    parser = argparse.ArgumentParser(description="What there is to know of libdualgemm on this GPU.")
    parser.add_argument("--programs", type=pathlib.Path, help="their folder",
                        default=CARRIED if CARRIED.is_dir() else HERE.parents[1] / "build")
    parser.add_argument("--output", type=pathlib.Path, help="the folder of results",
                        default=(HERE if CARRIED.is_dir() else HERE.parents[1] / "build") / "first-hour")
    parser.add_argument("--quick", action="store_true", help="less of everything, in 7 minutes")
    parser.add_argument("--minutes", type=float, help="for all steps together: 30, with --quick 7")
    parser.add_argument("--steps", help="only these, separated by commas")
    parser.add_argument("--again", action="store_true", help="also steps that are done")
    parser.add_argument("--list", action="store_true", help="print the steps and stop")
    parser.add_argument("--pack", type=pathlib.Path, metavar="FOLDER",
                        help="make a folder to copy to a machine without nvcc, and stop")
    return parser.parse_args(arguments)


def key_of(place, quick):
    """What a result is a result of: a GPU, its driver, these programs, and how much was done."""
    of = [place.name(), place.gpu and place.gpu["driver_version"], quick]
    for name in PROGRAMS:
        path = place.programs / name
        if path.exists(): of += [name, path.stat().st_size, path.stat().st_mtime_ns]
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()[:16]


def write(folder, place, quick, results):
    """Both files, as far as there are results."""
    report = {"first_hour": SCHEMA, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "gpu": place.name(),
              "simulated": place.simulated, "quick": quick, "steps": results}
    title = f"The first hour on {'a ' if place.simulated else ''}{place.name()}"
    for name, text in ("first_hour.json", json.dumps(report, indent=1) + "\n"), \
                      ("first_hour.md", page.page(results, title)):
        (folder / f"{name}.new").write_text(text, encoding="utf-8")
        (folder / f"{name}.new").replace(folder / name)


def compiler_of(programs):
    """nvcc's path, as the build has written it."""
    for folder in programs, programs.parent:
        if (folder / "cuda.mk").exists():
            return pathlib.Path((folder / "cuda.mk").read_text(encoding="utf-8").split(":=", 1)[1].split()[0])
    sys.exit(f"first_hour.py: {programs}: there is no cuda.mk that names a compiler")


def libraries_of(program):
    """Those that another machine may not have."""
    text = subprocess.run(["ldd", program], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    found = [line.split("=>")[1].split()[0] for line in text.stdout.splitlines() if "=> /" in line]
    return [path for path in map(pathlib.Path, found) if path.name.startswith(("libfmt", "libstdc++", "libgcc_s"))]


def pack(programs, folder):
    """A folder with this program, those that it runs, and what they need."""
    to = folder / "programs"
    for one in to / "lib", to / "bits": one.mkdir(parents=True, exist_ok=True)
    for path in HERE.glob("*.py"): shutil.copy2(path, folder)
    shutil.copy2(HERE.parent / "tune/models.txt", to)
    cuda = compiler_of(programs).parents[1]
    runtime = [path for name in ("lib64", "lib") for path in (cuda / name).glob("libcudart.so.1[0-9]")]
    libraries = [programs / "libdualgemm.so.0", *runtime[:1]]
    for name in PROGRAMS:
        if not (programs / name).exists(): sys.exit(f"first_hour.py: there is no {programs / name} to pack")
        shutil.copy2(programs / name, to)
        libraries += libraries_of(programs / name)
    for path in libraries: shutil.copy2(path.resolve(), to / "lib" / path.name)
    for path in programs.glob("test/kernel/sm*.txt"): shutil.copy2(path, to / "bits")
    print(f"{folder}: copy it to the other machine, and there run: python3 {folder.name}/first_hour.py")


def run(wanted):
    place = Place(wanted.programs)
    if place.simulated and not (place.programs / "sim").is_dir():
        sys.exit("first_hour.py: there is no GPU of compute capability 9.0 or 10.x, by nvidia-smi, and no simulator in "
                 f"{place.programs}")
    carried = place.programs / "models.txt"
    models = carried if carried.exists() else HERE.parent / "tune/models.txt"
    every = steps = all_steps(place, models, wanted.quick)
    if wanted.list:
        for step in steps: print(f"{step.name:10} {step.what}, at most {step.limit / 60:g} min")
        return 0
    if wanted.steps:
        names = wanted.steps.split(",")
        unknown = set(names) - {step.name for step in steps}
        if unknown: sys.exit(f"first_hour.py: there is no step {', '.join(sorted(unknown))}; --list names them")
        steps = [step for step in steps if step.name in names]
    minutes = wanted.minutes or (7 if wanted.quick else 30)
    driver = Driver(wanted.output, key_of(place, wanted.quick), 60 * minutes, wanted.again)

    def write_all():
        """With the steps that earlier runs have done and that were not asked for now."""
        known = {step.name: driver.results.get(step.name) or driver.kept(step) for step in every}
        write(wanted.output, place, wanted.quick, {name: result for name, result in known.items() if result})

    driver.say(f"{place.name()}: {len(steps)} steps, {minutes:g} min at most, into {wanted.output}")
    interrupted = driver.run(steps, write_all)
    write_all()
    driver.say(f"send {wanted.output / 'first_hour.json'} and {wanted.output / 'first_hour.md'}")
    if interrupted: return 130
    wrong = [one for one in driver.results.values() if one["problems"] or one["state"] not in ("done", "lacks")]
    return 1 if wrong else 0


def main(arguments):
    wanted = options(arguments)
    if wanted.pack:
        pack(wanted.programs, wanted.pack)
        return 0
    # Whoever stops the program stops it as Ctrl-C does, so that what is done is kept.
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    return run(wanted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
