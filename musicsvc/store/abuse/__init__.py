"""Rules against abuse of the API, and their enforcement."""
