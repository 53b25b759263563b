"""The timeline of a launch: what is recorded, as Chrome's JSON, as a picture, and through the command."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from kgen.build import compile_ptx
from kgen.commands.sources import project
from kgen.emulation import barrier_names, make_problem, run
from kgen.emulator.chrome import to_chrome
from kgen.emulator.launch import launch
from kgen.emulator.timeline import timeline_svg, window
from kgen.emulator.trace import TMA, Trace
from kgen.errors import EmulatorError, UsageError

ROOT = Path(__file__).parents[2]
SHAPE = (256, 256, 640)
K_SLABS = 640 // 64


@pytest.fixture(scope="module")
def record():
    """fn(step, seed) -> (trace, D) of a preset's launch."""
    kept = {}

    def recorded(step: int, seed: int = 0, trace: bool = True):
        directory = ROOT / "generated" / "sm_90a" / f"gemm_step{step}"
        plan = project(directory).plan
        if step not in kept:
            kept[step] = compile_ptx(directory, plan.arch).artifact.read_text()
        trace = Trace(barrier_names(plan)) if trace else None
        d, _, _ = run(plan, kept[step], make_problem(plan, SHAPE, 0, "normal"), seed=seed, trace=trace)
        return trace, d

    return recorded


@pytest.fixture(scope="module", params=[5, 9])
def trace(request, record):
    return record(request.param)[0]


@pytest.fixture(scope="module")
def ninth(record):
    return record(9)[0]


def test_spans_lie_within_the_run(trace):
    spans = trace.spans()
    assert all(0 <= s.start <= s.end <= trace.steps for s in spans)
    assert {"run", "ready", "mbarrier", "barrier", "load", "store", "mma", "group", "phase"} <= {s.kind for s in spans}


def test_spans_of_a_warp_follow_each_other(trace):
    ends = {}
    for s in trace.spans():
        if s.row.startswith("warp "):
            assert ends.get((s.cta, s.row), 0) <= s.start, s
            ends[s.cta, s.row] = s.end
    assert len(ends) == sum(len(cta.warps) for cta in trace.ctas)


def test_running_takes_every_instruction_once(trace):
    ran = sum(s.end - s.start for s in trace.spans() if s.kind == "run")
    assert trace.machine.instructions <= ran <= trace.steps


def test_every_load_appears_once(trace):
    loads = [s for s in trace.spans() if s.kind == "load"]
    assert all(s.row == TMA and s.start < s.end for s in loads)
    if trace.machine.cluster[0] == 1:
        # Four tiles of 128 x 128; each loads a box of A and one of B per slab.
        assert len(loads) == len(trace.ctas) * K_SLABS * 2
        assert len({(s.cta, s.label.split(" to ")[0]) for s in loads}) == len(loads)
    else:
        # Two CTAs share one tile of 256 x 256: a box of A each, and half of B from either to both.
        assert len(loads) == K_SLABS * (2 + 2 * 2)
        assert len({(s.label.split(" to ")[0], s.label[-5:]) for s in loads}) == len(loads)


def test_waits_end_when_a_phase_completes(trace):
    spans = trace.spans()
    phases = {(s.cta, s.row, s.end) for s in spans if s.kind == "phase"}
    waits = [s for s in spans if s.kind == "mbarrier"]
    assert waits
    for s in waits:
        assert (s.cta, s.label.split(",")[0], s.end) in phases, s


def test_phases_of_a_barrier_are_numbered_and_adjoin(trace):
    last = {}
    for s in trace.spans():
        if s.kind == "phase":
            number, end = last.get((s.cta, s.row), (-1, s.start))
            assert s.label == f"phase {number + 1}" and s.start == end
            last[s.cta, s.row] = (number + 1, s.end)
    assert {row for _, row in last} >= {"full[0]", "full[1]", "full[2]", "full[3]"}


def test_warps_leave_a_barrier_together(ninth):
    cluster = [s for s in ninth.spans() if s.label == "cluster barrier"]
    first = {}
    for s in cluster:
        first.setdefault((s.cta, s.row), s)
    # All 24 warps but the one that came last, to the barrier behind the initialisation of the mbarriers.
    assert len(first) >= 23 and len({s.end for s in first.values() if s.start < 1000}) <= 2


def test_groups_last_as_long_as_what_they_hold(ninth):
    spans = ninth.spans()
    groups = [s for s in spans if s.kind == "group" and s.row == "tensor core"]
    mmas = [s for s in spans if s.kind == "mma"]
    assert len(groups) == 2 * 2 * K_SLABS and len(mmas) == 4 * len(groups)
    for group in groups:
        assert sum(m.cta == group.cta and group.start <= m.start <= m.end <= group.end for m in mmas) >= 4
    assert sum("bulk group" in s.label for s in spans) > 0


def test_recording_changes_nothing_and_repeats(record, ninth):
    again, d = record(9)
    assert again.spans() == ninth.spans()
    assert to_chrome(again) == to_chrome(ninth)
    assert d.tobytes() == record(9, trace=False)[1].tobytes()
    assert record(9, seed=1)[0].spans() != ninth.spans()


def test_chrome_json_is_well_formed(trace, tmp_path):
    trace.write(tmp_path / "trace.json")
    data = json.loads((tmp_path / "trace.json").read_text())
    events = data["traceEvents"]
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert len({e["pid"] for e in events if e["name"] == "process_name"}) == len(trace.ctas)
    spans = [e for e in events if e["ph"] == "X"]
    assert len(spans) == len(trace.spans())
    ends = {}
    for e in spans:  # in the order of their start; one thread's do not overlap
        key = (e["pid"], e["tid"])
        assert key in named and e["dur"] >= 0 and ends.get(key, 0) <= e["ts"]
        ends[key] = e["ts"] + e["dur"]
    starts = [e["id"] for e in events if e["ph"] == "s"]
    assert starts and starts == [e["id"] for e in events if e["ph"] == "f"] == list(range(1, len(starts) + 1))


@pytest.mark.parametrize("steps", [None, 500, 10**6])
def test_picture_stays_on_its_canvas(trace, steps):
    svg = timeline_svg(trace, "a <title> & more", steps)
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    space = "{http://www.w3.org/2000/svg}"
    for r in root.iter(f"{space}rect"):
        x, y, w, h = (float(r.get(k)) for k in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and x + w <= width + 0.1 and y + h <= height and w > 0
    texts = list(root.iter(f"{space}text"))
    assert all(0 <= float(t.get("x")) <= width and 0 <= float(t.get("y")) <= height for t in texts)
    words = {t.text for t in texts}
    assert {"warp 0", "full[0]", "runs"} <= words and any(w.startswith("CTA (0, 0, 0)") for w in words)
    assert "TMA loads" in words or steps == 500
    assert len(svg) < 200_000


def test_window_holds_one_turn_of_the_ring(ninth):
    spans = ninth.spans()
    assert 0 < window(spans) <= ninth.steps
    assert any(s.label == "phase 2" and s.end <= window(spans) for s in spans)


STUCK = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry stuck() {
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
  .shared .align 8 .b64 bar;
  mov.u32 %r1, bar;
  mbarrier.init.shared.b64 [%r1], 5;
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;
  @!%p1 bra wait;
  ret;
}
"""


def test_a_run_that_fails_shows_its_last_wait():
    trace = Trace()
    with pytest.raises(EmulatorError, match="deadlock"):
        launch(STUCK, block=1, trace=trace)
    last = trace.spans()[-1]
    assert trace.failed and last.kind == "mbarrier" and last.label.startswith("mbarrier 0x")
    assert last.end == trace.steps > last.start
    assert "mbarrier 0x" in timeline_svg(trace, "stuck", 100)


def test_nothing_recorded_is_an_error():
    with pytest.raises(UsageError, match="nothing was recorded"):
        timeline_svg(Trace(), "empty")
