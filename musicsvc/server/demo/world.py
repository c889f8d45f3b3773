"""The state of a running demo."""

from typing import Any

from musicsvc.server.demo.rules import Rules


class World:
    """The rules that inject faults into the responses of a demo."""

    def __init__(self) -> None:
        self.rules = Rules()

    @property
    def sources(self) -> dict[str, Any]:
        """The values of parameters of handlers, by name."""
        return {"rules": self.rules}
