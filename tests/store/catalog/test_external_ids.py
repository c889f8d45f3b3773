"""Ids of Spotify and MusicBrainz are the same in every notation."""

import pytest

from musicsvc.store.catalog import external_ids
from musicsvc.store.catalog.external_ids import Noun

ID = "6habFhsOp2NvshLv26DqMb"
MBID = "8f3471b5-7e6a-48da-86a9-c1c07a0f47ae"


@pytest.mark.parametrize(
    ("noun", "text", "found"),
    [
        *(
            ("track", form.format(ID), ID)
            for form in (
                "{}",
                "spotify:track:{}",
                "Spotify:Track:{}",
                "spotify://track/{}",
                "https://open.spotify.com/track/{}",
                "https://open.spotify.com/track/{}?si=5f2b0e&utm_source=copy-link",
                "https://open.spotify.com/intl-de/track/{}",
                "https://open.spotify.com/intl-pt-br/track/{}/#0:30",
                "https://open.spotify.com/embed/track/{}",
                "http://play.spotify.com/track/{}",
                "open.spotify.com/track/{}",
                "https://api.spotify.com/v1/tracks/{}",
                "spotify:episode:{}",
            )
        ),
        ("album", f"spotify:album:{ID}", ID),
        ("album", f"https://open.spotify.com/album/{ID}?si=1", ID),
        ("playlist", f"spotify:playlist:{ID}", ID),
        ("playlist", f"spotify:user:ann:playlist:{ID}", ID),
        ("playlist", f"https://open.spotify.com/user/ann/playlist/{ID}", ID),
        *(
            ("track", form.format(MBID.upper()), MBID)
            for form in (
                "{}",
                "{{{}}}",
                "mbid:{}",
                "urn:mbid:{}",
                "urn:uuid:{}",
                "musicbrainz:recording:{}",
                "musicbrainz://recording/{}",
                "https://musicbrainz.org/recording/{}",
                "http://beta.musicbrainz.org/recording/{}/fingerprints",
                "https://musicbrainz.org/ws/2/recording/{}?inc=isrcs",
                "http://musicbrainz.org/track/{}.html",
                "https://listenbrainz.org/track/{}/",
            )
        ),
        ("album", f"https://musicbrainz.org/release/{MBID}", MBID),
        ("album", f"https://musicbrainz.org/release-group/{MBID}#tracks", MBID),
        ("playlist", f"https://listenbrainz.org/playlist/{MBID}/", MBID),
    ],
)
def test_an_id_has_one_form_in_all_notations(noun: Noun, text: str, found: str) -> None:
    assert external_ids.bare(text, noun) == found


@pytest.mark.parametrize(
    "text",
    [
        "T-1",
        "XYZ",
        "urn:isrc:GBAYE6800011",
        "https://www.deezer.com/track/3135556",
        "https://spotify.com.example.test/track/1",
        "spotify:local:Ann:Two:Rag:1",
        "spotify:track:",
        f"spotify:album:{ID}",  # of a track it says nothing
        f"https://open.spotify.com/album/{ID}?highlight=spotify:track:1",
        f"https://musicbrainz.org/release/{MBID}",
        f"{MBID}-1",
        f"x{MBID}",
    ],
)
def test_other_ids_stay_as_they_are(text: str) -> None:
    assert external_ids.bare(text, "track") == text
