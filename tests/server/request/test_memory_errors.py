"""Requests for which out of memory: 503 in the error format of the path, one line of the log."""

import logging
from typing import Any, NoReturn

import pytest
from prometheus_client import Histogram

from musicsvc.clock import MovableClock
from musicsvc.config import Limits, Settings
from musicsvc.server.pages import html
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.server.shapes import envelope
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.catalog import artists
from musicsvc.store.dashboards import dashboards
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import export_rows
from musicsvc.store.models import Artist
from tests.support.listening_world import catalog
from tests.support.page_client import add_session, page_client
from tests.support.response_checks import conforms
from tests.support.serving import Answer, person, running
from tests.support.shared_server import Shared

MESSAGE = "There is not enough memory for this. Try again in a second."


def exhausted(*_: Any, **__: Any) -> NoReturn:
    raise MemoryError


def refused(answer: Answer) -> bool:
    return (answer.status, answer.headers.get("Retry-After")) == (503, "1")


async def test_a_request_without_memory_is_503_in_the_format_of_its_path_and_counts_to_no_limit(
    store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = store.write(lambda: catalog(clock.now())).result()
    limits = Limits.model_validate({"local": True, "token": "9/hour", "exports": "5/hour"})
    settings = Settings(limits=limits)
    async with running(store, clock, settings) as anybody, page_client(anybody.root) as browser:
        client = anybody.holding(made.token)
        browser.cookies["musicsvc"] = add_session(Shared(anybody, store, clock), made.manager.user_id)
        before = store.read(lambda: Artist.select().count()).result()
        create = artists.create

        def created(*arguments: Any, **more: Any) -> NoReturn:
            create(*arguments, **more)
            raise MemoryError

        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "musicsvc"):
            patch.setattr(artists, "create", created)
            patch.setattr(export_rows, "cells", exhausted)
            patch.setattr(dashboards, "report", exhausted)
            general = await client.post("artists", {"name": "Ada"})
            insights = await client.post(f"{INSIGHTS}/export/csv", {"type": "tracks"})
            page = await browser.get("/insights")
            patch.setattr(html, "render", exhausted)
            plain = await browser.get("/insights")
        assert all(map(refused, (general, insights, page, plain)))
        conforms(general, "POST", "/api/v1/artists")
        assert general.json == {"status": "error", "message": MESSAGE, "errors": {}}
        assert insights.json == {"success": False, "message": MESSAGE, "error": "unavailable"}
        for shown in (page, plain):
            assert (shown.headers["Content-Type"], MESSAGE in shown.body.decode()) == (html.HTML_TYPE, True)
        assert store.read(lambda: Artist.select().count()).result() == before
        last = await client.get("users/me")
        assert (last.status, last.headers["X-RateLimit-Remaining"]) == (200, "8")
    (logged,) = [each for each in caplog.records if each.name == "musicsvc" and each.levelno >= logging.WARNING]
    assert (logged.getMessage(), logged.exc_info) == ("answering requests with 503: out of memory or threads", None)


async def test_a_response_does_not_depend_on_what_is_noted_of_its_request(
    store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, token = person(store, clock, "ann@label.test")
    async with running(store, clock) as client:
        monkeypatch.setattr(Histogram, "labels", exhausted)
        answer = await client.holding(token).post("artists", {"name": "Ada"}, headers={"X-Request-Id": "my-own-id"})
        assert answer.status == 201
    assert "unhandled exception while noting request my-own-id" in caplog.messages
    with activity_log.build(store.url) as log:
        log.prepare()
        (entry,) = log.read(lambda: calls.find(calls.Filter(request_id="my-own-id"), limit=9)).result()
    assert entry.status == 201


async def test_a_response_that_cannot_be_packed_for_want_of_memory_is_503(
    store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill() -> None:
        for number in range(50):
            Artist.create(name=f"Artist {number}", created_at=1)

    store.write(fill).result()
    async with running(store, clock) as client:
        with monkeypatch.context() as patch:
            patch.setattr(envelope, "pack", exhausted)
            patch.setattr("musicsvc.server.responses.responses.pack", exhausted)
            answer = await client.get("artists?perPage=50", headers={"Accept-Encoding": "gzip"})
        assert (refused(answer), answer.json["message"]) == (True, MESSAGE)
        answer = await client.get("artists?perPage=50", headers={"Accept-Encoding": "gzip"})
        assert (answer.status, answer.headers["Content-Encoding"]) == (200, "gzip")
