"""Run queries over Parquet files: DuckDB in this process, Spark, or ClickHouse; and what differs in their SQL."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from musicsvc import extras, scratch
from musicsvc.errors import Failure

MEMORY = "1GB"
BATCH = 10_000  # rows
LOCAL_MASTER = "local[*]"
SPARK_SETTINGS = {
    "spark.app.name": "musicsvc plays recount",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",  # no job to list the files
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
CLICKHOUSE_SETTINGS = {
    "join_use_nulls": 1,  # these two as in standard SQL
    "cast_keep_nullable": 1,
    "max_query_size": 1 << 28,  # bytes, for the names of all files
    "max_bytes_before_external_group_by": 1 << 29,
    "max_bytes_before_external_sort": 1 << 29,
}
ONLY_HERE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


class Dialect(NamedTuple):
    """Templates of SQL expressions.

    - `quotient`: `{0}` divided by `{1}`, rounded down.
    - `micros`: microseconds since 1970 of the timestamp `{0}`.
    - `parquet`: the rows of Parquet files: `{names}` as a list of texts, or `{pattern}`, or that as `{identifier}`.
    """

    quotient: str
    micros: str = "{0}"
    parquet: str = ""

    def source(self, folder: Path, paths: Sequence[str]) -> str:
        """Return SQL for the rows of files in the folder, to put after FROM."""
        names = ", ".join(f"'{folder / path}'" for path in paths)
        within = paths[0] if len(paths) == 1 else f"{{{','.join(paths)}}}"
        pattern = f"{folder}/{within}"
        return self.parquet.format(names=names, pattern=pattern, identifier=pattern.replace("`", "``"))


STORED = Dialect(quotient="({0} / {1})")  # of this database, SQLite or PostgreSQL
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


class Engine(NamedTuple):
    """Runs SQL in its dialect. `rows`: yields the rows of a query."""

    dialect: Dialect
    rows: Callable[[str], Iterator[Sequence[Any]]]


@contextmanager
def duckdb() -> Iterator[Engine]:
    """Start DuckDB with bounded memory; what does not fit goes to temporary files."""
    with extras.required("parquet"):
        import duckdb as library  # noqa: PLC0415 - an extra
    with scratch.folder(None) as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY,
            "temp_directory": str(folder),
            "autoinstall_known_extensions": False,
            "preserve_insertion_order": False,
        }
        with library.connect(":memory:", config=config) as connection:

            def rows(statement: str) -> Iterator[Sequence[Any]]:
                connection.execute(statement)
                while batch := connection.fetchmany(BATCH):
                    yield from batch

            yield Engine(DUCKDB, rows)


@contextmanager
def spark(master: str | None) -> Iterator[Engine]:
    """Connect to a Spark master, such as `spark://host:7077`, or start Spark on this machine.

    Raises `Failure` if Spark cannot be started or stops.
    """
    with extras.required("spark"):
        from py4j.protocol import Py4JError  # noqa: PLC0415 - an extra
        from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra
        from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra
    settings = SPARK_SETTINGS | ({} if master else ONLY_HERE)
    try:
        session = SparkSession.builder.master(master or LOCAL_MASTER).config(map=settings).getOrCreate()
    except (PySparkException, Py4JError) as error:
        reason = " ".join(str(error).split("\n")[:2])  # the second line has the cause
        raise Failure(f"Spark could not be started. It needs Java 17 or newer, and its master: {reason}") from None
    try:
        yield Engine(SPARK, lambda statement: iter(session.sql(statement).toLocalIterator()))
    finally:
        session.stop()


@contextmanager
def clickhouse() -> Iterator[Engine]:
    """Start ClickHouse in this process (chDB)."""
    with extras.required("clickhouse"):
        import clickhouse_connect  # noqa: PLC0415 - an extra
    with scratch.folder(None) as folder, closing(clickhouse_connect.get_client(dsn=f"chdb://{folder}/data")) as client:

        def rows(statement: str) -> Iterator[Sequence[Any]]:
            with client.query_rows_stream(statement, settings=CLICKHOUSE_SETTINGS) as found:
                yield from found

        yield Engine(CLICKHOUSE, rows)
