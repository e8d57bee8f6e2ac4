"""The side of the bus that binds: announces policies and rewards, takes segments and requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import zmq

from opentinker.bus.messages import JOIN, BusError, Endpoints, Request, Welcome
from opentinker.bus.refusals import Refusals
from opentinker.bus.segments import decode_segment
from opentinker.bus.sockets import DATA_QUEUE, closer, from_json, limit, readable, to_json
from opentinker.data.segment import Segment
from opentinker.protocol.arrays import FrameError

_MAX_AT_ONCE = 64
_REPLY_QUEUE = 100
"""Messages that wait for one slow worker before further ones pass it by."""


class CoordinatorBus:
    """Control (PUB), data (PULL) and requests (ROUTER) of one job. For one thread.

    Ports are ``base_port`` and the two after it, or chosen by the system where it is 0. Raises
    :class:`BusError` naming a port that is in use.
    """

    def __init__(self, base_port: int = 0, host: str = '127.0.0.1') -> None:
        self.refused = Refusals()
        self._context = zmq.Context()
        try:
            ports = [base_port + offset if base_port else 0 for offset in range(3)]
            self._control = self._bind(zmq.PUB, host, ports[0], 'control')
            self._data = self._bind(zmq.PULL, host, ports[1], 'data')
            self._requests = self._bind(zmq.ROUTER, host, ports[2], 'requests')
        except BusError:
            self._context.destroy(linger=0)
            raise
        self.endpoints = Endpoints(
            control=self._control.getsockopt_string(zmq.LAST_ENDPOINT),
            data=self._data.getsockopt_string(zmq.LAST_ENDPOINT),
            requests=self._requests.getsockopt_string(zmq.LAST_ENDPOINT),
        )
        sockets = [self._control, self._data, self._requests]
        self._close = closer(self, self._context, sockets)
        self._poller = zmq.Poller()
        self._poller.register(self._data, zmq.POLLIN)
        self._poller.register(self._requests, zmq.POLLIN)

    def _bind(self, kind: int, host: str, port: int, channel: str) -> zmq.Socket:
        socket = self._context.socket(kind)
        limit(socket)
        if kind == zmq.PULL:
            socket.setsockopt(zmq.RCVHWM, DATA_QUEUE)
        else:
            socket.setsockopt(zmq.SNDHWM, _REPLY_QUEUE)
        try:
            socket.bind(f'tcp://{host}:{port or "*"}')
        except zmq.ZMQError as error:
            in_use = error.errno == zmq.EADDRINUSE
            reason = 'is in use by another program' if in_use else f'cannot be bound: {error}'
            raise BusError(
                f'port {port} of {host} (bus channel {channel}) {reason}; '
                'choose another bus.base_port, or 0 for any free ports'
            ) from None
        return socket

    def publish(self, topic: str, body: dict[str, Any], blob: bytes = b'') -> None:
        """Tell all workers; never blocks."""
        self._control.send_multipart([topic.encode(), to_json(body), blob])

    def poll(self, timeout_s: float = 0.0) -> list[Segment | Request]:
        """What arrived, requests first; waits until there is something or ``timeout_s`` is over."""
        self._poller.poll(round(timeout_s * 1000))
        return [*self._take_requests(), *self._take_segments()]

    def welcome(self, request: Request, welcome: Welcome) -> None:
        """Answer a request to join."""
        request.reply(welcome.body(), [update.weights for update in welcome.policies.values()])

    def close(self) -> None:
        """Deliver what was taken, within seconds, and release the ports."""
        self._close()

    def _take_segments(self) -> Iterator[Segment]:
        for frames in _waiting(self._data):
            try:
                yield decode_segment(frames)
            except FrameError as error:
                self.refused.note('segment', error)

    def _take_requests(self) -> Iterator[Request]:
        for frames in _waiting(self._requests):
            if len(frames) != 3:
                self.refused.note('request', f'{len(frames)} frames where three are expected')
                continue
            identity, token, text = frames
            try:
                yield self._request(identity, token, from_json(text))
            except ValueError as error:
                self.refused.note('request', error)
                self._answer(identity, token, {'ok': False, 'error': f'malformed request: {error}'})

    def _request(self, identity: bytes, token: bytes, body: dict[str, Any]) -> Request:
        kind, origin = body.pop('kind', None), body.pop('origin', None)
        if not isinstance(kind, str) or not isinstance(origin, str):
            raise ValueError("'kind' and 'origin' must be text")

        def answer(reply: dict[str, Any], blobs: Sequence[bytes]) -> None:
            if kind == JOIN:
                # a subscriber that hears this echo has missed nothing since
                self.publish(JOIN, {'token': token.hex()})
            self._answer(identity, token, reply, blobs)

        return Request(kind, body, origin, answer)

    def _answer(
        self, identity: bytes, token: bytes, body: dict[str, Any], blobs: Sequence[bytes] = ()
    ) -> None:
        self._requests.send_multipart([identity, token, to_json(body), *blobs], zmq.NOBLOCK)


def _waiting(socket: zmq.Socket) -> Iterator[list[bytes]]:
    for _ in range(_MAX_AT_ONCE):
        if not readable(socket):
            return
        yield socket.recv_multipart()
