"""The rules of faults with which a demo begins if it scores clients, so that unmodified ones meet the common faults."""

from collections.abc import Sequence
from typing import Any

from musicsvc.server.demo.rules import Match

# The seeds let the 5th GET be refused, and the 11th: not the first ones, by which people see if the demo works.
RULES: Sequence[dict[str, Any]] = (
    {"match": Match("GET"), "fault": "429", "probability": 0.125, "count": 1, "seed": 6},
    {"match": Match("GET"), "fault": "503", "probability": 0.125, "count": 1, "seed": 34},
    *(
        {"match": Match("POST", route), "fault": "lost-response", "probability": 1.0, "count": 1, "seed": 0}
        for route in ("/api/v1/plays", "/api/v1/playlists")
    ),
)
