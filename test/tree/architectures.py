#!/usr/bin/env python3
"""Fails when a file of kernel/ or host/ that architectures share names one of them, in code or in a comment. What
differs between architectures is a column of kernel/architecture.h, a field of the plan, or stands in a file of its own.
"""
import fnmatch
import pathlib
import re
import sys

# The table of architectures, and what there is once for each of them.
OF_ONE = ('kernel/architecture.h', 'kernel/instances.def', 'kernel/sm*/*', 'host/*cost_constants.h',
          'host/*cost_sm*.cpp')
NAMED = re.compile(r'\b(?:k?sm_?\d{2,3}[af]?\b|cost_sm\d+\b|Arch::k\w+|cc_major\s*[=!<>]=\s*\d+|__CUDA_ARCH__)',
                   re.IGNORECASE)


def faults(path, text):
    if any(fnmatch.fnmatchcase(path, pattern) for pattern in OF_ONE): return
    for number, line in enumerate(text.split('\n'), 1):
        for name in NAMED.findall(line): yield f'{path}:{number}: names an architecture: {name}'


def check_the_check():
    """What has to be found is found."""
    for line in ('if (plan.arch == Arch::kSm90) return;', '#include "kernel/sm100/plan.h"', '// Only on sm_90a.',
                 '// as in sm90/plan.h', 'if (device.cc_major == 9) return;', 'cost_sm100(work, machine, cost);',
                 '#if __CUDA_ARCH__ >= 1000'):
        assert list(faults('kernel/plan.h', line)), line
        assert not list(faults('kernel/sm90/plan.h', line)), line
    assert not list(faults('host/model/tiling.cpp', 'at_once * machine.sms / largest.sms; // 132 SMs, cc_major'))


def main():
    check_the_check()
    root = pathlib.Path(sys.argv[1])
    files = [f for house in ('kernel', 'host') for f in (root / house).rglob('*')
             if f.suffix in ('.h', '.cuh', '.cu', '.cpp', '.c', '.inc', '.def')]
    found = [fault for f in sorted(files) for fault in faults(str(f.relative_to(root)), f.read_text(encoding='utf-8'))]
    print('\n'.join(found) or f'{len(files)} files: none that is shared names an architecture')
    return 1 if found or not files else 0


if __name__ == '__main__':
    sys.exit(main())
