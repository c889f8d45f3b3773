"""Print API calls and security events as lines of text or as JSON."""

import json as jsonlib
import sys
from collections.abc import Iterable

import typer

from musicsvc.cli import output
from musicsvc.cli.output import JSON
from musicsvc.store.activity.calls import Entry
from musicsvc.store.engine.store import Store
from musicsvc.store.security.security_events import Event
from musicsvc.wording import escape_controls, quantity


class Printer:
    """Prints API calls and security events. Reads the e-mail address of each account only once."""

    def __init__(self, store: "Store", *, json: bool, lines: bool) -> None:
        """`json`: print a JSON array instead of text. `lines`: if `json` is set, print one JSON object per line."""
        self._store = store
        self._json = json
        self._lines = lines
        self._emails: dict[int, str] = {}

    def print(self, found: "list[Entry | Event]") -> None:
        named = {row.account_id for row in found} | {_actor_id(row) for row in found}
        self._look_up(account_id for account_id in named if account_id is not None)
        if not self._json:
            text = "".join(escape_controls(self._line(row)) + "\n" for row in found)
        elif self._lines:
            text = "".join(jsonlib.dumps(self._record(row)) + "\n" for row in found)
        else:
            output.print_json([self._record(row) for row in found])
            return
        typer.echo(text, nl=False)
        sys.stdout.flush()

    def _look_up(self, ids: Iterable[int]) -> None:
        from musicsvc.store.accounts import users

        unknown = set(ids) - self._emails.keys()
        if unknown:
            self._emails |= self._store.read(lambda: users.emails(unknown)).result()

    def _email(self, account_id: int | None) -> str | None:
        return None if account_id is None else self._emails.get(account_id)

    def _name(self, account_id: int) -> str:
        return self._email(account_id) or f"account {account_id}"

    def _record(self, row: "Entry | Event") -> JSON:
        who = {"account": self._email(row.account_id)}
        if not isinstance(row, Entry):
            who["actor_account"] = self._email(row.actor_id)
        kind = "call" if isinstance(row, Entry) else "event"
        return {"type": kind, **row._asdict(), "at": output.format_time(row.at), **who}

    def _line(self, row: "Entry | Event") -> str:
        moment = (output.format_time(row.at) or "")[:23].replace("T", " ")
        who = "-" if row.account_id is None else self._name(row.account_id)
        token = "" if row.token_id is None else f" token {row.token_id}"
        if not isinstance(row, Entry):
            reason = (row.reason or "").removeprefix(
                f"{row.actor}: "
            )  # reasons from the abuse monitor begin with its name
            why = f": {reason}" if reason else ""
            by = row.actor if row.actor_id is None else f"{row.actor} {self._name(row.actor_id)}"
            return f"{moment}  {row.kind}  {who}{token}  by {by}{why}"
        if row.is_count:
            calls = f"{quantity(row.calls, 'more call')} without a token in this minute"
            return f"{moment}  {row.status} {calls}  {row.address}  {row.size} bytes"
        what = row.route or "(no endpoint)"
        about = f"  {row.resource}" if row.resource else ""
        wait = "" if row.retry_after is None else f"  retry after {row.retry_after} s"
        cost = f"{row.milliseconds:.1f} ms  {row.size} bytes{wait}  {row.request_id}"
        return f"{moment}  {row.status} {row.method or '-':6} {what}{about}  {who}{token}  {row.address}  {cost}"


def _actor_id(row: "Entry | Event") -> int | None:
    return None if isinstance(row, Entry) else row.actor_id
