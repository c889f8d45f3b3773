"""Memory that a server process has freed goes back to the system."""

import platform
import subprocess
import sys

import apsw
import pytest

from musicsvc.server.app import return_free_memory
from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store

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


FRAGMENTED = """
import asyncio, os
from pathlib import Path
from musicsvc.server.process import resources

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

blocks = [bytes(40_000) for _ in range(2_000)]
blocks = [block for at, block in enumerate(blocks) if at % 10 == 0]
before = resident()
asyncio.run(resources.return_free_memory())
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no malloc_trim")
def test_pages_that_are_free_between_blocks_go_back_to_the_system_when_asked() -> None:
    output = subprocess.run([sys.executable, "-c", FRAGMENTED], check=True, capture_output=True, text=True)
    assert int(output.stdout) > 40 * MIB


@pytest.mark.only_on("sqlite")
async def test_the_page_cache_of_the_writer_is_emptied(store: Store) -> None:
    def cached() -> int:
        return int(sql.current().connection().status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0])

    store.write(
        lambda: sql.run("CREATE TABLE filled AS SELECT randomblob(4000) FROM json_each(?)", str([0] * 1000))
    ).result()
    full = store.write(cached).result()
    await return_free_memory(store)
    left = store.write(cached).result()
    assert full > 4 * MIB
    assert left < MIB // 4
