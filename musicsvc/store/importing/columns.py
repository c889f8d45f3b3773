"""Map the columns of an imported file to the fields of a row, and parse the cells of the fields."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from musicsvc.errors import Failure, Invalid
from musicsvc.store.importing import values
from musicsvc.wording import cut

MOST_LISTED = 50  # columns
MAPPED, EXACT = "set by --map", "the name of the field"
Parse = Callable[[Any], Any]


class UnclearError(Failure):
    """The columns of a file do not say enough. `what`: the reason, without the remedy on the command line."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what} {remedy}")
        self.what = what


class Field(NamedTuple):
    """A field of rows. `parse` raises ValueError with the reason why a cell is invalid. It ignores empty cells.

    If `several` is true, several columns can fill the field, and `parse` gets a list of their cells.
    """

    parse: Parse
    several: bool = False
    is_name: bool = False  # control characters are dropped from its cells
    counted: str = ""  # the kind of item that counts as refused if the cell is invalid
    examples: tuple[str, str] | None = None  # cells of two rows, if the field is in the template of a file


@dataclass(slots=True)
class Cells:
    """The parsed cells of a row, and the reasons why others are invalid, both by field. Empty cells are in neither."""

    values: dict[str, Any] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # keys of summary.NOTES

    def refuse(self, name: str, reason: str, *, when: bool) -> None:
        """If `when` is true, add `reason` to the faults of the row, unless the field `name` already has a fault."""
        if when:
            self.faults.setdefault(name, reason)

    def reasons(self, names: Iterable[str]) -> str:
        """Return the faults of these fields in one text."""
        return "; ".join(f"{name} {self.faults[name]}" for name in names if name in self.faults)


class Guess(NamedTuple):
    """A guess about a column: its field (None: it is not used), why, and how its cells are written if that matters.

    `parse` reads the cells, if they need another parser than that of the field.
    """

    column: str
    field: str | None
    why: str
    written: str | None = None
    parse: Parse | None = None

    @property
    def guessed(self) -> bool:
        """True if the user may want to look at the guess."""
        return self.field is not None and (self.why not in {EXACT, MAPPED} or self.written is not None)


class Columns:
    """Maps each column of a file to a field: by `pairs` (`column=field`), as guessed, or by the name of the field.

    Raises Invalid for a malformed or conflicting pair.
    """

    def __init__(self, fields: Mapping[str, Field], pairs: Iterable[str]) -> None:
        self.fields = fields
        self.mapped: dict[str, str] = {}
        self.guesses: list[Guess] = []
        self._parsers = {name: each.parse for name, each in fields.items()}
        self._found: dict[str, str | None] = {}  # fields by column, of the rows read so far
        for pair in pairs:
            column, sign, name = pair.rpartition("=")
            if not sign or not column:
                raise Invalid({"--map": f"{cut(pair)!r} is not in the form column=field."})
            if name and name not in fields:
                raise Invalid({"--map": f"There is no field {cut(name)!r}. The fields are {', '.join(fields)}."})
            if name in self.mapped.values() and not fields[name].several:
                raise Invalid({"--map": f"Only one column can fill the field {name}."})
            self.mapped[column] = name

    def use(self, guesses: Iterable[Guess]) -> None:
        """Read the columns as guessed."""
        self.guesses = list(guesses)
        self._found = {each.column: each.field for each in self.guesses}
        self._parsers |= {each.field: each.parse for each in self.guesses if each.field and each.parse}

    def check(self, names: list[str], required: Mapping[str, str]) -> None:
        """Raise Failure if the file's columns (`names`) lack a mapped column, or a column for a required field.

        `required`: for each such field, what else the user can do.
        """
        more = len(names) - MOST_LISTED
        listed = f"The columns are {', '.join(map(cut, names[:MOST_LISTED]))}{f' and {more:,} more' * (more > 0)}."
        known = {*names}
        for column in self.mapped:
            if column not in known:
                raise Failure(f"There is no column {cut(column)!r}. {listed}")
        found = {filled for name in names if (filled := self.field(name))}
        missing = [each for each in required if each not in found]
        if missing:
            also = required[missing[0]]
            remedy = f"Name one with --map COLUMN={missing[0]}{also}. {listed}"
            raise UnclearError(f"No column has the {missing[0]}.", remedy)

    def field(self, column: str) -> str | None:
        """Return the field that the column fills, or None if the column is ignored."""
        if column in self.mapped:
            return self.mapped[column] or None
        if column in self._found:
            return self._found[column]
        free = column in self.fields and column not in {*self.mapped.values(), *self._found.values()}
        return column if free else None

    def unused(self, names: list[str]) -> list[str]:
        return [name for name in names if self.field(name) is None]

    def read(self, row: Mapping[str, Any], blanks: Collection[str]) -> Cells:
        """Parse a row, given as cells by column. Cells that equal a text in `blanks` are empty."""
        found: dict[str, Any] = {}
        notes: tuple[str, ...] = ()
        for column, value in row.items():
            if column in self._found:
                name = self._found[column]
            else:
                name = self._found[column] = self.field(column)
            if name is None or value is None or value == "" or value in blanks:
                continue
            if self.fields[name].is_name and (cleaned := values.without_controls(value)) != value:
                value, notes = cleaned, ("controls_dropped",)  # noqa: PLW2901 - cleaned
            if not self.fields[name].several:
                found[name] = value
            elif name in found:
                found[name].append(value)
            else:
                found[name] = [value]
        cells = Cells(found, notes=notes)
        for name, value in found.items():
            try:
                found[name] = self._parsers[name](value)
            except ValueError as error:
                found[name] = None
                cells.faults[name] = str(error)
        return cells
