"""Advice in messages of imports: it is done, and helps."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.command import run_in_process

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

PLAYED = "2024-05-01T10:00:00Z"
STREAM = {
    "ts": PLAYED,
    "ms_played": 200_000,
    "master_metadata_track_name": "Air",
    "master_metadata_album_artist_name": "Ann Example",
}
KNOWN = "track,artist\nAir,Ann Example\n"
ROW = f"Air,Ann Example,zoe,{PLAYED}\n"
# For each advice: the kind, the file and its content, the end of the message, and the options that follow the advice.
ADVICE = {
    "no column of a field": (
        "catalog",
        "a.csv",
        "Werk,artist\nAir,Ann Example\n",
        "--map COLUMN=track",
        "--map Werk=track",
    ),
    "no artist": ("catalog", "a.csv", "track\nAir\n", "--artist NAME", "--format csv --artist Ann"),
    "either way round": (
        "catalog",
        "a.csv",
        "track,artist,Date\nAir,Ann Example,03/04/2024\n",
        "--date-format DD/MM/YYYY",
        "--date-format DD/MM/YYYY",
    ),
    "no format": ("catalog", "a", "track\nAir\n", "--format: one of csv", "--format csv --artist Ann"),
    "another format": ("catalog", "a.xlsx", KNOWN, "Leave out --format xlsx", ""),
    "a history without a listener": (
        "plays",
        "endsong_0.json",
        json.dumps([STREAM]),
        "Add --listener NAME.\n",
        "--listener zoe",
    ),
    "a table without a listener": (
        "plays",
        "a.csv",
        f"track,artist,fan,played_at\n{ROW}",
        "or --map COLUMN=listener.\n",
        "--map fan=listener",
    ),
    "no track of plays": (
        "plays",
        "a.csv",
        f"Stück,artist,listener,played_at\n{ROW}",
        "both artist and track",
        "--map Stück=track",
    ),
    "sums of plays": (
        "plays",
        "a.csv",
        f"track,artist,listener,played_at,Streams\n{ROW.strip()},12\n",
        'To count each row as one play, add --map "Streams=".\n',
        "--map Streams=",
    ),
    "an unknown track": (
        "plays",
        "a.csv",
        f"track,artist,listener,played_at\n{ROW.replace('Air', 'Jig')}",
        "--create-missing",
        "--create-missing",
    ),
}
BEFORE = {"another format": "--format xlsx", "no artist": "--format csv"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ADVICE)
def test_the_advice_of_a_message_helps(run: Run, tmp_path: Path, name: str) -> None:
    kind, file, content, advice, options = ADVICE[name]
    known = tmp_path / "known.csv"
    known.write_text(KNOWN)
    run("import", "catalog", str(known))
    (tmp_path / file).write_text(content, "utf-8")
    line = ("import", kind, str(tmp_path / file))
    before = (*line, *BEFORE.get(name, "").split())
    told = run_in_process(before)
    assert (told.returncode, advice in told.stderr) == (1, True)
    assert "1 row read, 0 of them refused." in run(*line, *options.split()).stderr


def test_a_row_of_names_above_a_file_without_one_helps(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("Ann Example,Air,3:45\n")
    told = run("import", "catalog", str(file), expect=1).stderr
    assert "No column has the track." in told
    assert "If the first row has data, put a row of names above it." in " ".join(told.split())
    file.write_text(f"artist,track,duration\n{file.read_text()}")
    assert "1 row read, 0 of them refused." in run("import", "catalog", str(file)).stderr


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("file", ["endsong_0.json", "rockbox.scrobbler.log"])
def test_a_listening_history_that_is_no_catalog_is_named_as_one(tmp_path: Path, file: str) -> None:
    history = tmp_path / file
    log = "#AUDIOSCROBBLER/1.1\n#TZ/UTC\nAnn Example\t\tAir\t\t200\tL\t1714557600\t\n"
    history.write_text(log if file.endswith(".log") else json.dumps([STREAM]))
    done = run_in_process(("import", "catalog", str(history)))
    told = f"Error: {history} is a listening history. Run: musicsvc import plays FILE\n"
    assert (done.returncode, done.stderr.endswith(told)) == (1, True)
