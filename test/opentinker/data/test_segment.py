import numpy as np

from opentinker.data.segment import Segment


def test_transitions_are_those_of_active_agents():
    active = np.ones((3, 2, 4), bool)
    active[0, :, 1] = False
    shape = active.shape
    segment = Segment(
        group='arm', observation={}, last_observation={}, action=np.zeros((*shape, 1)),
        log_prob=np.zeros(shape), reward=np.zeros(shape), signals={}, active=active,
        terminated=np.zeros((3, 2), bool), truncated=np.zeros((3, 2), bool),
        final_index=np.zeros((0, 2), int), final_observation={}, policy_version=np.zeros(3),
        reward_revision=np.zeros(3), step=np.arange(3),
    )  # fmt: skip
    assert segment.transitions == 3 * 2 * 4 - 2
