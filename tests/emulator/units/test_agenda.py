"""The agenda: seeded order, dependences, forcing, events."""

import numpy as np
import pytest

from kgen.emulator.async_units import Agenda
from kgen.emulator.monitor import Monitor
from units.conftest import Bench


def orders(seed):
    agenda, seen = Agenda(Monitor(), seed), []
    first = agenda.add("k", "u", "first", lambda: seen.append("first"))
    agenda.add("k", "u", "second", lambda: seen.append("second"), after=(first,))
    agenda.add("k", "u", "other", lambda: seen.append("other"))
    agenda.drain()
    assert agenda.idle
    return tuple(seen)


def test_every_legal_order_happens_and_seeds_repeat():
    found = {orders(seed) for seed in range(40)}
    assert found == {("first", "second", "other"), ("first", "other", "second"), ("other", "first", "second")}
    assert all(orders(seed) == orders(seed) for seed in range(10))


def test_forcing_runs_what_comes_before_and_nothing_else():
    agenda, seen = Agenda(Monitor()), []
    first = agenda.add("k", "u", "first", lambda: seen.append("first"))
    agenda.add("k", "u", "other", lambda: seen.append("other"))
    second = agenda.add("k", "u", "second", lambda: seen.append("second"), after=(first,))
    agenda.force([second])
    assert seen == ["first", "second"]
    assert agenda.report() == ["  pending: other (issued at step 0)"]
    agenda.force([second])
    assert len(seen) == 2


def test_actions_are_events_from_issue_to_completion():
    monitor, events = Monitor(), []
    monitor.listeners.append(type("L", (), {"on_event": lambda self, *a: events.append(a)})())
    agenda = Agenda(monitor)
    monitor.now = 3
    agenda.add("tma", "TMA of CTA 0", "load", lambda: None)
    monitor.now = 9
    assert agenda.step() and not agenda.step()
    assert events == [("tma", "TMA of CTA 0", "load", 3, 10)]


def test_a_failure_names_the_instruction_that_issued_the_action(fails):
    monitor = Monitor()
    agenda = Agenda(monitor)
    monitor.locate = lambda: "line 7"
    agenda.add("k", "u", "x", lambda: monitor.fail("some-check", "wrong"))
    monitor.locate = lambda: "line 99"
    with fails("some-check", "line 7"):
        agenda.step()
    with fails("some-check", "line 99"):
        monitor.fail("some-check", "wrong")


def test_clusters(fails):
    units = Bench(2).units
    assert [c.rank for c in units.multicast(3, "x")] == [0, 1]
    for mask in (0, 4):
        with fails("multicast-cta"):
            units.multicast(mask, "x")
    with fails("cluster-rank", "names CTA 2"):
        units.barrier(2 << 24, "mbarrier.arrive")


@pytest.mark.parametrize("writes", [True, False])
def test_exit_while_memory_is_in_use(fails, writes):
    bench = Bench(init=True)
    cta, known = bench.units.ctas[0], bench.warps[0].known
    (cta.hazards.begin_write if writes else cta.hazards.begin_read)(np.arange(4), known, "a copy")
    with fails("exit-while-in-flight", "a copy"):
        cta.exit()
