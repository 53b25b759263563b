"""The timeline of a run."""

import json

from kgen.emulator.trace import Trace

from .gemm import Gemm, golden


def test_timeline_of_a_gemm(compiled, tmp_path):
    gemm = Gemm(compiled(str(golden(8))), golden(8).read_text(), 8, 200, 256, 200)
    trace = Trace()
    gemm.run(trace=trace)
    gemm.check()
    trace.write(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    groups = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert groups == {"warps", "TMA", "tensor cores", "barriers"}
    spans = [e for e in events if e["ph"] == "X"]
    assert all(e["dur"] > 0 and e["ts"] >= 0 for e in spans)
    # Two clusters of two CTAs; K = 200 is four slabs, each of which four wgmma use up.
    assert sum("TMA load of a" in e["name"] for e in spans) == 4 * 4
    assert sum("wgmma" in e["name"] for e in spans) == 4 * 4 * 4
    # Nothing overlaps within a row.
    rows = {}
    for e in sorted(spans, key=lambda e: e["ts"]):
        assert rows.get(e["tid"], 0) <= e["ts"]
        rows[e["tid"]] = e["ts"] + e["dur"]
