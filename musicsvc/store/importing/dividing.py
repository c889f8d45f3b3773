"""Decide how columns with names are divided: at the signs of a rule, or as a known export joins them.

A rule holds for a column, given by its heading, or for all that fill a field. It is kept for the account that manages
what the import makes, and holds for columns of its later tables that have the same heading.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from musicsvc.errors import Failure, Invalid
from musicsvc.store.importing import headings
from musicsvc.store.importing.cells import lists
from musicsvc.store.importing.cells.names import SEPARATOR
from musicsvc.wording import cut

EXPORTIFY = {"artist name(s)", "künstlername(n)"}  # headings that no other program has
Row = Mapping[str, Any]  # cells by column
Rules = Mapping[str, tuple[str, ...]]  # signs by column
NONE: Rules = {}
AT_SEMICOLONS = "divided at semicolons"  # as all lists of names are


class Divided(NamedTuple):
    """The way a column is divided. `parts`: returns the names of a cell in a row, None if ids differ in number."""

    written: str
    parts: Callable[[Any, Row], Any]
    signs: tuple[str, ...] | None = None  # of a rule
    ids: str = ""  # the column of ids that tells how many names there are


class Dividing:
    """The ways the columns of an import are divided. `kept`: the rules of its account, by `headings.key`."""

    def __init__(self, pairs: Iterable[str]) -> None:
        """Take rules such as `Artist=& feat.`, of a column or of a field. Raises Invalid for a malformed one."""
        self.kept = NONE
        self._asked: dict[str, tuple[str, ...]] = {}
        self._fields: Mapping[str, str] = {}
        self._divided: dict[str, Divided] = {}
        for pair in pairs:
            column, _, text = pair.rpartition("=")
            if not column:
                raise Invalid({"--divide": f"{cut(pair)!r} is not in the form column=signs."})
            if column in self._asked:
                raise Invalid({"--divide": f"{cut(column)!r} has two rules. Give all signs in one."})
            try:
                self._asked[column] = lists.signs(text)
            except ValueError as error:
                raise Invalid({"--divide": f"{cut(pair)!r}: {error}."}) from None

    def decide(self, fields: Mapping[str, str], rows: Sequence[Row]) -> dict[str, str]:
        """Decide how columns with names, given with their fields, are divided. Return how they are written.

        `rows`: the first ones.
        """
        self._fields = fields
        found = {column: self._how(column, rows) for column in fields}
        self._divided = {column: each for column, each in found.items() if each is not None}
        semicolons = {
            column: AT_SEMICOLONS
            for column, field in fields.items()
            if field.endswith("artist")
            and any(SEPARATOR in cell for row in rows if isinstance(cell := row.get(column), str))
        }
        return semicolons | {column: each.written for column, each in self._divided.items()}

    def _how(self, column: str, rows: Sequence[Row]) -> Divided | None:
        if (rule := self._rule(column)) is not None:
            return _by_rule(rule)
        if (rule := self.kept.get(headings.key(column))) is not None:
            return _by_rule(rule, " as in an earlier import")
        return _as_exported(column, self._fields[column], rows)

    def _rule(self, column: str) -> tuple[str, ...] | None:
        return self._asked.get(column, self._asked.get(self._fields[column]))

    def require(self) -> None:
        """Raise Failure for a rule of a column that has no names."""
        for each in self._asked:
            if each not in {*self._fields, *self._fields.values()}:
                raise Failure(
                    f"No column {cut(each)!r} has names to divide. Divide a column of artists, genres or tags."
                )

    @property
    def chosen(self) -> Rules:
        """The rules of this import by `headings.key`."""
        rules = {headings.key(column): self._rule(column) for column in self._fields}
        return {heading: rule for heading, rule in rules.items() if rule is not None}

    @property
    def ids(self) -> dict[str, str]:
        """The reasons why columns of ids are read although they fill no field, by column."""
        return {each.ids: f"its ids tell how many names {cut(column)} has" for column, each in self._divided.items()}

    def signs(self, column: str) -> str | None:
        """Return the signs of the rule by which a column is divided, or None without a rule."""
        rule = self._divided[column].signs if column in self._divided else None
        return None if rule is None else " ".join(rule)

    def divide(self, row: Row, blanks: Collection[str]) -> tuple[Row, Collection[str]]:
        """Return a row with lists of names in the cells that are divided, and keys of summary.NOTES."""
        if not self._divided:
            return row, ()
        found, notes = dict(row), set()
        for column, divided in self._divided.items():
            cell = row.get(column)
            if cell is not None and cell != "" and cell not in blanks:
                names = divided.parts(cell, row)
                found[column] = [cell] if names is None else names
                notes |= {"ids_differ"} if names is None else set()
        return found, notes


def _by_rule(signs: tuple[str, ...], remark: str = "") -> Divided:
    written = f"divided at {' '.join(signs)}" if signs else "divided at semicolons only"
    return Divided(written + remark, lambda cell, _: lists.divide(cell, signs), signs)


def _as_exported(column: str, field: str, rows: Sequence[Row]) -> Divided | None:
    """Return how a known export joins the names of a column, or None."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = [cell for row in rows if isinstance(cell := row.get(column), str) and cell]
    if texts and all(lists.bracketed(cell) is not None for cell in texts):
        return Divided(
            "lists in brackets", lambda cell, _: [cell] if (found := lists.bracketed(cell)) is None else found
        )
    beside = next((name for name in names if headings.counts(field, name)), None)
    if beside is not None:
        joint = lists.joint_of([(row.get(column), row.get(beside)) for row in rows])
        written = f"as many names as {cut(beside)} has ids"
        return Divided(written, lambda cell, row: lists.counted(cell, row.get(beside), joint), ids=beside)
    if not any(name.strip().casefold() in EXPORTIFY for name in names):
        return None
    if field == "genre":
        return Divided("divided at commas", lambda cell, _: lists.split(cell, lists.COMMA))
    if field == "artist" and not any(SEPARATOR in cell for cell in texts):
        return Divided("divided at commas without a blank", lambda cell, _: lists.split(cell, lists.CLOSE))
    return None
