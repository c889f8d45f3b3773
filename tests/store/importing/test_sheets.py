"""Import of sheets with the columns of other services without `--map`, and what is guessed of each column."""

from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from musicsvc.errors import Failure
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import headings
from musicsvc.store.importing.catalog import rows
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.cells import dates
from musicsvc.store.importing.columns import Columns, Guess
from musicsvc.store.importing.files.records import Record
from musicsvc.store.importing.people.follows import Follows
from musicsvc.store.importing.plays import listen_rows
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.models import Album, AlbumArtist, Artist, Genre, Tag, Track, TrackArtist, TrackGenre, TrackTag
from tests.support.catalog_import import counts
from tests.support.import_files import import_file
from tests.support.refused_rows import reasons

pytestmark = pytest.mark.only_on("sqlite")  # the statements are those of other imports


class Sheet(NamedTuple):
    """The first lines of a sheet, and what its row says. `source`: who documents the columns."""

    source: str
    text: str
    found: Mapping[str, object]


RAG = {"name": "Rag", "artists": ("Ann",)}
SHEETS = [
    Sheet(
        "an ordinary sheet in English",
        "Title;Artist;ISRC;UPC;Album;Release Date;Label;Track No;Explicit;Duration\n"
        "Rag;Ann;GB-AYE-68-00011;036000291452;Two;15.10.2026;Nine;3;no;3:45",
        RAG | {"isrc": "GBAYE6800011", "upc": "036000291452", "album": "Two", "release_date": "2026-10-15",
               "label": "Nine", "track_number": 3, "explicit": False, "duration": 225_000},
    ),
    Sheet(
        "an ordinary sheet in German",
        "Titel;Interpret;Albumtitel;Albumkünstler;Veröffentlichungsdatum;Länge;Titelnr.;CD-Nr.;Plattenfirma;EAN;Explizit;"
        "Stichwörter;Musikrichtung;Tonart\n"
        "Rag;Ann;Two;Ann & Co;15.10.2026;1:02:03;3;1;Nine;4006381333931;nein;warm;Jazz;C#",
        RAG | {"album": "Two", "album_artists": ("Ann & Co",), "release_date": "2026-10-15", "duration": 3_723_000,
               "track_number": 3, "disc_number": 1, "label": "Nine", "upc": "4006381333931", "explicit": False,
               "tags": ("warm",), "genres": {"jazz": "Jazz"}, "key": "C#"},
    ),
    *(
        Sheet(
            f"an ordinary sheet in {language}",
            f"{headings}\nRag;Ann;Two;21/10/2026;3:45;Jazz;GBAYE6800011;3;036000291452;Nine",
            RAG | {"album": "Two", "release_date": "2026-10-21", "duration": 225_000, "genres": {"jazz": "Jazz"},
                   "isrc": "GBAYE6800011", "track_number": 3, "upc": "036000291452", "label": "Nine"},
        )
        for language, headings in (
            ("French", "Titre;Artiste;Album;Date de sortie;Durée;Genre;Code ISRC;Numéro de piste;Code UPC;Label"),
            (
                "Spanish",
                "Título;Artista;Álbum;Fecha de lanzamiento;Duración;Género;ISRC;Número de pista;Código UPC;Sello",
            ),
            ("Japanese", "曲名;アーティスト名;アルバム;リリース日;再生時間;ジャンル;ISRC;トラック番号;UPC;レーベル"),
            ("Russian", "Название;Исполнитель;Альбом;Дата выхода;Длительность;Жанр;ISRC;Номер трека;UPC;Лейбл"),
            ("Italian", "Titolo;Artista;Album;Data di uscita;Durata;Genere;ISRC;Numero traccia;Codice UPC;Etichetta"),
            (
                "Portuguese",
                "Título da música;Artista;Álbum;Data de lançamento;Duração;Gênero;ISRC;Número da faixa;UPC;Gravadora",
            ),
            ("Dutch", "Titel;Artiest;Album;Releasedatum;Duur;Genre;ISRC;Tracknummer;EAN;Platenlabel"),
        )
    ),
    Sheet(
        "Spotify for Artists, table of songs (support.spotify.com/artists, Exporting data)",
        "song,listeners,streams,saves,release_date\nRag,10,20,3,2026-10-15",
        {"name": "Rag", "artists": ("Solo",), "release_date": "2026-10-15"},
    ),
    Sheet(
        "our own export, whose ids are no ids of another service",
        '"track_id","track","artists","plays_total","plays_period","likes","isrc","album","release_date","first_play"\n'
        '7,"Rag","Ann; Bea",90,12,3,"GBAYE6800011","Two",2026-10-15,2026-10-16',
        {"name": "Rag", "artists": ("Ann", "Bea"), "isrc": "GBAYE6800011", "album": "Two",
         "release_date": "2026-10-15", "external_id": None},
    ),
    Sheet(
        "the same with the headings of our workbooks",
        "Track ID;Track;Artists;Plays of all time;ISRC;Album;First play\n7;Rag;Ann;90;GBAYE6800011;Two;2026-10-16",
        RAG | {"isrc": "GBAYE6800011", "album": "Two", "external_id": None},
    ),
    Sheet(
        "Spotify's catalog data, as in tidytuesday's spotify_songs",
        "track_id,track_name,track_artist,track_album_id,track_album_name,track_album_release_date,playlist_genre,"
        "playlist_subgenre,key,mode,tempo,duration_ms\n"
        "t1,Rag,Ann,a1,Two,2019,pop,dance pop,6,1,122.036,194754",
        RAG | {"external_id": "t1", "album": "Two", "album_external_id": "a1", "release_date": "2019-01-01",
               "genres": {"pop": "pop"}, "tags": ("dance pop",), "key": "F#", "scale": "Major", "bpm": 122,
               "duration": 194_754},
    ),
    Sheet(
        "Exportify, playlists of Spotify (github.com/watsonbox/exportify)",
        '"Track URI","Track Name","Artist Name(s)","Album Name","Album Artist Name(s)","Album Release Date",'
        '"Album Image URL","Disc Number","Track Number","Track Duration (ms)","Explicit","ISRC"\n'
        '"u:1","Rag","Ann; Bea","Two","Ann","2019-05","https://example.test/a.jpg","1","4","194754","false","GBAYE6800011"',
        {"name": "Rag", "artists": ("Ann", "Bea"), "external_id": "u:1", "album_artists": ("Ann",), "disc_number": 1,
         "release_date": "2019-05-01", "image": "https://example.test/a.jpg", "track_number": 4, "duration": 194_754,
         "explicit": False, "isrc": "GBAYE6800011"},
    ),
    Sheet(
        "DistroKid, earnings in detail (support.distrokid.com)",
        "Reporting Date\tSale Month\tStore\tArtist\tTitle\tISRC\tUPC\tQuantity\tTeam Percentage\tSong/Album\t"
        "Country of Sale\tSongwriter Royalties Withheld\tEarnings (USD)\n"
        "2026-05-15\t2026-03\tSpotify\tAnn\tRag\tGBAYE6800011\t036000291452\t1523\t100\tSong\tFR\t0\t45.69",
        RAG | {"isrc": "GBAYE6800011", "album": None, "release_date": None},
    ),
    Sheet(
        "TuneCore, sales report (support.tunecore.com)",
        "Sales Period,Posted Date,Store Name,Country Of Sale,Artist,Release Type,Release Title,Song Title,Label,UPC,"
        "Optional UPC,TC Song ID,Optional ISRC,Sales Type,# Units Sold,Per Unit Price\n"
        "2026-07-01,2026-09-01,Deezer,FR,Ann,Album,Two,Rag,Nine,036000291452,,77,GBAYE6800011,Stream,4,0.01",
        RAG | {"album": "Two", "label": "Nine", "upc": "036000291452", "external_id": "77", "isrc": "GBAYE6800011",
               "track_number": None},
    ),
    Sheet(
        "CD Baby, metadata of a release (support.cdbaby.com)",
        "Album Title,Release UPC,Artist Name,Track Number,Track Title,Track ISRC,Release Date,Parental Advisory\n"
        "Two,036000291452,Ann,3,Rag,GBAYE6800011,10/15/2026,Explicit",
        RAG | {"album": "Two", "upc": "036000291452", "track_number": 3, "isrc": "GBAYE6800011",
               "release_date": "2026-10-15", "explicit": True},
    ),
    Sheet(
        "Bandcamp, sales report (bandcamp.com/help/sales_report)",
        "date,paid to,item type,item name,artist,currency,item price,quantity,upc,isrc\n"
        "5/13/26 11:28pm,a,track,Rag,Ann,USD,1,1,036000291452,GBAYE6800011",
        RAG | {"isrc": "GBAYE6800011", "album": None, "release_date": None},
    ),
    Sheet(
        "The Orchard, sales statement",
        "Period,Orchard UPC,Manufacturer UPC,Imprint Label,Artist Name,Product Name,Track Name,Track Artist,ISRC\n"
        "2021M03,4006381333931,036000291452,Nine,Ann,Two,Rag,Ann,GBAYE6800011",
        RAG | {"album": "Two", "upc": "036000291452", "label": "Nine", "isrc": "GBAYE6800011"},
    ),
    Sheet(
        "DDEX in flat rows",
        "ISRC\tTitleText\tDisplayArtistName\tICPN\tReleaseTitle\tLabelName\tOriginalReleaseDate\tDuration\t"
        "SequenceNumber\tParentalWarningType\n"
        "GBAYE6800011\tRag\tAnn\t036000291452\tTwo\tNine\t2021-04-03\tPT0H3M45S\t3\tNotExplicit",
        RAG | {"album": "Two", "upc": "036000291452", "label": "Nine", "release_date": "2021-04-03",
               "duration": 225_000, "track_number": 3, "explicit": False},
    ),
    Sheet(
        "SoundExchange, search of ISRCs",
        "ISRC,Recording Artist,Recording Title,Duration,Release Artist,Release Title,UPC/EAN,Release Label\n"
        "GB-AYE-68-00011,Ann,Rag,00:03:45,Ann & Co,Two,036000291452,Nine",
        RAG | {"isrc": "GBAYE6800011", "album_artists": ("Ann & Co",), "label": "Nine", "duration": 225_000},
    ),
    Sheet(
        "PPL, recordings",
        "Recording ID,ISRC,Recording Title,Band/Artist Name,Recording Date,Duration\n"
        "P1,GBAYE6800011,Rag,Ann,03/04/2021,3:45",
        RAG | {"isrc": "GBAYE6800011", "duration": 225_000, "release_date": None},
    ),
    Sheet(
        "beets, its fields as CSV",
        "title,artist,album,albumartist,track,year,length,mb_trackid,mb_albumid\n"
        "Rag,Ann,Two,Ann & Co,3,2021,3:45,r-1,a-1",
        RAG | {"album": "Two", "album_artists": ("Ann & Co",), "track_number": 3, "external_id": "r-1",
               "album_external_id": "a-1"},
    ),
    Sheet(
        "MusicBrainz Picard, tags (picard-docs.musicbrainz.org, Tag variables)",
        "title,artist,albumartist,album,date,originaldate,tracknumber,discnumber,isrc,barcode,label,genre,bpm,key,"
        "length,musicbrainz_recordingid,musicbrainz_albumid\n"
        "Rag,Ann,Ann & Co,Two,2026-10-15,1999,3,1,GBAYE6800011,036000291452,Nine,Jazz,90,,3:45,r-1,a-1",
        RAG | {"album_artists": ("Ann & Co",), "release_date": "2026-10-15", "track_number": 3, "disc_number": 1,
               "upc": "036000291452", "label": "Nine", "bpm": 90, "duration": 225_000, "external_id": "r-1",
               "album_external_id": "a-1"},
    ),
    Sheet(
        "MusicBrainz, recordings joined with their releases (musicbrainz.org/doc/MusicBrainz_Database/Schema)",
        "recording_gid\trecording_name\tartist_credit_name\trelease_gid\trelease_name\tlength\tposition\tbarcode\tisrc\n"
        "r-1\tRag\tAnn\ta-1\tTwo\t267560\t3\t036000291452\tGBAYE6800011",
        RAG | {"external_id": "r-1", "album_external_id": "a-1", "album": "Two", "duration": 267_560,
               "track_number": 3, "upc": "036000291452"},
    ),
    Sheet(
        "Believe, metadata template (believedigital.zendesk.com)",
        "Track number;Track title;CD number;Release title;Label;Genre;Sub Genre;Parental advisory;"
        "Digital release date (MM/DD/YYYY);ISRC Code;UPC Code (optional);Main artist\n"
        "3;Rag;1;Two;Nine;Dance;House;No;01/25/2023;GBAYE6800011;036000291452;Ann",
        RAG | {"track_number": 3, "disc_number": 1, "album": "Two", "label": "Nine", "genres": {"dance": "Dance"},
               "tags": ("House",), "explicit": False, "release_date": "2023-01-25", "upc": "036000291452"},
    ),
    Sheet(
        "Beatport, statement export (support.beatport.com)",
        "PRODUCT_UPC,PRODUCT_CATALOGUE_NUMBER,TRACK_ISRC_CODE,LABEL,RELEASE,TRACK_TITLE,TRACK_ARTIST,REMIXER_NAME\n"
        "036000291452,C1,GBAYE6800011,Nine,Two,Rag,Ann,",
        RAG | {"upc": "036000291452", "isrc": "GBAYE6800011", "label": "Nine", "album": "Two"},
    ),
    Sheet(
        "Labelcaster, detailed report (labelcaster.com/csv-reports)",
        "label,report_date,sales_start_date,sales_end_date,UPC,release_title,release_artist,ISRC,track_title,track_artist\n"
        "Nine,2026-01-01,2025-10-01,2025-10-31,036000291452,Two,Ann & Co,GBAYE6800011,Rag,Ann",
        RAG | {"label": "Nine", "album": "Two", "album_artists": ("Ann & Co",), "isrc": "GBAYE6800011",
               "release_date": None},
    ),
    Sheet(
        "MixBANK, catalog as CSV (help.mixbank.com)",
        "album_artist,album_title,album_ean,album_release_date,album_label,track_number,track_title,track_custom_id,"
        "track_artist,track_genres,track_isrc,track_explicit_lyrics\n"
        "Ann & Co,Two,4006381333931,2026-10-15,Nine,3,Rag,x-1,Ann,Jazz,GBAYE6800011,Yes",
        RAG | {"album_artists": ("Ann & Co",), "album": "Two", "upc": "4006381333931", "release_date": "2026-10-15",
               "label": "Nine", "external_id": "x-1", "genres": {"jazz": "Jazz"}, "explicit": True},
    ),
    Sheet(
        "Stardust Distro, catalog import (its docs/catalog-import.md)",
        "upc,release_title,display_artist,release_date,track_number,track_title,isrc,duration\n"
        "036000291452,Two,Ann,2024-07-01,1,Rag,GBAYE6800011,215",
        RAG | {"album": "Two", "duration": 215_000, "track_number": 1},
    ),
    Sheet(
        "Mp3tag, table of tag fields (docs.mp3tag.de/mapping)",
        "Title;Artist;Album;Track;Discnumber;Year;Genre;Albumartist;Length;BPM\n"
        "Rag;Ann;Two;03;1;1999;Jazz;Ann & Co;03:45;90",
        RAG | {"album": "Two", "track_number": 3, "disc_number": 1, "release_date": "1999-01-01", "duration": 225_000,
               "album_artists": ("Ann & Co",), "bpm": 90},
    ),
    Sheet(
        "Music of Apple, exported library (support.apple.com/guide/music)",
        "Name\tArtist\tComposer\tAlbum\tGenre\tTime\tDisc Number\tTrack Number\tTrack Count\tYear\n"
        "Rag\tAnn\tCyd\tTwo\tJazz\t225\t1\t3\t9\t1999",
        RAG | {"album": "Two", "duration": 225_000, "track_number": 3, "release_date": "1999-01-01"},
    ),
    Sheet(
        "Labelmanager's sheet in capitals, with spaces and units",
        "TRACK TITLE , PRIMARY ARTIST(S), Record-Label, Track #, Disc #, Length (sec), Date Released\n"
        "Rag,Ann,Nine,3,1,225.4,25/12/2026",
        RAG | {"track_number": 3, "disc_number": 1, "duration": 225_400, "release_date": "2026-12-25"},
    ),
    Sheet(
        "FUGA, metadata of products",
        "Product Title,Product Display Artist,UPC,Label,Release Date,Asset Sequence,Asset Title,Asset Display Artist,"
        "ISRC,Asset Duration,Asset Genre,Asset Subgenre\n"
        "Two,Ann & Co,036000291452,Nine,2026-10-15,3,Rag,Ann,GBAYE6800011,225,Jazz,Ragtime",
        RAG | {"album": "Two", "album_artists": ("Ann & Co",), "upc": "036000291452", "release_date": "2026-10-15",
               "track_number": 3, "duration": 225_000, "genres": {"jazz": "Jazz"}, "tags": ("Ragtime",)},
    ),
    Sheet(
        "SoundExchange, upload of ISRCs",
        "ISRC*,Recording Title*,Recording Artist*,Recording Duration* (HH:MM:SS)\nGBAYE6800011,Rag,Ann,00:03:45",
        RAG | {"isrc": "GBAYE6800011", "duration": 225_000},
    ),
    Sheet(
        "a sheet in Portuguese",
        "Título;Artista;Explícito;Gravadora;Álbum\nRag;Ann;Sim;Nine;Two",
        RAG | {"explicit": True, "label": "Nine", "album": "Two"},
    ),
    Sheet(
        "The MLC, works and their recordings",
        "Primary Title,Writer Last Name,Recording Title,Recording Artist Name,Recording ISRC\n"
        "RAG,Example,Rag,Ann,GBAYE6800011",
        RAG | {"isrc": "GBAYE6800011"},
    ),
    Sheet(
        "RouteNote, earnings, whose dates are those of sales",
        "Retailer,UPC,Album,Artist,Track,ISRC,Date,Quantity\nX,036000291452,Two,Ann,Rag,GBAYE6800011,2024-01-31,10",
        RAG | {"album": "Two", "upc": "036000291452", "release_date": None},
    ),
    Sheet(
        "a report of sales, whose year and month are those of sales",
        "Year,Month,Store,Artist,Title,Units\n2024,1,X,Ann,Rag,10",
        RAG | {"release_date": None},
    ),
    Sheet(
        "a distributor, with artists of albums and of tracks",
        "Release Title,Release Primary Artists,Track Title,Track Primary Artists\nTwo,Cy,Rag,Ann",
        RAG | {"album": "Two", "album_artists": ("Cy",)},
    ),
    Sheet(
        "a report of iTunes",
        "Start Date,UPC,ISRC,Artist/Show/Developer/Author,Title,Quantity\n01/31/2024,,GBAYE6800011,Ann,Rag,3",
        RAG | {"isrc": "GBAYE6800011", "release_date": None},
    ),
    Sheet(
        "a report of sales by day",
        "Year,Month,Day,Artist,Title,Units\n2024,1,31,Ann,Rag,10",
        RAG | {"release_date": None},
    ),
    Sheet(
        "a list of songs with their streams and the parts of their release dates",
        "track_name,artist(s)_name,released_year,released_month,released_day,streams\nRag,Ann,2023,7,14,1000",
        RAG | {"release_date": "2023-07-14"},
    ),
    Sheet(
        "charts, whose dates are those of weeks",
        "date,rank,song,artist,last-week,peak-rank,weeks-on-board\n2021-11-06,1,Rag,Ann,1,1,3",
        RAG | {"release_date": None, "track_number": None},
    ),
    Sheet(
        "lists of objects as Python writes them (FMA)",
        "track_title,artist_name,track_genres\nRag,Ann,\"[{'genre_id': '21', 'genre_title': 'Jazz'}]\"",
        RAG | {"genres": {}},
    ),
    Sheet(
        "a log of a radio station, whose times are those of plays",
        "Date,Time,Artist,Title\n2024-03-21,14:05,Ann,Rag",
        RAG | {"release_date": None, "duration": 0},
    ),
    Sheet("a cue sheet", "Time In,Time Out,Artist,Title\n14:05,14:08,Ann,Rag", RAG | {"duration": 0}),
    Sheet(
        "our own fields",
        "track,artist,track_number,duration_ms,release_date,explicit\nRag,Ann,3,900,2026-10-15,1",
        RAG | {"track_number": 3, "duration": 900, "release_date": "2026-10-15", "explicit": True},
    ),
]  # fmt: skip


@pytest.mark.slow
def test_sheets_of_twenty_sources_are_imported_without_map(store: Store, tmp_path: Path) -> None:
    """They go into one store, each under a manager of its own, so that none finds the tracks of another."""
    assert len({sheet.source for sheet in SHEETS}) >= 20
    for number, sheet in enumerate(SHEETS):
        file, manager = tmp_path / "sheet.csv", f"{number}@label.test"
        file.write_text(sheet.text)
        store.write(partial(users.create, manager, now=1)).result()
        done = import_file(store, file, Catalog(ImportOptions(user=manager, artist="Solo")))
        assert (counts(done), done.refused) == ((1, 0, 0, 0), []), sheet.source
        found = store.read(newest_track).result()
        assert {name: found[name] for name in sheet.found} == sheet.found, sheet.source


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Artist\tTitle\tSong/Album\nAnn\tRag\tSong\nAnn\tTwo\tAlbum", ["Rag"]),
        ("item type,item name,artist\ntrack,Rag,Ann\nalbum,Two,Ann\npackage,Shirt,Ann\n,Blues,Ann", ["Rag", "Blues"]),
    ],
)
def test_sold_albums_and_goods_are_no_tracks(store: Store, tmp_path: Path, text: str, names: list[str]) -> None:
    file = tmp_path / "sales.csv"
    file.write_text(text)
    done = import_file(store, file, Catalog(ImportOptions()))
    assert store.read(lambda: [each.name for each in Track.select().order_by(Track.id)]).result() == names
    assert (done.refused, done.notes["no_song"]) == ([], done.rows - len(names))


@pytest.mark.parametrize(
    ("headings", "is_read"),
    [
        *((names, False) for names in ("Catalog#,Title,Artist,Label,Format,release_id", "Title,Artist,UPC,Status")),
        *((names, False) for names in ("Artist,Titel,Katalognummer", "Artist,Title,Year,Tracks", "EAN,Titre,Artiste")),
        *((names, True) for names in ("Artist,Track,UPC", "Title,Artist,UPC,ISRC", "Title,Artist,Album,Catalog No.")),
        *((names, True) for names in ("Title,Artist,Length,UPC", "Artist,Title,BPM,Catalog #", "Song,Artist,Tracks")),
    ],
)
def test_lists_of_releases_are_no_tracks(store: Store, tmp_path: Path, headings: str, *, is_read: bool) -> None:
    file = tmp_path / "list.csv"
    file.write_text(f"{headings}\n{','.join(f'x{at}' for at, _ in enumerate(headings.split(',')))}\n")
    if is_read:
        assert import_file(store, file, Catalog(ImportOptions())).counts["tracks"].new == 1
        return
    with pytest.raises(Failure, match=r"seem to be releases, as it has the column '(.*)', and none of albums"):
        import_file(store, file, Catalog(ImportOptions()))
    title = next(name for name in headings.split(",") if name in {"Title", "Titel", "Titre"})
    pairs = [f"{title}=track", *(["release_id="] if "release_id" in headings else [])]
    assert import_file(store, file, Catalog(ImportOptions(pairs=pairs))).counts["tracks"].new == 1


def test_the_cells_of_rows_that_are_left_out_are_none_that_an_import_did_not_take(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "report.csv"
    file.write_text("No,Title,Artist,BPM,Units\n1,Rag,Ann,90,3\nTotal,,,many,3\n")
    done = import_file(store, file, Catalog(ImportOptions(strict=True)))
    assert (done.notes["total"], done.left_out, done.objections) == (1, {}, [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Title,Version,Artist\nRag,Live,Ann\nRag,Edit,Ann\nRag,Live,Ann", [("Edit", 3)]),
        ("Title,Mix Name,Artist,ISRC\nRag,Live,Ann,GBAYE6800011\nRag,Edit,Ann,GBAYE6800012", []),
    ],
)
def test_versions_that_become_one_track_are_told(
    store: Store, tmp_path: Path, text: str, told: list[tuple[str, int]]
) -> None:
    file = tmp_path / "versions.csv"
    file.write_text(text)
    done = import_file(store, file, Catalog(ImportOptions()))
    assert [(each.example, each.line) for each in done.left_out.values()] == told
    assert done.objections == ["1 cell left out"] * len(told)


def test_the_artist_of_an_album_is_that_of_its_rows_without_one(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "release.csv"
    file.write_text("Title,Artist,Featuring,Album,Album Artist\nRag,,Bea,Two,Ann\nAir,,,Hits,Various Artists")
    done = import_file(store, file, Catalog(ImportOptions()))
    assert (newest(store)["artists"], reasons(done)) == (("Ann", "Bea"), [(3, "artist is missing")])


@pytest.mark.parametrize(
    ("headings", "number"),
    [
        *((f"{name},#,Title,Artist", None) for name in ("Playlist name", "Wiedergabeliste", "Lista de reproducción")),
        ("Streams,Position,Song,Artist", None),
        ("Units,No.,Title,Artist", None),
        ("Release,#,Title,Artist", 7),
        ("Album,Track,Track Title,Artist", 7),
        ("Album,Track,Song Name,Artist", 7),
    ],
)
def test_the_place_in_a_playlist_or_a_chart_is_no_number_of_a_track(
    store: Store, tmp_path: Path, headings: str, number: int | None
) -> None:
    file = tmp_path / "mixes.csv"
    file.write_text(f"{headings},Note\n9,7,Rag,Ann,5\n")
    done = import_file(store, file, Catalog(ImportOptions()))
    track = newest(store)
    assert (track["name"], track["track_number"]) == ("Rag", number)
    assert (headings.split(",")[1] in done.unused) is (number is None)


@pytest.mark.parametrize(
    ("rows", "heading", "albums", "is_place"),
    [
        *((100, "#", 0, False), (99, "#", 0, True), (100, "track_number", 0, True)),
        *((3, "#", 3, False), (3, "No.", 2, False), (3, "#", 1, True), (3, "Track #", 3, True)),
    ],
)
def test_a_column_that_counts_rows_of_several_albums_or_too_many_is_no_place_on_a_disc(
    store: Store, tmp_path: Path, rows: int, heading: str, albums: int, *, is_place: bool
) -> None:
    file = tmp_path / "collection.csv"
    cells = [f"{at},Rag {at},Ann,{at % albums if albums else ''}\n" for at in range(1, rows + 1)]
    file.write_text(f"{heading},Title,Artist,Album\n" + "".join(cells))
    done = import_file(store, file, Catalog(ImportOptions()))
    assert (newest(store)["track_number"], len(done.unread)) == ((rows, 0) if is_place else (None, 1))


def newest(store: Store) -> dict[str, Any]:
    return store.read(newest_track).result()


def newest_track() -> dict[str, Any]:
    """Return the track that was created last, and its album, in the terms of SHEETS."""

    def names(table: Any, link: Any, owner: object, order: Any) -> tuple[str, ...]:
        return tuple(each.name for each in table.select().join(link).where(owner).order_by(order))

    track: Any = Track.select().order_by(Track.id.desc()).get()
    album = Album.get_or_none(Album.id == track.album_id)
    artists = names(Artist, TrackArtist, TrackArtist.track == track.id, TrackArtist.position)
    credited = names(Artist, AlbumArtist, AlbumArtist.album == track.album_id, AlbumArtist.position)
    genres = Genre.select().join(TrackGenre).where(TrackGenre.track == track.id)
    return {
        **track.__data__,
        "artists": artists,
        "album": album and album.name,
        "album_external_id": album and album.external_id,
        "album_artists": credited[:1],
        "upc": album and album.upc,
        "label": album and album.label,
        "genres": {each.name: each.display_name for each in genres},
        "tags": names(Tag, TrackTag, TrackTag.track == track.id, Tag.name),
    }


def guesses(names: Sequence[str], sample: Sequence[Record], columns: Columns) -> list[Guess]:
    columns.guess(names, sample)
    return columns.guesses


def guessed(names: str, *cells: tuple[Any, ...], form: str | None = None, **mapped: str) -> dict[str, tuple[Any, ...]]:
    """Return field, how it is written and why, by column, for a table with these rows."""
    columns = names.split(",")
    sample = [Record(line, dict(zip(columns, row, strict=True))) for line, row in enumerate(cells, 2)]
    pairs = [f"{column}={field}" for column, field in mapped.items()]
    found = guesses(columns, sample, Columns(rows.FIELDS, pairs, headings.CATALOG, form))
    return {each.column: (each.field, each.written, each.why) for each in found}


def parsed(name: str, *cells: object, form: str | None = None) -> tuple[str | None, list[Any]]:
    """Return how a column of these cells is written, and its cells as they are parsed, or the reason why not."""
    columns = Columns(rows.FIELDS, (), headings.CATALOG, form)
    values = [{name: cell} for cell in cells]
    sample = [Record(line, row) for line, row in enumerate(values, 2)]
    columns.guess([name], sample)
    read = [columns.read(each, ()) for each in values]
    unread = next((each.reason for each in columns.unread.values()), None)
    return columns.guesses[0].written, [
        next((reason for _, reason, _ in each.left_out), next(iter(each.values.values()), unread)) for each in read
    ]


FRAMED = ["3:45:12", "2:11:03", time(4, 5, 24), "3:30:00", "5:01:17"]
LONG = [13_512_000, 7_863_000, 14_724_000, 12_600_000, 18_077_000]
EITHER = "can be h:mm:ss, or m:ss and frames; name it in the heading, such as Length (h:mm:ss) or (mm:ss:ff)"
NO_CLOCK = "must be a duration as m:ss or h:mm:ss, like most of its column"


@pytest.mark.parametrize(
    ("name", "cells", "written", "found"),
    [
        ("Duration", ["3:45", "0:07.5", "59:59"], "m:ss", [225_000, 7_500, 3_599_000]),
        ("Duration", ["1:02:03", "3:45", "1:60:00"], "h:mm:ss", [3_723_000, 225_000, NO_CLOCK]),
        ("Duration", ["3:45", "3:46", 225], "m:ss", [225_000, 226_000, NO_CLOCK]),
        ("Duration", [225, "61.5", 100_000], "seconds", [225_000, 61_500, "must be between 0 and 86,400,000"]),
        ("Duration", [225_000, 61_500, 30], "milliseconds", [225_000, 61_500, 30]),
        ("Duration", [225, 226, "3:45"], "seconds", [225_000, 226_000, "must be a number"]),
        ("Dauer in Sekunden", [50_000, 225_000], "seconds", [50_000_000, "must be between 0 and 86,400,000"]),
        ("Length (ms)", [225], "milliseconds", [225]),
        ("duration_ms", [225], None, [225]),
        ("duration_ms", ["3:45"], "m:ss", [225_000]),
        ("Length", [time(3, 45), timedelta(hours=25, minutes=30)],
         "m:ss, which the spreadsheet holds as hours and minutes", [225_000, 1_530_000]),
        ("Length", ["1:02:00", "0:03:00", "0:04:00", "0:05:30"], "h:mm:ss", [3_720_000, 180_000, 240_000, 330_000]),
        ("Length", [time(0, 3, 45), time(1, 2, 3)], "h:mm:ss", [225_000, 3_723_000]),
        ("Length (mm:ss:ff)", ["03:45:24", "1:07:74", time(3, 45, 12), "3:45"], "mm:ss:ff",
         [225_000, 67_000, 225_000, "must be a duration as mm:ss:ff, as the heading says"]),
        ("Length", FRAMED, None, [EITHER] * 5),
        ("Length (hh:mm:ss)", FRAMED, "h:mm:ss", LONG),
        ("Length", [*FRAMED, "1:02:33"], "h:mm:ss", [*LONG, 3_753_000]),
        ("Release Date", ["2026-10-15", "2026-10", 1999], None, [("2026-10-15", None), ("2026-10-01", "day"),
                                                                 ("1999-01-01", "month")]),
        ("Release Date", ["03.2020", "13.2020"], None, [("2020-03-01", "day"), "must be a date that exists"]),
        ("Release Date", ["15.10.2026", "1.2.2026", date(2026, 3, 1)], None,
         [("2026-10-15", None), ("2026-02-01", None), ("2026-03-01", None)]),
        ("Release Date", ["2026-10-15", "1999-05-01", "45292"], None,
         [("2026-10-15", None), ("1999-05-01", None), dates.SERIAL]),
        ("Release Date", ["10/11/2026", "15/10/2026"], "day, month, year",
         [("2026-11-10", None), ("2026-10-15", None)]),
        ("Release Date", ["10/11/2026", "10/15/2026"], "month, day, year",
         [("2026-10-11", None), ("2026-10-15", None)]),
        ("Release Date", ["25/10/2026", "10/26/2026"], "day, month, year",
         [("2026-10-25", None), "must be a date that exists"]),
    ],
)  # fmt: skip
def test_durations_and_dates_are_written_in_one_way_per_column(
    name: str, cells: list[object], written: str | None, found: list[object]
) -> None:
    assert parsed(name, *cells) == (written, found)


def test_dates_whose_order_is_unclear_are_asked_for_by_a_row_that_shows_it() -> None:
    cells = ("2026-01-01", "10/10/2026", "10/11/2026")
    with pytest.raises(
        Failure, match=r"Line 4 has 10/11/2026 in the column 'Release Date': .* --date-format DD/MM/YYYY"
    ):
        parsed("Release Date", *cells)
    assert parsed("Release Date", *cells, form="DD/MM/YYYY")[1][2] == ("2026-11-10", None)
    assert parsed("Release Date", *cells, form="MM/DD/YYYY")[1][2] == ("2026-10-11", None)
    assert parsed("release_date", *cells, form="YYYY-MM-DD")[1][2].startswith("must be a date")


def test_each_column_tells_what_it_was_taken_for_and_why() -> None:
    row = ("Rag", "Ann", "x.jpg", "3:45", "hello")
    assert guessed("Titel,artist,Cover,Dauer,Bemerkung", row) == {
        "Titel": ("track", None, "a name for track"),
        "artist": ("artist", None, "the name of the field"),
        "Cover": (None, None, "its cells cannot be read as image"),  # its cells are no URLs
        "Dauer": ("duration_ms", "m:ss", "a name for duration_ms"),
        "Bemerkung": (None, None, "no field has such a name"),
    }


def test_map_wins_over_a_guess_and_numbers_are_milliseconds_then() -> None:
    found = guessed("Title,Name,Length", ("a", "b", 225), Name="track", Length="duration_ms")
    assert {column: field for column, (field, *_) in found.items()} == {
        "Title": None,
        "Name": "track",
        "Length": "duration_ms",
    }
    assert found["Length"][1] is None
    assert guessed("Title,Name", ("a", "b"), Title="")["Name"][0] == "track"


def test_of_several_columns_for_a_field_the_one_with_its_name_or_the_better_name_is_read() -> None:
    found = guessed("Year,Original Release Date,release_date,Track Artist,Artists", ("1999", "1999", "1999", "A", "B"))
    assert [column for column, (field, *_) in found.items() if field] == ["release_date", "Track Artist"]


def test_columns_of_plays_and_follows_are_guessed_too() -> None:
    names = ["song", "artist", "callsign", "time", "unique_id", "combined"]
    cells = dict(zip(names, ("Rag", "Ann", "KGB", "1402943314", "u1", "Rag by Ann"), strict=True))
    found = guesses(names, [Record(2, cells)], Columns(listen_rows.FIELDS, (), headings.PLAYS))
    assert [each.field for each in found] == ["track", "artist", "listener", "played_at", "client_id", None]
    names = ["Time", "Artist", "Title", "Account ID", "minutes played"]
    found = guesses(names, [], Columns(listen_rows.FIELDS, (), headings.PLAYS))
    assert [each.field for each in found] == ["played_at", "artist", "track", "listener", "listened_ms"]
    edges = guesses(["node_1", "node_2"], [], Follows(ImportOptions()).columns)
    assert [each.field for each in edges] == ["follower", "followed"]


def test_no_heading_is_a_name_for_two_fields() -> None:
    for table in (headings.CATALOG, headings.PLAYS, headings.FOLLOWS):
        known = [key for field, synonyms in table.items() for key in headings.known(field, synonyms)]
        assert len(known) == len(set(known))
    assert set(headings.CATALOG) == set(rows.FIELDS)
