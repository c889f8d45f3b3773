"""Ids of tracks, albums and playlists in other services. Those of Spotify and MusicBrainz are stored bare.

Each is written in several ways: as a URI, as a link (with a query, a language or a trailing slash), MBIDs also in upper
case. Ids of other services stay as they are.
"""

import re
from collections.abc import Mapping
from typing import Literal

Noun = Literal["track", "album", "playlist"]
MBID_LENGTH = 36
SPOTIFY = (
    r"(?:spotify:(?://)?|(?:https?://)?(?:open|play|api)\.spotify\.com/)(?:v1/|intl-[a-z]+(?:-[a-z]+)?/)?(?:embed/)?"
    r"(?:user[:/][^:/?#]+[:/])?(?:{kinds})s?[:/]([0-9a-z]+)/?(?:[?#].*)?"
)
MUSICBRAINZ = (
    r"(?:(?:https?://)?(?:[a-z0-9]+\.)?(?:music|listen)brainz\.org/(?:ws/2/)?(?:{kinds})/"
    r"|(?:urn:)?(?:mbid|uuid|musicbrainz)(?::(?:{kinds}))?:|musicbrainz://(?:{kinds})/)?"
    r"\{{?([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})\}}?(?:\.html|/[a-z-]*)?(?:[?#].*)?"
)
KINDS: Mapping[Noun, tuple[str, str]] = {  # what each service calls them
    "track": ("track|episode", "recording|track"),
    "album": ("album|show", "release|release-group"),
    "playlist": ("playlist", "playlist"),
}
FLAGS = re.ASCII | re.IGNORECASE
OF_SPOTIFY = {noun: re.compile(SPOTIFY.format(kinds=kinds[0]), FLAGS) for noun, kinds in KINDS.items()}
OF_MUSICBRAINZ = {noun: re.compile(MUSICBRAINZ.format(kinds=kinds[1]), FLAGS) for noun, kinds in KINDS.items()}


def bare(text: str, noun: Noun) -> str:
    """Return the id alone if `text` is an id of Spotify or MusicBrainz in any notation, otherwise `text`."""
    if len(text) < MBID_LENGTH and ":" not in text and "/" not in text:
        return text
    if found := OF_SPOTIFY[noun].fullmatch(text):
        return found[1]
    return found[1].lower() if (found := OF_MUSICBRAINZ[noun].fullmatch(text)) else text
