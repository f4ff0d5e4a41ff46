#!/usr/bin/env python3
"""program.py -- dualgemm_bench as a person runs it, on the simulated CUDA runtime.

    program.py BUILD [plot]

Without `plot`: widths, statuses, progress, reports. With it: plot.py on such a report, or status 77 where there is no
matplotlib.
"""
import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
SUITES = ["contest", "decode", "prefill", "rows", "ragged", "batch", "grouped", "gate-up", "linear", "models-gate-up",
          "models-linear"]


def bench(*arguments, status=0, error=subprocess.PIPE, machine="b200"):
    run = subprocess.run([str(BUILD / "dualgemm_bench"), *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                         stderr=error, check=False,
                         env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD / "sim"), SIM_MACHINE=machine))
    assert run.returncode == status, f"{arguments}: status {run.returncode}, not {status}: {run.stdout}{run.stderr}"
    wide = [line for line in run.stdout.splitlines() if len(line) > 100]
    assert not wide, f"{arguments}: wider than 100 columns: {wide}"
    return run


def tables(folder):
    for suite in SUITES:
        run = bench("--suite", suite)
        assert "MODELLED, not measured" in run.stdout and run.stderr == "", run.stdout + run.stderr
    for idea in "two-pass", "scale-ring", "activation":
        bench("--ablation", idea, "--shape", "256x4096x7168")


def failures(folder):
    report = folder / "failures.json"
    run = bench("--shape", "256x4x7168", "--shape", "256x4096x7168", "--json", report, status=1)
    assert "256x4x7168: FAILED:" in run.stdout and "\n256x4096x7168 " in run.stdout, run.stdout
    rows = json.loads(report.read_text())["results"]
    assert "error" in rows[0] and "us" not in rows[0] and rows[1]["us"] > 0, rows
    for effort in [], ["--verify-only", "--samples", "4"]:
        run = bench("--shape", "100x7x33", "--shape", "16x64x64", *effort, status=1)
        assert "\n100x7x33: FAILED: K = 33: " in run.stdout and "\n16x64x64 " in run.stdout, run.stdout
    run = bench("--ablation", "store", "--shape", "256x4096x7168", "--shape", "100x7x33", status=1)
    assert run.stdout == "" and "K = 33: " in run.stderr, run.stdout + run.stderr
    run = bench("--shape", "256x4096x7168", "--shape", "256x40", status=1)  # nothing runs
    assert run.stdout == "" and "--shape 256x40: expected" in run.stderr, run.stdout + run.stderr
    assert "needs a GPU" in bench("--baseline-only", status=1).stderr


def every_instance(folder):
    """Where nothing is timed it lists what could be chosen. The choice is near the fastest."""
    report = folder / "every_instance.json"
    for machine, *arguments in ("b200", "256x4096x7168"), ("h100", "64x5120x25600", "--products", "1"):
        run = bench("--every-instance", "--json", report, "--shape", *arguments, machine=machine)
        row = json.loads(report.read_text())["results"][0]
        listed = {one["name"]: one["modelled_us"] for one in row["instances"]}
        times = list(listed.values())
        assert len(listed) == len(row["instances"]) > 5 and times == sorted(times), row["instances"]
        assert row["us"] == listed[row["instance"]] <= 1.02 * times[0], row  # "within 2 %" of the legend
        assert all(f"\n  {name}: " in run.stdout for name in listed) and "within 2 %" in " ".join(run.stdout.split())
        assert not any({"stream", "graph", "error"} & set(one) for one in row["instances"]), row["instances"]
    assert "  m" not in bench("--shape", "256x4096x7168").stdout


def sixteen_bits(folder):
    """Hopper computes an A of 16 bits, by instances for it; elsewhere the library's reason is all there is."""
    report = folder / "sixteen_bits.json"
    verified = ("--verify-only", "--shape", "20x64x64", "--samples", "20", "--json", report)
    for a_dtype in "bf16", "fp16":
        run = bench("--a-dtype", a_dtype, *verified, machine="h100")
        written = json.loads(report.read_text())
        row = written["results"][0]
        assert written["a_dtype"] == a_dtype and row["verified"] and f"_a{a_dtype}_" in row["instance"], written
        assert f"A is {a_dtype.upper()}" in run.stdout and f" {row['a_order']} " in run.stdout, run.stdout
        for effort in verified, ["--shape", "20x64x64", "--json", report]:
            run = bench("--a-dtype", a_dtype, *effort, status=1)
            row = json.loads(report.read_text())["results"][0]
            assert "\n20x64x64: FAILED: " in run.stdout and "a_dtype=" in row["error"], run.stdout
            assert not {"instance", "verified", "us"} & set(row), row
    bench(*verified, machine="h100")
    written = json.loads(report.read_text())
    assert written["a_dtype"] == "nvfp4" and "a_order" not in written["results"][0], written
    bench("--ablation", "all", *verified, machine="h200")
    rows = json.loads(report.read_text())["results"]
    assert [row["idea"] for row in rows] == ["two-pass", "two-pass", "sequential", "sequential"], rows
    assert all(row["verified"] and not any("error" in one for one in row["tried"]) for row in rows), rows
    assert [len(row["tried"]) > 1 for row in rows] == [False, True, False, True], rows
    run = bench("--ablation", "store", *verified, machine="h200", status=1)
    assert "not built for this device" in run.stderr, run.stderr
    run = bench("--ablation", "store", "--a-dtype", "bf16", status=1)
    assert run.stdout == "" and "--a-dtype nvfp4" in run.stderr, run.stdout + run.stderr


def fp8(folder):
    """Hopper computes an A in FP8 by weights in MXFP4, and everything that is written says so."""
    report, again = folder / "fp8.json", folder / "again.json"
    verified = ("--a-dtype", "fp8", "--verify-only", "--shape", "20x64x64", "--samples", "20", "--json", report)
    for products in 1, 2:
        run = bench(*verified, "--products", products, machine="h100")
        written = json.loads(report.read_text())
        row = written["results"][0]
        assert (written["a_dtype"], written["b_dtype"]) == ("fp8", "mxfp4"), written
        assert row["verified"] and "_mxfp4_afp8_" in row["instance"] and "a_order" not in row, row
        heading = " ".join(run.stdout.split())
        assert "A is FP8_E4M3, weights are MXFP4" in heading and "A by" not in heading, run.stdout
    run = bench(*verified, "--keep", report, machine="h100")
    assert "1 of 1 results" in run.stdout, run.stdout
    run = bench(*verified, status=1)
    assert "\n20x64x64: FAILED: " in run.stdout and "b_dtype=" in run.stdout, run.stdout
    listed = ("--a-dtype", "fp8", "--dtype", "bf16", "--every-instance", "--shape", "256x4096x7168", "--shape",
              "offsets:128~16x1536x4096", "--shape", "8*64x768x2048")
    bench(*listed, "--json", report, machine="h200")
    written = json.loads(report.read_text())
    for row in written["results"]:
        assert len(row["instances"]) > 3 and all("_mxfp4_afp8_" in one["name"] for one in row["instances"]), row
    run = bench(*listed, "--json", again, "--compare", report, machine="h200")
    assert run.stdout.count(" 1.000\n") == 3, run.stdout
    run = bench("--a-dtype", "bf16", *listed[2:], "--compare", report, machine="h200", status=1)
    assert "do not compare: a_dtype was" in run.stderr, run.stderr
    run = bench("--ablation", "store", "--a-dtype", "fp8", status=1)
    assert run.stdout == "" and "--a-dtype nvfp4" in run.stderr, run.stdout + run.stderr


def one_product(folder):
    """Every path takes one product, and a report says that it has one."""
    old, new = folder / "one.json", folder / "two.json"
    bench("--suite", "linear", "--rows", "1,300", "--json", old)
    report = json.loads(old.read_text())
    assert report["products"] == 1 and report["activation"] == "NONE", report
    assert {row["m"] for row in report["results"]} == {1, 300} and len(report["results"]) == 38, report
    assert all("_one_" in row["instance"] and row["flops"] == 2 * row["m"] * row["n"] * row["k"]
               for row in report["results"]), report
    for machine in "b200", "h100":
        for linear in "none", "relu2":
            run = bench("--products", "1", "--linear-activation", linear, "--dtype", "nvfp4", "--verify-only",
                        "--shape", "20x80x320", "--shape", "offsets:5,0,40x80x320", "--samples", "20", "--json", new,
                        machine=machine)
            report = json.loads(new.read_text())
            assert run.stdout.count(" verified") == 2 and report["activation"] == linear.upper(), run.stdout
    run = bench("--shape", "256x4096x7168", "--compare", old, status=1)
    assert "products was 1, and is 2 now" in run.stderr, run.stderr
    for wrong, why in (["--products", "1", "--activation", "glu"], "--linear-activation"), \
                      (["--linear-activation", "relu"], "of one product"), \
                      (["--suite", "linear,contest"], "--products says"), \
                      (["--suite", "grouped", "--rows", "4"], "groups have rows of their own"), \
                      (["--products", "1", "--ablation", "store"], "--products 2"):
        run = bench(*wrong, status=1)
        assert run.stdout == "" and why in run.stderr, run.stdout + run.stderr
    run = bench("--suites")
    assert "linear              190        1 " in run.stdout, run.stdout


def parts(folder):
    """A run in parts, one that was interrupted, and one at once give the same results."""
    paths = [folder / f"part{part}.json" for part in (1, 2, 3)]
    whole, kept = folder / "whole.json", folder / "kept.json"
    several = ("--suite", "contest,decode")
    bench(*several, "--json", whole)
    results = json.loads(whole.read_text())["results"]
    for part, path in enumerate(paths, 1):
        bench(*several, "--part", f"{part}/3", "--json", path)
        assert json.loads(path.read_text())["results"] == results[part - 1::3], path.read_text()
    run = bench(*several, "--keep", f"{paths[0]},{paths[2]},{folder / 'none.json'}", "--json", kept)
    assert json.loads(kept.read_text())["results"] == results, kept.read_text()
    assert "7 of 10 results are those of earlier reports" in run.stdout, run.stdout
    assert run.stdout.count("\n256x3072x4096 ") == 0 and run.stdout.count("\n256x4096x7168 ") == 0, run.stdout
    run = bench(*several, "--keep", kept, "--json", kept)
    assert "10 of 10 results" in run.stdout and json.loads(kept.read_text())["results"] == results, run.stdout
    # What failed is run again.
    wrong = ("--shape", "256x4x7168", "--shape", "256x4096x7168")
    bench(*wrong, "--json", kept, status=1)
    run = bench(*wrong, "--keep", kept, "--json", kept, status=1)
    assert "1 of 2 results" in run.stdout and len(json.loads(kept.read_text())["results"]) == 2, run.stdout
    for change, why in ({"repeats": 3}, "repeats was 3, and is 20 now"), ({"device": {"name": "A"}}, "device/name was"):
        paths[0].write_text(json.dumps(dict(json.loads(whole.read_text()), **change)))
        run = bench(*several, "--keep", paths[0], status=1)
        assert run.stdout == "" and "is of another run" in run.stderr and why in run.stderr, run.stderr
    for text in "0/3", "4/3", "1", "1/", "/3", "1/3/1", "11/20":
        assert f"--part {text}: " in bench(*several, "--part", text, status=1).stderr
    interrupted(folder / "interrupted.json")


def interrupted(path):
    """Who is killed leaves the results there are, and a later run goes on with them."""
    arguments = ("--verify-only", "--samples", "4", "--shape", "16x64x64", "--shape", "300x512x2048")
    with subprocess.Popen([str(BUILD / "dualgemm_bench"), *arguments, "--json", str(path)], stdout=subprocess.DEVNULL,
                          env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD / "sim"), SIM_MACHINE="b200")) as run:
        while not path.exists() and run.poll() is None: time.sleep(0.01)
        run.kill()
    first = json.loads(path.read_text())["results"]
    assert first and first[0]["m"] == 16 and first[0]["verified"], first
    bench(*arguments, "--keep", path, "--json", path)
    results = json.loads(path.read_text())["results"]
    assert results[:len(first)] == first and [row["m"] for row in results] == [16, 300], results


def chain(folder):
    """A chain is verified on both architectures, nothing of it is modelled, and its report is no other's."""
    report = folder / "chain.json"
    for machine in "b200", "h100":
        run = bench("--chain", "ffn", "--verify-only", "--shape", "20x96x64", "--shape", "130x64x96", "--samples", "20",
                    "--json", report, machine=machine)
        assert run.stdout.count(" verified\n") == 2, run.stdout
        written = json.loads(report.read_text())
        assert written["chain"] == "ffn" and written["times"] == "verified" and "products" not in written, written
        for row in written["results"]:
            assert row["verified"] and "graph" not in row, row
            assert ["_one_" in name for name in row["instances"]] == [False, True], row
        assert written["results"][0]["flops"] == 6 * 20 * 96 * 64, written
        run = bench("--chain", "moe", "--verify-only", "--shape", "20,6,2x96x64", "--samples", "20", "--json", report,
                    machine=machine)
        row = json.loads(report.read_text())["results"][0]
        assert row["verified"] and (row["tokens"], row["experts"], row["top_k"], row["m"]) == (20, 6, 2, 40), row
    assert "takes T,E,topkxIxK" in bench("--chain", "moe", "--shape", "20x96x64", status=1).stderr
    run = bench("--chain", "moe", "--rows", "1,64")
    assert "\n64,128,8x768x2048" in run.stdout, run.stdout
    run = bench("--chain", "ffn", "--rows", "1,300", "--json", report)
    assert "Nothing is timed" in run.stdout and run.stdout.count("\n1x") == 4, run.stdout
    written = json.loads(report.read_text())
    assert written["times"] == "none" and len(written["results"]) == 8, written
    run = bench("--compare", report, "--shape", "256x4096x7168", status=1)
    assert "do not compare: chain was" in run.stderr, run.stderr
    assert "no times of the library" in plot(report, folder).stdout
    run = bench("--chain", "ffn", "--shape", "100x64x33", "--shape", "16x64x64", "--verify-only", "--samples", "4",
                status=1)
    assert "\n100x64x33: FAILED: K = 33: " in run.stdout and "\n16x64x64 " in run.stdout, run.stdout
    run = bench("--chain", "ffn", "--shape", "2*16x64x64", status=1)
    assert run.stdout == "" and "takes MxIxK" in run.stderr, run.stderr
    for other in ["--suite", "decode"], ["--dtype", "bf16"], ["--ablation", "store"], ["--baseline-only"], \
                 ["--compare", report]:
        assert "excludes" in bench("--chain", "ffn", *other, status=108).stderr


def progress(folder):
    arguments = ("--verify-only", "--shape", "16x64x64", "--samples", "4")
    assert bench(*arguments).stderr == ""
    try:
        controller, terminal = pty.openpty()
    except OSError as error:  # a root without /dev/pts
        print(f"program.py: skipped, progress on a terminal: there are no pseudo-terminals here: {error}")
        return
    run = bench(*arguments, error=terminal)
    os.close(terminal)
    written = os.read(controller, 1 << 16).decode()
    assert "verified" in run.stdout and "16 x 64 x 64: verifying" in written, run.stdout + written


def one_line_each(path):
    """A result has a line of its own, and only a result or a published time has: the entries of a list."""
    text = path.read_text(encoding="utf-8")
    report = json.loads(text)
    lines = [json.loads(line.rstrip(",")) for line in text.splitlines() if line.startswith("    ")]
    lists = [field for field in report.values() if isinstance(field, list)]
    assert lines == sum(lists, []), f"{path}: not one line a result"
    fields = len(report) + len(lists) + 2
    assert len(text.splitlines()) == len(lines) + fields, f"{path}: more lines than fields and results"


def reports(folder):
    committed = sorted((ROOT / "bench/results").glob("*.json"))
    assert committed
    for path in committed: one_line_each(path)
    old, other = folder / "old.json", folder / "other.json"
    bench("--suite", "contest", "--json", old)
    one_line_each(old)
    report = json.loads(old.read_text())
    assert report["schema"] == 1 and report["times"] == "modelled" and len(report["results"]) == 4, report
    assert report["library"]["git"], report["library"]
    run = bench("--suite", "contest,decode", "--compare", old)
    assert run.stdout.count(" 1.000\n") == 4 and "4 of 10 shapes now and of 4 then" in run.stdout, run.stdout
    other.write_text(json.dumps(dict(report, schema=99)))
    assert "has schema 99" in bench("--compare", other, status=1).stderr
    other.write_text(json.dumps(dict(report, times="measured")))
    assert "do not compare" in bench("--compare", other, status=1).stderr


def plot(report, folder):
    environment = dict(os.environ, PYTHONPATH=str(BUILD / "matplotlib"), MPLCONFIGDIR=str(folder))
    return subprocess.run([sys.executable, str(ROOT / "bench/plot.py"), str(report), str(folder / "plots")], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, check=False)


def no_plots(folder):
    """Of what is no report there is one line, with or without matplotlib."""
    texts = {"absent": None, "empty": b"", "cut": b'{"schema": 1, "results": [', "bytes": b"\xff\xfe\0", "list": b"[1]",
             "bare": b'{"schema": 1}', "other": b'{"schema": 99}', "rows": b'{"schema": 1, "results": [1]}',
             "deep": b"[" * 100000}
    for name, text in texts.items():
        if text is not None: (folder / name).write_bytes(text)
        run = plot(folder / name, folder)
        said = run.stdout.splitlines()
        assert run.returncode == 1 and len(said) == 1 and said[0].startswith("plot.py: "), (name, run)
        assert str(folder / name) in said[0], (name, run)
    assert "Is a directory" in plot(folder, folder).stdout


def plots(folder):
    report = folder / "report.json"
    bench("--suite", "contest,rows", "--json", report)
    run = plot(report, folder)
    print(run.stdout, end="")
    if run.returncode: sys.exit(run.returncode)
    for name in "roofline", "rows", "parts":
        root = xml.etree.ElementTree.parse(folder / "plots" / f"{name}.svg").getroot()
        assert root.tag.endswith("svg") and len(list(root.iter())) > 50, name
        assert "MODELLED" in (folder / "plots" / f"{name}.svg").read_text(), name
    assert "others.svg: not drawn" in run.stdout, run.stdout
    assert plot(ROOT / "bench/results/h200.json", folder).returncode == 0
    picture = (folder / "plots/others.svg").read_text()
    for text in "on an H200", "MEASURED", "cuBLASLt", "Triton", "Humming": assert text in picture, text


def main():
    with tempfile.TemporaryDirectory() as name:
        checks = [tables, failures, every_instance, sixteen_bits, fp8, one_product, parts, chain, progress, reports,
                  no_plots]
        for check in [plots] if "plot" in sys.argv[2:] else checks: check(pathlib.Path(name))


if __name__ == "__main__":
    main()
