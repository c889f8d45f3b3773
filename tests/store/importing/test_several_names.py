"""Cells with several names: as known exports join them, divided by rules, and the artists that an import creates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.errors import Failure, Invalid
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.people.playlists import Playlists
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import Artist, DivideRule, Genre, PlaylistTrack, Track, TrackArtist, TrackGenre
from tests.support.examples import examples
from tests.support.import_files import import_file

ANN = "ann@label.test"
ONE, TWO = "spotify:artist:1111111111111111111111", "spotify:artist:2222222222222222222222"
EXPORTIFY = "Track URI,Track Name,Artist URI(s),Artist Name(s),Album Name,Artist Genres\n"


class Files:
    """Imports of sheets by an account, and the credits of the tracks that are stored then."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self._folder = store, folder
        store.write(lambda: users.create(ANN, now=1)).result()

    def read(self, text: str, kind: Any = Catalog, **options: Any) -> ImportSummary:
        file = self._folder / "rows.csv"
        file.write_text(text, "utf-8")
        return import_file(self.store, file, kind(ImportOptions(**{"user": ANN} | options)))

    def start_anew(self) -> None:
        """Delete all that the imports made."""
        for table in (TrackArtist, Track, Artist, DivideRule):
            self.store.write(table.delete().execute).result()

    def credits(self) -> dict[str, list[str]]:
        """Return the names of the artists, in order, by the name of the track."""

        def read() -> dict[str, list[str]]:
            found: dict[str, list[str]] = {}
            query = TrackArtist.select(Track.name, Artist.name).join(Track).switch(TrackArtist).join(Artist)
            for track, artist in query.order_by(Track.id, TrackArtist.position).tuples().iterator():
                found.setdefault(track, []).append(artist)
            return found

        return self.store.read(read).result()

    def genres(self) -> set[str]:
        query = TrackGenre.select(Genre.name).join(Genre)
        return self.store.read(lambda: {name for (name,) in query.tuples().iterator()}).result()


@pytest.fixture
def files(store: Store, tmp_path: Path) -> Files:
    return Files(store, tmp_path)


def written(summary: ImportSummary) -> dict[str, str]:
    return {each.column: each.written for each in summary.columns if each.written}


BOTH = f'"{ONE}, {TWO}"'
SHEETS: Mapping[str, tuple[list[str], dict[str, list[str]], set[str]]] = {
    "as many artists as URIs": (
        [
            "Track URI,Track Name,Artist URI(s),Artist Name(s),Album Name,Artist Genres",
            f'u1,One,{BOTH},"Ann Example, Bob Sample",X,"indie pop,art rock"',
            f'u2,Two,{ONE},"Tyler\\, The Example",X,',
            f'u3,Three,{BOTH},"Tyler\\, The Example, Bob Sample",X,art rock',
        ],
        {"One": ["Ann Example", "Bob Sample"], "Two": ["Tyler, The Example"],
         "Three": ["Tyler, The Example", "Bob Sample"]},
        {"indie-pop", "art-rock"},
    ),
    "an artist with a semicolon has one URI": (
        ["Track URI,Track Name,Artist URI(s),Artist Name(s)", f"u1,One,{ONE},Ann; Example"],
        {"One": ["Ann; Example"]},
        set(),
    ),
    "bare ids, and commas without a blank between names": (
        [
            "Spotify ID,Artist IDs,Track Name,Album Name,Artist Name(s),Genres,Added At",
            '1,"1,2",One,X,"Ann Example,Bob Sample","a,b",',
            '2,"1,2",Two,X,"Tyler, The Example,Bob Sample",b,',
            '3,"3",Three,X,"10,000 Examples",b,',
        ],
        {"One": ["Ann Example", "Bob Sample"], "Two": ["Tyler, The Example", "Bob Sample"],
         "Three": ["10,000 Examples"]},
        {"a", "b"},
    ),
    "no ids, semicolons between names and commas between genres": (
        [
            "Track URI,Track Name,Album Name,Artist Name(s),Release Date,Duration (ms),Genres",
            'u1,One,X,"Tyler, The Example;Bob Sample",2026-01-01,1,"a,b"',
            'u2,Two,X,"Ann,Example",2026-01-01,1,',
        ],
        {"One": ["Tyler, The Example", "Bob Sample"], "Two": ["Ann,Example"]},
        {"a", "b"},
    ),
    "no ids, commas without a blank between names": (
        [
            "Track URI,Track Name,Album Name,Artist Name(s),Release Date",
            'u1,One,X,"Ann Example,Bob Sample",2026-01-01',
            'u2,Two,X,"Tyler, The Example,Bob Sample",2026-01-01',
            'u3,Three,X,"10,000 Examples",2026-01-01',
        ],
        {"One": ["Ann Example", "Bob Sample"], "Two": ["Tyler, The Example", "Bob Sample"],
         "Three": ["10,000 Examples"]},
        set(),
    ),
    "in German": (
        [
            "Track-URI,Track-Name,Künstler-URI(s),Künstlername(n),Album-Name,Künstler-Genres",
            f'u1,One,{BOTH},"Ann Example, Bob Sample",X,"a,b"',
        ],
        {"One": ["Ann Example", "Bob Sample"]},
        {"a", "b"},
    ),
    "lists as Python and JSON write them": (
        [
            "track,artist,genre",
            """One,"['Ann', ""Bob's""]",[]""",
            """Two,"[""Ann, Example"",""Tim \\""T\\"" Example""]","['a', 'b']\"""",
        ],
        {"One": ["Ann", "Bob's"], "Two": ["Ann, Example", 'Tim "T" Example']},
        {"a", "b"},
    ),
    "a column for each artist, as YouTube Music writes them": (
        [
            "Video ID,Song Title,Album Title,Artist Name 1,Artist Name 2,Artist Name 3",
            "v,One,X,Ann & Bob,Cat,Dan",
            "w,Two,X,Ann & Bob,,",
        ],
        {"One": ["Ann & Bob", "Cat", "Dan"], "Two": ["Ann & Bob"]},
        set(),
    ),
    "a column for each further artist": (
        ["Title,Artist,Artist 2,Artist 3", "One,Ann & Bob,Cat,Dan", "Two,Ann & Bob,,"],
        {"One": ["Ann & Bob", "Cat", "Dan"], "Two": ["Ann & Bob"]},
        set(),
    ),
    "TuneMyMusic, with the first artist only": (
        [
            "Track name,Artist name,Album,Playlist name,Type,ISRC,Spotify - id",
            '"One","Tyler, The Example","X","Mix","Playlist","GBAYE6800011","1"',
        ],
        {"One": ["Tyler, The Example"]},
        set(),
    ),
    "any other sheet is divided at semicolons only": (
        ["Track Name,Artist Name,Genres", 'One,"Ann Example, Bob Sample","a,b"', "Two,Ann;Bob,a;c"],
        {"One": ["Ann Example, Bob Sample"], "Two": ["Ann", "Bob"]},
        {"a-b", "a", "c"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SHEETS)
def test_the_lists_of_a_known_export_are_undone(files: Files, case: str) -> None:
    text, artists, genres = SHEETS[case]
    files.read("\n".join(text))
    assert (files.credits(), files.genres()) == (artists, genres)


def test_artists_that_are_divided_without_a_rule_are_told(files: Files) -> None:
    assert written(files.read("Title,Artist\nOne,AC;DC\n")) == {"Artist": "divided at semicolons"}
    assert written(files.read("Title,Artist\nOne,AC/DC\n")) == {}


def test_names_that_are_not_as_many_as_their_uris_stay_one_and_are_counted(files: Files) -> None:
    done = files.read(f'{EXPORTIFY}u1,One,{BOTH},"A, B, C",X,\nu2,Two,{BOTH},"A, B",X,\nu3,Three,{BOTH},A,X,\n')
    assert files.credits() == {"One": ["A, B, C"], "Two": ["A", "B"], "Three": ["A"]}
    assert done.notes["ids_differ"] == 2
    assert written(done)["Artist Name(s)"] == "as many names as Artist URI(s) has ids"
    why = {each.column: each.why for each in done.columns}
    assert why["Artist URI(s)"] == "its ids tell how many names Artist Name(s) has"


def test_the_artists_of_an_album_are_as_many_as_their_uris(files: Files) -> None:
    head = "Track URI,Track Name,Artist Name(s),Artist URI(s),Album Name,Album Artist URI(s),Album Artist Name(s)\n"
    files.read(f'{head}u1,One,A,{ONE},X,"{ONE}, {TWO}","B, C"\n')
    names = files.store.read(
        lambda: [name for (name,) in Artist.select(Artist.name).order_by(Artist.id).tuples().iterator()]
    )
    assert sorted(names.result()) == ["A", "B", "C"]


def test_plays_and_playlists_find_the_tracks_of_an_export_by_both_artists(files: Files) -> None:
    both = f'"{ONE}, {TWO}","Ann Example, Bob Sample"'
    files.read(f"{EXPORTIFY}u1,One,{both},X,\n")
    head = "Track Name,Artist URI(s),Artist Name(s)"
    plays = f"{head},played_at\nOne,{both},2026-01-01T00:00:00Z\n"
    assert files.read(plays, Plays, listener="me").counts["plays"].new == 1
    files.read(f"{head},playlist\nOne,{both},Mix\n", Playlists)
    assert files.store.read(lambda: PlaylistTrack.select().count()).result() == 1
    files.read(plays.replace("One,", "Two,"), Plays, listener="me", create_missing=True)
    assert files.credits()["Two"] == ["Ann Example", "Bob Sample"]


SONGS = """Title,Artist,Genre
One,Ann Example & Bob Sample,Pop
Two,Cat Example x Ann Example,Pop
Three,"Ann Example, Bob Sample; Cat Example",Pop
Four,Ann Example (feat. Bob Sample),Pop
Five,Ann Example Ft. Bob Sample [with Cat Example],"Rock, Pop"
Six,Max Xample,Pop & Roll
"""


def test_a_rule_divides_a_column_at_its_signs_and_no_other(files: Files) -> None:
    done = files.read(SONGS, divide=["Artist=& , x feat. with"])
    assert files.credits() == {
        "One": ["Ann Example", "Bob Sample"],
        "Two": ["Cat Example", "Ann Example"],
        "Three": ["Ann Example", "Bob Sample", "Cat Example"],
        "Four": ["Ann Example", "Bob Sample"],
        "Five": ["Ann Example", "Bob Sample", "Cat Example"],
        "Six": ["Max Xample"],
    }
    assert files.genres() == {"pop", "rock-pop", "pop-roll"}
    assert written(done) == {"Artist": "divided at & , x feat. with"}
    assert done.new_artists == [(name, ()) for name in ("Ann Example", "Bob Sample", "Cat Example", "Max Xample")]


@pytest.mark.parametrize(
    ("signs", "cell", "names"),
    [
        ("x", "Ann x Bob X Cat", ["Ann", "Bob", "Cat"]),
        ("x", "Ann \N{MULTIPLICATION SIGN} Bob", ["Ann", "Bob"]),
        ("x", "Xavier Ax", ["Xavier Ax"]),
        ("vs", "Ann vs. Bob versus Cat VS Dan", ["Ann", "Bob", "Cat", "Dan"]),
        ("with", "With Love", ["With Love"]),
        ("ft", "Ann feat.Bob featuring Cat", ["Ann", "Bob", "Cat"]),
        ("+", "A+B + Cat", ["A+B", "Cat"]),
        ("&", "&", ["&"]),
        ("&", "Ann & ", ["Ann"]),
        ("&", "Ann & Ann", ["Ann"]),
        ("feat.", "Ann (Example) feat. Bob (Sample)", ["Ann (Example)", "Bob (Sample)"]),
        ("und /", "Ann und Bob/Cat", ["Ann", "Bob", "Cat"]),
    ],
)
def test_signs_divide_names_and_no_parts_of_words(files: Files, signs: str, cell: str, names: list[str]) -> None:
    files.read(f'Title,Artist\nOne,"{cell}"\n', divide=[f"artist={signs}"])
    assert files.credits() == {"One": names}


def test_a_rule_is_kept_for_the_account_and_its_later_tables(files: Files, store: Store) -> None:
    store.write(lambda: users.create("bob@label.test", now=1)).result()
    files.read("Title,Artist\nOne,Ann & Bob\n", divide=["Artist=&"], dry_run=True)
    files.read("Title,ARTIST,Genre\nTwo,Ann & Bob,a\n", divide=["artist=&"])
    later = "Title,Artist,Genre\n{},Ann & Bob,b\n"
    assert written(files.read(later.format("Three"), dry_run=True)) == {
        "Artist": "divided at & as in an earlier import"
    }
    files.read(later.format("Three"))
    files.read(later.format("Four"), user="bob@label.test")
    files.read(later.format("Five"), user=None)
    files.read(later.format("Six"), divide=["Artist="])
    files.read(later.format("Seven"))
    both, one = ["Ann", "Bob"], ["Ann & Bob"]
    assert files.credits() == {"Two": both, "Three": both, "Four": one, "Five": one, "Six": one, "Seven": one}


def test_a_kept_rule_holds_for_tables_of_plays_and_not_for_histories(files: Files) -> None:
    files.read("Title,Artist\nOne,Ann & Bob\n", divide=["Artist=&"])
    plays = "Title,Artist,Time\nOne,Ann & Bob,2026-01-01T00:00:00Z\n"
    assert files.read(plays, Plays, listener="me").counts["plays"].new == 1
    history = "#AUDIOSCROBBLER/1.1\nAnn & Bob\tX\tTwo\t1\t259\tL\t1714557600\t\n"
    files.read(history, Plays, listener="me", create_missing=True)
    assert files.credits() == {"One": ["Ann", "Bob"], "Two": ["Ann & Bob"]}
    files.read(history.replace("Two", "Three"), Plays, listener="me", create_missing=True, divide=["artist=&"])
    assert files.credits()["Three"] == ["Ann", "Bob"]


def test_a_dry_run_keeps_no_rule(files: Files) -> None:
    files.read("Title,Artist\nOne,Ann & Bob\n", divide=["Artist=&"], dry_run=True)
    files.read("Title,Artist\nOne,Ann & Bob\n")
    assert files.credits() == {"One": ["Ann & Bob"]}


def test_a_rule_wins_over_what_is_known_of_an_export(files: Files) -> None:
    files.read(f'{EXPORTIFY}u1,One,"{ONE}, {TWO}","A, B & C",X,"a,b"\n', divide=["Artist Name(s)=&", "genre="])
    assert (files.credits(), files.genres()) == ({"One": ["A, B", "C"]}, {"a-b"})


@pytest.mark.parametrize("pair", ["&", "=&", f"Artist={' '.join('abcdefghijk')}", f"Artist={'a' * 21}"])
def test_a_malformed_rule_is_refused(pair: str) -> None:
    with pytest.raises(Invalid):
        Catalog(ImportOptions(divide=[pair]))


def test_a_column_has_one_rule() -> None:
    with pytest.raises(Invalid) as refused:
        Catalog(ImportOptions(divide=["Artist=&", "Artist=x"]))
    assert refused.value.errors == {"--divide": "'Artist' has two rules. Give all signs in one."}


@pytest.mark.parametrize("column", ["Title", "Nothing", "isrc", "genre"])
def test_a_rule_for_a_column_without_names_is_refused(files: Files, column: str) -> None:
    with pytest.raises(Failure, match=f"No column '{column}' has names to divide"):
        files.read("Title,Artist\nOne,Ann & Bob\n", divide=[f"{column}=&"])


def test_featured_artists_come_after_the_others_once(files: Files) -> None:
    text = (
        "feat.,Title,Artist,Featured artist(s)\n"
        "Bob; Cat,One,Ann; Cat,Dan\n,Two,Ann,\nAnn,Three,Ann,\nBob & Cat,Four,Ann,\nBob,Five,,\n"
    )
    done = files.read(text, divide=["feat.=&"])
    assert files.credits() == {
        "One": ["Ann", "Cat", "Bob", "Dan"], "Two": ["Ann"], "Three": ["Ann"], "Four": ["Ann", "Bob", "Cat"],
    }  # fmt: skip
    assert [each.reason for each in done.refused] == ["artist is missing"]
    files.read("Title,ft\nSix,Bob\n", artist="Ann")
    assert files.credits()["Six"] == ["Ann", "Bob"]
    plays = "Title,Artist,Featuring,played_at\nSix,Ann,Bob,2026-01-01T00:00:00Z\nSeven,Bob,Ann,2026-01-02T00:00:00Z\n"
    files.read(plays, Plays, listener="me", create_missing=True)
    assert files.credits()["Seven"] == ["Bob", "Ann"]
    assert files.read("Title,Artist,feat.,playlist\nSix,Ann,Bob,Mix\n", Playlists).counts["entries"].new == 1


def test_the_new_artists_are_named_and_those_that_may_be_several_first(files: Files) -> None:
    files.read("Title,Artist\nZero,Known & Old\n")
    text = SONGS + "Seven,Known & Old,\nEight,A/B + C vs. D,\n,Never Made & Bob,\n"
    tried, done = files.read(text, dry_run=True), files.read(text)
    assert tried.new_artists == done.new_artists == [
        ("Ann Example & Bob Sample", ("&",)),
        ("Cat Example x Ann Example", ("x",)),
        ("Ann Example, Bob Sample", (",",)),
        ("Ann Example (feat. Bob Sample)", ("feat.",)),
        ("Ann Example Ft. Bob Sample [with Cat Example]", ("feat.", "with")),
        ("A/B + C vs. D", ("/", "+", "vs")),
        ("Cat Example", ()),
        ("Max Xample", ()),
    ]  # fmt: skip
    plays = "Title,Artist,played_at\nNine,Dan & Eve,2026-01-01T00:00:00Z\n"
    assert files.read(plays, Plays, listener="me", create_missing=True, dry_run=True).new_artists == [
        ("Dan & Eve", ("&",))
    ]


def test_the_list_of_new_artists_is_bounded(files: Files) -> None:
    rows = [f"T{n},Artist {n}" for n in range(1_200)] + [f"U{n},A{n} & B" for n in range(300)]
    done = files.read("Title,Artist\n" + "\n".join(rows), dry_run=True)
    found = done.new_artists
    assert (len(found), done.counts["artists"].new) == (1_000, 1_500)
    assert (found[0], found[299], found[300]) == (("A0 & B", ("&",)), ("A299 & B", ("&",)), ("Artist 0", ()))


SIGNS = ("&", ",", "/", "x", "feat.", "vs", "with", "+", "und")
WORDS = some.sampled_from(("Ann", "Bob", "Max", "Xenia", "The", "Vsi", "42", "Ä", "(live)", "Withers", "and", "A.X."))
NAME = some.lists(WORDS, min_size=1, max_size=3).map(" ".join)
CREDIT = some.lists(NAME, min_size=1, max_size=4, unique=True)


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(credits_=some.lists(CREDIT, min_size=1, max_size=6), signs=some.lists(some.sampled_from(SIGNS), min_size=1))
def test_a_sheet_divided_by_a_rule_is_the_sheet_with_semicolons(
    files: Files, credits_: list[list[str]], signs: list[str]
) -> None:
    files.start_anew()
    rows = [{"track": f"T{n}", "artist": names} for n, names in enumerate(credits_)]
    plain, ruled = (
        "\n".join(["track,artist", *(f'{row["track"]},"{join(row["artist"])}"' for row in rows)])
        for join in ("; ".join, lambda names: join_with(names, signs))
    )
    expected = files.read(plain)
    found = files.credits()
    files.start_anew()
    rule = [f"artist={' '.join(signs)}"]
    tried, done = files.read(ruled, divide=rule, dry_run=True), files.read(ruled, divide=rule)
    assert files.credits() == found
    assert tried.new_artists == done.new_artists == expected.new_artists
    assert tried.counts == done.counts == expected.counts


def join_with(names: Sequence[str], signs: Sequence[str]) -> str:
    """Return the names with signs between them, which take turns."""
    joints = [f" {signs[at % len(signs)]} " for at in range(len(names))]
    return "".join(f"{name}{joint}" for name, joint in zip(names, joints, strict=True)).removesuffix(joints[-1])


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    credits_=some.lists(
        some.lists(some.text("ab ,;0(&", min_size=1).filter(str.strip), min_size=1, max_size=4, unique_by=str.strip),
        min_size=1,
        max_size=6,
    ),
)
def test_an_export_with_uris_has_the_artists_that_it_was_made_of(files: Files, credits_: list[list[str]]) -> None:
    files.start_anew()
    rows = [
        (f"T{n}", ", ".join([ONE] * len(names)), ", ".join(name.replace(",", "\\,") for name in names))
        for n, names in enumerate(credits_)
    ]
    done = files.read("\n".join(["Track Name,Artist URI(s),Artist Name(s)", *(f'{a},"{b}","{c}"' for a, b, c in rows)]))
    assert files.credits() == {f"T{n}": [name.strip() for name in names] for n, names in enumerate(credits_)}
    assert done.notes == {}
