#!/usr/bin/env python3
"""first_hour_test.py -- bench/first_hour: the driver with steps that are made here, what the page and the risks say,
and the microbenchmarks and the whole of it on simulated GPUs.

    first_hour_test.py BUILD driver|simulated
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "bench/first_hour"))
import driver  # noqa: E402
import first_hour  # noqa: E402
import page  # noqa: E402
import risks  # noqa: E402
import verify  # noqa: E402

PROGRAM = ROOT / "bench/first_hour/first_hour.py"


def require(what, said):
    if not what: sys.exit(f"first_hour_test.py: {said}")


def shell(text, **how):
    """A step that runs a line of shell and keeps what it prints."""
    def run(task, data):
        data["begun"] = True
        ended = task.command(["sh", "-c", text])
        data["said"] = ended.output
        if ended.code: raise driver.Failed(f"status {ended.code}")
        return how.get("problems", [])
    return driver.Step(how.get("name", "step"), "a step", how.get("limit", 30), run)


def run_steps(folder, steps, key="key", seconds=60, again=False):
    one = driver.Driver(folder, key, seconds, again)
    interrupted = one.run(steps)
    return one, interrupted


def states(one):
    return [result["state"] for result in one.results.values()]


def failures(folder):
    """A step that fails, one whose program is missing, and one that finds something wrong: the others are run."""
    def lacking(task, data): return task.command(["/no/such/program"])
    def broken(task, data): raise KeyError("nobody expected this")
    one, interrupted = run_steps(folder, [
        shell("exit 3", name="bad"), driver.Step("missing", "a step", 9, lacking),
        driver.Step("broken", "a step", 9, broken), shell("echo fine", name="good", problems=["a row is wrong"])])
    require(not interrupted and states(one) == ["failed", "lacks", "failed", "done"], states(one))
    require(one.results["bad"]["why"] == "status 3", one.results)
    require("/no/such/program" in one.results["missing"]["why"], one.results)
    require("nobody expected this" in one.results["broken"]["why"], one.results["broken"])
    require(one.results["good"]["problems"] == ["a row is wrong"] and "fine" in one.results["good"]["data"]["said"],
            one.results["good"])
    for name, result in one.results.items():
        require(json.loads((folder / f"{name}.json").read_text()) == result, f"{name}.json has another result")
    require("status 3" in (folder / "first_hour.log").read_text(), "the log does not say why a step failed")


def resumes(folder):
    """What is done is not run again, unless by other programs, on another GPU, or if asked to."""
    count = folder / "count"
    steps = [shell(f"echo >> {count}", name="first"), shell(f"test -e {folder}/there", name="second")]
    def times(): return len(count.read_text().splitlines())
    one, _ = run_steps(folder, steps)
    require(states(one) == ["done", "failed"] and times() == 1, states(one))
    (folder / "there").touch()
    one, _ = run_steps(folder, steps)
    require(states(one) == ["done", "done"] and times() == 1, f"{states(one)}, {times()} times")
    run_steps(folder, steps, key="another GPU")
    require(times() == 2, "a result of another GPU was taken over")
    run_steps(folder, steps, key="another GPU", again=True)
    require(times() == 3, "--again took a result over")
    (folder / "first.json").write_text("{")
    run_steps(folder, steps, key="another GPU")
    require(times() == 4, "half a file was taken over")


def goes_on(folder):
    """A step finds its own file again, and not that of other programs or GPUs, nor of a run that begins anew."""
    def adds(task, data):
        path = task.own("lines")
        path.write_text((path.read_text() if path.exists() else "") + "x")
        data["lines"] = len(path.read_text())
        raise driver.OutOfTime
    def lines(key, again=False):
        one, _ = run_steps(folder, [driver.Step("adds", "a step", 9, adds)], key=key, again=again)
        return one.results["adds"]["data"]["lines"]
    said = [lines("a"), lines("a"), lines("b"), lines("b"), lines("b", again=True)]
    require(said == [1, 2, 1, 2, 1], said)


def limits(folder):
    """The limit of a step ends it with all that it has started; the limit of all ends the rest."""
    begin = time.monotonic()
    one, _ = run_steps(folder, [shell(f"(sleep 60; touch {folder}/late) & sleep 60", name="slow", limit=0.3),
                                shell("true", name="next")])
    require(states(one) == ["out of time", "done"] and time.monotonic() - begin < 20, one.results)
    require(one.results["slow"]["data"] == {"begun": True}, "what a step had is lost")
    one, _ = run_steps(folder / "short", [shell("sleep 60", name="long"), shell("true", name="none")],
                       seconds=driver.LEAST_LEFT + 0.3)
    require(states(one) == ["out of time", "out of time"] and time.monotonic() - begin < 40, one.results)
    require("no time was left" in one.results["none"]["why"], one.results["none"])


def interruptions(folder):
    """Ctrl-C ends the step and keeps the rest."""
    program = f"""
import sys; sys.path.insert(0, {str(ROOT / 'bench/first_hour')!r})
import driver
def slow(task, data):
    data["half"] = 1
    open({str(folder / 'begun')!r}, "w").close()
    task.command(["sleep", "60"])
    return []
one = driver.Driver({str(folder)!r}, "key", 60)
steps = [driver.Step("fast", "a step", 9, lambda task, data: []), driver.Step("slow", "a step", 60, slow),
         driver.Step("never", "a step", 9, lambda task, data: [])]
sys.exit(130 if one.run(steps) else 0)
"""
    process = subprocess.Popen([sys.executable, "-B", "-c", program], stdout=subprocess.DEVNULL)
    while not (folder / "begun").exists(): time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    require(process.wait(20) == 130, "Ctrl-C did not end it")
    kept = {name: json.loads((folder / f"{name}.json").read_text()) for name in ("fast", "slow")}
    require(kept["fast"]["state"] == "done" and kept["slow"]["state"] == "interrupted", kept)
    require(kept["slow"]["data"] == {"half": 1} and not (folder / "never.json").exists(), kept)


def instances():
    text = subprocess.run([BUILD / "dualgemm_bench", "--instances"], text=True, check=True, stdout=subprocess.PIPE,
                          env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD / "sim"))).stdout
    return json.loads(text)


def fallbacks(folder):
    """Every instance that has a risk has a fallback: one of the table, for the same launches, without that risk."""
    table = {one["name"]: one for one in instances()}
    def kind(one):
        plan = one["plan"]
        return (plan["arch"], plan["a_type"], plan["mma"]["accumulators"], plan["tile"]["grouped"],
                one["epilogue"]["general"], [output["name"] for output in one["epilogue"]["outputs"]])
    used = set()
    for name, one in table.items():
        for risk in risks.risks_of(one):
            other = table.get(risks.fallback_of(risk, name))
            require(other, f"{name}: {risk.name}: there is no {risks.fallback_of(risk, name)}")
            require(kind(other) == kind(one), f"{name}: {other['name']} is for other launches")
            require(not risk.has(other["plan"]), f"{name}: {other['name']} has the same risk: {risk.name}")
            used.add((risk.name, risks.stem(name)))
    for risk in risks.RISKS:
        for stem in risk.fallback: require((risk.name, stem) in used, f"{stem} does not have the risk {risk.name}")
    named = {section for one in table.values() for section in verify.sections_of(one)}
    require(len(named) > len(table), "general instances have no names by type")
    quick = verify.chosen(list(table.values()), "sm_90a", True, False)
    full = verify.chosen(list(table.values()), "sm_90a", False, False)
    require(0 < len(quick) < len(full) and all(one["plan"]["arch"] == "sm_90a" for _, one in full), len(full))


XML = """<?xml version="1.0" encoding="UTF-8"?><Catch name="kernel_test_gpu"><Group name="kernel_test_gpu">
<TestCase name="{case}" tags="[edge]"><Section name="{section}">
<Info>m 257, n 72</Info><Expression success="false" type="CHECK"><Original>x == y</Original>
<Expanded>1.5 == 2.5</Expanded></Expression><OverallResults successes="3" failures="{wrong}"/></Section></TestCase>
</Group></Catch>"""


def verdicts(folder):
    """What an instance that is wrong, crashes, hangs or is not there at all is said to be, with its risks."""
    table = {one["name"]: one for one in instances()}
    one = table["m256n192k256_fp16"]
    right = XML.format(case=verify.DENSE, section="m256n192k256_fp16", wrong=0)
    right = re.sub(r"<Info>.*</Expression>", "", right, flags=re.S)
    said = verify.verdict(one, one["name"], 0, right, False)
    require(said == {"instance": one["name"], "edges": "right", "bits": "not compared"}, said)
    said = verify.verdict(one, one["name"], 1, XML.format(case=verify.DENSE, section=one["name"], wrong=1), False)
    require(said["edges"] == "wrong" and said["why"] == "m 257, n 72 | 1.5 == 2.5", said)
    require([text.split(":")[0] for text in said["risks"]] == ["middle of an atom", "windows in turn", "pairs of CTAs"],
            said)
    require("m256n128k256_fp16 does without it" in said["risks"][0], said["risks"])
    said = verify.verdict(one, one["name"], 1, XML.format(case=verify.BITS, section=one["name"], wrong=1), False)
    require(said["bits"] == "differ" and said["edges"] == "not run", said)
    require(verify.verdict(one, one["name"], -11, "<Catch><Section", False)["edges"] == "crashed", "a crash")
    require(verify.verdict(one, one["name"], -9, "", True)["edges"] == "no end", "a hang")
    require(verify.verdict(one, one["name"], 0, "<Catch></Catch>", False)["edges"] == "not run", "no section")
    results = {"verify": {"state": "done", "problems": ["m256n192k256_fp16: wrong"], "seconds": 1, "data": {
        "wanted": 2, "verdicts": [said]}}}
    text = page.page(results, "A page")
    require("1 of 2 were run" in text and "may be: middle of an atom" in text and risks.AVOID in text, text)


def report(measured):
    row = {"m": 256, "n": 4096, "k": 7168, "label": "", "problems": 1, "mode": "none", "group_rows": [],
           "instance": "m256n64k256_fp16", "stream": {"median_us": measured, "p10_us": 1, "p90_us": 20},
           "modelled": {"us": 11}, "baselines": [{"stream": {"median_us": 30}}, {"error": "no"}]}
    worse = dict(row, m=512, modelled={"us": 8})
    return {"times": "measured", "results": [row, worse, dict(row, error="wrong", stream=None)][:2],
            "library": {"version": "1", "build": "b", "git": "g"}, "device": {"cuda_driver": 1, "cuda_runtime": 1}}


def pages(folder):
    """Predicted beside measured times: 10 % more and 20 % less are 15 % in the mean, -20 % at worst."""
    results = {"contest": {"state": "done", "problems": [], "seconds": 1, "data": {"report": report(10)}}}
    text = page.page(results, "A page")
    for part in "2 shapes: mean 15.0 %, worst -20.0 %", "| 256 x 4096 x 7168 | m256n64k256_fp16 | 10.00 |", \
                "| +10.0 % | 30 |":
        require(part in text, f"the page lacks {part}: {text}")
    require("Nothing." in text, text)


def packs(folder):
    """A packed folder has all that a run there needs, and says what is missing where there is no GPU."""
    build, cuda = folder / "build", folder / "cuda"
    for one in build / "test/kernel", cuda / "bin", cuda / "lib": one.mkdir(parents=True)
    (build / "cuda.mk").write_text(f"NVCC := {cuda}/bin/nvcc\n")
    made = [build / name for name in first_hour.PROGRAMS] + [build / "libdualgemm.so.0", build / "test/kernel/sm90.txt",
                                                             cuda / "lib/libcudart.so.13"]
    for path in made: path.write_text(path.name)
    first_hour.pack(build, folder / "there")
    there = {path.name: path.read_text() for path in (folder / "there/programs").rglob("*") if path.is_file()}
    for path in made: require(there.get(path.name) == path.name, f"{path.name} is not in the folder")
    run = subprocess.run([sys.executable, "-B", folder / "there/first_hour.py"], text=True, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PATH": "/nowhere"})
    require(run.returncode == 1 and "there is no GPU" in run.stdout, run)


def simulated(*arguments, machine="b200", status=0, folder=None):
    run = subprocess.run([sys.executable, "-B", PROGRAM, "--programs", BUILD, "--output", folder, *arguments],
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                         env=dict(os.environ, SIM_MACHINE=machine, PATH="/usr/bin:/bin"))
    require(run.returncode == status, f"{arguments}: status {run.returncode}: {run.stdout}")
    return json.loads((folder / "first_hour.json").read_text())


def constants_of_the_model():
    """The names in host/model/cost_constants.h, read as text."""
    text = (ROOT / "host/model/cost_constants.h").read_text(encoding="utf-8")
    body = text.split("struct CostConstants {", 1)[1].split("\n};", 1)[0]
    return set(re.findall(r"^  double (\w+)(?: = \S+)?;", body, re.M))


def on_simulated_gpus(folder):
    """Both architectures run every kernel of the measurements, and each constant is measured or is said not to be."""
    known = set()
    for machine, arch in ("b200", "sm_100f"), ("h100", "sm_90a"):
        data = simulated("--steps", "machine,constants", machine=machine, folder=folder / machine)["steps"]["constants"]
        require(data["state"] == "done" and data["problems"] == [] and not data["data"]["timed"], data)
        require(not any("median" in one for one in data["data"]["measurements"]), "times of a simulated GPU")
        listed = {one["name"]: one["known"] for one in data["data"]["constants"]}
        measured = {one["constant"] for one in data["data"]["measurements"] if "constant" in one} - {"mma_cycles"}
        wanted = {name for name, how in listed.items() if how.startswith("measure")}
        require(measured == wanted, f"{arch}: measured, or to be measured: {sorted(measured ^ wanted)}")
        known |= set(listed)
        require("Not timed: simulated" in (folder / machine / "first_hour.md").read_text(), "the page")
    require(known == constants_of_the_model(), f"constants: {sorted(known ^ constants_of_the_model())}")


def calibrations(folder):
    """`--calibrate` of a first hour whose times are those of the model: no error, and no choice changes; with a DRAM of
    a hundredth all times are longer."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(BUILD / "sim"), SIM_MACHINE="b200")
    made = simulated("--steps", "machine,contest,experts", folder=folder / "b200")
    for step in "contest", "experts":
        one = made["steps"][step]["data"]["report"]
        one["times"] = "measured"
        for row in one["results"]: row["stream"] = {"median_us": row["modelled"]["us"]}
    constants = json.loads(subprocess.run([BUILD / "microbenchmarks", "--constants"], env=environment, text=True,
                                          check=True, stdout=subprocess.PIPE).stdout)
    data = {"timed": True, "constants": constants,
            "measurements": [{"name": one["name"], "unit": "", "constant": one["name"], "median": one["in_use"],
                              "in_use": one["in_use"]} for one in constants]}
    made["steps"]["constants"] = {"data": data}
    def calibrate():
        (folder / "made.json").write_text(json.dumps(made))
        return subprocess.run([BUILD / "dualgemm_bench", "--calibrate", folder / "made.json"], env=environment,
                              text=True, check=True, stdout=subprocess.PIPE).stdout
    text = calibrate()
    require("constants in use: mean 0.0 %, worst +0.0 %" in text and "measured here: mean 0.0 %" in text, text)
    require("no choice among these problems would change" in text, text)
    for one in data["measurements"]:
        if one.get("constant") == "dram": one["median"] = one["in_use"] / 100
    text = calibrate()
    require("constants in use: mean 0.0 %" in text, text)
    require(float(re.search(r"measured here: mean ([\d.]+) %", text)[1]) > 500, text)
    del made["steps"]["constants"]
    (folder / "made.json").write_text(json.dumps(made))
    run = subprocess.run([BUILD / "dualgemm_bench", "--calibrate", folder / "made.json"], env=environment, text=True,
                         check=False, stderr=subprocess.PIPE)
    require(run.returncode == 1 and "no constants" in run.stderr, run.stderr)


def whole(folder):
    """An instance of each risk in the simulator, what a machine lacks, and a second run that has nothing to do."""
    made = simulated("--quick", "--steps", "machine,verify,dependent,tune", folder=folder)
    said = made["steps"]["verify"]["data"]["verdicts"]
    require({one["instance"] for one in said} == {f"{tile}_fp16" for tile in verify.SIMULATED[:3]}, said)
    require(all((one["edges"], one["bits"]) == ("right", "as on record") for one in said), said)
    require([made["steps"][name]["state"] for name in ("dependent", "tune")] == ["lacks", "lacks"], made["steps"])
    lacks = made["steps"]["machine"]["data"]["lacks"]
    require(any("a GPU of compute capability" in one for one in lacks), lacks)
    begin = time.monotonic()
    again = simulated("--quick", "--steps", "machine,verify", folder=folder)
    require(again["steps"]["verify"] == made["steps"]["verify"] and time.monotonic() - begin < 60, "it ran again")
    require("tune" not in again["steps"] or again["steps"]["tune"]["state"] == "lacks", again["steps"])


def main():
    checks = {"driver": [failures, resumes, goes_on, limits, interruptions, fallbacks, verdicts, pages, packs],
              "simulated": [on_simulated_gpus, calibrations, whole]}
    for check in checks[sys.argv[2]]:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / check.__name__
            folder.mkdir()
            check(folder)


if __name__ == "__main__":
    main()
