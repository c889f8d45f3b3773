"""`musicsvc seed`: create sample data, or a synthetic catalog of any size."""

from __future__ import annotations

from typing import Annotated

import typer

from musicsvc.cli import output, progress
from musicsvc.cli.options import flag, option, show_examples
from musicsvc.cli.output import JSON
from musicsvc.cli.session import Session
from musicsvc.store.seeding import fixtures, synthetic, world
from musicsvc.store.seeding import plays as seeded_plays
from musicsvc.wording import quantity

app = typer.Typer()
WITHOUT_ACCESS = (
    "The accounts have no password, no token and no API access: nobody can sign in or call the API with them."
    " To make accounts with valid tokens, use --accounts with a new database."
)
KEPT = "Accounts that exist already keep their rights and got no token. Use --accounts with a new database."
GRANTED = (
    "The accounts have API access and valid tokens. For a token's value: musicsvc token list, token regenerate ID."
)


@app.command(epilog=show_examples("seed", "seed --accounts", "seed --scale 0.5"))
def seed(
    session: Session,
    scale: Annotated[
        float | None,
        option("FACTOR", "Size of a synthetic catalog; 1 is 1,000 artists, 4,000 albums and 20,000 tracks."),
    ] = None,
    random_seed: Annotated[
        int | None, option("N", "The same number gives the same synthetic catalog; default: 1. Needs --scale.")
    ] = None,
    accounts: Annotated[
        bool, flag("Give new accounts of the sample data API access and valid tokens.", "--accounts")
    ] = False,
) -> None:
    """Add the sample data of the demo, or a synthetic catalog of any size. Safe to repeat."""
    if accounts and scale is not None:
        raise typer.BadParameter("A synthetic catalog has no accounts. Remove --accounts or --scale.")
    if random_seed is not None and scale is None:
        raise typer.BadParameter("Needs --scale.", param_hint="--random-seed")
    if scale is not None and not 0 < scale <= synthetic.LARGEST:
        raise typer.BadParameter(synthetic.BAD_SCALE, param_hint="--scale")
    if scale is None:
        added = _add_fixtures(session, rights=accounts)
    else:
        chance = 1 if random_seed is None else random_seed
        with session.store() as store, progress.bar(session, "tracks") as on_progress:
            added = synthetic.create(store, scale, chance, on_progress=on_progress)._asdict()
    parts = [quantity(number, kind.removesuffix("s"), kind) for kind, number in added.items() if number]
    message = f"Added {', '.join(parts)}." if parts else "All data exists already. Nothing was added."
    output.print_result(session, message, added)
    if added.get("accounts"):
        session.echo(GRANTED if accounts else WITHOUT_ACCESS)
    elif accounts:
        session.echo(KEPT)


def _add_fixtures(session: Session, *, rights: bool) -> JSON:
    now = session.clock.now()
    with session.store() as store:
        if warning := store.read(lambda: fixtures.warning(rights=rights)).result():
            session.echo(f"Warning: {warning}")
        created: world.FixtureSummary = store.write(lambda: fixtures.load(now=now, rights=rights)).result()
        plays = store.write(lambda: seeded_plays.load(now=now)).result()
    return {**created, "tokens": len(created.tokens), "plays": plays}
