"""Tables on terminals and in pipes: wrapping, columns left out, and the time for thousands of rows."""

import os
import pty
import select
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.cli.output import GAP, Column, fit, headings, lines, width
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.engine.store import Store
from tests.cli.conftest import Json, Run
from tests.support.command import run_in_process

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

MANY = 7_628
LISTS = ("user list", "token list", "access list")
words = st.text(st.sampled_from("abcde@.é界 "), max_size=40).map(lambda text: " ".join(text.split()) or "-")
tables = st.integers(1, 5).flatmap(
    lambda number: st.lists(st.lists(words, min_size=number, max_size=number), min_size=1, max_size=4)
)


@given(tables, st.integers(1, 90), st.booleans())
def test_words_are_not_split_and_lines_have_no_trailing_blanks(rows: list[list[str]], room: int, whole: bool) -> None:
    columns = [
        Column(f"heading {number}", [row[number] for row in rows], whole=whole and number == 0)
        for number in range(len(rows[0]))
    ]
    kept, left_out = fit(columns, room)
    shown = [*headings(kept, room), *lines(kept, room)]

    assert kept[0] is columns[0]
    assert [column for column in columns if column in kept] == kept
    assert [column for column in columns if column not in kept] == left_out
    assert shown == [line.rstrip() for line in shown]
    wanted = [word for column in kept for cell in ("heading", *column.cells) for word in cell.split()]
    found = [word for line in shown for word in line.split()]
    assert all(found.count(word) >= wanted.count(word) for word in wanted)
    if all(column.longest_word == column.least for column in kept) and len(kept) > 1:
        assert max(map(width, shown)) <= room
    assert bool(left_out) == (len(columns) > 1 and sum(column.least + GAP for column in columns) - GAP > room)


@pytest.mark.parametrize("name", ["W" * 255, "界" * 255, "of the " + "é" * 255])
def test_long_words_of_names_are_cut_to_the_width_of_a_terminal_only(name: str) -> None:
    columns = [Column("id", ["7"]), Column("name", [name], cut=True), Column("plays", ["12"])]
    shown = list(lines(columns, 80))
    assert max(map(width, shown)) <= 80
    assert "..." in "".join(shown)
    assert name in "".join(lines(columns, None))


def test_a_cut_word_fills_its_column() -> None:
    columns = [Column("id", ["7", "10"]), Column("name", ["W" * 30, "界" * 15], cut=True)]
    assert list(lines(columns, 30)) == [f"7   {'W' * 23}...", f"10  {'界' * 11}..."]
    assert list(lines(columns, 34)) == [f"7   {'W' * 30}", f"10  {'界' * 15}"]
    assert list(lines(columns, 20)) == [f"7   {'W' * 21}...", f"10  {'界' * 10}..."]  # never narrower than 24
    assert [len(found) for found in fit(columns, 28)] == [2, 0]
    assert [len(found) for found in fit(columns, 27)] == [1, 1]


@pytest.fixture
def people(run: Run, store: Store) -> list[str]:  # noqa: ARG001 - `run` is for the settings
    """Create accounts with long emails, access, requests and tokens, one of them revoked with a long reason."""
    now = time.time_ns() // 1000
    emails = [f"{name}.{name}-{'x' * length}@label.example.test" for name, length in (("ada", 4), ("bob", 9))]

    def unit() -> None:
        for email in emails:
            user = users.create(email, display_name=f"The artist formerly known as {email[:3]}", now=now)
            api_access.grant(user, now=now)
            tokens.create(user, "the laptop of the studio", now=now)
        api_access.request("someone.else@label.example.test", "a site of our own", "100 a day", "Label", now=now)
        tokens.revoke(2, "abuse: 101 refusals by 429 in 300 s without a pause", now=now)

    store.write(unit).result()
    return emails


def at(columns: int, line: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, list[str]]:
    """Run a command on a terminal of this width; return its stdout, its stderr and the columns left out."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "dumb")
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor has no path
        done = run_in_process(line.split(), output=stream)
        shown = b""
        while select.select([ours], [], [], 0)[0]:
            shown += os.read(ours, 65_536)
    os.close(ours)
    assert done.returncode == 0
    left_out = done.stderr.partition(": ")[2].partition(".")[0].split(", ") if done.stderr else []
    return shown.decode().replace("\r\n", "\n"), done.stderr, left_out


@pytest.mark.parametrize("columns", [300, 80, 60, 40, 20])
def test_ids_emails_and_times_are_not_split_at_any_width(
    people: list[str], ask: Json, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    for line in LISTS:
        rows = ask(*line.split())
        shown, said, left_out = at(columns, line, monkeypatch)
        assert said.count("\n") == (columns < 300), said
        assert all((email in shown) == ("email" not in left_out) for email in people), (line, shown)
        for key in (key for key in rows[0] if key in {"created_at", "expires_at", "requested_at"}):
            times = [row[key][:16].replace("T", " ") for row in rows if row[key]]
            heading = f"{key.removesuffix('_at')} (UTC)"
            if heading in shown:
                assert all(shown.count(time) >= times.count(time) for time in times), (line, shown)
            elif columns == 300:
                assert (line, key) == ("token list", "created_at")
        assert shown == "".join(f"{part.rstrip()}\n" for part in shown.splitlines())
        if columns >= 60:
            assert max(map(len, shown.splitlines())) <= columns


def test_columns_left_out_are_named_once_and_not_with_quiet(people: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert people
    shown, said, _ = at(80, "user list", monkeypatch)
    # No account is suspended, so that column goes first.
    assert said == (
        "Left out at 80 columns: suspended (UTC), created (UTC). A wider terminal shows them, and so does --json.\n"
    )
    assert "reports" in shown
    assert at(80, "user list --quiet", monkeypatch)[1] == ""


def test_lines_in_a_pipe_have_no_trailing_blanks(people: list[str], run: Run) -> None:
    for line in (*LISTS, f"user show {people[0]}", "config show"):
        out = run(*line.split()).stdout
        assert out == "".join(f"{part.rstrip()}\n" for part in out.splitlines())
        assert out.count("\n") > 2


@pytest.mark.slow
def test_thousands_of_rows_cost_little_more_than_their_json(run: Run, store: Store) -> None:
    def unit() -> None:
        people = [users.NewUser(f"{number}@import.test", f"{number} of many") for number in range(MANY)]
        users.create_many(people, now=1)

    store.write(unit).result()

    def cost(*more: str) -> float:
        before = time.process_time()
        assert run("user", "list", *more).stdout.count("import.test") == MANY
        return time.process_time() - before

    cost()  # loads what is loaded once
    assert min(cost(), cost()) < 2 * min(cost("--json"), cost("--json"))
