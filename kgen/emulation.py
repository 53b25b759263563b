"""Proving a GEMM project without its card: the compiled PTX in the emulator, over the shapes that break kernels.

The emulator knows nothing of specs or plans; this module does for it what the launcher at the end of the `.cu` does for
the card: operands, tensor maps, grid.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kgen import emulation_epilogue as epilogue
from kgen.emulator.launch import Device
from kgen.emulator.swizzle import Swizzle
from kgen.emulator.tensormap import DataType, encode_tiled
from kgen.errors import EmulatorError
from kgen.operands import NUMPY, Operand, make_operand, rounded
from kgen.plan.common import GemmPlan
from kgen.plan.resources import TensorMap
from kgen.proving import Case, Proof
from kgen.surrounded import surrounded

Shape = tuple[int, int, int]
CLC_MODES = ("random", "success", "failure")  # what launch control answers while tiles are left, by seed
SM_COUNT = 4  # few SMs make persistent CTAs take several tiles of a small problem



def shapes(plan: GemmPlan) -> list[Shape]:
    """(m, n, k): one tile, below a tile, tails, a ring that wraps, an odd grid with more tiles than CTAs."""
    return [(m, n + n % 2 if plan.pairs else n, k) for m, n, k in _shapes(plan)]  # pairs need an even n


def _shapes(plan: GemmPlan) -> list[Shape]:
    (block_m, block_n, block_k), (tile_m, tile_n), stages = plan.cta_tile, plan.cluster_tile, plan.stages
    if plan.one_tile:
        depths = (block_k, 1, block_k - 7) if plan.k_tiles else (block_k, 1, 3 * block_k + 1)
        return [(block_m, block_n, k) for k in depths] + [(1, 1, depths[-1]), (block_m - 3, block_n - 5, depths[-1])]
    odd = [
        (tile_m, tile_n, block_k),
        (1, 1, 1),
        (7, block_n, block_k + 1),
        (tile_m + 1, tile_n - 1, (stages + 1) * block_k - 5),
        (2 * tile_m - 3, tile_n + 9, 2 * stages * block_k + 1),
        (3 * tile_m - 5, 3 * tile_n + 8, 2 * block_k),
    ]
    return [(m, n, -(-k // plan.input.packed) * plan.input.packed) for m, n, k in odd]


@dataclass(frozen=True)
class Problem:
    """A and B on the host, and how far the rows of all three lie apart."""

    a: Operand
    b: Operand
    shape: Shape
    strides: dict[str, int]  # from row to row, in elements of the stored arrays
    extras: dict[str, np.ndarray]  # what the epilogue reads


def make_problem(plan: GemmPlan, shape: Shape, seed: int, numbers: str) -> Problem:
    """`numbers`: "normal", or "integers" whose every product and sum is exact."""
    m, n, k = shape
    rng = np.random.default_rng([seed, m, n, k])
    draw = rng.standard_normal if numbers == "normal" else lambda size: rng.integers(-4, 5, size).astype(float)
    spreads = {operand: int(rng.integers(0, 3)) for operand in "abd"}
    exact = rng if numbers == "integers" else None
    a, b = make_operand(plan, "a", draw((m, k)), exact), make_operand(plan, "b", draw((n, k)), exact)
    by_tma = {t.operand for t in plan.tensor_maps}
    strides = {}
    width = {"n": n, "n / 2": n // 2}[plan.d_columns]
    for operand, length in (("a", a.stored.shape[1]), ("b", b.stored.shape[1]), ("d", width)):
        step = 16 // (plan.output if operand == "d" else plan.input).bytes if operand in by_tma else 1
        strides[operand] = -(-length // step) * step + spreads[operand] * step
    return Problem(a, b, shape, strides, epilogue.draw(plan.finish, m, n, rng))


def run(
    plan: GemmPlan, ptx: str, problem: Problem, *, seed: int = 0, arithmetic: str = "fast", warn=(), trace=None,
    clc: str = "success", reduced: dict[str, np.ndarray] | None = None,
) -> tuple[np.ndarray, bool, list[str]]:
    """Launches the kernel once: D, whether the bytes around it are untouched, and what checks warned of; `reduced` is
    given what the epilogue's reductions came to.

    Raises EmulatorError for whatever the kernel does wrong.
    """
    m, n, k = problem.shape
    sizes = {"m": m, "n": n, "k": k // plan.input.packed, "n / 2": n // 2}
    width = sizes[plan.d_columns]
    device = Device(ptx)
    nothing = np.frombuffer(b"\xff" * (m * width * plan.output.bytes), NUMPY[plan.output.name]).reshape(m, width)
    host = {
        o: surrounded(values, problem.strides[o])
        for o, values in (("a", problem.a.stored), ("b", problem.b.stored), ("d", nothing))
    }
    if plan.scales:
        host |= {"sfa": problem.a.scales, "sfb": problem.b.scales}
    addresses = {o: device.buffer(array, o) for o, array in host.items()}
    arguments = {name: np.int32(sizes[name]) for name in "mnk"}
    counters = None
    if plan.split_k > 1:  # zero before the first launch, as the header asks; the sums may hold anything
        first, size = plan.workspace_bytes(m, n)
        counters = np.frombuffer(bytes(first) + b"\xff" * (size - first), np.uint8).copy()
        start = device.buffer(counters, "workspace")
        arguments |= {"counters": start, "partials": start + first}
        counters = counters[:first]
    arguments |= addresses | {f"ld{o}": np.int64(stride) for o, stride in problem.strides.items()}
    extras = epilogue.on_device(plan.finish, problem.extras, device, m, n) if plan.finish else None
    if plan.finish:
        arguments["e"] = epilogue.struct(plan.finish, extras, m, width)
    for t in plan.tensor_maps:
        arguments[t.name] = _tensor_map(plan, t, addresses[t.operand], host[t.operand], problem.strides, sizes)
    result = device.launch(
        _grid(plan, m, n, k),
        plan.launch.threads,
        [arguments[name] for name in plan.parameters],
        cluster=plan.launch.cluster if plan.launch.cluster_size > 1 else None,
        smem=plan.launch.smem_bytes,
        sm_count=SM_COUNT,
        seed=seed,
        arithmetic=arithmetic,
        warn=warn,
        trace=trace,
        clc=clc,
    )
    if plan.finish and reduced is not None:
        reduced |= extras.reductions(plan.finish)
    after = host["d"]
    raw = after.view(np.uint8).reshape(len(after), -1)
    intact = (raw[m:] == 0xFF).all() and (raw[:, width * plan.output.bytes :] == 0xFF).all()
    if counters is not None:  # and zero again after it, for the next one
        intact = intact and not counters.any()
    return after[:m, :width], bool(intact), result.warnings


def _tensor_map(plan: GemmPlan, t: TensorMap, address: int, array: np.ndarray, strides: dict, sizes: dict) -> bytes:
    if t.operand in strides:
        swizzle, columns, rows = Swizzle.B128, sizes[t.columns], sizes[t.rows]
        stride = strides[t.operand] * t.element_bytes
        if t.operand == "d":  # whole 16-byte steps; the kernel writes the rest itself
            step = 16 // t.element_bytes
            columns = max(columns // step, 1) * step
    else:  # scales, all of them
        swizzle, (rows, stride) = Swizzle.NONE, array.shape
        columns = stride // t.element_bytes
    return encode_tiled(
        DataType[t.dtype.removeprefix("CU_TENSOR_MAP_DATA_TYPE_")],
        address,
        (columns, rows),
        (stride,),
        (t.box_columns, t.box_rows),
        (1, 1),
        swizzle=swizzle,
        arch=plan.arch.name.rstrip("a"),
    )


def _grid(plan: GemmPlan, m: int, n: int, k: int) -> int | tuple[int, int]:
    tiles = [-(-extent // tile) for extent, tile in zip((m, n), plan.cluster_tile, strict=True)]
    if plan.schedule == "single":
        return 1
    if plan.schedule == "grid":
        x, y, _ = plan.launch.cluster
        return tiles[0] * x, tiles[1] * y
    if plan.schedule == "clc":
        return tiles[0] * tiles[1] * plan.launch.cluster_size
    ctas = plan.ctas or SM_COUNT * plan.launch.ctas_per_sm
    size = plan.launch.cluster_size
    splits = min(plan.split_k, -(-k // plan.cta_tile[2]))
    return max(1, min(tiles[0] * tiles[1] * splits, ctas // size)) * size


def _truncated(x: np.ndarray) -> np.ndarray:
    """float64 to float32, toward zero."""
    nearest = x.astype(np.float32)
    return np.where(np.abs(nearest) > np.abs(x), np.nextafter(nearest, np.float32(0)), nearest)


def references(plan: GemmPlan, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """D in float64, and in the kernel's precision: the products of one MMA at a time into a truncated fp32 accumulator,
    rounded to D's type at the end."""
    exact, plain = unrounded(plan, problem)
    return exact, rounded(plain, plan.output).astype(np.float64)


def unrounded(plan: GemmPlan, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The same before the rounding to D's type."""
    a, b, depth = problem.a.values, problem.b.values, plan.mma_shape[2]
    exact, plain = np.zeros((len(a), len(b))), np.zeros((len(a), len(b)), np.float32)
    for k in range(0, a.shape[1], depth):
        part = a[:, k : k + depth] @ b[:, k : k + depth].T
        exact += part
        plain = _truncated(plain + part)
    return tuple(epilogue.apply(plan.finish, x, problem.extras) for x in (exact, plain))


def cases(
    plan: GemmPlan, ptx: str, *, only: list[Shape] | None = None, seeds: int = 1, arithmetic: str = "fast", trace=None,
    kinds: tuple[str, ...] = ("normal", "integers"),
) -> Iterator[Case | str]:
    """Runs every shape with normal numbers and with integers, each with `seeds` timings; yields the name of a case as
    it begins, then its result. Right means: every element within twice the error of the same precision done plainly
    (integers: exact), nothing written around D, and no check of the emulator broken. `trace` records the first run."""
    for shape in only or shapes(plan):
        for numbers in kinds:
            problem = make_problem(plan, shape, 0, numbers)
            for seed in range(seeds):
                name = "x".join(map(str, shape)) + f" {numbers}" + (f" seed {seed}" if seeds > 1 else "")
                yield name
                yield _case(name, plan, ptx, problem, numbers, seed, arithmetic, trace)
                trace = None


def prove(plan: GemmPlan, ptx: str, tell: Callable[[str], None] = lambda text: None, **options) -> Proof:
    """All `cases` as a proof; `tell` hears what is running, `options` are those of `cases`."""
    proof = Proof(returncode=0, place="emulator")
    for step in cases(plan, ptx, **options):
        if isinstance(step, Case):
            proof.cases.append(step)
        else:
            tell(f"emulating {step}")
    return proof


def _case(name, plan, ptx, problem, numbers, seed, arithmetic, trace=None) -> Case:
    exact, before = unrounded(plan, problem)
    plain = rounded(before, plan.output).astype(np.float64)
    start, reduced = time.monotonic(), {}
    try:
        clc = CLC_MODES[seed % len(CLC_MODES)]
        d, intact, warnings = run(
            plan, ptx, problem, seed=seed, arithmetic=arithmetic, trace=trace, clc=clc, reduced=reduced
        )
    except EmulatorError as e:
        return Case(name, False, float("nan"), 0.0, time.monotonic() - start, str(e))
    got = d.astype(np.float64)
    if numbers == "integers" and plan.finish is None:  # an epilogue's own arguments are no integers
        wanted = rounded(exact, plan.output).astype(np.float64)
        error, limit = float(np.max(np.abs(got - wanted))), 0.0
    else:
        error, limit = float(np.max(np.abs(got - exact))), 2 * float(np.max(epilogue.off(plan.finish, exact, plain)))
    wrong = epilogue.errors(plan.finish, reduced, exact, before)
    note = "; ".join([*warnings, *wrong])
    if np.isnan(got).any():
        note = f"{int(np.isnan(got).sum())} elements were not written, or read past an edge"
    elif not intact:
        note = "wrote outside of D"
    ok = error <= limit and intact and not warnings and not wrong
    return Case(name, ok, error, limit, time.monotonic() - start, note)


def barrier_names(plan: GemmPlan) -> dict[int, str]:
    """What the source calls each mbarrier, by byte offset in shared storage: for a `Trace`."""
    at = {region.name: region.offset for region in plan.smem.regions}
    return {at[b.name] + 8 * i: f"{b.name}[{i}]" for b in plan.barriers for i in range(b.depth)}
