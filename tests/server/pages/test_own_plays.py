"""Pages show the listeners' own plays: how many of an artist, album or track there are, and listens without a track."""

import re

from musicsvc.clock import DAY, MINUTE
from musicsvc.store.accounts import tokens
from musicsvc.store.listens import receiving
from musicsvc.store.listens.matching import Listen
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist, User
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import ReportedPlay
from tests.support.html_page import HtmlPage
from tests.support.office import Office
from tests.support.page_client import add_session, page_client, text
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import Person

SENTENCE = re.compile(r"<p><span data-own-plays>([^<]*)</span>([^<]*)</p>")


@on_shared_loop
async def test_pages_say_how_many_plays_the_listeners_own_accounts_reported(office: Office) -> None:
    user_id = office.account("manager", api_access=True)
    value, now = office.token(user_id)[1], office.shared.clock.now()

    def make() -> dict[str, int]:
        artist = Artist.create(name="Trio", manager=user_id, created_at=1).id
        album = Album.create(name="Suite", created_at=1).id
        AlbumArtist.create(album=album, artist=artist, position=0)
        made = [Track.create(name="Air", duration=1, album=each, created_at=1).id for each in (album, None)]
        for track in made:
            TrackArtist.create(track=track, artist=artist, position=0)
        actor = tokens.identify(tokens.digest(value))
        assert actor is not None
        heard = [ReportedPlay(made[at % 4 == 3], now - at * MINUTE, "a" if at % 3 else None) for at in range(1, 12)]
        heard.append(ReportedPlay(made[0], now - 12 * DAY))
        ingest.report(heard, now=now, actor=actor._replace(reports_plays=True))
        return {"artist": artist, "album": album, "track": made[1]}

    subjects = office.do(make)
    async with page_client(office.shared.client.root) as browser:
        browser.cookies = {"musicsvc": add_session(office.shared, user_id)}

        async def sentence(kind: str, period: str) -> list[tuple[str, str]]:
            answer = await browser.get(f"/insights/{kind}/{subjects[kind]}?period={period}")
            assert answer.status == 200
            return SENTENCE.findall(answer.body.decode())

        told = " of {} plays were reported by the listeners' own accounts."
        assert await sentence("artist", "30-days") == [("4", told.format(12))]
        assert await sentence("artist", "7-days") == [("3", told.format(11))]
        assert await sentence("album", "7-days") == [("2", told.format(8))]
        assert await sentence("track", "7-days") == [("1", told.format(3).replace("were", "was"))]


@on_shared_loop
async def test_titles_that_players_make_up_are_cut_where_no_track_has_a_longer_name(developer: Person) -> None:
    value, now = developer.token(scope=tokens.LISTEN)[1], developer.shared.clock.now()

    def hear(_: User) -> None:
        actor = tokens.identify(tokens.digest(value))
        assert actor is not None
        heard = [Listen(now - MINUTE, *(sign * 9_000 for sign in "ATR")), Listen(now - DAY, "Solo", "M" * 255)]
        receiving.receive(heard, [None, None], now=now, actor=actor, accepted=True, daily=600)

    developer.do(hear)
    shown = text(await developer.browser.get("/settings/listens"))
    for name in ("A", "T", "R"):
        assert f"{name * 254}…" in shown
        assert name * 255 not in shown
    assert "M" * 255 in shown
    beyond = text(await developer.browser.get("/settings/listens?page=9"))
    assert 'There are no more rows. <a href="/settings/listens?page=1">First page</a>' in beyond


@on_shared_loop
async def test_naming_and_dismissing_listens_stays_on_the_page_of_the_list(developer: Person) -> None:
    value, now = developer.token(scope=tokens.LISTEN)[1], developer.shared.clock.now()

    def hear(user: User) -> None:
        actor = tokens.identify(tokens.digest(value))
        assert actor is not None
        heard = [Listen(now - at * MINUTE, "Solo", f"Title {at}") for at in range(1, 43)]
        receiving.receive(heard, [None] * len(heard), now=now, actor=actor, accepted=True, daily=600)
        artist = Artist.create(name="Trio", manager=user.id, created_at=1)
        TrackArtist.create(track=Track.create(name="Aubade", duration=1, created_at=1), artist=artist, position=0)

    developer.do(hear)
    forms = HtmlPage((await developer.browser.get("/settings/listens?page=2")).body).forms
    name, *_ = (path for path in forms if path.endswith("/name?page=2"))
    *_, dismiss = (path for path in forms if path.endswith("/dismiss?page=2"))
    refused = HtmlPage((await developer.browser.post(name, {"track": "Nothing"})).body)
    assert refused.forms[name]["track"] == "Nothing"
    assert refused.text.count("There is no track named Nothing.") == 1
    for path, fields in ((name, {"track": "Aubade"}), (dismiss, {})):
        done = await developer.browser.post(path, fields)
        assert (done.status, done.headers.get("Location")) == (303, "/settings/listens?page=2"), path
