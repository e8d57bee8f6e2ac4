"""What both ends of the bus agree on about their sockets."""

from __future__ import annotations

import json
import weakref
from typing import Any

import zmq

MAX_FRAME = 1 << 28
"""Bytes of one frame; ZeroMQ cuts the connection of a peer that announces more."""
LINGER_MS = 2000
"""How long a closing socket tries to deliver what it took: long for loopback, short for a user."""
DATA_QUEUE = 8
"""Segments that wait on each side before a sampler is told to hold on."""


def limit(socket: zmq.Socket) -> None:
    """Bound what a socket accepts and how long it takes to close."""
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_FRAME)
    socket.setsockopt(zmq.LINGER, LINGER_MS)


def closer(owner: object, context: zmq.Context, sockets: list[zmq.Socket]) -> weakref.finalize:
    """What closes the sockets, once: when it is called, when the owner is lost, or at exit.

    A context waits for its sockets when it goes, which would be forever if the garbage collector
    took a lost bus apart in the wrong order.
    """

    def close() -> None:
        for socket in sockets:
            socket.close()
        context.term()

    return weakref.finalize(owner, close)


def readable(socket: zmq.Socket) -> bool:
    """Whether a message waits; a microsecond, so that it may be asked in every step."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


def to_json(body: dict[str, Any]) -> bytes:
    """A JSON body."""
    return json.dumps(body, separators=(',', ':')).encode()


def from_json(frame: bytes) -> dict[str, Any]:
    """The object in a JSON frame. Raises ValueError where there is none."""
    try:
        body = json.loads(frame)
    except RecursionError:
        raise ValueError('nested too deeply') from None
    if not isinstance(body, dict):
        raise ValueError(f'expected an object, got {type(body).__name__}')
    return body
