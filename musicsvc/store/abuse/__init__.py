"""The rules against abuse of the API, and their enforcement: tokens are revoked and accounts suspended."""
