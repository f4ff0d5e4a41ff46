#!/usr/bin/env python3
"""debugging.py BUILD -- the mistakes that host/DEBUGGING.md names, made by mistakes.c in the simulator: are they found
with the words of the page, and is nothing found without the mistake? Each row of the page's table has a case here. And
does dualgemm-report print the GPU and the launches of the page's example?"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from pages import ROOT

PAGE = ROOT / "host/DEBUGGING.md"
# Of the page's table by the beginning of a row: the name in mistakes.c, the machine, and what a report has to say.
ROWS = {
    "a scale buffer that nobody wrote": ("unwritten factors", "b200", ["E machine-poison", "was never written",
                                                                       "of cudaMalloc", "load_scales"]),
    "A is copied or quantised on another stream": ("another stream", "b200", [
        "E race-grids", "quantize_kernel", "the same stream, an event, or a synchronisation of the host"]),
    "STATIC_WEIGHTS, although the preceding": ("static weights", "b200", ["E race-grids", "quantize_kernel",
                                                                          "load_role"]),
    "one workspace for two launches": ("shared workspace", "h100", ["E race-grids", "prepare_kernel"]),
}
# What CHECK_POINTERS says, with addresses and sizes left out; the page quotes both texts.
TEXTS = {
    "host pointer": "b2=: is no memory that device 0 sees: CUDA neither allocated nor registered it",
    "freed memory": "b2=: is no memory that device 0 sees: CUDA neither allocated nor registered it",
    "small buffer": "c=: takes bytes, but its allocation has left",
}


def without_numbers(text):
    return re.sub(r"(?<!\w)(?:0x[0-9a-f]+|\d{2,}) ?", "", text)


def printed_by_report(build, page):
    """Lines of the page's example that dualgemm-report does not print, and those that it prints besides."""
    size, example = re.search(r"/bin/dualgemm-report (\S+)\n.*?\n(    runtime .*?)\n\n", page, re.S).groups()
    done = subprocess.run([build / "dualgemm-report", size], text=True, stdout=subprocess.PIPE, check=True,
                          env={**os.environ, "SIM_MACHINE": "h100", "LD_LIBRARY_PATH": f"{build}/sim"})
    lines = [{line.strip() for line in text.splitlines() if re.match(r" *(GPU|launch) ", line)}
             for text in (example, done.stdout)]
    return lines[0] ^ lines[1]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    page, failed = PAGE.read_text(encoding="utf-8"), []
    line = re.search(r"^    (gcc .*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)[1]
    line = line.replace("build/lib/", f"{build}/").replace("$CUDA/lib64", f"{build}/sim")
    nvcc = pathlib.Path((build / "cuda.mk").read_text().split()[-1])
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/mistakes"
        subprocess.run(line.replace("program.c", f"test/tree/mistakes.c -Wall -Werror -o {program}"), shell=True,
                       cwd=ROOT, env={**os.environ, "CUDA": str(nvcc.parent.parent)}, check=True)

        def report(machine, *arguments):
            done = subprocess.run([build / "dualgemm-sim", "--machine", machine, program, *arguments], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            return done.returncode, done.stdout

        def case(name, machine, texts):
            status, said = report(machine, name)
            missing = [text for text in texts if text not in said and text not in without_numbers(said)]
            if status == 0 or missing: failed.append(f"{name}: status {status}, lacks {missing}:\n{said}")
            status, said = report(machine, name, "right")
            if status != 0: failed.append(f"{name} without the mistake: status {status}:\n{said}")

        table = re.search(r"debugging\.py .*?-->\n(.*?)\n\n", page, re.S)[1].splitlines()[2:]
        for row in table:
            found = [begin for begin in ROWS if row.startswith(f"| {begin}")]
            if not found: failed.append(f"nobody makes the mistake of this row: {row}")
        for begin, (name, machine, texts) in ROWS.items():
            row = next((row for row in table if row.startswith(f"| {begin}")), "")
            if f"`{texts[0].split()[1]}`" not in row: failed.append(f"the page does not say {texts[0]} of: {begin}")
            case(name, machine, texts)
        for name, text in TEXTS.items():
            if text not in without_numbers(page): failed.append(f"the page does not quote: {text}")
            case(name, "b200", [text])
    failed += [f"of the page or of dualgemm-report alone: {line}" for line in sorted(printed_by_report(build, page))]
    if failed: sys.exit("debugging.py: " + "\ndebugging.py: ".join(failed))


if __name__ == "__main__":
    main()
