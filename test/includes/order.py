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
    ['epilogue/list.h'],
    ['architecture.h', 'params.h', 'epilogue/kinds.h'],
    ['plan.h'],
    ['boxes.h', 'convert/params.h', 'instance.h', 'instance_name.h'],
    ['instances.*'],
    ['common/*'],
    ['epilogue/*'],
    ['instance_list.cuh', 'convert/*'],
    ['sm90/*', 'sm100/*'],
    ['sm90/instances/*', 'sm100/instances/*'],
]
HOST = [
    ['include/dualgemm.h', 'text.h', 'region.*', 'sf_layout.h', 'nvfp4.*', 'cost_constants.h', 'epilogue_work.h'],
    ['status.*', 'problem.h', 'names.h', 'rows.h', 'floats.*'],
    ['cuda_error.*', 'structure.*', 'tensor_rules.*', 'tiling.*', 'instance_kinds.*'],
    ['driver_function.*'],
    ['arguments.*', 'supported.*', 'cost_[!c]*', 'device*', 'conversion.*', 'quantize.cpp', 'import.cpp'],
    ['tensor_map.*', 'check_pointers.*', 'validate.*', 'select_instance.*', 'convert.*', 'convert_host.cpp'],
    ['choice.*', 'launch.*', 'reference.cpp'],
    ['api.cpp'],
]
# house -> (folder, prefix of its own includes, levels, the other houses that it may include)
HOUSES = {
    'sim': ('test/sim', 'sim/', SIM, ()),
    'ptx': ('ptx', 'ptx/', [['host_device.h'], ['common.cuh', 'descriptor.h'], ['*']], ()),
    'kernel': ('kernel', 'kernel/', KERNEL, ('ptx/',)),
    'host': ('host', 'host/', HOST, ('kernel/',)),
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
            yield f'{path} lies in no room: add it to test/includes/order.py'
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


def check_the_check():
    """What has to be found is found."""
    for house, path, name in [('sim', 'parse/a.h', 'sim/exec/b.h'), ('sim', 'shim/a.h', 'sim/command/b.h'),
                              ('sim', 'exec/a.h', 'kernel/params.h'), ('host', 'api.cpp', 'kernel/common/wait.cuh'),
                              ('host', 'status.h', 'host/launch.h'), ('kernel', 'new.h', 'kernel/plan.h')]:
        assert list(faults(house, {path: [name]})), (path, name)
    assert not list(faults('sim', {'exec/a.h': ['sim/decode/b.h', 'sim/exec/c.h']}))


def main():
    check_the_check()
    house, root = sys.argv[1], pathlib.Path(sys.argv[2])
    folder = root / HOUSES[house][0]
    files = {str(f.relative_to(folder)): includes(f) for f in folder.rglob('*')
             if f.suffix in ('.h', '.cuh', '.cu', '.cpp', '.c', '.inc', '.def')}
    found = list(faults(house, files))
    print('\n'.join(found) or f'{len(files)} files, {sum(map(len, files.values()))} includes, none runs up')
    return 1 if found or not any(files.values()) else 0


if __name__ == '__main__':
    sys.exit(main())
