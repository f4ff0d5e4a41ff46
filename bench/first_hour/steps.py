"""steps.py -- the steps of first_hour.py: which program each runs, and what it keeps of what that says."""
import concurrent.futures
import csv
import ctypes.util
import io
import json
import os
import pathlib
import statistics
import subprocess

import verify
from driver import Failed, Lacks, OutOfTime, Step

NVIDIA_SMI = ["nvidia-smi", "--format=csv,noheader,nounits"]
GPU_FIELDS = {"name": "name", "compute_cap": "compute capability", "driver_version": "driver",
              "memory.total": "memory, MiB", "clocks.max.sm": "most MHz of an SM",
              "clocks.max.memory": "most MHz of memory", "power.limit": "power limit, W", "ecc.mode.current": "ECC",
              "mig.mode.current": "MIG", "pstate": "state", "temperature.gpu": "degrees C", "pci.bus_id": "bus"}
CLOCK_FIELDS = {"clocks.sm": "SM, MHz", "clocks.mem": "memory, MHz", "power.draw": "W", "temperature.gpu": "degrees C"}


class Place:
    """The machine, and where its programs are: build/ of the repository, or the folder that was carried there."""

    def __init__(self, programs):
        self.programs = pathlib.Path(programs).resolve()
        self.gpu = self.find_gpu()
        self.simulated = self.gpu is None
        self.environment = dict(os.environ, LD_LIBRARY_PATH=":".join([*self.libraries(),
                                                                      os.environ.get("LD_LIBRARY_PATH", "")]))
        if self.simulated: self.environment["DUALGEMM_TEST_ALL"] = "1"  # every instance has its section
        elif "uuid" in self.gpu: self.environment["CUDA_VISIBLE_DEVICES"] = self.gpu["uuid"]  # for the programs, GPU 0
        if (self.programs / "bits").is_dir(): self.environment["BITS_DIRECTORY"] = str(self.programs / "bits")

    @staticmethod
    def find_gpu():
        """The first GPU that the library has kernels for; of those, if there is one, the first that
        CUDA_VISIBLE_DEVICES names."""
        fields = [*GPU_FIELDS, "index", "uuid"]
        try:
            text = subprocess.run([*NVIDIA_SMI, f"--query-gpu={','.join(fields)}"], text=True, check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60).stdout
        except (OSError, subprocess.SubprocessError):
            return None
        rows = (dict(zip(fields, row)) for row in csv.reader(io.StringIO(text), skipinitialspace=True))
        gpus = [gpu for gpu in rows if gpu.get("compute_cap", "").startswith(("9.0", "10."))]
        wanted = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]
        named = [gpu for gpu in gpus if wanted in (gpu.get("index"), gpu.get("uuid"))]
        return (named or gpus or [None])[0]

    def libraries(self):
        if self.simulated: return [str(self.programs / "sim"), str(self.programs)]
        found = [self.programs / "lib", self.programs]  # libcudart where programs were carried; libdualgemm
        try:
            text = (self.programs / "cuda.mk").read_text(encoding="utf-8")
            cuda = pathlib.Path(text.split(":=", 1)[1].split()[0]).parents[1]
            found += [cuda / "lib64", cuda / "lib"]
        except (OSError, IndexError):
            found += [pathlib.Path("/usr/local/cuda/lib64")]
        return [str(path) for path in found]

    def program(self, name):
        path = self.programs / name
        if not path.exists(): raise Lacks(f"there is no {path}")
        return path

    def tests(self):
        """The tests of the kernels: the program for a GPU is not among those that `make test` builds."""
        return self.program("kernel_test" if self.simulated else "kernel_test_gpu")

    def arch(self):
        """As `dualgemm_bench --instances` calls it."""
        if self.simulated: return "sm_90a" if os.environ.get("SIM_MACHINE", "b200")[:2] in ("h1", "h2") else "sm_100f"
        return "sm_90a" if self.gpu["compute_cap"].startswith("9.") else "sm_100f"

    def name(self):
        return self.gpu["name"] if self.gpu else f"simulated {os.environ.get('SIM_MACHINE', 'b200')}"


class Clocks:
    """Clocks, power and temperature while a step runs, twice a second; nothing where nobody says them."""

    def __init__(self, task, place):
        self.path, self.process = task.file(f"{task.step.name}.clocks"), None
        if place.simulated: return
        with open(self.path, "wb") as file:
            try:
                self.process = subprocess.Popen(
                    [*NVIDIA_SMI, f"--query-gpu={','.join(CLOCK_FIELDS)}", "-lms", "500", "-i",
                     place.gpu["pci.bus_id"]], stdout=file, stderr=subprocess.DEVNULL,
                    start_new_session=True)
            except OSError:
                pass

    def end(self, data):
        if not self.process: return
        self.process.terminate()
        self.process.wait()
        rows = list(csv.reader(self.path.read_text(errors="replace").splitlines(), skipinitialspace=True))
        self.path.unlink()
        said = {}
        for column, name in enumerate(CLOCK_FIELDS.values()):
            numbers = [float(row[column]) for row in rows if len(row) == len(CLOCK_FIELDS) and is_number(row[column])]
            if numbers: said[name] = [min(numbers), statistics.median(numbers), max(numbers)]
        if said: data["clocks"] = said


def is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return False


def last_line(text):
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip() and not line.startswith("$ ")]
    return lines[-1].strip() if lines else "it said nothing"


def machine(place):
    def run(task, data):
        data["gpu"] = {what: place.gpu.get(field, "") for field, what in GPU_FIELDS.items()} if place.gpu else {}
        data["name"] = place.name()
        data["cpus"] = os.cpu_count()
        data["lacks"] = lacking(place)
        ended = task.command([place.program("dualgemm_bench"), "--instances"], environment=place.environment,
                             stdout=task.file("instances.txt"))
        if ended.code: raise Failed(last_line(ended.output))
        return []
    return Step("machine", "what there is, and what it lacks", 60, run)


def lacking(place):
    """Sentences on what this machine has not, and what is missing for want of it."""
    out = []
    if place.simulated: out.append("a GPU of compute capability 9.0 or 10.x: nothing is timed")
    folders = [pathlib.Path(path) for path in place.libraries()]
    cublas = any(list(folder.glob("libcublasLt.so*")) for folder in folders) or ctypes.util.find_library("cublasLt")
    if not cublas: out.append("libcublasLt: no baseline beside the library's times")
    return out


def instances_of(task, place):
    try:
        return json.loads(task.file("instances.txt").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        path = task.file("instances.txt")
        ended = task.command([place.program("dualgemm_bench"), "--instances"], environment=place.environment,
                             stdout=path)
        if ended.code: raise Failed(last_line(ended.output)) from None
        return json.loads(path.read_text(encoding="utf-8"))


def constants(place, quick):
    def run(task, data):
        program, problems = place.program("microbenchmarks"), []
        ended = task.command([program, "--constants"], environment=place.environment,
                             stdout=task.file("constants.txt"))
        if ended.code: raise Failed(last_line(ended.output))
        data["constants"] = json.loads(task.file("constants.txt").read_text(encoding="utf-8"))
        task.command([program, "--groups"], environment=place.environment, stdout=task.file("groups.txt"))
        data.update(timed=not place.simulated, measurements=[])
        clocks = Clocks(task, place)
        try:
            for group in task.file("groups.txt").read_text(encoding="utf-8").split():
                problems += one_group(task, place, program, group, 5 if quick else 15, data)
        finally:
            clocks.end(data)
        return problems
    return Step("constants", "constants of the cost model, measured one by one", 300, run)


def one_group(task, place, program, group, repeats, data):
    path = task.file(f"constants_{group}.json")
    path.unlink(missing_ok=True)
    try:
        ended = task.command([program, "--only", group, "--repeats", repeats, "--json", path], limit=60,
                             environment=place.environment)
    except OutOfTime:
        if task.left() <= 0: raise
        return [f"{group}: no end within 60 s"]
    if not path.exists(): return [f"{group}: {last_line(ended.output)}"]
    said = json.loads(path.read_text(encoding="utf-8"))
    data["measurements"] += said["measurements"]
    return [f"{one['group']}: {one['error']}" for one in said["failed"]]


def verified(place, quick):
    def run(task, data):
        program = place.tests()
        wanted = verify.chosen(instances_of(task, place), place.arch(), quick, place.simulated)
        before = {one["instance"]: one for one in kept_verdicts(task)}
        data.update(wanted=len(wanted), verdicts=[before[name] for name, _ in wanted if name in before])
        pool = verify.Pool(str(program), place.environment, 1 if place.simulated else min(8, os.cpu_count()))
        try:
            waiting = {pool.submit(name, one) for name, one in wanted if name not in before}
            while waiting:
                if task.left() <= 0: raise OutOfTime
                done, waiting = concurrent.futures.wait(waiting, timeout=0.2,
                                                        return_when=concurrent.futures.FIRST_COMPLETED)
                data["verdicts"] += [one.result() for one in done if one.result()]
                task.show(f"{len(data['verdicts'])} of {len(wanted)} instances")
        finally:
            pool.stop()
            task.file("verdicts.json").write_text(json.dumps(data["verdicts"]), encoding="utf-8")
        wrong = [one for one in data["verdicts"] if one["edges"] != "right" or one["bits"] == "differ"]
        return [f"{one['instance']}: edges {one['edges']}, bits {one['bits']}: {one['why']}" for one in wrong]
    return Step("verify", "every instance against the reference, and the bits on record", 480, run)


def kept_verdicts(task):
    """Those of a run that did not end: the instances that were right need not run again."""
    try:
        verdicts = json.loads(task.own("verdicts.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [one for one in verdicts if one["edges"] == "right" and one["bits"] != "differ"]


def dependent(place):
    """Weights that are read before griddepcontrol.wait, and launches that overlap."""
    def run(task, data):
        if place.simulated: raise Lacks("a GPU: in the simulator `make test` runs these tests")
        path = task.file("dependent.xml")
        tests = "[pdl]~[simulated],[chain]~[simulated]~[.]"
        ended = task.command([place.tests(), tests, "-r", "xml"],
                             environment=place.environment, stdout=path)
        data["tests"], failed = verify.results_of(path.read_text(errors="replace"))
        if not data["tests"]: raise Failed(last_line(ended.output) or f"status {ended.code}")
        return failed
    return Step("dependent", "dependent launches, with weights that are read before the wait", 120, run)


def bench(place, name, what, limit, arguments, quick):
    effort = ["--repeats", "5", "--input-sets", "20", "--samples", "200"] if quick else ["--repeats", "15"]

    def run(task, data):
        path = task.own(f"{name}.report.json")
        clocks = Clocks(task, place)
        try:
            ended = task.command([place.program("dualgemm_bench"), *arguments, *effort, "--json", path,
                                  "--keep", path], environment=place.environment)
        finally:
            clocks.end(data)
            if path.exists(): data["report"] = json.loads(path.read_text(encoding="utf-8"))
        if "report" not in data: raise Failed(last_line(ended.output))
        if not place.simulated and data["report"]["times"] != "measured":
            raise Failed("the program found no GPU: " + data["report"]["device"]["name"])
        return [f"{row['m']} x {row['n']} x {row['k']}: {row['error']}" for row in data["report"]["results"]
                if "error" in row]
    return Step(name, what, limit, run)


def tuned(place, models, quick):
    def run(task, data):
        if place.simulated: raise Lacks("a GPU: the simulator times nothing")
        path = task.own("first_hour.tuning")
        part = ["--part", "1/4"] if quick else []
        clocks = Clocks(task, place)
        try:
            tuning = task.command([place.program("dualgemm-tune"), "--shapes", models, *part, "--output", path],
                                  environment=place.environment)
            task.file("judged.json").unlink(missing_ok=True)
            data["entries"] = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            task.command([place.program("dualgemm-tune"), "--shapes", models, *part, "--judge", path, "--rounds", "9",
                          "--json", task.file("judged.json")], environment=place.environment)
        finally:
            clocks.end(data)
        if not task.file("judged.json").exists(): raise Failed(last_line(tuning.output))
        data["judged"] = json.loads(task.file("judged.json").read_text(encoding="utf-8"))
        return [] if tuning.code == 0 else [line for line in tuning.output.splitlines() if "left out" in line] or \
            [last_line(tuning.output)]
    return Step("tune", "the fastest instance for each of 60 shapes, and what the model's choice costs", 300, run)


def accuracy(place):
    def run(task, data):
        if place.simulated: raise Lacks("a GPU: the simulator's special functions are not a GPU's")
        ended = task.command([place.program("accuracy")], environment=place.environment)
        if ended.code or "|" not in ended.output: raise Failed(last_line(ended.output))
        data["said"] = ended.output.split("\n", 1)[1]
        return []
    return Step("accuracy", "the accuracy of ex2, rcp and the activation", 120, run)


def all_steps(place, models, quick):
    """In the order of what a first hour has to know, so that what does not fit in is the least of it."""
    hopper = place.arch() == "sm_90a"
    every = ["--suite", "hopper" if hopper else "decode,prefill", "--every-instance"]
    if quick: every += ["--part", "1/5"]
    steps = [machine(place), constants(place, quick), verified(place, quick), dependent(place),
             bench(place, "contest", "the contest's shapes, beside cuBLASLt", 240, ["--suite", "contest"], quick),
             bench(place, "decode", "few rows, beside cuBLASLt", 240, ["--suite", "decode"], quick),
             bench(place, "experts", "groups of rows, beside cuBLASLt", 300, ["--suite", "grouped"], quick),
             bench(place, "large", "many rows, beside cuBLASLt", 300, ["--suite", "prefill"], quick),
             bench(place, "instances", "every instance, timed", 540, every, quick)]
    steps += [tuned(place, models, quick), accuracy(place)]
    return steps

