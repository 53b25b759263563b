"""Protocols of Blackwell kernels written by hand in the vocabulary: what tcgen05 needs, before any preset uses it.

`gemm` is the warp-specialised kernel with a producer, a multiplier, an accumulator ring in tensor memory and an
epilogue warpgroup; with `pairs` two CTAs multiply together (cta_group::2: the even one issues, loads signal its
barrier, commits go to both). `clc` adds a scheduler that asks for tiles: one of the cluster, whose answer comes to
every CTA by multicast, 16 bytes on each one's own barrier. How many tiles it is granted is the loops' trip count
`tiles`, so that "one tile" is a first request that fails. `answers` is that alone. `attention` has two products and key
blocks that may be none, of a tile or of all.
"""

from __future__ import annotations

from dataclasses import replace

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
    Fence,
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
    answer = (Wait("clc_full", CLC), ClcQuery(Ref("response", CLC, tag=("tile",))), Fence())
    everybody = "all" if pairs else "self"
    first = 0b1 if pairs else "self"  # the CTA that asks
    next_tile = (*answer, Arrive("clc_empty", CLC, first, per="warp"), Advance("clc")) if clc else ()
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
        Arrive("clc_full", CLC, everybody, expect=16),
        ClcRequest(Ref("response", CLC, tag=("tile",), ctas=everybody), "clc_full", CLC),
        *answer,  # that is how it knows when to stop; its own next request comes after its own read
        Advance("clc"),
    )
    readers = (warps + 1) * cluster + max(pairs, 1)  # epilogues and producers of all CTAs, and the multipliers
    allocate, free = TmemAlloc(512, whole), TmemDealloc(512, whole)
    roles = [
        Role("producer", 1, (producer, *tail), (Init(), meet, meet), (meet,)),
        Role("multiplier", 1, (multiplier,), (meet, allocate, TmemRelinquish(), meet), (meet, free), ctas=evens),
        Role("epilogue", warps, (epilogue,), (meet, meet), (meet,)),
    ]  # fmt: skip
    if pairs:
        odds = tuple(range(1, cluster, 2))
        roles.append(Role("peer", 1, (), (meet, allocate, TmemRelinquish(), meet), (meet, free), ctas=odds))
    if clc:
        roles.append(Role("scheduler", 1, (scheduler,), (meet, meet), (meet,), ctas=(0,)))
    return Program(
        name="tcgen05_pair" if pairs else "tcgen05",
        cluster=cluster,
        roles=tuple(roles),
        barriers=(
            BarrierArray("full", stages, members, "each CTA's producer"),
            BarrierArray("empty", stages, 1, "a commit"),
            BarrierArray("acc_full", slots, 1, "a commit"),
            BarrierArray("acc_empty", slots, warps * members, "epilogue warps"),
            *([BarrierArray("clc_full", 2, 1, "the scheduler"),
               BarrierArray("clc_empty", 2, readers, "who reads answers")] if clc else []),
        ),
        buffers=(Buffer("a", stages), Buffer("b", stages), Buffer("tmem_acc", slots, space="tmem"),
                 *([Buffer("response", 2)] if clc else [])),
        rings=(Ring("ring", stages), Ring("acc", slots), *([Ring("clc", 2)] if clc else [])),
        least={"k_tiles": 1},
        why="the launcher refuses k < 1",
    )  # fmt: skip


def answers(cluster: int = 2) -> Program:
    """Only the launch control of a cluster, small enough to search: CTA 0 asks, a worker in each CTA reads."""
    response = Ref("response", CLC, tag=("tile",))
    answer = (Wait("clc_full", CLC), ClcQuery(response), Fence())
    scheduler = tile(
        Wait("clc_empty", CLC, 1), Arrive("clc_full", CLC, "all", expect=16),
        ClcRequest(replace(response, ctas="all"), "clc_full", CLC), *answer, Advance("clc"),
    )  # fmt: skip
    worker = tile(*answer, Arrive("clc_empty", CLC, 0b1, per="warp"), Advance("clc"))
    return Program(
        name="answers",
        cluster=cluster,
        roles=(
            Role("scheduler", 1, (scheduler,), (ClusterBarrier(),), (ClusterBarrier(),), ctas=(0,)),
            Role("worker", 1, (worker,), (Init(), ClusterBarrier()), (ClusterBarrier(),)),
        ),
        barriers=(BarrierArray("clc_full", 2, 1), BarrierArray("clc_empty", 2, cluster)),
        buffers=(Buffer("response", 2),),
        rings=(Ring("clc", 2),),
    )


def every_block(e) -> int:
    return e["k_tiles"]


def second_rows_masked(e) -> int:
    """Every second query block is masked entirely: it has no key block, its neighbours have all."""
    return 0 if e["tile"] % 2 else e["k_tiles"]


def causal(e) -> int:
    """Query block i sees i key blocks: none at first."""
    return min(e["tile"], e["k_tiles"])


def attention(guarded: bool = True, stages: int = 2, warps: int = 4, blocks=every_block) -> Program:
    """Key blocks of a query block: S = Q K, softmax writes P, O += P V. There may be no key block at all, or none for
    some query blocks (`blocks`); `guarded` roles then leave out what waits for one."""
    kv, s = At("ring"), At("s")
    score, prob, out = Ref("tmem_s", s), Ref("tmem_p", s), Ref("tmem_o", tag=("tile",))
    some = lambda *ops: When("there is a key block", lambda e: blocks(e) > 0, ops) if guarded else ops  # noqa: E731

    def body(*parts):
        return tuple(op for p in parts for op in (p if isinstance(p, tuple) else (p,)))

    producer = tile(
        Loop("k", blocks, (
            Wait("empty", kv, 1), Arrive("full", kv, expect=2 * B_BYTES), AsyncLoad(Ref("k", kv), B_BYTES, "full", kv),
            AsyncLoad(Ref("v", kv), B_BYTES, "full", kv), Advance("ring"),
        )),
    )  # fmt: skip
    multiplier = tile(
        *body(some(Wait("o_empty", At("o"), 1))),
        Loop("k", blocks, (
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
        Loop("k", blocks, (
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
