"""The few SQL expressions that differ between the engines. `statements.py` is the same for all of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Dialect(NamedTuple):
    """Templates of SQL expressions.

    - `micros`: microseconds since 1970 of the timestamp `{0}`. `quotient`: `{0}` divided by `{1}`, rounded down.
    - `parquet`: the rows of Parquet files: `{names}` as a list of texts, or `{pattern}`, or that as `{identifier}`.
    """

    micros: str
    quotient: str
    parquet: str

    def source(self, folder: Path, paths: Sequence[str]) -> str:
        """Return SQL for the rows of files in the folder, to put after FROM."""
        names = ", ".join(f"'{folder / path}'" for path in paths)
        within = paths[0] if len(paths) == 1 else f"{{{','.join(paths)}}}"
        pattern = f"{folder}/{within}"
        return self.parquet.format(names=names, pattern=pattern, identifier=pattern.replace("`", "``"))


DUCKDB = Dialect(
    micros="epoch_us({0})",
    quotient="({0} // {1})",
    parquet="read_parquet([{names}], hive_partitioning = false)",
)
SPARK = Dialect(
    micros="unix_micros(CAST({0} AS TIMESTAMP))",
    quotient="({0} DIV {1})",
    parquet="parquet.`{identifier}`",
)
CLICKHOUSE = Dialect(
    micros="toUnixTimestamp64Micro({0})",
    quotient="intDiv({0}, {1})",
    parquet="file('{pattern}', Parquet)",
)
