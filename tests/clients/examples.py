"""Parse every example of a response with a client that openapi-python-client generated as `generated`.

Prints how many there are, and those that the client does not return as they are.
"""

import importlib
import json
from pathlib import Path
from typing import Any

import httpx
from generated import Client

# The client writes times in this form.
document = json.loads(Path("openapi.json").read_text("utf-8").replace(".000000Z", "+00:00"))
client = Client(base_url="http://127.0.0.1", raise_on_unexpected_status=True)


def examples(response: dict[str, Any]) -> list[Any]:
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    content = response.get("content", {}).get("application/json", {})
    return (
        [content["example"]]
        if "example" in content
        else [each["value"] for each in content.get("examples", {}).values()]
    )


cases = [
    (operation, status, example)
    for methods in document["paths"].values()
    for operation in methods.values()
    for status, response in operation["responses"].items()
    for example in examples(response)
]
changed = []
for operation, status, example in cases:
    module = importlib.import_module(f"generated.api.{operation['tags'][0]}.{operation['operationId']}")
    found = module._build_response(client=client, response=httpx.Response(int(status), json=example)).parsed
    if found.to_dict() != example:
        changed.append([operation["operationId"], status, example, found.to_dict()])
print(json.dumps([len(cases), changed]))
