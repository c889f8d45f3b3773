"""Rules that inject faults into many requests to a demo."""

import pytest

from tests.support.demo import Demo

pytestmark = pytest.mark.only_on("sqlite")  # a demo has its own database, whatever store the run uses
ALBUMS = "/api/v1/albums"


def add(demo: Demo, fault: str, **rule: object) -> int:
    response = demo.post("/demo/faults", {"fault": fault, **rule}, token=None)
    assert response.status == 201, response.json
    found: int = response.json["fault"]["id"]
    return found


def statuses(demo: Demo, times: int, path: str = ALBUMS) -> list[int]:
    return [demo.get(path).status for _ in range(times)]


def test_a_rule_injects_its_fault_so_often_and_names_itself(demo: Demo) -> None:
    rule = add(demo, "503", count=2)
    response = demo.get(ALBUMS)
    assert (response.status, response.headers["X-Demo-Injected"]) == (503, f"rule {rule}")
    assert statuses(demo, 3) == [503, 200, 200]
    (listed,) = demo.get("/demo/faults").json["faults"]
    assert listed == {
        "id": rule,
        "match": {"method": None, "route": None, "token": None},
        "fault": "503",
        "probability": 1.0,
        "count": 2,
        "seed": 0,
        "injected": 2,
    }


def test_a_rule_concerns_its_method_its_route_and_its_token_only(demo: Demo) -> None:
    own = demo.post("auth/register", {"email": "r@x.test", "password": "long enough", "token_name": "own"}).json
    other = own["user"]["access_token"]
    add(demo, "409", match={"method": "POST"})
    add(demo, "404", match={"route": "/api/v1/albums/{id}"})
    add(demo, "403", match={"token": other})
    assert demo.get(ALBUMS).status == 200
    assert demo.get("albums/1").status == 404
    assert demo.post("artists", {"name": "Nobody"}).status == 409
    assert demo.get(ALBUMS, token=other).status == 403
    shown = [rule["match"]["token"] for rule in demo.get("/demo/faults").json["faults"]]
    assert shown == [None, None, f"…{other[-4:]}"]


def test_the_first_rule_that_injects_its_fault_decides_and_a_header_wins_over_rules(demo: Demo) -> None:
    first, second = add(demo, "404", count=1), add(demo, "503", count=1)
    assert demo.get(ALBUMS, fault="409").status == 409
    responses = [demo.get(ALBUMS) for _ in range(3)]
    assert [response.status for response in responses] == [404, 503, 200]
    assert responses[1].headers["X-Demo-Injected"] == f"rule {second}"
    assert second > first


def test_the_same_seed_gives_the_same_run(demo: Demo) -> None:
    def run(seed: int) -> list[int]:
        rule = add(demo, "503", probability=0.5, seed=seed)
        found = statuses(demo, 24)
        assert demo.ask("DELETE", f"/demo/faults/{rule}").status == 200
        return found

    first = run(7)
    assert {200, 503} == {*first}
    assert run(7) == first
    assert run(8) != first


def test_a_rule_of_probability_zero_injects_nothing(demo: Demo) -> None:
    add(demo, "503", probability=0)
    assert statuses(demo, 5) == [200] * 5


def test_rules_concern_requests_whose_response_was_in_memory(demo: Demo) -> None:
    """A normal server sends such responses before anything else looks at the request."""
    assert statuses(demo, 4) == [200] * 4
    add(demo, "503", count=1)
    assert statuses(demo, 2) == [503, 200]


def test_rules_are_deleted_one_by_one_or_all(demo: Demo) -> None:
    first, second = add(demo, "503"), add(demo, "404")
    assert demo.ask("DELETE", f"/demo/faults/{first}").json == {"status": "success"}
    assert demo.ask("DELETE", f"/demo/faults/{first}").status == 404
    assert demo.ask("DELETE", "/demo/faults/x").status == 404
    assert [rule["id"] for rule in demo.get("/demo/faults").json["faults"]] == [second]
    assert demo.ask("DELETE", "/demo/faults").status == 200
    assert demo.get("/demo/faults").json["faults"] == []
    assert demo.get(ALBUMS).status == 200


def test_the_endpoints_of_the_demo_have_no_faults_and_need_no_token(demo: Demo) -> None:
    add(demo, "503")
    assert demo.get("/demo/faults", token=None).status == 200
    assert demo.get("/demo/faults", token="msvc_expired").status == 200
    assert demo.get("/docs").status == 200
    assert demo.get(ALBUMS).status == 503


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ({}, {"fault"}),
        ({"fault": "418"}, {"fault"}),
        ({"fault": "503", "match": {"route": "/api/v1/album"}}, {"match.route"}),
        ({"fault": "503", "match": {"route": "/demo/faults"}}, {"match.route"}),
        ({"fault": "503", "match": {"method": "FETCH", "token": 7}}, {"match.method", "match.token"}),
        (
            {"fault": "503", "probability": 1.5, "count": 0, "seed": -1, "match": 5},
            {"probability", "count", "seed", "match"},
        ),
        ({"fault": "503", "probability": "often", "count": 1.5}, {"probability", "count"}),
    ],
)
def test_every_field_of_a_rule_is_checked(demo: Demo, rule: dict[str, object], fields: set[str]) -> None:
    response = demo.post("/demo/faults", rule)
    assert response.status == 422
    assert response.json["errors"].keys() == fields
    assert demo.get("/demo/faults").json["faults"] == []


def test_null_stands_for_the_default_of_a_field(demo: Demo) -> None:
    add(demo, "404", match=None, probability=None, count=None, seed=None)
    assert statuses(demo, 1) == [404]
