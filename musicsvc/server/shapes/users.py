"""The user summary: exactly id, display_name, avatar; e-mail addresses appear in no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from musicsvc.server.shapes.envelope import JSON, Site


def summary(user_id: int, display_name: str, avatar: str | None, site: Site) -> JSON:
    """The summary; without an avatar of the account's own, the one that the service draws."""
    return {"id": user_id, "display_name": display_name, "avatar": avatar or f"{site.root}/avatars/{user_id}"}
