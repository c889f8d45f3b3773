"""The public part of an account; e-mail addresses appear in no response."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from musicsvc.server.shapes.envelope import JSON, Site


def summary(user_id: int, display_name: str, avatar: str | None, site: Site) -> JSON:
    """The public part of an account; the default avatar is one drawn by the service."""
    return {"id": user_id, "display_name": display_name, "avatar": avatar or f"{site.root}/avatars/{user_id}"}
