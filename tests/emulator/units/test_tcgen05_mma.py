"""tcgen05.mma of every dense kind, shape family and operand source, against a plain product."""

import dataclasses

import numpy as np
import pytest

from kgen.emulator import formats, tmem
from kgen.errors import EmulatorError
from units.tensor_core import SFA, SFB, D, TensorCore, problem, values

RNG = np.random.default_rng(11)


def result(words, d_format):
    if d_format == "s32":
        return words.view(np.int32).astype(np.float64)
    if d_format == "f16":
        return words.astype(np.uint16).view(np.float16).astype(np.float64)
    return words.view(np.float32).astype(np.float64)


PLAIN = [
    ("f16", "bf16", "bf16", "f32"),
    ("f16", "f16", "f16", "f16"),
    ("tf32", "tf32", "tf32", "f32"),
    ("f8f6f4", "e4m3", "e5m2", "f32"),
    ("f8f6f4", "e2m1", "e3m2", "f32"),
    ("f8f6f4", "e2m3", "e4m3", "f16"),
    ("i8", "s8", "u8", "s32"),
]


@pytest.mark.parametrize("a_in_tmem", [False, True])
@pytest.mark.parametrize("m, ctas", [(64, 1), (128, 1), (128, 2), (256, 2)])
@pytest.mark.parametrize("kind, fa, fb, fd", PLAIN)
def test_plain_kinds(kind, fa, fb, fd, m, ctas, a_in_tmem):
    t = TensorCore(ctas)
    idesc, a, b, want = problem(RNG, kind, m, 64, fa, fb, fd)
    o = t.operands(idesc, a, b, a_in_tmem=a_in_tmem, accumulate=False)
    t.run(o)
    assert (result(t.d(m, 64), fd) == want).all()
    t.run(dataclasses.replace(o, accumulate=True))
    assert (result(t.d(m, 64), fd) == 2 * want).all()


@pytest.mark.parametrize("arithmetic", ["exact", "fast"])
@pytest.mark.parametrize("m", [32, 64, 128])
def test_weight_stationary(m, arithmetic):
    t = TensorCore(arithmetic=arithmetic)
    idesc, a, b, want = problem(RNG, "f16", m, 64, "bf16", "bf16")
    t.run(t.operands(idesc, a, b, accumulate=False, ws=True))
    assert (result(t.d(m, 64, ws=True), "f32") == want).all()


@pytest.mark.parametrize("kind, fmt", [("f16", "f16"), ("tf32", "tf32"), ("f8f6f4", "e4m3")])
def test_transposed_and_negated(kind, fmt):
    t = TensorCore()
    idesc, a, b, want = problem(RNG, kind, 128, 64, fmt, fmt, transpose_a=True, transpose_b=True, negate_b=True)
    t.run(t.operands(idesc, a, b, accumulate=False))
    assert (result(t.d(128, 64), "f32") == -want).all()


SCALED = [
    ("mxf8f6f4", "e4m3", "e5m2", "ue8m0", 1, 2),
    ("mxf8f6f4", "e2m1", "e3m2", "ue8m0", 1, 3),
    ("mxf4", "e2m1", "e2m1", "ue8m0", 2, 2),
    ("mxf4nvf4", "e2m1", "e2m1", "ue4m3", 4, 0),
    ("mxf4nvf4", "e2m1", "e2m1", "ue8m0", 2, 0),
]


@pytest.mark.parametrize("m, ctas", [(128, 1), (256, 2), (128, 2)])
@pytest.mark.parametrize("kind, fa, fb, sf, vec, ident", SCALED)
def test_block_scaled_kinds(kind, fa, fb, sf, vec, ident, m, ctas):
    t, n = TensorCore(ctas), 64
    idesc, a, b, _ = problem(RNG, kind, m, n, fa, fb, scale_format=sf, sfa_id=ident, sfb_id=ident)
    fmt = formats.FORMATS[sf]
    choose = [126, 127, 128, 129] if sf == "ue8m0" else formats.encode([0.5, 1.0, 1.5, 2.0], fmt)
    scale_a, scale_b = (RNG.choice(choose, (rows, 4)).astype(np.uint8) for rows in (m, n))
    t.put_scales(tmem.scale_a_layout(m, ctas), SFA, scale_a)
    t.put_scales(tmem.scale_b_layout(n, m, ctas), SFB, scale_b)
    t.run(t.operands(idesc, a, b, accumulate=False, scale_vec=vec, scale_a=SFA, scale_b=SFB))
    block = idesc.k // vec
    va, vb = (
        values(codes, f) * np.repeat(formats.decode(scales[:, ident : ident + vec], fmt), block, axis=1)
        for codes, f, scales in ((a, fa, scale_a), (b, fb, scale_b))
    )
    assert (result(t.d(m, n), "f32") == va @ vb.T).all()


def test_scale_input_d():
    t = TensorCore()
    idesc, a, b, want = problem(RNG, "f16", 128, 32, "bf16", "bf16")
    o = t.operands(idesc, a, b, accumulate=False)
    t.run(o)
    t.run(dataclasses.replace(o, accumulate=True, scale_d=1))
    assert (result(t.d(128, 32), "f32") == 1.5 * want).all()


def test_disabled_lanes_stay():
    t = TensorCore()
    t.tmem[0].data[:] = 77
    idesc, a, b, want = problem(RNG, "f16", 128, 32, "bf16", "bf16")
    t.run(t.operands(idesc, a, b, accumulate=False, masked=(1 << 5 | 1 << 127,)))
    got = t.d(128, 32)
    assert (got[[5, 127]] == 77).all()
    keep = np.delete(np.arange(128), [5, 127])
    assert (result(got[keep], "f32") == want[keep]).all()


def test_copies_that_differ(fails):
    t = TensorCore()
    idesc, a, b, _ = problem(RNG, "mxf4", 128, 32, "e2m1", "e2m1", scale_format="ue8m0")
    scales = np.full((128, 4), 127, np.uint8)
    t.put_scales(tmem.scale_a_layout(128, 1), SFA, scales)
    t.put_scales(tmem.scale_b_layout(32, 128, 1), SFB, scales[:32])
    t.tmem[0].data[96, SFA] += 1  # as if cp had filled only some of the replicas
    with fails("tmem-replicas", "scales of A"):
        t.run(t.operands(idesc, a, b, accumulate=False, scale_vec=2, scale_a=SFA, scale_b=SFB))


def test_accumulating_on_nothing(fails):
    t = TensorCore()
    idesc, a, b, _ = problem(RNG, "f16", 128, 32, "bf16", "bf16")
    with fails("uninitialised-tmem", "mma kind::f16 128x32x16", "4096 words"):
        t.run(t.operands(idesc, a, b))


def test_outside_the_allocation(fails):
    t = TensorCore()
    t.tmem[0].dealloc("CTA 0", 0, 512)
    t.tmem[0].alloc("CTA 0", 32)
    idesc, a, b, _ = problem(RNG, "f16", 128, 64, "bf16", "bf16")
    with fails("tmem-out-of-allocation", "columns 32 to 63"):
        t.run(t.operands(idesc, a, b, accumulate=False))


@pytest.mark.parametrize(
    "change, text",
    [
        ({"idesc": {"sparse": True}}, "not modelled"),
        ({"idesc": {"n": 100}}, "N = 100"),
        ({"a_tmem": 0}, "either in shared or in tensor"),
        ({"d": 32 << 16}, "lane 32"),
        ({"b": 0}, "must be 0b1"),
    ],
)
def test_malformed(change, text):
    t = TensorCore()
    idesc, a, b, _ = problem(RNG, "f16", 128, 32, "bf16", "bf16")
    o = t.operands(idesc, a, b)
    change = {k: dataclasses.replace(idesc, **v) if k == "idesc" else v for k, v in change.items()}
    with pytest.raises(EmulatorError, match=text):
        t.core.mma(t.warps[0], 0, 1, dataclasses.replace(o, **change))


def test_unusual_shapes_only_warn():
    t = TensorCore()
    idesc, a, b, want = problem(RNG, "f16", 128, 8, "bf16", "bf16")
    t.run(t.operands(idesc, a, b, accumulate=False))
    assert (result(t.d(128, 8), "f32") == want).all() and D == 0
    assert [w.check for w in t.monitor.warnings] == ["idesc-unusual"]
