"""Listening histories of other services: detection of the format, conversion to our fields, faulty entries."""

import csv
import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from musicsvc.errors import Failure
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.files import histories
from musicsvc.store.importing.files.histories import detection, documents, known
from musicsvc.store.importing.files.records import Limits
from musicsvc.store.importing.plays import listen_rows
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from tests.support.bounds import Bounds
from tests.support.history_files import COLUMNS, LISTEN, Listed, read, stream, write
from tests.support.import_files import import_file
from tests.support.refused_rows import reasons
from tests.support.workbooks import write_xlsx

pytestmark = pytest.mark.only_on("sqlite")  # the statements are those of other imports

RAG = ("Ann; Bea", "Rag", "Two", "2024-05-01T10:00:00", 200_000)
AT = "1714557600"
ROCKBOX = f"""#AUDIOSCROBBLER/1.1
#TZ/UNKNOWN
#CLIENT/Rockbox
Ann\tTwo\tRag\t1\t259\tL\t{AT}\tm-b-id
Ann\tTwo\tRag\t1\t259\tS\t{AT}\t
<Untagged>\t\tRag.mp3\t0\t180\tL\t{AT}

"""
SPINITRON = """"Playlist Title","The Rack"
"Show Description","of
two lines"

Date-time,Artist,Song,Release,Label
2024-05-01T05:00:00-0500,Ann,Rag,Two,None
soon,Ann,Rag,Two,None
"""


def named(alias: str, **more: object) -> dict[str, object]:
    return {"alias": alias, "source": "Canonical", "is_primary": False} | more


def watched(title: str, **more: object) -> dict[str, object]:
    return {
        "header": "YouTube Music",
        "title": title,
        "titleUrl": "https://music.youtube.com/watch?v=1",
        "subtitles": [{"name": "Ann - Topic", "url": "https://www.youtube.com/channel/1"}],
        "time": "2024-05-01T10:00:00.000Z",
    } | more


CASES: dict[str, tuple[str, object, Listed]] = {
    "spotify": (
        "endsong_0.json",
        [
            stream(),
            stream(ms_played=29_999, reason_end="fwdbtn"),
            stream(ms_played=20_000),
            stream(incognito_mode=True),
            stream(master_metadata_track_name=None),
            stream(ts="yesterday"),
            {"ts": "2024-05-01T10:03:20Z"},
            7,
        ],
        [
            (1, *RAG),
            (2, "short"),
            (3, "Ann; Bea", "Rag", "Two", "2024-05-01T10:03:00", 20_000),
            (4, "private"),
            (5, "no_track"),
            (6, "the entry does not have the expected form"),
            (7, "the entry has no ms_played"),
            (8, "the entry does not have the expected form"),
        ],
    ),
    "spotify-account": (
        "StreamingHistory0.json",
        [
            {"endTime": "2024-05-01 10:03", "artistName": "Ann", "trackName": "Rag", "msPlayed": 180_000},
            {"endTime": "2024-05-01 10:03", "artistName": "Ann", "trackName": "Rag", "msPlayed": 1000},
        ],
        [(1, "Ann", "Rag", None, "2024-05-01T10:00:00", 180_000), (2, "short")],
    ),
    "spotify, as a table that others made of it": (
        "streams.csv",
        (
            "ts,ms_played,master_metadata_track_name,master_metadata_album_artist_name,reason_end,incognito_mode\n"
            "2024-05-01 10:03:20+00:00,200000,Rag,Ann,,False\n2024-05-01T12:03:20+02:00,200000.0,Rag,Ann,,False\n"
            "2024-05-01T10:03:20Z,9000,Rag,Ann,fwdbtn,False\n2024-05-01T10:03:20Z,200000,Rag,Ann,trackdone,True\n"
            "2024-05-01T10:03:20Z,200000,,,trackdone,False\n"
        ),
        [
            (2, "Ann", "Rag", None, "2024-05-01T10:00:00", 200_000),
            (3, "Ann", "Rag", None, "2024-05-01T10:00:00", 200_000),
            (4, "short"),
            (5, "private"),
            (6, "no_track"),
        ],
    ),
    "spotify, an entry per line": (
        "endsong.jsonl",
        b"".join(orjson.dumps(each) + b"\n" for each in (stream(), stream(incognito_mode=True), {"ts": AT})),
        [(1, *RAG), (2, "private"), (3, "the entry has no ms_played")],
    ),
    "spotify-account, likewise": (
        "streams.csv",
        "endTime;artistName;trackName;msPlayed\n2024-05-01 10:03;Ann;Rag;180000\n2024-05-01 10:03;Ann;Rag;1000\n",
        [(2, "Ann", "Rag", None, "2024-05-01T10:00:00", 180_000), (3, "short")],
    ),
    "listenbrainz": (
        "listens.jsonl",
        b"".join(orjson.dumps(each) + b"\n" for each in (LISTEN, {"listened_at": 1})) + b"{\n",
        [(1, *RAG), (2, "the entry has no track_metadata"), (3, "the line is not valid JSON")],
    ),
    "listenbrainz, an array": ("export.json", [LISTEN, LISTEN], [(1, *RAG), (2, *RAG)]),
    "listenbrainz, as it is submitted": (
        "import.json",
        {"listen_type": "import", "payload": [LISTEN]},
        [(1, *RAG)],
    ),
    "listenbrainz, as its API answers": ("page.json", {"payload": {"count": 1, "listens": [LISTEN]}}, [(1, *RAG)]),
    "listenbrainz, what plays just now": ("now.json", {"listen_type": "playing_now", "payload": [LISTEN]}, []),
    "maloja": (
        "maloja_export.json",
        {
            "maloja": {"export_time": 1},
            "scrobbles": [
                {
                    "time": int(AT),
                    "track": {"artists": ["Ann", "Bea"], "title": "Rag", "album": {"albumtitle": "Two"}, "length": 9},
                    "duration": 200,
                },
                {"time": int(AT), "track": {"artists": ["Ann"], "title": "Rag", "album": None}, "duration": None},
                {"time": int(AT), "track": {}},
            ],
        },
        [
            (1, *RAG),
            (2, "Ann", "Rag", None, "2024-05-01T10:00:00", None),
            (3, "artist is missing; track is missing"),
        ],
    ),
    "lastfm": (
        "recenttracks.json",
        [
            {
                "track": [
                    {"name": "Now", "artist": {"#text": "Ann"}, "image": [], "@attr": {"nowplaying": "true"}},
                    {
                        "name": "Rag",
                        "artist": {"#text": "Ann"},
                        "album": {"#text": ""},
                        "date": {"uts": AT},
                        "image": [],
                    },
                ]
            },
            {"track": [{"name": "Rag", "artist": {"name": "Ann"}, "date": {"uts": AT}}]},
        ],
        [
            (1, "playing_now"),
            (2, "Ann", "Rag", None, "2024-05-01T10:00:00", None),
            (3, "Ann", "Rag", None, "2024-05-01T10:00:00", None),
        ],
    ),
    "panoscrobbler, CSV": (
        "scrobbles.csv",
        f"timeHuman,timeMs,artist,track,album,event\nx,{AT}000,Ann,Rag,Two,scrobble\nx,{AT}000,Ann,Rag,Two,love\n",
        [(2, "Ann", "Rag", "Two", "2024-05-01T10:00:00", None), (3, "no_scrobble")],
    ),
    "lastfm-csv": (
        "scrobbles.csv",
        f'uts,utc_time,artist,artist_mbid,album,track\n{AT},x,"Ann; Bea",,Two,Rag\n{AT},x\n',
        [(2, "Ann; Bea", "Rag", "Two", "2024-05-01T10:00:00", None), (3, "the row has 2 cells, the header 6")],
    ),
    "lastfm-to-csv": (
        "scrobbles.csv",
        "Ann,Two,Rag,01 May 2024 10:00\nAnn,,Rag,\n\nAnn,Two,Rag,31 Foo 2024 10:00\nAnn,Rag\n",
        [
            (1, "Ann", "Rag", "Two", "2024-05-01T10:00:00", None),
            (2, "no_time"),
            (4, "played_at must be a time such as 2026-01-31T12:00:00Z, or Unix seconds"),
            (5, "the row has 2 cells, not 4"),
        ],
    ),
    "librefm": (
        "librefm.csv",
        f"+ACM- An export,,,\n# A comment\nuserid,Artist,track,Album,TIME\n1,Ann,Rag,Two,{AT}\n1,Ann,Rag\n",
        [(4, "Ann", "Rag", "Two", "2024-05-01T10:00:00", None), (5, "the row has 3 cells, the header 5")],
    ),
    "rockbox": (
        ".scrobbler.log",
        ROCKBOX,
        [
            (4, "Ann", "Rag", "Two", "2024-05-01T10:00:00", None),
            (5, "skipped"),
            (6, "artist is missing"),
        ],
    ),
    "maloja, as its API lists scrobbles": (
        "answer.json",
        {
            "status": "ok",
            "list": [{"time": int(AT), "track": {"artists": ["Ann", "Bea"], "title": "Rag"}, "duration": 200}],
        },
        [(1, "Ann; Bea", "Rag", None, "2024-05-01T10:00:00", 200_000)],
    ),
    "koito": (
        "koito_export.json",
        {
            "version": "1",
            "listens": [
                {
                    "listened_at": "2024-05-01T10:00:00Z",
                    "track": {"mbid": None, "duration": 9, "aliases": [named("Tag"), named("Rag", is_primary=True)]},
                    "album": {"aliases": [named("Two", is_primary=True)]},
                    "artists": [
                        {"aliases": [named("Ann", is_primary=True), named("Anna")]},
                        {"aliases": [named("Bea")]},
                    ],
                },
                {
                    "listened_at": "2024-05-01T10:00:00Z",
                    "track": {"aliases": []},
                    "album": None,
                    "artists": [{"aliases": [named("Ann")]}],
                },
                {"listened_at": 1},
            ],
        },
        [
            (1, "Ann; Bea", "Rag", "Two", "2024-05-01T10:00:00", None),
            (2, "track is missing"),
            (3, "the entry has no track"),
        ],
    ),
    "lastfmstats": (
        "lastfmstats-ann.json",
        {
            "username": "ann",
            "scrobbles": [
                {"track": "Rag", "artist": "Ann; Bea", "album": "Two", "albumId": "", "date": int(AT) * 1000},
                {"track": "Rag", "artist": "Ann", "date": "soon"},
            ],
        },
        [
            (1, "Ann; Bea", "Rag", "Two", "2024-05-01T10:00:00", None),
            (2, "the entry does not have the expected form"),
        ],
    ),
    "lastfmstats-csv": (
        "lastfmstats-ann.csv",
        f'\ufeffArtist;Album;AlbumId;Track;Date#ann\n"Ann; Bea";"Two";"x";"Rag";"{AT}000"\n"Ann";"";"";"";"soon"\n',
        [
            (2, "Ann; Bea", "Rag", "Two", "2024-05-01T10:00:00", None),
            (3, "the entry does not have the expected form"),
        ],
    ),
    "youtube-music": (
        "watch-history.json",
        [
            watched("Watched Rag"),
            watched("Rag angesehen", subtitles=[{"name": "Ann - Thema"}]),
            watched("Vous avez regardé Rag"),
            watched("Obejrzano: Rag"),
            watched("Watched a video", header="YouTube"),
            watched("Watched https://music.youtube.com/watch?v=1", subtitles=[]),
            {"header": "YouTube Music", "subtitles": [7]},
        ],
        [
            *((line, "Ann", "Rag", None, "2024-05-01T10:00:00", None) for line in (1, 2, 3)),
            (
                4,
                (
                    "the entry has no title in a known language; "
                    "set that of the account to English, and export the history again"
                ),
            ),
            (5, "no_music"),
            (6, "no_track"),
            (7, "the entry has no title"),
        ],
    ),
    "apple-music": (
        "Apple Music Play Activity.csv",
        (
            "Song Name,Container Artist Name,Container Album Name,Event Type,End Reason Type,"
            "Event Start Timestamp,Event End Timestamp,Play Duration Milliseconds,Media Duration In Milliseconds\n"
            "Rag,Ann,Two,PLAY_END,NATURAL_END_OF_TRACK,2024-05-01T10:00:00Z,2024-05-01T10:03:20Z,200000,200000\n"
            "Rag,Ann,Two,PLAY_END,TRACK_SKIPPED_FORWARDS,2024-05-01T10:00:00Z,2024-05-01T10:00:20Z,20000,200000\n"
            "Rag,Ann,Two,PLAY_END,NATURAL_END_OF_TRACK,,2024-05-01T10:00:20Z,20000,20000\n"
            "Rag,Ann,Two,PLAY_START,,2024-05-01T10:00:00Z,,0,200000\n"
            ",,,PLAY_END,NATURAL_END_OF_TRACK,2024-05-01T10:00:00Z,,200000,200000\n"
            "Rag,,Two,PLAY_END,,2024-05-01T10:00:00Z,,200000,200000\n"
            "Rag,Ann,Two,PLAY_END,,2024-05-01T10:00:00Z,,1e999,200000\n"
        ),
        [
            (2, "Ann", "Rag", "Two", "2024-05-01T10:00:00", 200_000),
            (3, "short"),
            (4, "Ann", "Rag", "Two", "2024-05-01T10:00:00", 20_000),
            (5, "no_scrobble"),
            (6, "no_track"),
            (7, "artist is missing"),
            (8, "the entry does not have the expected form"),
        ],
    ),
    "panoscrobbler": (
        "pano.jsonl",
        b"".join(
            orjson.dumps({"timeMs": int(AT) * 1000 + 250, "artist": "Ann", "track": "Rag", "album": "Two"} | more)
            + b"\n"
            for more in ({"event": "scrobble"}, {"event": "love"}, {})
        ),
        [
            (1, "Ann", "Rag", "Two", "2024-05-01T10:00:00.250000Z", None),
            (2, "no_scrobble"),
            (3, "Ann", "Rag", "Two", "2024-05-01T10:00:00.250000Z", None),
        ],
    ),
    "spinitron": (
        "playlist.csv",
        SPINITRON,
        [
            (6, "Ann", "Rag", "Two", "2024-05-01T10:00:00", None),
            (7, "played_at must be a time such as 2026-01-31T12:00:00Z, or Unix seconds"),
        ],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_history_is_known_by_its_content_and_read_into_our_fields(tmp_path: Path, case: str) -> None:
    name, content, expected = CASES[case]
    assert read(write(tmp_path / name, content)) == expected
    form = case.partition(",")[0]
    assert detection.history_of(write(tmp_path / "nameless", content)) == form
    assert read(tmp_path / "nameless", form) == expected
    packed = gzip.compress((tmp_path / "nameless").read_bytes())
    assert read(write(tmp_path / f"{name}.gz", packed)) == expected
    if isinstance(content, list | dict):
        indented = b"\xef\xbb\xbf\n  " + (tmp_path / "nameless").read_bytes()
        assert detection.history_of(write(tmp_path / "indented", indented)) == form


TABLES = [
    name for name, (file, *_) in CASES.items() if file.endswith(".csv") and known.FORMATS[name.partition(",")[0]].values
]


@pytest.mark.slow
@pytest.mark.parametrize("case", TABLES)
def test_a_history_in_a_workbook_or_below_a_title_is_read_as_in_a_table(tmp_path: Path, case: str) -> None:
    _, content, expected = CASES[case]
    text = str(content).removeprefix("\ufeff")
    rows = list(csv.reader(text.splitlines(), delimiter=";" if text.count(";") > text.count(",") else ","))
    below = [(line + 1, *more) for line, *more in expected]
    book = write_xlsx(tmp_path / "a.xlsx", [["Mine"], *rows], Notes=[("a", "b")])
    assert read(book) == below
    assert read(write(tmp_path / "a.csv", f"Mine\n{text}")) == below
    with histories.open_file(book) as reader:
        assert (reader.is_history, reader.sheets) == (True, ["Sheet", "Notes"])
    with histories.open_file(book, mapped=True) as reader:
        assert (reader.is_history, reader.columns) == (False, rows[0])


def test_a_history_in_parquet_is_read_with_its_times(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    plain = "200000 AS ms_played, 'Rag' AS master_metadata_track_name, 'Ann' AS master_metadata_album_artist_name"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT TIMESTAMP '2024-05-01 10:03:20' AS ts, {plain}) TO '{file}' (FORMAT parquet)")
    assert read(file) == [(1, "Ann", "Rag", None, "2024-05-01T10:00:00", 200_000)]


UNKNOWN = {  # files whose first entry has no time, or one that stands for none, and whose second is the play RAG
    "spotify": [stream(ts="1970-01-01T00:00:00Z"), stream(ts=None)],
    "spotify-account": [
        {"endTime": end, "artistName": "Ann", "trackName": "Rag", "msPlayed": 30_000}
        for end in ("", "2002-09-30 23:59")
    ],
    "listenbrainz": [LISTEN | {"listened_at": at} for at in (100, None)],
    "maloja": {"scrobbles": [{"time": at, "track": {"artists": ["Ann"], "title": "Rag"}} for at in (0, None)]},
    "lastfm": [
        {"track": [{"name": "Rag", "artist": {"#text": "Ann"}, "image": [], "date": {"uts": at}} for at in ("0", None)]}
    ],
    "lastfm-csv": "uts,artist,album,track\n0,Ann,,Rag\n,Ann,,Rag\n",
    "lastfm-to-csv": "Ann,Two,Rag,01 Jan 1970 00:00\nAnn,Two,Rag,\n",
    "lastfmstats-csv": 'Artist;Album;AlbumId;Track;Date#ann\n"Ann";"";"";"Rag";"0"\n"Ann";"";"";"Rag";""\n',
    "librefm": "artist,track,time\nAnn,Rag,0\nAnn,Rag,\n",
    "rockbox": "#AUDIOSCROBBLER/1.1\nAnn\tTwo\tRag\t1\t259\tL\t0\t\nAnn\tTwo\tRag\t1\t259\tL\t315532900\t\n",
    "panoscrobbler": '{"timeMs": 0, "artist": "Ann", "track": "Rag"}\n{"artist": "Ann", "track": "Rag", "timeMs": 9}\n',
    "spinitron": "Date-time,Artist,Song\n1970-01-01T00:00:00-0500,Ann,Rag\n,Ann,Rag\n",
    "youtube-music": [watched("Watched Rag", time=at) for at in ("1970-01-01T00:00:00.000Z", None)],
}


@pytest.mark.parametrize("form", UNKNOWN)
def test_entries_of_histories_without_a_time_are_left_out(tmp_path: Path, form: str) -> None:
    found = read(write(tmp_path / "file", UNKNOWN[form]), form)
    assert [reason for _, reason in found] == ["no_time", "no_time"]


@pytest.mark.parametrize("at", ["2002-10-01T00:00:00Z", 1_033_430_400, "2002-10-01 00:00:00"])
def test_entries_of_histories_count_from_october_2002_on(tmp_path: Path, at: object) -> None:
    history = [LISTEN | {"listened_at": at}, LISTEN | {"listened_at": "2002-09-30T23:59:59Z"}]
    assert [row[1] for row in read(write(tmp_path / "a.json", history))] == ["Ann; Bea", "no_time"]


def test_artists_of_listens_are_those_of_their_list_and_count_once(store: Store, tmp_path: Path) -> None:
    track = {"artist_name": "Ann, Bea", "track_name": "Rag"}
    others = {"artist_name": "Cy, The Who", "track_name": "Air", "additional_info": {"artist_names": ["Cy, The Who"]}}
    listed = track | {"additional_info": {"artist_names": ["Ann", "Bea"], "isrc": "GBAYE6800011"}}
    names = [{"artist_credit_name": name, "join_phrase": " & "} for name in ("Ann", "Bea")]
    mapped = track | {"mbid_mapping": {"artists": names}}
    found = read(write(tmp_path / "a.json", [LISTEN | {"track_metadata": each} for each in (mapped, track)]))
    assert [row[1] for row in found] == ["Ann; Bea", "Ann, Bea"]
    for at, (content, plays) in enumerate((((track,), 1), ((listed, others), 1), ((mapped, others), 0))):
        file = write(tmp_path / f"{at}.json", [LISTEN | {"track_metadata": each} for each in content])
        done = import_file(store, file, Plays(ImportOptions(listener="me", create_missing=True)))
        assert (done.counts["plays"].new, reasons(done)) == (plays, [])
    file = write(tmp_path / "later.json", [LISTEN | {"listened_at": 1_714_558_600, "track_metadata": listed}])
    assert read(file) == [(1, "Ann; Bea", "Rag", None, "2024-05-01T10:16:40", None)]
    done = import_file(store, file, Plays(ImportOptions(listener="me", create_missing=True)))
    assert [name for name, _ in done.new_artists] == ["Ann", "Bea"]


def test_ids_of_other_services_are_what_tracks_are_looked_up_by(tmp_path: Path) -> None:
    def ids(content: object) -> tuple[str, ...]:
        with histories.open_file(write(tmp_path / "a.json", content)) as reader:
            (record,) = reader
            return listen_rows.parse(record, COLUMNS.read(record.values, ()), "me", {}).named.external_ids

    assert ids([stream()]) == ("abc",)
    assert ids([stream(spotify_track_uri=None)]) == ()
    assert ids(LISTEN) == ("m", "s")


def test_recent_tracks_without_images_are_known(tmp_path: Path) -> None:
    track = {"name": "Rag", "artist": {"#text": "Ann"}, "date": {"uts": AT}}
    assert detection.history_of(write(tmp_path / "a.json", [{"track": [track]}])) == "lastfm"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plays.csv", "artist,track,played_at\nAnn,Rag,1714557600\n"),
        ("plays.jsonl", '{"artist": "Ann", "track": "Rag", "played_at": 1714557600}\n'),
        ("plays.csv", "song,artist,callsign,time\nRag,Ann,KQXX,1714557600\n"),
        ("plays.csv", "artist,track,time,played_at\nAnn,Rag,3:05,1714557600\n"),
        ("plays.csv", "Artist,Track,Time,Listener\nAnn,Rag,1714557600,bob\n"),
        ("plays.csv", "artist,track,time,external_id\nAnn,Rag,1714557600,b1\n"),
        ("HISTORY.txt", "#\tTrack Title\tArtist\tTime\n1\tRag\tAnn\t03:45\n"),
    ],
)
def test_a_table_of_our_own_fields_is_no_history(tmp_path: Path, name: str, content: str) -> None:
    assert detection.history_of(write(tmp_path / name, content)) is None


def test_a_table_whose_columns_are_told_is_taken_for_a_table(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "artist,track,time\nAnn,Rag,1714557600\n")
    with histories.open_file(file, mapped=True) as reader:
        assert reader.columns == ["artist", "track", "time"]
    with histories.open_file(file) as reader:
        assert reader.columns is None
    for options, told in (({"mapped": True}, "Leave out --map"), ({"sheet": "S"}, "Leave out --sheet.")):
        with pytest.raises(Failure, match=told):
            histories.open_file(file, "spotify", **options)


@pytest.mark.parametrize(
    ("name", "content", "form", "message"),
    [
        ("a.json", {"lovedtracks": {"track": []}}, None, "lists loved tracks"),
        ("playback.log", f"# log\n{AT}:200:225:/Ann/Rag.mp3\n", None, "is a playback log of Rockbox"),
        ("watch-history.html", "<html><head>", None, "choose JSON as its format in Google Takeout"),
        ("a.json", "[{", "spotify", "is not valid JSON"),
        ("a.json", [], "maloja", "is not a Maloja export"),
        ("a.json", [7], "lastfm", "is not an export of the recent tracks"),
        ("a.json", 7, "listenbrainz", "is not a ListenBrainz export"),
        ("a.csv", "a,b\n1,2\n", "librefm", "lacks the header row that Libre.fm writes"),
        ("a.csv", "a,b\n1,2\n", "spinitron", "lacks the header row that Spinitron writes"),
        ("a.csv", "a,b\n1,2\n", "ogg", "There is no format ogg"),
    ],
)
def test_what_is_not_of_the_format_is_one_sentence(
    tmp_path: Path, name: str, content: object, form: str | None, message: str
) -> None:
    with pytest.raises(Failure, match=message):
        read(write(tmp_path / name, content), form)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    for form in (None, "maloja", "rockbox"):
        with pytest.raises(Failure, match="cannot be read: No such file"):
            histories.open_file(tmp_path / "gone.json", form)


def test_a_file_too_large_to_be_held_is_refused(tmp_path: Path, bounds: Bounds) -> None:
    bounds(largest_document=5)
    with pytest.raises(Failure, match="larger than 5 bytes"):
        documents.load(write(tmp_path / "a.json", "[1,2,3]"))


# Archives of listening histories: the histories in them are read, faulty members are named.


def packed(**members: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return target.getvalue()


@pytest.mark.slow
def test_of_an_archive_the_histories_are_read_and_the_rest_is_not(store: Store, tmp_path: Path) -> None:
    pages = {
        "listens__2024__5.jsonl": orjson.dumps(LISTEN) + b"\n" + b"7\n",
        "listens__2024__6.jsonl": orjson.dumps(LISTEN | {"listened_at": 1_717_236_000}),
        "user.json": b'{"username": "somebody"}',
        "ReadMe.pdf": b"%PDF",
    }
    file = write(tmp_path / "export.zip", packed(**pages))

    def run() -> ImportSummary:
        return import_file(store, file, Plays(ImportOptions(listener="me", create_missing=True)))

    summary = run()
    assert (summary.rows, summary.counts["plays"].new) == (3, 2)
    assert reasons(summary) == [(2, "listens/2024/5.jsonl: the line is not a JSON object")]
    assert run().counts["plays"].repeated == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (packed(**{"user.json": b"{}"}), "holds no listening history"),
        (packed(), "holds no listening history"),
        (packed(**{"watch-history.html": b"<html>"}), "choose JSON as its format in Google Takeout"),
        (packed(**{"a.jsonl": orjson.dumps(LISTEN) * 1000})[:-30], "is damaged"),
        (b"PK\x03\x04 and nothing more", "is damaged"),
    ],
)
def test_an_archive_without_a_history_is_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(Failure, match=message):
        read(write(tmp_path / "a.zip", content))


def test_a_member_whose_data_are_broken_is_named(tmp_path: Path) -> None:
    whole = bytearray(packed(**{"a.jsonl": orjson.dumps(LISTEN) * 1000}))
    whole[60] ^= 0xFF
    with pytest.raises(Failure, match=r"a\.jsonl cannot be unpacked"):
        read(write(tmp_path / "a.zip", bytes(whole)))


def test_a_member_too_large_to_be_unpacked_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.zip", packed(**{"a.jsonl": orjson.dumps(LISTEN)}))
    with (
        pytest.raises(Failure, match=r"a\.jsonl is larger than 10 bytes"),
        histories.open_file(file, limits=Limits(history=10)) as reader,
    ):
        list(reader)


# Samples of listening histories that others wrote are imported.

KOITO = {
    "Streaming_History_Audio_spotify_import_test.json": (17, 0),
    "koito_export_test.json": (13, 0),
    "listenbrainz_shoko1_123456789.zip": (19, 0),
    "listenbrainz_shoko1_1749780844.zip": (5, 0),
    "maloja_api_format_test.json": (2, 0),
    "maloja_import_null_album_test.json": (2, 1),
    "maloja_import_test.json": (38, 0),
    "recenttracks-shoko2-1749776100.json": (10, 0),
}
SAMPLES = {
    "librefm.csv": (3, 0),
    "librefm_no_album_column.csv": (2, 0),
    "librefm_via_maloja.csv": (3, 0),
    "librefm_with_comments.csv": (3, 0),
    "listenbrainz_all_invalid.jsonl": (0, 3),
    "listenbrainz_listens.jsonl": (2, 0),
    "listenbrainz_mixed_validity.jsonl": (3, 2),
    "maloja.json": (2, 0),
    "maloja_malformed.json": (0, 3),
    "panoscrobbler.jsonl": (2, 0),
    "rockbox.scrobbler.log": (2, 1),
    "spinitron_sample.csv": (3, 2),
    "spotify_skipped_tracks.json": (1, 1),
    "spotify_streaming_2023.json": (4, 0),
    "spotify_streaming_endsong_0.json": (4, 0),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((f"import_formats/{name}", counts) for name, counts in SAMPLES.items()),
        *((f"koito/{name}", counts) for name, counts in KOITO.items()),
    ],
)
def test_samples_that_others_wrote_go_in_without_being_told_what_they_are(
    store: Store, shared_data: Callable[[str], Path], name: str, expected: tuple[int, int]
) -> None:
    file = shared_data(name)

    def run(**more: Any) -> ImportSummary:
        return import_file(store, file, Plays(ImportOptions(listener="me", create_missing=True, **more)))

    predicted, done, again = run(dry_run=True), run(), run()
    assert (done.counts["plays"].new, done.counts["plays"].refused) == expected
    assert predicted.counts == done.counts
    assert again.counts["plays"].new == 0


def test_loved_tracks_that_others_exported_are_refused(store: Store, shared_data: Callable[[str], Path]) -> None:
    with pytest.raises(Failure, match="lists loved tracks"):
        import_file(store, shared_data("import_formats/lastfm_loved_tracks_1.json"), Plays(ImportOptions()))


def test_a_table_without_names_is_refused(store: Store, shared_data: Callable[[str], Path]) -> None:
    with pytest.raises(Failure, match=r"No column has the time of the play\..*Name one with --map COLUMN=played_at\."):
        import_file(store, shared_data("import_formats/librefm_no_header.csv"), Plays(ImportOptions(listener="me")))


def test_a_column_of_times_that_cannot_be_read_is_named(store: Store, tmp_path: Path) -> None:
    (tmp_path / "days.csv").write_text("Track,Artist,Played at\nRag,Ann,2024-04-21\n")
    told = "The column 'Played at' cannot be read: played_at must be a time such as .*; line 2 has 2024-04-21."
    with pytest.raises(Failure, match=told):
        import_file(store, tmp_path / "days.csv", Plays(ImportOptions(listener="me")))


@pytest.mark.slow
def test_a_history_in_another_encoding_is_read_and_says_so(tmp_path: Path) -> None:
    table = f"artist,track,time\nBjörk,Jóga,{AT}\n"
    file = write(tmp_path / "history.csv", table.encode("cp1252"))
    packed = zipfile.ZipFile(tmp_path / "history.zip", "w")
    with packed as archive:
        archive.write(file, "history.csv")
    for each in (file, tmp_path / "history.zip"):
        with histories.open_file(each) as reader:
            assert [row.values["track"] for row in reader] == ["Jóga"]
            assert [remark.what for remark in reader.remarks] == ["The file is not UTF-8 and was read as Windows-1252."]
    with pytest.raises(Failure, match="is a zip file"):
        histories.open_file(tmp_path / "history.zip", encoding="cp1252")
    streams = orjson.dumps([stream(master_metadata_track_name="雨")]).decode()
    for name, content, form in (
        ("a.csv", table.replace("Jóga", "雨").replace("Björk", "Ann"), "librefm"),
        ("a.json", streams, "spotify"),
    ):
        named = write(tmp_path / name, content.encode("shift_jis"))
        with histories.open_file(named, form, encoding="shift_jis") as reader:
            assert ([row.values["track"] for row in reader], [*reader.remarks]) == (["雨"], [])
        with pytest.raises(Failure) as failed, histories.open_file(named, form, encoding="utf-8") as reader:
            list(reader)
        assert failed.value.message == f"{named} is damaged or not UTF-8."
