"""Print exports and the errors of refused ones, with a client that openapi-python-client generated as `generated`."""

import base64
import json
import sys
from typing import Any

from generated import AuthenticatedClient
from generated.api.exports import exports_export_csv, exports_export_pdf, exports_export_xlsx
from generated.models import ExportIn, InsightsError, ScopeIn
from generated.types import File

root, token = sys.argv[1:]
EXPORTS: dict[str, tuple[Any, type[Any]]] = {
    "csv": (exports_export_csv, ExportIn),
    "xlsx": (exports_export_xlsx, ExportIn),
    "pdf": (exports_export_pdf, ScopeIn),
}


def exported(given: str, **body: int) -> dict[str, Any]:
    """Return the files in Base64 or the errors, by format."""
    client = AuthenticatedClient(base_url=root, token=given, raise_on_unexpected_status=True)
    found: dict[str, Any] = {}
    for name, (export, schema) in EXPORTS.items():
        answer = export.sync(client=client, body=schema(**body))
        assert isinstance(answer, File | InsightsError), answer
        is_file = isinstance(answer, File)
        found[name] = base64.b64encode(answer.payload.read()).decode() if is_file else answer.to_dict()
    return found


print(
    json.dumps(
        [
            exported(token),
            exported(token, album_id=2**53 - 1),
            exported(token, album_id=1, artist_id=1),
            exported("none"),
        ]
    )
)
