"""The directory of one run of a job: where every process and tool finds its parts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from opentinker.bus.messages import Endpoints
from opentinker.config import JobConfig, load_config
from opentinker.files import write_atomically

_POLL_S = 0.05


class RunDirectory:
    """``config.yaml``, ``endpoints.json``, ``metrics.jsonl``, ``checkpoints/``, ``logs/``."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.endpoints_path = self.path / 'endpoints.json'
        self.metrics_path = self.path / 'metrics.jsonl'
        self.checkpoints = self.path / 'checkpoints'
        self.logs = self.path / 'logs'

    @classmethod
    def create(cls, config: JobConfig, root: Path | str = 'runs') -> RunDirectory:
        """A new directory ``<root>/<job>``, or ``<job>-2`` and so on where runs came before."""
        number = 1
        while True:
            path = Path(root) / (config.job if number == 1 else f'{config.job}-{number}')
            try:
                path.mkdir(parents=True)
                break
            except FileExistsError:
                number += 1
        run = cls(path.resolve())
        run.checkpoints.mkdir()
        run.logs.mkdir()
        text = yaml.safe_dump(config.model_dump(), sort_keys=False)
        write_atomically(run.path / 'config.yaml', text.encode())
        return run

    def config(self) -> JobConfig:
        """The job's config. Raises ConfigError where this is no run directory."""
        return load_config(self.path / 'config.yaml')

    def write_endpoints(self, endpoints: Endpoints) -> None:
        """Tell where the coordinator listens."""
        write_atomically(self.endpoints_path, endpoints.model_dump_json(indent=2).encode())

    def endpoints(self) -> Endpoints | None:
        """Where the coordinator listens; None before it does."""
        try:
            return Endpoints.model_validate_json(self.endpoints_path.read_bytes())
        except FileNotFoundError:
            return None

    def wait_for_endpoints(
        self, deadline_s: float, give_up: Callable[[], object] = lambda: False
    ) -> Endpoints:
        """The endpoints once they are known. Raises TimeoutError after ``deadline_s`` seconds.

        ``give_up`` is asked in between and ends the wait early when it returns something true.
        """
        deadline = time.monotonic() + deadline_s
        while (endpoints := self.endpoints()) is None:
            if give_up() or time.monotonic() > deadline:
                raise TimeoutError(f'no learner has written {self.endpoints_path} in time')
            time.sleep(_POLL_S)
        return endpoints

    def append_metrics(self, values: dict[str, Any]) -> None:
        """Add a line to ``metrics.jsonl``."""
        with self.metrics_path.open('a', encoding='utf-8') as file:
            file.write(json.dumps(values) + '\n')

    def metrics(self) -> list[dict[str, Any]]:
        """All lines of ``metrics.jsonl`` but half a one that a killed writer may have left."""
        if not self.metrics_path.exists():
            return []
        text = self.metrics_path.read_text(encoding='utf-8')
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith('\n')]

    def forget_metrics_after(self, seconds: float) -> None:
        """Drop the lines of what came after a checkpoint that was written at ``seconds``."""
        # as they are written: to the millisecond
        kept = [line for line in self.metrics() if line['seconds'] <= round(seconds, 3)]
        kept = [line for line in kept if 'stopped' not in line]
        text = ''.join(json.dumps(line) + '\n' for line in kept)
        write_atomically(self.metrics_path, text.encode())

    def checkpoint(self, name: str) -> Path:
        """Where a checkpoint is: ``latest``, or ``best`` of the evaluations."""
        return self.checkpoints / f'{name}.safetensors'

    def write_checkpoint(self, name: str, content: bytes) -> None:
        """Put a checkpoint in the place of the one before."""
        write_atomically(self.checkpoint(name), content)

    def stop_reason(self) -> str:
        """Why the learner finished; empty while it has not."""
        return (self.metrics() or [{}])[-1].get('stopped', '')
