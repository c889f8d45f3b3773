"""Forms of the pages of imports."""

from typing import Annotated, Literal

from pydantic import ConfigDict

from musicsvc.server.schemas.fields import Text
from musicsvc.server.schemas.pages.form import Checkbox, Form
from musicsvc.wording import LONGEST_NAME

DateFormat = Literal["YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY"]
COLUMN = "column-"  # begins the names of the fields that say what a column holds


class UploadForm(Form):
    """A file to import. `kind`: what it holds. `replace`: give up an earlier file that is not imported."""

    kind: Literal["catalog", "plays"] = "catalog"
    replace: Checkbox = False


class ColumnsForm(Form):
    """Options to read a file with. `column-0` and so on: the fields that its columns fill."""

    model_config = ConfigDict(extra="allow")

    date_format: DateFormat | None = None
    sheet: Annotated[str | None, Text(1, LONGEST_NAME)] = None
    artist: Annotated[str | None, Text(1, LONGEST_NAME)] = None
    listener: Annotated[str | None, Text(1, LONGEST_NAME)] = None
    create_missing: Checkbox = False

    def choice(self, number: int) -> str:
        """Return the field that this column fills, or an empty text."""
        return str((self.model_extra or {}).get(f"{COLUMN}{number}", ""))
