"""Warp-specialised GEMMs written directly against the units: one generator per warp, randomly interleaved.

A generator yields the condition that its warp waits for (or None to let others run). `skip` names the steps
that a mutant leaves out.
"""

import random

import numpy as np

from kgen.emulator import fragments
from kgen.emulator.bulk import BulkUnit
from kgen.emulator.descriptors import MatrixDescriptor
from kgen.emulator.idesc import InstructionDescriptor
from kgen.emulator.order import Meeting
from kgen.emulator.swizzle import Swizzle
from kgen.emulator.tcgen05_mma import MmaOperands
from kgen.emulator.tensormap import DataType, encode_tiled
from kgen.emulator.tma import TmaUnit
from kgen.emulator.wgmma import Registers, Wgmma, WgmmaKind
from units.conftest import Global
from units.tensor_core import TensorCore

N, K, K_TILES, STAGES, TILES = 32, 64, 3, 2, 3
FULL, EMPTY, ACC_FULL, ACC_EMPTY = 0x00, 0x10, 0x20, 0x30
A_AT, B_AT, OUT_AT = 0x400, 0x8400, 0xC000  # A: 16 KB and B: 4 KB a stage


class Deadlock(Exception):
    """No warp can go on and nothing is pending."""


class Named:
    """bar.sync of a number of warps."""

    def __init__(self, count):
        self.count, self.arrived, self.generation, self.meeting = count, 0, 0, Meeting()

    def sync(self, actor):
        mine = self.generation
        self.meeting.arrive(actor)
        self.arrived += 1
        if self.arrived == self.count:
            self.arrived, self.generation = 0, mine + 1
            self.meeting.complete()
        yield lambda: self.generation > mine
        self.meeting.leave(actor)


def run(warps, agenda, seed, leave):
    """Interleaves the warps of {warp: CTA rank}; asynchronous work is done when nobody can move, and sometimes
    before. `leave(rank)` ends a CTA whose last warp has ended."""
    chance = random.Random(seed)
    waits = dict.fromkeys(warps)
    while waits:
        ready = [w for w, condition in waits.items() if condition is None or condition()]
        if (not ready or chance.random() < 0.1) and agenda.step(chance):
            continue
        if not ready:
            raise Deadlock
        warp = chance.choice(ready)
        try:
            waits[warp] = next(warp)
        except StopIteration:
            del waits[warp]
            if warps[warp] not in [warps[w] for w in waits]:
                leave(warps[warp])
    agenda.drain()


class Gemm(TensorCore):
    """Common to both: global operands (bf16, small integers), maps, barriers of the ring."""

    def __init__(self, m, ctas, seed, skip=()):
        super().__init__(ctas, seed)
        for cta in self.units.ctas:
            cta.shared.init[:] = False
        self.skip, self.m, self.seed = set(skip), m, seed
        self.tma = TmaUnit(self.units, self.bulk)
        rng = np.random.default_rng(seed)
        self.a = rng.integers(-3, 4, (TILES * m, K_TILES * K)).astype(np.float32)
        self.b = rng.integers(-3, 4, (N, K_TILES * K)).astype(np.float32)
        at = Global.base
        self.map_a, at = self._operand(at, self.a, (K, m // ctas))
        self.map_b, at = self._operand(at, self.b, (K, N // ctas))
        self.out_at = at
        self.map_d = encode_tiled(DataType.FLOAT32, at, (N, TILES * m), (4 * N,), (N, m // ctas), (1, 1))
        self.sync_all = None

    def _operand(self, at, values, box):
        codes = (values.view(np.uint32) >> 16).astype(np.uint16)
        self.memory.bytes[at - Global.base :][: codes.nbytes] = codes.reshape(-1).view(np.uint8)
        shape, pitch = codes.shape, 2 * codes.shape[1]
        made = encode_tiled(DataType.BFLOAT16, at, shape[::-1], (pitch,), box, (1, 1), 0, 3)
        return made, at + -(-codes.nbytes // 256) * 256

    def result(self):
        n = TILES * self.m * N * 4
        at = self.out_at - Global.base
        return self.memory.bytes[at : at + n].view(np.float32).reshape(-1, N)

    def wait(self, actor, rank, offset, lap):
        """Waits for phase number `lap` (-1: passes on a fresh barrier)."""
        bar = self.units.barrier(self.at(rank, offset), "wait")
        while not bar.test(lap & 1, actor):
            yield lambda: bar.completed(lap & 1)

    def laps(self):
        """(tile, k tile, stage, lap) of the ring."""
        for i in range(TILES * K_TILES):
            yield i // K_TILES, i % K_TILES, i % STAGES, i // STAGES

    def producer(self, rank):
        actor, ctas = self.units.order.actor(f"producer of CTA {rank}"), len(self.units.ctas)
        yield from self.sync_all.sync(actor)
        size = 2 * K * (self.m + N) - (16 if "expect" in self.skip else 0)
        for tile, kt, s, lap in self.laps():
            if "empty wait" not in self.skip:
                yield from self.wait(actor, rank, EMPTY + 8 * s, lap - (0 if "start parity" in self.skip else 1))
            full = self.at(0, FULL + 8 * s)
            if rank == 0:
                self.units.barrier(full, "arrive").arrive_expect_tx(size, actor)
            rows, cols = self.m // ctas, N // ctas
            self.tma.load(
                actor, self.map_a, (kt * K, tile * self.m + rank * rows), self.at(rank, A_AT + 0x4000 * s), full,
                cta_group=ctas, name="A",
            )  # fmt: skip
            self.tma.load(
                actor, self.map_b, (kt * K, rank * cols), self.at(rank, B_AT + 0x1000 * s), full,
                cta_group=ctas, name="B",
            )  # fmt: skip
            yield
        yield from self.sync_all.sync(actor)

    def descriptors(self, arch, s, step):
        return [
            MatrixDescriptor(arch, at + 32 * step, 0, 1024, Swizzle.B128).encode()
            for at in (A_AT + 0x4000 * s, B_AT + 0x1000 * s)
        ]

    def store_tile(self, actor, w, rank, tile, rows, values, group):
        """Rows of the tile to staging, fence, barrier, one TMA store by warp 0."""
        cta = self.units.ctas[rank]
        if w == 0 and "store wait" not in self.skip:
            self.bulk.wait(actor, 0, 0, read=True)
        yield from group.sync(actor)
        for row, words in zip(rows, values, strict=True):
            at = OUT_AT + 4 * N * row + 4 * np.arange(N)
            cta.hazards.generic_write(actor, at, 4, "st.shared")
            cta.shared.bytes[at[0] : at[0] + 4 * N] = np.ascontiguousarray(words).view(np.uint8)
            yield
        if "proxy fence" not in self.skip:
            actor.fence_async()
        yield from group.sync(actor)
        if w == 0:
            row = tile * self.m + rank * self.m // len(self.units.ctas)
            self.tma.store(actor, 0, self.map_d, (0, row), self.at(rank, OUT_AT), name="D")
            self.bulk.commit(actor, 0)

    def leave(self, actor):
        if "last wait" not in self.skip:
            self.bulk.wait(actor, 0, 0, read=True)
        yield from self.sync_all.sync(actor)
        self.bulk.exit(actor)


class BlackwellGemm(Gemm):
    """Producer, MMA issuer and four epilogue warps a CTA; two accumulators in tensor memory; one CTA or a pair."""

    def __init__(self, ctas=1, seed=0, skip=()):
        super().__init__(128 * ctas, ctas, seed, skip)
        for r in range(ctas):
            self.tmem[r].dealloc(f"CTA {r}", 0, 512)
            for i in range(2):
                self.barrier(FULL + 8 * i, 1, r)
                self.barrier(EMPTY + 8 * i, 1, r)
                self.barrier(ACC_FULL + 8 * i, 1, r)
                self.barrier(ACC_EMPTY + 8 * i, 4 * ctas, r)
        self.sync_all = Named(6 * ctas)

    def run(self):
        warps = {}
        for rank in range(len(self.units.ctas)):
            group = Named(4)
            mine = [self.producer(rank), self.issuer(rank), *(self.epilogue(rank, w, group) for w in range(4))]
            warps |= dict.fromkeys(mine, rank)

        def leave(rank):
            self.tmem[rank].exit(f"CTA {rank}")
            self.units.ctas[rank].exit()

        run(warps, self.agenda, self.seed, leave)

    def issuer(self, rank):
        actor, ctas = self.units.order.actor(f"issuer of CTA {rank}"), len(self.units.ctas)
        column = self.tmem[rank].alloc(f"CTA {rank}", 64)
        yield from self.sync_all.sync(actor)
        if rank == 0:
            yield from self.issue(actor, ctas, column)
        yield from self.sync_all.sync(actor)
        if "dealloc" not in self.skip:
            self.tmem[rank].dealloc(f"CTA {rank}", column, 64, actor)

    def issue(self, actor, ctas, column):
        idesc = InstructionDescriptor("f16", self.m, N, "bf16", "bf16")
        mask = None if ctas == 1 else 0b11
        for tile, kt, s, lap in self.laps():
            acc = tile % 2
            if kt == 0 and "acc empty wait" not in self.skip:
                yield from self.wait(actor, 0, ACC_EMPTY + 8 * acc, tile // 2 - 1)
                self.core.fence_after(actor)
            if "full wait" not in self.skip:
                yield from self.wait(actor, 0, FULL + 8 * s, lap)
            for step in range(4):
                a, b = self.descriptors("sm_100", s, step)
                more = kt > 0 or step > 0
                self.core.mma(actor, 0, ctas, MmaOperands(idesc, column + N * acc, b, a, accumulate=more))
                yield
            if "commit" not in self.skip:
                self.core.commit(actor, 0, ctas, self.at(0, EMPTY + 8 * s), mask)
            if kt == K_TILES - 1:
                self.core.commit(actor, 0, ctas, self.at(0, ACC_FULL + 8 * acc), mask)

    def epilogue(self, rank, w, group):
        actor, got = self.units.order.actor(f"epilogue {w} of CTA {rank}"), []
        yield from self.sync_all.sync(actor)
        for tile in range(TILES):
            acc = tile % 2
            if "acc full wait" not in self.skip:
                yield from self.wait(actor, rank, ACC_FULL + 8 * acc, tile // 2)
            if "fence after" not in self.skip:
                self.core.fence_after(actor)
            self.io[rank].ld(actor, w, "32x32b", N, 32 * w << 16 | N * acc, got.append)
            if "wait ld" not in self.skip:
                self.io[rank].wait_ld(actor)
            self.core.fence_before(actor)
            self.units.barrier(self.at(0, ACC_EMPTY + 8 * acc), "arrive").arrive(actor=actor)
            yield
            self.io[rank].wait_ld(actor)
            rows = range(32 * w, 32 * w + 32)
            yield from self.store_tile(actor, w, rank, tile, rows, got[-1], group)
        yield from self.leave(actor)


class HopperGemm(Gemm):
    """A producer warp and one warpgroup with wgmma; the epilogue stores through shared memory."""

    def __init__(self, seed=0, skip=()):
        super().__init__(64, 1, seed, skip)
        for i in range(2):
            self.barrier(FULL + 8 * i, 1)
            self.barrier(EMPTY + 8 * i, 4)
        self.sync_all = Named(5)
        self.acc = np.zeros((4, 32, N // 2), np.uint32)
        self.unit = Wgmma(self.units, self.units.ctas[0])

    def run(self):
        group = Named(4)
        warps = dict.fromkeys([self.producer(0), *(self.consumer(w, group) for w in range(4))], 0)
        run(warps, self.agenda, self.seed, lambda rank: self.units.ctas[rank].exit())

    def consumer(self, w, group):
        actor, unit = self.units.order.actor(f"consumer {w}"), self.unit
        kind, names = WgmmaKind(N, "bf16", "bf16", "f32"), frozenset(f"%f{i}" for i in range(N // 2))

        def write(values):
            self.acc[w] = values

        registers = Registers(lambda: self.acc[w], write, None, names)
        yield from self.sync_all.sync(actor)
        for tile, kt, s, lap in self.laps():
            if "full wait" not in self.skip:
                yield from self.wait(actor, 0, FULL + 8 * s, lap)
            if "wgmma fence" not in self.skip:
                unit.fence(w)
            for step in range(4):
                a, b = self.descriptors("sm_90", s, step)
                unit.mma(w, actor, kind, a, b, kt > 0 or step > 0, registers)
                yield
            unit.commit(w)
            if "wgmma wait" not in self.skip:
                yield lambda: unit.wait_ready(w, 0)
                unit.wait(w, actor, 0)
            self.units.barrier(EMPTY + 8 * s, "arrive").arrive(actor=actor)
            if kt == K_TILES - 1:
                unit.check_access(w, names, [], "st.shared")
                unit.note_write(w, names)
                tile_rows = np.zeros((64, N), np.uint32)
                row, col = (x[32 * w : 32 * w + 32] for x in fragments.wgmma_d(N))
                tile_rows[row, col] = self.acc[w]
                rows = range(16 * w, 16 * w + 16)
                yield from self.store_tile(actor, w, 0, tile, rows, tile_rows[16 * w : 16 * w + 16], group)
        unit.exit(w)
        yield from self.leave(actor)


class MulticastRing(TensorCore):
    """Four CTAs share every tile: each loads a quarter and multicasts it to all. One consumer warp a CTA."""

    CTAS, ROUNDS, SLICE = 4, 6, 1024

    def __init__(self, seed=0, skip=()):
        super().__init__(self.CTAS, seed)
        self.skip, self.seed, self.ring = set(skip), seed, BulkUnit(self.units)
        self.sync_all, self.seen = Named(2 * self.CTAS), []
        for r in range(self.CTAS):
            for s in range(STAGES):
                self.barrier(FULL + 8 * s, 1, r)
                # A stage is free when the consumers of all receivers have released it.
                self.barrier(EMPTY + 8 * s, 1 if "partners" in self.skip else self.CTAS, r)

    def run(self):
        warps = {}
        for r in range(self.CTAS):
            warps |= {self.producer(r): r, self.consumer(r): r}
        run(warps, self.agenda, self.seed, lambda rank: self.units.ctas[rank].exit())

    def wait(self, actor, rank, offset, lap):
        bar = self.units.barrier(self.at(rank, offset), "wait")
        while not bar.test(lap & 1, actor):
            yield lambda: bar.completed(lap & 1)

    def producer(self, r):
        actor = self.units.order.actor(f"producer of CTA {r}")
        yield from self.sync_all.sync(actor)
        for i in range(self.ROUNDS):
            s, lap = i % STAGES, i // STAGES
            yield from self.wait(actor, r, EMPTY + 8 * s, lap - 1)
            full = self.units.barrier(self.at(r, FULL + 8 * s), "arrive")
            full.arrive_expect_tx(self.SLICE * (1 if "slices" in self.skip else self.CTAS), actor)
            src = Global.base + (i * self.CTAS + r) * self.SLICE
            dst = self.at(r, A_AT + 0x1000 * s + r * self.SLICE)
            self.ring.load(actor, dst, src, self.SLICE, self.at(r, FULL + 8 * s), mask=0b1111)
            yield
        yield from self.sync_all.sync(actor)

    def consumer(self, r):
        actor, hazards = self.units.order.actor(f"consumer of CTA {r}"), self.units.ctas[r].hazards
        yield from self.sync_all.sync(actor)
        for i in range(self.ROUNDS):
            s, lap = i % STAGES, i // STAGES
            yield from self.wait(actor, r, FULL + 8 * s, lap)
            start = A_AT + 0x1000 * s
            for part in range(0, 4 * self.SLICE, 512):
                hazards.generic_read(actor, start + part + 16 * np.arange(32), 16, "ld.shared")
                yield
            got = self.smem(r)[start : start + 4 * self.SLICE]
            at = i * 4 * self.SLICE
            self.seen.append((got == self.memory.bytes[at : at + 4 * self.SLICE]).all())
            for rank in [r] if "partners" in self.skip else range(self.CTAS):
                self.units.barrier(self.at(rank, EMPTY + 8 * s), "arrive").arrive(actor=actor)
        yield from self.sync_all.sync(actor)
