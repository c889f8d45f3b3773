"""Accepted and refused values of every body field, at its bounds (docs/api.md).

A new field needs a row in FIELDS.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from musicsvc.server.routes.route import INSIGHTS, V1

CLEF = "𝄞"  # one code point of four bytes
CONTROLS = ("\0", "\x01", "\x0b", "\x0c", "\x1b", "\x7f", "\x85", "\x9f")
UNSEEN = ("\u200b", "\u200f", "\ufeff", "\u2060", "\u00ad", "\u0301", "\u3164", "\u2800", "\u2028\u200d")
NO_IDS: Sequence[Any] = (0, -1, 2**53, "1", 1.0, True, [])


@dataclass(frozen=True)
class Rule:
    """Accepted (`taken`) and refused values; `required`: null and an absent field are refused."""

    taken: Sequence[Any]
    refused: Sequence[Any]
    required: bool = False


def text(least: int, most: int, *, required: bool = False) -> Rule:
    """Return the rule of a trimmed string with these limits in code points."""
    taken = ["x" * max(least, 1), CLEF * most, f" \n{'x' * most}\t", *(["", "  "] if not least else [])]
    short = ["", " \n"] if least == 1 else ["", "x" * (least - 1), f" {'x' * (least - 1)} "] if least else []
    taken.append("\u00ad\u0301x\ty\r\nz".ljust(least, "x")[: max(least, most)])
    controls = [f"{'x' * max(least, 1)}{each}x" for each in CONTROLS]
    return Rule(taken, ["x" * (most + 1), *short, *controls, 5, True, ["x"], {"x": 1}], required)


def name(least: int, most: int, *, required: bool = False) -> Rule:
    """Return the rule of a name, which needs a character that can be seen."""
    rule = text(least, most, required=required)
    return replace(rule, refused=[*rule.refused, *(each * max(least, 1) for each in UNSEEN)])


def number(least: int, most: int, *, required: bool = False) -> Rule:
    """Return the rule of a JSON integer within bounds."""
    return Rule([least, most], [least - 1, most + 1, float(most), str(most), True, [most]], required)


def choice(*words: str) -> Rule:
    """Return the rule of a choice; blanks around the word are trimmed."""
    return Rule([*words, f" {words[0]}\n"], ["other", words[0].swapcase(), "", 1, [words[0]]])


def many(items: Sequence[Any], *, empty: bool, required: bool, wrong: Sequence[Any]) -> Rule:
    """Return the rule of a list whose limit is exceeded by the last of these items; `wrong` items are refused."""
    taken, refused = [list(items[:1]), list(items[:-1])], [list(items), items[0], {"0": items[0]}]
    (taken if empty else refused).append([])
    return Rule(taken, [*refused, *([each] for each in wrong)], required)


def ids(most: int, *, required: bool, unique: bool = False) -> Rule:
    """Return the rule of a list of existing ids; a required list must not be empty."""
    rule = many(range(1, most + 2), empty=not required, required=required, wrong=NO_IDS)
    return replace(rule, refused=[*rule.refused, *([[1, 1]] if unique else [])])


NAME, DESCRIPTION = name(1, 255, required=True), text(0, 10_000)
URL = Rule(
    ["http://a", " https://img.test/a.png ", "HTTPS://img.test", "https://img.test/" + "x" * 2031],
    ["", "ftp://a/b", "a.png", "//a/b", "https://", "https://a b", "https://img.test/" + "x" * 2032, 5],
)
DATE = Rule(["2024-02-29", " 1899-09-18 "], ["2023-02-29", "20240101", "2024-1-1", "2024-01-01T00:00", "2024", "", 5])
DATES = {each: Rule([], [*DATE.taken, *DATE.refused]) for each in ("from", "to")}  # beside a period
TAGS = many(
    [f"{number:02}" + "x" * 58 for number in range(21)],
    empty=True,
    required=False,
    wrong=["", " ", "x" * 61, "a\0b", "a\x1bb", "\u200b", 5, None],
)
GENRE = Rule(["g" * 60, "g", " Hip-Hop "], ["g" * 61, "", "***", 5, ["Pop"]])
MONEY = Rule([0, 12.5, 1_000_000_000], [-0.01, 1_000_000_001, "1", True, [1]])
FLAG = Rule([True, False, "true", "0", " 1 ", "", "false"], ["yes", 1, 0, "TRUE", []])
EXISTING = Rule([1], [*NO_IDS, 2**53 - 1], required=True)
LONGEST_EMAIL = f"{'x' * 64}@{'.'.join(['d' * 47] * 3)}.{'d' * 46}"
PERIOD = choice("7-days", "30-days", "90-days", "1-year")
TYPE = choice("tracks", "albums", "artists", "plays")
SUBJECTS = {"artist_id": Rule([1], NO_IDS), "album_id": Rule([1], NO_IDS), "track_id": Rule([], NO_IDS)}
EXPORT = {"period": PERIOD, **DATES, **SUBJECTS}
PLAYLIST = {
    "name": name(1, 250, required=True),
    "description": text(20, 170),
    "image": URL,
    "public": FLAG,
    "collaborative": FLAG,
}
PUSH = Rule(["x" * 500, " x "], ["x" * 501, "", "  ", "a\0b", "a\x1bb", 5], required=True)
PLAY = {"track_id": 1, "played_at": 1_772_359_200}
_FIELDS: Mapping[str, Mapping[str, Rule]] = {
    f"POST {V1}/auth/register": {
        "email": Rule(
            ["x" * 64 + "@label.test", "a@localhost", "o'hara+x@label.invalid", LONGEST_EMAIL],
            [
                "",
                "a",
                "a@",
                "@label.test",
                "x" * 65 + "@label.test",
                f"{LONGEST_EMAIL}x",
                "a@" + "x" * 250 + ".test",
                5,
            ],
            required=True,
        ),
        "password": Rule(
            ["p" * 8, "𝄞" * 128, " " * 9, "a\x1b\x07\x7fbcdefg"],
            ["p" * 7, "p" * 129, "", "a\0bcdefgh", 5],
            required=True,
        ),
        "token_name": name(3, 50),
    },
    f"POST {V1}/auth/login": {
        "email": Rule([], ["", " ", "nobody@label.test", "x" * 256, "a\0b@label.test", 5], required=True),
        "password": Rule([], ["a\0bcdefgh", 5], required=True),  # a wrong one is an error of the e-mail
        "token_name": name(3, 50, required=True),
    },
    f"POST {V1}/access-tokens": {
        "name": name(3, 50, required=True),
        "password": Rule([], ["", "wrong words", "a\0bcdefgh", 5], required=True),
        "days": number(1, 90),
        "scope": choice("read", "read-write"),
    },
    f"POST {V1}/access-requests": {
        "use_case": text(1, 500, required=True),
        "organization": text(1, 500, required=True),
        "volume": text(1, 100, required=True),
    },
    f"POST {V1}/albums": {
        "name": NAME,
        "artist_id": EXISTING,
        "description": DESCRIPTION,
        "release_date": DATE,
        "image": URL,
        "tags": TAGS,
        "upc": Rule(
            ["036000291452", " 4006381333931 ", "0036000291452"],
            ["", "036000291453", "4006381333930", "36000291452", "00036000291452", "03600029145x", 36000291452],
        ),
        "label": text(1, 255),
    },
    f"POST {V1}/tracks": {
        "name": NAME,
        "duration": number(1, 86_400_000, required=True),
        "artists": ids(50, required=True, unique=True),
        "description": DESCRIPTION,
        "genre": GENRE,
        "image": URL,
        "release_date": DATE,
        "album_id": Rule([1], EXISTING.refused),
        "bpm": number(20, 400),
        "key": choice("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"),
        "scale": choice("Major", "Minor"),
        "price": MONEY,
        "currency": choice("USD", "EUR", "JPY"),
        "licensing_type": choice("non_exclusive_only", "both", "exclusive_only"),
        "exclusive_status": choice("available", "not_available", "sold"),
        "exclusive_price": MONEY,
        "tags": TAGS,
        "isrc": Rule(
            ["GBAYE6800011", " us-x9x-24-00001 "],
            ["", "GBAYE680001", "GBAYE68000111", "1BAYE6800011", "GBAYE-6-800011", "GBAYE680001٣", "ſSAYE6800011", 5],
        ),
        "track_number": number(1, 9_999),
        "disc_number": number(1, 999),
        "explicit": Rule([True, False], ["true", 1, 0, ""]),
    },
    f"POST {V1}/tracks/{{id}}/comments": {
        "content": text(1, 1000, required=True),
        "position": number(0, 100),
        "parent_id": Rule([], EXISTING.refused),
    },
    f"POST {V1}/artists": {"name": NAME, "description": DESCRIPTION, "image_small": URL},
    f"POST {V1}/playlists": PLAYLIST,
    f"PUT {V1}/playlists": {**PLAYLIST, "id": Rule([], NO_IDS)},
    f"PUT {V1}/playlists/{{id}}": PLAYLIST,
    f"POST {V1}/playlists/{{id}}/tracks/add": {"ids": ids(500, required=True)},
    f"POST {V1}/playlists/{{id}}/tracks/remove": {"ids": ids(500, required=True)},
    f"POST {V1}/playlists/{{id}}/tracks/move": {
        "from": Rule([1], [*NO_IDS, 2], required=True),
        "to": Rule([1], [*NO_IDS, 2], required=True),
    },
    f"POST {V1}/playlists/{{id}}/invite": {"user_id": EXISTING},
    f"POST {V1}/plays": {
        "plays": many([PLAY] * 1001, empty=False, required=True, wrong=[{}, 5, None]),
        "plays.0.track_id": Rule([1, 2**53 - 1], NO_IDS, required=True),
        "plays.0.played_at": Rule(
            ["2026-03-01T10:00:00Z", 0, 1.5],
            [
                *("2026-03-01T10:00:00", "2026-02-30T10:00:00Z", "2026-03-01", "2026-03-01T10:00:00+99:00"),
                *("٢026-03-01T10:00:00Z", "1772359200", "now", "", 1_772_359_200_000, 10**300, -1e300, True, []),
            ],
            required=True,
        ),
        "plays.0.listener": text(1, 64),
        "plays.0.duration_ms": number(0, 86_400_000),
        "plays.0.client_id": text(1, 128),
    },
    f"POST {V1}/users/me/pending-listens/{{id}}": {"track_id": EXISTING},
    f"POST {V1}/collections": {"name": NAME, "description": text(0, 1000), "track_ids": ids(500, required=False)},
    f"POST {V1}/messaging/messages": {
        "conversation_id": Rule([], NO_IDS, required=True),
        "message_text": text(1, 2000, required=True),
    },
    f"POST {V1}/messaging/conversations": {"user_ids": ids(9, required=True, unique=True)},
    f"POST {V1}/fcm-tokens": {
        "token": PUSH,
        "platform": choice("web", "android", "ios"),
        "device_name": text(0, 200),
    },
    f"DELETE {V1}/fcm-tokens": {"token": PUSH},
    f"PUT {V1}/notifications/{{user}}/subscriptions": {
        "selections": many(
            [{"notif_id": f"n{number}", "channels": {}} for number in range(101)],
            empty=True,
            required=True,
            wrong=[{}, 5],
        ),
        "selections.0.notif_id": Rule(
            ["a", "_" * 64, "a1_", " a "], ["a" * 65, "", "A", "a-b", "a b", "é", 5], required=True
        ),
        "selections.0.channels": Rule([{}, {"email": True}], [5, [], {"fax": True}], required=True),
        "selections.0.channels.mobile": Rule([True, False], [None, "true", 1]),
    },
    f"POST {V1}/cover-art/preview": {
        "template_id": Rule([1, 8], [*NO_IDS, 9], required=True),
        "title": text(1, 120, required=True),
        "artist": text(1, 120, required=True),
    },
    f"POST {INSIGHTS}/export/csv": {"type": TYPE, **EXPORT},
    f"POST {INSIGHTS}/export/json": {"type": TYPE, **EXPORT},
    f"POST {INSIGHTS}/export/xlsx": {"type": TYPE, **EXPORT},
    f"POST {INSIGHTS}/export/report": {
        "include_charts": Rule([True, False], ["true", 1, []]),
        "include_listening": Rule([True, False], ["true", 1, []]),
        **EXPORT,
    },
    f"POST {INSIGHTS}/export/pdf": {**EXPORT, "period": Rule(["7-days"], PERIOD.refused)},
}


def _changes(noun: str) -> Mapping[str, Rule]:
    """Return the rules of a PATCH: those of a new row, of which nothing is required."""
    rules = {name: replace(rule, required=False) for name, rule in _FIELDS[f"POST {V1}/{noun}s"].items()}
    # Another than those that new tracks of the same caller have.
    return rules | ({"isrc": replace(rules["isrc"], taken=["GBAYE6800012"])} if noun == "track" else {})


FIELDS: Mapping[str, Mapping[str, Rule]] = {
    **_FIELDS,
    f"PATCH {V1}/playlists/{{id}}": {**PLAYLIST, "name": replace(PLAYLIST["name"], required=False)},
    **{f"PATCH {V1}/{noun}s/{{id}}": _changes(noun) for noun in ("artist", "album", "track")},
}
