"""Which column of a file fills which field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from musicsvc.errors import Failure, Invalid

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


class Columns:
    """The columns behind each field: those of the field's own name, and those told by `column=field` pairs."""

    def __init__(self, fields: Collection[str], pairs: Iterable[str], several: Collection[str]) -> None:
        """`several` are the fields that more than one column may fill. Invalid where a pair is none, or clashes."""
        self._fields = fields
        self._told: dict[str, str] = {}
        for pair in pairs:
            column, sign, field = pair.rpartition("=")
            if not sign or not column:
                raise Invalid({"--map": f"{pair!r} is not column=field."})
            if field and field not in fields:
                raise Invalid({"--map": f"There is no field {field!r}. The fields are {', '.join(fields)}."})
            if field in self._told.values() and field not in several:
                raise Invalid({"--map": f"The field {field} can be filled by one column only."})
            self._told[column] = field

    def check(self, names: list[str], required: Collection[str]) -> None:
        """Failure where the file lacks a column that was told, or one for a required field."""
        listed = f"The columns are {', '.join(names)}."
        for column in self._told:
            if column not in names:
                raise Failure(f"There is no column {column!r}. {listed}")
        found = {field for name in names if (field := self.field(name))}
        missing = [field for field in required if field not in found]
        if missing:
            raise Failure(f"No column gives the {missing[0]}. Say which does: --map COLUMN={missing[0]}. {listed}")

    def field(self, column: str) -> str | None:
        """The field that the column fills, None where it fills none."""
        if column in self._told:
            return self._told[column] or None
        return column if column in self._fields and column not in self._told.values() else None

    def unused(self, names: list[str]) -> list[str]:
        """The columns that fill nothing."""
        return [name for name in names if self.field(name) is None]

    def apply(self, values: Mapping[str, Any]) -> dict[str, list[Any]]:
        """What the row holds for each field, in the order of its columns."""
        found: dict[str, list[Any]] = {}
        for column, value in values.items():
            if field := self.field(column):
                found.setdefault(field, []).append(value)
        return found
