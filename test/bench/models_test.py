#!/usr/bin/env python3
"""models_test.py -- the tables that bench/hopper.py prints of the suites models-*, of reports that are made here: with
times of which it is plain what the tables have to say."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import hopper  # noqa: E402


def row(m, label, ours, *theirs):
    """Of cuBLASLt the last way has failed."""
    ways = [{"graph": {"median_us": us}} for us in theirs] + [{"error": "no"}]
    return dict(m=m, n=64, k=128, label=label, instance="sm90m8n64k256_fp16", graph={"median_us": ours}, baselines=ways)


# Ratios of 6, 0.5 (by the faster of two ways) and 0.92, and a problem that failed; of 1 and 0.94; then 40 above 1.
MADE = {"models_gate_up": [row(1, "a", 10, 60), row(1, "b", 10, 9, 5), row(16, "c", 100, 92),
                           dict(m=16, n=64, k=128, error="wrong")],
        "models_gate_up_bf16": [row(1, "d", 10, 10), row(16, "e", 100, 94)],
        "models_linear": [row(16, f"f{i}", 10, 11 + i) for i in range(40)],
        "models_linear_bf16": [row(16, "g", 10, 40)]}


def table(function):
    """The cells of the rows below the heading."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed): function("h100")
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.getvalue().splitlines()][2:]


def require(said, expected):
    if said != expected: sys.exit(f"models_test.py: the table says {said}, not {expected}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        hopper.RESULTS = pathlib.Path(folder)
        for name, results in MADE.items():
            (hopper.RESULTS / f"h100_{name}.json").write_text(json.dumps({"results": results}), encoding="utf-8")
        counts = [cells[1:] for cells in table(hopper.models)]
        require(counts[:2], [["3", "2", "2", "1", "1.40", "0.50"], ["2", "1", "1", "0", "0.97", "0.94"]])
        require([cells[:4] for cells in counts[2:]], [["40", "0", "0", "0"], ["1", "0", "0", "0"]])
        require(table(hopper.models_by_m), [["1", "1.73", "0.50", "1.00", "1.00", "-", "-", "-", "-"],
                                            ["16", "0.92", "0.92", "0.94", "0.94", "2.81", "1.10", "4.00", "4.00"]])
        worst = table(hopper.models_worst)
        require([cells[2] for cells in worst], ["b", "c", "e", "d", *(f"f{i}" for i in range(26))])
        require(worst[0], ["0.50", "1 x 64 x 128", "b", "two, NVFP4", "sm90m8n64k256", "10.0", "5.0"])
        require(worst[4][3], "one, NVFP4")


if __name__ == "__main__":
    main()
