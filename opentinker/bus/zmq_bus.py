"""The bus named ``zmq``: ZeroMQ over loopback TCP."""

from __future__ import annotations

from typing import NamedTuple

from opentinker import registry
from opentinker.bus.coordinator import CoordinatorBus
from opentinker.bus.worker import WorkerBus


class Bus(NamedTuple):
    """Both ends of a kind of bus."""

    coordinator: type[CoordinatorBus]
    worker: type[WorkerBus]


ZMQ = registry.register('bus', 'zmq')(Bus(CoordinatorBus, WorkerBus))
