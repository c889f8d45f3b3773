"""Responses: encoding, streaming, and the memory that they may take."""
