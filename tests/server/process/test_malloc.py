"""Memory that a server process has freed goes back to the system."""

import platform
import subprocess
import sys

import pytest

MIB = 1024 * 1024
# Each freed block lies between two that are in use, so that the heap cannot shrink.
PROGRAM = """
import os
from pathlib import Path
from musicsvc.server.process import resources

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

resources.return_large_blocks()
began = resident()
blocks, between = [], []
for _ in range(1_000):
    blocks.append(b"x" * 100_000)
    between.append(b"x" * 1_000)
full = resident()
del blocks
print(full - began, resident() - began)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no mallopt")
def test_freed_blocks_of_100_kb_go_back_to_the_system_though_smaller_ones_stay() -> None:
    output = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    full, left = map(int, output.stdout.split())
    assert full > 90 * MIB
    assert left < 20 * MIB
