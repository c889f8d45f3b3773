"""The parts that all kinds of cells share: notations, and the decision of a column on them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

LONGEST = 64  # characters of a cell that is no text
Parse = Callable[[Any], Any]


class Notation(NamedTuple):
    """A way to write a kind of cell. `examples`: cells with their plain forms, such as `3:45 = 225000 | 0:07 = 7000`.

    `read` returns the value of a text, or None if it is written otherwise, and raises ValueError for one that is wrong.
    `form`: the decision of a column that the notation needs. `source`: who writes so.
    """

    name: str
    read: Callable[[str], Any]
    examples: str = ""
    form: str = ""
    source: str = ""

    @property
    def cells(self) -> dict[str, str]:
        """The examples: plain forms by cell."""
        found = (each.rpartition(" = ") for each in self.examples.split(" | ") if each)
        return {cell: plain.strip() for cell, _, plain in found}


class Sample(NamedTuple):
    """The lines and cells of a column that its first rows have.

    `ours`: it is named after the field, or was mapped to it. `unit`: the milliseconds of the unit that its heading
    names, or 0. `order`: of days and months, as the user says. `zoned`: the heading, or a column beside, names a zone
    other than UTC. `listed`: its heading may be that of places in a list, whose rows are of several albums.
    """

    cells: Sequence[tuple[int, Any]]
    unit: int = 0
    ours: bool = False
    order: str | None = None
    zoned: bool = False
    listed: bool = False


class Fitted(NamedTuple):
    """The decision how a column is read. `written`: how its cells are written, if that is no matter of course.

    `unclear`: line and text of a cell that can mean two things, as long as the user does not say which.
    """

    parse: Parse
    written: str | None = None
    unclear: tuple[int, str] | None = None


Fit = Callable[[Sample], Fitted]


class PartlyError(ValueError):
    """A cell of which a part is left out. `value`: the meaning of the rest."""

    def __init__(self, reason: str, value: Any) -> None:
        super().__init__(reason)
        self.value = value


def read(notations: Iterable[Notation], text: str, form: str) -> Any:
    """Return what a text means in the notations that need no form or this one, or None if it is in none of them."""
    if len(text) <= LONGEST:
        for each in notations:
            if each.form in {"", form} and (found := each.read(text)) is not None:
                return found
    return None


def fault_of(parse: Parse, value: Any) -> str | None:
    """Return why a cell cannot be read, or None if it can, or a part of it."""
    try:
        parse(value)
    except PartlyError:
        return None
    except ValueError as error:
        return str(error)
    return None
