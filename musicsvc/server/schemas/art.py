"""Requests and responses of cover art: templates for covers, and previews drawn from them."""

from typing import Annotated

from pydantic import AfterValidator, Field

from musicsvc.reports.art import covers
from musicsvc.server.schemas.answers import Answer, Success, Uri
from musicsvc.server.schemas.fields import Body, Id, Text


def _known(template_id: int) -> int:
    if template_id not in {template.id for template in covers.templates()}:
        raise ValueError(f"There is no template {template_id}.")
    return template_id


class PreviewIn(Body):
    """The template and texts of a cover."""

    template_id: Annotated[Id, AfterValidator(_known)] = Field(examples=[1])
    title: Annotated[str, Text(1, 120)] = Field(examples=["Maple Leaf Rag"])
    artist: Annotated[str, Text(1, 120)] = Field(examples=["Scott Joplin"])


class Preview(Success):
    """A response with the URL of the cover preview, which is valid for 24 hours."""

    preview_url: Uri


class Template(Answer):
    """A template for covers."""

    id: int
    name: str = Field(examples=["Horizon"])
    description: str = Field(examples=["A sun behind ridges of hills, the text in the sky."])
    thumbnail: Uri


class Templates(Success):
    """A response with all cover templates."""

    templates: list[Template]
