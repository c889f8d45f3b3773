"""Join columns that hold one value together: date and time of day of plays, and year, month and day of releases."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import time, timedelta
from typing import Any, NamedTuple, TypeVar

from musicsvc.store.importing import headings
from musicsvc.store.importing.cells import dates, times
from musicsvc.store.importing.cells.blanks import is_blank
from musicsvc.store.importing.cells.durations import clock_text, span
from musicsvc.store.importing.cells.notations import fault_of
from musicsvc.store.importing.files.records import Record, Step
from musicsvc.wording import cut

S = TypeVar("S", bound=Step)
TEN = 10  # hours: lengths of tracks are below it, read as times of day


def _moment(clock: str, day: str) -> str | None:
    """Return date and time of day in one text, or None if they are none."""
    is_day = ":" not in day and any(fault_of(dates.reader(order), day) is None for order in ("DMY", "MDY"))
    return f"{day} {clock}" if is_day and times.CLOCK.fullmatch(clock) else None


def _day(year: str, month: str, of_month: str) -> str | None:
    text = f"{year}-{month}-{of_month}".rstrip("-")
    return None if not month or fault_of(dates.day, text) else text


def _is_late(text: str) -> bool:
    clock = times.CLOCK.fullmatch(dates.without_clock(text)[1])
    return clock is None or bool(clock[5]) or int(clock[1]) >= TEN


class Joint(NamedTuple):
    """Headings of columns side by side, in any order, whose cells make one of the first. `make`: joins their texts.

    `is_clear`: one of the first rows has to make such a text, as others may mean something else.
    """

    headings: tuple[str, ...]
    make: Callable[..., str | None]
    is_clear: Callable[[str], bool] = bool


JOINTS: Mapping[str, Joint] = {  # by the field that they fill
    "played_at": Joint((headings.CLOCKS, headings.DATES), _moment, _is_late),
    "release_date": Joint((headings.YEARS, headings.MONTHS, headings.DAYS), _day, lambda text: text.count("-") > 1),
}


class Joined(NamedTuple):
    """Columns that are joined into the first one."""

    columns: tuple[str, ...] = ()
    make: Callable[..., str | None] = _day

    def row(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a row with the joined cell, or the row itself if its cells cannot be joined."""
        texts = [_text(values.get(each)) for each in self.columns]
        made = self.make(*texts)
        return values if made is None else {**values, **dict.fromkeys(self.columns), self.columns[0]: made}

    def all(self, steps: Iterable[S]) -> Iterator[S]:
        """Return the steps of a reader with joined rows."""
        if not self.columns:
            return iter(steps)
        return (each._replace(values=self.row(each.values)) if isinstance(each, Record) else each for each in steps)

    def left(self, names: Sequence[str]) -> list[str]:
        """Return the columns without those that are joined into another."""
        return [name for name in names if name not in self.columns[1:]]

    def heading(self, column: str) -> str:
        """Return the heading of a column, with those of the columns that are joined into it."""
        return " ".join(self.columns) if column in self.columns else column

    def spare(self, used: Collection[str]) -> dict[str, str]:
        """Return the reasons why the other columns fill no field, by column, if the first one is `used`."""
        return {each: f"it is read with {cut(self.columns[0])}" for each in self.columns[1:] if self.columns[0] in used}


def find(names: Sequence[str], rows: Sequence[Record], fields: Collection[str], ignored: Collection[str]) -> Joined:
    """Return the columns for one of the `fields` that the first rows show to be joined; none of those `ignored`."""
    keys = {name: {*headings.keys(name)} for name in names}
    is_sales = any(not headings.SALES.isdisjoint(each) for each in keys.values())
    for joint in (joint for field, joint in JOINTS.items() if field in fields):
        forms = [{*headings.known("", each)} for each in joint.headings]
        for beside in zip(*(names[at:] for at in range(len(forms))), strict=False):
            found = [next((name for name in beside if not form.isdisjoint(keys[name])), "") for form in forms]
            of_sale = is_sales and headings.key(found[0]) in headings.PLAIN_YEARS
            if {*found} == {*beside} and {*found}.isdisjoint(ignored) and not of_sale:
                joined = Joined((*found,), joint.make)
                made = [joined.row(row.values) for row in rows]
                texts = [new[found[0]] for new, row in zip(made, rows, strict=True) if new is not row.values]
                is_clear = not headings.OF_DAY.isdisjoint(keys[found[0]]) or any(map(joint.is_clear, texts))
                if 2 * len(texts) > len(rows) and is_clear:
                    return joined
    return Joined()


def _text(value: Any) -> str:
    if isinstance(value, time | timedelta):  # a time of day without seconds may be cut to the minute
        return clock_text(span(value)).removesuffix(":00")
    return "" if is_blank(value) else " ".join(str(value).split()).removesuffix(" 00:00:00").removesuffix(".0")


def in_utc(
    steps: Iterator[Step], times_in: str | None, names: Sequence[str], ignored: Collection[str]
) -> Iterator[Step]:
    """Return the steps of a reader with a fault for each row that a column not `ignored` puts into another zone.

    `times_in`: the column of the times, which may have a zone of their own.
    """
    zoned = [name for name in names if headings.key(name) in headings.ZONED and name not in ignored]
    if times_in is None or not zoned:
        return steps
    return (_in_utc(each, times_in, zoned) if isinstance(each, Record) else each for each in steps)


def _in_utc(record: Record, times_in: str, zoned: Sequence[str]) -> Record:
    beside = {name: record.values.get(name) for name in zoned}
    is_faulty = times.is_plain(record.values.get(times_in)) and headings.is_zoned("", [beside], ())
    return record._replace(fault=f"played_at {times.ZONED}") if is_faulty else record
