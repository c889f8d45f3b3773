"""Read a listening history, or all of those in a zip archive."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from musicsvc.errors import Failure
from musicsvc.store.importing.files import histories
from musicsvc.store.importing.files.lines import recode, unreadable
from musicsvc.store.importing.files.records import LONGEST_ROW, TOO_LONG, Record
from musicsvc.store.importing.files.unpacking.rows import from_record, weight

ROWS = 200  # between two reports of the position


def parts(file: str, folder: str, options: dict[str, Any]) -> Iterator[Any]:
    """Yield the size of the history, then its rows, and the remarks on it. Raises Failure if it cannot be read."""
    path, place = Path(file), Path(folder)
    read = path
    try:
        if options["encoding"] is not None:
            read = recode(path, place, options["encoding"])
        with histories.open_here(read, place, options["form"], options["largest"], zipped=options["zipped"]) as reader:
            yield {"size": reader.size, "headings": None}
            for count, record in enumerate(reader, 1):
                yield from_record(_bounded(record))
                if count % ROWS == 0:
                    yield {"position": reader.position}
            yield {"position": reader.size, "remarks": [*map(list, reader.remarks)]}
    except OSError as error:  # of files in the folder: the disk is full
        raise unreadable(path, error) from None
    except Failure as failure:
        raise Failure(failure.message.replace(str(read), str(path))) from None


def _bounded(record: Record) -> Record:
    long = weight(record.values) > LONGEST_ROW
    return record._replace(values={}, fault=TOO_LONG, note=None) if long else record
