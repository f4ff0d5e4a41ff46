#!/usr/bin/env python3
"""workflows.py ROOT -- what CI does anybody can do: every step of a workflow under .github/ is a target of make, but
for those that fetch the sources, and actions. Names behind `matrix.` stand for what the file lists for them.
"""
import pathlib
import re
import sys

STEP = re.compile(r"^( *)(- )?run: *(.*)$")
FETCH = re.compile(r"apt-get update && apt-get install -y git make( [\w-]+)*|git (init|fetch|checkout) .*")


def commands(text):
    """The lines that the steps of a workflow run, with each value of a matrix."""
    lines, found = text.splitlines(), []
    for index, line in enumerate(lines):
        step = STEP.match(line)
        if not step: continue
        if step[3] not in ("|", ">"):
            found.append(step[3])
            continue
        for more in lines[index + 1:]:
            if more.strip() and len(more) - len(more.lstrip()) <= len(step[1] + (step[2] or "")): break
            if more.strip(): found.append(more.strip())
    for name, values in re.findall(r"^ +(\w+): \[(.*)\]$", text, re.M):
        place = f"${{{{ matrix.{name} }}}}"
        found = [command.replace(place, value.strip(' "')) for command in found
                 for value in (values.split(",") if place in command else [""])]
    return found


def faults(text, targets):
    of = commands(text)
    if not of: yield "runs nothing"
    for command in of:
        words = command.split()
        if FETCH.fullmatch(command): continue
        if words[0] != "make" or len(words) != 2: yield f"a step is no target of make: {command}"
        elif words[1] not in targets: yield f"the Makefile has no target {words[1]}"


def check_the_check():
    """What has to be found is found, and nothing else."""
    known = {"a", "b"}
    for text in ("      - run: make a\n", "        run: make b\n", "  m: [a, b]\n  - run: make ${{ matrix.m }}\n",
                 "  - run: |\n      git init .\n      git checkout X\n  - run: make a\n"):
        assert not list(faults(text, known)), text
    for text in ("", "  - run: make c\n", "  - run: bash a\n", "  - run: make a ARGS=1\n", "  - run: make a && rm b\n",
                 "  m: [a, c]\n  - run: make ${{ matrix.m }}\n", "  - run: |\n      git init .\n      cmake -B build\n",
                 "  - run: make ${{ matrix.n }}\n"):
        assert len(list(faults(text, known))) == 1, text


def main(root):
    check_the_check()
    targets = set(re.findall(r"^([\w-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.M))
    workflows = sorted((root / ".github/workflows").glob("*.yml"))
    found = [f"{path.name}: {what}" for path in workflows for what in faults(path.read_text(encoding="utf-8"), targets)]
    print("\n".join(found) or f"{len(workflows)} workflows: every step is a target of make")
    return 1 if found or not workflows else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
