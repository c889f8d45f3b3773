"""Importing files in the browser: upload, columns, check, import, refused rows, undo."""

import asyncio
import errno
import fcntl
import gzip
import re
from codecs import BOM_UTF8
from collections.abc import AsyncIterator
from datetime import time
from pathlib import Path

import aiohttp
import orjson
import pytest

from musicsvc import descriptors
from musicsvc.store.accounts import api_access, users
from musicsvc.store.importing.runner import Pace
from musicsvc.store.importing.tasks import queue
from musicsvc.store.importing.tasks.uploads import Place
from musicsvc.store.models import Album, Artist, ImportTask, Play, Playlist, PlaylistTrack, Track, TrackLike
from musicsvc.store.security import sessions
from tests.support.bounds import Bounds
from tests.support.history_files import stream
from tests.support.html_page import HtmlPage
from tests.support.page_client import text
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import Person
from tests.support.workbooks import write_xlsx

SHEET = b"""Title;Artist;Duration;Released;Genre
Air;Trio;3:45;2026-10-15;Jazz
Bolero;Trio;4:05;2026-10-16;Jazz
;Trio;1:00;2026-10-17;Jazz
Caprice;Solo;2:10;2026-10-18;
"""
ROWS = 300


def many(rows: int = ROWS) -> bytes:
    return "\n".join(("Title,Artist", *(f"Etude {row},Czerny" for row in range(rows)), "")).encode()


async def until(person: Person, path: str, shown: bytes, *, gone: bool = False) -> str:
    """Return the page once it shows this or, with `gone`, no longer shows it."""
    async with asyncio.timeout(30):
        while (shown in (answer := await person.browser.get(path)).body) == gone:  # noqa: ASYNC110 - as browsers do
            await asyncio.sleep(0.05)
    return text(answer)


async def ready(person: Person, path: str) -> str:
    """Return the page once nothing is under way any more."""
    return await until(person, path, b"hx-get", gone=True)


async def uploaded(person: Person, content: bytes = SHEET, name: str = "songs.csv", kind: str = "catalog") -> str:
    """Upload a file, wait until it is checked, and return the path of its page."""
    answer = await person.browser.post("/import", {"kind": kind, "replace": "on", "file": (name, content)})
    assert answer.status == 303, text(answer)
    await ready(person, answer.headers["Location"])
    return answer.headers["Location"]


async def imported(person: Person, path: str, **chosen: str) -> str:
    """Import the file with the button of its page, after choosing this in the form above it."""
    shown = HtmlPage((await person.browser.get(path)).body).forms
    sent = shown.get(f"{path}/columns", {}) | {"reading": "shown"} | chosen
    assert (await person.browser.post(f"{path}/start", {k: v for k, v in sent.items() if k != "None"})).status == 303
    return await ready(person, path)


@pytest.fixture(autouse=True)
def soon(bounds: Bounds) -> None:
    """Let the server look for tasks more often."""
    bounds(poll_seconds=0.02)


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch, bounds: Bounds) -> pytest.MonkeyPatch:
    """Make imports slow, until `undo` is called."""
    bounds(import_pace=Pace(rows=10, rest=20.0))
    return monkeypatch


async def running(person: Person) -> str:
    """Begin to import many rows, wait until some are in, and return the path of the page."""
    path = await uploaded(person, many())
    await person.browser.post(f"{path}/start")
    async with asyncio.timeout(30):
        while not tracks(person):  # noqa: ASYNC110 - as browsers do
            await asyncio.sleep(0.02)
    return path


def tracks(person: Person) -> list[str]:
    """Return the names of the tracks that the account has imported."""
    own = Track.select(Track.name).where(Track.imported_for == person.id).order_by(Track.id)
    return person.shared.store.read(lambda: [track.name for track in own]).result()


def files(person: Person) -> list[Path]:
    """Return the files of the account on the disk of the server."""
    folder = Path(person.shared.store.url.removeprefix("sqlite:///")).parent / "temporary"
    return list(Place.build(folder, person.shared.store.url).folder.glob(f"{person.id}/*"))


@pytest.mark.on_both
@on_shared_loop
async def test_a_sheet_is_checked_imported_and_undone(developer: Person) -> None:
    path = await uploaded(developer)
    shown = text(await developer.browser.get(path))
    assert "Import the file" in shown
    assert "4 rows read, 1 of them refused" in shown
    fields = ["track", "artist", "duration_ms", "release_date", "genre"]
    assert re.findall(r'value="(\w+)" selected', shown)[:5] == fields
    assert tracks(developer) == []
    shown = await imported(developer, path, artist="Ann")  # of a choice that was not read yet
    assert ('value="Ann"' in shown, "An import would do this" in shown, tracks(developer)) == (True, True, [])
    shown = await imported(developer, path)
    assert "line 4: track is missing" in shown
    removed = await developer.browser.post(f"{path}/discard")  # in a window from before the import
    assert (removed.status, "was imported" in text(removed)) == (409, True)
    refused = await developer.browser.get(f"{path}/refused.csv")
    assert refused.body.decode().splitlines() == [
        '\ufeff"line","reason","Title","Artist","Duration","Released","Genre"',
        '"4","track is missing","","Trio","1:00","2026-10-17","Jazz"',
    ]
    assert tracks(developer) == ["Air", "Bolero", "Caprice"]
    (undo,) = set(re.findall(r"/imports/\d+/undo", shown))
    assert "3 tracks" in text(await developer.browser.get(undo))
    air = Track.select(Track.id).where(Track.imported_for == developer.id, Track.name == "Air")
    developer.do(lambda user: TrackLike.create(track=air, user=user.id, created_at=1))
    assert "Keeps tracks (likes): “Air”." in text(await developer.browser.get(undo))
    assert (await developer.browser.post(undo)).headers["Location"] == "/import"
    shown = await ready(developer, "/import")
    assert ("Kept tracks (likes): “Air”." in shown, "Your file" in shown) == (True, False)
    assert (await developer.browser.get(path)).status == 404
    assert tracks(developer) == ["Air"]
    developer.do(lambda user: TrackLike.delete().where(TrackLike.user == user.id).execute())
    assert (await developer.browser.post(undo)).headers["Location"] == "/import"
    assert "Undone: 1 track" in await ready(developer, "/import")
    assert tracks(developer) == []
    about = [(event.kind, event.actor) for event in developer.events() if event.kind.startswith("import.")]
    names = ("started", "done", *("undo_started", "undone") * 2)
    assert about == [(f"import.{name}", "page") for name in names]
    assert (await developer.browser.post(undo)).status == 409


@on_shared_loop
async def test_an_import_of_artists_that_were_assigned_to_another_account_is_not_undone(developer: Person) -> None:
    shown = await imported(developer, await uploaded(developer))
    (undo,) = set(re.findall(r"/imports/\d+/undo", shown))
    solo = Artist.update(manager=None).where(Artist.name == "Solo", Artist.manager == developer.id)
    developer.do(lambda _: solo.execute())
    referer = f"{developer.browser.root}/import"
    for refused in (await developer.browser.get(undo, Referer=referer), await developer.browser.post(undo)):
        assert (refused.status, "belong to another account now" in text(refused)) == (409, True)
        assert "<h1>Not possible</h1>" in text(refused)
    assert 'href="/import">Go back to the page' in text(await developer.browser.get(undo, Referer=referer))
    assert len(tracks(developer)) == 3


@on_shared_loop
async def test_an_undo_restores_no_album_that_another_account_has_got(developer: Person) -> None:
    sheet = b"Title,Artist,Album,Label\nAir,Trio,Suite,\n"
    await imported(developer, await uploaded(developer, sheet))
    shown = await imported(developer, await uploaded(developer, sheet.replace(b"Suite,", b"Suite,Own")))
    (undo,) = set(re.findall(r"/imports/\d+/undo", shown))
    trio = Artist.update(manager=None).where(Artist.name == "Trio", Artist.manager == developer.id)
    developer.do(lambda _: trio.execute())
    assert (await developer.browser.post(undo)).status == 409


@on_shared_loop
async def test_corrected_refused_rows_are_imported(developer: Person) -> None:
    path = await uploaded(developer)
    await imported(developer, path)
    sent = (await developer.browser.get(f"{path}/refused.csv")).body
    assert sent.startswith(BOM_UTF8)
    corrected = sent.replace(b'"track is missing","",', b'"track is missing","Dum\xc3\xa9ka",')
    await imported(developer, await uploaded(developer, corrected, "refused.csv"))
    assert tracks(developer) == ["Air", "Bolero", "Caprice", "Duméka"]


@pytest.mark.only_on("sqlite")
@on_shared_loop
async def test_a_packed_history_is_not_unpacked_without_bounds(developer: Person) -> None:
    developer.do(lambda user: api_access.grant(user, plays=True, now=2))
    entry = b'{"endTime": "2026-01-01 10:00", "msPlayed": 60000, "trackName": "A", "artistName": "B"},'
    history = gzip.compress(b"[" + entry * 400_000 + b"{}]")
    shown = text(await developer.browser.get(await uploaded(developer, history, "h.json.gz", "plays")))
    assert "more than 32 MiB, unpacked" in shown


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("h.json", b'[{"ms_played": 9, "master_metadata_track_name": "Rag"}]', "The file is a listening history."),
        ("h.csv", b"ms_played,master_metadata_track_name\n9,Rag\n", "The file is a listening history."),
        ("h.csv", b"Ann,Rag,3:45\nAnn,Air,4:45\n", "If the first row has data, put a row of names above it."),
        ("h.csv", b"track,artist\n", "The file has no rows."),
    ],
)
@on_shared_loop
async def test_what_is_no_catalog_is_told(developer: Person, file: str, content: bytes, told: str) -> None:
    shown = text(await developer.browser.get(await uploaded(developer, content, file)))
    assert told in shown
    assert "Import the file" not in shown


@on_shared_loop
async def test_a_file_whose_check_was_interrupted_is_read_again(developer: Person) -> None:
    path = await uploaded(developer)
    report = {"problem": queue.INTERRUPTED, "again": True}
    developer.do(lambda _: queue.finish(int(path.rpartition("/")[2]), queue.STOPPED, report, None))
    assert "Read the file again" in text(await developer.browser.get(path))
    await developer.browser.post(f"{path}/columns", {})
    assert "Import the file" in await ready(developer, path)


@on_shared_loop
async def test_headings_are_shown_cut_and_can_still_be_chosen(developer: Person) -> None:
    long = "y" * 255
    path = await uploaded(developer, f"{long},Artist\nAir,Trio\n".encode())
    shown = await ready(developer, path)
    assert "y" * 80 + "…" in shown
    assert "y" * 81 not in shown
    await developer.browser.post(f"{path}/columns", {"column-0": "track", "column-1": "artist"})
    await ready(developer, path)
    await imported(developer, path)
    assert tracks(developer) == ["Air"]


@on_shared_loop
async def test_columns_are_read_as_chosen(developer: Person) -> None:
    content = b"Work,Artist,When,Title\nAir,Trio,03/04/2026,x\nBolero,Trio,04/05/2026,y\n"
    path = await uploaded(developer, content)
    choice = {"column-0": "track", "column-1": "artist", "column-2": "release_date", "column-3": "album"}
    await developer.browser.post(f"{path}/columns", choice)
    assert "day and month can be either way round" in await ready(developer, path)
    assert (await developer.browser.post(f"{path}/start")).status == 409
    twice = await developer.browser.post(f"{path}/columns", choice | {"column-3": "track"})
    assert (twice.status, "Another column is read as this already." in text(twice)) == (422, True)
    unknown = await developer.browser.post(f"{path}/columns", choice | {"column-3": "password"})
    assert (unknown.status, "There is no such field." in text(unknown)) == (422, True)
    await developer.browser.post(f"{path}/columns", choice | {"date_format": "DD/MM/YYYY"})
    shown = await ready(developer, path)
    assert "2 rows read, 0 of them refused" in shown
    await imported(developer, path)
    own = Track.select(Track.name, Track.release_date, Album.name).join(Album).where(Track.imported_for == developer.id)
    found = developer.shared.store.read(lambda: list(own.order_by(Track.id).tuples())).result()
    assert found == [("Air", "2026-04-03", "x"), ("Bolero", "2026-05-04", "y")]


@on_shared_loop
async def test_new_artists_are_named_and_divided_as_the_account_says(developer: Person) -> None:
    sheet = b"Title,Artist,Genre\nAir,Ann & Bob,a & b\nJig,Ann <i>,a\nBolero,Cat x Ann & Bob,a\n"
    path = await uploaded(developer, sheet)
    shown = await ready(developer, path)
    assert listed(shown) == [
        'Ann & Bob <small class="muted">&</small>',
        'Cat x Ann & Bob <small class="muted">x &</small>',
        "Ann <i>",
    ]
    assert re.findall(r'name="divide-(\d)"', shown) == ["1", "2"]
    choice = {"column-0": "track", "column-1": "artist", "column-2": "genre"}
    wrong = await developer.browser.post(f"{path}/columns", choice | {"divide-1": "a b c d e f g h i j k"})
    assert (wrong.status, "a rule has at most 10 signs" in text(wrong)) == (422, True)
    equals = await developer.browser.post(f"{path}/columns", choice | {"divide-1": "="})
    assert (equals.status, "Names cannot be divided at =." in text(equals)) == (422, True)
    await developer.browser.post(f"{path}/columns", choice | {"divide-1": " &  x "})
    shown = await ready(developer, path)
    assert "divided at & x" in shown
    assert listed(shown) == ["Ann", "Bob", "Ann <i>", "Cat"]
    shown = await imported(developer, path)
    assert listed(shown) == ["Ann", "Bob", "Ann <i>", "Cat"]
    assert artists(developer) == ["Ann", "Bob", "Ann <i>", "Cat"]


@on_shared_loop
async def test_a_rule_of_the_account_is_kept_for_its_next_file_until_it_is_emptied(developer: Person) -> None:
    path = await uploaded(developer, b"Title,Artist\nAir,Ann & Bob\n")
    choice = {"column-0": "track", "column-1": "artist"}
    await developer.browser.post(f"{path}/columns", choice | {"divide-1": "&"})
    await ready(developer, path)
    await imported(developer, path)
    path = await uploaded(developer, b"Title,Artist\nJig,Cat & Dan\n")
    shown = await ready(developer, path)
    assert "divided at & as in an earlier import" in shown
    assert re.findall(r'name="divide-1"[^>]* value="([^"]*)"', shown) == ["&"]
    for _ in range(2):  # it stays empty when the file is read once more
        await developer.browser.post(f"{path}/columns", choice | {"divide-1": ""})
        assert "divided at semicolons only" in await ready(developer, path)
    (link,) = re.findall(r'href="(/insights/artist/split[^"]*)"', await imported(developer, path))
    assert artists(developer) == ["Ann", "Bob", "Cat & Dan"]
    form = HtmlPage((await developer.browser.get(link.replace("&amp;", "&"))).body).forms["/insights/artist/split"]
    assert (form["artist"], form["into"]) == ("Cat & Dan", "Cat\nDan")


def listed(shown: str) -> list[str]:
    """Return the names in the list of new artists."""
    return re.findall(r"<li>(.*?)</li>", shown.partition("<h2>New artists</h2>")[2])


def artists(person: Person) -> list[str]:
    own = Artist.select(Artist.name).where(Artist.manager == person.id).order_by(Artist.id)
    return person.shared.store.read(lambda: [artist.name for artist in own]).result()


@on_shared_loop
async def test_an_encoding_is_guessed_and_another_can_be_chosen(developer: Person) -> None:
    path = await uploaded(developer, "Title,Artist\nJóga,Björk\n".encode("mac-roman"))
    shown = await ready(developer, path)
    assert "The file is not UTF-8 and was read as Mac Roman." in shown
    assert ("as the file says (Mac Roman)" in shown, "Jóga" in shown) == (True, True)
    await developer.browser.post(f"{path}/columns", {"encoding": "cp1252"})
    assert "J—ga" in await ready(developer, path)
    refused = await developer.browser.post(f"{path}/columns", {"encoding": "rot13"})
    assert "There is no such encoding." in text(await developer.browser.get(path)) + text(refused)

    path = await uploaded(developer, "曲名,Artist\n雨,宇多田ヒカル\n".encode("shift_jis"))
    shown = await ready(developer, path)
    assert "Line 1 is not UTF-8, and no guess at its encoding fits." in shown
    assert "--encoding" not in shown
    await developer.browser.post(f"{path}/columns", {"encoding": "shift_jis"})
    assert "宇多田ヒカル" in await ready(developer, path)
    choice = {"encoding": "shift_jis", "column-0": "track", "column-1": "artist"}
    await developer.browser.post(f"{path}/columns", choice)
    await ready(developer, path)
    await imported(developer, path)
    assert tracks(developer) == ["雨"]


@pytest.mark.slow
@on_shared_loop
async def test_files_of_all_kinds_are_read(developer: Person, tmp_path: Path) -> None:
    lines = b'{"track": "Air", "artist": "Trio"}\n{"track": "Bolero", "artist": "Trio"}\n'
    book = write_xlsx(
        tmp_path / "b.xlsx", [["Title", "Artist"], ["Air", "Trio"]], Other=[["Song", "Artist"], ["Jig", "T"]]
    )
    for name, content, rows in (
        ("songs.jsonl", lines, 2),
        ("songs.csv.gz", gzip.compress(SHEET), 4),
        ("songs", SHEET, 4),
        ("songs.xlsx", book.read_bytes(), 1),
    ):
        path = await uploaded(developer, content, name)
        assert f"{rows} row" in text(await developer.browser.get(path)), name
    choice = {"column-0": "track", "column-1": "artist", "sheet": "Other"}
    await developer.browser.post(f"{path}/columns", choice)
    await ready(developer, path)
    await imported(developer, path)
    assert tracks(developer) == ["Jig"]


@on_shared_loop
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe\x00", "The file is damaged or not UTF-16"),
        (b"Title,Title\nA,B\n", "Line 1 names the column 'Title' twice"),
        ("Title,Artist\n宇多田,B\n".encode("shift_jis"), "Line 2 is not UTF-8"),
        (b"%PDF-1.4", "The file is a PDF document, which cannot be imported."),
        (b"a,b\n1,2\n", "No column has the track."),
    ],
)
async def test_an_unreadable_file_is_explained_without_its_path(
    developer: Person, content: bytes, message: str
) -> None:
    shown = text(await developer.browser.get(await uploaded(developer, content)))
    assert message in shown
    assert "temporary" not in shown
    listed = text(await developer.browser.get("/import"))
    assert re.findall(r"[^>]*songs\.csv[^<]*", listed) == ["songs.csv", "songs.csv"]  # to replace it, and to open it
    assert "--" not in re.sub(r"<[^>]*>", "", shown)
    assert "Import the file" not in shown


@on_shared_loop
async def test_a_file_of_an_unknown_format_says_how_to_save_it(developer: Person) -> None:
    shown = text(await developer.browser.get(await uploaded(developer, b"no workbook", name="songs.xlsx")))
    assert "The format of the file is not clear." in shown
    assert "save the table as CSV or as an Excel workbook" in shown


@on_shared_loop
@pytest.mark.parametrize(
    ("content", "name", "chosen", "message"),
    [
        (b'{"track": "Air", "artist": "Trio"}\n', "a.jsonl", {"column-0": "track"}, "artist (as you chose)."),
        (SHEET, "songs.csv", {"sheet": "Other"}, "The file has no sheets."),
    ],
)
async def test_what_is_chosen_is_refused_in_the_words_of_the_page(
    developer: Person, content: bytes, name: str, chosen: dict[str, str], message: str
) -> None:
    path = await uploaded(developer, content, name)
    assert (await developer.browser.post(f"{path}/columns", chosen)).status == 303
    shown = re.sub(r"<[^>]*>", "", await ready(developer, path))
    assert (message in shown, "--" in shown) == (True, False), shown


@on_shared_loop
async def test_only_accounts_that_may_report_for_others_import_plays(developer: Person) -> None:
    explained = text(await developer.browser.get("/import"))
    assert (
        "Files of plays are for accounts that may report plays of others. Ask an administrator for that." in explained
    )
    catalog = await uploaded(developer)
    await imported(developer, catalog)
    rows = ("Trio,Air,fan,1500000000,2", "Trio,Bolero,fan,1500000100,1", "Trio,Gone,fan,1500000200,1")
    plays = "\n".join(("artist,track,listener,played_at,streams", *rows)).encode()
    refused = await developer.browser.post("/import", {"kind": "plays", "file": ("plays.csv", plays)})
    assert (refused.status, "report plays of others. Ask an administrator for it." in text(refused)) == (422, True)
    developer.do(lambda user: api_access.grant(user, plays=True, now=2))
    for head, told in (
        (b"artist,track,b", "No column has the time of the play."),
        (b"played_at,b,c", "No column names"),
    ):
        shown = text(await developer.browser.get(await uploaded(developer, head + b"\n1,2,3\n", "plays.csv", "plays")))
        assert (told in shown, "Choose below which one" in shown) == (True, True)
    path = await uploaded(developer, plays, "plays.csv", "plays")
    told = "plays must be 1, as each row is one play; line 2 has 2. Import a table of single plays."
    assert told in text(await developer.browser.get(path))
    columns = {f"column-{at}": field for at, field in enumerate(("artist", "track", "listener", "played_at", ""))}
    await developer.browser.post(f"{path}/columns", columns)
    await ready(developer, path)
    assert "choose to create what is missing" in text(await developer.browser.get(path))
    await developer.browser.post(f"{path}/columns", columns | {"create_missing": "on"})
    await ready(developer, path)
    await imported(developer, path)
    own = Play.select().join(Track, on=(Track.id == Play.track)).where(Track.imported_for == developer.id)
    assert developer.shared.store.read(own.count).result() == 3


@on_shared_loop
async def test_a_history_comes_in_for_the_listener_that_is_named(developer: Person, tmp_path: Path) -> None:
    developer.do(lambda user: api_access.grant(user, plays=True, now=2))
    streams = [stream(ts=f"2024-05-0{day}T10:03:20Z", incognito_mode=day > 2) for day in (1, 2, 3)]
    book = write_xlsx(tmp_path / "a.xlsx", [[*streams[0]], *([*each.values()] for each in streams)])
    for name, content, new in (("endsong_0.json", orjson.dumps(streams[:1]), 1), ("a.xlsx", book.read_bytes(), 2)):
        path = await uploaded(developer, content, name, "plays")
        shown = text(await developer.browser.get(path))
        assert "This is a listening history" in shown
        assert "name a listener for the whole file" in shown
        await developer.browser.post(f"{path}/columns", {"listener": "me", "create_missing": "on"})
        await ready(developer, path)
        await imported(developer, path)
        own = Play.select().join(Track, on=(Track.id == Play.track)).where(Track.imported_for == developer.id)
        assert developer.shared.store.read(own.count).result() == new


@on_shared_loop
async def test_a_file_with_one_playlist_comes_in_under_the_name_that_is_chosen(developer: Person) -> None:
    shown = await imported(developer, await uploaded(developer, SHEET.replace(b"Genre", b"Playlist")))
    assert "Playlist entries, left out; to import them, upload the file once more as playlists: 3." in shown
    sheet = SHEET.replace(b"Caprice;Solo", b"Gone;Solo & Trio").replace(b"\nAir", b"\nBolero;Trio;;;\nAir")
    for new in (2, 0):
        path = await uploaded(developer, sheet, "Evening mix.csv", "playlists")
        shown = text(await developer.browser.get(path))
        assert "No column has the playlist." in shown
        assert "or name the playlist of all rows" in shown
        assert "5 columns: 2 read, 3 not used" in shown
        assert 'type="text" autocomplete="off" value="Evening mix"' in shown
        assert "this import does not read them" in shown
        assert 'value="duration_ms"' not in shown
        columns = {"column-0": "track", "column-1": "artist", "playlist": "Evening", "strict": "", "public": "on"}
        await developer.browser.post(f"{path}/columns", columns)
        shown = await ready(developer, path)
        assert 'name="public" checked> Make new playlists public' in shown
        assert 'value="Evening"' in shown
        assert "or divide its artists: " in shown
        shown = await imported(developer, path)
        assert f'<th scope="row">Entries</th><td>{new}</td><td>0</td><td>{3 - new}</td><td>2</td>' in shown
        assert "line 5: track is missing" in shown
        assert "line 6: no such track; import the catalog first, or divide its artists: " in shown
    entries = PlaylistTrack.select(Playlist.name, Playlist.public, Track.name).join(Track).switch(PlaylistTrack)
    query = entries.join(Playlist).where(Playlist.owner == developer.id).order_by(PlaylistTrack.id).tuples()
    kept = developer.shared.store.read(lambda: [*query]).result()
    assert kept == [("Evening", True, "Bolero"), ("Evening", True, "Air")]


@on_shared_loop
async def test_accounts_without_access_are_led_to_ask_for_it(person: Person) -> None:
    for answer in (
        await person.browser.get("/import"),
        await person.browser.post("/import", {"file": ("songs.csv", SHEET)}),
    ):
        assert (answer.status, "The account has no API access." in text(answer)) == (403, True)
        assert 'href="/settings/access">Ask for access' in text(answer)
    home = await person.browser.get("/settings/developers")
    assert 'href="/import"' not in text(home)
    person.do(lambda user: api_access.grant(user, now=1))
    assert 'href="/import"' in text(await person.browser.get("/"))


@on_shared_loop
async def test_a_full_line_is_said_in_words(developer: Person) -> None:
    path = await uploaded(developer)

    def fill(number: int) -> None:
        for other in range(number):
            user = users.create(f"other{other}@busy.test", now=1)
            queue.create(user.id, "catalog", "a.csv", "a.csv", "elsewhere", developer.shared.clock.now())

    developer.do(lambda _: fill(queue.MOST_WAITING))
    for refused in (
        await developer.browser.post(f"{path}/start"),
        await developer.browser.post("/import", {"file": ("a.csv", SHEET)}),
    ):
        assert (refused.status, refused.headers["Retry-After"], queue.FULL in text(refused)) == (503, "30", True)
    developer.do(lambda _: ImportTask.delete().where(ImportTask.place == "elsewhere").execute())
    await imported(developer, path)
    assert len(tracks(developer)) == 3


@pytest.mark.only_on("sqlite")
@on_shared_loop
async def test_names_of_files_are_neither_paths_nor_markup(developer: Person) -> None:
    path = await uploaded(developer, name='../../<b>x"é;.csv')
    shown = (await developer.browser.get(path)).body.decode()
    assert "&lt;b&gt;x&#34;é;.csv" in shown
    assert "<b>x" not in shown
    (stored, *_) = sorted(file.name for file in files(developer))
    assert re.fullmatch(r"[0-9a-f]{16}-refused\.csv", stored)
    await imported(developer, path)
    assert ".csv" in (await developer.browser.get("/import")).body.decode()
    assert [file.name for file in files(developer)] == [stored]  # the uploaded file is removed


@pytest.mark.only_on("sqlite")
@on_shared_loop
async def test_a_file_must_be_there_and_not_too_large(developer: Person) -> None:
    post = developer.browser.post
    missing, empty = await post("/import", {"file": ("", b"")}), await post("/import", {"file": ("a.csv", b"")})
    assert (missing.status, "Choose a file." in text(missing)) == (422, True)
    assert (empty.status, "The file is empty." in text(empty)) == (422, True)
    large = await post("/import", {"file": ("a.csv", b"x" * (32 * 2**20 + 1))})
    assert (large.status, "larger than 32 MiB" in text(large)) == (413, True)
    expired = await post("/import", {"file": ("a.csv", SHEET), "form_token": "00"})
    assert (expired.status, files(developer)) == (403, [])
    assert (await post("/import", {"file": ("a.csv", b"x" * (32 * 2**20))})).status == 303


@pytest.mark.only_on("sqlite")
@on_shared_loop
async def test_the_log_says_why_a_file_cannot_be_stored(
    developer: Person, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def locked(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Place, "locked", locked)
    refused = await developer.browser.post("/import", {"file": ("a.csv", SHEET)})
    assert (refused.status, "The file cannot be stored at the moment." in text(refused)) == (503, True)
    (told,) = (line for line in caplog.messages if "503: An uploaded file cannot be stored in " in line)
    assert told.endswith(": No space left on device.")


@pytest.mark.only_on("sqlite")
@on_shared_loop
async def test_the_heads_of_parts_count_towards_the_size_of_the_form(developer: Person) -> None:
    begin = "--b\r\nContent-Disposition: form-data; name="
    token = f'{begin}"form_token"\r\n\r\n{await developer.browser.form_token()}\r\n'
    for parts, status in ((7, 422), (9, 413)):
        heads = [f'{begin}"p{number}";{" " * 8_000}\r\n\r\n\r\n' for number in range(parts)]
        body = f"{token}{''.join(heads)}--b--\r\n"
        answer = await developer.browser.post_body("/import", body.encode(), "multipart/form-data; boundary=b")
        assert answer.status == status


@on_shared_loop
async def test_the_check_shows_what_happens_then_rows_as_they_are_read_then_doubtful_columns(
    developer: Person,
) -> None:
    content = b"""Title;Artist;Duration;Released;BPM;Track #;Catalog No.
Air;Trio; Solo;3:45;31/10/2026;90;one;K-1
Bolero;Trio;4:05;30/10/2026;900;two;K-2
""".replace(b"Trio; Solo", b'"Trio; Solo"')
    shown = text(await developer.browser.get(await uploaded(developer, content)))
    order = ("An import would do this", "First rows, as they are read", "<h2>Columns</h2>", "Import the file")
    assert sorted(order, key=shown.index) == [*order]
    rows = shown[shown.index(order[1]) : shown.index(order[2])]
    assert re.findall('<th scope="col">(.*?)</th>', rows) == [
        *("Line", "Track", "Artist", "Duration", "Release date", "BPM")
    ]
    assert re.findall("<td>(.*?)</td>", rows) == [
        *("2", "Air", "Trio; Solo", "3:45", "2026-10-31", "90"),
        *("3", "Bolero", "Trio", "4:05", "2026-10-30", '<s title="BPM must be between 20 and 400">900</s>'),
    ]
    columns = shown[shown.index(order[2]) : shown.index(order[3])]
    open_at_once, _, closed = columns.partition("<details>")
    names = 'aria-label="(.*?) is read as'
    assert re.findall(names, open_at_once) == ["Released", "BPM", "Track #"]
    assert re.findall(names, closed) == ["Title", "Artist", "Duration", "Catalog No."]
    assert '<small class="muted">day, month, year</small>' in open_at_once
    for said in (
        "Cells left out: 1, BPM must be between 20 and 400; line 3 has 900.",
        "Column not read: Track #, 2 cells, track number must be ",
        "Unused columns: Catalog No. (no field has such a name).",
    ):
        assert f"<li>{said}" in shown
    shown = await imported(developer, await uploaded(developer, content))
    assert "<li>Cells left out: 1, BPM must be between 20 and 400; line 3 has 900.</li>" in shown


@pytest.mark.slow
@on_shared_loop
async def test_with_the_strict_box_a_file_is_imported_as_a_whole_or_not_at_all(developer: Person) -> None:
    path = await uploaded(developer)
    fields = ("track", "artist", "duration_ms", "release_date", "genre")
    choice = {f"column-{at}": field for at, field in enumerate(fields)} | {"strict": "on"}
    await developer.browser.post(f"{path}/columns", choice)
    shown = await ready(developer, path)
    assert "Nothing is imported, as not everything can be: 1 row refused." in shown
    assert 'name="strict" checked' in shown
    assert (await developer.browser.post(f"{path}/start")).status == 409
    path = await uploaded(developer, SHEET.replace(b"\n;", b"\nDumka;"))
    await developer.browser.post(f"{path}/columns", choice)
    assert "Import the file" in await ready(developer, path)
    assert "4 rows read, 0 of them refused." in await imported(developer, path)
    assert len(tracks(developer)) == 4
    path = await uploaded(developer, many(5_050) + b",Czerny\n")  # the check sees the first 5,000 rows only
    await developer.browser.post(f"{path}/columns", {"column-0": "track", "column-1": "artist", "strict": "on"})
    await ready(developer, path)
    assert "Nothing is imported, as not everything can be: 1 row refused." in await imported(developer, path)
    assert len(tracks(developer)) == 4


@on_shared_loop
async def test_a_file_that_is_not_imported_is_replaced_only_if_that_is_asked(developer: Person) -> None:
    assert 'name="replace"' not in text(await developer.browser.get("/import"))
    path = await uploaded(developer)
    assert f'name="replace" required> Replace <a href="{path}">songs.csv</a>' in text(
        await developer.browser.get("/import")
    )
    refused = await developer.browser.post("/import", {"file": ("b.csv", SHEET)})
    assert (refused.status, "songs.csv is not imported yet." in text(refused)) == (409, True)
    await imported(developer, path)  # it is still there
    assert len(tracks(developer)) == 3
    assert 'name="replace"' not in text(await developer.browser.get("/import"))
    assert (await developer.browser.post("/import", {"file": ("b.csv", SHEET)})).status == 303
    await ready(developer, "/import")
    replacing = await developer.browser.post("/import", {"replace": "on", "file": ("c.csv", SHEET)})
    assert replacing.status == 303
    shown = await ready(developer, "/import")
    assert ("c.csv" in shown, "b.csv" in shown) == (True, False)


@pytest.mark.slow
@pytest.mark.only_on("sqlite")
@on_shared_loop
async def test_the_next_file_replaces_the_last_but_not_while_it_is_imported(
    developer: Person, slowly: pytest.MonkeyPatch
) -> None:
    first = await uploaded(developer)
    path = await running(developer)
    assert (await developer.browser.get(first)).status == 404
    refused = await developer.browser.post("/import", {"file": ("b.csv", SHEET)})
    assert (refused.status, "still being read" in text(refused)) == (409, True)
    assert (await developer.browser.post(f"{path}/discard")).status == 409
    await developer.browser.post(f"{path}/stop")
    shown = await ready(developer, path)
    assert "You stopped it." in shown
    assert "An import would do this" in shown  # its numbers are those of the check
    some = len(tracks(developer))
    assert 0 < some < ROWS
    assert "interrupted" in text(await developer.browser.get("/import"))
    slowly.undo()
    await imported(developer, path)
    assert tracks(developer) == [f"Etude {row}" for row in range(ROWS)]  # none twice


@pytest.mark.slow
@pytest.mark.only_on("sqlite")
@on_shared_loop
@pytest.mark.usefixtures("slowly")
async def test_an_import_stops_when_the_account_loses_its_right(developer: Person) -> None:
    path = await running(developer)
    developer.do(lambda user: api_access.revoke(user, now=2))
    assert (await developer.browser.get(path)).status == 403
    async with asyncio.timeout(30):
        while developer.do(lambda user: ImportTask.get(ImportTask.user == user.id).state) != "stopped":  # noqa: ASYNC110 - as browsers do
            await asyncio.sleep(0.05)
    developer.do(lambda user: api_access.grant(user, now=3))
    assert queue.NO_RIGHT in text(await developer.browser.get(path))
    assert 0 < len(tracks(developer)) < ROWS


@pytest.mark.slow
@on_shared_loop
async def test_a_workbook_is_checked_and_imported_like_a_sheet(developer: Person, tmp_path: Path) -> None:
    rows = [("Blue Label",), ("Title", "Artist", "Length", "UPC"), ("Air", "Trio", time(3, 45), 36000291452)]
    content = write_xlsx(tmp_path / "songs.xlsx", rows, Notes=[("a", "b")]).read_bytes()
    path = await uploaded(developer, content, "songs.xlsx")
    shown = text(await developer.browser.get(path))
    for told in (
        "1 row read, 0 of them refused",
        "Read the sheet Sheet, not Notes.",
        "m:ss, which the spreadsheet holds",
    ):
        assert told in shown
    assert (await developer.browser.post(f"{path}/start")).status == 303
    await ready(developer, path)
    own = Track.select(Track.name, Track.duration).where(Track.imported_for == developer.id)
    assert developer.shared.store.read(lambda: list(own.tuples())).result() == [("Air", 225_000)]
    broken = text(await developer.browser.get(await uploaded(developer, content[:-50], "songs.xlsx")))
    assert "The file is damaged: it cannot be read as a zip file." in broken


@pytest.mark.only_on("sqlite")
@on_shared_loop
async def test_an_upload_waits_a_moment_for_the_folder(developer: Person) -> None:
    await uploaded(developer)
    with descriptors.opened(files(developer)[0].parent) as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        sent = asyncio.create_task(developer.browser.post("/import", {"replace": "on", "file": ("b.csv", SHEET)}))
        await asyncio.sleep(0.1)
    assert (await sent).status == 303
    await ready(developer, "/import")


@pytest.mark.only_on("sqlite")
@on_shared_loop
async def test_one_file_at_a_time_is_received_and_only_while_the_session_lasts(developer: Person) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    browser, token = developer.browser, await developer.browser.form_token()

    async def body() -> AsyncIterator[bytes]:
        for name, more, content in (("form_token", "", token), ("file", '; filename="a.csv"', "Title,Artist\r\n")):
            yield f'--x\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{content}\r\n'.encode()
        begun.set()
        await go_on.wait()
        yield b"--x--\r\n"

    headers = {**browser.headers, "Cookie": f"musicsvc={browser.cookies['musicsvc']}"}
    headers["Content-Type"] = "multipart/form-data; boundary=x"
    async with aiohttp.ClientSession() as http:
        url = f"{browser.root}/import"
        slow = asyncio.create_task(http.post(url, data=body(), headers=headers, allow_redirects=False))
        await begun.wait()
        async with asyncio.timeout(20):
            while not files(developer):  # noqa: ASYNC110 - the server is another program in principle
                await asyncio.sleep(0.01)
        second = await browser.post("/import", {"file": ("b.csv", SHEET)})
        assert (second.status, "still being read" in text(second)) == (409, True)
        developer.do(lambda user: sessions.end_all(user.id))
        go_on.set()
        answer = await slow
        assert (answer.status, answer.headers["Location"]) == (303, "/sign-in?next=/import")
    assert files(developer) == []
