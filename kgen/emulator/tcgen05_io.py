"""tcgen05.ld, tcgen05.st and their waits. PTX ISA 9.7.16.8.

Both are asynchronous: the data of a load reaches the registers at the warp's wait::ld, that of a store
reaches tensor memory at its wait::st, as late as the document allows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from kgen.emulator.order import Actor
from kgen.emulator.tensor_memory import TensorMemory, region
from kgen.emulator.tmem import COLUMNS, check_ld_lane, ld_map, split_address
from kgen.errors import EmulatorError


@lru_cache(maxsize=512)
def _pieces(shape: str, num: int, packed: bool, half_split: int, lane: int) -> np.ndarray:
    row, col = ld_map(shape, num, packed, half_split)
    return region(row + lane, col)


class TmemAccess:
    """Loads and stores of the warps of one CTA. All warps of a call are converged: 32 lanes."""

    def __init__(self, memory: TensorMemory):
        self.memory, self.monitor = memory, memory.monitor
        self._loads: dict[Actor, list[Callable[[], None]]] = {}
        self._stores: dict[Actor, list[Callable[[], None]]] = {}

    def ld(
        self, actor: Actor, warp: int, shape: str, num: int, address: int, write: Callable[[np.ndarray], None],
        pack16: bool = False, half_split: int = 0,
    ) -> None:  # fmt: skip
        """`tcgen05.ld.sync.aligned.<shape>.x<num>[.pack::16b]`; warp: its index in the CTA.

        write(uint32 [32, registers]) is called at wait::ld. Fails: tmem-lane-window, tmem-out-of-allocation,
        tmem-read-before-commit, tmem-missing-wait-st; at the wait uninitialised-tmem.
        """
        what, row, col, pieces = self._place("ld", warp, shape, num, address, pack16, half_split)
        self.memory.begin_read(pieces, actor, what)
        actor.loads += 1
        issued, place = self.monitor.now, self.monitor.place()

        def land():
            outer, self.monitor.origin = self.monitor.origin, place
            self.memory.check_init((row, col), what)
            self.monitor.origin = outer
            words = self.memory.data[row, col]
            write((words[..., 0] & 0xFFFF | words[..., 1] << 16) if pack16 else words)
            self.monitor.event("tmem", actor.name, what, issued)

        self._loads.setdefault(actor, []).append(land)

    def st(
        self, actor: Actor, warp: int, shape: str, num: int, address: int, values: np.ndarray,
        unpack16: bool = False, half_split: int = 0,
    ) -> None:  # fmt: skip
        """`tcgen05.st.sync.aligned.<shape>.x<num>[.unpack::16b]` of uint32 [32, registers].

        Fails: tmem-lane-window, tmem-out-of-allocation, tmem-overwritten-in-flight, tmem-missing-wait-ld.
        """
        what, row, col, pieces = self._place("st", warp, shape, num, address, unpack16, half_split)
        self.memory.begin_write(pieces, actor, what)
        actor.stores += 1
        values = np.array(values, np.uint32)
        if unpack16:
            values = np.stack([values & 0xFFFF, values >> 16], axis=-1)
        issued = self.monitor.now

        def land():
            self.memory.data[row, col] = values
            self.memory.init[row, col] = True
            self.monitor.event("tmem", actor.name, what, issued)

        self._stores.setdefault(actor, []).append(land)

    def wait_ld(self, actor: Actor) -> None:
        """`tcgen05.wait::ld.sync.aligned`."""
        for land in self._loads.pop(actor, []):
            land()
        actor.known.learn(actor.load_fact, actor.loads)
        actor.apart, actor.gone = True, 0

    def wait_st(self, actor: Actor) -> None:
        """`tcgen05.wait::st.sync.aligned`."""
        for land in self._stores.pop(actor, []):
            land()
        actor.known.learn(actor.store_fact, actor.stores)
        actor.apart, actor.gone = True, 0

    def pending_ld(self, actor: Actor) -> bool:
        """Registers of the warp are still to be written by loads."""
        return actor in self._loads

    def exit(self, actor: Actor) -> None:
        """The warp ends. Fails: tmem-missing-wait-ld, tmem-missing-wait-st (data that nobody waited for)."""
        for pending, kind in ((self._loads, "ld"), (self._stores, "st")):
            if pending.pop(actor, None):
                text = f"{actor.name} exits with a tcgen05.{kind} that it has not waited for"
                self.monitor.fail(f"tmem-missing-wait-{kind}", text)

    def _place(self, op: str, warp: int, shape: str, num: int, address: int, packed: bool, half_split: int):
        row, col = ld_map(shape, num, packed, half_split)
        lane, column = split_address(address)
        suffix = (".pack::16b" if op == "ld" else ".unpack::16b") if packed else ""
        what = f"tcgen05.{op}.{shape}.x{num}{suffix} at column {column}"
        try:
            check_ld_lane(shape, lane, warp)
        except EmulatorError as error:
            self.monitor.stop("tmem-lane-window", str(error))
        last = column + int(col.max())
        if last >= COLUMNS:
            self.monitor.stop("tmem-out-of-allocation", f"{what} reaches column {last}; there are {COLUMNS}")
        pieces = _pieces(shape, num, packed, half_split, lane) + column
        self.memory.check_columns(pieces, what)
        return what, row + lane, col + column, pieces
