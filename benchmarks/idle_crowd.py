"""Clients that send one request and keep their connection; prints their number, and how many stay until the end.

    idle_crowd.py PORT TRUSTED CLIENTS

It ends when its standard input does.
"""

import select
import socket
import ssl
import sys

from musicsvc.server.process import open_files

REQUEST = "GET /api/v1/albums?perPage=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n"


def connect(port: int, request: bytes, tls: ssl.SSLContext | None) -> socket.socket:
    """Open a connection that has received an answer."""
    line = socket.create_connection(("127.0.0.1", port), timeout=30)
    if tls is not None:
        line = tls.wrap_socket(line, server_hostname="127.0.0.1")
    line.sendall(request)
    received = line.recv(1 << 16)
    head, _, body = received.partition(b"\r\n\r\n")
    missing = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]) - len(body)
    while missing > 0:
        missing -= len(line.recv(missing))
    return line


def closed(lines: list[socket.socket]) -> int:
    """Return the number of connections that the server has closed."""
    poll = select.poll()
    for line in lines:
        poll.register(line, select.POLLIN | select.POLLRDHUP)
    return sum(bool(event & (select.POLLRDHUP | select.POLLHUP | select.POLLERR)) for _, event in poll.poll(0))


def main() -> None:
    """Connect and stay."""
    token = sys.stdin.readline().strip()
    port, trusted, clients = sys.argv[1:]
    open_files.raise_limit()
    tls = None if trusted == "-" else ssl.create_default_context(cafile=trusted)
    request = REQUEST.format(token).encode()
    lines = [connect(int(port), request, tls) for _ in range(int(clients))]
    print(len(lines), flush=True)
    sys.stdin.read()
    print(len(lines) - closed(lines), flush=True)


if __name__ == "__main__":
    main()
