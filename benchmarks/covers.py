"""Milliseconds of a cover of each template, of a thumbnail and of an avatar: medians, and the memory that stays.

python benchmarks/covers.py
"""

import gc
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from musicsvc.reports.art import avatars, covers

ROUNDS = 15
TITLES = ("The Quiet Hours", "Белые ночи над Невой", "أغنية الصباح", "क्षितिज के पार", "夜明けのクラッシュ")
LONGEST = (("Lighthouse keepers " * 7)[:120], ("موسيقى " * 20)[:120], "春江花月夜" * 24)


def usual(template_id: int, number: int) -> bytes:
    """Draw a cover with a short title."""
    return covers.cover(template_id, f"{TITLES[number % len(TITLES)]} {number}", "Mara Quint")


def longest(template_id: int, number: int) -> bytes:
    """Draw a cover with as much text as allowed."""
    text = LONGEST[number % len(LONGEST)]
    return covers.cover(template_id, f"{number} {text}"[:120], text)


def medians(draw: Callable[[int], bytes]) -> str:
    """Return wall and CPU milliseconds over the rounds; every round draws a new picture."""
    clock, processor = [], []
    for number in range(ROUNDS):
        began, worked = time.perf_counter(), time.process_time()
        draw(number)
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - worked)
    return f"{statistics.median(clock) * 1000:6.1f} ms   {statistics.median(processor) * 1000:6.1f} ms of processor"


def resident() -> float:
    """Return the resident megabytes of the process (Linux)."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4096 / 1e6


def main() -> None:
    """Print one line per kind of picture."""
    covers.cover(1, "warm", "up")
    warm = resident()
    for template in covers.templates():
        print(f"{template.name:10} {medians(partial(usual, template.id))}")
        print(f"  longest  {medians(partial(longest, template.id))}")
    print(f"thumbnail  {medians(lambda number: covers.thumbnail(number % len(covers.templates()) + 1))}")
    print(f"avatar     {medians(lambda number: avatars.avatar(f'{TITLES[number % len(TITLES)]} {number}', number))}")
    print(f"memory     {warm:.0f} MB warm, {resident():.0f} MB after {ROUNDS * 18} pictures")


if __name__ == "__main__":
    main()
