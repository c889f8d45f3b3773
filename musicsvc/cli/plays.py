"""`musicsvc plays`: verify play counts, dump plays, delete old ones, list and withdraw those of an account."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsvc.cli import dumping, interrupts, output, progress, recounting
from musicsvc.cli.activity import parse_time
from musicsvc.cli.options import TIME_HELP, Email, Yes, flag, group, option, row_option
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from musicsvc.server.shapes import envelope
from musicsvc.store.accounts import users
from musicsvc.store.engine import store as stores
from musicsvc.store.plays import retention, verify
from musicsvc.store.plays.periods import to_date
from musicsvc.store.plays.reported import account_plays
from musicsvc.wording import quantity

Since = Annotated[str | None, option("TIME", f"Only plays reported since this time. {TIME_HELP}")]
TrackId = Annotated[int | None, row_option("track", "Only plays of this track.", "--track")]
Limit = Annotated[int, option("N", "Only the newest N reports.", min=1, max=1_000_000)]
Dumped = Annotated[
    Path | None, option("DIR", "Recount from the plays that musicsvc plays dump wrote to this folder.", "--from")
]
COUNTED = 1_000_000
SHOWN_TRACKS = 20

app = group(
    "plays dump --output plays",
    "plays recount --from plays --kind artist --period 2026-10 --compare",
    "plays withdraw --user eve@example.test --since 2h",
)


@app.command()
def recount(
    session: Session,
    *,
    check: Annotated[bool, flag("Only compare; exit with 1 if counts differ.", "--check")] = False,
    folder: Dumped = None,
    options: recounting.Options,
) -> None:
    """Recount all figures from the stored plays, list differences and correct them.

    With --from, the figures of tracks, albums or artists are recounted from dumped plays (musicsvc plays dump). This
    needs no database, except to --compare, and changes nothing. Periods are as of the time of the dump. All other
    options but --check and --json are for --from.
    """
    if folder is not None:
        if check:
            raise typer.BadParameter("Use --compare with --from.", param_hint="--check")
        recounting.run(session, folder, options)
        return
    if options.given:
        raise typer.BadParameter("Needs --from DIR.", param_hint=options.given[0])
    with session.store() as store, progress.bar(session, "days") as on_progress:
        report = verify.run(store, check=check, on_progress=on_progress)
    if session.json:
        output.print_json(_shown(report, check=check))
    else:
        _draw(session, report, check=check)
    if check and report.differing:
        raise typer.Exit(1)


def _shown(report: verify.VerifyReport, *, check: bool) -> dict[str, Any]:
    differences = [difference._asdict() for difference in report.differences]
    return asdict(report) | {
        "kept_from": output.format_day(report.kept_from),
        "differences": differences,
        "mended": not check,
    }


def _draw(session: Session, report: verify.VerifyReport, *, check: bool) -> None:
    shown = [
        {
            "row": row,
            "stored plays / listeners": "{:,} / {:,}".format(*stored),
            "counted": "{:,} / {:,}".format(*counted),
        }
        for row, stored, counted in report.differences
    ]
    if shown:
        output.print_table(session, shown, shown[0])
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


app.command()(dumping.dump)


@app.command()
def prune(session: Session) -> None:
    """Delete single plays older than plays.keep_days days. Counts of plays and listeners stay."""
    keep = session.settings().plays.keep_days
    gone, first = 0, 0
    if keep:
        with session.store() as store, progress.bar(session, "days") as on_progress:
            gone, first = retention.prune(store, keep, now=session.clock.now(), on_progress=on_progress)
        session.echo(f"Deleted {quantity(gone, 'play')} before {to_date(first)}.")
    else:
        session.echo("Nothing was deleted, because plays.keep_days is 0. Set it to the number of days to keep.")
    if session.json:
        output.print_json({"deleted": gone, "kept_from": output.format_day(first)})


@app.command("list")
def list_(session: Session, email: Email = "", since: Since = None, track: TrackId = None, limit: Limit = 100) -> None:
    """List the plays that an account reported, newest report first.

    The time of the report is not known of plays that an earlier version stored; --since leaves them out.
    """
    reported_since = parse_time(since, session.now, "--since")
    with session.store() as store:
        reports = _reports(store, email, reported_since, track)
        plays = store.read(lambda: account_plays.newest(reports, limit)).result()
        count = store.read(lambda: account_plays.count(reports, COUNTED)).result() if len(plays) == limit else 0
    rows = [
        envelope.picked(play, "played_at", "track_id", "track")
        | {"listener": "own" if play.own else "other"}
        | envelope.picked(play, "reported_at")
        for play in plays
    ]
    output.print_table(session, rows, ("played_at", "track_id", "track", "listener", "reported_at"))
    if count > len(plays):
        more = "at least " if count == COUNTED else ""
        session.echo(f"The newest {len(plays):,} of {more}{count:,} plays. --limit shows more.")


@app.command()
def withdraw(session: Session, email: Email = "", since: Since = None, track: TrackId = None, yes: Yes = False) -> None:
    """Delete plays that an account reported, and correct all figures.

    The command first shows what it will delete, and asks. The client may report deleted plays again. The time of the
    report is not known of plays that an earlier version stored; --since leaves them out.
    """
    reported_since = parse_time(since, session.now, "--since")
    with session.store() as store:
        reports = _reports(store, email, reported_since, track)
        summary = store.read(lambda: account_plays.summarize(reports)).result()
        about = account_plays.describe(reports, summary.plays, summary)
        asking = bool(summary.plays) and not yes
        if asking and not sys.stdin.isatty():
            raise Failure(f"This deletes {about}. To confirm this without a terminal, add --yes.")
        if not session.json:
            _show(session, summary)
        session.echo(f"{email} reported {about}.")
        if summary.kept_from:
            gone = f"Plays before {to_date(summary.kept_from)} cannot be withdrawn"
            session.echo(f"{gone}: only their counts are kept, not the plays themselves.")
        if asking:
            typer.confirm(f"Delete {quantity(summary.plays, 'play')}?", abort=True, err=True)
        state = "Some of these plays may be withdrawn."
        with interrupts.stopping(session, state), progress.bar(session, "plays") as on_progress:
            done = account_plays.withdraw(
                store, reports, summary, now=session.now, actor="cli", on_progress=on_progress
            )
    session.echo(f"Withdrew {quantity(done, 'play')}.")
    if session.json:
        output.print_json(_to_json(summary) | {"withdrawn": done})


def _reports(store: stores.Store, email: str, since: int | None, track: int | None) -> account_plays.Reports:
    account = store.read(lambda: int(users.by_email(email).id)).result()
    return account_plays.Reports(account, since, track)


def _show(session: Session, summary: account_plays.ReportsSummary) -> None:
    """Print the tracks with the most plays on stdout."""
    if summary.plays:
        rows = [each._asdict() for each in summary.tracks[:SHOWN_TRACKS]]
        output.print_table(session, rows, ("track_id", "track", "plays"))
        if len(summary.tracks) > SHOWN_TRACKS:
            session.echo(f"… and {quantity(len(summary.tracks) - SHOWN_TRACKS, 'more track', 'more tracks')}.")


def _to_json(summary: account_plays.ReportsSummary) -> dict[str, Any]:
    dates = [to_date(day).isoformat() for day in summary.days]
    return {
        "tracks": [each._asdict() for each in summary.tracks],
        "days": len(dates),
        "first_day": dates[0] if dates else None,
        "last_day": dates[-1] if dates else None,
        "kept_from": output.format_day(summary.kept_from),
    }
