"""Lock-step environment steps/s through sim -> arms_env -> policy -> arms_env, beside a bare rclpy
chain.

The bare chain has the same processes and hops and sends the same messages with the same bytes, but
does nothing with them: no physics, no observation, no policy. It runs on rclpy's default executor,
as a node written by the tutorial does, and on the executor that ours uses, which is the floor.
Physics is timed apart.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from machine import console, machine  # type: ignore[import-not-found]
from opentinker_ros.msg import JointCommand, Observation
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rich.table import Table
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayLayout

from opentinker_ros import qos
from opentinker_ros.arms.arms_env import ArmsSettings, make_cell, make_env
from opentinker_ros.bringup import GraphSettings, graph, host_command
from opentinker_ros.conversions import (
    ObservationCodec,
    step_dimension,
    to_bytes,
    to_doubles,
    to_floats,
)
from opentinker_ros.nodes.executor import make_executor

ROLES = ('sim', 'arms_env', 'policy')


def bare_messages(arms: int) -> dict[str, object]:
    """The messages of the four hops, as large as the real ones."""
    settings = ArmsSettings(arms=arms)
    cell = make_cell(settings)
    env = make_env(1, 0, **settings.model_dump())
    names = [name for joints in cell.joint_names for name in joints]
    zeros = np.zeros(len(names))
    observation = env.reset(seed=0)
    data = to_bytes(ObservationCodec(env.descriptor).encode(observation))
    env.close()
    return {
        'joint_states': JointState(
            name=names, position=to_doubles(zeros), velocity=to_doubles(zeros)
        ),
        'observations': Observation(data=data),
        'joint_commands': JointCommand(
            agents=[f'arm_{index}' for index in range(arms)],
            targets=to_doubles(zeros),
            action=to_floats(zeros),
            log_prob=to_floats(np.zeros(arms)),
        ),
        'commands': Float64MultiArray(
            layout=MultiArrayLayout(dim=[step_dimension(0, zeros.size)]), data=to_doubles(zeros)
        ),
    }


#: What each role answers to: topic in, topic out.
REPLIES = {
    'sim': (('commands', 'joint_states'),),
    'arms_env': (('joint_states', 'observations'), ('joint_commands', 'commands')),
    'policy': (('observations', 'joint_commands'),),
}


def bare(role: str, arms: int, events: bool) -> None:
    """One process of the bare chain; arms_env begins it, and prints its steps each second."""
    messages = bare_messages(arms)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node(f'bare_{role}')
    executor = make_executor() if events else SingleThreadedExecutor()
    executor.add_node(node)
    publishers = {
        target: node.create_publisher(type(messages[target]), target, qos.STEP)
        for _, target in REPLIES[role]
    }
    received = [0]
    cycle = [source for source, _ in REPLIES[role]]

    def answer(source: str, target: str) -> None:
        if (
            source == cycle[received[0] % len(cycle)]
        ):  # one step in flight, also after a second beginning
            received[0] += 1
            publishers[target].publish(messages[target])

    for source, target in REPLIES[role]:
        node.create_subscription(
            type(messages[source]),
            source,
            lambda _, source=source, target=target: answer(source, target),
            qos.STEP,
        )
    said, last = time.monotonic(), -1
    while True:
        executor.spin_once(timeout_sec=0.1)
        now = time.monotonic()
        if role == 'arms_env' and now - said >= 1.0:
            if received[0] == last:
                received[0] += received[0] % 2 == 0
                publishers['observations'].publish(messages['observations'])
            print(json.dumps({'time': now, 'steps': received[0] / 2}), flush=True)
            said, last = now, received[0]


def fresh_environment() -> dict[str, str]:
    """A ROS domain of its own for the children and for this process."""
    os.environ['ROS_DOMAIN_ID'] = str(random.randrange(1, 100))
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ['OMP_NUM_THREADS'] = '1'
    return dict(os.environ)


def rate(samples: list[tuple[float, float]]) -> float:
    """Steps/s between the first and the last (time, steps)."""
    (t0, n0), (t1, n1) = samples[0], samples[-1]
    return (n1 - n0) / (t1 - t0)


def measure_bare(arms: int, seconds: int, events: bool) -> float:
    """Steps/s of the bare chain, on rclpy's default executor or on the one that ours uses."""
    environment = fresh_environment()
    options = ['--events'] if events else []
    children = [
        subprocess.Popen(
            [sys.executable, __file__, '--role', role, '--arms', str(arms), *options],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for role in ROLES
    ]
    samples: list[tuple[float, float]] = []
    try:
        for line in children[ROLES.index('arms_env')].stdout:  # type: ignore[union-attr]
            sample = json.loads(line)
            if sample['steps'] > 100:
                samples.append((sample['time'], sample['steps']))
            if len(samples) > seconds:
                return rate(samples)
    finally:
        stop(children)
    raise RuntimeError('the bare chain ended by itself')


def measure_ours(arms: int, seconds: int) -> float:
    """Environment steps/s of the real graph, from the diagnostics of arms_env."""
    settings = GraphSettings(
        processes={
            'sim': ['sim'],
            'policy': ['policy'],
            'arms_env': ['arms_env', 'lifecycle_manager'],
        }
    )
    spec = graph(ArmsSettings(arms=arms), settings, policy=json.dumps({'name': 'actor_critic'}))
    environment = fresh_environment()
    with tempfile.TemporaryDirectory() as folder:
        parameters = spec.write_parameters(Path(folder) / 'parameters.yaml')
        children = [
            subprocess.Popen(
                host_command(spec, host, parameters), env=environment, stderr=subprocess.DEVNULL
            )
            for host in spec.hosts
        ]
        try:
            return rate(diagnosed_steps(seconds))
        finally:
            stop(children)


def diagnosed_steps(seconds: int, deadline: float = 60.0) -> list[tuple[float, float]]:
    """(time, steps) once a second as arms_env reports them, after a warm-up."""
    samples: list[tuple[float, float]] = []

    def take(message: DiagnosticArray) -> None:
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            if status.name == '/arms_env' and float(values.get('steps', 0)) > 100:
                samples.append((time.monotonic(), float(values['steps'])))

    rclpy.init()
    try:
        node = Node('ros_loop')
        node.create_subscription(DiagnosticArray, '/diagnostics', take, 10)
        end = time.monotonic() + deadline + seconds
        while len(samples) <= seconds and time.monotonic() < end:
            rclpy.spin_once(node, timeout_sec=0.2)
        node.destroy_node()
    finally:
        rclpy.shutdown()
    if len(samples) < 2:
        raise RuntimeError('arms_env reported no steps')
    return samples


def physics_ms(arms: int, steps: int = 300) -> float:
    """Milliseconds of physics in one control step of this scene."""
    from opentinker_ros.worlds.mujoco import MujocoWorld

    settings = ArmsSettings(arms=arms)
    cell = make_cell(settings)
    world = MujocoWorld(cell.scene, num_envs=1)
    world.reset(np.array([0]), cell.home())
    started = time.perf_counter()
    for _ in range(steps):
        world.advance(settings.control_period)
    return 1e3 * (time.perf_counter() - started) / steps


def stop(children: list[subprocess.Popen]) -> None:
    """End the children and wait for them."""
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--arms', type=int, nargs='+', default=[2, 8, 20])
    parser.add_argument(
        '--seconds', type=int, default=8, help='measured seconds a row, after the warm-up'
    )
    parser.add_argument('--role', choices=ROLES, help=argparse.SUPPRESS)
    parser.add_argument('--events', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        bare(options.role, options.arms[0], options.events)
    table = Table(title=f'lock-step ROS loop, steps/s · {machine()}')
    for column in (
        'arms',
        'ours',
        'bare rclpy',
        'ratio',
        'bare, EventsExecutor',
        'ratio',
        'physics ms/step',
        'ratio to bare rclpy without physics',
    ):
        table.add_column(column, justify='right')
    for arms in options.arms:
        ours, physics = measure_ours(arms, options.seconds), physics_ms(arms)
        plain, events = (measure_bare(arms, options.seconds, events) for events in (False, True))
        without = 1 / (1 / ours - physics * 1e-3)
        table.add_row(
            str(arms),
            f'{ours:.0f}',
            f'{plain:.0f}',
            f'{ours / plain:.2f}',
            f'{events:.0f}',
            f'{ours / events:.2f}',
            f'{physics:.2f}',
            f'{without / plain:.2f}',
        )
    console().print(table)


if __name__ == '__main__':
    main()
