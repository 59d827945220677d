#!/usr/bin/env python3
"""A mirror for `.ci/packages`: serves a directory over HTTPS on port 8443, and resolves every DNS name to 127.0.0.1.

    .ci/mirror.py DIRECTORY CERTIFICATE KEY
"""

import functools
import http.server
import socket
import ssl
import sys
import threading


def answer(query):
    """Returns the DNS response to a query for an address. The response to other queries contains no records."""
    end = query.index(b"\0", 12) + 5  # the name, its end, type and class
    is_ipv4 = query[end - 4 : end - 2] == b"\0\1"
    record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_ipv4 else b""
    return query[:2] + b"\x81\x80\0\1" + bytes([0, bool(record)]) + b"\0\0\0\0" + query[12:end] + record


def serve_names():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 53))
        while True:
            query, client = server.recvfrom(512)
            server.sendto(answer(query), client)


def main():
    directory, certificate, key = sys.argv[1:]
    threading.Thread(target=serve_names, daemon=True).start()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=directory)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 8443), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
