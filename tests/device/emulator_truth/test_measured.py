"""The emulator against what a Hopper card said (`measured.json`, written by `measure.py`)."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import truth_cases as cases
from packing import SUFFIXES
from packing import unpacked as data

from kgen.emulator import clusters, fragments
from kgen.emulator.descriptors import MatrixDescriptor, element_addresses
from kgen.emulator.mma import mma
from kgen.emulator.swizzle import Swizzle, swizzle
from kgen.emulator.tensorbox import loaded_words
from kgen.emulator.tensormap import SWIZZLES, DataType, TensorMapError, encode_tiled
from kgen.errors import EmulatorError

FILE = Path(__file__).parent / "measured.json"
MEASURED = json.loads(FILE.read_text()) if FILE.exists() else {"records": [], "problems": {}}
RECORDS, PROBLEMS = MEASURED["records"], MEASURED["problems"]
pytestmark = pytest.mark.skipif(not RECORDS, reason="nothing measured yet: run measure.py on a Hopper card")

# Records that no model explains: test id -> what is known. They fail as expected; one that starts to pass, or
# that is not in the record, fails the suite.
UNEXPLAINED: dict[str, str] = {}
# Experiments that may end in an illegal instruction, which is then the answer.
ILLEGAL = "an illegal instruction was encountered"

WGMMA_CODES = (Swizzle.NONE, Swizzle.B128, Swizzle.B64, Swizzle.B32)
BYTES = {"f16": 2, "tf32": 4, "e4m3": 1}


LABELS: set[str] = set()


def of(*names):
    """All records of the named experiments, labelled by their short fields."""
    out = []
    for r in RECORDS:
        if r["experiment"] in names:
            short = [v for k, v in r.items() if not k.endswith(SUFFIXES) and not isinstance(v, list)]
            label = "-".join(map(str, short))[:80]
            known = UNEXPLAINED.get(label)
            marks = [pytest.mark.xfail(reason=known, strict=True)] if known else []
            LABELS.add(label)
            out.append(pytest.param(r, id=label, marks=marks))
    return out or [pytest.param(None, marks=pytest.mark.skip(reason="not measured"))]


def landed(m, coords, destination, source, size, base=0):
    """uint8 [size]: shared memory after a load, 0xEE where nothing was written. `source` starts at 2^20."""
    box = m.box(coords)
    region = np.full(size, 0xEE, np.uint8)
    at = box.shared_addresses(base + destination) - base
    for i in range(box.unit_bytes):
        where = np.where(box.inside, box.addresses - (1 << 20) + i, 0)
        region[at + i] = np.where(box.inside, source.view(np.uint8)[where], box.fill[i])
    return region


@pytest.mark.parametrize("r", of("tma_swizzle"))
def test_tma_swizzle(r):
    width, rows, mode = r["width"], r["rows"], r["mode"]
    m = encode_tiled(1, 1 << 20, (width, rows), (width * 2,), (width, rows), (1, 1), swizzle=mode)
    source = np.arange(1, width * rows + 1, dtype=np.uint16)
    got = data(r, "region", np.uint8)
    assert r["completed"] == 1
    assert np.array_equal(got, landed(m, (0, 0), r["destination"], source, got.size, r["region_address"]))
    assert SWIZZLES[mode].span == max(width * 2, 16) or mode == 0


@pytest.mark.parametrize("r", of("tma_oob"))
def test_tma_out_of_bounds(r):
    m = encode_tiled(9, 1 << 20, (40, 10), (80,), (32, 8), (1, 1), oob_fill=r["nan"])
    got = data(r, "region", np.uint8)
    source = np.arange(1, 401, dtype=np.uint16)
    assert np.array_equal(got, landed(m, (r["c0"], r["c1"]), 0, source, got.size))
    # The barrier counts the whole box: exactly `extra` bytes are still missing when they were expected too.
    assert m.box((0, 0)).transaction_bytes == 512
    assert (r["completed"], r["completed_after_extra"]) == ((0, 1) if r["extra"] else (1, 0))


@pytest.mark.parametrize("r", of("tma_oob_nan"))
def test_tma_nan(r):
    dtype = DataType(r["dtype"])
    m = encode_tiled(dtype, 1 << 20, (16, 4), (2 * dtype.bits,), (16, 4), (1, 1), oob_fill=1)
    fill = m.box((16, 0)).fill
    assert data(r, "region", np.uint8).tolist() == (fill.tolist() * 16)[:16]


@pytest.mark.parametrize("r", of("tma_types"))
def test_tma_converting_types(r):
    words, got = data(r, "words", np.uint32), data(r, "region", np.uint32)
    want = loaded_words(DataType(r["dtype"]).name, words)
    assert [hex(v) for v in got] == [hex(v) for v in want]


@pytest.mark.parametrize("r", of("tma_store"))
def test_tma_store(r):
    m = encode_tiled(9, 1 << 20, (40, 10), (80,), (32, 8), (1, 1))
    box = m.box((r["c0"], r["c1"]))
    want = np.zeros(464, np.uint16)
    want[(box.addresses[box.inside] - (1 << 20)) // 2] = box.offsets[box.inside] // 2 + 1
    assert np.array_equal(data(r, "tensor", np.uint16), want)


STARTS = {  # experiment -> (start, how the emulator takes it)
    "tma_unaligned_start": ((4, 0), "box"),
    "tma_unaligned_store": ((4, 0), "store_box"),
    "tma_store_negative": ((-8, -2), "store_box"),
    "tma_store_negative_c0": ((-8, 0), "store_box"),
    "tma_store_negative_c1": ((0, -2), "store_box"),
}


@pytest.mark.parametrize("experiment", STARTS)
def test_starts_that_are_illegal_instructions(experiment):
    """What the card stops at, the emulator refuses, and nothing else. (Where it went on, the record of the
    experiment shows what it wrote.)"""
    start, method = STARTS[experiment]
    if experiment not in PROBLEMS and experiment not in MEASURED.get("ran", ()):
        pytest.skip("not measured")
    m = encode_tiled(9, 1 << 20, (40, 10), (80,), (32, 8), (1, 1))
    if experiment in PROBLEMS:
        assert ILLEGAL in PROBLEMS[experiment]
        with pytest.raises(EmulatorError, match=r"start|coordinate 0"):
            getattr(m, method)(start)
    else:
        getattr(m, method)(start)


def edge_map(r):
    """The map of an edge experiment and its start; the tensor begins at 2^20 with a pitch of 160 bytes."""
    dims, strides, box, start = (r["width"], 5), (160,), (r["box0"], 4), (r["c0"], r["c1"])
    n = r["rank"]
    m = encode_tiled(r["dtype"], 1 << 20, dims[:n], strides[: n - 1], box[:n], (1,) * n, swizzle=r["swizzle"])
    return m, start[:n]


def stored(r):
    """(offsets in the tensor, bytes) of an edge store, from shared memory that holds the words 1, 2, 3 ..."""
    m, start = edge_map(r)
    box = m.store_box(start, allow_overhang=True)
    region = np.arange(1, 4097, dtype=np.uint16).view(np.uint8)
    source = (box.shared_addresses(r["region_address"]) - r["region_address"])[box.inside]
    target = (box.addresses - (1 << 20))[box.inside]
    unit = np.arange(box.unit_bytes)
    return target[:, None] + unit, region[source[:, None] + unit]


@pytest.mark.parametrize("r", of("tma_edge_store"))
def test_tma_stores_write_whole_chunks_at_the_edge(r):
    want = np.full(5 * 160 + 64, 0xA5, np.uint8)
    where, what = stored(r)
    want[where] = what
    assert np.array_equal(data(r, "tensor", np.uint8), want)


@pytest.mark.parametrize("r", of("tma_edge_add"))
def test_tma_reductions_add_whole_chunks_at_the_edge(r):
    want = np.full(5 * 160 + 64, 0xA5, np.uint8).view(np.uint32)
    where, what = stored(r)
    want[where[:, 0] // 4] += np.ascontiguousarray(what).view(np.uint32)[:, 0]
    assert np.array_equal(data(r, "tensor", np.uint32), want)


@pytest.mark.parametrize("r", of("tma_edge_load"))
def test_tma_loads_are_exact_at_the_edge(r):
    m, start = edge_map(r)
    source = (np.arange(5 * 160 + 64) % 251 + 1).astype(np.uint8)
    want = landed(m, start, 0, source, 512, r["region_address"])
    assert r["completed"] == 1
    assert np.array_equal(data(r, "region", np.uint8), want)


def refused_modes():
    """Swizzle modes that the driver did not encode. An earlier probe ended at the first of them."""
    modes = {r["mode"] for r in RECORDS if r["experiment"] == "tma_swizzle_refused"}
    if "cuTensorMapEncodeTiled: 1" in PROBLEMS.get("tma_swizzle", ""):
        modes.add(1 + max(r["mode"] for r in RECORDS if r["experiment"] == "tma_swizzle"))
    return sorted(modes)


def test_hopper_refuses_the_larger_atoms():
    assert refused_modes() and min(refused_modes()) == 4
    for mode in refused_modes():
        with pytest.raises(TensorMapError, match=r"swizzle: 128B, (32|64)B atom"):
            encode_tiled(1, 1 << 20, (64, 10), (128,), (64, 10), (1, 1), swizzle=mode, arch="sm_90")


@pytest.mark.parametrize("r", of("map_rule"))
def test_map_rules(r):
    try:
        encode_tiled(
            r["dtype"], (1 << 20) + r["offset"][0], r["dim"], r["strides"], r["box"], r["steps"],
            r["interleave"], r["swizzle"], 0, r["oob"], arch=f"sm_{r['major']}0",
        )  # fmt: skip
        problems = []
    except TensorMapError as error:
        problems = error.problems
    assert (r["status"] == 0) == (not problems), problems
    assert r["newest_status"] == r["status"]


@pytest.mark.parametrize("r", of("mbarrier_parity"))
def test_mbarrier(r):
    open_0, over_0 = [0, 1], [1, 0]  # parity waits while an even phase is open, and after it
    assert r["steps"] == [open_0, open_0, over_0, open_0, open_0, open_0, over_0, over_0, over_0, open_0]


@pytest.mark.parametrize("r", of("ldmatrix", "stmatrix"))
def test_matrix_moves(r):
    source, element, q = fragments.ldmatrix(r["count"], bool(r["transposed"]))
    if r["experiment"] == "ldmatrix":
        want = fragments.pack(8 * source + element, 16)
        assert np.array_equal(data(r, "registers", np.uint32).reshape(want.shape), want)
        return
    lane, _, half = np.indices(source.shape)
    want = np.zeros((32, 8), np.uint16)
    want[source, element] = 8 * lane + 2 * q + half
    assert np.array_equal(data(r, "rows", np.uint16), want.reshape(-1))


@pytest.mark.parametrize("r", of("elect"))
def test_elect_takes_the_lowest_lane(r):
    lanes = [i for i in range(32) if r["mask"] >> i & 1]
    assert r["leader"] == [lanes[0] if i in lanes else 99 for i in range(32)]
    assert r["elected"] == [int(i == lanes[0]) for i in range(32)]


def written_by_hand(r):
    """The shared::cluster address that the CTA stored its rank to: the next CTA's cell.

    A record without the field or-ed the next rank into the own address, which has a rank already.
    """
    return r.get("wrote_to", (r["rank"] + 1) % 4 << 24 | r["static_address"])


@pytest.mark.parametrize("r", of("cluster"))
def test_cluster_addresses(r):
    own = r["static_address"]
    assert own == clusters.shared_address(r["rank"], clusters.offset_of(own))
    assert r["mapa"] == [clusters.mapa(own, rank) for rank in range(4)]
    assert r["getctarank"] == [clusters.getctarank(a) for a in r["mapa"]] == [0, 1, 2, 3]
    writers = [w["rank"] for w in RECORDS if w["experiment"] == "cluster" and written_by_hand(w) == own]
    assert r["written_by"] in (writers or [0xFFFF])
    for address in (own, r["dynamic_address"]):
        assert clusters.offset_of(address) >= clusters.RESERVED
        assert clusters.getctarank(address) == r["rank"]


@pytest.mark.parametrize("r", of("multicast"))
def test_multicast(r):
    got = data(r, "first_72_words", np.uint16).reshape(4, 72)
    for rank in range(4):
        hit = r["mask"] >> rank & 1
        assert r["completed"][rank] == hit
        want = np.full(256, 0xEEEE, np.uint16)
        if hit:
            want[swizzle(np.arange(256) * 2, Swizzle.B128) // 2] = np.arange(1, 257)
        assert np.array_equal(got[rank], want[:72])


@pytest.mark.parametrize("r", of("wgmma_accumulator"))
def test_wgmma_accumulator(r):
    packed = r["d"] == "f16"
    rows, cols = fragments.wgmma_d(128, packed)
    want = (rows if r["shows"] == "row" else cols).astype(np.uint32)
    got = data(r, "registers", np.uint32).reshape(128, -1)
    if packed:
        halves = fragments.unpack(got, 16).astype(np.uint16).view(np.float16)
        assert np.array_equal(halves.astype(np.uint32), want)
    else:
        assert np.array_equal(got, want)


@pytest.mark.parametrize("r", of("wgmma_register_operand"))
def test_wgmma_register_operand(r):
    rows, ks = fragments.wgmma_a({"f16": 16, "tf32": 32, "u8": 8}[r["kind"]])
    ids = data(r, "ids", np.uint16).reshape(64, -1)
    assert np.array_equal(ids[rows, ks].reshape(-1), np.arange(rows.size))


@pytest.mark.parametrize("r", of("wgmma_descriptor"))
def test_wgmma_descriptor(r):
    esz, rows = BYTES[r["kind"]], 64 if r["operand"] == "A" else 128
    start, mode = r["region_address"] + r["start"], WGMMA_CODES[r["swizzle"]]
    d = MatrixDescriptor("sm_90", start, r["lbo"], r["sbo"], mode, r["base_offset"])
    want = element_addresses(d, rows, 32 // esz, esz, r["major"]) - r["region_address"]
    assert np.array_equal(data(r, "offsets", np.uint16).reshape(want.shape), want)


@pytest.mark.parametrize("r", of("numerics"))
def test_numerics(r):
    _, fa, fb, fd, _ = cases.KINDS[r["kind"]]
    a, b, c = cases.inputs(r["kind"], r["case"])
    unit = "wgmma" if r["kind"] < cases.MMA_SYNC else "mma.sync"
    want = mma(a, b, c, fa, fb, fd, unit=unit).astype(np.uint32)
    got = data(r, "first_rows", np.uint32).reshape(-1, cases.N)
    bad = np.argwhere(got != want[: len(got)])
    at = [(tuple(i.tolist()), hex(got[tuple(i)]), hex(want[tuple(i)])) for i in bad[:5]]
    assert not len(bad), f"{len(bad)} of {got.size} differ (place, card, emulator): {at}"
    assert hashlib.sha256(np.ascontiguousarray(want).tobytes()).hexdigest() == r["sha256"]


def test_what_is_unexplained_is_in_the_record():
    assert set(UNEXPLAINED) <= LABELS
    assert all(UNEXPLAINED.values())
