#!/usr/bin/env python3
"""Fails when a comment of kernel/, ptx/, host/ or test/sim names what is not there: a file, or an identifier that no
code of the repository has. An identifier is a word with an underscore, with a capital inside it, before `()`, or
between backticks.
"""
import pathlib
import re
import sys

HOUSES = ('kernel', 'ptx', 'host', 'test/sim')
C = {'.h', '.hpp', '.cuh', '.cu', '.cpp', '.c', '.def', '.inc'}
SHELL = {'.py', '.cmake', '.txt', '.sh'}
FILE = re.compile(r'(?<![\w*])(?:[\w-]+/)*[\w-]+\.(?:h|cuh|cu|cpp|c|py|md|cmake|def|json|abi|txt|svg)\b')
WORD = re.compile(r'[A-Za-z_]\w*')
NAME = re.compile(r'\w*[a-z0-9]_\w+|[a-z]+[0-9]*[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Z]+_[A-Z_]+')
CALL = re.compile(r'(\w+)\(\)|`([A-Za-z_]\w*)`')
COMPOSED = re.compile(r'm\d+n\d+k\d+\w*|x[0-9A-F]+|[A-Z_]+_')  # instances, hexadecimal numbers, beginnings of names

# What comments name that is not ours: headers, functions and settings of CUDA, CMake and Python, units, authors whose
# pages are quoted, symbols of formulas, and words that stand for any name.
FOREIGN = set("""
__managed__ a_k b_k char_size CMAKE_UNITY_BUILD CUDA_LAUNCH_BLOCKING cuMemGetAddressRange cuMemMap dot16_g
down_proj dualgemm_FOLDER FILE_NAME KiB L__info_string12 MoE name_general name_plain PyBUF_RECORDS_RO QuickRunCUDA
SemiAnalysisAI SiTU sm_110 source_NAME sum_g sum_k U4_ALIGN16B
""".split())
FOREIGN_FILES = {'driver_types.h', 'cudaTypedefs.h', 'cuda_runtime_api.h', 'B300_all_attributes.txt',
                 'B300_PIPE_CATALOG.md', '09_gpc_count.md', 'NVFP4_CUTEDSL_THROTTLE_DEEP_DIVE.md', 'kernel.cu',
                 'config.json'}


def parts(path):
    """The comments of a file, by line, and its code."""
    comments, code = [], []
    mark = re.compile(r'(?:^|\s)#(?!\w)(.*)$' if path.suffix in SHELL else r'(?://|/\*|^ *\* )(.*)$')
    for number, line in enumerate(path.read_text(encoding='utf-8').split('\n'), 1):
        found = mark.search(line)
        if found: comments.append((number, found.group(1)))
        code.append(line[:found.start()] if found else line)
    return comments, '\n'.join(code)


def unknown(text, files, words):
    for name in FILE.findall(text):
        there = any(f'/{file}'.endswith((f'/{name}', f'/{name}.gz')) for file in files)
        if not there and name not in FOREIGN_FILES: yield name
    text = FILE.sub(' ', text)
    named = [word for word in WORD.findall(text) if NAME.fullmatch(word)]
    named += [word for pair in CALL.findall(text) for word in pair if word]
    yield from dict.fromkeys(word for word in named if word not in words and not COMPOSED.fullmatch(word))


def main(root):
    def is_source(path):
        return path.is_file() and not any(part.startswith(('build', '.')) for part in path.relative_to(root).parts)

    paths = [path for path in root.glob('**/*') if is_source(path)]
    files = {str(path.relative_to(root)) for path in paths}
    words = {path.name.split('.')[0] for path in paths} | FOREIGN
    comments = {}
    for path in paths:
        if path.suffix not in C | SHELL and path.name != 'Makefile': continue
        comments[path], code = parts(path)
        if path == pathlib.Path(__file__).resolve(): continue
        words.update(WORD.findall(code))
    # Enumerators without what all of their kind begin with: INVALID_VALUE is DUALGEMM_STATUS_INVALID_VALUE.
    words.update(word.split('_', 2)[2] for word in list(words) if re.match(r'DUALGEMM_[A-Z]+_', word))
    faults = 0
    for path in sorted(comments):
        name = path.relative_to(root)
        if not str(name).startswith(HOUSES): continue
        for number, text in comments[path]:
            for word in unknown(text, files, words):
                print(f'{name}:{number}: a comment names {word}, which is not there')
                faults += 1
    return 1 if faults else 0


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
