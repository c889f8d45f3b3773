"""Map the columns of an imported file to the fields of a row."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from musicsvc.errors import Failure, Invalid


class Columns:
    """Maps each column of a file to a field: by `pairs` (`column=field`), otherwise to the field of the same name.

    Only fields in `several` may have more than one column. Raises Invalid for a malformed or conflicting pair.
    """

    def __init__(self, fields: Collection[str], pairs: Iterable[str], several: Collection[str]) -> None:
        self._fields = fields
        self._mapped: dict[str, str] = {}
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

    def apply(self, values: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Return the cells of a row by field, as lists in the order of the columns. `values`: the cells by column."""
        found: dict[str, list[Any]] = {}
        for column, value in values.items():
            if field := self.field(column):
                found.setdefault(field, []).append(value)
        return found
