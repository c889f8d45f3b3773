"""The choices of an account about the columns of its uploaded file that differ from the guess."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from musicsvc.errors import Invalid
from musicsvc.store.importing.tasks.work import KINDS


def fields_of(kind: str) -> list[str]:
    """Return the fields that a column can fill."""
    return list(KINDS[kind].fields)


def pairs(
    kind: str, columns: Sequence[Mapping[str, Any]], before: Sequence[str], choose: Callable[[int], str]
) -> list[str]:
    """Return `column=field` for each column that is not read as guessed. An empty field ignores the column.

    `columns`: those of the report. `before`: the pairs so far. `choose`: returns the chosen field by the number of the
    column. Raises Invalid, by number of the column, for a field that does not exist or is chosen twice.
    """
    fields = KINDS[kind].fields
    set_before = {pair.rpartition("=")[0] for pair in before}
    found, errors, taken = [], {}, set()
    for number, each in enumerate(columns):
        field = choose(number)
        if field and field not in fields:
            errors[str(number)] = "There is no such field."
        elif field in taken and not fields[field].several:
            errors[str(number)] = "Another column is read as this already."
        taken.add(field or None)
        # An ignored column stays set: without that, the guess could use it once another column is ignored.
        ignored = not field and (each["field"] or each["column"] in set_before)
        if each["column"] and (field != (each["guess"] or "") or ignored):
            found.append(f"{each['column']}={field}")
    if errors:
        raise Invalid(errors)
    return found
