#!/usr/bin/env python3
"""tables.py -- the tables of the pages that a program can print. Each stands between two comments,

    <!-- printed by: NAME -->
    ...
    <!-- end -->

and NAME is one of those below. Fails where a table differs from what its program prints now.

    tables.py BUILD [--write]

BUILD is the folder of the build; --write brings the pages up to date instead (`make pages`).
"""
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from pages import ROOT, pages

MARKED = re.compile(r"(<!-- printed by: (.+?) -->\n)(.*?)(<!-- end -->)", re.S)


class Printers:
    """What the programs of a build print, each run once."""

    def __init__(self, build):
        self.build, self.printed = build, {}

    def run(self, *command, given=None):
        if command not in self.printed:
            environment = dict(os.environ, LD_LIBRARY_PATH=str(self.build / "sim"))
            self.printed[command] = subprocess.run(list(map(str, command)), env=environment, input=given, text=True,
                                                   stdout=subprocess.PIPE, check=True).stdout
        return self.printed[command]

    def instances(self, arch):
        logs = sorted((self.build / "kernel").glob("*/instances/*.log"))
        return self.below(arch, self.run("python3", ROOT / "bench/instances.py", *logs,
                                         given=self.run(self.build / "dualgemm_bench", "--instances")))

    def model(self, heading):
        return self.below(heading, self.run(self.build / "dualgemm_bench", "--model"))

    def below(self, heading, text):
        """The table below a heading."""
        sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", text, re.S | re.M))
        return "".join(line + "\n" for line in sections[heading].splitlines() if line.startswith("|"))

    def rules(self):
        entries = re.findall(r"^(\w) (\S+) +(\S.*?)  +(\S.*)\n    (.*)$",
                             self.run(self.build / "dualgemm-sim", "--rules"), re.M)
        rows = [("class", "rule", "what it asks", "rests on", "source"), ("---",) * 5]
        rows += [(kind, f"`{rule}`", text, evidence, source) for kind, rule, evidence, source, text in entries]
        return "".join(f"| {' | '.join(row)} |\n" for row in rows)

    def table(self, name):
        if found := re.fullmatch(r"make instances, (\w+)", name): return self.instances(found[1])
        if found := re.fullmatch(r"make bench ARGS=(--cube|--errors)", name):
            return self.run(self.build / "dualgemm_bench", found[1])
        if found := re.fullmatch(r"bench/hopper.py (\w+)", name):
            return self.run("python3", ROOT / "bench/hopper.py", found[1])
        if name == "dualgemm-sim --rules": return self.rules()
        if found := re.fullmatch(r"make bench ARGS=--model, (\w+)", name): return self.model(found[1])
        sys.exit(f"tables.py: nothing prints \"{name}\"")


def main():
    if len(sys.argv) < 2: sys.exit(__doc__)
    printers, write = Printers(pathlib.Path(sys.argv[1]).resolve()), "--write" in sys.argv[2:]
    tables, stale = 0, []
    for page in pages():
        before = page.read_text(encoding="utf-8")
        tables += len(MARKED.findall(before))
        after = MARKED.sub(lambda m: m[1] + printers.table(m[2]) + m[4], before)
        if before.count("<!-- printed by:") != len(MARKED.findall(before)): sys.exit(f"tables.py: {page}: no end")
        if after == before: continue
        stale.append(str(page.relative_to(ROOT)))
        if write: page.write_text(after, encoding="utf-8")
    if not tables: sys.exit("tables.py: no page has a table")
    if write: print(f"{tables} tables; written: {', '.join(stale) or 'nothing'}")
    elif stale:
        sys.exit(f"tables.py: {', '.join(stale)}: not what the programs print now; `make pages` writes them anew")


if __name__ == "__main__":
    main()
