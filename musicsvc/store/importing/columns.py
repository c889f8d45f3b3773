"""Map the columns of an imported file to the fields of a row, and read the cells of the fields."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from musicsvc.errors import Failure, Invalid
from musicsvc.store.importing import values as cell_values


class Columns:
    """Maps each column of a file to a field: by `pairs` (`column=field`), otherwise to the field of the same name.

    Only fields in `several` may have more than one column. Raises Invalid for a malformed or conflicting pair.
    """

    def __init__(self, fields: Collection[str], pairs: Iterable[str], several: Collection[str]) -> None:
        self._fields = fields
        self._mapped: dict[str, str] = {}
        self._found: dict[str, str | None] = {}  # fields by column, of the rows read so far
        for pair in pairs:
            column, sign, field = pair.rpartition("=")
            if not sign or not column:
                raise Invalid({"--map": f"{pair!r} is not in the form column=field."})
            if field and field not in fields:
                raise Invalid({"--map": f"There is no field {field!r}. The fields are {', '.join(fields)}."})
            if field in self._mapped.values() and field not in several:
                raise Invalid({"--map": f"Only one column can fill the field {field}."})
            self._mapped[column] = field

    def check(self, names: list[str], required: Collection[str]) -> None:
        """Raise Failure if the file's columns (`names`) lack a mapped column, or a column for a required field."""
        listed = f"The columns are {', '.join(names)}."
        for column in self._mapped:
            if column not in names:
                raise Failure(f"There is no column {column!r}. {listed}")
        found = {field for name in names if (field := self.field(name))}
        missing = [field for field in required if field not in found]
        if missing:
            raise Failure(f"No column has the {missing[0]}. Name one with --map COLUMN={missing[0]}. {listed}")

    def field(self, column: str) -> str | None:
        """Return the field that the column fills, or None if the column is ignored."""
        if column in self._mapped:
            return self._mapped[column] or None
        return column if column in self._fields and column not in self._mapped.values() else None

    def unused(self, names: list[str]) -> list[str]:
        return [name for name in names if self.field(name) is None]

    def read(self, values: Mapping[str, Any], blanks: Collection[str]) -> dict[str, list[Any]]:
        """Return the cells of a row by field, as lists in the order of the columns. `values`: the cells by column.

        Empty cells, and those that equal a text in `blanks`, are None.
        """
        found: dict[str, list[Any]] = {}
        for column, value in values.items():
            if column not in self._found:
                self._found[column] = self.field(column)
            if (field := self._found[column]) is not None:
                found.setdefault(field, []).append(None if value == "" or value in blanks else value)
        return found


class Cells:
    """The cells of one row by field. If a cell is invalid, parsing adds the reason to `faults`, by field."""

    def __init__(self, cells: Mapping[str, list[Any]]) -> None:
        self._cells = cells
        self.faults: dict[str, str] = {}

    def first(self, field: str) -> Any:
        """Return the cell of the field's first column, or None without one."""
        held = self._cells.get(field)
        return None if held is None else held[0]

    def one(self, field: str, parse: Callable[[Any], Any]) -> Any:
        """Return the parsed cell of the field, or None if it is blank or invalid."""
        held = self._cells.get(field)
        if held is None or held[0] is None:
            return None
        try:
            return parse(held[0])
        except ValueError as error:
            self.faults[field] = str(error)
            return None

    def text(self, field: str, longest: int = 255) -> str | None:
        found: str | None = self.one(field, partial(cell_values.text, longest=longest))
        return found

    def several(self, field: str, longest: int) -> list[str]:
        """Return the distinct texts in all columns of the field, or an empty list if one text is invalid."""
        try:
            found = [
                part
                for cell in self._cells.get(field, ())
                if cell is not None
                for part in cell_values.several(cell, longest)
            ]
        except ValueError as error:
            self.faults[field] = str(error)
            return []
        return list(dict.fromkeys(found))

    def refuse(self, field: str, reason: str, *, when: bool) -> None:
        """If `when` is true, add `reason` to the faults of the row, unless the field already has a fault."""
        if when:
            self.faults.setdefault(field, reason)
