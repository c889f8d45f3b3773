"""Browser code of other origins: which responses it may read, and preflights."""

import pytest

from musicsvc.config import Server, Settings
from tests.support.serving import Answer, Client, StartServer

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

OURS, OTHER = "https://app.example", "https://evil.example"
ALLOW = "Access-Control-Allow-Origin"
PREFLIGHT = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
VARY = "Origin, Authorization, Accept-Encoding"


@pytest.fixture
async def client(start_server: StartServer, world: dict[str, str]) -> Client:
    """Return a client of a server that lets code of two origins read it."""
    started = await start_server(Settings(server=Server(cors_origins=(OURS, "http://127.0.0.1:3000"))))
    return started.holding(world["demo"])


async def ask(client: Client, origin: str | None, method: str = "GET", path: str = "genres", **more: str) -> Answer:
    headers = ({} if origin is None else {"Origin": origin}) | more
    return await client(method, path, headers=headers)


def _all(answer: Answer, name: str) -> list[str]:
    return [value for header, value in answer.headers.items() if header == name]


async def test_code_of_a_listed_origin_reads_responses_and_errors(client: Client) -> None:
    for path, status in (("genres", 200), ("genres", 200), ("genres", 200), ("tracks/999999", 404), ("nowhere", 404)):
        for origin in (OURS, "http://127.0.0.1:3000"):
            answer = await ask(client, origin, path=path)
            assert (answer.status, answer.headers[ALLOW], _all(answer, "Vary")) == (status, origin, [VARY])
            assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]
            assert "Access-Control-Allow-Credentials" not in answer.headers
        for other in (OTHER, f"{OURS}:8443", "null", None):
            answer = await ask(client, other, path=path)
            assert (answer.status, answer.headers.get(ALLOW), answer.headers["Vary"]) == (status, None, VARY)
    refused = await client.holding("msvc_none").get("albums", headers={"Origin": OURS})
    assert (refused.status, refused.headers[ALLOW]) == (401, OURS)


async def test_a_preflight_is_204_for_a_listed_origin_only(client: Client) -> None:
    answer = await ask(client, OURS, "OPTIONS", "albums", **PREFLIGHT)
    assert (answer.status, answer.body, answer.headers[ALLOW]) == (204, b"", OURS)
    assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, POST"
    assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
    for origin, path, headers, status in (
        (OTHER, "albums", PREFLIGHT, 405),
        (None, "albums", PREFLIGHT, 405),
        (OURS, "albums", {}, 405),
        (OURS, "nowhere", PREFLIGHT, 404),
    ):
        refused = await ask(client, origin, "OPTIONS", path, **headers)
        assert (refused.status, refused.headers.get("Access-Control-Allow-Methods")) == (status, None)


async def test_pages_are_for_no_other_origin(client: Client) -> None:
    page = await client("GET", "/sign-in", headers={"Origin": OURS})
    assert (page.status, ALLOW in page.headers) == (200, False)


async def test_no_origin_is_allowed_by_default(anonymous: Client) -> None:
    for method, status in (("OPTIONS", 405), ("GET", 200)):
        answer = await ask(anonymous, OURS, method, "albums", **PREFLIGHT)
        assert (answer.status, ALLOW in answer.headers) == (status, False)
        assert "Origin" not in answer.headers.get("Vary", "")


@pytest.mark.parametrize(
    "origin", ["*", "app.example", "https://app.example/", "https://x:", "https://user@app.example", "null", ""]
)
def test_a_setting_that_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(ValueError, match="is not an origin such as"):
        Server(cors_origins=(origin,))
