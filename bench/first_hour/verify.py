"""verify.py -- every instance on this GPU, each in a process of its own, so that one that fails, crashes or hangs
leaves the others alone: around the edges of tiles and rings against the reference of the tests, and the bits on record.
"""
import concurrent.futures
import os
import re
import subprocess
import xml.etree.ElementTree

import risks

# Test cases of test/kernel, with a section for each instance.
DENSE = "nothing is found in a dense launch of any instance around the edges"
GROUPED = "nothing is found in a grouped launch of any instance around the edges"
ONE = "one product: nothing is found with any instance"
SIXTEEN = "nothing is found around the edges of tiles and rings where A has 16 bits"
FP8 = "nothing is found around the edges of tiles and rings where A is FP8"
PADDING = "scale factors of rows that do not exist, and bytes beyond k, have no effect"
BITS = "every instance writes the bits on record"

LIMIT = 150  # seconds for one instance


def cases_of(instance):
    """The test cases that have to run an instance."""
    plan = instance["plan"]
    if plan["a_type"] == "FP8_E4M3": return [FP8]
    if plan["mma"]["accumulators"] == 1: return [ONE]
    if plan["a_type"] != "NVFP4": return [SIXTEEN]
    return [GROUPED if plan["tile"]["grouped"] else DENSE]


def sections_of(instance):
    """The names of an instance in tests: a general one has a name for each type of C."""
    if not instance["epilogue"]["general"]: return [instance["name"]]
    return [f"{instance['name']}_{output['name']}" for output in instance["epilogue"]["outputs"]]


def chosen(instances, arch, quick, simulated):
    """(section, instance) of what is run. In a quick run one type of C stands for the others, whose main loop is the
    same; in the simulator a tile of each risk does, and the tile that every fallback ends at."""
    out = []
    for turn, instance in enumerate(one for one in instances if one["plan"]["arch"] == arch):
        sections = sections_of(instance)
        if quick or simulated:
            if instance["name"].endswith("_bf16") and not instance["name"].endswith("_abf16_bf16"): continue
            sections = [sections[turn % len(sections)]]
        if simulated and (instance["epilogue"]["general"] or risks.stem(instance["name"]) not in SIMULATED): continue
        out += [(section, instance) for section in sections]
    return out


SIMULATED = ("m256n192k256", "m256n128k256s2", "m128n128k256", "sm90m64n64k256")


def test_specification(names):
    return ",".join(name.replace(",", "\\,") for name in names)


def read_cases(text):
    """{test case: (assertions that hold, what failed)} of Catch2's XML, also of one that ends in the middle."""
    try:
        root = xml.etree.ElementTree.fromstring(text)
    except xml.etree.ElementTree.ParseError:
        return {}
    found = {}
    for case in root.iter("TestCase"):
        results = [section.find("OverallResults") for section in case.iter("Section")]
        holds = sum(int(one.get("successes")) for one in results if one is not None)
        failures = []
        for section in case.iter("Section"):
            infos = []
            for one in section:
                if one.tag == "Info": infos.append((one.text or "").strip())
                if one.tag in ("Expression", "Failure", "Exception", "FatalErrorCondition"):
                    expanded = one.findtext("Expanded") or one.text or one.findtext("Exception") or ""
                    failures.append(" | ".join([*infos, " ".join(expanded.split())])[:400])
                    infos = []
        found[case.get("name")] = (holds, failures)
    return found


def results_of(text):
    """How many test cases Catch2's XML has, and the names of those that failed."""
    try:
        cases = list(xml.etree.ElementTree.fromstring(text).iter("TestCase"))
    except xml.etree.ElementTree.ParseError:
        return 0, []
    return len(cases), [case.get("name") for case in cases if case.find("OverallResult").get("success") != "true"]


def verdict(instance, section, code, output, timed_out):
    """What the tests say of one instance."""
    found = read_cases(output)
    out = {"instance": section, "edges": "right", "bits": "not compared"}
    wrong = list(found.get(PADDING, (0, []))[1])  # padding of factors holds NaN there
    for name in cases_of(instance):
        holds, failures = found.get(name, (0, []))
        wrong += failures
        if not failures and not holds: out["edges"] = "not run"
    if wrong: out["edges"] = "wrong"
    holds, different = found.get(BITS, (0, []))
    if different: out["bits"] = "differ"
    elif holds: out["bits"] = "as on record"
    if timed_out: out.update(edges="no end", why=f"no end within {LIMIT} s")
    elif code < 0 or (code != 0 and not found): out.update(edges="crashed", why=last_line(output) or f"status {code}")
    elif wrong or different: out["why"] = (wrong + different)[0]
    elif out["edges"] == "not run": out["why"] = "no test has a section of this name"
    if out["edges"] != "right" or out["bits"] == "differ": out["risks"] = risks.advice(instance, section)
    return out


def last_line(text):
    lines = [re.sub(r"<[^>]*>", "", line).strip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if line), "")[:400]


class Pool:
    """Runs the tests of instances, several at a time; `stop` ends what is under way."""

    def __init__(self, program, environment, workers):
        self.program, self.environment = program, environment
        self.executor = concurrent.futures.ThreadPoolExecutor(workers)
        self.running, self.stopped = set(), False

    def one(self, section, instance):
        if self.stopped: return None
        names = [*cases_of(instance), PADDING, BITS]
        command = [self.program, test_specification(names), "-c", section, "-r", "xml"]
        process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace", start_new_session=True)
        self.running.add(process)
        timed_out = False
        try:
            output, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, 9)
            output, _ = process.communicate()
        self.running.discard(process)
        return None if self.stopped else verdict(instance, section, process.returncode, output, timed_out)

    def submit(self, section, instance):
        return self.executor.submit(self.one, section, instance)

    def stop(self):
        self.stopped = True
        for process in list(self.running):
            try:
                os.killpg(process.pid, 9)
            except ProcessLookupError:
                pass
        self.executor.shutdown(cancel_futures=True)
