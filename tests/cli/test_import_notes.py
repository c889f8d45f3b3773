"""Rows that an import left out or took otherwise than written: a line of text and a number in JSON for each reason."""

import json
from pathlib import Path

import pytest

from musicsvc.store.importing.summary import NOTES
from tests.cli.conftest import Json, Run

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

STREAM = {
    "ts": "2024-05-01T10:03:20Z",
    "ms_played": 200_000,
    "master_metadata_track_name": "Rag",
    "master_metadata_album_artist_name": "Ann",
    "reason_end": "trackdone",
    "incognito_mode": False,
}
TAGS = [";".join(f"{letter}{number}" for number in range(11)) for letter in "ab"]
SONGS = f"""external_id,track,artist,album,bpm,release_date,tags,playlist
t,T,A,X,10,2001,,Mine
t,T,A,X,10,0000,,Mine
u,U,B,Y,90,2001-05,,Mine
u,U again,B,Y,90,,,Mine
v,V,C,Z,401,2002-06,{TAGS[0]},Mine
v,V,C,Z,,,{TAGS[1]},
"""
SKIPPED = "Ann\tTwo\tRag\t1\t259\tS\t1714557600\t\n"
SCROBBLE = {"timeMs": 1_714_557_600_250, "artist": "Ann", "track": "Rag"}
OTHERS = ("Cells left out", "New artists:", "Names with signs", "Columns:", "Unused columns:")  # other lines
# For each file: the command, its content, and the rows by the reason for which they are noted.
FILES: dict[str, tuple[str, str, dict[str, int]]] = {
    "songs.csv": (
        "catalog",
        SONGS,
        {
            "year_padded": 1,
            "month_padded": 1,
            "day_padded": 2,
            "playlists_ignored": 5,
        },
    ),
    "bells.csv": ("catalog", "track,artist\nRa\x07g,Ann\nRo\x07ck,Be\x07a\nTrio,Ann\n", {"controls_dropped": 2}),
    "albums.csv": (
        "catalog",
        "track,artist,album,release_date\nA,Ann,X,2001-01-01\nB,Ann,X,2001-01-02\nC,Ann,X,2001-01-02\n",
        {"differing": 2},
    ),
    "export.csv": (
        "catalog",
        'track,artist,artist ids\nA,"Ann, Bea","1,2"\nB,"Ann, Bea",1\nC,Ann,"1,2"\n',
        {"ids_differ": 1},
    ),
    "sales.csv": ("catalog", "item type,item name,artist\ntrack,Rag,Ann\nalbum,Two,Ann\n", {"no_song": 1}),
    "report.csv": ("catalog", "date,artist,track,units\n,Ann,Rag,3\n,Grand Total:,,3\nTotal,,,3\n", {"total": 2}),
    "joined.csv": ("catalog", "track,artist\nA,Ann\n\ufefftrack,artist\nB,Ann\ntrack,artist\n", {"headings": 2}),
    "blank.csv": ("catalog", "track,artist,album artist,album\nA,,Ann,X\nB,Bea,Ann,X\n", {"artist_of_album": 1}),
    "figures.csv": (
        "catalog",
        "track_id,track,artists,plays_total\n7,Rag,Ann,5\n,(deleted tracks),,2\n",
        {"deleted": 1},
    ),
    "endsong_0.json": (
        "plays",
        json.dumps(
            [
                STREAM,
                *[STREAM | {"ms_played": 29_999, "reason_end": "fwdbtn"}] * 3,
                *[STREAM | {"incognito_mode": True}] * 2,
                STREAM | {"master_metadata_track_name": None},
            ]
        ),
        {"short": 3, "private": 2, "no_track": 1},
    ),
    ".scrobbler.log": ("plays", f"#AUDIOSCROBBLER/1.1\n{SKIPPED * 2}", {"skipped": 2}),
    "recenttracks.json": (
        "plays",
        json.dumps([{"track": [{"name": "Rag", "artist": {"#text": "Ann"}, "image": []}]}]),
        {"playing_now": 1},
    ),
    "pano.jsonl": (
        "plays",
        "".join(f"{json.dumps(SCROBBLE | {'event': event})}\n" for event in ("scrobble", "love")),
        {"no_scrobble": 1},
    ),
    "scrobbles.csv": ("plays", "Ann,Two,Rag,01 Jan 1970 00:00\nAnn,Two,Rag,\n", {"no_time": 2}),
    "watch-history.json": (
        "plays",
        json.dumps([{"header": "YouTube", "title": "Watched Rag", "titleUrl": "", "time": "2024-05-01T10:00:00Z"}]),
        {"no_music": 1},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_every_reason_for_which_rows_are_noted_is_printed_with_their_number(
    run: Run, ask: Json, tmp_path: Path, name: str
) -> None:
    kind, content, noted = FILES[name]
    file = tmp_path / name
    file.write_text(content, "utf-8")
    listener = ("--listener", "zoe", "--create-missing") if kind == "plays" else ()
    line = ("import", kind, str(file), *listener, "--dry-run")

    assert ask(*line)["notes"] == noted
    printed = run(*line).stderr.splitlines()

    assert printed[-1].endswith("0 of them refused. Nothing was written (--dry-run).")
    told = [text.rpartition(": ") for text in printed[:-1] if not text.startswith(OTHERS)]
    assert sorted(number for _, _, number in told) == sorted(f"{number}." for number in noted.values())
    assert len({reason for reason, _, _ in told}) == len(noted)


def test_every_reason_has_a_file_above() -> None:
    assert {reason for _, _, noted in FILES.values() for reason in noted} == set(NOTES)
