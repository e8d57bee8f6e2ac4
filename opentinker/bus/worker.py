"""The side of the bus that connects: hears of policies and rewards, sends segments and requests."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import zmq

from opentinker.bus.messages import (
    JOIN,
    POLICY,
    REWARDS,
    STOP,
    BusError,
    Endpoints,
    Message,
    PolicyUpdate,
    Welcome,
    message_of,
)
from opentinker.bus.refusals import Refusals
from opentinker.bus.segments import encode_segment
from opentinker.bus.sockets import DATA_QUEUE, closer, from_json, limit, readable, to_json
from opentinker.data.segment import Segment

_ECHO_S = 0.2
_GIVE_UP_EVERY_MS = 100


class WorkerBus:
    """A worker's connection to a job's coordinator.

    :meth:`request` may run in another thread than the rest; nothing else is for two threads.
    """

    def __init__(
        self, endpoints: Endpoints, name: str, topics: Sequence[str] = (POLICY, REWARDS, STOP)
    ) -> None:
        self.name = name
        self.refused = Refusals()
        self._endpoints = endpoints
        self._context = zmq.Context()
        self._control = self._connect(zmq.SUB, endpoints.control)
        for topic in (*topics, JOIN):
            self._control.subscribe(topic)
        self._data = self._connect(zmq.PUSH, endpoints.data)
        self._requests = self._connect(zmq.DEALER, endpoints.requests)
        # a question that nobody takes in any more must not delay the end
        self._requests.setsockopt(zmq.LINGER, 0)
        sockets = [self._control, self._data, self._requests]
        self._close = closer(self, self._context, sockets)
        self._news: dict[tuple[str, str], Message] = {}
        self._join_token = b''
        self._heard_echo = False

    def _connect(self, kind: int, endpoint: str) -> zmq.Socket:
        socket = self._context.socket(kind)
        limit(socket)
        if kind == zmq.PUSH:
            socket.setsockopt(zmq.SNDHWM, DATA_QUEUE)
            # nothing is taken while nobody is there to receive it
            socket.setsockopt(zmq.IMMEDIATE, 1)
        try:
            socket.connect(endpoint)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise BusError(f'cannot connect to {endpoint!r}: {error}') from None
        return socket

    def join(self, deadline_s: float, give_up: Callable[[], object] = lambda: False) -> Welcome:
        """Become a member: the state of the job, of which every later change will be heard.

        May be repeated, to catch up. Raises :class:`BusError` without an answer in ``deadline_s``,
        or once ``give_up``, which is asked in between, returns something true.
        """
        deadline = time.monotonic() + deadline_s
        while True:
            self._heard_echo = False
            self._join_token = uuid.uuid4().bytes
            reply, blobs = self._ask(JOIN, {}, deadline, self._join_token, give_up)
            if self._hears_echo(min(time.monotonic() + _ECHO_S, deadline)):
                return Welcome.of(reply, blobs)

    def poll(self) -> list[Message]:
        """What changed since the last call, each thing in its newest state only; never blocks."""
        self._drain()
        news = list(self._news.values())
        self._news.clear()
        return news

    def wait(self, timeout_s: float) -> list[Message]:
        """Like :meth:`poll`, but waits for something to come, at most ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while not (news := self.poll()):
            if not self._control.poll(_milliseconds(deadline)):
                break
        return news

    def send(self, segment: Segment, timeout_s: float = 0.0) -> bool:
        """Send a segment; False when there was no room for it in ``timeout_s``."""
        if not self._data.poll(round(timeout_s * 1000), zmq.POLLOUT):
            return False
        self._data.send_multipart(encode_segment(segment))
        return True

    def request(self, kind: str, body: dict[str, Any], timeout_s: float = 10.0) -> dict[str, Any]:
        """Ask the coordinator. Raises :class:`BusError` without an answer in ``timeout_s``."""
        return self._ask(kind, body, time.monotonic() + timeout_s, uuid.uuid4().bytes)[0]

    def close(self) -> None:
        """Deliver what was taken, within seconds, and disconnect."""
        self._close()

    def _ask(
        self,
        kind: str,
        body: dict[str, Any],
        deadline: float,
        token: bytes,
        give_up: Callable[[], object] = lambda: False,
    ) -> tuple[dict[str, Any], list[bytes]]:
        text = to_json({'origin': self.name, **body, 'kind': kind})
        self._requests.send_multipart([token, text], zmq.NOBLOCK)
        while time.monotonic() < deadline and not give_up():
            if not self._requests.poll(min(_milliseconds(deadline), _GIVE_UP_EVERY_MS)):
                continue
            answered, reply, *blobs = self._requests.recv_multipart()
            # answers that came too late for their question are skipped
            if answered == token:
                return from_json(reply), blobs
        raise BusError(f'no answer to {kind!r} from {self._endpoints.requests} in time')

    def _hears_echo(self, deadline: float) -> bool:
        while not self._heard_echo and self._control.poll(_milliseconds(deadline)):
            self._drain()
        return self._heard_echo

    def _drain(self) -> None:
        while readable(self._control):
            frames = self._control.recv_multipart()
            try:
                self._take(*frames)
            except (ValueError, TypeError) as error:
                self.refused.note('announcement', error)

    def _take(self, topic: bytes, text: bytes, blob: bytes) -> None:
        name, body = topic.decode(), from_json(text)
        if name == JOIN:
            if body.get('token') == self._join_token.hex():
                self._heard_echo = True
                # what came before is part of the welcome
                self._news.clear()
            return
        message = message_of(name, body, blob)
        key = message.group if isinstance(message, PolicyUpdate) else ''
        self._news.pop((name, key), None)
        self._news[name, key] = message


def _milliseconds(deadline: float) -> int:
    return max(0, round((deadline - time.monotonic()) * 1000))
