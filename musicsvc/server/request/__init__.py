"""Reading, checking and dispatch of requests."""
