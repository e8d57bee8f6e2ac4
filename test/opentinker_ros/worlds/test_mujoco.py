import numpy as np
import pytest

from opentinker_ros.arms.robot_model import RobotModel
from opentinker_ros.arms.scene import build_scene
from opentinker_ros.share import share_file
from opentinker_ros.worlds.mujoco import MujocoWorld
from opentinker_ros.worlds.world import Start, WorldError

ARMS, PERIOD = 2, 0.04


@pytest.fixture(scope='module')
def scene():
    robot = RobotModel.from_file(share_file('config/arm.urdf'))
    return build_scene(robot, ARMS, 1.1, ['target_0', 'target_1'])


def start(scene, envs, offset=0.0):
    objects = np.zeros((envs, 2, 7))
    objects[..., 3] = 1
    objects[..., 0] = np.arange(envs)[:, None]
    return Start(np.tile(scene.robot.home + offset, (envs, ARMS, 1)), objects)


def begun(scene, envs, threads=1):
    world = MujocoWorld(scene, envs, threads)
    world.reset(np.arange(envs), start(scene, envs))
    return world


def commands(scene, envs, steps):
    moves = np.random.default_rng(0).uniform(-0.1, 0.1, (steps, envs, ARMS, 7)).cumsum(axis=0)
    moves[..., :-1] += scene.robot.home
    moves[..., -1] = 0
    return moves


def states(world, moves):
    for move in moves:
        world.command(move)
        world.advance(PERIOD)
        yield world.read()


def test_the_same_commands_give_the_same_states_bit_for_bit_on_any_number_of_threads(scene):
    moves = commands(scene, 5, 30)
    one, three = begun(scene, 5), begun(scene, 5, threads=3)
    for first, second in zip(states(one, moves), states(three, moves), strict=True):
        np.testing.assert_array_equal(first.joint_positions, second.joint_positions)
        np.testing.assert_array_equal(first.joint_velocities, second.joint_velocities)
    three.close()


def test_a_world_alone_moves_as_it_does_among_others(scene):
    moves = commands(scene, 3, 20)
    *_, among = states(begun(scene, 3), moves)
    *_, alone = states(begun(scene, 1), moves[:, 1:2])
    np.testing.assert_array_equal(among.joint_positions[1], alone.joint_positions[0])


def test_a_reset_forgets_everything_but_time(scene):
    moves = commands(scene, 2, 20)
    world = begun(scene, 2)
    *_, first = states(world, moves)
    world.reset(np.arange(2), start(scene, 2))
    *_, again = states(world, moves)
    np.testing.assert_array_equal(first.joint_positions, again.joint_positions)
    np.testing.assert_allclose(again.time, 40 * PERIOD)


def test_only_the_named_environments_are_reset(scene):
    world = begun(scene, 2)
    *_, before = states(world, commands(scene, 2, 5))
    world.reset(np.array([1]), start(scene, 1, offset=0.1))
    after = world.read()
    np.testing.assert_array_equal(after.joint_positions[0], before.joint_positions[0])
    np.testing.assert_array_equal(
        after.joint_positions[1], np.tile(scene.robot.home + 0.1, (ARMS, 1))
    )
    np.testing.assert_array_equal(after.joint_velocities[1], 0)


def test_arms_hold_their_start_without_a_command_and_against_gravity(scene):
    world = begun(scene, 1)
    world.advance(1.0)
    np.testing.assert_allclose(
        world.read().joint_positions[0], np.tile(scene.robot.home, (ARMS, 1)), atol=1e-3
    )


def test_arms_reach_what_is_commanded(scene):
    world = begun(scene, 1)
    target = np.append(scene.robot.home + 0.3, 1.0)
    world.command(np.tile(target, (1, ARMS, 1)))
    world.advance(1.0)
    state = world.read()
    np.testing.assert_allclose(state.joint_positions[0], np.tile(target[:-1], (ARMS, 1)), atol=0.01)
    np.testing.assert_array_equal(state.grippers, 1)


def test_what_was_read_is_not_overwritten_by_the_next_step(scene):
    world = begun(scene, 1)
    first = world.read()
    kept = first.joint_positions.copy()
    *_, _last = states(world, commands(scene, 1, 3))
    np.testing.assert_array_equal(first.joint_positions, kept)


def test_a_simulation_that_diverged_is_named(scene):
    world = begun(scene, 3)
    world.state[2, 3] = np.nan
    with pytest.raises(WorldError, match='environment 2 diverged'):
        world.read()
