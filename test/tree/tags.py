#!/usr/bin/env python3
"""Fails when a test case has no tag: by their tags the cases of a subject are run together."""
import pathlib
import re
import sys

CASE = re.compile(r'^[ \t]*((?:TEMPLATE_\w*)?TEST_CASE\w*)\s*\(', re.MULTILINE)
# What stands between the parenthesis and the tags: a class, for a method, and a name of literals and macro parameters.
NAME = r'(?:"(?:[^"\\\n]|\\.)*"|#?\w+|\s)+'
TAGGED = re.compile(rf'{NAME},\s*"(?:\[[^][]+\])+"')
METHOD_TAGGED = re.compile(rf'\s*[\w:]+\s*,{TAGGED.pattern}')


def faults(path, text):
    for case in CASE.finditer(text):
        tagged = METHOD_TAGGED if '_METHOD' in case[1] else TAGGED
        if not tagged.match(text, case.end()):
            yield f'{path}:{text.count(chr(10), 0, case.start()) + 1}: a test case without a tag'


def check_the_check():
    """What has to be found is found."""
    for text in ['TEST_CASE("a") {', '\nTEST_CASE("a, \\"[b]\\"", "") {', 'TEMPLATE_TEST_CASE("a", "", int) {',
                 'TEMPLATE_LIST_TEST_CASE("a", "", List) {', 'TEST_CASE_METHOD(Fixture, "a") {']:
        assert len(list(faults('', text))) == 1, text
    for text in ['TEST_CASE("a"\n  "b",\n  "[c][d]") {', '  TEST_CASE("a " #b ": " c, "[d]") {',
                 'TEMPLATE_TEST_CASE("a", "[b]", int) {', 'TEST_CASE_METHOD(Fixture, "a", "[b]") {']:
        assert not list(faults('', text)), text


check_the_check()
root = pathlib.Path(sys.argv[1])
texts = {f.relative_to(root): f.read_text() for f in sorted((root / 'test').rglob('*'))
         if f.suffix in ('.h', '.cuh', '.cu', '.cpp', '.inc', '.def')}
found = [fault for path, text in texts.items() for fault in faults(path, text)]
print('\n'.join(found) or f'{sum(len(CASE.findall(text)) for text in texts.values())} test cases, each has a tag')
sys.exit(1 if found else 0)
