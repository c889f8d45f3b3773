"""The report of a run: a line for each break as it is judged, with a patch where it survived."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from mutation.running import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mutation.breaks import Key
    from mutation.running import Result


def show(results: Iterable[Result], total: int, at_least: float, survivors: Path) -> int:
    """Print the results as they come, and the sum; 1 where too few breaks were caught."""
    survived: list[Result] = []
    counted: Counter[Outcome] = Counter()
    for number, result in enumerate(results, 1):
        broken = result.broken
        place = f"{broken.module}:{broken.line} {broken.kind}"
        print(f"{number:4}/{total} {result.outcome:9} {result.seconds:6.1f} s  {place}  {result.test}", flush=True)
        counted[result.outcome] += 1
        if result.outcome is Outcome.SURVIVED:
            survived.append(result)
            left_out = f"; {result.left_out:.0f} s of others left out, --budget runs them" if result.left_out else ""
            print(f"     {result.tests} tests passed{left_out}\n{broken.diff}\n", flush=True)
    survivors.parent.mkdir(exist_ok=True)
    survivors.write_text(json.dumps([result.broken.key for result in survived], indent=1), "utf-8")
    caught = counted[Outcome.CAUGHT] + counted[Outcome.TIMED_OUT]
    share = 100 * caught / max(counted.total(), 1)
    print(
        f"\n{counted.total()} breaks: {caught} caught ({counted[Outcome.TIMED_OUT]} of them by their time),"
        f" {len(survived)} survived: {share:.1f} % caught, {at_least:g} % wanted"
    )
    return int(share < at_least)


def survivors(path: Path) -> set[Key]:
    """The keys of the breaks that survived the last run."""
    return {tuple(key) for key in json.loads(path.read_text("utf-8"))} if path.exists() else set()
