"""The encodings of text files: those that a user can name, and a guess for a file that is not UTF-8."""

import codecs
import re
from itertools import pairwise

from musicsvc.errors import Failure

FEW = 4  # bytes, of which at most one is a NUL
UTF8, UTF16, WINDOWS, MAC = "utf-8", "utf-16", "cp1252", "mac-roman"
ENCODINGS = {  # by Python's name
    UTF8: "UTF-8",
    UTF16: "UTF-16",
    "utf-16-le": "UTF-16LE",
    "utf-16-be": "UTF-16BE",
    WINDOWS: "Windows-1252",
    MAC: "Mac Roman",
    **{f"cp{page}": f"Windows-{page}" for page in (1250, 1251, 1253, 1254, 1255, 1256, 1257, 1258, 874)},
    **{f"iso8859-{part}": f"ISO-8859-{part}" for part in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16)},
    **{f"cp{page}": f"DOS {page}" for page in (437, 850, 852, 866)},
    "mac-latin2": "Mac Central European",
    "mac-cyrillic": "Mac Cyrillic",
    "koi8-r": "KOI8-R",
    "koi8-u": "KOI8-U",
    "shift_jis": "Shift_JIS",
    "cp932": "Windows-932",
    "euc_jp": "EUC-JP",
    "gb18030": "GB18030",
    "gbk": "GBK",
    "big5": "Big5",
    "euc_kr": "EUC-KR",
    "cp949": "Windows-949",
}
BYTE_ORDER_MARK = "\ufeff"
MARKS = {codecs.BOM_UTF16_LE: UTF16, codecs.BOM_UTF16_BE: UTF16}  # at the beginning of a file
# In words of Western names the letters of COMMON are usual; SIGNS stand before and behind words, JOINTS within them.
COMMON = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüýßÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝ")
SIGNS = "'“”‘’„‚«»‹›…–—•·®©™°´¡¿€\xa0"  # noqa: RUF001 - as they are typed
DASH = re.compile("[\u2013\u2014]")
JOINT = re.compile("['\u2019\u2013\u2014\xa0]")
FOREIGN = re.compile(r"[^\x00-\x7f]{3}|^[^\x00-\x7f]{2}$")
WORD = re.compile(rb"[A-Za-z'\x80-\xff]+")
MOST_WORDS = 10_000


def named(name: str) -> str:
    """Return Python's name of the encoding that a user names. Raises Failure unless it is one of ENCODINGS."""
    try:
        found = codecs.lookup(name).name.replace("utf-8-sig", UTF8)
    except (LookupError, ValueError):
        found = ""
    if found not in ENCODINGS:
        raise Failure(f"There is no encoding {name!r}. The encodings are {', '.join(ENCODINGS)}.")
    return found


def of_beginning(head: bytes) -> str | None:
    """Return the encoding that the first bytes of a file tell, or None: it is UTF-8 unless a line is not."""
    if (found := MARKS.get(head[:2])) or b"\0" not in head:
        return found
    if head.isascii() and FEW * head.count(b"\0") < len(head):  # of wide signs every second byte, or none is ASCII
        return None
    for wide in ("utf-16-le", "utf-16-be"):  # the signs of a table are none in the other one
        text = head.decode(wide, errors="ignore")
        if "\0" not in text and not {",", ";", "\t", "|", "\n", "\r"}.isdisjoint(text):
            return wide
    return None


def guess(raw: bytes) -> str | None:
    """Return the encoding of lines that are not UTF-8: the one in which their words look most like words.

    Windows-1252 if there are several, but Mac Roman if lines end as on old Macs. None if there is no such encoding.
    """
    words = [word for word in dict.fromkeys(WORD.findall(raw)) if not word.isascii()][:MOST_WORDS]
    scores = {}
    for codec in (WINDOWS, MAC, "cp1250") if b"\n" in raw or b"\r" not in raw else (MAC, WINDOWS, "cp1250"):
        try:
            scores[codec] = sum(map(_plausibility, b" ".join(words).decode(codec).split(" ")))
        except UnicodeDecodeError:
            continue
    best = max(scores, key=lambda codec: scores[codec], default=None)
    return best if best and scores[best] >= 0 else None


def _plausibility(word: str) -> int:
    """Return how usual a word with a letter or sign outside of ASCII is in names: 2, 1, 0 or -2."""
    core = word.strip(SIGNS)
    parts = JOINT.split(core)
    if not all(part.isascii() or _is_word(part) for part in parts):
        return -2
    is_usual = COMMON.issuperset(char for part in parts for char in part if not char.isascii())
    if DASH.search(core) or (len(core) == 1 and not core.isascii()):  # hardly ever without blanks, or alone
        return int(is_usual)
    return 1 + is_usual


def _is_word(part: str) -> bool:
    """Return True for letters of which hardly any are not ASCII, and those no capitals behind small ones."""
    pairs = (first + second for first, second in pairwise(part) if first.islower() and second.isupper())
    return part.isalpha() and all(pair.isascii() for pair in pairs) and not FOREIGN.search(part)
