"""Facts and the edges that carry them."""

import numpy as np

from kgen.emulator.order import Facts, Handover, Meeting


def test_facts_grow_and_merge():
    a, b = Facts(), Facts()
    a.learn(5, 2)
    b.learn(1, 7)
    b.learn(1, 3)
    a.merge(b)
    assert (a.get(1), a.get(5), a.get(99)) == (7, 2, 0)
    assert a.at(np.array([1, 5, 6, 1000])).tolist() == [7, 2, 0, 0]
    assert Facts().at(np.array([3])).tolist() == [0]
    assert [a.meet(b).get(i) for i in (1, 5)] == [7, 0]
    b.merge(a.copy())
    assert b.get(5) == 2


def test_facts_of_different_actors_do_not_collide(order):
    one, two = order.actor("one"), order.actor("two")
    one.fence_async()
    two.acquire(one.release())
    assert two.known.at(np.arange(two.first, two.first + 32)).sum() == 0
    assert two.known.at(np.arange(one.first, one.first + 32)).tolist() == [1] * 32


def test_a_flag_in_memory_carries_facts(order):
    one, two, flags = order.actor("one"), order.actor("two"), Handover()
    one.fence_async()
    flags.release(0x400, one)
    flags.acquire(0x404, two)
    assert two.known.get(one.first) == 0
    flags.acquire(0x400, two)
    assert two.known.get(one.first) == 1


def test_early_arrivals_of_the_next_generation_stay_out(order):
    one, two = order.actor("one"), order.actor("two")
    meeting = Meeting()
    meeting.arrive(one)
    meeting.arrive(two)
    meeting.complete()
    meeting.leave(one)
    one.fence_async()
    meeting.arrive(one)
    meeting.leave(two)
    assert two.known.get(one.first) == 0


def test_what_one_lane_hands_on(order):
    """Its own fences, those of the others once all have synchronised with it, or once each has arrived."""
    one = order.actor("warp 0")
    one.fence_async()
    assert [one.tick(3).get(one.fence_fact(lane)) for lane in (3, 4)] == [1, 0]
    assert one.tick().get(one.fence_fact(4)) == 1
    one.converge()
    assert one.tick(3).get(one.fence_fact(4)) == 1
    one.fence_async()
    assert [one.tick(lane).get(one.fence_fact(0)) for lane in range(32)] == [2, *30 * [1], 2]
