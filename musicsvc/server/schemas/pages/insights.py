"""Queries and forms of the pages of figures."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from musicsvc.server.schemas.exports import SUBJECTS, ScopeFields, TypeName
from musicsvc.server.schemas.fields import DIGITS_ONLY, SEARCH_NAMES, PageNumber, QueriedId, Query, Text, id_list
from musicsvc.server.schemas.pages.form import Checkbox, Form
from musicsvc.server.schemas.periods import Period, QueryDate, check_dates
from musicsvc.store.dashboards import comparisons, report_links, shared_tables, tables
from musicsvc.store.dashboards.tables import Selection
from musicsvc.store.insights.charts import Interval
from musicsvc.store.insights.listening import local_hours
from musicsvc.store.plays import periods
from musicsvc.store.plays.subjects import KINDS, Subject
from musicsvc.wording import LONGEST_NAME

SORTS = tuple(f"{sign}{column}" for column in tables.SORTS for sign in ("", "-"))
LAST_PAGE = 50  # of results; a longer name leads to fewer
FormId = QueriedId | None


def _zone(name: str) -> str:
    if name not in local_hours.zones():
        raise ValueError("Must be a time zone such as Europe/Berlin.")
    return name


def _sort(name: str) -> str:
    if name not in SORTS:
        raise ValueError("Must be a column of the table.")
    return name


class PeriodChoice(Period):
    """A period of the pages: a name as for `--period` of the command line, or two dates."""

    period: str = periods.DEFAULT
    first: QueryDate = Field(None, alias="from")
    last: QueryDate = Field(None, alias="to")

    @classmethod
    def check_together(cls, sent: Mapping[str, Any], faults: Collection[str], context: Mapping[str, Any]) -> Any:
        """Return a message for a period that does not exist, or for dates that are not allowed."""
        found = check_dates(sent, faults, context["now"])
        found = {field: text.replace("`to`", "the last day") for field, text in found.items()}
        if not found and "period" in sent:
            try:
                periods.window(sent["period"], context["now"])
            except ValueError as error:
                return {"period": str(error)}
        return found


class PagePeriod(PeriodChoice, Query):
    """Query string of a page of figures. `by`: the interval of its chart; by default, it goes by the period."""

    by: Interval | None = None


class SubjectQuery(PagePeriod):
    """Query string of the page of an artist, album or track. `zone`: the time zone of the hours of the week."""

    zone: Annotated[str, AfterValidator(_zone)] = local_hours.IN_UTC


class OverviewQuery(PagePeriod):
    """Query string of the overview. `q`: a part of the name of an artist, album or track to find."""

    other_names: ClassVar = SEARCH_NAMES

    period: str = "7-days"
    q: Annotated[str, Text(0, LONGEST_NAME)] = ""
    page: Annotated[int, Field(ge=1, le=LAST_PAGE), DIGITS_ONLY] = 1  # of the results


class TableQuery(PagePeriod):
    """Query string of a table. `q`: a part of a name, an ISRC or UPC. `sort`: a column, after `-` in falling order."""

    other_names: ClassVar = SEARCH_NAMES

    q: Annotated[str, Text(0, LONGEST_NAME)] = ""
    sort: Annotated[str, AfterValidator(_sort)] = "-plays_period"
    page: PageNumber = 1

    def selection(self, kind: int) -> Selection:
        return Selection(kind, self.q, self.sort.removeprefix("-"), self.sort.startswith("-"))


class CompareQuery(PagePeriod):
    """Query string of a comparison: the subjects of one kind, and a part of the name of another one to find."""

    lists: ClassVar = ("ids",)
    other_names: ClassVar = SEARCH_NAMES

    kind: Literal["artist", "album", "track"] = "artist"
    ids: Annotated[tuple[int, ...], id_list(tables.PER_PAGE, "artists, albums or tracks")] = ()
    q: Annotated[str, Text(0, LONGEST_NAME)] = ""

    @property
    def subjects(self) -> list[Subject]:
        """The chosen tracks, albums or artists, each once, as many as can be compared."""
        return [Subject(KINDS[self.kind], each) for each in dict.fromkeys(self.ids)][: comparisons.MOST]


class ExportForm(ScopeFields, PeriodChoice, Form):
    """The content and period of a download, and the artist, album or track of the page that has the form."""

    subjects: ClassVar = SUBJECTS

    type: TypeName = "tracks"
    artist_id: FormId = None
    album_id: FormId = None
    track_id: FormId = None


class ShareForm(Form):
    """The days after which a share link ends, its period if that moves along, and whether programs may read it."""

    days: Annotated[int, Field(ge=1, le=365), DIGITS_ONLY] = 30
    period: Literal[*report_links.MOVING] | None = None  # type: ignore[valid-type]
    programs: Checkbox = False


class SharedQuery(Query):
    """Query string of a shared report. `table`: which one a program reads."""

    table: Literal[*shared_tables.COLUMNS] = shared_tables.DAYS  # type: ignore[valid-type]
