"""driver.py -- runs named steps, each with its own limit of time, and keeps the result of each as soon as it ends: in
FOLDER/STEP.json. What a step ends with:

    done         it ran to its end; what it found wrong stands in its `problems`
    failed       it did not, and `why` says so
    out of time  its limit, or what was left of all time, was over; what it had found by then is kept
    lacks        this machine has not what it needs
    interrupted  by Ctrl-C

A rerun takes over what is done by the same programs on the same GPU, and runs the rest.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing

LEAST_LEFT = 5  # seconds with which no step is begun


class Lacks(Exception):
    """What a step needs and this machine has not."""


class Failed(Exception):
    """Why a step has no result."""


class OutOfTime(Exception):
    """The limit of a step is over."""


@dataclasses.dataclass
class Step:
    name: str
    what: str
    limit: float  # seconds
    # Fills in `data`, of which what is there when something is raised is kept, and returns what is wrong.
    run: typing.Callable[["Task", dict], list]


@dataclasses.dataclass
class Ended:
    code: int
    output: str


class Task:
    """What a running step may do: run commands until its limit is over."""

    def __init__(self, driver, step, limit):
        self.driver, self.step, self.begin = driver, step, time.monotonic()
        self.limit = limit
        self.log = driver.folder / f"{step.name}.log"
        self.log.write_bytes(b"")

    def left(self):
        return self.limit - (time.monotonic() - self.begin)

    def file(self, name):
        return self.driver.folder / name

    def own(self, name):
        """A file that goes on where an earlier run of this step stopped. One of other programs, or of another GPU, is
        removed first."""
        path, of = self.file(name), self.file(f"{name}.of")
        if not of.exists() or of.read_text(encoding="utf-8") != self.driver.key or self.driver.again:
            path.unlink(missing_ok=True)
            of.write_text(self.driver.key, encoding="utf-8")
        return path

    def show(self, text=""):
        self.driver.show(f"{self.step.name}: {text}", time.monotonic() - self.begin)

    def command(self, arguments, limit=None, environment=None, stdout=None):
        """Runs a command to its end. Its output goes to the step's log; the caller gets that of this command."""
        limit = min(self.left(), limit or self.left())
        if limit <= 0: raise OutOfTime
        arguments = [str(one) for one in arguments]
        at = self.log.stat().st_size
        with open(self.log, "ab") as log, contextlib.ExitStack() as files:
            log.write(("$ " + " ".join(arguments) + "\n").encode())
            log.flush()
            to = files.enter_context(open(stdout, "wb")) if stdout else log
            try:
                process = subprocess.Popen(arguments, stdout=to, stderr=log, stdin=subprocess.DEVNULL,
                                           env=environment, start_new_session=True)
            except OSError as error:
                raise Lacks(f"{arguments[0]}: {error.strerror}") from None
            try:
                end = time.monotonic() + limit
                while process.poll() is None:
                    if time.monotonic() > end: raise OutOfTime
                    self.show()
                    time.sleep(0.05)
            finally:
                stop(process)
        text = self.log.read_bytes()[at:].decode(errors="replace")
        return Ended(process.returncode, text)


def stop(process):
    """Ends a process and what it has started: first as Ctrl-C does, so that it may keep what it has."""
    for what, patience in (signal.SIGINT, 3), (signal.SIGKILL, 10):
        if process.poll() is not None: return
        try:
            os.killpg(process.pid, what)
            process.wait(patience)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


class Driver:
    def __init__(self, folder, key, seconds, again=False):
        self.folder, self.key, self.again = pathlib.Path(folder), key, again
        self.end = time.monotonic() + seconds
        self.folder.mkdir(parents=True, exist_ok=True)
        self.results = {}
        self.bar = sys.stderr.isatty()
        self.shown, self.place = 0, ""

    def say(self, text):
        line = f"{time.strftime('%H:%M:%S')} {text}"
        if self.bar: print("\r\033[K", end="", file=sys.stderr)
        print(line, flush=True)
        with open(self.folder / "first_hour.log", "a", encoding="utf-8") as log: log.write(line + "\n")

    def show(self, text, seconds):
        """A line for a terminal, at most five times a second."""
        if not self.bar or time.monotonic() - self.shown < 0.2: return
        self.shown = time.monotonic()
        line = f"{self.place} {text} {seconds:.0f} s, {max(0, self.end - self.shown) / 60:.0f} min left"
        print("\r\033[K" + line[:os.get_terminal_size(sys.stderr.fileno()).columns - 1], end="", file=sys.stderr,
              flush=True)

    def kept(self, step):
        """The result of an earlier run, if it is done and is of the same programs, GPU and options."""
        try:
            result = json.loads((self.folder / f"{step.name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return result if result.get("key") == self.key and result.get("state") == "done" else None

    def keep(self, step, result):
        self.results[step.name] = result
        new = self.folder / f"{step.name}.json.new"
        new.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        new.replace(self.folder / f"{step.name}.json")

    def run(self, steps, after_each=lambda: None):
        """Runs the steps. Returns whether it was interrupted."""
        for number, step in enumerate(steps, 1):
            full = 20 * (number - 1) // len(steps)
            self.place = f"[{'#' * full}{'.' * (20 - full)}] {number}/{len(steps)}"
            result = None if self.again else self.kept(step)
            if result:
                self.results[step.name] = result
                self.say(f"{step.name}: done before")
                continue
            result = self.run_one(step)
            self.keep(step, result)
            self.say(line_of(step, result))
            after_each()
            if result["state"] == "interrupted": return True
        return False

    def run_one(self, step):
        left = self.end - time.monotonic()
        result = {"step": step.name, "what": step.what, "key": self.key, "state": "done", "problems": [], "data": {}}
        if left < LEAST_LEFT:
            return dict(result, state="out of time", why="no time was left to begin it", seconds=0)
        self.say(f"{step.name}: {step.what}")
        task = Task(self, step, min(step.limit, left))
        try:
            result["problems"] = step.run(task, result["data"])
        except Lacks as error:
            result.update(state="lacks", why=str(error))
        except Failed as error:
            result.update(state="failed", why=str(error))
        except OutOfTime:
            result.update(state="out of time", why=f"{task.limit:.0f} s were over")
        except KeyboardInterrupt:
            result.update(state="interrupted", why="Ctrl-C")
        except Exception as error:  # one step that goes wrong in an unknown way leaves the others alone
            result.update(state="failed", why=f"{type(error).__name__}: {error}")
        result["seconds"] = round(time.monotonic() - task.begin, 1)
        return result


def line_of(step, result):
    problems = result["problems"]
    text = f"{step.name}: {result['state']}, {result['seconds']:.0f} s"
    if "why" in result: text += f": {result['why']}"
    if problems: text += f"; {len(problems)} {'problem' if len(problems) == 1 else 'problems'}: {problems[0]}"
    return text
