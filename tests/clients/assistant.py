"""Call tools with the official client of the Model Context Protocol: URL TOKEN MODE < [[tool, arguments], …]."""

import asyncio
import json
import sys

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client


async def main(url: str, token: str, mode: str) -> None:
    """Print the revision, the tools, and of each call whether it failed, its text and its structured content."""
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})
    async with http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        results = []
        for name, arguments in json.load(sys.stdin):
            found = await client.call_tool(name, arguments)  # also checks the content against the tool's schema
            results.append([found.is_error, found.content[0].text, found.structured_content])
        print(json.dumps({"revision": client.session.protocol_version, "tools": tools, "results": results}))


asyncio.run(main(*sys.argv[1:]))
