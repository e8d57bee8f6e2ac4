"""Messages that were thrown away: counted by reason, with the details in the log."""

from __future__ import annotations

import logging
from collections import Counter

_log = logging.getLogger(__name__)


class Refusals(Counter[str]):
    """Counts by reason. Reasons are few; what differs from message to message is detail."""

    def note(self, reason: str, detail: object) -> None:
        """Count one, and log the 1st, 2nd, 4th, 8th ...: a flood must not fill the disk."""
        self[reason] += 1
        if self[reason].bit_count() == 1:
            _log.warning('%s refused (%d so far): %.500s', reason, self[reason], detail)
