"""Responses: encoding, streaming, caching and limits on memory."""
