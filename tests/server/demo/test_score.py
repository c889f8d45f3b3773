"""The report card of a demo: a good client gets 100 %, and each bad client loses exactly its point."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from musicsvc.wording import escape_controls
from tests.support.demo import Demo, running_demo
from tests.support.good_client import GoodClient
from tests.support.program import run as run_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.only_on("sqlite"),  # a demo has its own database, whatever store the run uses
]
PASSWORD = "three romances"
POINTS = ("retry-after", "paging", "retries", "etags", "fields", "dead-token", "plays", "edge")


class HalfPatient(GoodClient):
    def wait(self, seconds: float) -> None:
        super().wait(seconds // 2)


class SkipsPages(GoodClient):
    def pages(self, path: str) -> Iterator[Any]:
        first = self.page(path, 1)
        yield first
        yield from (self.page(path, number) for number in range(3, first["last_page"] + 1, 2))


class CreatesAgain(GoodClient):
    def find_playlist(self, name: Any) -> Any:
        """Take for granted that it was not created."""


class LosesQuotes(GoodClient):
    def condition(self, tag: str) -> dict[str, str]:
        return {"If-None-Match": tag.strip('"')}


class SendsDeprecatedParameter(GoodClient):
    def page(self, path: str, number: int) -> Any:
        other = "per_page" if path.endswith("/tracks") else "perPage"
        return self.get(f"{path}?page={number}&{other}=20").popitem()[1]


class TriesDeadTokenOnce(GoodClient):
    def renew_token(self) -> None:
        self.ask("GET", "/api/v1/users/me")
        super().renew_token()


class ReportsSomePlaysAgain(GoodClient):
    def again(self, plays: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return plays[:-1]


class CutsIdsTo32Bits(GoodClient):
    def id_of(self, number: int) -> int:
        return number & 0xFFFFFFFF


class CutsTexts(GoodClient):
    def text_of(self, text: str) -> str:
        return text[:200]


class SendsLatin1(GoodClient):
    def encode(self, body: Any) -> bytes:
        return (
            json.dumps(body, ensure_ascii=False).encode("latin-1", "ignore") if "name" in body else super().encode(body)
        )


class WritesWithReadOnlyToken(GoodClient):
    def write_read_only(self) -> None:
        super().write_read_only()
        super().write_read_only()


# One of each kind of violation that a card takes from another part of a request; test_scoring.py has all violations.
BAD: dict[str, tuple[type[GoodClient], ...]] = {
    "retry-after": (HalfPatient,),
    "paging": (SkipsPages,),
    "retries": (CreatesAgain,),
    "etags": (LosesQuotes,),
    "fields": (SendsDeprecatedParameter,),
    "dead-token": (TriesDeadTokenOnce,),
    "plays": (ReportsSomePlaysAgain,),
    "edge": (CutsIdsTo32Bits, CutsTexts, SendsLatin1, WritesWithReadOnlyToken),
}


@pytest.fixture
def scored(tmp_path: Path) -> Iterator[Demo]:
    options = ("--speed", "0", "--score", "--junit", str(tmp_path / "card.xml"))  # only clients move the clock
    with running_demo(tmp_path, *options, MUSICSVC_DEMO_PASSWORD=PASSWORD) as demo:
        yield demo


def run(demo: Demo, kind: type[GoodClient]) -> Any:
    """Run the client, and return its card."""
    printed = dict(re.findall(r"Token of demo@musicsvc\.test, ([\w-]+): (msvc_\w+)", demo.program.err))
    kind(demo.address, {"main": demo.token, **printed}, PASSWORD).run()
    return demo.get("/demo/score").json["card"]


def states(card: Any) -> dict[str, str]:
    return {point["name"]: point["state"] for point in card["points"]}


def end(demo: Demo) -> tuple[str, ET.Element]:
    """Stop the demo. Return what it has printed, and the test suite in its file."""
    assert demo.program.end(signal.SIGTERM) == 0
    (suite,) = ET.parse(demo.folder / "card.xml").getroot()  # noqa: S314 - our own file
    return demo.program.err, suite


def test_a_good_client_gets_100_percent(scored: Demo) -> None:
    assert states(run(scored, GoodClient)) == dict.fromkeys(POINTS, "passed")
    printed, suite = end(scored)
    assert "Report card: 100 %, 8 of 8 points passed" in printed
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("8", "0", "0")
    assert [[*case] for case in suite] == [[]] * 8


def test_each_bad_client_loses_exactly_its_point(scored: Demo) -> None:
    assert BAD.keys() == {*POINTS}
    for point, kind in [(point, kind) for point, kinds in BAD.items() for kind in kinds]:
        assert scored.post("/demo/reset").status == 200
        card = run(scored, kind)
        assert states(card) == dict.fromkeys(POINTS, "passed") | {point: "failed"}, (kind, card)
        assert card["score"] == 87
    printed, suite = end(scored)
    assert "Report card: 87 %, 7 of 8 points passed" in printed
    (failed,) = (entry for entry in card["points"] if entry["state"] == "failed")
    (failure,) = suite.iter("failure")
    assert failure.get("type") == point
    assert failed["remedy"] in printed
    for violation in failed["first"]:
        for request in violation["requests"]:
            assert f"{request['number']}. {request['method']} {request['target']}" in printed
            assert escape_controls(request["curl"]) in printed
            assert request["curl"] in (failure.text or "")


def test_a_card_begins_without_tests_and_a_reset_begins_another_one_with_what_fails_on_purpose(scored: Demo) -> None:
    untested = dict.fromkeys(POINTS, "not tested")
    (suite,) = ET.parse(scored.folder / "card.xml").getroot()  # noqa: S314 - our own file
    assert (suite.get("tests"), suite.get("skipped")) == ("8", "8")
    rules = scored.get("/demo/faults").json["faults"]
    assert [rule["fault"] for rule in rules] == ["429", "503", "lost-response", "lost-response"]
    assert scored.ask("DELETE", "/demo/faults").status == 200
    assert scored.get("albums?limit=2").status == 200
    card = scored.get("/demo/score").json["card"]
    assert (card["score"], card["requests"], states(card)) == (0, 1, untested | {"fields": "failed"})
    assert scored.post("/demo/snapshots/here/restore").status == 404
    assert scored.post("/demo/reset").status == 200
    card = scored.get("/demo/score").json["card"]
    assert (card["score"], card["requests"], states(card)) == (0, 0, untested)
    assert [rule["fault"] for rule in scored.get("/demo/faults").json["faults"]] == [rule["fault"] for rule in rules]

    said = next(line for line in scored.program.err.splitlines() if "on purpose" in line)
    assert "5th GET (429)" in said
    assert "the 11th (503)" in said
    assert f"DELETE {scored.root}/demo/faults ends this." in said
    statuses = [scored.get("genres").status for _ in range(12)]
    assert [(at, status) for at, status in enumerate(statuses, 1) if status != 200] == [(5, 429), (11, 503)]
    track = scored.get("tracks").json["pagination"]["data"][0]["id"]
    play = {"plays": [{"track_id": track, "played_at": "2026-02-28T23:59:59Z", "client_id": "one"}]}
    for path, body in (("plays", play), ("playlists", {"name": "Lost"})):
        with pytest.raises(OSError, match="closed"):
            scored.post(path, body)
    assert scored.post("plays", play).json["repeated"] == 1  # the first one was executed
    assert "Lost" in [row["name"] for row in scored.get("playlists").json["pagination"]["data"]]


def test_names_that_xml_does_not_allow_are_escaped_in_the_file(scored: Demo) -> None:
    name = "\ufffe\x7f\x85 ]]> & <\U0001d11e>"
    assert scored.post("artists", {"name": "Amy Beach", "nickname": name}).status == 201
    printed, suite = end(scored)
    (failure,) = suite.iter("failure")
    assert name.replace("\ufffe", "\\ufffe") in (failure.text or "")
    assert "Report card: 0 %, 0 of 8 points passed, 1 request\n" in printed
    assert all(str(case.get("message")) in printed for case in suite.iter("skipped"))


def test_a_quiet_demo_prints_its_card_all_the_same(tmp_path: Path) -> None:
    with running_demo(tmp_path, "--score", "--quiet", "--world", "one") as demo:
        assert demo.program.end(signal.SIGTERM) == 0
        assert demo.program.err.startswith("Report card: 0 %")


def test_a_file_that_cannot_be_written_at_the_end_is_named(tmp_path: Path) -> None:
    (tmp_path / "cards").mkdir()
    with running_demo(tmp_path, "--score", "--world", "one", "--junit", str(tmp_path / "cards" / "card.xml")) as demo:
        rmtree(tmp_path / "cards")
        assert demo.program.end(signal.SIGINT) == 0
        assert f"Error: {tmp_path}/cards/card.xml cannot be written: No such file or directory." in demo.program.err
        assert "Report card: 0 %" in demo.program.err
        assert "Traceback" not in demo.program.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--score",), 2, "--now, --speed, --world and --score are for the demo. Add --demo."),
        (("--demo", "--junit", "card.xml"), 2, "--junit writes the report card. Add --demo --score."),
        (("--demo", "--score", "--junit", "."), 1, "is not a regular file. Name a file to write."),
        (("--demo", "--score", "--junit", "missing/card.xml"), 1, "missing/card.xml"),
    ],
)
def test_wrong_options_are_refused_before_the_demo_starts(options: tuple[str, ...], code: int, message: str) -> None:
    refused = run_program("serve", "--port", "0", *options)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_demo_without_score_has_no_card(shared_demo: Demo) -> None:
    assert shared_demo.get("/demo/score").status == 404
    assert shared_demo.get("/demo/faults").json["faults"] == []
