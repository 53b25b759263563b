"""Mistakes made twice: in the protocol program of a preset, and in the same words in its rendered kernel.

`place` is the barrier or buffer that both must name: the check in its report, the emulator in what stops the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from mutations import edit

from kgen.emulator.clusters import RESERVED
from kgen.plan.common import GemmPlan
from kgen.protocol.program import (
    Advance,
    Arrive,
    AsyncLoad,
    AsyncMma,
    At,
    ClusterBarrier,
    CtaBarrier,
    Fence,
    Loop,
    Op,
    Program,
    Wait,
    WaitGroup,
    WaitStores,
    When,
    walk,
)


@dataclass(frozen=True)
class Mutant:
    """One mistake: its kind (as in mutations.py), the preset, both changes, and where it shows. `laps` asks for one
    deep tile where the mistake needs time to do harm; `says` are the emulator's words where it tells no address;
    `survives` says why a run cannot show it."""

    kind: str
    step: int
    program: Callable[[Program], Program]
    kernel: tuple[tuple[str, str], ...]
    place: str
    laps: int = 0
    says: str = ""
    survives: str = ""


def everywhere(test: Callable[[Op], bool], change: Callable[[Op], list[Op]], role: str = ""):
    """Changes every operation that passes the test, in every role whose name starts with `role`."""

    def mutate(program: Program) -> Program:
        done = program
        for r in program.roles:
            for op in walk(r.body) if r.name.startswith(role) else ():
                if test(op):
                    done = edit(done, r.name, op, change)
        assert done != program
        return done

    return mutate


def roles(test: Callable[[str], bool], **fields):
    """Sets fields of the roles whose name passes the test."""
    return lambda p: replace(p, roles=tuple(replace(r, **fields) if test(r.name) else r for r in p.roles))


def count(name: str, delta: int):
    return lambda p: replace(
        p, barriers=tuple(replace(b, count=b.count + delta) if b.name == name else b for b in p.barriers)
    )


def is_wait(barrier: str):
    return lambda op: isinstance(op, Wait) and op.barrier == barrier


def is_a(kind: type, **fields):
    return lambda op: isinstance(op, kind) and all(getattr(op, f) == value for f, value in fields.items())


def shifted(first: Callable[[Op], bool], second: Callable[[Op], bool], role: str):
    """The operation `second`, right after `first` in one body, comes before it."""

    def mutate(program: Program) -> Program:
        for r in program.roles:
            if not r.name.startswith(role):
                continue
            ops = list(walk(r.body))
            a = next(op for op in ops if first(op))
            b = next(op for op in ops[ops.index(a) :] if second(op))
            moved = edit(edit(program, r.name, b, lambda op: []), r.name, a, lambda op, b=b: [b, op])
            program = moved
        return program

    return mutate


def nothing(op: Op) -> list[Op]:
    return []


def announcing(op: Op) -> bool:
    return isinstance(op, Arrive) and op.expect > 0


def releasing(op: Op) -> bool:
    return isinstance(op, Arrive) and op.barrier == "empty"


def in_loop_release(op: Op) -> bool:
    return isinstance(op, When) and op.text == "k > 0"


def after_loop(program: Program) -> Program:
    """Without the release that follows the k loop."""
    for r in program.roles:
        if r.name.startswith("consumer"):
            (tiles,) = (op for op in r.work if isinstance(op, Loop))
            last = next(op for op in tiles.body if releasing(op))
            body = tuple(op for op in tiles.body if op is not last)
            work = tuple(replace(op, body=body) if op is tiles else op for op in r.work)
            program = replace(program, roles=tuple(replace(x, work=work) if x is r else x for x in program.roles))
    return program


INIT_EMPTY = "mbarrier_init(smem.empty[stage], EMPTY_ARRIVALS"
K_LOOP = "for (int k0 = 0; k0 < k; k0 += BLOCK_K) {"
TILE_LOOP = "index < tiles_m * tiles_n;"
LOOP_RELEASE = "if (k0 > 0) release(smem.empty[previous]);"
LAST_RELEASE = "wgmma_wait<0>();\n      release(smem.empty[previous]);"
WAIT_FULL = "mbarrier_wait(smem.full[ring.stage], ring.phase);"
WAIT_EMPTY = "mbarrier_wait(smem.empty[ring.stage], ring.phase ^ 1);"
EXPECT = "mbarrier_arrive_expect_tx(smem.full[ring.stage], STAGE_BYTES"
ADVANCE = "          ring.advance();\n        }\n      }\n    }"

MUTANTS = [
    Mutant("count + 1", 7, count("empty", 1), ((INIT_EMPTY, INIT_EMPTY + " + 1"),), "empty"),
    Mutant("count + 1", 5, count("full", 1), (("smem.full[stage], 1)", "smem.full[stage], 2)"),), "full"),
    Mutant("count + 1", 9, count("empty", 1), ((INIT_EMPTY, INIT_EMPTY + " + 1"),), "empty"),
    # The run sees what the surplus arrival allows: a stage is filled while it is read.
    Mutant("count - 1", 8, count("empty", -1), ((INIT_EMPTY, INIT_EMPTY + " - 1"),), "a", laps=12,
           says="mbarrier-can-alias"),
    Mutant("missing arrival", 7, after_loop, ((LAST_RELEASE, "wgmma_wait<0>();"),), "empty"),
    Mutant("missing arrival", 9, everywhere(in_loop_release, nothing), ((LOOP_RELEASE, ""),), "empty"),
    Mutant("missing arrival", 4, everywhere(announcing, nothing),
           (("  mbarrier_arrive_expect_tx(smem.full[stage], STAGE_BYTES);\n",
             "  if (stage > 0) mbarrier_arrive_expect_tx(smem.full[stage], STAGE_BYTES);\n"),), "full"),
    Mutant("first parity", 8, everywhere(is_wait("empty"), lambda op: [replace(op, flip=0)]),
           ((WAIT_EMPTY, WAIT_EMPTY.replace(" ^ 1", "")),), "empty"),
    Mutant("first parity", 4, everywhere(is_wait("full"), lambda op: [replace(op, flip=1)]),
           ((WAIT_FULL, WAIT_FULL.replace("phase)", "phase ^ 1)")),), "a"),
    Mutant("bytes + 16", 5, everywhere(announcing, lambda op: [replace(op, expect=op.expect + 16)]),
           (("smem.full[stage], STAGE_BYTES", "smem.full[stage], STAGE_BYTES + 16"),), "full"),
    Mutant("bytes + 16", 8, everywhere(announcing, lambda op: [replace(op, expect=op.expect + 16)]),
           ((EXPECT, EXPECT + " + 16"),), "full"),
    Mutant("bytes - 16", 9, everywhere(announcing, lambda op: [replace(op, expect=op.expect - 16)]),
           ((EXPECT, EXPECT + " - 16"),), "full"),
    Mutant("ring depth", 7, roles(lambda name: name == "producer", depths={"ring": -1}),
           ((ADVANCE, ADVANCE.replace("ring.advance();", "ring.stage = ring.stage + 1 == STAGES - 1 ? 0 : "
                                      "ring.stage + 1;\n ring.phase ^= ring.stage == 0;")),), "full"),
    # Loads into a and b are both in flight at the exit, and each side tells of one.
    Mutant("trip counts", 8, roles(lambda name: name == "producer", trips={"k_tiles": 1}),
           ((K_LOOP, K_LOOP.replace("k0 < k;", "k0 < k + BLOCK_K;")),), "b", laps=1,
           says="exits while TMA load"),
    Mutant("mask", 9, everywhere(lambda op: isinstance(op, AsyncLoad) and op.into.ctas == "all",
                                 lambda op: [replace(op, into=replace(op.into, ctas=0b01))]),
           (("tile.column + slice, ALL_CTAS)", "tile.column + slice, ALL_CTAS & 1)"),), "full"),
    Mutant("mask", 8, everywhere(releasing, lambda op: [replace(op, ctas=0b01)]),
           (("if (threadIdx.x % 32 < CLUSTER_SIZE)", "if (threadIdx.x % 32 < CLUSTER_SIZE - 1)"),), "empty"),
    Mutant("order", 7, shifted(is_wait("full"), is_a(AsyncMma), "consumer"),
           ((WAIT_FULL, ""), ("smem.b[ring.stage], k0 > 0);", "smem.b[ring.stage], k0 > 0);\n" + WAIT_FULL)), "a"),
    Mutant("order", 8, shifted(is_a(WaitGroup, pending=1), in_loop_release, "consumer"),
           ((LOOP_RELEASE, "wgmma_wait<1>();"), ("wgmma_wait<1>();", LOOP_RELEASE)), "b"),
    Mutant("early release", 8, everywhere(in_loop_release, lambda op: [
        replace(op, body=tuple(replace(o, at=At("ring")) for o in op.body))]),
           ((LOOP_RELEASE, LOOP_RELEASE.replace("previous", "ring.stage")),), "empty"),
    Mutant("wgmma wait dropped", 9, everywhere(is_a(WaitGroup, pending=1), nothing), (("wgmma_wait<1>();", ""),), "b"),
    Mutant("wgmma wait dropped", 5, everywhere(is_a(WaitGroup, pending=1), nothing), (("wgmma_wait<1>();", ""),), "a"),
    Mutant("cluster sync dropped", 8,
           lambda p: replace(p, roles=tuple(replace(r, before=tuple(o for o in r.before if o != ClusterBarrier()))
                                            for r in p.roles)),
           (("cluster_sync();  // no CTA may signal", "// no CTA may signal"),), "full"),
    Mutant("all cluster syncs dropped", 9, roles(lambda name: True, after=()),
           (("cluster_sync();  // no CTA may exit", "// no CTA may exit"),), "empty"),
    Mutant("advance dropped", 7, everywhere(is_a(Advance, ring="ring"), nothing, "producer"),
           ((ADVANCE, ADVANCE.replace("ring.advance();", "")),), "full"),
    Mutant("proxy fence dropped", 5, everywhere(is_a(Fence), nothing),
           (("    fence_proxy_async();  // by every lane", "    if (n < 0) fence_proxy_async();  // by every lane"),),
           "d"),
    Mutant("store wait dropped", 8, everywhere(is_a(WaitStores, pending=1), nothing),
           (("if (leader) bulk_wait_read<STAGING - 1>();", ""),), "d"),
    Mutant("store wait dropped", 4, everywhere(is_a(WaitStores, pending=0), nothing),
           (("if (threadIdx.x % 32 == 0) bulk_wait_read<0>();", ""),), "d", says="bulk-source-at-exit"),
    Mutant("__syncthreads dropped", 4, everywhere(is_a(CtaBarrier), nothing),
           (("  __syncthreads();\n\n  RingCursor", "  RingCursor"),
            ("__syncthreads();  // every warp has read", "// every warp has read")), "full"),
    Mutant("__syncthreads dropped", 4, everywhere(
        lambda op: isinstance(op, Loop) and op.var == "k",
        lambda op: [replace(op, body=tuple(o for o in op.body if o != CtaBarrier()))]),
           (("__syncthreads();  // every warp has read", "// every warp has read"),), "a",
           survives="PTX promises a warp's wait only its own part of a wgmma, and the check takes it at its word: "
                    "another warp may still have to read. The emulator runs the four parts together, once all warps "
                    "have committed, so that the loading warp's wait tells it of all."),
    Mutant("__syncthreads in a role", 7,
           lambda p: edit(p, "producer", p.roles[1].work[0], lambda op: [CtaBarrier(), op]),
           (("elect_one()) {", "elect_one()) {\n__syncthreads();"),), "", says="deadlock"),
    Mutant("uneven grid", 8, lambda p: replace(p, uneven={(1, "tiles"): -1}),
           ((TILE_LOOP, "index < tiles_m * tiles_n - (cluster_rank() > 0 ? 1 : 0);"),) * 2, "full"),
]  # fmt: skip


def changed(source: str, kernel: tuple[tuple[str, str], ...]) -> str:
    """The kernel with every change made, each at the first place where its words stand; all must be there."""
    at = 0
    for before, after in kernel:
        found = source.find(before, at)
        assert found >= 0, before
        source = source[:found] + after + source[found + len(before) :]
        at = found + len(after) if kernel.count((before, after)) > 1 else 0
    return source


def named_by_emulator(note: str, plan: GemmPlan) -> set[str]:
    """The regions of shared memory whose addresses a message of the emulator holds."""
    regions = plan.smem.regions
    # Another CTA's memory lies in a window of its own, 16 MiB above that of the CTA before.
    found = re.findall(r"shared (0x[0-9a-f]+)|(0x[0-9a-f]+) is in the memory of CTA", note)
    told = {int(own or other, 16) % 2**24 - RESERVED for own, other in found}
    return {max((r for r in regions if r.offset <= address), key=lambda r: r.offset).name for address in told}
