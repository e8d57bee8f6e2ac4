import gc
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import zmq

from opentinker.bus.coordinator import CoordinatorBus
from opentinker.bus.messages import (
    METRICS,
    BusError,
    Endpoints,
    Metrics,
    PolicyUpdate,
    Request,
    Stop,
    Welcome,
)
from opentinker.bus.segments import encode_segment
from opentinker.bus.worker import WorkerBus
from opentinker.data.segment import Segment
from opentinker.envs.rewards import RewardSpec

DEADLINE_S = 10.0


def policy(version: int, group: str = 'arm') -> PolicyUpdate:
    return PolicyUpdate(group, version, {'name': 'linear'}, 7, b'weights %d' % version)


def segment(first_step: int = 0) -> Segment:
    shape = (2, 1, 1)
    return Segment(
        group='arm',
        observation={'q': np.zeros((*shape, 3), np.float32)},
        last_observation={'q': np.zeros((1, 1, 3), np.float32)},
        action=np.zeros((*shape, 2), np.float32),
        log_prob=np.zeros(shape, np.float32),
        reward=np.zeros(shape, np.float32),
        signals={},
        active=np.ones(shape, bool),
        terminated=np.zeros((2, 1), bool),
        truncated=np.zeros((2, 1), bool),
        final_index=np.zeros((0, 2), np.int64),
        final_observation={'q': np.zeros((0, 1, 3), np.float32)},
        policy_version=np.zeros(2, np.int64),
        reward_revision=np.zeros(2, np.int64),
        step=np.arange(2) + first_step,
        sampler='test',
    )


class Coordinator:
    """A coordinator that a thread serves, so that a test may wait for its answers."""

    def __init__(self) -> None:
        self.bus = CoordinatorBus()
        self.version = 0
        self.served: list[Segment | Request] = []
        self._todo: list[Callable[[], None]] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stopping or self._todo:
            while self._todo:
                self._todo.pop(0)()
            for item in self.bus.poll(0.01):
                if isinstance(item, Request) and item.kind == 'join':
                    spec = RewardSpec(terms={}, revision=self.version)
                    policies = {'arm': policy(self.version)}
                    self.bus.welcome(item, Welcome(spec, policies, None, {'job': 'test'}))
                elif isinstance(item, Request):
                    item.reply({'ok': True, 'echo': item.body, 'origin': item.origin})
                self.served.append(item)
        self.bus.close()

    def publish(self, topic: str, body: dict, blob: bytes = b'') -> None:
        self._todo.append(lambda: self.bus.publish(topic, body, blob))

    def announce(self, version: int) -> None:
        def now() -> None:
            self.version = version
            self.bus.publish('policy', policy(version).body(), policy(version).weights)

        self._todo.append(now)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f'not in time; served {self.served}'
            threading.Event().wait(0.005)

    def close(self) -> None:
        self._stopping = True
        self._thread.join(DEADLINE_S)


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    coordinator = Coordinator()
    yield coordinator
    coordinator.close()


@pytest.fixture
def worker(coordinator) -> Iterator[WorkerBus]:
    worker = WorkerBus(coordinator.bus.endpoints, 'sampler_0')
    yield worker
    worker.close()


def test_a_worker_that_joins_is_told_the_state_of_the_job(coordinator, worker):
    welcome = worker.join(DEADLINE_S)
    assert welcome.policies == {'arm': policy(0)}
    assert welcome.rewards == RewardSpec(terms={})
    assert welcome.config == {'job': 'test'}
    assert welcome.descriptor is None


def test_nothing_published_around_a_join_is_missed_or_heard_twice(coordinator):
    # versions stream out while workers come; each hears of its welcome's version, then later ones
    for round_ in range(8):
        worker = WorkerBus(coordinator.bus.endpoints, f'worker {round_}')
        for version in range(10 * round_ + 1, 10 * round_ + 11):
            coordinator.announce(version)
        version = worker.join(DEADLINE_S).policies['arm'].version
        while version < 10 * round_ + 10:
            (update,) = worker.wait(DEADLINE_S)
            assert update.version > version
            version = update.version
        worker.close()


def test_only_the_newest_state_is_handed_over(coordinator, worker):
    worker.join(DEADLINE_S)
    for version in range(1, 6):
        coordinator.announce(version)
    coordinator.publish('policy', policy(3, 'camera').body(), b'other group')
    for revision in range(1, 4):
        coordinator.publish('rewards', RewardSpec(terms={}, revision=revision).model_dump())
    worker.request('ping', {}, DEADLINE_S)
    coordinator.publish('stop', {'reason': 'enough'})
    seen = []
    while not seen or seen[-1] != Stop('enough'):
        news = worker.wait(DEADLINE_S)
        assert news
        seen += news
    versions = [
        item.version for item in seen if isinstance(item, PolicyUpdate) and item.group == 'arm'
    ]
    assert versions[-1] == 5
    assert [item.group for item in seen if isinstance(item, PolicyUpdate)].count('camera') == 1
    assert [item.revision for item in seen if isinstance(item, RewardSpec)][-1] == 3
    assert worker.poll() == []


def test_metrics_reach_who_asks_for_them(coordinator, worker):
    panel = WorkerBus(coordinator.bus.endpoints, 'panel', topics=(METRICS,))
    panel.join(DEADLINE_S)
    worker.join(DEADLINE_S)
    coordinator.announce(1)
    coordinator.publish('metrics', {'return': 1.5})
    assert panel.wait(DEADLINE_S) == [Metrics({'return': 1.5})]
    assert worker.wait(DEADLINE_S) == [policy(1)]
    panel.close()


def test_segments_sent_before_closing_all_arrive(coordinator, worker):
    for index in range(5):
        assert worker.send(segment(2 * index), DEADLINE_S)
    worker.close()
    coordinator.wait_for(lambda: len(coordinator.served) == 5)
    assert [int(item.step[0]) for item in coordinator.served] == [0, 2, 4, 6, 8]


def test_a_full_queue_is_said_and_does_not_block():
    bus = CoordinatorBus()
    worker = WorkerBus(bus.endpoints, 'fast')
    big = replace(segment(), episodes={'ballast': np.zeros(200_000)})
    assert worker.send(big, DEADLINE_S)
    sent = 1
    while worker.send(big, 0.2):
        sent += 1
        assert sent < 100
    received = 0
    while received < sent:
        items = bus.poll(DEADLINE_S)
        assert items
        received += len(items)
    worker.close()
    bus.close()


def test_a_request_is_answered_and_names_its_origin(coordinator, worker):
    reply = worker.request('rewards', {'settings': {'distance': 2}}, DEADLINE_S)
    assert reply == {'ok': True, 'echo': {'settings': {'distance': 2}}, 'origin': 'sampler_0'}
    named = worker.request('rewards', {'origin': '/cell/zmq_bridge'}, DEADLINE_S)
    assert named['origin'] == '/cell/zmq_bridge'


def test_without_a_coordinator_join_and_send_fail_in_time():
    endpoints = Endpoints(**dict.fromkeys(('control', 'data', 'requests'), 'tcp://127.0.0.1:9'))
    worker = WorkerBus(endpoints, 'lonely')
    with pytest.raises(BusError, match=r"no answer to 'join' from tcp://127\.0\.0\.1:9"):
        worker.join(0.1)
    with pytest.raises(BusError):
        worker.join(3600, give_up=lambda: True)
    assert not worker.send(segment(), 0.05)
    worker.close()


def test_a_bus_that_was_lost_unclosed_does_not_hold_up_the_garbage_collector():
    coordinator = CoordinatorBus()
    ring = [coordinator, WorkerBus(coordinator.endpoints, 'lost')]
    ring.append(ring)
    sockets = ring[1]._control
    del coordinator, ring
    gc.collect()
    assert sockets.closed


def test_a_malformed_endpoint_is_named():
    endpoints = Endpoints(control='nowhere', data='nowhere', requests='nowhere')
    with pytest.raises(BusError, match="cannot connect to 'nowhere'"):
        WorkerBus(endpoints, 'lost')


def three_free_ports():
    """The first of three ports in a row that nobody uses."""
    while True:
        with socket.socket() as probe, socket.socket() as second, socket.socket() as third:
            probe.bind(('127.0.0.1', 0))
            base = probe.getsockname()[1]
            try:
                second.bind(('127.0.0.1', base + 1))
                third.bind(('127.0.0.1', base + 2))
            except (OSError, OverflowError):
                continue
            return base


def test_a_port_in_use_is_named_and_the_others_are_released():
    base = three_free_ports()
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', base + 1))
        taken.listen()
        with pytest.raises(BusError, match=rf'port {base + 1} of .*data.* is in use'):
            CoordinatorBus(base_port=base)
    again = CoordinatorBus(base_port=base)
    assert again.endpoints.data == f'tcp://127.0.0.1:{base + 1}'
    again.close()


@pytest.mark.parametrize(
    ('channel', 'kind', 'frames'),
    [
        ('data', zmq.PUSH, [b'\x80\x04noise']),
        ('data', zmq.PUSH, [bytes(frame) for frame in encode_segment(segment())][:-1]),
        ('requests', zmq.DEALER, [b'one frame']),
        ('requests', zmq.DEALER, [b'token', b'[' * 100_000]),
        ('requests', zmq.DEALER, [b'token', b'\xff\xfe']),
        ('requests', zmq.DEALER, [b'token', b'[1]']),
        ('requests', zmq.DEALER, [b'token', json.dumps({'kind': 3, 'origin': 'x'}).encode()]),
    ],
)
def test_a_hostile_message_is_refused_and_counted(coordinator, worker, channel, kind, frames):
    with zmq.Context() as context, context.socket(kind) as stranger:
        stranger.connect(getattr(coordinator.bus.endpoints, channel))
        stranger.send_multipart(frames)
        coordinator.wait_for(lambda: coordinator.bus.refused.total() == 1)
        if len(frames) == 2 and channel == 'requests':
            assert stranger.poll(DEADLINE_S * 1000)
            assert json.loads(stranger.recv_multipart()[1])['ok'] is False
    assert worker.request('ping', {}, DEADLINE_S)['ok']


def test_a_malformed_announcement_is_counted_and_skipped(coordinator, worker):
    worker.join(DEADLINE_S)
    coordinator.publish('rewards', {'revision': 'many'})
    coordinator.publish('policy', {'group': 'arm'}, b'')
    coordinator.announce(4)
    assert worker.wait(DEADLINE_S) or worker.wait(DEADLINE_S)
    assert worker.refused.total() == 2
