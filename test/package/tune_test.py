#!/usr/bin/env python3
"""tune_test.py -- dualgemm-tune on simulated GPUs, whose times say nothing: what it writes is what the library chooses.
It goes on where it was interrupted, and judges a file. Without a GPU, and with what it cannot read, it says so.

    tune_test.py PROGRAM SIMULATOR MODULE NVCC
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SIMULATOR, MODULE, NVCC = map(pathlib.Path, sys.argv[1:])
QUICK = ["--launches", "2", "--rounds", "2"]
# Prints the instance that a launch of two products runs under a file, and how many entries that has.
ASK = """
import dualgemm, sys
dualgemm.load_tuning(sys.argv[1])
far = [i << 50 for i in range(1, 10)]
args = dualgemm.arguments(m=int(sys.argv[2]), n=64, k=64, a=far[0], b1=far[1], b2=far[2], sfa=far[3], sfb1=far[4],
                          sfb2=far[5], out=far[6], c_dtype=dualgemm.DTYPE_BF16)
name = dualgemm.instance_info(dualgemm.select_instance(args, dualgemm.current_device())).name.decode()
print(name, dualgemm.tuning_info().entries)
"""


def environment(**variables):
    return {**os.environ, "LD_LIBRARY_PATH": str(SIMULATOR), "SIM_MACHINE": "b200,sms=20", **variables}


def run(*words, program=PROGRAM, **variables):
    return subprocess.run([str(program), *map(str, words)], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment(**variables))


class Tune(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name, "some.tuning")

    def tune(self, *words, **variables):
        return run(*words, *QUICK, "--output", self.file, **variables)

    def entries(self):
        """The instances of the file by their rows."""
        lines = [line.split("#")[0].split() for line in self.file.read_text().splitlines()]
        return {int(words[8]): words[9] for words in lines if len(words) == 10}

    def test_what_is_written_is_the_choice(self):
        done = self.tune("--shape", "16x64x64", "--shape", "40x64x64")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(done.stderr.count("\n"), 1)  # that the times say nothing
        self.assertRegex(done.stdout, r"(?m)^1/2 2 products, 16 x 64 x 64: \w+, [\d.]+ us, 2 rounds")
        entries = self.entries()
        self.assertEqual(set(entries), {16, 40})
        for rows, name in entries.items():
            asked = run("-c", ASK, self.file, rows, program=sys.executable, PYTHONPATH=str(MODULE))
            self.assertEqual(asked.stdout.split(), [name, "2"], asked)
        again = self.tune("--shape", "16x64x64", "--shape", "64x64x64")
        self.assertIn("1/2 2 products, 16 x 64 x 64: is in the file\n", again.stdout)
        self.assertEqual(set(self.entries()), {16, 40, 64})
        fresh = self.tune("--shape", "64x64x64", "--fresh", "--quiet")
        self.assertEqual((fresh.returncode, fresh.stdout), (0, ""), fresh)
        self.assertEqual(set(self.entries()), {64})
        self.assertEqual(os.listdir(self.folder.name), [self.file.name])

    def test_models_and_lists(self):
        config = pathlib.Path(self.folder.name, "config.json")
        config.write_text(json.dumps({"hidden_size": 128, "intermediate_size": 192, "num_attention_heads": 4,
                                      "num_key_value_heads": 2, "head_dim": 32}))
        done = self.tune("--config", config, "--tp", "2", "--tokens", "8")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(re.findall(r"(?m)^\d/4 (.*?):", done.stdout),
                         ["1 product, 8 x 128 x 128", "1 product, 8 x 128 x 64", "2 products, 8 x 96 x 128",
                          "1 product, 8 x 128 x 96"])
        shapes = pathlib.Path(self.folder.name, "shapes")
        shapes.write_text("2 8x96x128 as above\n1 offsets:3~4x64x64 groups\n")
        done = self.tune("--shapes", shapes)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("1/2 2 products, 8 x 96 x 128: is in the file", done.stdout)
        self.assertRegex(done.stdout, r"2/2 1 product, offsets 3, 12 x 64 x 64: \w+g\w*_one_bf16,")

    def test_interrupted_it_keeps_what_is_done_and_goes_on(self):
        words = [word for rows in range(1, 40) for word in ("--shape", f"{rows}x64x64")]
        with subprocess.Popen([PROGRAM, *words, *QUICK, "--output", self.file], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment()) as process:
            first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate()
        self.assertEqual(process.returncode, 130, (first, rest, errors))
        self.assertRegex(errors, r"interrupted: \S+ has \d+ entries; the same command goes on from there\n$")
        kept = len(self.entries())
        self.assertTrue(1 <= kept < 39, kept)
        self.assertEqual(os.listdir(self.folder.name), [self.file.name])
        done = self.tune(*words[:2 * kept + 2])
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(done.stdout.count("is in the file"), kept)
        self.assertEqual(len(self.entries()), kept + 1)

    def test_judged_by_another_process(self):
        self.tune("--shape", "16x64x64")
        report = pathlib.Path(self.folder.name, "report.json")
        done = run("--judge", self.file, "--shape", "16x64x64", "--shape", "200x64x64", "--json", report, *QUICK)
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"\| 2 \| 16 x 64 x 64 \| yes \|.*\n\| 2 \| 200 x 64 x 64 \| no \|")
        self.assertRegex(done.stdout, r"Shapes in the file: 1\. Chosen over fastest: by the model [\d.]+ % in the mean")
        first, second = json.loads(report.read_text())["results"]
        self.assertEqual((first["tuned"], second["tuned"]), (True, False))
        self.assertEqual(first["by_file"]["name"], self.entries()[16])
        self.assertEqual(second["by_file"], second["by_model"])
        for result in first, second:
            self.assertEqual(result["fastest"]["us"], min(one["us"] for one in result["instances"]))

    def test_a_file_that_cannot_grow_is_left_alone(self):
        for text, part in (("nonsense\n", "line 1: "), ("", "line 1: ")):
            self.file.write_text(text)
            done = self.tune("--shape", "16x64x64")
            self.assertEqual((done.returncode, self.file.read_text()), (1, text), done)
            self.assertIn(f"{self.file}: {part}", done.stderr)
            self.assertIn("--fresh", done.stderr)
        self.assertEqual(self.tune("--shape", "16x64x64", "--fresh").returncode, 0)
        done = self.tune("--shape", "40x64x64", SIM_MACHINE="b200")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is for another GPU, driver or library", done.stderr)
        done = run("--shape", "16x64x64", *QUICK, "--output", "/nowhere/at/all")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/at/all", done.stderr)

    def test_what_the_library_refuses_does_not_stop_the_others(self):
        done = self.tune("--shape", "16x63x64", "--shape", "16x64x64")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stderr, r"dualgemm-tune: 2 products, 16 x 63 x 64: .*n=63")
        self.assertEqual(set(self.entries()), {16})

    def test_without_a_gpu(self):
        """NVIDIA's own runtime sees none here, or is shown none."""
        cuda = NVCC.resolve().parents[1]
        real = next(path for folder in ("lib64", "lib") for path in (cuda / folder).glob("libcudart.so.1[0-9]"))
        done = self.tune("--shape", "16x64x64", LD_LIBRARY_PATH=str(real.parent), CUDA_VISIBLE_DEVICES="")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done)
        self.assertTrue(done.stderr.startswith("dualgemm-tune: there is no GPU to time: "), done)
        self.assertFalse(self.file.exists())

    def test_arguments(self):
        config = pathlib.Path(self.folder.name, "config.json")
        config.write_text("{}")
        for words, part in (([], "there is nothing to time"), (["--shape", "16x64"], "--shape 16x64"),
                            (["--shapes", "/nowhere"], "/nowhere"), (["--config", config], "no hidden_size"),
                            (["--dtype", "int8"], "--dtype"), (["--tp", "0"], "--tp"), (["--gpu"], "--gpu"),
                            (["--shape", "16x64x64", "--part", "2/1"], "--part 2/1")):
            done = self.tune(*words)
            self.assertNotEqual(done.returncode, 0, done)
            self.assertIn(part, done.stderr)
            self.assertFalse(self.file.exists())
        self.assertIn("--config", run("--help").stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
