"""Clients generated from the document, without hand-fixing: two people build a playlist, and survive each fault."""

import base64
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, product
from typing import Any

import pytest

from musicsvc.server.routes.route import V1
from tests.support.demo import NOW, Demo, running_demo
from tests.support.generated_clients import (
    CLIENTS,
    PYTHON,
    GeneratedClient,
    execute,
    generate_python,
    generate_typescript,
)
from tests.support.preloaded import given_environment
from tests.support.serving import Client

pytestmark = [
    pytest.mark.slow,
    pytest.mark.only_on("sqlite"),  # a demo has its own database, whatever store the run uses
]
SIGNING_IN = ("POST auth/login", "POST auth/register")
SIGNED_IN = (
    "GET search",
    "GET tracks",
    "GET playlists",
    "POST playlists",
    "DELETE playlists/{id}",
    "GET playlists/{id}/tracks",
    "POST playlists/{id}/tracks/add",
    "POST playlists/{id}/tracks/move",
    "GET playlists/{id}/collaborators",
    "POST playlists/{id}/invite",
    "GET playlists/invitations",
    "POST playlists/{id}/accept-invite",
    "POST plays",
    "POST producer-intelligence/insights/export/json",
)
CALLS = SIGNING_IN + SIGNED_IN
REFUSED = {  # the calls whose refusal a person sees
    "401-expired": SIGNING_IN,  # the others have a new token afterwards
    "401-revoked": SIGNING_IN,
    "403": CALLS,
    "404": CALLS,
    "409": CALLS,
    "413": CALLS,
    "422": SIGNED_IN,
}
KEYED = ("POST playlists", "POST plays")  # take an Idempotency-Key
LISTED = {  # the calls for which the document lists the status of the refusal
    "403": CALLS,
    "404": [call for call in CALLS if "{id}" in call or "export" in call],
    "409": [call for call in CALLS if "invite" in call or call in KEYED],
    "413": [call for call in CALLS if "POST" in call and "accept" not in call],
    "422": CALLS,  # each can prefer that what is unknown is an error
}
# A call gets these one after another, each try the next. A request that is executed is not tried again: it is the last.
IN_TURN = (("500", "cut", "lost-response"), ("reset", "truncate=half"))
WAITING = ("429", "503", "duplicate")  # and then a second request, which is no reason to wait
LATE = ("slow=20ms", "slow=lognormal(9ms,0.5)", "dribble=10x2ms")
ENDLESS = ("GET tracks", "POST playlists")
MYPY = PYTHON / "mypy"
UNUSED = {"etags"}  # what neither generated client knows of
PASSWORD = "three romances for violin"
PATIENCE = 60  # seconds; a busy machine is slow


@dataclass(frozen=True)
class Story:
    """A running program that uses a generated client, and tells one story for each line it gets.

    `language`: the suffix of its file.
    """

    language: str
    program: subprocess.Popen[str]

    def tell(self, demo: Demo, words: str = "maple", patience: int = PATIENCE) -> dict[str, Any]:
        """Let two people build a playlist; return what they have seen."""
        assert self.program.stdin is not None
        assert self.program.stdout is not None
        print(json.dumps([demo.root, words, NOW, str(patience)]), file=self.program.stdin, flush=True)
        told: dict[str, Any] = json.loads(self.program.stdout.readline())
        told["plays"].sort()
        return told


def begin(demo: Demo) -> None:
    """Go back to the data of the start and to a new report card, without its rules."""
    assert demo.post("/demo/reset").status == 200
    assert demo.ask("DELETE", "/demo/faults").status == 200


def failed(demo: Demo) -> set[str]:
    """Return the points of the report card that the client has failed."""
    return {point["name"] for point in demo.get("/demo/score").json["card"]["points"] if point["state"] == "failed"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo")
    with running_demo(folder, "--score", "--world", "standard", MUSICSVC_DEMO_PASSWORD=PASSWORD) as demo:
        yield demo


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running_demo(tmp_path_factory.mktemp("edge"), "--score", MUSICSVC_DEMO_PASSWORD=PASSWORD) as demo:
        yield demo


@pytest.fixture(scope="module", params=["py", "ts"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def client(language: str, demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> GeneratedClient:
    """Generate a client, and compile the programs that use it together."""
    generate = {"py": generate_python, "ts": generate_typescript}[language]
    client = generate(demo.get("openapi.json").json, tmp_path_factory.mktemp(language))
    client.prepare(*(CLIENTS / f"{name}.{language}" for name in ("story", "resilient", "files")))
    return client


@pytest.fixture(scope="module")
def story(language: str, client: GeneratedClient) -> Iterator[Story]:
    """Check the types of the program that uses the client, and run it."""
    command = client.prepare(CLIENTS / f"story.{language}")
    if language == "py":
        if not MYPY.exists():
            pytest.skip("mypy is not installed beside openapi-python-client (tests/clients/install)")
        execute(client.folder, MYPY, "--strict", "--follow-imports=silent", "--cache-dir=/dev/null", "story.py")
    pipe, environment = subprocess.PIPE, given_environment()
    with subprocess.Popen(command, cwd=client.folder, env=environment, text=True, stdin=pipe, stdout=pipe) as program:
        yield Story(language, program)


def expected(demo: Demo, words: str = "maple") -> dict[str, Any]:
    """Return what the two people see without a fault, found without a generated client."""
    tracks = demo.get(f"search?q={words}").json["tracks"] + demo.get("tracks?perPage=100").json["pagination"]["data"]
    names = {track["id"]: track["name"] for track in tracks}
    first, second, third, fourth, fifth = [*names][:5]
    playlist = [fifth, first, second, third, fourth]
    figures = demo.post("producer-intelligence/insights/export/json", {}).json["data"]["rows"]
    assert first in {row["track_id"] for row in figures}
    return {
        "found": [*names.values()],
        "playlist": [playlist, playlist],
        "collaborators": ["ben"],
        "reported": 5,
        "plays": sorted([row["track_id"], row["plays_total"] + (row["track_id"] in playlist)] for row in figures),
        "left": [playlist["name"] for playlist in demo.get("playlists").json["pagination"]["data"]],
    }


def tell_with(faults: list[tuple[str, str]], story: Story, demo: Demo, patience: int = PATIENCE) -> dict[str, Any]:
    """Return what the two people see if a request of each of these calls has the fault. Leave the demo as it was."""
    begin(demo)
    for call, fault in faults:
        method, path = call.split()
        rule = {"match": {"method": method, "route": f"{V1}/{path}"}, "fault": fault, "count": 1}
        assert demo.post("/demo/faults", rule).status == 201
    told = story.tell(demo, patience=patience)
    rules = demo.get("/demo/faults").json["faults"]
    assert [(rule["match"], rule["fault"]) for rule in rules if not rule["injected"]] == []
    assert failed(demo) <= UNUSED
    begin(demo)
    return told


def refusal(demo: Demo, story: Story, call: str, fault: str) -> list[Any]:
    """Return the status and the message of a refused call. A client in Python knows those of listed statuses only."""
    method, path = call.split()
    refused = demo.ask(method, path.replace("{id}", "1"), fault=fault)
    known = story.language == "ts" or call in LISTED.get(fault, ())
    return [refused.status, refused.json["message"] if known else f"HTTP status {refused.status}"]


@pytest.mark.parametrize(("world", "words"), [("demo", "maple"), ("edge", "caf")])
def test_two_people_build_a_playlist(request: pytest.FixtureRequest, story: Story, world: str, words: str) -> None:
    demo: Demo = request.getfixturevalue(world)
    begin(demo)
    seen = expected(demo, words)
    begin(demo)
    assert story.tell(demo, words) == {**seen, "refused": [], "waited": 0}
    assert failed(demo) <= UNUSED


@pytest.mark.parametrize("faults", IN_TURN, ids=" ".join)
def test_they_build_the_same_playlist_in_spite_of_faults_in_every_call(
    story: Story, demo: Demo, faults: tuple[str, ...]
) -> None:
    told = tell_with([*product(CALLS, faults)], story, demo)
    assert told == {**expected(demo), "refused": [], "waited": told["waited"]}


def test_they_wait_as_long_as_the_server_wants(story: Story, demo: Demo) -> None:
    told = tell_with([*product(CALLS, WAITING)], story, demo)
    waits = [int(demo.get("albums", fault=fault).headers["Retry-After"]) for fault in WAITING[:2]]
    assert told == {**expected(demo), "refused": [], "waited": sum(waits) * len(CALLS)}


def test_they_see_why_a_request_is_refused_and_ask_again(story: Story, demo: Demo) -> None:
    unknown = [*product(SIGNING_IN, ["422"])]  # there is no such account yet, which is no refusal
    told = tell_with([each for each in product(CALLS, REFUSED) if each not in unknown], story, demo)
    shown = [refusal(demo, story, call, fault) for fault, calls in REFUSED.items() for call in calls]
    assert sorted(told.pop("refused")) == sorted(shown)
    assert told == {**expected(demo), "waited": 0}


def test_they_wait_for_a_late_response_but_not_for_one_without_end(story: Story, demo: Demo) -> None:
    late = zip([call for call in CALLS if call not in ENDLESS], cycle(LATE), strict=False)
    told = tell_with([*late, *product(ENDLESS, ["slow=4s"])], story, demo, patience=2)
    assert told == {**expected(demo), "refused": [], "waited": told["waited"]}


async def exported(account: Client, **body: int) -> dict[str, Any]:
    """Return the files in Base64 or the errors, by format, requested without a generated client."""
    found = {}
    for name in ("csv", "xlsx", "pdf"):
        answer = await account.post(f"producer-intelligence/insights/export/{name}", body)
        found[name] = answer.json if answer.status != 200 else base64.b64encode(answer.body).decode()
    return found


async def test_a_client_gets_files_as_bytes_and_their_errors_as_objects(
    language: str, client: GeneratedClient, anonymous: Client, world: dict[str, str]
) -> None:
    account = anonymous.holding(world["demo"])
    files = await exported(account)
    assert all(isinstance(file, str) for file in files.values())
    assert json.loads(await client.run(CLIENTS / f"files.{language}", account.root, str(account.token))) == [
        files,
        await exported(account, album_id=2**53 - 1),
        await exported(account, album_id=1, artist_id=1),
        await exported(account.holding("none")),
    ]


@pytest.mark.parametrize("language", ["py"], indirect=True)
async def test_a_python_client_returns_every_example_of_the_document(client: GeneratedClient) -> None:
    count, changed = json.loads(await client.run(CLIENTS / "examples.py"))
    assert count > 800
    assert changed == []
