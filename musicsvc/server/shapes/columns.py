"""The columns of exports, those of figures included."""

from musicsvc.reports import columns
from musicsvc.reports.columns import Column, Kind
from musicsvc.reports.report_tables import FigureColumns
from musicsvc.store.insights import export_rows
from musicsvc.store.insights.figures import FIGURES, Figure
from musicsvc.store.insights.listening.listening import LISTENING


def _column(figure: Figure) -> Column:
    numbers = Kind.NUMBER if isinstance(figure.example, float) else Kind.COUNT
    return Column(figure.name, figure.title, Kind.PERCENT if figure.unit == "%" else numbers, figure.definition)


COLUMNS = columns.COLUMNS | {each.name: _column(each) for each in FIGURES}
FIRST_PLAY = columns.COLUMNS["first_play"]
# Of a report as a workbook.
OF_REPORT = FigureColumns(
    {each.path: _column(each) for each in (*FIGURES, *LISTENING)} | {FIRST_PLAY.name: FIRST_PLAY},
    {
        "top_tracks": (*export_rows.OF_TRACK, FIRST_PLAY.name),
        "top_albums": (*export_rows.OF_ALBUM, FIRST_PLAY.name),
        "top_artists": (FIRST_PLAY.name,),
    },
)


def of_type(type_: str) -> list[Column]:
    """Return the columns of an export of this type."""
    return [COLUMNS[name] for name in export_rows.COLUMNS[type_]]
