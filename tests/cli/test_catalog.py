"""`musicsvc artist`, `album` and `track`: what is listed, found, changed and deleted, and how rows are named."""

import json
from typing import Any

import pytest

from musicsvc.store.catalog.fields import FIELDS
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, AlbumArtist, Artist, SecurityEvent, Track, TrackArtist
from tests.cli.conftest import Json, Run

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database
# What is typed for each field, and what the API shows then.
TYPED: dict[str, dict[str, tuple[str, Any]]] = {
    "artist": {"name": ("Fanny Hensel", "Fanny Hensel"), "image_small": ("https://img.test/f", "https://img.test/f")},
    "album": {
        "artist_id": ("2", [2]),
        "release_date": ("1841-12-24", "1841-12-24"),
        "upc": ("036000291452", "036000291452"),
        "label": (" Furore ", "Furore"),
        "image": ("", None),
    },
    "track": {
        "artists": ("2, 1", [2, 1]),
        "duration": ("180000", 180_000),
        "genre": ("Art Song", ["art-song"]),
        "tags": ("river; slow;", ["river", "slow"]),
        "price": ("2.5", 2.5),
        "explicit": ("no", False),
        "isrc": ("de-a62-41-01234", "DEA624101234"),
        "album_id": ("", None),
    },
}


@pytest.fixture(autouse=True)
def catalog(store: Store) -> None:
    """Create the artists Clara (1) and Louise (2), the album Songs (1) and the tracks 1975 (1), Air (2), Air (3)."""

    def make() -> None:
        for name in ("Clara", "Louise"):
            Artist.create(name=name, created_at=1)
        Album.create(name="Songs", image="https://img.test/s", created_at=1)
        AlbumArtist.create(album=1, artist=1, position=0)
        for number, name in enumerate(("1975", "Air", "Air"), 1):
            Track.create(name=name, duration=1, album=1, created_at=1)
            TrackArtist.create(track=number, artist=1, position=0)

    store.write(make).result()


def plain(value: Any) -> Any:
    """Return the ids of artists, and the names of genres and tags."""
    if isinstance(value, list):
        return [each["id"] if "verified" in each else each["name"] for each in value]
    return value


@pytest.mark.slow
@pytest.mark.parametrize("noun", TYPED)
def test_each_field_is_an_option_that_takes_what_people_type(run: Run, ask: Json, noun: str) -> None:
    shown_as = {"artist_id": "artists", "genre": "genres"}
    for name, (typed, value) in TYPED[noun].items():
        (field,) = (field for field in FIELDS[noun] if field.name == name)
        shown = ask(noun, "edit", "1", field.option, typed)
        assert plain(shown[shown_as.get(name, name)]) == value
        assert ask(noun, "show", "1") == shown
    assert all(field.option in run(noun, "edit", "--help").stdout for field in FIELDS[noun])


def test_rows_are_listed_newest_first_and_found_by_a_part_of_their_name(run: Run, ask: Json) -> None:
    assert [row["id"] for row in ask("track", "list")] == [3, 2, 1]
    assert [row["id"] for row in ask("track", "list", "--limit", "1")] == [3]
    assert [row["id"] for row in ask("artist", "search", "lou")] == [2]
    lines = run("album", "list").stdout.splitlines()
    assert (lines[0].split()[:3], lines[1].split()) == (
        ["id", "name", "artists"],
        ["1", "Songs", "Clara", "-", "-", "-"],
    )
    assert run("track", "show", "2").stdout.splitlines()[1].split() == ["name", "Air"]


def test_a_name_stands_for_an_id_if_no_other_row_has_it(run: Run, ask: Json) -> None:
    assert ask("artist", "show", "Louise")["id"] == 2
    assert "There is no artist named louise." in run("artist", "show", "louise", expect=1).stderr
    assert (
        "Several tracks are named Air: 2 by Clara, 3 by Clara. Give an id."
        in run("track", "delete", "Air", expect=1).stderr
    )
    assert "There is no such track." in run("track", "show", "1975", expect=1).stderr  # digits are an id
    assert "There is no such track." in run("track", "show", "9" * 40, expect=1).stderr


def test_digits_of_other_scripts_are_a_name(run: Run, ask: Json) -> None:
    assert "There is no artist named ١." in run("artist", "show", "١", expect=1).stderr
    assert "There is no artist named ١." in run("track", "edit", "1", "--artists", "١", expect=1).stderr
    assert "There is no album named １." in run("track", "edit", "1", "--album-id", "１", expect=1).stderr
    ask("artist", "edit", "2", "--name", "١")
    assert ask("artist", "show", "١")["id"] == 2


@pytest.mark.slow
def test_every_command_takes_a_name_for_an_id_and_a_name_of_digits_with_an_option(
    run: Run, ask: Json, store: Store
) -> None:
    store.write(lambda: Track.update(name="Aria").where(Track.id == 2).execute()).result()
    run("user", "create", "ada@example.test")
    for noun, name, number in (("artist", "Louise", 2), ("album", "Songs", 1), ("track", "Aria", 2)):
        assert ask("insights", "show", noun, name) == ask("insights", "show", noun, str(number))
        assert ask("insights", "explain", noun, name)["id"] == number
    assert ask("insights", "show", "track", "--name", "1975")["id"] == 1
    assert ask("track", "show", "--name=1975")["id"] == 1
    assert ask("track", "merge", "--name", "1975", "Aria", "--dry-run")["from_id"] == 1
    assert ask("artist", "verify", "Louise")["id"] == ask("artist", "assign", "Louise", "ada@example.test")["id"] == 2
    assert ask("fingerprint", "set", "Aria", "processing")["track_id"] == 2
    for command in (["insights", "release", "Songs", "--against", "1"], ["plays", "list", "ada@example.test"]):
        run(*command, *(["--track", "Aria"] if command[0] == "plays" else []))
    exported = run("export", "tracks", "--artist", "Louise").stdout
    assert (exported.count("\n"), run("export", "tracks", "--artist", "Clara").stdout.count("\n")) == (1, 4)
    for command in (["export", "tracks", "--artist", "Lou"], ["insights", "explain", "artist", "Lou"]):
        assert "There is no artist named Lou." in run(*command, expect=1).stderr


def test_a_change_that_the_api_would_refuse_is_refused_with_the_name_of_the_option(run: Run) -> None:
    for noun, *given, words in (
        ("track", "--bpm", "fast", "--bpm: Must be an integer."),
        ("track", "--album-id", "9", "--album-id: 9 does not exist."),
        ("album", "--upc", "036000291453", "--upc: Must be a UPC or EAN; the check digit of 036000291453 is wrong."),
    ):
        assert words in run(noun, "edit", "1", *given, expect=1 if "--album-id" in given else 2).stderr
    assert "Name a field to change" in run("artist", "edit", "1", expect=2).stderr
    assert "--name: This field is required." in run("artist", "edit", "1", "--name", " ", expect=2).stderr


def test_what_is_deleted_needs_a_yes_without_a_terminal_and_leaves_an_event(run: Run, store: Store) -> None:
    refused = run("album", "delete", "Songs", expect=1).stderr
    assert refused == "Error: This deletes Songs (album 1). To confirm this without a terminal, add --yes.\n"
    assert json.loads(run("album", "delete", "Songs", "--yes", "--json").stdout) == {"id": 1, "name": "Songs"}
    assert "is the only artist of 3 tracks" in run("artist", "delete", "1", "--yes", expect=1).stderr
    assert run("track", "delete", "3", "--yes").stderr == "Air (track 3) is deleted.\n"
    events = store.read(lambda: list(SecurityEvent.select().order_by(SecurityEvent.id))).result()
    assert [(event.kind, event.actor, event.reason) for event in events] == [
        ("album.deleted", "cli", "album 1 (Songs)"),
        ("track.deleted", "cli", "track 3 (Air)"),
    ]


def test_a_merge_says_what_moves_and_needs_a_yes_without_a_terminal(run: Run, ask: Json, store: Store) -> None:
    about = "Clara (artist 1) into Louise (artist 2)"
    dry = run("artist", "merge", "Clara", "Louise", "--dry-run").stderr
    assert dry == f"This would merge {about}. To move: 3 tracks, 1 album.\n"
    refused = run("artist", "merge", "Clara", "Louise", expect=1).stderr
    assert refused == f"Error: This merges {about}. To confirm this without a terminal, add --yes.\n"
    assert "cannot be merged into itself" in run("artist", "merge", "1", "Clara", "--yes", expect=1).stderr
    assert "There is no artist 9." in run("artist", "merge", "9", "1", "--yes", expect=1).stderr
    assert run("artist", "merge", "Clara", "Louise", "--yes").stderr == f"Merged {about}.\n"
    assert "There is no such artist." in run("artist", "show", "1", expect=1).stderr
    assert [each["id"] for each in ask("track", "show", "3")["artists"]] == [2]
    done = ask("track", "merge", "3", "2", "--yes")
    assert (done["from_id"], done["into_id"], done["repeated_plays"]) == (3, 2, 0)
    events = store.read(lambda: [event.kind for event in SecurityEvent.select().order_by(SecurityEvent.id)]).result()
    assert events == ["artist.merged", "track.merged"]


def test_a_split_says_what_the_parts_get_and_needs_a_yes_without_a_terminal(run: Run, ask: Json, store: Store) -> None:
    into = ["--into", "Louise", "--into", " Robert "]
    about = "Clara (artist 1) into Louise (artist 2) and Robert (new)"
    dry = run("artist", "split", "Clara", *into, "--dry-run").stderr
    assert dry == f"This would split {about}. Each gets 3 tracks, 1 album.\n"
    assert ask("artist", "split", "1", *into, "--dry-run")["into"][1] == {"id": None, "name": "Robert"}
    refused = run("artist", "split", "Clara", *into, expect=1).stderr
    assert refused == f"Error: This splits {about}. To confirm this without a terminal, add --yes.\n"
    for given, code, words in (
        ([], 2, "Missing option '--into'"),
        (["--into", "Louise"], 2, "--into: Name 2 to 50 artists, not 1."),
        ([*into, "--into", "x" * 256], 2, "--into: Must have at most 255 characters."),
        ([*into, "--into", "\u200b"], 2, "--into: "),
        (["--into", "Clara", *into], 1, "--into: Clara (artist 1) cannot be a part of itself."),
        (["--into", "2", *into], 1, "--into: Louise is named twice."),
        (["--into", "9", *into], 1, "--into: There is no artist 9."),
    ):
        assert words in run("artist", "split", "1", *given, "--yes", expect=code).stderr
    assert "There is no artist 9." in run("artist", "split", "9", *into, "--yes", expect=1).stderr
    done = ask("artist", "split", "Clara", *into, "--yes")
    assert (done["id"], done["into"][1], done["tracks"]) == (1, {"id": 3, "name": "Robert"}, 3)
    assert "There is no such artist." in run("artist", "show", "1", expect=1).stderr
    assert [each["id"] for each in ask("track", "show", "3")["artists"]] == [2, 3]
    (event,) = store.read(lambda: [*SecurityEvent.select()]).result()
    assert (event.kind, event.actor) == ("artist.split", "cli")
