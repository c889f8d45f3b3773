"""Checks of responses outside the API: pages for browsers, and the form and status of their errors."""

import json
from urllib.parse import unquote

from musicsvc.errors import MethodNotAllowed, NotFound
from musicsvc.server.routes.route import SAFE, Access, Family, Route, Router
from musicsvc.server.routes.table import ROUTES
from tests.fuzzing.requests import FuzzRequest
from tests.support.serving import Answer

HTML = "text/html; charset=utf-8"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Type": HTML,
}
COOKIE = "; Path=/; HttpOnly; SameSite=Lax"
BAD_FORM = {400, 403, 413, 415, 422}  # unreadable, without the token of this browser, too large, no form, wrong fields
PROXIED = "Via: 1.1 a"  # by a proxy, without HTTPS: refused on every path here
ROUTER = Router(ROUTES)


def is_page(answer: Answer) -> bool:
    """Return whether this can only be a page: an error or a redirect in HTML. Other HTML may be a file."""
    return answer.status >= 303 and answer.headers.get("Content-Type") == HTML


def check_page(answer: Answer) -> None:
    """Assert that the answer, whose body is decompressed, is a page or a redirect with the headers of all pages."""
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert all(COOKIE in value for name, value in answer.headers.items() if name == "Set-Cookie")
    assert "ETag" not in answer.headers
    if answer.status == 303:
        assert answer.headers["Location"].startswith("/")
        assert not answer.headers["Location"].startswith(("//", "/\\"))
        assert (answer.body, answer.headers["Content-Length"]) == (b"", "0")
        return
    assert int(answer.headers["Content-Length"]) > 0
    if answer.body:  # none after HEAD
        text = answer.body.decode("utf-8")
        assert text.startswith("<!doctype html>")
        assert text.endswith("</html>")
        assert "<title>" in text


def check_outside_document(answer: Answer, sent: FuzzRequest) -> bool:
    """Check the answer unless the OpenAPI document describes it; return whether it was checked.

    `sent` has no session, so that pages for signed-in people redirect to `/sign-in`, or are 401 for clients of JSON.
    """
    route, allowed = _matched(sent)
    of_page = route is not None and route.family is Family.PAGE
    if not of_page and not (answer.status >= 400 and _wants_page(sent, route)):
        return False
    _check(answer, sent, route, {403} if PROXIED in sent.headers else allowed)
    return True


def _matched(sent: FuzzRequest) -> tuple[Route | None, set[int]]:
    """Return the route of the request, and the statuses of its pages."""
    try:
        route, _ = ROUTER.match(sent.method, sent.target.partition("?")[0])
    except NotFound:
        return None, {404}
    except MethodNotAllowed:
        return None, {405}
    return route, _statuses(route, sent) if route.family is Family.PAGE else {400, 404}


def _check(answer: Answer, sent: FuzzRequest, route: Route | None, allowed: set[int]) -> None:
    place = f"{answer.status} to {sent.method} {sent.target}"
    assert answer.status in allowed, f"{place}, expected {allowed}"
    assert answer.status != 405 or answer.headers["Allow"], place
    if answer.status < 400 or _wants_page(sent, route):
        check_page(answer)
    else:
        assert answer.headers["Content-Type"] == "application/json; charset=utf-8", place
        keys = ["message"] if answer.status == 401 else ["status", "message", "errors"]
        assert not answer.body or list(json.loads(answer.body)) == keys, place
    if answer.status == 303:
        page, _, back = answer.headers["Location"].partition("?next=")
        assert page == "/sign-in", place
        assert unquote(back) == sent.target or sent.method not in SAFE, place


def _statuses(route: Route, sent: FuzzRequest) -> set[int]:
    """Return the statuses that somebody without a session may get from this page."""
    if route.access is not Access.OPEN:
        return {303} if _wants_page(sent, route) else {401}
    if sent.method not in SAFE:
        return BAD_FORM if sent.headers.count("Sec-Fetch-Site: same-origin") == 1 else {403}
    return {404} if route.parameters else {200, 422}  # no link of the fuzzer is a valid one


def _wants_page(sent: FuzzRequest, route: Route | None) -> bool:
    """Return whether errors should be pages: for pages but files, and for browsers outside the API."""
    accepted = [line.partition(": ")[2] for line in sent.headers if line.startswith("Accept: ")]
    if "text/html" in accepted:
        return not sent.target.startswith("/api/")
    of_file = sent.target.partition("?")[0].endswith((".csv", ".json", ".svg"))
    return route is not None and route.family is Family.PAGE and not of_file and "application/json" not in accepted
