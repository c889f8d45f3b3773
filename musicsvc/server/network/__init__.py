"""Connections: accepting, TLS, the protocol and its time limits."""
