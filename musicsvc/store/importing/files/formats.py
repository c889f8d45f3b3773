"""Detect the format of a file from its first bytes and its name, and say of other files what they are."""

import mmap
import re
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from musicsvc.errors import Failure
from musicsvc.store.importing.files import encodings, limited
from musicsvc.store.importing.files.lines import BROKEN_GZIP, HEAD, Lines, beginning
from musicsvc.store.importing.files.quoting import SEPARATORS
from musicsvc.store.importing.files.records import NONE, TOO_LONG, Limits, UnclearError

FORMATS = ("csv", "jsonl", "parquet", "xlsx", "xls", "ods")
WORKBOOKS = ("xlsx", "xls", "ods")
SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
ZIPS = (b"PK\x03\x04", b"PK\x05\x06")  # with and without members
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
SHEET = "Open it in the program that made it, and save the table as CSV or as an Excel workbook."
TAKEOUT = "If it is a history of YouTube Music, choose JSON as its format in Google Takeout, and import that."
TABLE = "Import a table of the tracks instead."
UNPACK = "Unpack it and import the files in it."
NUMBERS = "In Numbers, choose File, Export To, CSV, and import that."
PAGES = "In Traktor, save each playlist as a web page. Open it in a spreadsheet program, and save the table as CSV."
LIBRARY = "Choose File, Library, Export Playlist, and text as the format, and import that."
LISTED = "Export the playlist as CSV or as text, and import that."


class Kind(NamedTuple):
    """A kind of file. `form`: the format in which it can be read, otherwise None. `remedy`: what to do with it."""

    what: str
    remedy: str = ""
    form: str | None = None


WORKBOOK = Kind("an Excel workbook", form="xlsx")
OLD_WORKBOOK = Kind("an Excel workbook (.xls)", form="xls")
OPEN_WORKBOOK = Kind("an OpenDocument spreadsheet", form="ods")
ARCHIVE = Kind("a zip archive", UNPACK)
OFFICE = Kind("an Office document", SHEET)
BYTES = (  # patterns of the first bytes, none of which a table of text begins with
    (rb"PAR1", Kind("a Parquet file", form="parquet")),
    (rb"%PDF-", Kind("a PDF document", SHEET)),
    (rb"\x89PNG\r\n", Kind("an image (PNG)", TABLE)),
    (rb"\xff\xd8\xff", Kind("an image (JPEG)", TABLE)),
    (rb"GIF8[79]a", Kind("an image (GIF)", TABLE)),
    (rb"RIFF....WEBP", Kind("an image (WebP)", TABLE)),
    (rb"\0...ftyphei", Kind("an image (HEIC)", TABLE)),
    (rb"ID3[\2-\4]\0", Kind("a music file (MP3)", TABLE)),
    (rb"fLaC\0", Kind("a music file (FLAC)", TABLE)),
    (rb"OggS\0", Kind("a music file (Ogg)", TABLE)),
    (rb"RIFF....WAVE", Kind("a music file (WAV)", TABLE)),
    (rb"\0...ftypM4A", Kind("a music file (M4A)", TABLE)),
    (rb"SQLite format 3\0", Kind("an SQLite database", "Export its tables as CSV and import those.")),
    (rb"\{\\rtf", Kind("a document (RTF)", SHEET)),
    (rb"Rar!\x1a", Kind("a RAR archive", UNPACK)),
    (rb"7z\xbc\xaf", Kind("a 7-Zip archive", UNPACK)),
    (rb"BZh.1AY&SY", Kind("a file compressed with bzip2", UNPACK)),
    (rb"\xfd7zXZ\0", Kind("a file compressed with xz", UNPACK)),
    (rb"\x28\xb5\x2f\xfd", Kind("a file compressed with Zstandard", UNPACK)),
)
MEMBERS = {  # of zip files: one that only this kind has
    "xl/workbook.xml": WORKBOOK,
    "xl/workbook.bin": WORKBOOK,
    "word/document.xml": Kind("a Word document", SHEET),
    "ppt/presentation.xml": Kind("a presentation", SHEET),
    "Index/Document.iwa": Kind("a document of Numbers, Pages or Keynote", NUMBERS),
}
STREAMS = (  # of OLE files, as they are named in their directory
    ("Workbook", OLD_WORKBOOK),
    ("Book", OLD_WORKBOOK),
    ("EncryptedPackage", Kind("an Office document with a password", "Save it without one.")),
    ("WordDocument", Kind("a Word document", SHEET)),
)
M3U = "#extm3u"  # which some of these files lack
GOOGLE, ACCOUNT = '{"doc_id":', '"email":'
BY_NAME = {".m3u": M3U, ".m3u8": M3U, ".gsheet": GOOGLE + ACCOUNT}  # the beginnings of files that may lack it
CUES = ("rem", "performer", "title", "file", "catalog", "songwriter", "cdtextfile")
# How files of text begin, and what follows soon, both without blanks and capitals. The first one that fits counts.
MARKUP = (
    (("<",), "<dj_playlists", Kind("a library of rekordbox (XML)", "Export its playlists as text (*.txt).")),
    (("<",), "<nmlversion", Kind("a collection of Traktor (NML)", PAGES)),
    (("<",), "<plist", Kind("a library of Apple Music or iTunes, or another property list (XML)", LIBRARY)),
    (("<",), "xspf.org/ns/", Kind("a playlist in XSPF", LISTED)),
    (("<",), "<smil>", Kind("a playlist of files (WPL)", LISTED)),
    (("<",), "newreleasemessage", Kind("a release in DDEX (ERN)", "Export the release as CSV from where it was made.")),
    (
        ('{"playlist":{',),
        '"track":[',
        Kind("a playlist in JSPF", "Save its list track as a JSON array, in which creator is called artist."),
    ),
    (CUES, "track01audio", Kind("a cue sheet", "Write artists and titles into a table, and import that.")),
    ((GOOGLE,), ACCOUNT, Kind("a link to a Google sheet", "Open it, choose File, Download, CSV, and import that.")),
    (
        ("<!doctypehtml", "<html", "<head", "<body", "<table", "<meta"),
        "",
        Kind("a web page (HTML), whatever its name", SHEET),
    ),
    (("<?xml", "<workbook"), "", Kind("an XML document", SHEET)),
    ((M3U, "[playlist]"), "", Kind("a playlist of files (M3U or PLS)", LISTED)),
)


def format_of(path: Path, form: str | None = None, limits: Limits = NONE, encoding: str | None = None) -> str:
    """Return the format of the file: what its bytes say, otherwise its name, otherwise its first line.

    `form`: the format that the user names. Raises Failure if the file is in another one, or in none.
    """
    if form is not None and form not in FORMATS:
        raise Failure(f"There is no format {form}. The formats are {', '.join(FORMATS)}.")
    kind = kind_of(path, limits)
    if kind is None:
        if form in WORKBOOKS:
            raise Failure(f"{path} is no workbook. Leave out --format {form}.")
        return form or _by_name(path) or _by_first_line(path, encoding)
    if kind.form is None:
        also = f" {TAKEOUT}" * (path.suffix.lower() == ".html")
        raise Failure(f"{path} is {kind.what}, which cannot be imported. {kind.remedy}{also}")
    if form not in {None, kind.form} and not {form, kind.form} <= {*WORKBOOKS}:
        raise Failure(f"{path} is {kind.what}. Leave out --format {form}.")
    return kind.form


def kind_of(path: Path, limits: Limits = NONE) -> Kind | None:
    """Return what the file is, or None for text. Raises Failure if it is damaged or no file."""
    if path.is_dir():
        raise Failure(f"{path} is a folder. Import the files in it one by one.")
    head, packed = head_of(path)
    found = _by_bytes(path, head, limits, packed=packed)
    if found is not None and packed:
        return Kind(f"{found.what}, compressed with gzip", f"Unpack it first: gunzip {path.name}")
    return found


def head_of(path: Path, size: int = HEAD) -> tuple[bytes, bool]:
    """Return the first bytes of a file, unpacked if it is gzipped, and whether it is. Damaged gzip data have none.

    Raises Failure if the file cannot be read.
    """
    try:
        return beginning(path, size)
    except BROKEN_GZIP:
        return b"", True


def _by_bytes(path: Path, head: bytes, limits: Limits, *, packed: bool) -> Kind | None:
    if head[:4] in ZIPS:
        return ARCHIVE if packed else _zipped(path, limits)
    if head.startswith(OLE):
        return OFFICE if packed else _office(path)
    for pattern, kind in BYTES:
        if re.match(pattern, head, re.DOTALL):
            return kind
    start = BY_NAME.get(path.suffix.lower()) or "".join(decoded(head).lower().split())
    return next((kind for begins, mark, kind in MARKUP if start.startswith(begins) and mark in start), None)


def decoded(head: bytes) -> str:
    """Return the first bytes of a file as text, without its byte order mark."""
    encoding = encodings.of_beginning(head) or encodings.UTF8
    return head.decode(encoding, errors="replace").removeprefix(encodings.BYTE_ORDER_MARK)


def _zipped(path: Path, limits: Limits) -> Kind:
    found = limited.ask("kinds", path, limits, members=[*MEMBERS])
    declared: str = found["declared"]
    if declared.startswith("application/vnd.oasis.opendocument."):
        return OPEN_WORKBOOK if declared.rstrip().endswith(".spreadsheet") else Kind("an OpenDocument file", SHEET)
    return MEMBERS[found["members"][0]] if found["members"] else ARCHIVE


def _office(path: Path) -> Kind:
    """Return what an Office file of before 2007 is. Its directory may be anywhere in it."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        found = (kind for name, kind in STREAMS if whole.find(name.encode("utf-16-le") + b"\0\0") >= 0)
        return next(found, OFFICE)


def _by_name(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-2:-1] if suffixes[-1:] == [".gz"] else suffixes[-1:]
    return SUFFIXES.get("".join(last))


def _by_first_line(path: Path, encoding: str | None) -> str:
    first = first_line(path, encoding)
    if not first:
        raise Failure(f"{path} is empty.")
    if first.startswith(("{", "[")):
        return "jsonl"
    if any(sign in first for sign in SEPARATORS):
        return "csv"
    raise UnclearError(f"The format of {path} is not clear.", f"Set it with --format: one of {', '.join(FORMATS)}.")


def first_line(path: Path, encoding: str | None) -> str:
    """Return the first line that is not blank, or the beginning of a long one, without leading and trailing spaces.

    Raises Failure for many blanks.
    """
    with closing(Lines(path, encoding=encoding)) as lines:
        for _, line, fault in lines:
            if text := decoded(head_of(path)[0]).strip() if fault == TOO_LONG else line.strip():
                return text
            lines.check_blank()
    return ""
