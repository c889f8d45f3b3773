"""Pages of other sites and the demo: they cannot use its own endpoints, unless their origins are listed."""

from collections.abc import Iterator

import pytest

from tests.support.demo import Demo, running_demo

pytestmark = pytest.mark.only_on("sqlite")  # a demo has its own database, whatever store the run uses
OURS, OTHER = "http://localhost:5173", "https://evil.example"
ALLOW = "Access-Control-Allow-Origin"


def own(demo: Demo) -> str:
    return demo.root.replace("127.0.0.1", "localhost")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": OTHER},
        {"Origin": "null"},
        {"Origin": OURS, "Sec_Fetch_Site": "same-site"},
        {"Origin": OTHER, "Sec_Fetch_Site": "same-origin"},  # of a name that was made to point to this machine
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_a_page_of_another_site_cannot_use_the_endpoints_of_the_demo(demo: Demo, headers: dict[str, str]) -> None:
    before = demo.get("/demo/clock").json["clock"]["now"][:13]
    for method, path in (("POST", "/demo/clock"), ("GET", "/demo/requests"), ("POST", "/demo/reset")):
        refused = demo.ask(method, path, {"advance": "91d"}, **headers)
        assert (refused.status, ALLOW in refused.headers) == (403, False)
        assert "server.cors_origins" in refused.json["message"]
    assert demo.get("/demo/clock").json["clock"]["now"][:13] == before
    assert demo.get("genres", **headers).status == 200


def test_pages_of_the_demo_and_other_programs_can(demo: Demo) -> None:
    for origin in (own(demo), demo.root):
        assert demo.get("/demo/faults", Origin=origin, Sec_Fetch_Site="same-origin").status == 200
    for headers in ({"Sec_Fetch_Site": "none"}, {"Sec_Fetch_Site": "same-origin"}, {}):
        assert demo.get("/demo/faults", **headers).status == 200


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Return a demo that lists an origin."""
    listed = {"MUSICSVC_SERVER__CORS_ORIGINS": f'["{OURS}"]'}
    with running_demo(tmp_path_factory.mktemp("listing"), **listed) as demo:
        yield demo


@pytest.mark.slow
def test_code_of_a_listed_origin_uses_the_demo_and_injects_faults(listing: Demo) -> None:
    moved = listing.post("/demo/clock", {"advance": "1s"}, Origin=OURS, Sec_Fetch_Site="cross-site")
    assert (moved.status, moved.headers[ALLOW]) == (200, OURS)
    refused = listing.get("genres", fault="503", Origin=OURS)
    assert (refused.status, refused.headers["X-Demo-Injected"]) == (503, "header")
    assert "X-Demo-Injected" in refused.headers["Access-Control-Expose-Headers"]
    preflight = {"Origin": OURS, "Access_Control_Request_Method": "POST"}
    for path in ("/api/v1/albums", "/demo/clock"):
        allowed = listing.ask("OPTIONS", path, token=None, **preflight)
        assert (allowed.status, allowed.headers[ALLOW]) == (204, OURS)
        assert {"Authorization", "X-Demo-Fault", "Prefer"} <= {
            *allowed.headers["Access-Control-Allow-Headers"].split(", ")
        }
    assert listing.post("/demo/reset", Origin=OTHER).status == 403
    assert listing.ask("OPTIONS", "/demo/clock", **preflight | {"Origin": OTHER}).status == 405
