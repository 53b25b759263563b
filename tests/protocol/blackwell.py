"""Protocols of Blackwell kernels written by hand in the vocabulary: what tcgen05 needs, before any preset uses it.

`gemm` is the warp-specialised kernel with a producer, a multiplier, an accumulator ring in tensor memory and an
epilogue warpgroup; with `pairs` two CTAs multiply together (cta_group::2: the even one issues, loads signal its
barrier, commits go to both). `clc` adds a scheduler that asks for tiles. `attention` has two products and key blocks
that may be none.
"""

from __future__ import annotations

from kgen.protocol.program import (
    Advance,
    Arrive,
    AsyncLoad,
    AsyncMma,
    At,
    BarrierArray,
    Buffer,
    ClcQuery,
    ClcRequest,
    ClusterBarrier,
    Commit,
    CtaBarrier,
    Init,
    Loop,
    NamedBarrier,
    Program,
    Read,
    Ref,
    Ring,
    Role,
    TmemAlloc,
    TmemDealloc,
    TmemRelinquish,
    Wait,
    When,
    Write,
)

A_BYTES, B_BYTES = 16_384, 32_768
RING, ACC, CLC = At("ring"), At("acc"), At("clc")


def tile(*body):
    return Loop("tile", "tiles", body)


def gemm(pairs: int = 0, stages: int = 3, slots: int = 2, clc: bool = False, warps: int = 4) -> Program:
    """One CTA, or `pairs` pairs of CTAs. Every role's loop ends by itself, or as launch control says."""
    cluster = 2 * pairs or 1
    whole = "pair" if pairs else "self"
    leader = "leader" if pairs else "self"
    members = 2 if pairs else 1
    meet = ClusterBarrier() if pairs else CtaBarrier()
    evens = tuple(range(0, cluster, 2)) if pairs else None
    next_tile = (
        (Wait("clc_full", CLC), ClcQuery(Ref("response", CLC, tag=("tile",))), Arrive("clc_empty", CLC, per="warp"),
         Advance("clc"))
        if clc
        else ()
    )  # fmt: skip
    operands = (Ref("a", RING, ctas=whole), Ref("b", RING, ctas=whole))
    acc = Ref("tmem_acc", ACC, tag=("tile",), ctas=whole)
    mine = Ref("tmem_acc", ACC, tag=("tile",))
    producer = tile(
        Loop("k", "k_tiles", (
            Wait("empty", RING, 1),
            Arrive("full", RING, leader, expect=A_BYTES + B_BYTES),
            AsyncLoad(Ref("a", RING), A_BYTES, "full", RING, "leader" if pairs else "each"),
            AsyncLoad(Ref("b", RING), B_BYTES, "full", RING, "leader" if pairs else "each"),
            Advance("ring"),
        )),
        *next_tile,
    )  # fmt: skip
    # A pair's commits also go to the peer, which must not be gone: its producer waits for every stage to come back.
    tail = (Loop("tail", stages, (Wait("empty", RING, 1), Advance("ring"))),) if pairs else ()
    multiplier = tile(
        Wait("acc_empty", ACC, 1),
        Loop("k", "k_tiles", (
            Wait("full", RING), AsyncMma(operands, acc, "tcgen05"), Commit("empty", RING, whole), Advance("ring"),
        )),
        Commit("acc_full", ACC, whole),
        Advance("acc"),
        *next_tile,
    )  # fmt: skip
    epilogue = tile(
        Wait("acc_full", ACC), Read(mine), Arrive("acc_empty", ACC, leader, per="warp"), Advance("acc"), *next_tile
    )
    scheduler = tile(
        Wait("clc_empty", CLC, 1),
        Arrive("clc_full", CLC, expect=16),
        ClcRequest(Ref("response", CLC, tag=("tile",)), "clc_full", CLC),
        Advance("clc"),
    )
    consumers = warps + 1 + 1
    roles = [
        Role("producer", 1, (producer, *tail), (Init(), meet, meet), (meet,)),
        Role("multiplier", 1, (multiplier,), (TmemAlloc(512), TmemRelinquish(), meet, meet), (meet, TmemDealloc(512)),
             ctas=evens),
        Role("epilogue", warps, (epilogue,), (meet, meet), (meet,)),
    ]  # fmt: skip
    if pairs:
        odds = tuple(range(1, cluster, 2))
        roles.append(Role("peer", 1, (), (TmemAlloc(512), TmemRelinquish(), meet, meet), (meet, TmemDealloc(512)),
                          ctas=odds))  # fmt: skip
    if clc:
        roles.append(Role("scheduler", 1, (scheduler,), (meet, meet), (meet,)))
    return Program(
        name="tcgen05_pair" if pairs else "tcgen05",
        cluster=cluster,
        roles=tuple(roles),
        barriers=(
            BarrierArray("full", stages, members, "each CTA's producer"),
            BarrierArray("empty", stages, 1, "a commit"),
            BarrierArray("acc_full", slots, 1, "a commit"),
            BarrierArray("acc_empty", slots, warps * members, "epilogue warps"),
            *([BarrierArray("clc_full", 2, 1), BarrierArray("clc_empty", 2, consumers)] if clc else []),
        ),
        buffers=(Buffer("a", stages), Buffer("b", stages), Buffer("tmem_acc", slots, space="tmem"),
                 *([Buffer("response", 2)] if clc else [])),
        rings=(Ring("ring", stages), Ring("acc", slots), *([Ring("clc", 2)] if clc else [])),
        least={"k_tiles": 1},
        why="the launcher refuses k < 1",
    )  # fmt: skip


def attention(guarded: bool = True, stages: int = 2, warps: int = 4) -> Program:
    """Key blocks of a query block: S = Q K, softmax writes P, O += P V. There may be no key block at all; `guarded`
    roles then leave out what waits for one."""
    kv, s = At("ring"), At("s")
    score, prob, out = Ref("tmem_s", s), Ref("tmem_p", s), Ref("tmem_o", tag=("tile",))
    some = lambda *ops: When("there is a key block", lambda e: e["k_tiles"] > 0, ops) if guarded else ops  # noqa: E731

    def body(*parts):
        return tuple(op for p in parts for op in (p if isinstance(p, tuple) else (p,)))

    producer = tile(
        Loop("k", "k_tiles", (
            Wait("empty", kv, 1), Arrive("full", kv, expect=2 * B_BYTES), AsyncLoad(Ref("k", kv), B_BYTES, "full", kv),
            AsyncLoad(Ref("v", kv), B_BYTES, "full", kv), Advance("ring"),
        )),
    )  # fmt: skip
    multiplier = tile(
        *body(some(Wait("o_empty", At("o"), 1))),
        Loop("k", "k_tiles", (
            Wait("full", kv),
            AsyncMma((Ref("k", kv),), score, "tcgen05", fresh="always"),
            Commit("s_full", s),
            Wait("p_full", s),
            AsyncMma((Ref("v", kv), prob), out, "tcgen05"),
            Commit("empty", kv),
            Advance("ring"), Advance("s"),
        )),
        *body(some(Commit("o_full", At("o")), Advance("o"))),
    )  # fmt: skip
    softmax = tile(
        Loop("k", "k_tiles", (
            Wait("s_full", s), NamedBarrier(1, 32 * warps), Read(score), Write(Ref("tmem_p", s, "warp")),
            Arrive("p_full", s, per="warp"), Advance("s"),
        )),
        *body(some(Wait("o_full", At("o")), Read(out), Arrive("o_empty", At("o"), per="warp"), Advance("o"))),
    )  # fmt: skip
    return Program(
        name="attention",
        cluster=1,
        roles=(
            Role("producer", 1, (producer,), (Init(), CtaBarrier(), CtaBarrier()), (CtaBarrier(),)),
            Role("multiplier", 1, (multiplier,), (TmemAlloc(512), TmemRelinquish(), CtaBarrier(), CtaBarrier()),
                 (CtaBarrier(), TmemDealloc(512))),
            Role("softmax", warps, (softmax,), (CtaBarrier(), CtaBarrier()), (CtaBarrier(),)),
        ),
        barriers=(BarrierArray("full", stages, 1), BarrierArray("empty", stages, 1), BarrierArray("s_full", 2, 1),
                  BarrierArray("p_full", 2, warps), BarrierArray("o_full", 1, 1), BarrierArray("o_empty", 1, warps)),
        buffers=(Buffer("k", stages), Buffer("v", stages), Buffer("tmem_s", 2, space="tmem"),
                 Buffer("tmem_p", 2, warps, space="tmem"), Buffer("tmem_o", space="tmem")),
        rings=(Ring("ring", stages), Ring("s", 2), Ring("o", 1)),
    )  # fmt: skip
