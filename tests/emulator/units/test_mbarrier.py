"""The mbarrier state machine: PTX ISA 9.7.13.15."""

import numpy as np
import pytest

from kgen.emulator.mbarrier import MAX_COUNT, BarrierTable, MBarrier
from units.conftest import Shared


@pytest.fixture
def bar(monitor, order):
    def make(count=1):
        return MBarrier("full[0]", count, monitor, order)

    return make


def test_a_fresh_barrier_lets_producers_through_and_stops_consumers(bar):
    b = bar()
    assert b.test(1) and not b.test(0)


def test_a_phase_ends_when_arrivals_and_bytes_are_in(bar):
    b = bar(2)
    b.arrive()
    assert b.arrive_expect_tx(64) == 0 << 20 | 1
    assert b.describe() == "phase 0, 0 of 2 arrivals pending, 64 bytes missing"
    assert b.complete_tx(48) == 0 and not b.test(0)
    assert b.complete_tx(16) == 0 and b.test(0)
    assert (b.phase, b.pending, b.tx) == (1, 2, 0)


def test_bytes_may_land_before_they_are_announced(bar):
    b = bar(1)
    b.complete_tx(64)
    assert b.describe() == "phase 0, 1 of 1 arrivals pending, 64 bytes more than were expected"
    b.expect_tx(64)
    assert b.phase == 0
    b.arrive()
    assert b.phase == 1


def test_a_phase_that_got_too_many_bytes_never_ends(bar):
    b = bar(1)
    b.complete_tx(32)
    b.arrive()
    assert b.phase == 0 and not b.test(0)


def test_tokens(bar):
    b = bar(3)
    token = b.arrive(2)
    assert MBarrier.pending_count(token) == 3 and not b.test_token(token)
    b.arrive()
    assert b.test_token(token)


def test_a_stale_token_is_refused(bar, fails):
    b = bar()
    token = b.arrive()
    b.arrive()
    with fails("mbarrier-parity-alias", "phase 0 is tested in phase 2"):
        b.test_token(token)


def test_drop_lowers_later_phases_only(bar):
    b = bar(2)
    b.arrive_drop()
    assert (b.pending, b.expected) == (1, 1)
    b.arrive()
    assert (b.phase, b.pending) == (1, 1)


def test_too_many_arrivals_name_those_who_arrived(bar, fails):
    b = bar(2)
    b.arrive(who="warp 3")
    b.pending = 0  # as if bytes were still missing
    b.tx = 16
    with fails("mbarrier-arrival-overflow", "full.0.", "0 of 2", "warp 3 x1"):
        b.arrive()


def test_an_arrival_count_above_pending_is_an_overflow(bar, fails):
    with fails("mbarrier-arrival-overflow"):
        bar(2).arrive(3)


def test_dropping_more_than_expected_is_an_overflow(bar, fails):
    with fails("mbarrier-arrival-overflow", "dropped"):
        bar(2).arrive_drop(3)


@pytest.mark.parametrize("count", [0, -1, MAX_COUNT + 1])
def test_counts_out_of_range(bar, fails, count):
    with fails("mbarrier-count"):
        bar(2).arrive(count)


def test_tx_out_of_range_both_ways(bar, fails):
    b = bar()
    b.expect_tx(MAX_COUNT)
    with fails("mbarrier-tx-overflow", "expected"):
        b.expect_tx(1)
    b = bar()
    with fails("mbarrier-tx-overflow", "completed"):
        b.complete_tx(MAX_COUNT + 1)


def test_no_complete_must_leave_an_arrival(bar, fails):
    b = bar(2)
    b.arrive(complete=False)
    with fails("mbarrier-nocomplete"):
        b.arrive(complete=False)


def test_a_waiter_that_missed_a_whole_phase_is_told(bar, fails):
    b = bar()
    assert not b.test(0, waiter="warp 1")
    b.arrive()
    b.arrive()
    with fails("mbarrier-parity-alias", "warp 1 waits for phase 0"):
        b.test(0, waiter="warp 1")


def test_a_waiter_one_phase_behind_is_fine(bar):
    b = bar()
    assert not b.test(0, waiter="warp 1")
    b.arrive()
    assert b.test(0, waiter="warp 1")
    # Two warps may take turns at the phases of a barrier: no knowledge of the skipped ones is asked for.
    b.arrive()
    b.arrive()
    assert b.test(0, waiter="warp 1")


def test_arrivals_before_anybody_saw_the_last_phase_end(bar, monitor, fails):
    b = bar()
    b.arrive()
    b.arrive()
    monitor.levels["mbarrier-phase-unobserved"] = "error"
    with fails("mbarrier-phase-unobserved", "the end of phase 1"):
        b.arrive()


def test_a_check_can_warn_or_be_off(bar, monitor):
    monitor.levels["mbarrier-arrival-overflow"] = "warn"
    b = bar()
    b.tx, b.pending = 16, 0
    b.arrive()
    assert [w.check for w in monitor.warnings] == ["mbarrier-arrival-overflow"]
    monitor.levels["mbarrier-arrival-overflow"] = "off"
    b.arrive()
    assert len(monitor.warnings) == 1


def test_messages_say_where(bar, monitor, fails):
    monitor.locate = lambda: "mbarrier.arrive, line 12 of k.cu, warp 0"
    with fails("mbarrier-count", "line 12 of k.cu"):
        bar().arrive(0)


def test_history_for_a_deadlock_report(bar):
    b = bar(2)
    b.arrive(2, who="warp 0")
    b.arrive(who="warp 1")
    assert b.history() == "this phase: warp 1; the last one: warp 0 x2"


def test_phases_are_events_and_wake_watchers(bar, monitor):
    seen, events = [], []
    monitor.listeners.append(type("L", (), {"on_event": lambda self, *a: events.append(a)})())
    b = bar()
    b.watchers.append(lambda barrier: seen.append(barrier.phase))
    monitor.now = 7
    b.arrive()
    assert seen == [1] and events == [("barrier", "full[0]", "phase 0", 0, 7)]


def test_a_wait_carries_what_the_arrivals_knew(bar, order):
    b = bar(2)
    producer, other, consumer = (order.actor(n) for n in ("producer", "other", "consumer"))
    producer.fence_async()
    b.arrive(actor=producer)
    assert not b.test(0, consumer) and consumer.known.get(producer.fence_fact(0)) == 0
    b.arrive(actor=other)
    late = order.actor("late")
    late.fence_async()
    b.arrive(actor=late)  # of the next phase: not for those who wait for this one
    assert b.test(0, consumer)
    assert consumer.known.get(producer.fence_fact(0)) == 1
    assert consumer.known.get(b.fact) == 1
    assert consumer.known.get(late.fence_fact(0)) == 0


# --- the table ------------------------------------------------------------------------------------------


@pytest.fixture
def table(monitor, order):
    return BarrierTable(Shared(), monitor, order)


def test_table_finds_by_offset_and_names_neighbours(table, fails):
    b = table.init(0x400, 1)
    assert table.at(0x400, "mbarrier.arrive") is b
    with fails("mbarrier-uninitialised", "mbarrier.arrive on shared 0x408 of CTA 0", "near it: 0x400"):
        table.at(0x408, "mbarrier.arrive")


def test_table_misuse(table, fails):
    table.init(0x400, 1)
    with fails("mbarrier-init-live"):
        table.init(0x400, 1)
    with fails("mbarrier-misaligned"):
        table.init(0x404, 1)
    with fails("mbarrier-misaligned"):
        table.init(1 << 16, 1)
    with fails("mbarrier-count"):
        table.init(0x500, 0)


def test_inval(table, fails):
    table.init(0x400, 2).arrive()
    with fails("mbarrier-inval-in-use", "1 of 2"):
        table.inval(0x400)
    b = table.init(0x410, 1)
    table.inval(0x410)
    with fails("mbarrier-uninitialised"):
        table.at(0x410, "mbarrier.try_wait")
    with fails("mbarrier-uninitialised", "invalidated"):
        b.arrive()
    table.init(0x410, 3)  # allowed again


def test_a_parked_waiter_keeps_a_barrier_in_use(table, fails):
    table.init(0x400, 1).test(0, waiter="warp 2")
    with fails("mbarrier-inval-in-use"):
        table.inval(0x400)


def test_writes_over_barriers(table, fails):
    table.init(0x400, 1)
    table.check_write(slice(0x3F0, 0x400), "st.shared")
    table.check_write(np.array([[0x408, 0x409]]), "st.shared")
    with fails("mbarrier-overwritten", "st.shared overwrites mbarrier at shared 0x400"):
        table.check_write(slice(0x3F0, 0x404), "st.shared")
    with fails("mbarrier-overwritten"):
        table.check_write(np.array([0x300, 0x407]), "st.shared")


def test_signals_to_an_exited_cta(table, fails):
    table.init(0x400, 1)
    table.exit()
    with fails("mbarrier-exited-cta", "multicast"):
        table.at(0x400, "multicast")


def test_random_sequences_match_the_document(monitor, order):
    """Against a direct transcription of the rules, with legal random operations."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        count = int(rng.integers(1, 6))
        b = MBarrier("b", count, monitor, order)
        phase, pending, expected, tx = 0, count, count, 0
        for _ in range(60):
            op, n = rng.integers(4), int(rng.integers(1, 4))
            if op == 0 and n <= pending:
                b.arrive(n)
                pending -= n
            elif op == 1 and pending:
                b.expect_tx(16 * n)
                tx += 16 * n
            elif op == 2:
                b.complete_tx(16 * n)
                tx -= 16 * n
            elif op == 3 and pending and expected > 1:
                b.arrive_drop()
                pending, expected = pending - 1, expected - 1
            else:
                continue
            if op != 1 and pending == 0 and tx == 0:
                phase, pending = phase + 1, expected
            assert (b.phase, b.pending, b.expected, b.tx) == (phase, pending, expected, tx)
            assert b.test(phase & 1 ^ 1) and not b.test(phase & 1)
