"""The columns of an imported file: which field each fills, as the user says or as the file tells, and their cells."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from musicsvc.errors import Failure, Invalid
from musicsvc.store.importing import headings, joining
from musicsvc.store.importing.cells.blanks import has_objects, is_blank
from musicsvc.store.importing.cells.names import unmarked, without_controls
from musicsvc.store.importing.cells.notations import Fit, Fitted, Parse, PartlyError, Sample, fault_of
from musicsvc.store.importing.dividing import NONE, Dividing, Rules
from musicsvc.store.importing.files.records import Reader, Record, Step, UnclearError, sample
from musicsvc.wording import cut, some_of

MOST_LISTED = 50  # columns
FEATURED, SUMS = "featured_artist", "plays"  # all columns for it fill it; its column is never left unused
UNREAD = "this import does not read them"
MAPPED, EXACT, NO_FIELD = "set by --map", "the name of the field", "no field has such a name"
NESTED = "they have objects; write what is in them as values of rows"
MOST_KNOWN, LONGEST_KNOWN = 2048, 64  # texts of a column whose meaning is kept, and their characters
VARIED = 0.9  # of the first cells of a column that are the only ones of their text, so that none is kept
CALLED = {"played_at": "time of the play"}  # a field whose name makes no sentence
DATE_FORMATS = {"YYYY-MM-DD": "YMD", "DD.MM.YYYY": "DMY", "DD/MM/YYYY": "DMY", "MM/DD/YYYY": "MDY"}


class Field(NamedTuple):
    """A field of rows. `parse` raises ValueError with the reason why a cell is invalid. It ignores empty cells.

    If `several` is true, several columns can fill the field, and `parse` gets a list of their cells. If `optional` is
    true, an invalid cell is left out, and the row stays. `fit` decides how a column is read. `former`: an older name.
    `varied`: hardly two cells are equal.
    """

    parse: Parse
    several: bool = False
    is_name: bool = False  # control characters are dropped from its cells
    counted: str = ""  # the kind of item that counts as refused if the cell is invalid
    examples: tuple[str, str] | None = None  # cells of two rows, if the field is in the template of a file
    optional: bool = False
    fit: Fit | None = None
    former: str = ""
    varied: bool = False


def ignored(_: Any) -> None:
    """Read nothing: the field is one of other imports of the same file."""


@dataclass(slots=True)
class Cells:
    """The parsed cells of a row, and the reasons why others are invalid, both by field. Empty cells are in neither.

    `left_out`: field, reason and text of each invalid cell of an optional field.
    """

    values: dict[str, Any] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    left_out: list[tuple[str, str, str]] = field(default_factory=list)
    notes: tuple[str, ...] = ()  # keys of summary.NOTES

    def refuse(self, name: str, reason: str, *, when: bool) -> None:
        """If `when` is true, add `reason` to the faults of the row, unless the field `name` already has a fault."""
        if when:
            self.faults.setdefault(name, reason)

    def leave_out(self, name: str, reason: str, value: Any) -> None:
        """Count a cell, or a part of it, as left out."""
        self.left_out.append((name, reason, cut(shown(value))))

    def reasons(self, names: Iterable[str]) -> str:
        """Return what is wrong with the cells of these fields in one text."""
        found = {name: reason for name, reason, _ in self.left_out} | self.faults
        return "; ".join(f"{name} {found[name]}" for name in names if name in found)


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


@dataclass(slots=True)
class Unread:
    """A column with a heading that is known for a field, but with cells that cannot be read as such: it is not used.

    `count`: its cells so far. `line`, `example`: the first one that cannot be read.
    """

    column: str
    field: str
    line: int
    example: str
    reason: str
    count: int = 0


@dataclass(slots=True)
class Use:
    """The field that a column fills, if any, and of that field `Field.is_name` and `Field.several`.

    `varied`: hardly two cells are equal. `is_shared`: other columns fill the field too. `known`: what short texts in
    the column mean, if they are valid. All are forgotten if there are many.
    """

    name: str  # or empty
    is_name: bool
    several: bool
    varied: bool = False
    is_shared: bool = False
    known: dict[str, Any] = field(default_factory=dict)

    def keep(self, text: str, meaning: Any) -> None:
        if len(text) <= LONGEST_KNOWN:
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            self.known[text] = meaning


class Columns:
    """Maps each column of a file to a field: by `pairs` (`column=field`), as guessed, or by the name of the field.

    `synonyms`: headings by field. `date_format`: a key of DATE_FORMATS, if the user has set it. `divide`: rules.
    """

    def __init__(
        self,
        fields: Mapping[str, Field],
        pairs: Iterable[str],
        synonyms: Mapping[str, str] | None = None,
        date_format: str | None = None,
        divide: Iterable[str] = (),
    ) -> None:
        """Raise Invalid for a malformed or conflicting pair, or a malformed rule."""
        self.fields = fields
        self._synonyms = synonyms or {}
        self._date_format = date_format
        self.dividing = Dividing(divide)
        self.mapped: dict[str, str] = {}
        self.guesses: list[Guess] = []
        self.unread: dict[str, Unread] = {}  # by column
        self.of_export = False  # whether they are those of an export of this service
        self._sample: tuple[Sequence[str], Sequence[Record]] = (), ()  # the columns and the first rows
        self._joined = joining.Joined()
        self._parsers = {name: each.parse for name, each in fields.items()}
        self._found: dict[str, str | None] = {}  # fields by column, of the rows read so far
        self._uses: dict[str, Use] = {}  # by column, likewise
        self._read: dict[str, Use] = {}  # those whose cells are looked at
        self._filling: dict[str | None, Use] = {}  # the first column of each field
        self._named = {each.former: name for name, each in fields.items() if each.former}
        self._named |= {name: name for name in fields}
        for pair in pairs:
            column, sign, name = pair.rpartition("=")
            name = self._named.get(name, name)
            if not sign or not column:
                raise Invalid({"--map": f"{cut(pair)!r} is not in the form column=field."})
            if column in self.mapped:
                raise Invalid({"--map": f"The column {cut(column)!r} is mapped twice. Map it to one field."})
            if name and name not in fields:
                raise Invalid({"--map": f"There is no field {cut(name)!r}. The fields are {', '.join(fields)}."})
            if name and name in self.mapped.values() and not fields[name].several:
                raise Invalid({"--map": f"Only one column can fill the field {name}."})
            self.mapped[column] = name

    def fit(self, reader: Reader, kept: Rules = NONE) -> Iterator[Step]:
        """Guess from the first rows what the columns hold, and return an iterator over all steps of the reader.

        `kept`: the rules of the account. Raises UnclearError for dates that may be in either of two orders, and Failure
        for a rule of a column without names, or for an export of this service in which a row is no track.
        """
        steps = reader.steps()
        first: list[Record] = []
        damage = None
        try:
            first.extend(sample(steps))
        except Failure as failure:  # raised again after the rows before it
            damage = failure
        rows = [each for each in first if each.fault is None and each.note is None]
        names = reader.columns or list(dict.fromkeys(name for each in rows for name in each.values))
        self._joined = joining.find(names, rows, self.fields, self.mapped)
        first, steps = [*self._joined.all(first)], self._joined.all(steps)
        self._sample = names, [*self._joined.all(rows)]
        headings.require_tracks(names, self.mapped)
        # They are of tables in which others write the names.
        self.dividing.kept = NONE if reader.columns is None or headings.without_own_ids(names, ())[0] else kept
        self.guess(*self._sample)
        self._use(dict.fromkeys(names, True), ())
        self.dividing.require()
        at = next((each.column for each in self.guesses if each.field == "played_at"), None)
        return joining.in_utc(_all(first, damage, steps), at, names, self.mapped)

    def unmapped(self) -> dict[str, str | None]:
        """Return the fields by column as they are guessed without pairs, or nothing if dates may be in either order."""
        other = Columns(self.fields, (), self._synonyms, self._date_format)
        other._joined = self._joined
        with suppress(UnclearError):
            other.guess(*self._sample)
        return {each.column: each.field for each in other.guesses}

    def guess(self, names: Sequence[str], rows: Sequence[Record]) -> None:
        """Guess from the columns' `names` and the first rows which field each fills. Raises UnclearError as `fit`."""
        found = {column: (field, MAPPED) for column, field in self.mapped.items()}
        missed: dict[str, Unread] = {}
        owned = {key for name in self.fields for key in headings.known(name, self._synonyms.get(name, ""))}
        self.of_export, known = headings.without_own_ids(self._joined.left(names), self.fields)
        # A heading that is known as it stands, such as `ms_played`, is not taken for another without its unit.
        keys = {name: forms[:1] if {*forms[:1]} <= owned else forms for name in known if (forms := headings.keys(name))}
        spare = {name: NESTED for name in names if any(has_objects(row.values.get(name)) for row in rows)}  # reasons
        for name in self.fields:
            taken = next((column for column, field in self.mapped.items() if field == name), None)
            for column in headings.candidates(keys, name, self._synonyms.get(name, ""), found):
                exact = self._named.get(column) == name
                if taken is not None and name != FEATURED:
                    spare.setdefault(column, f"{cut(taken)} is read as {name}")
                elif unread := None if exact or name == SUMS else self._unread(rows, column, name):
                    missed.setdefault(column, unread)
                    spare[column] = f"its cells cannot be read as {unread.field}"
                else:
                    taken, found[column] = column, self._use_of(name, exact=exact)
        guesses = []
        for column in names:
            name, why = found.get(column, ("", spare.get(column, NO_FIELD)))
            fitted = self._fitted(column, name, rows) if name else Fitted(str)
            if fitted.unclear:
                where = f"Line {fitted.unclear[0]} has {cut(fitted.unclear[1])} in the column {cut(column)!r}"
                raise UnclearError(
                    f"{where}: day and month can be either way round.",
                    "Say which with --date-format DD/MM/YYYY or --date-format MM/DD/YYYY.",
                )
            guesses.append(Guess(column, name or None, why, fitted.written, fitted.parse if name else None))
        lists = {name for name, each in self.fields.items() if each.several and each.is_name}
        named = {each.column: each.field for each in guesses if each.field in lists}
        divided = self.dividing.decide(named, [row.values for row in rows])
        guesses = [each._replace(written=divided.get(each.column, each.written)) for each in guesses]
        ids = self._joined.spare(found) | self.dividing.ids
        self.guesses = [each if each.field else each._replace(why=ids.get(each.column, each.why)) for each in guesses]
        self.unread = {column: each for column, each in missed.items() if column not in found}
        self._found = {each.column: each.field for each in guesses}
        self._parsers |= {each.field: each.parse for each in guesses if each.field and each.parse}

    def _use_of(self, name: str, *, exact: bool) -> tuple[str, str]:
        """Return the field that a column fills, or none if this import ignores it, and why."""
        is_read = self.fields[name].parse is not ignored
        return (name, EXACT if exact else f"a name for {name}") if is_read else ("", UNREAD)

    def _fitted(self, column: str, name: str, rows: Iterable[Record]) -> Fitted:
        """Return how the cells of a column are read for a field."""
        field, cells = self.fields[name], _cells(rows, column)
        marks = [unmarked(value) != value for _, value in cells if isinstance(value, str) and not self.of_export]
        is_marked = 2 * sum(marks) > len(cells) if field.is_name else any(marks)
        if is_marked:
            cells = [(line, unmarked(value)) for line, value in cells]
        ours = self._named.get(column) == name or column in self.mapped
        order = DATE_FORMATS[self._date_format] if self._date_format else None
        beside = [row.values for row in rows] if name in {"played_at", "track_number"} else ()
        zoned = headings.is_zoned(self._joined.heading(column), beside, self.mapped)
        about = Sample(cells, headings.unit(column), ours, order, zoned, headings.is_listed(column, beside))
        fitted = field.fit(about) if field.fit else Fitted(field.parse)
        return fitted._replace(parse=lambda value: fitted.parse(unmarked(value))) if is_marked else fitted

    def _unread(self, rows: Sequence[Record], column: str, name: str) -> Unread | None:
        """Return the column if most of its cells are invalid for the field `name`, otherwise None."""
        cells, fitted = _cells(rows, column), self._fitted(column, name, rows)
        several = self.fields[name].several
        faults = [(line, value, fault_of(fitted.parse, [value] if several else value)) for line, value in cells]
        wrong = [(line, value, fault) for line, value, fault in faults if fault is not None]
        if fitted.unclear or 2 * len(wrong) <= len(cells):
            return None
        line, value, reason = wrong[0]
        return Unread(column, name, line, cut(shown(value)), reason)

    def check(self, names: list[str], required: Mapping[str, str]) -> None:
        """Raise Failure if the file's columns (`names`) lack a mapped column, or a column for a required field.

        `required`: for each such field, what else the user can do.
        """
        listed = f"The columns are {some_of([*map(cut, names)], MOST_LISTED)}."
        known = {*names}
        for column in self.mapped:
            if column not in known:
                raise Failure(f"There is no column {cut(column)!r}. {listed}")
        found = {filled for name in names if (filled := self.field(name))}
        missing = [each for each in required if each not in found]
        if missing:
            for each in (each for each in self.unread.values() if each.field == missing[0]):
                fault = f"{each.field} {each.reason}; line {each.line} has {each.example}"
                raise Failure(f"The column {cut(each.column)!r} cannot be read: {fault}.")
            unnamed = "" if found else " If the first row has data, put a row of names above it."
            remedy = f"Name one with --map COLUMN={missing[0]}{required[missing[0]]}. {listed}"
            raise UnclearError(f"No column has the {CALLED.get(missing[0], missing[0])}.{unnamed}", remedy)

    def field(self, column: str) -> str | None:
        """Return the field that the column fills, or None if the column is ignored."""
        if column in self.mapped:
            return self.mapped[column] or None
        if column in self._found:
            return self._found[column]
        name = self._named.get(column)
        return None if name in {*self.mapped.values(), *self._found.values()} else name

    @property
    def absent(self) -> list[str]:
        """The mapped columns that no row has. Those of a table are checked before."""
        return [column for column in self.mapped if column not in self._uses]

    def unused(self, names: Iterable[str] = ()) -> list[str]:
        """Return those of the columns `names` and of the rows read so far that fill no field."""
        return [name for name in dict.fromkeys((*names, *self._found)) if self.field(name) is None]

    def read(self, row: Mapping[str, Any], blanks: Collection[str]) -> Cells:
        """Parse a row, given as cells by column. Cells that equal a text in `blanks` are empty."""
        values: dict[str, Any] = {}
        cells, uses = Cells(values, {}, []), self._read
        lists: dict[str, list[Any]] = {}
        row, notes = self.dividing.divide(row, blanks)
        self._use(row, blanks)
        for column in uses if len(uses) <= len(row) else [each for each in row if each in uses]:
            value, use = row.get(column), uses[column]
            is_text = type(value) is str
            if is_text and value in use.known:
                values[use.name] = use.known[value]
                continue
            if value is None or value == "" or value in blanks:
                continue
            if not use.name:
                self.unread[column].count += not is_blank(value)
                continue
            if use.is_name and not (is_text and value.isprintable()) and (cleaned := without_controls(value)) != value:
                value, notes = cleaned, {*notes, "controls_dropped"}
            if use.is_shared:
                lists.setdefault(use.name, []).append(value)
            elif self._parse(cells, use.name, [value] if use.several else value) and is_text and not use.varied:
                use.keep(value, values[use.name])
        for name, several_cells in lists.items():
            self._parse(cells, name, several_cells)
        cells.notes = tuple(notes)
        return cells

    def _use(self, row: Mapping[str, Any], blanks: Collection[str]) -> None:
        """Decide on the use of columns of which no cell was read yet."""
        if row.keys() <= self._uses.keys():
            return
        for column, value in row.items():
            if column not in self._uses and value is not None and value != "" and value not in blanks:
                name = self._found[column] = self.field(column)
                field = Field(str) if name is None else self.fields[name]
                texts = [text for row in self._sample[1] if isinstance(text := row.values.get(column), str)]
                varied = field.varied or len({*texts}) > VARIED * len(texts)
                use = self._uses[column] = Use(name or "", field.is_name, field.several, varied)
                if (other := self._filling.setdefault(name, use)) is not use and name is not None:
                    use.is_shared = other.is_shared = True
                    other.known = {}
                if name is not None or column in self.unread:
                    self._read[column] = use

    def _parse(self, cells: Cells, name: str, value: Any) -> bool:
        """Parse the cell of a field, or a list of its cells. Return whether all of it is valid."""
        try:
            cells.values[name] = self._parsers[name](value)
        except ValueError as error:
            cells.values[name] = error.value if isinstance(error, PartlyError) else None
            if self.fields[name].optional:
                cells.leave_out(name, str(error), value)
            else:
                cells.faults[name] = str(error)
            return False
        return True


def _cells(rows: Iterable[Record], column: str) -> list[tuple[int, Any]]:
    """Return line and value of the cells of a column that are not empty."""
    return [(row.line, value) for row in rows if not is_blank(value := row.values.get(column))]


def shown(value: Any) -> str:
    """Return the text that stands for a cell, or for the cells of several columns."""
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value).strip()


def _all(first: list[Record], damage: Failure | None, rest: Iterator[Step]) -> Iterator[Step]:
    first.reverse()
    while first:  # each is free once it is done
        yield first.pop()
    if damage is not None:
        raise damage
    yield from rest
