"""The synchronisation of a rendered Blackwell kernel, a list of words per role; words_sm100a.py has the program's."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernel_source import Branch, ForLoop, constants, evaluate, function_body, plain, statements

from kgen.protocol import program as P

_CURSORS = {("ring.slot", "ring.phase"): "ring", ("fill.slot", "fill.phase"): "fill", ("slot", "acc.phase"): "acc",
            ("0", "phase"): "done", ("clc.slot", "clc.phase"): "clc"}  # fmt: skip
_SLOT = "const int slot = consumer * ACCUMULATORS + acc.slot"
_SCALES = "const uint32_t scales = tmem + SCALE_TMEM + consumer * SCALE_COLUMNS"
_LOOPS = {
    r"int index = blockIdx.x[^;]*; index < tiles_m \* tiles_n; index \+= gridDim.x[^;]*": "tile",
    r"int unit = blockIdx.x[^;]*; unit < tiles_m \* tiles_n \* splits; unit \+= gridDim.x[^;]*": "tile",
    r"int index = blockIdx.x[^;]*; index >= 0; index = next_tile(?:_of_warp)?\(smem, clc\)": "tile",
    r"do while next_tile\(smem, clc\) >= 0": "tile",
    r"int k0 = 0; k0 < k; k0 \+= BLOCK_K": "k",
    r"int k0 = range.begin; k0 < range.end; k0 \+= BLOCK_K": "k",
    r"int k0 = 0; k0 < min\(k, STAGES \* BLOCK_K\); k0 \+= BLOCK_K": "fill",
    r"int c = 0; c < (?:BLOCK|OUT)_N; c \+= CHUNK": "box",
    r"int first = 0; first < (?:BLOCK|OUT)_N; first \+= STORE_COLUMNS": "box",
    r"int c = first; c < first \+ STORE_COLUMNS; c \+= CHUNK": "part",
}
_CALL = re.compile(r"""\b(mbarrier_\w+|tcgen05_\w+|tma_\w+|bulk_\w+|fence_\w+|cluster_sync|__sync\w+|multiply|release
                   |stage|store|load_k_tile|load_pairs|advance|clc_\w+|next_tile\w*|copy_scales|share|atomicAdd
                   |__threadfence|__shfl_sync)(<[^>]*>)?\(""", re.VERBOSE)  # fmt: skip


@dataclass(frozen=True)
class Who:
    """One role of one CTA: what conditions of the kernel ask about."""

    kind: str  # "warpgroup", "epilogue", "mma", "producer", "scheduler", "idle"
    consumer: int = 0
    rank: int = 0

    def holds(self, test: str) -> bool | None:
        """Whether it takes the branch; None where one of its threads does."""
        unified = self.kind == "warpgroup"
        if test in ("threadIdx.x == 0", "warp == 0") and unified:
            return None
        answers = {
            "threadIdx.x == 0": self.kind == "epilogue" and self.consumer == 0,
            "warp == MMA_WARP": self.kind == "mma" and self.consumer == 0,
            "warp == PRODUCER_WARP": self.kind == "producer",
            "warp == SCHEDULER_WARP": self.kind == "scheduler",
            "warp >= MMA_WARP": self.kind in ("mma", "idle"),
            "elect_one()": True,
            "cluster_rank() == 0": self.rank == 0,
            "consumer < NUM_CONSUMERS": self.kind != "idle",
        }
        return all(answers[part] for part in test.split(" && "))


class Kernel:
    """The words of a rendered kernel, for whichever role is asked for."""

    def __init__(self, source: str, staged: bool):
        self.source, self.staged, self.values = source, staged, constants(source)
        self.main = statements(function_body(source, "gemm"))
        self.scaled = "copy_scales(" in source
        self.bytes = dict(self._boxes(plain(source)))
        names = ["tcgen05_commit", "tcgen05_alloc", "tcgen05_relinquish", "tcgen05_dealloc"]
        names += ["tcgen05_mma_scaled", "tcgen05_copy"] if self.scaled else ["tcgen05_mma"]
        groups = [re.findall(r"cta_group::(\d)", function_body(source, name)) for name in names]
        assert len({g[0] for g in groups}) == 1, "all of a kernel uses one cta_group"
        self.pair = groups[0] == ["2"]

    def _boxes(self, text: str):
        """What one copy of each operand brings, by the tensor maps that the launcher makes."""
        whole = r"(?:[mn], k|k, [mn]),\s*args\.ld\w(?: / 2)?"
        for operand, rows, columns in re.findall(rf"args\.([ab]), {whole}, (\w+), (\w+)\)", text):
            yield operand, evaluate(f"({rows}) * ({columns}) * sizeof(Input)", self.values)
        for operand, box in re.findall(r"args\.(sf[ab]),[^;]*words,\s*words,\s*([^;]*),\s*CU_TENSOR_MAP_SWIZZLE", text):
            rows, columns = box.split(",")
            yield operand, evaluate(f"({rows}) * ({columns.strip()}) * sizeof(uint64_t)", self.values)

    def words(self, who: Who) -> list[tuple]:
        return list(self._block(self.main, who, {}))

    def _function(self, name: str) -> tuple:
        return statements(function_body(self.source, name))

    def _block(self, block, who, env):
        for node in block:
            if isinstance(node, Branch):
                yield from self._branch(node, who, env)
            elif isinstance(node, ForLoop):
                yield from self._loop(node, who, env)
            elif _CALL.search(node) or node in (_SLOT, "phase ^= 1") or node.startswith(
                ("turn =", "const Input *a ", "const uint32_t scales ")
            ):
                yield from self._statement(node, who, env)
            elif node == "const int refill = k0 + (STAGES - 1) * BLOCK_K":
                env["refill"] = "refill"

    def _branch(self, node, who, env):
        if "SMEM_ALIGNMENT" in node.test:
            return
        if node.test in ("c + CHUNK == BLOCK_N", "c + CHUNK == OUT_N"):
            yield from self._enclosed(("when", "last columns"), node.body, who, env)
        elif node.test == "k0 > 0 && refill < k":
            assert env["refill"]
            yield from self._enclosed(("when", "refill"), node.body, who, env)
        elif node.test in ("leader", "leader && box_column + STORE_STEP <= n", "threadIdx.x % 32 == 0"):
            assert node.otherwise in ((), ("clc.advance()",)), "the other lanes do no more than keep their cursor"
            yield from self._block(node.body, who, env)
        elif node.test == "comes_last(&counters[strip], splits)":
            yield from self._block(self._function("comes_last"), who, env)
            yield from self._enclosed(("when", "this split comes last"), node.body, who, env)
        elif node.test == "before + 1 == splits":
            assert node.body == ("*counter = 0",)
        elif "store_tail" in str(node.body):
            return
        elif who.holds(node.test) is None:
            inner = list(self._block(node.body, who, env))
            yield from inner if inner[0][0] == "init" else [("one",), *inner, ("end",)]
        else:
            yield from self._block(node.body if who.holds(node.test) else node.otherwise, who, env)

    def _loop(self, node, who, env):
        counted = re.fullmatch(r"int slot = 0; slot < (\w+); \+\+slot", node.header)
        if counted and "mbarrier_init" in str(node.body):
            yield from self._block(node.body, who, {"depth": self.values[counted[1]]})
        elif counted:
            yield from self._enclosed(("loop", "drain", self.values[counted[1]]), node.body, who, env)
        elif node.header == "int i = 0; i < CHUNK; ++i":
            return  # stores of registers to global memory
        elif boxes := re.fullmatch(r"int i = 0; i < (\w+); i \+= BOX_MN", node.header):
            yield from self._block(node.body, who, env | {"boxes": self.values[boxes[1]] // self.values["BOX_MN"]})
        elif node.header == "int rank = 0; rank < CLUSTER_SIZE; ++rank":
            yield from self._block(node.body, who, env | {"rank": "all"})
        else:
            (var,) = [name for pattern, name in _LOOPS.items() if re.fullmatch(pattern, node.header)]
            yield from self._enclosed(("loop", env.get(var, var)), (*node.body, *self._next(node.header)), who, env)

    def _next(self, header: str) -> tuple[str, ...]:
        """What ends a tile's iteration, as a statement. Tiles are counted in clusters."""
        asks = re.search(r"(next_tile\w*\(smem, clc\))", header)
        if "blockIdx" in header:
            assert header.count("/ CLUSTER_SIZE") == (1 if asks else 2) * ("CLUSTER_SIZE" in self.values)
        return (asks[1],) if asks else ()

    def _enclosed(self, word, body, who, env):
        left_out = not self.staged and word[1] in ("box", "last columns")  # a direct store has no protocol of its own
        inner = self._block(body, who, env)
        yield from inner if left_out else [word, *inner, ("end",)]

    def _named(self, array: str, who: Who) -> str:
        apart = array.startswith("acc") and self.values.get("NUM_CONSUMERS", 1) > 1
        return f"{array} {who.consumer}" if apart else array

    def _place(self, slot: str, env) -> str:
        assert slot != "slot" or env.get("slot"), "no slot"
        (ring,) = {ring for (s, _), ring in _CURSORS.items() if s == env.get("argument", slot)}
        return ring

    def _statement(self, text, who, env):
        if text == _SLOT:
            env["slot"] = True
            return
        if text.startswith("turn ="):
            assert text == "turn = turn + 1 == STAGING ? 0 : turn + 1", text
            yield ("advance", "turn")
            return
        if text.startswith("const uint32_t scales "):
            assert text == _SCALES, text
            return
        if text == "phase ^= 1":
            yield ("advance", "done")
            return
        if found := re.fullmatch(r"const Input \*a = smem\.a\[([\w.]+)\] \+ consumer \* CONSUMER_M \* BLOCK_K", text):
            env["a"] = self._place(found[1], env)
            return
        for pattern, make in _CALLS:
            if found := re.fullmatch(pattern, text):
                yield from make(self, found, who, env)
                return
        raise AssertionError(f"unknown: {text}")

    def _load_k_tile(self, found, who, env):
        yield from self._block(self._function("load_k_tile"), who, {"argument": found[1]})

    def _load_pairs(self, found, who, env):
        body = function_body(self.source, "load_pairs")
        assert body.index("tcgen05_load(") < body.index("tcgen05_wait_load()")
        yield ("read",)
        yield ("have read",)

    def _multiply(self, found, who, env):
        d, a, b, scales = found.groups()
        assert bool(scales) == self.scaled
        assert d == ("tmem + slot * BLOCK_N" if "slot" in env else "tmem"), d
        both = []
        for operand, text in (("a", a), ("b", b)):
            inside = re.fullmatch(rf"smem\.{operand}(?:\[([\w.]+)\])?", text)
            both.append(env["a"] if text == "a" else self._place(inside[1], env) if inside[1] else "")
        yield ("multiply", *both, *([""] if scales else []), "pair" if self.pair else "self")

    def _copy(self, found, who, env):
        yield ("copy", self._place(found[1], env), self._place(found[2], env), "pair" if self.pair else "self")

    def _commit(self, found, who, env):
        mask = re.search(r"static_cast<uint16_t>\((\w+)\)", function_body(self.source, "tcgen05_commit"))
        ctas = {3: "pair"}.get(self.values[mask[1]], self.values[mask[1]]) if mask else "self"
        yield ("commit", self._named(found[1], who), self._place(found[2], env) if found[2] != "0" else "done", ctas)

    def _load(self, found, who, env):
        function, to, slot, map_, barrier, signals = found.groups()
        assert to == map_ and slot == signals, "lands on another stage than it signals"
        body = function_body(self.source, function)
        leader = "mapa.shared::cluster.u32 first, %2, 0;" in body
        assert leader == ("[first]" in body) == ("cta_group::2" in body)
        place = self._place(slot, env)
        yield ("load", to, place, barrier, env.get("boxes", 1) * self.bytes[to], "leader" if leader else "each")

    def _wait(self, found, who, env):
        yield ("wait", self._named(found[1], who), _CURSORS[found[2], found[3]], int(bool(found[4])))

    def _expect(self, found, who, env):
        yield ("expect", found[1], self._place(found[2], env), evaluate(found[3], self.values), env.get("rank", "self"))

    def _init(self, found, who, env):
        yield ("init", found[1], env.get("depth", 1), evaluate(found[3], self.values))

    def _store(self, found, who, env):
        released = re.search(r"smem\.acc_empty\[(\w+)\]", found[0])
        assert (", smem.d[warp], turn, map_d, d, ldd," in found[0]) == self.staged
        assert found[0].startswith("store(tmem") or not released, "split K releases where it shares"
        env["released"] = released and self._place(released[1], env)
        yield from self._block(self._function("store"), who, env)

    def _share(self, found, who, env):
        yield from self._block(self._function("share"), who, {"released": self._place(found[1], env), "box": "part"})

    def _next_tile(self, found, who, env):
        yield from self._block(self._function(found[1]), who, {})

    def _ask(self, found, who, env):
        ctas = "all" if ".multicast::cluster::all" in function_body(self.source, "clc_try_cancel") else "self"
        yield ("ask", self._place(found[1], env), "clc_full", ctas)

    def _answer_read(self, found, who, env):
        ctas = "self" if not found[1] else "leader" if found[2] == "0" else 1 << int(found[2])
        yield ("arrive", "clc_empty", "clc", ctas)

    def _release(self, found, who, env):
        yield from self._block(self._function("release"), who, env)

    def _arrive(self, found, who, env):
        yield ("arrive", self._named("acc_empty", who), env["released"], "leader" if found[1] else "self")

    def _stores(self, found, who, env):
        yield ("stores", evaluate(found[1], self.values))

    def _alloc(self, found, who, env):
        yield (found[1], evaluate(found[2], self.values), "pair" if self.pair else "self")


def _always(*word):
    return lambda kernel, found, who, env: [word]


_CALLS = [
    (r"mbarrier_init\(smem\.(\w+)\[(\w+)\], ([\w +-]+)\)", Kernel._init),
    (r"fence_mbarrier_init\(\)", _always("init", "published")),
    (r"cluster_sync\(\)", _always("cluster")),
    (r"__syncthreads\(\)", _always("cta")),
    (r"__syncwarp\(\)", _always("warp")),
    (r"mbarrier_wait\(smem\.(\w+)\[([\w.]+)\], ([\w.]+?)( \^ 1)?\)", Kernel._wait),
    (r"mbarrier_arrive_expect_tx\(smem\.(\w+)\[([\w.]+)\], ([\w +/-]+)\)", Kernel._expect),
    (r"mbarrier_arrive_expect_tx_cluster\(smem\.(\w+)\[([\w.]+)\], (CLC_BYTES), rank\)", Kernel._expect),
    (r"(tma_load|tma_load_pair)\(smem\.([ab])\[([\w.]+)\], map_(\w), smem\.(\w+)\[([\w.]+)\], (?:k0|refill), [^;]*\)",
     Kernel._load),
    (r"(tma_load|tma_load_pair)\(smem\.([ab])\[([\w.]+)\] \+ i \* BLOCK_K, map_(\w), smem\.(\w+)\[([\w.]+)\], "
     r"tile\.\w+ \+ [^,;]*\bi, k0\)", Kernel._load),
    (r"(tma_load|tma_load_pair)\(smem\.(sf[ab])\[([\w.]+)\], map_(\w+), smem\.(\w+)\[([\w.]+)\], word, [^;]*\)",
     Kernel._load),
    (r"load_k_tile\(smem, ([\w.]+), map_a, map_b, tile, (?:k0|refill)\)", Kernel._load_k_tile),
    (r"load_k_tile<BLOCK_[MN]>\(smem\.(\w), .*\)", lambda kernel, found, who, env: [("write", found[1])]),
    (r"multiply\(([^,]+), ([^,]+), ([^,]+),( scales,)? (?:k0 > 0|k0 > range\.begin|false)\)", Kernel._multiply),
    (r"copy_scales\(scales, smem\.sfa\[([\w.]+)\] \+ consumer \* ATOMS_K \* ATOM_BYTES, smem\.sfb\[([\w.]+)\]\)",
     Kernel._copy),
    (r"tcgen05_commit\(smem\.(\w+)\[([\w.]+)\]\)", Kernel._commit),
    (r"tcgen05_fence_(before|after)\(\)", lambda kernel, found, who, env: [(found[1],)]),
    (r"tcgen05_(alloc)\(smem\.tmem\[0\], ([\w /]+)\)", Kernel._alloc),
    (r"tcgen05_(dealloc)\(tmem, ([\w /]+)\)", Kernel._alloc),
    (r"tcgen05_relinquish\(\)", _always("relinquish")),
    (r"store\((?:tmem|shared_sums, splits).*\)", Kernel._store),
    (r"share\(tmem.*, smem\.acc_empty\[(\w+)\], .*\)", Kernel._share),
    (r"__threadfence\(\)", _always("threadfence")),
    (r"before = atomicAdd\(counter, 1\)", _always("count")),
    (r"return __shfl_sync\(0xffffffff, (?:index|before), 0\)(?: \+ 1 == splits)?", _always("told")),
    (r"(?:index = )?(next_tile(?:_of_warp)?)\(smem, clc\)", Kernel._next_tile),
    (r"clc_try_cancel\(smem\.clc\[([\w.]+)\], smem\.clc_full\[\1\]\)", Kernel._ask),
    (r"const int first = clc_first_cta\(smem\.clc\[clc\.slot\]\)", _always("answer", "clc")),
    (r"mbarrier_arrive(_cluster)?\(smem\.clc_empty\[clc\.slot\](?:, (\d))?\)", Kernel._answer_read),
    (r"release\(acc_empty\)", Kernel._release),
    (r"mbarrier_arrive(_cluster)?\(acc_empty(?:, 0)?\)", Kernel._arrive),
    (r"tcgen05_load\(v, acc \+ \(first_lane << 16\) \+ c\)", _always("read")),
    (r"tcgen05_wait_load\(\)", _always("have read")),
    (r"load_pairs\(v, acc \+ \(first_lane << 16\) \+ 2 \* c, .*\)", Kernel._load_pairs),
    (r"bulk_wait_read<([^>]+)>\(\)", Kernel._stores),
    (r"stage\(boxes\[turn\], v(, c - first)?\)", _always("write", "d")),
    (r"fence_proxy_async\(\)", _always("fence")),
    (r"tma_store\(map_d, boxes\[turn\], box_column, box_row\)", _always("store")),
    (r"bulk_commit\(\)", _always("commit stores")),
    (r"(\w+)\.advance\(\)", lambda kernel, found, who, env: [("advance", found[1])]),
]  # fmt: skip


def who_of(role: P.Role) -> Who:
    """The role of the kernel that a role of the program describes."""
    rank = role.ctas[0] if role.ctas else 0
    kind, *number = role.name.split()
    if role.name.endswith("of the peer"):
        return Who(kind, 0, rank)
    return Who("mma" if kind == "peer" else kind, int(number[0]) if number else 0, rank)
