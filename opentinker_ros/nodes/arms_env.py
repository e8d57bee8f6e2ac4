"""The arms_env node: the cell of arms as a multi-agent environment on topics.

It publishes one observation for all agents, waits for their joint-angle commands, gates them, sends
them to the arms, and publishes the transition when the arms have moved.
"""

from __future__ import annotations

import sys
import time
from enum import Enum
from typing import Any

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_msgs.msg import String

from opentinker.envs.rewards import RewardError, RewardSpec
from opentinker_ros import qos
from opentinker_ros.arms.arms_env import ArmsEnv, ArmsSettings, make_cell
from opentinker_ros.conversions import (
    ObservationCodec,
    from_reward_settings,
    to_bytes,
    to_reward_settings,
)
from opentinker_ros.msg import JointCommand, Observation, RewardSettings, Transition
from opentinker_ros.nodes.agent_commands import AgentCommands, CommandError
from opentinker_ros.nodes.diagnostics import Diagnostics
from opentinker_ros.nodes.host import run
from opentinker_ros.nodes.parameters import declare, declare_model
from opentinker_ros.nodes.reward_parameters import RewardParameters
from opentinker_ros.nodes.transitions import StepBegin, to_transition
from opentinker_ros.srv import Reset
from opentinker_ros.worlds.ros import POSITION, TRAJECTORY, RosWorld, RosWorldSettings

_ENV = np.array([0])
_START_GRACE_S = 5.0
"""The others may still be starting: nothing is wrong yet."""


class Phase(Enum):
    """What the control loop waits for."""

    IDLE = 'activation'
    RESETTING = 'the start of an episode'
    ACTING = 'joint commands of the agents'
    MOVING = 'the arms'


class ArmsEnvNode(LifecycleNode):
    """RosWorld + ArmsEnv, driven by the messages that arrive."""

    def __init__(self, **options: Any) -> None:
        super().__init__('arms_env', **options)
        self._settings = ArmsSettings(**declare_model(self, ArmsSettings))
        self._lockstep = declare(
            self,
            'lockstep',
            True,
            'the simulator moves one period a command; '
            'otherwise time flows and control runs at its own rate',
        )
        self._per_arm = declare(
            self, 'per_arm_topics', False, 'one joint-state and command topic an arm'
        )
        self._interface = declare(
            self, 'command_interface', POSITION, f'{POSITION} or {TRAJECTORY}'
        )
        self._deadline = declare(
            self,
            'liveness_deadline',
            2.0,
            's (steady) without progress after which the episode is truncated',
            low=0.01,
            high=3600.0,
        )
        self._seed = declare(self, 'seed', 0, 'seed of the episodes', low=0)
        self._diagnostics = Diagnostics(self, self._report)
        self._since = time.monotonic()
        self._phase = Phase.IDLE
        self._step = 0
        self._episode = 0
        self._episode_step = 0

    def _report(self) -> dict[str, Any]:
        if self._phase is Phase.IDLE:
            return {}
        gated = {
            f'gate: {reason}': int(changes.sum())
            for reason, changes in self._env.gate.changes.items()
        }
        return {
            'steps': self._step,
            'episode': self._episode,
            'waiting for': self._phase.value,
            **gated,
        }

    # life cycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            cell = make_cell(self._settings)
            self._world = RosWorld(
                self,
                RosWorldSettings(
                    arms=cell.joint_names,
                    object_names=cell.object_names,
                    period=self._settings.control_period,
                    lockstep=self._lockstep,
                    per_arm_topics=self._per_arm,
                    command_interface=self._interface,
                ),
                on_state=self._on_state,
                count=self._diagnostics.count,
            )
            self._env = ArmsEnv(self._world, cell, self._settings, seed=self._seed)
        except (ValueError, LookupError, OSError) as error:
            self.get_logger().error(f'cannot build the environment: {error}')
            return TransitionCallbackReturn.FAILURE
        self._descriptor = self._env.descriptor
        (self._group,) = self._descriptor.groups
        self._codec = ObservationCodec(self._descriptor)
        self._crc = self._descriptor.crc()
        self._gathered = AgentCommands(self._descriptor.groups[self._group])
        self._entities()
        self._reward_parameters = RewardParameters(
            self,
            self._env.rewards,
            self._descriptor.groups[self._group].signals,
            self._request_rewards,
        )
        return TransitionCallbackReturn.SUCCESS

    def _entities(self) -> None:
        options = {'qos_overriding_options': qos.OVERRIDABLE}
        self._observation_publisher = self.create_publisher(
            Observation, 'observations', qos.STEP, **options
        )
        self._transition_publisher = self.create_publisher(
            Transition, 'transitions', qos.STREAM, **options
        )
        self._descriptor_publisher = self.create_publisher(String, 'descriptor', qos.LATCHED)
        self._request_publisher = self.create_publisher(RewardSettings, 'reward_requests', qos.STEP)
        self.create_subscription(
            JointCommand, 'joint_commands', self._on_command, qos.STEP, **options
        )
        self.create_subscription(RewardSettings, 'rewards', self._on_rewards, qos.LATCHED)
        self.create_service(Reset, '~/reset', self._on_reset)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(self._deadline / 4, self._watch, clock=steady)
        if not self._lockstep:
            self.create_timer(self._settings.control_period, self._tick)
        self._descriptor_publisher.publish(String(data=self._descriptor.model_dump_json()))

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._activated = time.monotonic()
        self._begin_episode()
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        if self._phase is not Phase.IDLE:
            self._env.hold()
        self._enter(Phase.IDLE)
        return super().on_deactivate(state)

    # the control loop

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._since = time.monotonic()

    def _begin_episode(self) -> None:
        self._enter(Phase.RESETTING)
        self._env.begin_reset(_ENV)

    def _on_state(self) -> None:
        """The world has reached what a reset or a command asked for."""
        if self._phase is Phase.RESETTING:
            self._observation = self._env.finish_reset(_ENV)
            self._episode += 1
            self._episode_step = 0
            self._publish_observation()
        elif self._phase is Phase.MOVING and self._lockstep:
            self._finish_step()

    def _tick(self) -> None:
        if self._phase is Phase.MOVING:
            self._finish_step()
        elif self._phase is Phase.ACTING and self._episode_step:
            self._env.hold()
            self._diagnostics.count('control period without a command')

    def _publish_observation(self) -> None:
        message = Observation(
            step=self._step,
            episode=self._episode,
            episode_step=self._episode_step,
            descriptor=self._crc,
            data=to_bytes(self._codec.encode(self._observation)),
        )
        message.header.stamp = self._world.stamp
        self._gathered.clear()
        self._published = message
        self._enter(Phase.ACTING)
        self._observation_publisher.publish(message)

    def _on_command(self, message: JointCommand) -> None:
        if self._phase is not Phase.ACTING or message.step != self._step:
            self._diagnostics.count('joint command for another step')
            return
        try:
            self._gathered.add(message)
        except CommandError as error:
            self._diagnostics.count(f'joint command refused: {error}')
            return
        if self._gathered.complete:
            self._diagnostics.clear()
            self._enter(Phase.MOVING)
            self._env.act_targets(
                {self._group: self._gathered.targets[None]},
                {self._group: self._gathered.action[None]},
            )

    def _finish_step(self) -> None:
        begin = StepBegin(
            self._step, self._episode, self._episode_step, self._observation[self._group]
        )
        self._observation = self._env.look()
        self._step += 1
        self._episode_step += 1
        ends = bool(self._env.ending[0])
        if not ends:
            # the policies think while the step is scored
            self._publish_observation()
        step = self._env.score()
        if self._transition_publisher.get_subscription_count():
            self._transition_publisher.publish(
                to_transition(begin, self._gathered, step, self._group, self._world.stamp)
            )
        if ends:
            self._begin_episode()

    # what goes wrong

    def _watch(self) -> None:
        """End an episode that is stuck, say what is missing, and try again."""
        if self._phase is Phase.IDLE:
            return
        seconds = time.monotonic() - self._since
        if seconds < self._deadline:
            return
        if self._step or time.monotonic() - self._activated > _START_GRACE_S:
            self._diagnostics.fault(self._what_is_missing())
        if self._phase is Phase.ACTING and self._episode_step == 0:
            self._observation_publisher.publish(self._published)  # for policies that came later
            return
        if self._phase is not Phase.RESETTING:
            self._diagnostics.count('stuck episode truncated')
        self._begin_episode()

    def _what_is_missing(self) -> str:
        if self._phase is Phase.ACTING:
            missing = ', '.join(self._gathered.missing)
            return f'no policy serves {missing} on topic joint_commands (step {self._step})'
        if not self._world.connected:
            return 'service reset_world is not there: is the sim node running?'
        return f'waiting for {self._world.missing}'

    def _on_reset(self, request: Reset.Request, response: Reset.Response) -> Reset.Response:
        if self._phase is Phase.IDLE:
            response.message = 'the node is not active'
            return response
        if request.seed >= 0:
            self._env.seed(request.seed)
        self._begin_episode()
        response.success = True
        return response

    # rewards

    def _request_rewards(self, changes: dict[str, Any]) -> None:
        """Ask the job's authority; without one, this node is it."""
        if self._request_publisher.get_subscription_count():
            self._request_publisher.publish(to_reward_settings(changes))
        else:
            self._apply_rewards(self._env.rewards.changed(changes))

    def _on_rewards(self, message: RewardSettings) -> None:
        try:
            settings = from_reward_settings(message)
            spec = RewardSpec.of(settings.pop('terms', []), settings)
        except (RewardError, LookupError) as error:
            self._diagnostics.fault(f'topic rewards, revision {message.revision}: {error}')
            return
        self._apply_rewards(spec.model_copy(update={'revision': message.revision}))

    def _apply_rewards(self, spec: RewardSpec) -> None:
        self._env.rewards = spec
        self._reward_parameters.mirror(spec)
        self.get_logger().info(f'rewards revision {spec.revision}')


NODE = ArmsEnvNode


def main() -> None:
    """Entry point of executable ``arms_env``."""
    sys.exit(run(['arms_env']))
