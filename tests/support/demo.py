"""A running demo, and a client of it that also sees broken responses."""

import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict

from tests.support.program import Program, until
from tests.support.serving import Answer

NOW = "2026-03-01T12:00:00Z"


@dataclass
class Demo:
    """A demo and the token that it has printed. `folder`: the folder of its temporary files."""

    root: str
    token: str
    folder: Path
    program: Program

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.root.rpartition("/")[2].split(":")
        return host, int(port)

    def ask(
        self, method: str, path: str, body: Any = None, *, fault: str | None = None, token: str | None = "", **more: str
    ) -> Answer:
        """Send a request over a connection of its own; `path` may begin below `/api/v1`. `token`: None for none."""
        headers = {name.replace("_", "-"): value for name, value in more.items()}
        if token is not None:
            headers["Authorization"] = f"Bearer {token or self.token}"
        if fault is not None:
            headers["X-Demo-Fault"] = fault
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = HTTPConnection(*self.address, timeout=60)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path if path.startswith("/") else f"/api/v1/{path}", sent, headers)
            answer = connection.getresponse()
            return Answer(answer.status, CIMultiDict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def get(self, path: str, **more: Any) -> Answer:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.ask("POST", path, body, **more)

    def raw(self, method: str, path: str, body: Any = None, *, fault: str) -> Iterator[bytes]:
        """Send a request, and yield what arrives until the connection ends."""
        content = b"" if body is None else json.dumps(body).encode()
        head = [
            f"{method} {path} HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {self.token}",
            f"X-Demo-Fault: {fault}",
            "Content-Type: application/json",
            f"Content-Length: {len(content)}",
        ]
        with socket.create_connection(self.address, 60) as connection:
            connection.sendall("\r\n".join([*head, "", ""]).encode() + content)
            while piece := connection.recv(65536):
                yield piece


@contextmanager
def running_demo(folder: Path, *options: str, now: str | None = NOW, **settings: str) -> Iterator[Demo]:
    """Run a demo for the block, in `folder`, with these variables of the environment. `now`: None for the present."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("MUSICSVC_")]:  # noqa: TID251 - of the test run
            patch.delenv(name)
        patch.setenv("TMPDIR", str(folder))
        patch.setenv("MUSICSVC_DATA_DIR", str(folder / "data"))
        for name, value in settings.items():
            patch.setenv(name, value)
        start = () if now is None else ("--now", now)
        program = Program(folder, "serve", "--demo", "--port", "0", *start, *options)
    with program:
        until(lambda: program.out.endswith("\n") or program.process.poll() is not None)
        token, root = re.findall(r"Bearer (\w+)\" (http://[^/]+)", program.out)[0]
        yield Demo(root, token, folder, program)
