"""Collection beside the update: while one batch is trained on, the next one is collected."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from opentinker.data.segment import Segment
from opentinker.lifecycle import Lifecycle
from opentinker.policies.policy import Policy
from opentinker.training.async_collector import AsyncCollector
from opentinker.training.collector import Collector


class OverlappedCollection:
    """Collects batches in a thread of its own, with copies of the policies in training.

    A batch is of the policies as they were when it was begun, however long it takes, so that the
    data lag by one version and a run repeats bit for bit.
    """

    def __init__(self, collector: Collector | AsyncCollector, batch_size: int) -> None:
        self._collector = collector
        self._batch_size = batch_size
        self._thread = ThreadPoolExecutor(1, 'collection')
        self._batch: Future[list[Segment]] | None = None
        self._closing = False

    def begin(
        self, policies: Mapping[str, Policy], versions: Mapping[str, int], life: Lifecycle
    ) -> None:
        """Collect a batch with the present weights of these policies.

        It is finished also when ``life`` is to end, so that a resumed run is the same, unless the
        environments go on at their own pace anyway, and may hang.
        """
        for group, policy in policies.items():
            self._collector.policies[group].load_state_dict(policy.state_dict())
        self._collector.versions.update(versions)
        self._batch = self._thread.submit(self._collect, life)

    def _collect(self, life: Lifecycle) -> list[Segment]:
        segments: list[Segment] = []
        transitions = dict.fromkeys(self._collector.policies, 0)
        while min(transitions.values()) < self._batch_size:
            if self._closing or (life.stopping and not self._collector.repeatable):
                break
            for segment in self._collector.step():
                segments.append(segment)
                transitions[segment.group] += segment.transitions
        return segments

    def finish(self) -> list[Segment]:
        """The batch that was begun. Raises what the environments raised."""
        assert self._batch is not None
        return self._batch.result()

    def close(self) -> None:
        """Let go of a batch that is under way."""
        self._closing = True
        self._thread.shutdown()
