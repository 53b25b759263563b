"""The benchmark on the card: first launches, cuBLASLt's choice, warm-up, the timed run, the check."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kgen.baselines import WORKSPACE_BYTES, CublasGemmEx, CublasLt, CublasLtBest
from kgen.bench.check import Checker, DeviceKernels, error_limit
from kgen.bench.contestants import GpuContestant, Prepare, worst_errors
from kgen.bench.gpu_clock import GpuClock
from kgen.bench.operands import OperandSets, Outputs, RandomBlock, plan_sets
from kgen.bench.report import Environment, Row, ShapeResult, timed_row, with_ratios, wrong_row
from kgen.bench.spread import Spread
from kgen.bench.timing import Clock, Policy, Rotation, fastest, find_pace, interleave, settle, timed_rounds
from kgen.cublas_abi import find_cublas
from kgen.errors import KgenError, ToolchainError
from kgen.runtime import (
    Card,
    DeviceBuffer,
    DeviceError,
    GemmLibrary,
    GemmShape,
    Stream,
    memory_info,
    open_card,
)
from kgen.telemetry import NoSampler, Sampler, find_sampler

Progress = Callable[[str, str], None]  # (phase, label of the contestant that runs alone in it, or "")
Skips = Mapping[str, tuple[str, str]]  # label not to be launched -> (status, note)


class ContestantCrash(KgenError):
    """A contestant after whose launch the device reports an error; the context is lost with it."""

    def __init__(self, label: str, what: str):
        self.label, self.what = label, what
        super().__init__(f"{label}: {what}")


@dataclass
class Bench:
    """The card and everything that outlives a shape."""

    card: Card
    stream: Stream
    clock: Clock
    sampler: Sampler
    checker: Checker
    block: RandomBlock
    policy: Policy
    gemm: CublasGemmEx | None = None
    lt: CublasLt | None = None
    lt_algorithms: int = 16
    lt_keep: int = 3
    environment: Environment | None = None
    notes: list[str] = field(default_factory=list)


def open_bench(dtype_in: str, policy: Policy, lt_algorithms: int, lt_keep: int) -> Bench:
    """Open the card and what can be found beside it. Raises `NoDeviceError` without a card, and
    `ToolchainError` where nothing could check a result."""
    card = open_card()
    stream = Stream()
    found, cublas_note = find_cublas()
    notes = [] if found else [cublas_note]
    gemm = CublasGemmEx(found, stream.handle) if found else None
    workspace = DeviceBuffer(WORKSPACE_BYTES) if found else None
    lt = CublasLt(found, stream.handle, workspace) if found and workspace else None
    kernels = None
    try:
        kernels = DeviceKernels(card, stream)
    except (ToolchainError, DeviceError) as missing:
        notes.append(f"results are compared on the host, which is slow: {missing}")
    sampler = find_sampler(card.pci_bus_id)
    if isinstance(sampler, NoSampler):
        notes.append("neither NVML nor nvidia-smi answers, so SM clock and power are unknown")
    return Bench(
        card=card,
        stream=stream,
        clock=GpuClock(stream),
        sampler=sampler,
        checker=Checker(stream, gemm, kernels),
        block=RandomBlock(dtype_in, policy.seed),
        policy=policy,
        gemm=gemm,
        lt=lt,
        lt_algorithms=lt_algorithms,
        lt_keep=lt_keep,
        environment=Environment(
            card=card.name,
            sm_count=card.sm_count,
            l2_bytes=card.l2_bytes,
            driver_version=card.driver_version,
            cublas_version=gemm.version if gemm else None,
            cublas_note=cublas_note,
        ),
        notes=notes,
    )


def measure_shape(
    bench: Bench,
    shape: GemmShape,
    libraries: Sequence[tuple[str, GemmLibrary]],
    skip: Skips,
    progress: Progress,
    free_bytes: int | None = None,
) -> ShapeResult:
    """All contestants on one shape. Raises `ContestantCrash` where one takes the device's context down.

    `free_bytes` of device memory (asked of the card by default) bound the operand sets.
    """
    progress("operands", "")
    outputs_owned = len(libraries) + (2 + bench.lt_keep if bench.gemm else 0)
    free_bytes = memory_info()[0] if free_bytes is None else free_bytes
    plan = plan_sets(shape, bench.card.l2_bytes, free_bytes, outputs_owned)
    operands = OperandSets(shape, plan.sets, bench.block)
    run = _ShapeRun(bench, shape, operands, plan.slots, skip, progress)
    try:
        return run.measure(libraries)
    finally:
        run.free()
        operands.free()


class _ShapeRun:
    """One shape's contestants on their way from first launch to a row of the report."""

    def __init__(
        self,
        bench: Bench,
        shape: GemmShape,
        operands: OperandSets,
        slots: int,
        skip: Skips,
        progress: Progress,
    ):
        self._bench, self._shape, self._operands, self._slots = bench, shape, operands, slots
        self._skip, self._progress = skip, progress
        self._outputs: list[Outputs] = []
        self._lt = CublasLtBest(bench.lt, shape, bench.lt_algorithms) if bench.lt else None
        self._limit = error_limit(shape.dtype_out, None)
        self._rows: dict[str, Row] = {}  # of contestants that are out; the others get theirs at the end
        self._rotation = Rotation(operands.sets)

    def measure(self, libraries: Sequence[tuple[str, GemmLibrary]]) -> ShapeResult:
        """The whole way."""
        bench, stream = self._bench, self._bench.stream.handle
        result = ShapeResult(
            self._shape,
            (),
            operand_sets=self._operands.sets,
            operand_bytes=self._operands.bytes,
            reference=bench.checker.reference,
        )
        bench.checker.load(self._shape, self._operands.a(0), self._operands.b(0))
        cublas = []
        if bench.gemm is not None:
            cublas = self._admit([self._enter(CublasGemmEx.label, "cublas", bench.gemm.prepare)])

        def bound(library: GemmLibrary) -> Prepare:
            return lambda shape, a, b, d: library.prepare(shape, a, b, d, stream)

        ours = self._admit([self._enter(label, "library", bound(library)) for label, library in libraries])
        order = [label for label, _ in libraries] + [c.label for c in cublas]
        order += [label for label in self._rows if label not in order]
        if not ours:
            # Nothing of the user's is left to compare with: the reasons are the result.
            return dataclasses.replace(
                result, rows=tuple(self._rows[label] for label in order if label in self._rows)
            )

        finalists = self._choose_lt()
        order += [c.label for c in finalists]
        order += [label for label in self._rows if label not in order]
        return self._time([*ours, *cublas, *finalists], order, result)

    def free(self) -> None:
        """Give back all memory and descriptors of the shape."""
        self._bench.checker.free()
        for outputs in self._outputs:
            outputs.free()
        if self._lt is not None:
            self._lt.close()

    def _enter(
        self, label: str, kind: str, prepare: Prepare, outputs: Outputs | None = None
    ) -> GpuContestant:
        if outputs is None:
            outputs = Outputs(self._shape, self._slots)
            self._outputs.append(outputs)
        return GpuContestant(label, kind, self._shape, prepare, self._operands, outputs)

    def _admit(self, entrants: Sequence[GpuContestant]) -> list[GpuContestant]:
        """Those whose first launch is right; the others get their row."""
        admitted = []
        for entrant in entrants:
            label, kind = entrant.label, entrant.kind
            if label in self._skip:
                self._rows[label] = Row(label, kind, *self._skip[label])
                continue
            try:
                error = self._first_error(entrant)
            except ContestantCrash:
                raise
            except KgenError as refusal:
                self._rows[label] = Row(label, kind, "refused", str(refusal))
                continue
            if error <= self._limit:
                admitted.append(entrant)
            else:
                self._rows[label] = wrong_row(label, kind, error, self._limit)
        return admitted

    def _first_error(self, entrant: GpuContestant) -> float:
        """Relative error of the first launch, on set 0, whose reference is loaded."""
        self._progress("first launch", entrant.label)
        stream = self._bench.stream
        entrant.poison(stream)
        stream.synchronize()
        refusal: KgenError | None = None
        try:
            entrant.launch(0)
        except KgenError as error:
            refusal = error
        try:
            stream.synchronize()
        except DeviceError as error:
            raise ContestantCrash(entrant.label, str(error)) from error
        if refusal is not None:
            raise refusal
        error = self._bench.checker.error(self._shape, entrant.outputs.d(0))
        if entrant.kind == "cublas":
            self._limit = error_limit(self._shape.dtype_out, error)
        return error

    def _choose_lt(self) -> list[GpuContestant]:
        """The fastest of cuBLASLt's algorithms, each with outputs of its own for the timed run."""
        lt, bench = self._lt, self._bench
        if lt is None:
            return []

        def by_rank(rank: int) -> Prepare:
            return lambda _shape, a, b, d: lt.prepare(rank, a, b, d)

        shared = Outputs(self._shape, self._slots)
        self._outputs.append(shared)
        candidates = self._admit(
            [self._enter(f"cuBLASLt #{rank}", "cublaslt", by_rank(rank), shared) for rank in lt.ranks]
        )
        for rank in lt.ranks:  # an algorithm that is out is no row of its own: another one stands in
            self._rows.pop(f"cuBLASLt #{rank}", None)
        if not candidates:
            self._rows["cuBLASLt"] = Row("cuBLASLt", "cublaslt", "refused", "no algorithm for this shape")
            return []
        self._progress("choosing cuBLASLt's algorithm", "")
        pace = find_pace(candidates, bench.clock, self._rotation, bench.policy)
        settle(candidates, bench.clock, self._rotation, bench.policy, pace)
        kept = fastest(candidates, bench.clock, self._rotation, bench.policy, bench.lt_keep)
        prepare = {candidate.label: candidate.prepare for candidate in candidates}
        return [self._enter(label, "cublaslt", prepare[label]) for label in kept]

    def _time(
        self, contestants: Sequence[GpuContestant], order: Sequence[str], result: ShapeResult
    ) -> ShapeResult:
        bench, policy = self._bench, self._bench.policy
        self._progress("warm-up", "")
        pace = find_pace(contestants, bench.clock, self._rotation, policy)
        settling = settle(contestants, bench.clock, self._rotation, policy, pace)
        for contestant in contestants:
            contestant.poison(bench.stream)  # in stream order, so the card does not rest
        rounds = timed_rounds(policy, pace)
        self._progress("timing", "")
        bench.sampler.start()
        try:
            seconds = interleave(
                contestants, bench.clock, self._rotation, rounds, pace.batch, pace.filler_s, policy.seed
            )
        finally:
            clocks = bench.sampler.stop()

        self._progress("checking", "")
        errors, checked = worst_errors(contestants, bench.checker)
        rows = dict(self._rows)
        for contestant in contestants:
            label = contestant.label
            note = (
                f"of {len(self._lt.ranks)} algorithms" if self._lt and contestant.kind == "cublaslt" else ""
            )
            spread = Spread.of(seconds[label])
            rows[label] = timed_row(
                self._shape, label, contestant.kind, spread, pace.batch, errors[label], self._limit, note
            )
        return dataclasses.replace(
            result,
            rows=with_ratios(rows[label] for label in order),
            checked_buffers=checked,
            rounds=rounds,
            warmup_s=settling.seconds,
            settled=settling.stable,
            clocks=clocks,
        )
