"""The fields of artists, albums and tracks: one table, which all that has to do with each of them reads.

A row makes a column of the model a field of forms, of requests and responses, of merges and of the world of extreme
values, and lets `GET /changes` list its changes. A row of COLUMNS lets imported files fill it.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from musicsvc.store.catalog import field_texts
from musicsvc.store.catalog.field_texts import Form

Kind = Form | Literal["url", "tempo", "key", "scale", "licensing", "availability", "currency", "genre", "isrc", "upc"]
LINKS: Collection[Kind] = ("artist", "artists", "genre", "words")  # kinds that are rows of other tables, and no columns
CHOICES: Mapping[str, tuple[str, ...]] = {
    "key": ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"),
    "scale": ("Major", "Minor"),
    "licensing": ("non_exclusive_only", "both", "exclusive_only"),
    "availability": ("available", "not_available", "sold"),
}
FORMS: Mapping[str, Form] = {form: form for form in field_texts.TYPING}  # the other kinds are typed as texts
# Optional fields can be empty. The others always have a value; a new row needs those that have no default.
Presence = Literal["optional", "default", "required"]
# Where full responses have a field: never, at a place that the response gives it, or in one of these groups of keys.
Shown = Literal["never", "in place", "sound", "sale", "last"]
MAX_DURATION = 86_400_000  # milliseconds
MAX_PRICE = 1_000_000_000
OWN_ALBUM = "An album that the caller manages. An album can have at most 1,000 tracks and 768 KiB as JSON."
OWN_ARTIST = "The first artist; the caller must manage it."
MINUET = "A minuet for piano, published in 1725."
PIANIST = "Pianist and composer, born in Leipzig in 1819."


class Column(NamedTuple):
    """A column of files with a catalog: its headings in files of others, and its cells in the two rows of the template.

    `counted`: the kind of items of which a faulty cell refuses one. `fills`: the field, if that has another name.
    """

    headings: str
    examples: tuple[str, str] | None = None
    counted: str = "tracks"
    fills: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the API, what its values are (`kind`), and its title.

    `hint`: how its value is written, if its form does not say it. Several artists or words have a line each; in a
    single line, semicolons separate them.
    """

    name: str
    kind: Kind
    title: str
    presence: Presence = "optional"
    hint: str = ""
    edited: bool = True
    shown: Shown = "last"
    merged: bool = False  # a row that lacks a value takes over that of the row that is merged into it
    with_album: bool = False  # merged, but only along with the album
    bounds: tuple[int, int] = (0, 0)  # of numbers, both included
    note: str = ""  # the description in the OpenAPI document, if the kind has none
    example: Any = ""  # of texts and paragraphs in requests, of other kinds in responses
    extreme: Any = None  # a value at the limit, if that is neither the upper bound nor the example

    @property
    def optional(self) -> bool:
        """Whether it can be empty."""
        return self.presence == "optional"

    @property
    def form(self) -> Form:
        """The way in which people type its value."""
        return "number" if self.kind == "tempo" else FORMS.get(self.kind, "text")

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it can have, if these are a few only."""
        return CHOICES.get(self.kind, ())

    @property
    def option(self) -> str:
        """The option of the command line, such as `--release-date`."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def rule(self) -> str:
        """The way its value is written, if that needs to be said beyond its form."""
        return self.hint or ("{:,} to {:,}".format(*self.bounds) if self.form == "number" else "")

    @property
    def help(self) -> str:
        """The help text of the option."""
        return ", ".join(filter(None, (self.title, self.rule or field_texts.TYPING[self.form].hint)))

    @property
    def noun(self) -> str | None:
        """The kind of rows whose ids the field has, if it has ids."""
        return {"artist": "artist", "artists": "artist", "album": "album"}.get(self.kind)

    @property
    def is_column(self) -> bool:
        """Whether the field is a column of its table, not a link to other rows."""
        return self.kind not in LINKS

    def parse(self, text: str) -> Any:
        """Return the value for the API that a person typed, or None for an empty text. Names stay in place of ids.

        Texts of another form are returned as they are, for the API's schema to refuse.
        """
        if not text.strip():
            return None
        with suppress(ValueError):
            return field_texts.TYPING[self.form].parse(text.strip(" "))  # the end of a line separates values
        return text.strip()

    def show(self, value: Any) -> str:
        """Return the text that `parse` turns into the value."""
        return "" if value is None else field_texts.TYPING[self.form].show(value)

    def differs(self, text: str, other: str) -> bool:
        """Return True unless both texts mean the same value."""
        return bool(self.parse(text) != self.parse(other))


TRACK = (
    Field("name", "text", "Name", presence="required", shown="in place", example="Menuett G-Dur"),
    Field("duration", "length", "Length", presence="required", shown="in place", merged=True, bounds=(1, MAX_DURATION)),
    Field("artists", "artists", "Artists", presence="required"),
    Field("description", "paragraph", "Description", shown="in place", merged=True, example=MINUET),
    Field("genre", "genre", "Genre"),
    Field("image", "url", "URL of an image", shown="in place", merged=True),
    Field("release_date", "date", "Release date", shown="in place", merged=True, extreme="9999-12-31"),
    Field("album_id", "album", "Album", shown="in place", with_album=True, note=OWN_ALBUM),
    Field("bpm", "tempo", "Beats per minute", shown="sound", merged=True, bounds=(20, 400), example=100),
    Field("key", "key", "Key", hint="such as C#", shown="sound", merged=True, example="G#"),
    Field(
        "scale", "scale", "Scale", hint="Major or Minor", shown="sound", merged=True, example="Major", extreme="Minor"
    ),
    Field("price", "price", "Price", shown="sale", example=12.5, extreme=999_999_999.99),
    Field(
        "currency",
        "currency",
        "Currency",
        presence="default",
        hint="ISO 4217",
        shown="sale",
        example="USD",
        extreme="CLP",
    ),
    Field("licensing_type", "licensing", "Licensing", presence="default", shown="sale", extreme="both"),
    Field(
        "exclusive_status", "availability", "Exclusive licence", presence="default", shown="sale", extreme="available"
    ),
    Field("exclusive_price", "price", "Price of the exclusive licence", shown="sale", example=None, extreme=1e9),
    Field("tags", "words", "Tags"),
    Field("isrc", "isrc", "ISRC", merged=True, example="GBAYE6800011"),
    Field("track_number", "number", "Number on its disc", with_album=True, bounds=(1, 9_999), example=1),
    Field("disc_number", "number", "Number of the disc", with_album=True, bounds=(1, 999), example=1),
    Field("explicit", "yes or no", "Explicit", merged=True, example=False, extreme=True),
)
ALBUM = (
    Field("name", "text", "Name", presence="required", shown="in place", example="Notenbüchlein"),
    Field("artist_id", "artist", "First artist", presence="required", note=OWN_ARTIST),
    Field("description", "paragraph", "Description", shown="in place", merged=True, example="Begun in 1725."),
    Field("release_date", "date", "Release date", shown="in place", merged=True, extreme="0001-01-01"),
    Field("image", "url", "URL of the cover", shown="in place", merged=True),
    Field("tags", "words", "Tags"),
    Field("upc", "upc", "UPC or EAN", merged=True, example="036000291452", extreme="0360002914522"),
    Field("label", "text", "Label", merged=True, example="Breitkopf"),
)
ARTIST = (
    Field("name", "text", "Name", presence="required", shown="in place", example="Clara Schumann"),
    Field("description", "paragraph", "Description", shown="never", merged=True, example=PIANIST),
    Field("image_small", "url", "URL of an image", shown="in place", merged=True),
    Field("verified", "yes or no", "Verified", edited=False, shown="in place", extreme=True),
)
ALL: Mapping[str, tuple[Field, ...]] = {"artist": ARTIST, "album": ALBUM, "track": TRACK}
# Those that the API's bodies, the options of `musicsvc track edit` and the forms of pages have, in this order.
FIELDS: Mapping[str, tuple[Field, ...]] = {noun: tuple(each for each in ALL[noun] if each.edited) for noun in ALL}

# The columns of imported files, in the order of the template; `importing/headings.py` says where the headings are from.
COLUMNS: Mapping[str, Column] = {
    "external_id": Column(
        "track id, track uri, spotify track id, spotify uri, spotify id, tc song id, song id, track custom id,"
        " musicbrainz recording id, musicbrainz track id, recording gid, recording mbid, mb trackid",
        ("T-1", "T-2"),
    ),
    "track": Column(
        "track name, track title, song title, song name, song, title, name, item name, recording, recording title,"
        " recording name, titel, tracktitel, songtitel, musiktitel, liedtitel, titelname, trackname, lied,"
        " titre, titre du morceau, morceau, chanson, título, título de la canción, canción, title text, work title,"
        " werktitel, titre de l'oeuvre, titre de l'œuvre, asset title, titolo, titolo del brano, brano,"
        " título da música, música, faixa"
        ", 曲名, 楽曲名, トラック名, 名前, название, название трека",
        ("Allegro moderato", "Scherzo"),
        fills="name",
    ),
    "item_type": Column("item type, song album"),
    "artist": Column(
        "track artist, track artists, track primary artist, track primary artists, track main artist, artist name,"
        " artist names, artists, main artist, main artists,"
        " primary artist, primary artists, lead artist, display artist, display artist name, credited artist,"
        " recording artist, recording artists, performer, performers, band artist name, artist credit name,"
        " interpret, interpreten, künstler, kuenstler, künstlername, hauptkünstler, hauptinterpret, band,"
        " artist name 1, artist 1, artiste, artistes, artiste principal, interprète, artista, artistas,"
        " artista principal, intérprete, recording artist name, track display artist, asset display artist, artiest"
        ", künstlername 1, アーティスト, アーティスト名, исполнитель, artist show developer author",
        ("Clara Schumann", "Clara Schumann; Fanny Hensel"),
        counted="artists",
        fills="artists",
    ),
    "featured_artist": Column(
        "featured artists, featured artist name, featured artist names, featuring artist, featuring artists, featuring,"
        " feat artist, feat artists, feat, track featured artist, track featured artists, ft artist, ft artists, ft,"
        " guest artist, guest artists, gastkünstler,"
        f" gastinterpret, {', '.join(f'artist name {at}, artist {at}, künstlername {at}' for at in range(2, 51))}",
        counted="artists",
    ),
    "album": Column(
        "album name, album title, release title, release name, release, track album name, product title,"
        " product name, albumtitel, albumname, produkttitel, titre de l'album, título del álbum, release titel,"
        " titolo dell'album, título do álbum"
        ", アルバム, アルバム名, альбом",
        ("Trios", "Trios"),
        counted="albums",
    ),
    "album_external_id": Column(
        "album id, album uri, release id, track album id, musicbrainz album id, release gid, release mbid, mb albumid",
        ("A-1", "A-1"),
        counted="albums",
    ),
    "release_date": Column(
        "digital release date, album release date, product release date, track album release date, street date,"
        " released, date released,"
        " erscheinungsdatum, veröffentlichungsdatum, veröffentlicht, veröffentlicht am, releasedatum, vö, vö datum,"
        " veröffentlichungsdatum des albums, date, datum, original release date, original date, release year,"
        " released year, year, jahr, erscheinungsjahr, date de sortie, date de parution, fecha de lanzamiento,"
        " fecha de publicación, data di uscita, data di pubblicazione, data de lançamento"
        ", リリース日, 発売日, 年, дата выхода, дата релиза",
        ("2026-10-15", "2026-10-15"),
    ),
    "duration_ms": Column(
        "track duration, track length, duration, length, song length, song duration, time, total time,"
        " running time, playing time, play time, run time, dauer, länge, laenge, spieldauer, spielzeit, laufzeit,"
        " tracklänge, titellänge, track dauer, durée, duración, asset duration, durata, duração, duur, speelduur"
        ", recording duration, recording length, 再生時間, 時間, длительность",
        ("692000", "308500"),
        fills="duration",
    ),
    "genre": Column(
        "genres, main genre, primary genre, track genre, track genres, album genre, playlist genre, artist genres,"
        " album genres, musikrichtung, hauptgenre, stil, künstler genres, género, asset genre, genere"
        ", ジャンル, жанр",
        ("Classical", "Classical; Chamber music"),
        counted="genres",
    ),
    "tags": Column(
        "tag, keywords, sub genre, secondary genre, playlist subgenre, track subgenre, asset subgenre, mood, moods,"
        " stichwörter, schlagwörter, schlagworte, untergenre",
        ("piano; strings", "piano"),
    ),
    "bpm": Column("tempo, beats per minute, track bpm", ("96", "132")),
    "key": Column("musical key, initial key, track key, tonart", ("G", "Bb")),
    "scale": Column("mode, tongeschlecht", ("Minor", "Major")),
    "image": Column(
        "cover url, artwork url, image url, album image url, cover art url, cover, artwork, cover art,"
        " album cover, bild, titelbild, album bild url",
        ("https://example.test/trios.jpg", "https://example.test/trios.jpg"),
    ),
    "description": Column("track description, beschreibung", ("The first movement", "")),
    "isrc": Column(
        "isrc code, track isrc, track isrc code, isrcs, optional isrc, code isrc, código isrc, recording isrc,"
        " codice isrc",
        ("XXXXX2600001", "XX-XXX-26-00002"),
    ),
    "track_number": Column(
        "track no, track nr, track num, track position, track index, titelnummer, titelnr, titel nr, tracknummer,"
        " number, no, nr, position, sequence, sequence number, numéro de piste, número de pista, track sequence,"
        " asset sequence, track number on album, numero traccia, numero di traccia, número da faixa"
        ", no de pista, no de piste, トラック番号, номер трека",
        ("1", "2"),
    ),
    "disc_number": Column(
        "disc no, disc nr, disc, disk number, disk no, disk, cd number, cd no, cd, volume number, volume no,"
        " cd nummer, cd nr, discnummer, disc nummer, medium position, disc number of album, ディスク番号",
        ("1", "1"),
    ),
    "explicit": Column(
        "explicit lyrics, track explicit lyrics, parental advisory, parental warning, explicit content,"
        " parental warning type, explicit status, is explicit, advisory, explizit, explizite inhalte, jugendschutz"
        ", explicite, contenu explicite, explícito, contenido explícito, esplicito",
        ("no", "no"),
    ),
    "album_artist": Column(
        "album artists, album artist name, album artist names, release artist, release artists, product artist,"
        " release primary artist, release primary artists, album primary artist, album primary artists,"
        " albumkünstler, albumkuenstler, albuminterpret, album künstlername, release display artist,"
        " product display artist"
        ", アルバムアーティスト",
        ("Clara Schumann", "Clara Schumann"),
        counted="albums",
    ),
    "upc": Column(
        "upc code, album upc, release upc, product upc, upc ean, ean upc, ean, ean code, album ean, barcode, gtin,"
        " icpn, optional upc, manufacturer upc, orchard upc,"
        " strichcode, code upc, code ean, code barres, código upc, código de barras, codice upc, codice ean,"
        " codice a barre",
        ("012345678905", "012345678905"),
        counted="albums",
    ),
    "label": Column(
        "record label, label name, album label, release label, imprint label, imprint,"
        " product label, plattenfirma, plattenlabel, musiklabel, labelname,"
        " maison de disques, sello, discográfica, recording label, etichetta, etichetta discografica, gravadora, selo,"
        " platenlabel, platenmaatschappij"
        ", sello discográfico, casa discografica, レーベル, лейбл, label studio network developer publisher",
        ("Example Records", "Example Records"),
        counted="albums",
    ),
    "playlist": Column(
        "playlist name, playlist title, wiedergabeliste, liste de lecture, lista de reproducción, lista de reprodução,"
        " afspeellijst"
    ),
    "playlist_external_id": Column("playlist id, playlist uri"),
}


def shown_columns(noun: str) -> list[str]:
    """Return the columns that the API shows, except counters."""
    return [field.name for field in ALL[noun] if field.is_column and field.shown != "never"]


def groups(noun: str) -> dict[Shown, list[Field]]:
    """Return the fields of each group of keys of full responses; `details` of a loaded row has their values in turn."""
    found: dict[Shown, list[Field]] = {}
    for group in ("sound", "sale", "last"):
        found[group] = [each for each in ALL[noun] if each.shown == group and each.is_column]
    return found


def details(noun: str, table: Any) -> tuple[Any, ...]:
    """Return the columns of the fields in `groups`."""
    return tuple(getattr(table, each.name) for group in groups(noun).values() for each in group)


def changes(noun: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a body changes. None empties an optional field; other fields with None stay as they are."""
    kept = {field.name for field in FIELDS[noun] if not field.optional}
    return {name: value for name, value in body.items() if value is not None or name not in kept}
