"""All notations of cells by kind, and the table of them in docs/import.md."""

from collections.abc import Mapping, Sequence

from musicsvc.store.importing.cells import codes, dates, durations, names, numbers, times, words
from musicsvc.store.importing.cells.notations import Notation

KINDS: Mapping[str, Sequence[Notation]] = {
    "text": names.NOTATIONS,
    "several names": names.LISTS,
    "duration": durations.NOTATIONS,
    "date": dates.NOTATIONS,
    "time": times.NOTATIONS,
    "number": numbers.NOTATIONS,
    "number of a track or disc": numbers.PLACES,
    "yes or no": words.FLAG_NOTATIONS,
    "key": words.KEY_NOTATIONS,
    "scale": words.SCALE_NOTATIONS,
    "ISRC": codes.ISRCS,
    "UPC or EAN": codes.UPCS,
}


def table() -> str:
    """Return all notations as a table in Markdown."""
    lines = ["| cell | notation | examples | found in |", "|---|---|---|---|"]
    for kind, notations in KINDS.items():
        for each in notations:
            examples = ", ".join(f"`{cell.strip()}`" for cell in each.cells).replace("|", "\\|")
            lines.append(f"| {kind} | {each.name} | {examples} | {each.source} |".replace("  ", " "))
            kind = ""  # noqa: PLW2901 - named once
    return "\n".join(lines)
