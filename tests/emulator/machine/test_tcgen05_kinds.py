"""Every form of tcgen05.mma in a whole kernel against numpy: kinds, operand layouts, pairs, scale factors."""

import struct
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import pytest

from kgen.emulator.launch import launch

from .conftest import only
from .tcgen05_layouts import E2M1, Image, packed, padded

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
A_COLUMN, SFA, SFB = 256, 384, 416
HALVES = 1 << 31  # in a column to copy to: by 64x128b.warpx2::01_23


@dataclass
class Job:
    """The operands of one launch; lists have an entry per K step."""

    kernel: str
    idesc: list
    b: list
    images: list
    a: list = field(default_factory=list)
    words: np.ndarray | None = None  # A to store from registers
    cp: list = field(default_factory=list)  # (descriptor, column)
    sfa: list = field(default_factory=list)
    sfb: list = field(default_factory=list)
    mask: tuple = ()
    columns: int = 64
    lane: int = 0
    prefill: bool = False
    half: bool = False

    def run(self, ptx, **options):
        """uint32 [CTAs, 128, columns]: the accumulator columns of tensor memory."""
        def eight(values, kind):
            values = [int(v) for v in values]
            return struct.pack(f"8{kind}", *values, *[0] * (8 - len(values)))

        size = max(len(i.data) for i in self.images)
        size = -(-size // 16) * 16
        images = np.zeros((len(self.images), size), np.uint8)
        for row, image in zip(images, self.images, strict=True):
            row[: len(image.data)] = np.frombuffer(image.data, np.uint8)
        steps = len(self.b)
        raw = eight(self.a, "Q") + eight(self.b, "Q") + eight([d for d, _ in self.cp], "Q")
        raw += eight([c for _, c in self.cp], "I") + eight(self.idesc, "I")
        raw += eight(self.sfa, "I") + eight(self.sfb, "I") + eight(self.mask, "I")
        flags = (steps, len(self.cp), size, self.columns, self.lane, self.prefill, self.words is not None, self.half)
        raw += struct.pack("8I", *map(int, flags))
        out = np.zeros((len(self.images), 128, self.columns), np.uint32)
        words = np.zeros(8, np.uint32) if self.words is None else self.words
        result = launch(
            ptx, self.kernel, len(self.images), 128, [raw, images, words, out], smem=size + 1024, **options
        )
        assert not result.warnings, result.warnings
        return out


RUNS = [{"seed": 0}, {"seed": 1}, {"seed": 2, "arithmetic": "exact"}]


def check(compiled, job, want):
    ptx = only(compiled("tcgen05_kinds.cu", "100a"), job.kernel)
    for options in RUNS:
        got = job.run(ptx, **options)
        np.testing.assert_array_equal(got.view(want.dtype), want)


def plain(m, n, a, b, d=1, **bits):
    """The instruction descriptor of a dense instruction; bits: negate_a, negate_b, trans_a, trans_b."""
    word = d << 4 | a << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24
    for name, at in (("negate_a", 13), ("negate_b", 14), ("trans_a", 15), ("trans_b", 16)):
        word |= bool(bits.get(name)) << at
    return word


def integers(seed, shape, kind, top=4):
    return np.random.default_rng(seed).integers(-top, top + 1, shape).astype(kind)


def product(a, b):
    return (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float32)


def as_bytes(x):
    return np.ascontiguousarray(x).view(np.uint8)


# --- dense kinds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0, 32, 64, 128])
def test_swizzles_of_k_major_operands(compiled, width):
    a, b, image = integers(1, (128, 64), BF16), integers(2, (64, 64), BF16), Image()
    job = Job("f16", [plain(128, 64, 1, 1)] * 4, image.k_major(as_bytes(b), width), [image])
    job.a = image.k_major(as_bytes(a), width)
    check(compiled, job, product(a, b)[None])


@pytest.mark.parametrize("width", [0, 32, 64, 128])
@pytest.mark.parametrize("which", ["a", "b", "ab"])
def test_transposed_operands(compiled, width, which):
    a, b, image = integers(3, (128, 32), BF16), integers(4, (64, 32), BF16), Image()
    place = {
        x: image.mn_major(v.T, width) if x in which else image.k_major(as_bytes(v), 64) for x, v in (("a", a), ("b", b))
    }
    idesc = plain(128, 64, 1, 1, trans_a="a" in which, trans_b="b" in which)
    check(compiled, Job("f16", [idesc] * 2, place["b"], [image], place["a"]), product(a, b)[None])


def test_transposed_tf32_needs_the_wide_atom(compiled):
    a, b, image = integers(5, (128, 16), np.float32), integers(6, (64, 16), np.float32), Image()
    job = Job("tf32", [plain(128, 64, 2, 2, trans_a=True, trans_b=True)] * 2, image.mn_major(b.T), [image])
    job.a = image.mn_major(a.T)
    check(compiled, job, product(a, b)[None])


@pytest.mark.parametrize("code_a, code_b, transposed", [(0, 1, False), (1, 0, True), (5, 0, False), (5, 5, False)])
def test_eight_and_four_bit_types(compiled, code_a, code_b, transposed):
    """e4m3, e5m2, and e2m1 padded to bytes; B also N-major."""
    image, rng = Image(), np.random.default_rng(7)
    sides = []
    for rows, code in ((128, code_a), (64, code_b)):
        if code == 5:
            codes = rng.integers(0, 16, (rows, 64)).astype(np.uint8)
            sides.append((E2M1[codes], padded(codes)))
        else:
            values = integers(rows, (rows, 64), (E4M3, E5M2)[code])
            sides.append((values, as_bytes(values)))
    (a, raw_a), (b, raw_b) = sides
    place_b = image.mn_major(raw_b.T, 64) if transposed else image.k_major(raw_b, 64)
    job = Job("f8", [plain(128, 64, code_a, code_b, trans_b=transposed)] * 2, place_b, [image])
    job.a = image.k_major(raw_a, 64)
    check(compiled, job, product(a, b)[None])


@pytest.mark.parametrize("signed", [0, 1])
def test_integers(compiled, signed):
    rng, image = np.random.default_rng(8), Image()
    kind = (np.uint8, np.int8)[signed]
    a, b = (rng.integers(0, 256, (r, 64)).astype(np.uint8) for r in (128, 64))
    job = Job("i8", [plain(128, 64, signed, 1, 2)] * 2, image.k_major(b, 64), [image], image.k_major(a, 64))
    check(compiled, job, (a.view(kind).astype(np.int32) @ b.view(np.int8).astype(np.int32).T)[None])


@pytest.mark.parametrize("negate_a, negate_b", [(True, False), (False, True), (True, True)])
def test_negated_operands(compiled, negate_a, negate_b):
    a, b, image = integers(9, (128, 16), BF16), integers(10, (64, 16), BF16), Image()
    idesc = plain(128, 64, 1, 1, negate_a=negate_a, negate_b=negate_b)
    job = Job("f16", [idesc], image.k_major(as_bytes(b), 32), [image], image.k_major(as_bytes(a), 32))
    want = product(a, b) * (-1 if negate_a != negate_b else 1)
    check(compiled, job, (want + 0)[None])


def start(columns, lanes=128):
    """What the kernel fills the accumulator with: lane + column."""
    return (np.arange(lanes)[:, None] + np.arange(columns)).astype(np.float32)


def test_scale_input_d(compiled):
    """Each step multiplies the accumulator by 2^-3 first."""
    a, b, image = integers(11, (128, 32), BF16), integers(12, (64, 32), BF16), Image()
    job = Job("scaled_d", [plain(128, 64, 1, 1)] * 2, image.k_major(as_bytes(b), 64), [image])
    job.a, job.prefill = image.k_major(as_bytes(a), 64), True
    want = (start(64) / 8 + product(a[:, :16], b[:, :16])) / 8 + product(a[:, 16:], b[:, 16:])
    check(compiled, job, want[None])


MASK = (0x0000FFFF, 0x80000001, 0, 0xF0F0F0F0)


def kept(words):
    return np.array([w >> i & 1 for w in words for i in range(32)], bool)[:, None]


def test_disabled_lanes_keep_their_words(compiled):
    a, b, image = integers(13, (128, 16), BF16), integers(14, (64, 16), BF16), Image()
    job = Job("masked", [plain(128, 64, 1, 1)], image.k_major(as_bytes(b), 32), [image], mask=MASK, prefill=True)
    job.a = image.k_major(as_bytes(a), 32)
    check(compiled, job, np.where(kept(MASK), start(64), product(a, b) + start(64))[None])


def test_half_precision_accumulator(compiled):
    """One 16-bit result in the low half of each word."""
    a, b, image = integers(15, (128, 32), np.float16), integers(16, (64, 32), np.float16), Image()
    job = Job("f16", [plain(128, 64, 0, 0, 0)] * 2, image.k_major(as_bytes(b), 64), [image])
    job.a = image.k_major(as_bytes(a), 64)
    check(compiled, job, product(a, b).astype(np.float16).view(np.uint16).astype(np.uint32)[None])


# --- M = 64, A in tensor memory, weight stationary -----------------------------------------------------------


@pytest.mark.parametrize("lane", [0, 16])
@pytest.mark.parametrize("form", ["f16", "f16_ts"])
def test_sixty_four_rows_lie_in_half_the_lanes(compiled, lane, form):
    a, b, image = integers(17, (64, 32), BF16), integers(18, (64, 32), BF16), Image()
    job = Job(form, [plain(64, 64, 1, 1)] * 2, image.k_major(as_bytes(b), 64), [image], lane=lane, half=True)
    at = 32 * (np.arange(64) // 16) + np.arange(64) % 16 + lane
    if form == "f16":
        job.a = image.k_major(as_bytes(a), 64)
    else:
        job.words = np.zeros((1, 2, 128, 8), np.uint32)
        job.words[0, :, at] = as_bytes(a).view(np.uint32).reshape(64, 2, 8)
    want = np.zeros((1, 128, 64), np.float32)
    want[0, at] = product(a, b)
    check(compiled, job, want)


@pytest.mark.parametrize("by", ["st", "cp"])
@pytest.mark.parametrize("form", ["f16_ts", "f8_ts"])
def test_a_in_tensor_memory(compiled, form, by):
    """The softmax of attention stores P there; cp moves a tile there from shared memory."""
    kind, code, steps = (BF16, 1, 4) if form == "f16_ts" else (E4M3, 0, 2)
    k = steps * 32 // np.dtype(kind).itemsize
    a, b, image = integers(19, (128, k), kind), integers(20, (64, k), kind), Image()
    job = Job(form, [plain(128, 64, code, code)] * steps, image.k_major(as_bytes(b), 64), [image])
    if by == "st":
        job.words = np.ascontiguousarray(as_bytes(a).view(np.uint32).reshape(1, 128, steps, 8).transpose(0, 2, 1, 3))
    else:
        job.cp = [(d, A_COLUMN + 8 * s) for s, d in enumerate(image.k_major(as_bytes(a), 0))]
    check(compiled, job, product(a, b)[None])


@pytest.mark.parametrize("m", [32, 64, 128])
@pytest.mark.parametrize("n", [64, 128, 256])
def test_weight_stationary(compiled, m, n):
    """D of 32 (64) rows lies in four (two) blocks of columns, one below the other."""
    a, b, image = integers(21, (m, 32), BF16), integers(22, (n, 32), BF16), Image()
    parts = 128 // m
    job = Job("ws", [plain(m, n, 1, 1)] * 2, image.k_major(as_bytes(b), 64), [image], columns=n // parts)
    job.a = image.k_major(as_bytes(a), 64)
    check(compiled, job, np.concatenate(np.split(product(a, b), parts, axis=1))[None])


def test_weight_stationary_with_a_in_tensor_memory(compiled):
    a, b, image = integers(23, (128, 32), BF16), integers(24, (64, 32), BF16), Image()
    job = Job("ws_ts", [plain(128, 64, 1, 1)] * 2, image.k_major(as_bytes(b), 64), [image])
    job.words = np.ascontiguousarray(as_bytes(a).view(np.uint32).reshape(1, 128, 2, 8).transpose(0, 2, 1, 3))
    check(compiled, job, product(a, b)[None])


# --- pairs --------------------------------------------------------------------------------------------------


def pair_layout(d, m):
    """[2, 128, columns] of D [m, n]: 256 rows are split; of 128 rows each CTA has 64, in two halves of N."""
    if m == 256:
        return d.reshape(2, 128, -1)
    return np.stack([np.concatenate(np.split(rows, 2, axis=1)) for rows in np.split(d, 2)])


@pytest.mark.parametrize("m", [128, 256])
@pytest.mark.parametrize("form", ["pair_f16", "pair_f8", "pair_masked", "pair_f16_ts"])
def test_pairs(compiled, form, m):
    kind, code = (E4M3, 0) if form == "pair_f8" else (BF16, 1)
    k = 64 // np.dtype(kind).itemsize
    a, b = integers(25, (m, k), kind), integers(26, (128, k), kind)
    images = [Image(), Image()]
    places_b = [i.k_major(as_bytes(x), 64) for i, x in zip(images, np.split(b, 2), strict=True)]
    job = Job(form, [plain(m, 128, code, code)] * 2, places_b[0], images, columns=128 if m == 256 else 64)
    rows = np.split(a, 2)
    if form == "pair_f16_ts":
        # With 64 rows per CTA both halves of the lanes must hold them.
        lanes = np.stack([np.tile(as_bytes(x).view(np.uint32), (256 // m, 1)) for x in rows])
        job.words = np.ascontiguousarray(lanes.reshape(2, 128, 2, 8).transpose(0, 2, 1, 3))
    else:
        places_a = [i.k_major(as_bytes(x), 64) for i, x in zip(images, rows, strict=True)]
        job.a = places_a[0]
    want = pair_layout(product(a, b), m)
    if form == "pair_masked":
        job.mask, job.prefill = (*MASK, *MASK[::-1]), True
        keep = np.stack([kept(MASK), kept(MASK[::-1])])
        want = np.where(keep, start(job.columns), want + start(job.columns))
    check(compiled, job, want)


# --- scale factors ------------------------------------------------------------------------------------------


def scaled(kind, m, n, a, b, scale, ids):
    """The instruction descriptor of a block-scaled instruction. scale: 1 UE8M0, 0 UE4M3."""
    if kind != "mxf8":
        a = b = 1
    return a << 7 | b << 10 | n >> 3 << 17 | scale << 23 | m >> 7 << 27 | ids << 29 | ids << 4


# kernel: (K of a step, K of a block, UE8M0)
SCALED = {
    "mxf8": (32, 32, 1), "mxf8_ts": (32, 32, 1), "mxf4": (64, 32, 1), "nvf4_16": (64, 16, 0), "nvf4_32": (64, 32, 1),
    "pair_mxf8": (32, 32, 1), "pair_nvf4": (64, 16, 0),
}  # fmt: skip


def scale_codes(rng, shape, ue8m0):
    """(codes, values): powers of two; UE4M3 has the exponent in bits 6:3, bias 7, and eighths below."""
    if ue8m0:
        codes = rng.integers(125, 130, shape).astype(np.uint8)
        return codes, 2.0 ** (codes.astype(int) - 127)
    # 1, 1.5, 2 and 3, so that every sum is exact.
    codes = (7 << 3 | rng.integers(0, 4, shape) << 2).astype(np.uint8)
    return codes, 2.0 ** ((codes >> 3).astype(int) - 7) * (1 + (codes & 7) / 8)


@pytest.mark.parametrize("kernel, m, n", [
    ("mxf8", 128, 64), ("mxf8", 128, 128), ("mxf8", 128, 256), ("mxf8_ts", 128, 128), ("mxf4", 128, 192),
    ("nvf4_16", 128, 128), ("nvf4_32", 128, 128), ("pair_mxf8", 256, 256), ("pair_nvf4", 256, 192),
    ("pair_nvf4", 128, 128),
])  # fmt: skip
def test_block_scaled(compiled, kernel, m, n):
    per, block, ue8m0 = SCALED[kernel]
    pair = kernel.startswith("pair")
    kind = "mxf8" if "mxf8" in kernel else "mxf4"
    vec = per // block
    steps = 4 // vec * (2 if vec == 4 else 1)  # a word of scales lasts 4 / vec steps; nvf4 takes two words
    k = per * steps
    rng = np.random.default_rng(n + m)
    sides, images = [], [Image() for _ in range(1 + pair)]
    for rows in (m, n):
        if kind == "mxf8":
            values = integers(rows, (rows, k), E4M3)
            raw = as_bytes(values)
        else:
            codes = rng.integers(0, 16, (rows, k)).astype(np.uint8)
            values, raw = E2M1[codes], packed(codes)
        codes, factors = scale_codes(rng, (rows, k // block), ue8m0)
        sides.append((values.astype(float) * np.repeat(factors, block, axis=1), raw, codes))
    (a, raw_a, sf_a), (b, raw_b, sf_b) = sides
    job = Job(kernel, [], [], images, columns=n)
    if pair and m == 128:
        job.columns = n // 2
    for i, image in enumerate(images):
        job.b = image.k_major(np.split(raw_b, len(images))[i], 64)
        own = np.split(raw_a, len(images))[i]
        if kernel == "mxf8_ts":
            job.words = np.ascontiguousarray(own.view(np.uint32).reshape(1, 128, steps, 8).transpose(0, 2, 1, 3))
        else:
            job.a = image.k_major(own, 64)
        job.cp = []
        for group in range(sf_a.shape[1] // 4):
            # A: the CTA's own rows. B: all of N in both CTAs; with M = 128 each half of N in its half of the lanes.
            rows = np.split(sf_a, len(images))[i][:, 4 * group : 4 * group + 4]
            rows = np.concatenate([rows, rows[: -len(rows) % 128]]) if len(rows) % 128 else rows
            job.cp += [(d, SFA + 4 * group) for d in image.scales(rows)]
            cols = sf_b[:, 4 * group : 4 * group + 4]
            if pair and m == 128:
                job.cp += [(image.half_scales(cols), SFB + 8 * group | HALVES)]
            else:
                job.cp += [(d, SFB + 8 * group + 4 * j) for j, d in enumerate(image.scales(cols))]
    for s in range(steps):
        group, byte = divmod(s * vec, 4)
        job.idesc.append(scaled(kind, m, n, 0, 0, ue8m0, byte))
        job.sfa.append(SFA + 4 * group)
        job.sfb.append(SFB + 8 * group)
    want = (a @ b.T).astype(np.float32)
    check(compiled, job, pair_layout(want, m) if pair else want[None])
