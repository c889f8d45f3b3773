"""Compute the table *A day of 100 million plays* of docs/scale.md from measured figures.

    python benchmarks/day.py

A test compares the page with it. Change the figures after measuring again, and the table as well.
"""

from collections.abc import Iterable

DAYS = (100_000_000, 1_000_000_000)  # plays
PEAK = 3  # of the mean, assumed
BUSY = 0.5  # of a core at the peak, chosen
KEPT, RECOUNTED = 30, 30  # days of single plays in the database, and in one recount, chosen
CONNECTIONS = 10  # of a worker: `database.connections`
POSTGRES, NODE = 67e-6, 87e-6  # CPU seconds a play, 1,000 in a request: benchmarks/nodes.py
POSTGRES_ONE, NODE_ONE = 1.9e-3, 3.1e-3  # the same with one in a request: benchmarks/nodes.py --size 1
COUNTING = 85e-6  # CPU seconds a play in which only one transaction counts: benchmarks/nodes.py
LOG = 1_213  # bytes of the write-ahead log a play: benchmarks/nodes.py
STORED = 399  # bytes a play with its figures: benchmarks/plays.py --disk --postgres
PARQUET, DUMPED = 11, 1.6e-6  # bytes and CPU seconds a play: benchmarks/dumps.py
FILE = 2_000_000  # plays in a file
SPARK = 2.2e-6  # core seconds a play: 5.5 s for five million on two cores


def column(plays: int) -> dict[str, str]:
    """Return the values of the table for this number of plays a day, by the names of its rows."""
    mean = plays / 86_400
    peak = PEAK * mean
    recounted = RECOUNTED * plays

    def cores(each: float) -> int:
        return -int(-peak * each / BUSY // 1)

    nodes = [max(2, cores(each) + 1) for each in (NODE, NODE_ONE)]
    return {
        "plays a second, mean; at the peak (3 times)": f"{mean:,.0f}; {peak:,.0f}",
        "cores of PostgreSQL, half busy: 1,000 plays in a request; one": f"{cores(POSTGRES)}; {cores(POSTGRES_ONE)}",
        "workers of nodes on a core each, half busy, one to spare: the same": f"{nodes[0]}; {nodes[1]}",
        "connections: the same": f"{nodes[0] * CONNECTIONS}; {nodes[1] * CONNECTIONS}",
        "time that one transaction counts, at the peak: 1,000 plays in a request": f"{peak * COUNTING:.0%}",
        "write-ahead log at the peak; of a day": f"{peak * LOG / 1e6:,.1f} MB/s; {plays * LOG / 1e9:,.0f} GB",
        "database, of a day; with single plays of 30 days": (
            f"{plays * STORED / 1e9:,.0f} GB; {KEPT * plays * STORED / 1e12:,.1f} TB"
        ),
        "Parquet of a day: files; size; CPU time of the dump": (
            f"{plays // FILE}; {plays * PARQUET / 1e9:,.1f} GB; {plays * DUMPED / 60:,.0f} min"
        ),
        "a recount of 30 days by Spark in 10 minutes: executors of two cores": f"{recounted * SPARK / 600 / 2:,.0f}",
    }


def table() -> Iterable[str]:
    """Yield the lines of the table."""
    columns = [column(plays) for plays in DAYS]
    yield f"| | {' | '.join(f'{plays / 1e6:,.0f} million plays a day' for plays in DAYS)} |"
    yield "|---" * (1 + len(DAYS)) + "|"
    for row in columns[0]:
        yield f"| {row} | {' | '.join(each[row] for each in columns)} |"


if __name__ == "__main__":
    print("\n".join(table()))
