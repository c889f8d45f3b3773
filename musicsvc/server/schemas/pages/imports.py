"""Forms of the pages of imports."""

from typing import Annotated, Literal

from pydantic import ConfigDict

from musicsvc.server.schemas.fields import NameText, Text
from musicsvc.server.schemas.pages.form import Checkbox, Form
from musicsvc.store.importing.people.playlists import LONGEST
from musicsvc.wording import LONGEST_NAME

DateFormat = Literal["YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY"]
COLUMN = "column-"  # begins the names of the fields that say what a column holds
DIVIDE = "divide-"  # and of those with the signs at which its names are divided


class UploadForm(Form):
    """A file to import. `kind`: what it holds. `replace`: give up an earlier file that is not imported."""

    kind: Literal["catalog", "playlists", "plays"] = "catalog"
    replace: Checkbox = False


class ColumnsForm(Form):
    """Options to read a file with. `column-0` and so on: the fields that its columns fill; `divide-0`: the signs."""

    model_config = ConfigDict(extra="allow")

    date_format: DateFormat | None = None
    sheet: Annotated[str | None, Text(1, LONGEST_NAME)] = None
    encoding: Annotated[str | None, Text(1, LONGEST_NAME)] = None
    artist: Annotated[str | None, NameText(1, LONGEST_NAME)] = None
    playlist: Annotated[str | None, NameText(1, LONGEST)] = None
    listener: Annotated[str | None, Text(1, LONGEST_NAME)] = None
    create_missing: Checkbox = False
    public: Checkbox = False
    strict: Checkbox = False
    reading: Literal["shown"] | None = None  # of the button that imports: the form may have choices, too

    def choice(self, number: int) -> str:
        """Return the field that this column fills, or an empty text."""
        return self._extra(f"{COLUMN}{number}")

    def signs(self, number: int) -> str:
        """Return the signs at which this column is divided, or an empty text."""
        return " ".join(self._extra(f"{DIVIDE}{number}").split())

    def _extra(self, name: str) -> str:
        return str((self.model_extra or {}).get(name, ""))
