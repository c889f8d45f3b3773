"""A client of the API without faults, in which each habit is a method, so that a bad client overrides one of them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any

from musicsvc.store.seeding.fixtures import DEMO_EMAIL

MISSING = object()
REFUSED = (429, 503)


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    json: Any


@dataclass
class GoodClient:
    """A small app for playlists. `tokens`: the values of tokens that it was given, by name; `main` is its own."""

    address: tuple[str, int]
    tokens: dict[str, str]
    password: str
    token: str = ""
    kept: dict[str, tuple[str, Any]] = field(default_factory=dict)  # ETags and responses by path
    number: int = 0

    def run(self) -> None:
        """Do all that the app does."""
        self.token = self.tokens["main"]
        tracks = self.read_list("/api/v1/tracks")
        artists = self.read_list("/api/v1/artists")
        for _ in range(4):
            self.open("/api/v1/artists", artists[-1])
        self.rename("/api/v1/artists", artists)
        self.describe(self.read_list("/api/v1/albums"))
        self.listen([track["id"] for track in tracks[:3]])
        self.compile([track["id"] for track in tracks[3:6]])
        self.look_around()
        self.use_read_only()
        self.outlive_token()
        self.look_around()

    # The network

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Response | None:
        """Send one request. Return None if there is no response."""
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        content = None if body is None else self.encode(body)
        if content is not None:
            headers["Content-Type"] = "application/json"
        connection = HTTPConnection(*self.address, timeout=60)
        try:
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            text = response.read()
        except (HTTPException, ConnectionError):
            return None
        finally:
            connection.close()
        return Response(response.status, dict(response.getheaders()), json.loads(text) if text else None)

    def encode(self, body: Any) -> bytes:
        return json.dumps(body).encode()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Response | None:
        """Send a request until it is not refused for its time. Return None if there is no response."""
        while (response := self.send(method, path, body, **headers)) is not None and response.status in REFUSED:
            self.wait(float(response.headers["Retry-After"]))
        return response

    def wait(self, seconds: float) -> None:
        """Wait, by the clock of the demo."""
        assert self.send("POST", "/demo/clock", {"advance": f"{seconds:.0f}s"}) is not None

    def get(self, path: str) -> Any:
        """Read a resource, from memory if it has not changed."""
        tag, before = self.kept.get(path, (None, None))
        response = self.ask("GET", path, **({} if tag is None else self.condition(tag)))
        assert response is not None
        if response.status == 304:
            return before
        if response.status == 200:
            self.kept[path] = (response.headers["Etag"], response.json)
        return response.json

    def condition(self, tag: str) -> dict[str, str]:
        return {"If-None-Match": tag}

    # What it does

    def read_list(self, path: str) -> list[Any]:
        """Read all pages of a list."""
        rows: list[Any] = []
        for page in self.pages(path):
            rows += page["data"]
        return rows

    def pages(self, path: str) -> Iterator[Any]:
        number, last = 0, 1
        while number < last:
            number += 1
            page = self.page(path, number)
            last = page["last_page"]
            yield page

    def page(self, path: str, number: int) -> Any:
        response = self.get(f"{path}?page={number}")
        (found,) = (part for part in response.values() if isinstance(part, dict))
        return found

    def open(self, path: str, row: Any) -> Any:
        return self.get(f"{path}/{self.id_of(row['id'])}")

    def id_of(self, number: int) -> int | str:
        return number

    def rename(self, path: str, rows: list[Any]) -> None:
        """Write the names back, as an editor does that was opened and saved."""
        for row in rows:
            response = self.ask("PATCH", f"{path}/{row['id']}", {"name": self.text_of(row["name"])})
            assert response is not None

    def text_of(self, text: str) -> str:
        return text

    def describe(self, albums: list[Any]) -> None:
        """Write the description of an album back, which is null."""
        album = next(album for album in albums if album["description"] is None)
        body = {"description": None}
        assert self.ask("PATCH", f"/api/v1/albums/{album['id']}", body) is not None

    def listen(self, tracks: list[int]) -> None:
        """Report plays, until a response says that they have arrived."""
        plays = [self.play(track, minute) for minute, track in enumerate(tracks)]
        for _ in range(3):
            response = self.ask("POST", "/api/v1/plays", {"plays": plays})
            if response is not None:
                assert response.status == 201, response
                return
            plays = self.again(plays)

    def play(self, track: int, minute: int) -> dict[str, Any]:
        return {"track_id": track, "played_at": f"2026-02-28T12:{minute:02}:00Z", "client_id": self.new_id()}

    def new_id(self) -> str:
        self.number += 1
        return f"play {self.number}"

    def again(self, plays: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what to report after a report without a response."""
        return plays

    def compile(self, tracks: list[int]) -> None:
        """Create a playlist, once."""
        body = {"name": "Sunday", "public": True}
        response = self.ask("POST", "/api/v1/playlists", body)
        if response is None:
            playlist = self.find_playlist(body["name"])
            if playlist is None:
                response = self.ask("POST", "/api/v1/playlists", body)
        if response is not None:
            playlist = response.json["playlist"]
        assert self.ask("POST", f"/api/v1/playlists/{playlist['id']}/tracks/add", {"ids": tracks}) is not None

    def find_playlist(self, name: Any) -> Any:
        """Return the playlist that may have been created, or None."""
        return next((row for row in self.read_list("/api/v1/playlists") if row["name"] == name), None)

    def look_around(self) -> None:
        for path in ("/api/v1/users/me", "/api/v1/genres", "/api/v1/users/me", "/api/v1/albums"):
            self.get(path)

    def outlive_token(self) -> None:
        """Go on after the token was revoked, with a new one."""
        rule = {"fault": "401-revoked", "match": {"token": self.token}, "count": 1}
        assert self.send("POST", "/demo/faults", rule) is not None
        response = self.ask("GET", "/api/v1/users/me")
        assert response is not None
        assert response.status == 401
        self.renew_token()

    def renew_token(self) -> None:
        self.token = ""
        body = {"email": DEMO_EMAIL, "password": self.password, "token_name": "next"}
        response = self.ask("POST", "/api/v1/auth/login", body)
        assert response is not None
        self.token = response.json["user"]["access_token"]
        self.kept.clear()

    def use_read_only(self) -> None:
        """Try to write with a token that can only read, and stop that."""
        own, self.token = self.token, self.tokens["read-only"]
        self.write_read_only()
        self.get("/api/v1/users/me")
        self.token = own
        self.kept.clear()

    def write_read_only(self) -> None:
        response = self.ask("POST", "/api/v1/artists", {"name": "Barbara Strozzi"})
        assert response is not None
        assert response.status == 403
