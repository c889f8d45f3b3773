"""`musicsvc seed`: the small world of the fixtures, or a made catalog of any size."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from musicsvc.cli import output, progress
from musicsvc.cli.output import JSON, AsJson
from musicsvc.cli.session import Session
from musicsvc.errors import Invalid

if TYPE_CHECKING:
    from musicsvc.store.seeding.fixtures import Summary

app = typer.Typer()


@app.command()
def seed(
    context: typer.Context,
    scale: Annotated[
        float | None,
        typer.Option(help="Make a catalog instead; 1 is 1,000 artists, 4,000 albums and 20,000 tracks."),
    ] = None,
    random_seed: Annotated[int, typer.Option(help="The same number and scale make the same catalog.")] = 1,
    json: AsJson = False,
) -> None:
    """Put in the small world that the demo shows, or a made catalog of any size. Harmless when repeated."""
    session = Session.from_context(context)
    made = _fixtures(session) if scale is None else _catalog(session, scale, random_seed)
    parts = [f"{number:,} {kind}" for kind, number in made.items() if number]
    session.echo(f"Made {', '.join(parts)}." if parts else "All of it is there already.")
    if json:
        output.print_json(made)


def _fixtures(session: Session) -> JSON:
    from musicsvc.store.seeding import fixtures
    from musicsvc.store.seeding import plays as seeded_plays

    now = session.clock.now()
    with session.store() as store:
        if warning := store.read(fixtures.warning).result():
            session.echo(f"Warning: {warning}")
        made: Summary = store.write(lambda: fixtures.load(now=now)).result()
        plays = store.write(lambda: seeded_plays.load(now=now)).result()
    counts = {key: number for key, number in asdict(made).items() if key != "tokens"}
    return counts | {"tokens": len(made.tokens), "plays": plays}


def _catalog(session: Session, scale: float, random_seed: int) -> JSON:
    from musicsvc.store.seeding import synthetic

    with session.store() as store, progress.bar(session, "tracks") as on_progress:
        try:
            return asdict(synthetic.make(store, scale, random_seed, told=on_progress))
        except Invalid as wrong:
            raise typer.BadParameter(wrong.errors["scale"], param_hint="--scale") from None
