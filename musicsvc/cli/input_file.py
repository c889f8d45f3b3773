"""Read input files. What can be read only once, such as stdin, is copied to a temporary file before."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from musicsvc import scratch
from musicsvc.errors import Failure

STDIN = Path("-")
LARGEST = 1024**3  # bytes of a copy
PIECE = 1024**2


@contextmanager
def seekable(file: Path) -> Iterator[Path]:
    """Yield the path of a file that can be read several times. Failures name the file, whatever this path is.

    Raises Failure for stdin or a pipe with more than LARGEST bytes.
    """
    if file != STDIN and (file.is_file() or not file.exists() or file.is_dir()):
        yield file
        return
    named = "stdin" if file == STDIN else str(file)
    with scratch.folder(None) as folder:
        copy = folder / "stdin"
        _copy(file, copy, named)
        try:
            yield copy
        except Failure as failure:
            failure.here = failure.here.replace(str(copy), named)
            failure.message = failure.message.replace(str(copy), named)
            raise


def _copy(file: Path, copy: Path, named: str) -> None:
    left = LARGEST
    opened = nullcontext(sys.stdin.buffer) if file == STDIN else file.open("rb")
    with opened as source, copy.open("xb") as target:
        while piece := source.read(PIECE):
            left -= len(piece)
            if left < 0:
                raise Failure(f"{named} has more than {LARGEST // 1024**3} GiB. Write it to a file, and import that.")
            target.write(piece)
