"""page.py -- the page that first_hour.py writes: what was found, for a person to read and to send."""
import math
import statistics

import risks

REPORTS = {"contest": "the contest's shapes", "decode": "few rows", "experts": "groups of rows", "large": "many rows"}


def table(heading, rows):
    lines = [heading, ["---"] * len(heading), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def number(value):
    return "-" if value is None else f"{value:.4g}"


def shape_of(row):
    size = f"{row['m']} x {row['n']} x {row['k']}"
    if row["mode"] != "none": return f"{row['mode']}, {row['problems']} groups, {size}"
    return f"{row['problems']} of {size}" if row["problems"] > 1 else size


def predicted(report):
    """(row, measured, modelled, error) of the rows that have both times: from launch to launch on a stream."""
    found = []
    for row in report["results"]:
        if "stream" not in row or "modelled" not in row: continue
        measured, modelled = row["stream"]["median_us"], row["modelled"]["us"]
        found.append((row, measured, modelled, modelled / measured - 1))
    return found


def summary_of(errors):
    """Mean and worst of relative errors; the mean of their sizes."""
    worst = max(errors, key=abs)
    return f"mean {100 * statistics.fmean(map(abs, errors)):.1f} %, worst {100 * worst:+.1f} %"


def head(results, title):
    data = results.get("machine", {}).get("data", {})
    text = f"# {title}\n\n"
    gpu = data.get("gpu") or {}
    if gpu: text += table(["GPU", ""], gpu.items()) + "\n"
    library = next((results[name]["data"]["report"] for name in REPORTS
                    if "report" in results.get(name, {}).get("data", {})), None)
    if library:
        text += f"Library {library['library']['version']}, {library['library']['build']}, commit " \
                f"{library['library']['git']}. CUDA driver {library['device']['cuda_driver']}, runtime " \
                f"{library['device']['cuda_runtime']}.\n\n"
    text += "".join(f"This machine lacks {one}.\n" for one in data.get("lacks", []))
    return text + "\n"


def steps(results):
    rows = []
    for name, result in results.items():
        clocks = result["data"].get("clocks", {})
        said = "; ".join(f"{what} {low:.0f} / {middle:.0f} / {high:.0f}"
                         for what, (low, middle, high) in clocks.items())
        rows.append([name, result["state"], f"{result['seconds']:.0f}", len(result["problems"]), result.get("why", ""),
                     said])
    return "## Steps\n\n" + table(["step", "state", "s", "problems", "why", "least / median / most"], rows) + "\n"


def problems(results):
    lines = [f"- **{name}**: {one}" for name, result in results.items() for one in result["problems"]]
    lines += [f"- **{name}**: {result['state']}: {result.get('why', '')}" for name, result in results.items()
              if result["state"] != "done"]
    return "## What failed, or was not run\n\n" + ("\n".join(lines) if lines else "Nothing.") + "\n\n"


def instances(results):
    data = results.get("verify", {}).get("data")
    if not data or "verdicts" not in data: return ""
    verdicts = data["verdicts"]
    counts = {}
    for one in verdicts:
        for what in "edges", "bits": counts[(what, one[what])] = counts.get((what, one[what]), 0) + 1
    text = f"## Instances\n\n{len(verdicts)} of {data['wanted']} were run. "
    text += "; ".join(f"{what} {said}: {count}" for (what, said), count in sorted(counts.items())) + ".\n\n"
    wrong = [one for one in verdicts if "risks" in one]
    for one in wrong:
        text += f"- **{one['instance']}**: edges {one['edges']}, bits {one['bits']}: {one.get('why', '')}\n"
        text += "".join(f"  - may be: {risk}\n" for risk in one["risks"])
    return text + (f"\n{risks.AVOID}\n\n" if wrong else "\n")


def constants(results):
    data = results.get("constants", {}).get("data")
    if not data or "constants" not in data: return ""
    text = "## Constants of the cost model\n\n"
    if not data["timed"]: text += "Not timed: simulated. Every kernel of the measurements ran and was right.\n\n"
    rows = []
    for constant in data["constants"]:
        found = [one for one in data["measurements"] if one.get("constant") == constant["name"]]
        one = found[0] if found else {}
        allowed = f"{number(constant['low'])} .. {number(constant['high'])}" if "low" in constant else ""
        rows.append([constant["name"], constant["known"], number(constant["in_use"]), allowed,
                     number(one.get("median")), spread(one), one.get("unit", ""), one.get("name", "")])
    text += table(["constant", "known by", "in use", "sources allow", "here", "p10 .. p90", "unit",
                   "what was measured"], rows)
    rest = [one for one in data["measurements"] if one.get("constant") in (None, "mma_cycles") and "median" in one]
    if rest:
        text += "\n" + table(["also measured", "unit", "median", "p10 .. p90", "modelled"],
                             [[one["name"], one["unit"], number(one["median"]), spread(one), number(one.get("in_use"))]
                              for one in rest])
    return text + "\n"


def spread(one):
    return f"{number(one['p10'])} .. {number(one['p90'])}" if "p10" in one else ""


def baseline_of(row):
    times = [way["stream"]["median_us"] for way in row.get("baselines", []) if "stream" in way]
    return min(times) if times else None


def times(results):
    text = ""
    for name, title in REPORTS.items():
        report = results.get(name, {}).get("data", {}).get("report")
        if not report: continue
        text += f"### {title}\n\n"
        if report["times"] != "measured":
            text += f"Not timed: {report['times']}.\n\n"
            continue
        rows = predicted(report)
        text += table(["M x N x K", "instance", "measured, us", "p10 .. p90", "predicted, us", "error", "cuBLASLt, us",
                       "SM, MHz", "held down by power"],
                      [[shape_of(row), row["instance"], f"{measured:.2f}",
                        f"{row['stream']['p10_us']:.2f} .. {row['stream']['p90_us']:.2f}", f"{modelled:.2f}",
                        f"{100 * error:+.1f} %", number(baseline_of(row)), row.get("sm_mhz", "-"),
                        f"{100 * row['power_limited']:.0f} %" if "power_limited" in row else "-"]
                       for row, measured, modelled, error in rows])
        if rows: text += f"\n{len(rows)} shapes: {summary_of([row[3] for row in rows])}.\n"
        text += "\n"
    every = every_instance(results)
    if every: text += f"### every instance\n\n{every}\n\n"
    return "## Predicted and measured\n\n" + text if text else ""


def every_instance(results):
    report = results.get("instances", {}).get("data", {}).get("report")
    if not report or report["times"] != "measured": return ""
    errors, lost = [], []
    for row in report["results"]:
        timed = [(one["stream"]["median_us"], one.get("modelled_us"), one["name"]) for one in row.get("instances", [])
                 if "stream" in one]
        errors += [modelled / measured - 1 for measured, modelled, _ in timed if modelled]
        chosen = [measured for measured, _, name in timed if name == row.get("instance")]
        if chosen: lost.append(chosen[0] / min(timed)[0])
    if not errors or not lost: return ""
    mean = math.exp(statistics.fmean(map(math.log, lost)))
    return f"{len(errors)} times of {len(lost)} shapes: {summary_of(errors)}. The model's choice takes " \
           f"{100 * (mean - 1):.1f} % more than the fastest instance in the mean, " \
           f"{100 * (max(lost) - 1):.1f} % at worst."


def tuning(results):
    data = results.get("tune", {}).get("data", {})
    if "judged" not in data: return ""
    entries = [line for line in data.get("entries", []) if line[:1].isdigit()]  # behind the heading (TUNING.md)
    changes = [line for line in entries if "more" in line]
    text = "## Tuning\n\n"
    text += f"{len(changes)} of {len(entries)} entries name another instance than the " \
            "model chooses:\n\n" + "".join(f"    {line}\n" for line in changes)
    return text + "\n"


def page(results, title):
    return head(results, title) + problems(results) + instances(results) + constants(results) + times(results) + \
        tuning(results) + steps(results)
