"""The parts of the server that exist in demo mode only (docs/testing-your-client.md)."""
