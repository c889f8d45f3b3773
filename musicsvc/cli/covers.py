"""`musicsvc cover`: draw a cover with a title and an artist, as JPEG or PNG."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from musicsvc.cli.options import FileCommand, option, show_examples
from musicsvc.cli.output_file import echo_written, open_output
from musicsvc.cli.session import Session
from musicsvc.reports.art import covers
from musicsvc.wording import CONTROLS, NO_CONTROLS

app = typer.Typer()

LONGEST = 120  # characters of a title or an artist
FORMATS: dict[str, Literal["JPEG", "PNG"]] = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG"}


def _text(value: str) -> str:
    text = value.strip()
    if not 1 <= len(text) <= LONGEST:
        raise typer.BadParameter(f"must have 1 to {LONGEST} characters, not {len(text)}")
    if CONTROLS.search(text):
        raise typer.BadParameter(NO_CONTROLS)
    return text


Title = Annotated[str, option("TEXT", "The title on the cover, 1 to 120 characters.", callback=_text)]
Artist = Annotated[str, option("TEXT", "The artist on the cover, 1 to 120 characters.", callback=_text)]
Size = Annotated[int, option("PIXELS", "Pixels per side, 16 to 3000.", min=16, max=3000)]


@app.command(
    cls=FileCommand, epilog=show_examples('cover --title "Last Light" --artist "Mara Quint" --template 1 -o cover.jpg')
)
def cover(
    session: Session,
    title: Title,
    artist: Artist,
    template: Annotated[int, option("ID", "The template's id, from 1.", min=1)],
    out: Annotated[Path, option("FILE", "A file that ends in .jpg or .png.", "--output", "-o")],
    size: Size = 3000,
) -> None:
    """Draw a cover as JPEG or PNG. It looks like the API's preview of the same texts."""
    known = {each.id: each.name for each in covers.templates()}
    if template not in known:
        names = ", ".join(f"{number} {name}" for number, name in known.items())
        raise typer.BadParameter(
            f"There is no template {template}. The templates are {names}.", param_hint="--template"
        )
    form = FORMATS.get(out.suffix.lower())
    if form is None:
        raise typer.BadParameter(f"{out.name} must end in .jpg or .png.", param_hint="--output")
    drawn = covers.flattened(covers.cover(template, title, artist, size), form)
    with open_output(out) as file:
        file.write(drawn)
    echo_written(session, out)
