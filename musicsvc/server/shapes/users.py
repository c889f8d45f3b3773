"""Build the public JSON of an account, which never contains the e-mail address."""

from musicsvc.server.shapes.envelope import JSON, Site


def summary(user_id: int, display_name: str, avatar: str | None, site: Site) -> JSON:
    """Return the public fields of an account. If `avatar` is None, the avatar is the URL of a generated picture."""
    return {"id": user_id, "display_name": display_name, "avatar": avatar or f"{site.root}/avatars/{user_id}"}
