"""Network connections: acceptance, limits, TLS, HTTP and timeouts."""
