"""The columns of exports, those of figures included."""

from musicsvc.reports import columns
from musicsvc.reports.columns import Column, Kind
from musicsvc.reports.report_tables import FigureColumns
from musicsvc.store.insights import export_rows
from musicsvc.store.insights.figures import FIRST_PLAY, IN_DATA, Figure
from musicsvc.store.insights.listening.listening import LISTENING
from musicsvc.store.insights.scopes import Scope


def _column(figure: Figure) -> Column:
    kind = {int: Kind.COUNT, float: Kind.NUMBER, str: Kind.DATE}[type(figure.example)]
    return Column(figure.name, figure.title, Kind.PERCENT if figure.unit == "%" else kind, figure.definition)


COLUMNS = columns.COLUMNS | {each.name: _column(each) for each in IN_DATA}
# Of a report as a workbook.
OF_REPORT = FigureColumns(
    {each.path: _column(each) for each in (*IN_DATA, *LISTENING)},
    {
        top: [COLUMNS[name] for name in (*codes, FIRST_PLAY.name)]
        for top, codes in (
            ("top_tracks", export_rows.OF_TRACK),
            ("top_albums", export_rows.OF_ALBUM),
            ("top_artists", ()),
        )
    },
)


def of_type(type_: str, scope: Scope) -> list[Column]:
    """Return the columns of an export of this type."""
    return [COLUMNS[name] for name in export_rows.columns(type_, scope)]
