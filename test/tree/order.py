#!/usr/bin/env python3
"""Fails when an #include runs up. Every file of a house lies in a room, which is a pattern of paths, and the rooms
stand on levels. A file includes what lies in its own room or on a level below; rooms of one level do not know each
other. Headers and sources of plain C++ include no .cuh.

Where several patterns fit a path, the longest decides.
"""
import fnmatch
import pathlib
import re
import sys

# From the lowest to the highest.
SIM = [
    ['text.*', 'fault.*', 'machine.*'],
    ['mem/*'],
    ['parse/*'],
    ['engine/*'],
    ['alu/*'],
    ['decode/*'],
    ['exec/*'],
    ['launch.*'],
    ['module.cpp'],
    ['schedule/*'],
    ['check/*'],
    ['judge/*'],
    ['shim/*', 'command/*'],
]
KERNEL = [
    ['epilogue/list.h', 'stream_k.h'],
    ['architecture.h', 'params.h', 'epilogue/kinds.h'],
    ['plan.h'],
    ['convert/params.h'],
    ['boxes.h', 'convert/moe_params.h', 'instance.h', 'instance_name.h'],
    ['instances.*'],
    ['common/*'],
    ['epilogue/*'],
    ['instance_list.cuh', 'convert/*'],
    ['sm90/*', 'sm100/*'],
    ['sm90/instances/*', 'sm100/instances/*'],
]
HOST = [
    ['include/dualgemm.h'],
    ['common/*'],
    ['model/*', 'convert/*'],
    ['launch/*'],
    ['torch/*', 'report/*', 'package/*'],
]
HOST_COMMON = [
    ['text.h', 'region.*', 'sf_layout.h'],
    ['status.*', 'problem.h', 'names.h', 'rows.h'],
    ['cuda_error.*', 'structure.*', 'tensor_rules.*', 'tuning_file.*'],
    ['driver_function.*'],
    ['device*'],
]
HOST_MODEL = [
    ['cost_constants.h', 'epilogue_work.h', 'tiling.*', 'instance_kinds.*'],
    ['cost_[!c]*'],
    ['select_instance.*'],
    ['tuned.*'],
]
HOST_CONVERT = [
    ['nvfp4.*', 'rules.*'],
    ['floats.*'],
    ['conversion.*', 'moe.*', 'mxfp4.*', 'bands.*', 'quantize.cpp', 'import.cpp'],
    ['convert.*', 'convert_host.cpp', 'moe_launch.cpp', 'moe_host.cpp', 'mxfp4_launch.cpp', 'mxfp4_host.cpp'],
]
HOST_LAUNCH = [
    ['arguments.*', 'supported.*', 'prepare_a.*'],
    ['tensor_map.*', 'check_pointers.*', 'validate.*', 'load.*', 'tuning.*'],
    ['choice.*', 'launch.*', 'reference.cpp'],
    ['api.cpp'],
]
HOST_TORCH = [
    ['tensor.*', 'dlpack.h', 'python.h'],
    ['call.*', 'twin.h'],
    ['launch.*', 'convert.*', 'stack.*'],
    ['experts.cpp', 'mxfp4.cpp'],
    ['operators.*'],
    ['direct.cpp'],
]
# The tests of the simulator, which are in its folder. They know what all rooms of test/ share, and of the library the
# wrappers of instructions at most. conformance/ is on no level: it runs roles of the library's kernel, too.
SIM_TESTS = ('unit', 'defects', 'conformance')
# What only one file of host/ names: the kernel that prepares A, with its parameters and tiles.
HOST_ONLY = ('launch/prepare_a.cpp', re.compile(r'\b(?:PrepareParams|PrepareKernel|kPrepare\w+)\b'))
# house -> (folder, prefix of its own includes, levels, the other houses that it may include)
HOUSES = {
    'sim': ('test/sim', 'sim/', SIM, ()),
    'sim/unit': ('test/sim/unit', 'sim/unit/', [['*']], ('sim/', 'support/')),
    'sim/defects': ('test/sim/defects', 'sim/defects/', [['*']], ('sim/', 'support/', 'ptx/')),
    'ptx': ('ptx', 'ptx/', [['host_device.h'], ['common.cuh', 'descriptor.h'], ['*']], ()),
    'kernel': ('kernel', 'kernel/', KERNEL, ('ptx/',)),
    'host': ('host', 'host/', HOST, ('kernel/',)),
    # Inside the folders of host/, of which the line above knows the order.
    'host/common': ('host/common', 'host/common/', HOST_COMMON, ('host/', 'kernel/')),
    'host/model': ('host/model', 'host/model/', HOST_MODEL, ('host/', 'kernel/')),
    'host/convert': ('host/convert', 'host/convert/', HOST_CONVERT, ('host/', 'kernel/')),
    'host/launch': ('host/launch', 'host/launch/', HOST_LAUNCH, ('host/', 'kernel/')),
    'host/torch': ('host/torch', 'host/torch/', HOST_TORCH, ('host/include/',)),
}


def room(path, levels):
    """(level, pattern), or None."""
    fits = [(len(pattern), i, pattern) for i, patterns in enumerate(levels) for pattern in patterns
            if fnmatch.fnmatchcase(path, pattern)]
    return max(fits)[1:] if fits else None


def includes(file):
    return re.findall(r'^\s*#\s*include "([a-z]\w*/[^"]+)"', file.read_text(), re.MULTILINE)


def faults(house, files):
    """files: path in the house -> what it includes."""
    _, prefix, levels, others = HOUSES[house]
    for path, included in sorted(files.items()):
        own = room(path, levels)
        if own is None:
            yield f'{path} lies in no room: add it to test/tree/order.py'
            continue
        for name in included:
            if name.endswith('.cuh') and path.endswith(('.h', '.cpp', '.c')):
                yield f'{path} includes {name}, which is device code'
            if not name.startswith(prefix):
                if not name.startswith(others):
                    yield f'{path} includes {name}, which {house} does not know'
                continue
            other = room(name.removeprefix(prefix), levels)
            if other is None or (other != own and other[0] >= own[0]):
                yield f'{path} includes {name}, which does not lie below it'


def drawing_faults(page, files):
    """What host/SOURCES.md draws that is not there, or the other way round: folders, and in each its sources. The
    drawing comes before the first heading, and names stand in its first 25 columns."""
    drawn, folder = set(), ''
    for line in re.findall(r'^    (.{25})', page.split('\n## ')[0], re.MULTILINE):
        first, *others = line.split()
        if first.endswith('/'): folder = first
        elif line.startswith(' '): drawn.update(folder + name.removesuffix('.h') for name in [first, *others])
        else: drawn.add(first.removesuffix('.h'))
    there = {str(pathlib.PurePath(file).with_suffix('')) for file in files}
    for name in sorted(drawn ^ there):
        yield f'host/SOURCES.md {"draws" if name in drawn else "does not draw"} {name}'


def naming_faults(texts):
    """texts: path in host/ -> its text."""
    file, names = HOST_ONLY
    if not names.search(texts[file]): yield f'{file} names nothing of HOST_ONLY'
    for path, text in sorted(texts.items()):
        if path != file: yield from (f'{path} names {name}, which is for {file}' for name in names.findall(text))


def check_the_check():
    """What has to be found is found."""
    for house, path, name in [('sim', 'parse/a.h', 'sim/exec/b.h'), ('sim', 'shim/a.h', 'sim/command/b.h'),
                              ('sim', 'exec/a.h', 'kernel/params.h'), ('host', 'launch/a.cpp', 'kernel/common/b.cuh'),
                              ('host', 'common/a.h', 'host/launch/b.h'), ('host', 'model/a.h', 'host/convert/b.h'),
                              ('host', 'api.cpp', 'host/launch/b.h'), ('kernel', 'new.h', 'kernel/plan.h'),
                              ('host/launch', 'launch.h', 'host/launch/api.h'),
                              ('sim', 'exec/a.h', 'sim/unit/b.hpp'), ('sim/unit', 'a.cpp', 'kernel/plan.h'),
                              ('sim/defects', 'a.cu', 'host/launch/launch.h')]:
        assert list(faults(house, {path: [name]})), (path, name)
    assert not list(faults('sim', {'exec/a.h': ['sim/decode/b.h', 'sim/exec/c.h']}))
    assert list(naming_faults({'launch/prepare_a.cpp': ''}))
    assert list(naming_faults(dict.fromkeys(('launch/prepare_a.cpp', 'a.cpp'), 'PrepareParams params{};')))
    page = '''
    a/                       the first
      b  c.h                 of d
    include/dualgemm.h       the interface
'''
    assert not list(drawing_faults(page, ['a/b.h', 'a/b.cpp', 'a/c.h', 'include/dualgemm.h']))
    for file in ('a/d.h', 'b/b.h'): assert list(drawing_faults(page, ['a/b.h', 'a/c.h', 'include/dualgemm.h', file]))
    assert list(drawing_faults(page, ['a/b.h', 'include/dualgemm.h']))


def main():
    check_the_check()
    house, root = sys.argv[1], pathlib.Path(sys.argv[2])
    folder = root / HOUSES[house][0]
    files = {str(f.relative_to(folder)): includes(f) for f in folder.rglob('*')
             if f.suffix in ('.h', '.hpp', '.cuh', '.cu', '.cpp', '.c', '.inc', '.def')
             and not (house == 'sim' and f.relative_to(folder).parts[0] in SIM_TESTS)}
    found = list(faults(house, files))
    if house == 'host':
        found += drawing_faults((folder / 'SOURCES.md').read_text(encoding='utf-8'), files)
        found += naming_faults({path: (folder / path).read_text(encoding='utf-8') for path in files})
    print('\n'.join(found) or f'{len(files)} files, {sum(map(len, files.values()))} includes, none runs up')
    return 1 if found or not any(files.values()) else 0


if __name__ == '__main__':
    sys.exit(main())
