"""Tensor copies: cp.async.bulk.tensor loads, stores and reductions. PTX ISA 9.7.9.27.

A load is one action per destination CTA: the box is read from global memory, written, and its bytes are
completed on the barrier, all at the moment the agenda picks. A store or reduction is two actions: the source
is read, later global memory is written. Addresses of shared memory are shared::cluster addresses.
"""

from __future__ import annotations

import numpy as np

from kgen.emulator.async_units import ClusterUnits, CtaUnits
from kgen.emulator.bulk import BulkUnit
from kgen.emulator.clusters import getctarank, offset_of
from kgen.emulator.hazards import span, words_of
from kgen.emulator.order import Actor
from kgen.emulator.reductions import reduce
from kgen.emulator.tensorbox import Box, gather_box, loaded_words
from kgen.emulator.tensormap import DataType, TensorMap
from kgen.errors import EmulatorError

# Element type of a tensor reduction. The document lets the map's type decide; and, or, xor take any integer.
_REDUCED = {
    DataType.UINT32: "u32", DataType.INT32: "s32", DataType.UINT64: "u64", DataType.INT64: "s64",
    DataType.FLOAT16: "f16", DataType.BFLOAT16: "bf16", DataType.FLOAT32: "f32", DataType.FLOAT32_FTZ: "f32",
    DataType.FLOAT64: "f64",
}  # fmt: skip


class _Pieces:
    """A box as pieces that stay together both in global and in shared memory: 16 bytes where that works."""

    def __init__(self, box: Box, offset: int):
        self.size, self.inside = box.unit_bytes, box.inside
        self.addresses, self.shared = box.addresses, box.shared_addresses(offset)
        per = 16 // self.size
        dense = per * self.size == 16 and box.shared_bytes == box.offsets.size * self.size
        if per > 1 and dense and box.mode.chunk >= 16 and offset % 16 == 0 and self.shared.size % per == 0:
            inside = self.inside.reshape(-1, per)
            whole = inside[:, 0]
            if (inside == whole[:, None]).all():
                self.size, self.inside = 16, whole
                self.addresses, self.shared = self.addresses[::per], self.shared[::per]
        if offset % 128 == 0 and box.shared_bytes % 128 == 0:
            # A swizzle moves bytes within aligned 128-byte blocks only.
            self.words = span(offset, box.shared_bytes)
        else:
            self.words = np.unique(words_of(self.shared, self.size))

    def put(self, cta: CtaUnits, data: np.ndarray) -> None:
        if self.size == 16:
            cta.chunks[self.shared >> 4] = data.view(np.uint64)
        else:
            cta.shared.bytes[self.shared[:, None] + np.arange(self.size)] = data

    def get(self, cta: CtaUnits) -> np.ndarray:
        if self.size == 16:
            return cta.chunks[self.shared >> 4].view(np.uint8)
        return cta.shared.bytes[self.shared[:, None] + np.arange(self.size)]


class TmaUnit:
    """Tensor copies of one cluster. `bulk` keeps the groups of its stores."""

    def __init__(self, units: ClusterUnits, bulk: BulkUnit):
        self.units, self.bulk = units, bulk
        self.monitor, self.agenda = units.monitor, units.agenda

    def load(
        self, actor: Actor, tensor_map: TensorMap, coords, dst: int, mbar: int, *, mask: int | None = None,
        cta_group: int = 1, gather4: bool = False, name: str = "",
    ) -> None:  # fmt: skip
        """`cp.async.bulk.tensor.Nd.shared::cluster.global.mbarrier::complete_tx::bytes`.

        coords: innermost first (gather4: column and four rows). mask: multicast. cta_group 2 lets `mbar` lie
        in the peer of the destination's pair; with multicast each destination signals the CTA of its own
        pair that has the rank parity of mbar's CTA. Fails: tma-alignment, swizzle-phase, tma-barrier-cta,
        multicast-cta, and all of SharedHazards.begin_write and of mbarriers.
        """
        what = f"TMA load of {name or 'a box'} at ({', '.join(str(int(c)) for c in coords)})"
        box = gather_box(tensor_map, int(coords[0]), coords[1:]) if gather4 else tensor_map.box(coords)
        offset = offset_of(dst)
        self._aligned(tensor_map, offset, what)
        own, signalled = getctarank(dst), getctarank(mbar)
        targets = [self.units.cta(own, what)] if mask is None else self.units.multicast(mask, what)
        allowed = (own,) if cta_group == 1 else (own, own ^ 1)
        if signalled not in allowed:
            text = f"{what}: its mbarrier lies in CTA {signalled}, the data in CTA {own} (cta_group::{cta_group})"
            self.monitor.fail("tma-barrier-cta", text)
        pieces = _Pieces(box, offset)
        facts = actor.release()
        for cta in targets:
            rank = cta.rank if cta_group == 1 else cta.rank & ~1 | signalled & 1
            rank = signalled if mask is None else rank
            self._load(actor, cta, self.units.cta(rank, what), offset_of(mbar), box, pieces, tensor_map, facts, what)

    def _load(self, actor, cta, signalled, bar_offset, box: Box, pieces: _Pieces, tensor_map, facts, what: str) -> None:
        label = f"{what} to shared {int(pieces.words[0]) * 4:#x} of CTA {cta.rank}"
        flight = cta.hazards.begin_write(pieces.words, facts, label)
        signalled.barriers.at(bar_offset, label, actor)

        def land():
            data = np.empty((pieces.addresses.size, pieces.size), np.uint8)
            data[:] = np.resize(box.fill, pieces.size)
            inside = pieces.inside
            if inside.any():
                got = self.units.memory.gather(pieces.addresses[inside], pieces.size, label)
                if tensor_map.dtype.name.startswith("TFLOAT32"):
                    got = loaded_words(tensor_map.dtype.name, got.view(np.uint32)).view(np.uint8)
                data[inside] = got
            pieces.put(cta, data)
            barrier = signalled.barriers.at(bar_offset, label)
            cta.hazards.landed(flight, barrier.fact, barrier.phase, barrier.name)
            barrier.complete_tx(box.transaction_bytes, facts)

        self.agenda.add("tma", f"TMA of CTA {cta.rank}", label, land)

    def store(
        self, actor: Actor, lane: int, tensor_map: TensorMap, coords, src: int, *, op: str | None = None,
        scatter4: bool = False, name: str = "", allow_overhang: bool = False,
    ) -> None:  # fmt: skip
        """`cp.async.bulk.tensor.Nd.global.shared::cta.bulk_group`, or with `op` ("add", "min", "inc", "and" ...)
        `cp.reduce.async.bulk.tensor`. The source is read as late as the thread's waits allow.

        Fails: tma-alignment, swizzle-phase, tma-source-cta and all of SharedHazards.begin_read.
        """
        verb = f"reduction .{op}" if op else "store"
        what = f"TMA {verb} of {name or 'a box'} at ({', '.join(str(int(c)) for c in coords)})"
        if scatter4:
            box = gather_box(tensor_map, int(coords[0]), coords[1:])
            if min(coords) < 0:
                raise EmulatorError(f"{what}: coordinates must not be negative")
        else:
            box = tensor_map.store_box(coords, allow_overhang)
        offset = offset_of(src)
        self._aligned(tensor_map, offset, what)
        kind = _element(tensor_map.dtype, op) if op else ""
        cta = self.units.cta_of(src, what)
        pieces = _Pieces(box, offset)
        inside = pieces.inside
        data: list[np.ndarray] = []

        def collect():
            data.append(pieces.get(cta)[inside])

        def write():
            new, at = data[0], pieces.addresses[inside]
            if not at.size:
                return
            if op:
                new = reduce(op, kind, self.units.memory.gather(at, pieces.size, what), new)
            self.units.memory.scatter(at, new, what)

        self.bulk.store_actions(actor, lane, cta, pieces.words, what, collect, write)

    def prefetch(self, tensor_map: TensorMap, coords, name: str = "") -> None:
        """`cp.async.bulk.prefetch.tensor`: a hint; only the coordinates are checked."""
        tensor_map.box(coords)
        self.monitor.event("tma", "L2", f"prefetch of {name or 'a box'} at {tuple(map(int, coords))}", self.monitor.now)

    def _aligned(self, tensor_map: TensorMap, offset: int, what: str) -> None:
        if offset % tensor_map.shared_alignment:
            text = f"{what}: shared address {offset:#x} is not a multiple of {tensor_map.shared_alignment}"
            self.monitor.stop("tma-alignment", text)
        period = tensor_map.swizzle.period
        if offset % period:
            text = f"{what}: shared address {offset:#x} is not a multiple of {period}: the pattern of the "
            self.monitor.fail("swizzle-phase", text + f"{tensor_map.swizzle} swizzle does not start at its first row")


def _element(dtype: DataType, op: str) -> str:
    if op in ("and", "or", "xor"):
        return {32: "b32", 64: "b64"}.get(dtype.bits, dtype.name)
    if dtype not in _REDUCED:
        raise EmulatorError(f"TMA reduction .{op}: {dtype.name} elements are not reduced")
    return _REDUCED[dtype]
