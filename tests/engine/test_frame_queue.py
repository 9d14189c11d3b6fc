"""Bursts wait, a stuck subscriber loses only its own frames."""

from __future__ import annotations

import pytest
import zmq

from engine.frame_queue import PATIENCE_S, WAITING, FrameQueue


@pytest.fixture
def sockets():
    context = zmq.Context()
    made = []

    def make(kind, **options):
        socket = context.socket(kind)
        socket.linger = 0
        for name, value in options.items():
            setattr(socket, name, value)
        made.append(socket)
        return socket

    yield make
    for socket in made:
        socket.close()
    context.term()


def subscriber(make, hwm):
    sub = make(zmq.SUB, rcvhwm=hwm)
    sub.setsockopt(zmq.SUBSCRIBE, b"")
    sub.connect("inproc://frames")
    return sub


def test_a_burst_waits_and_a_stuck_subscriber_hurts_nobody_else(sockets):
    publisher = sockets(zmq.PUB, sndhwm=4)
    publisher.bind("inproc://frames")
    stuck, healthy = subscriber(sockets, 4), subscriber(sockets, 1000)
    publisher.poll(50)
    frames = FrameQueue(publisher)
    for i in range(WAITING):
        frames.offer(bytearray([i] * 100), now=0.0)
    assert 0 < frames.waiting < WAITING  # the stuck one's pipe is full: nobody loses anything yet
    frames.flush(now=PATIENCE_S / 2)
    assert frames.waiting
    frames.flush(now=PATIENCE_S * 2)
    assert frames.waiting == 0
    received = []
    while healthy.poll(100):
        received.append(healthy.recv()[0])
    assert received == list(range(WAITING))  # all, in order
    assert stuck.recv()[0] == 0


def test_waiting_frames_are_bounded(sockets):
    publisher = sockets(zmq.PUB, sndhwm=4)
    publisher.bind("inproc://frames")
    subscriber(sockets, 4)
    publisher.poll(50)
    frames = FrameQueue(publisher)
    for _ in range(200):
        frames.offer(bytearray(100), now=0.0)
    assert frames.waiting <= WAITING
