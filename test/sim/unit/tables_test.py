#!/usr/bin/env python3
"""No orphans in the tables of the simulator, where the compiler cannot tell.

Every rule is reported by some code and expected by some test, and no code reports a rule that is in no table. Every
schedule is in the table of modes and has a test by name. Every qualifier that is kept for handlers is asked for. Every
opcode that a resolver knows is in the list of arithmetic. The pages say how many rules there are.
(Operations, rows and groups of the opcode table: decode/opcodes.cpp and sim/CMakeLists.txt let the compiler check
them.)
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
sim = root / 'test/sim'


def text(*globs, without=None):
    return '\n'.join(f.read_text() for g in globs for f in sorted(root.glob(g)) if not (without and without in f.name))


def orphans():
    tables = text('test/sim/check/rules.cpp')
    rules = re.findall(r'^    \{"([a-z0-9-]+)",', tables, re.MULTILINE)
    code = text('test/sim/check/*.cpp', 'test/sim/judge/*.cpp', 'test/sim/exec/*.cpp', without='rules.cpp')
    tests = text('test/sim/unit/*', 'test/sim/defects/*', without='.py')
    for rule in rules:
        if f'"{rule}"' not in code:
            yield f'rule {rule}: no code reports it'
        if f'"{rule}"' not in tests:
            yield f'rule {rule}: no test expects it'
    for rule in re.findall(r'\b(?:rule|finding|remark)\("([a-z0-9-]+)"', code):
        if rule not in rules:
            yield f'rule {rule}: in no table'

    schedule = text('test/sim/schedule/schedule.cpp')
    for mode in re.findall(r'^    \{\{"([a-z-]+)"', schedule, re.MULTILINE):
        if f'"{mode}"' not in tests:
            yield f'schedule {mode}: no test names it'
    headers = text('test/sim/schedule/*.h')
    classes = re.findall(r'^class (\w+) : public (\w+)', headers, re.MULTILINE)
    for name, _ in classes:
        is_base = any(base == name for _, base in classes)
        if not is_base and not re.search(rf'make<{name}\b|unseeded<{name}>', schedule):
            yield f'class {name}: no mode makes it'

    handlers = text('test/sim/exec/*', 'test/sim/check/*', 'test/sim/decode/*.cpp')
    for name in re.findall(r'^X\((\w+), "', text('test/sim/decode/qualifiers.def'), re.MULTILINE):
        if not re.search(rf'Q::{name}\b', handlers):
            yield f'qualifier {name}: nothing asks for it'

    listed = re.search(r'kOpcodes = .*?\}\);', text('test/sim/alu/alu.cpp'), re.DOTALL)[0]
    resolved = set(re.findall(r'\bop(?:code)? == "([a-z0-9.]+)"', text('test/sim/alu/*.cpp')))
    for opcode in sorted(resolved):
        if f'"{opcode}"' not in listed:
            yield f'opcode {opcode}: not in kOpcodes of alu/alu.cpp, so no resolver is asked for it'
    for page in ('README.md', 'test/EVIDENCE.md'):
        if not re.search(rf'\b{len(rules)}\s+rules\b', text(page)):
            yield f'{page}: does not say that there are {len(rules)} rules'

    # The front page sums up what EVIDENCE.md lists of Blackwell's kernels of two products and of one: bugs planted by
    # hand, all found, and systematic edits.
    def numbers(page, pattern):
        match = re.search(pattern.replace('#', r'([\d,]+)'), ' '.join(text(page).split()))
        return [int(number.replace(',', '')) for number in match.groups()] if match else []

    front = numbers('README.md', 'Of # changes planted .*? it found #; # are equivalent')
    campaign = '# of # variants .*? # systematic edits .*?: # found, .*?, # equivalent'
    listed = [numbers('test/EVIDENCE.md', begin + campaign)
              for begin in ('for Blackwell, other work .*?', r'\*\*The same in kernels of one product.*?')]
    if len(front) != 3 or any(len(each) != 5 for each in listed):
        yield 'README.md or test/EVIDENCE.md: the planted changes were not found'
    else:
        known_found, known, edits, found_edits, equivalent = map(sum, zip(*listed))
        if front != [known + edits, known_found + found_edits, equivalent] or found_edits + equivalent != edits:
            yield f'README.md counts planted changes as {front}, test/EVIDENCE.md as {listed}'
    if min(len(rules), len(classes), len(resolved)) == 0:
        yield 'a table was not found: this test does not know how it is written any more'


found = list(orphans())
print('\n'.join(found) or 'no orphans')
sys.exit(1 if found else 0)
