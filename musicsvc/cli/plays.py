"""`musicsvc plays`: verify and repair play counts, delete old plays, list and withdraw those of an account."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from musicsvc.cli import output, progress, reported_plays
from musicsvc.cli.command import group
from musicsvc.cli.options import AsJson
from musicsvc.cli.session import Session
from musicsvc.wording import quantity

if TYPE_CHECKING:
    from musicsvc.store.plays.verify import VerifyReport

app = group(
    "Verify the play counts, and delete plays.",
    "plays recount --check",
    "plays list --user eve@example.test",
    "plays withdraw --user eve@example.test --since 2h",
)
app.command("list")(reported_plays.list_)
app.command()(reported_plays.withdraw)


@app.command()
def recount(
    context: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Only compare; exit with 1 if counts differ.")] = False,
    json: AsJson = False,
) -> None:
    """Recount all figures from the stored plays, list differences and correct them."""
    from musicsvc.store.plays import verify

    session = Session.from_context(context)
    with session.store() as store, progress.bar(session, "days") as on_progress:
        report = verify.run(store, check=check, on_progress=on_progress)
    if json:
        output.print_json(_shown(report, check=check))
    else:
        _draw(session, report, check=check)
    if check and report.differing:
        raise typer.Exit(1)


def _shown(report: "VerifyReport", *, check: bool) -> dict[str, Any]:
    from musicsvc.store.plays.periods import to_date

    kept_from = to_date(report.kept_from).isoformat() if report.kept_from else None
    differences = [difference._asdict() for difference in report.differences]
    return asdict(report) | {"kept_from": kept_from, "differences": differences, "mended": not check}


def _draw(session: Session, report: "VerifyReport", *, check: bool) -> None:
    from musicsvc.store.plays.periods import to_date

    shown = [
        {
            "row": row,
            "stored plays / listeners": "{:,} / {:,}".format(*stored),
            "counted": "{:,} / {:,}".format(*counted),
        }
        for row, stored, counted in report.differences
    ]
    if shown:
        output.print_table(session, shown, shown[0], json=False)
    if report.differing > len(shown):
        session.echo(f"… and {report.differing - len(shown):,} more.")
    if report.kept_from:
        session.echo(
            f"Plays before {to_date(report.kept_from)} were deleted; the figures of those days were not checked."
        )
    state = "To repair these counts, run the command without --check." if check else "These counts were repaired."
    end = f"{report.differing:,} differed. {state}" if report.differing else "No differences."
    counted = f"{quantity(report.plays, 'play')} of {quantity(report.days, 'day')} counted"
    session.echo(f"{counted}, {quantity(report.rows, 'row')} compared. {end}")


@app.command()
def prune(context: typer.Context, json: AsJson = False) -> None:
    """Delete single plays older than plays.keep_days days. Counts of plays and listeners stay."""
    from musicsvc.store.plays import retention
    from musicsvc.store.plays.periods import to_date

    session = Session.from_context(context)
    keep = session.settings().plays.keep_days
    gone, first = 0, 0
    if keep:
        with session.store() as store, progress.bar(session, "days") as on_progress:
            gone, first = retention.prune(store, keep, now=session.clock.now(), on_progress=on_progress)
        session.echo(f"Deleted {quantity(gone, 'play')} before {to_date(first)}.")
    else:
        session.echo("Nothing was deleted, because plays.keep_days is 0. Set it to the number of days to keep.")
    if json:
        output.print_json({"deleted": gone, "kept_from": to_date(first).isoformat() if keep else None})
