"""Questions and answers, awake and asleep; a thread of this process answers."""

import multiprocessing
import threading

import pytest

from opentinker.envs.handoff import Handoff

SPIN_S = 0.001
CONTEXT = multiprocessing.get_context('spawn')

pytestmark = pytest.mark.skipif(not Handoff.usable, reason='needs the write order of x86')


def serve(connection, handoff):
    """Answers every question, each third one with more through the connection."""
    number = 0
    while True:
        if handoff.await_question(connection, SPIN_S):
            number += 1
            handoff.answer(more=number % 3 == 0)
            if number % 3 == 0:
                connection.send(number)
            continue
        message = connection.recv()
        connection.send(message)
        if message == 'end':
            return


@pytest.fixture
def pair():
    handoff = Handoff(CONTEXT)
    connection, theirs = CONTEXT.Pipe()
    thread = threading.Thread(target=serve, args=(theirs, handoff))
    thread.start()
    yield handoff, connection
    connection.send('end')
    while connection.recv() != 'end':
        pass
    thread.join()


def ask(handoff, connection):
    """Where nobody is awake, wake them up first."""
    while not handoff.ask():
        connection.send('wake up')
        assert connection.recv() == 'wake up'


def test_every_question_is_answered_once_and_more_comes_through_the_connection(pair):
    handoff, connection = pair
    for number in range(1, 301):
        ask(handoff, connection)
        more = handoff.await_answer(connection, SPIN_S)
        assert more == (number % 3 == 0)
        if more:
            assert connection.recv() == number
        if number % 50 == 0:
            # long enough to fall asleep
            assert not connection.poll(0.03)


def test_messages_are_answered_between_questions(pair):
    handoff, connection = pair
    ask(handoff, connection)
    assert not handoff.await_answer(connection, SPIN_S)
    connection.send('how are you')
    assert connection.recv() == 'how are you'


def test_an_answerer_that_is_gone_is_noticed():
    handoff = Handoff(CONTEXT)
    connection, theirs = CONTEXT.Pipe()
    assert handoff.ask()
    theirs.close()
    assert handoff.await_answer(connection, SPIN_S)
    with pytest.raises(EOFError):
        connection.recv()
