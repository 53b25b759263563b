"""Running a kernel: the front door of the emulator in Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from math import prod

import numpy as np
from threadpoolctl import ThreadpoolController

from kgen.emulator.program import Program, load
from kgen.emulator.schedule import Machine
from kgen.emulator.tensormap import TensorMap
from kgen.errors import EmulatorError

__all__ = ["Device", "Result", "launch"]


@dataclass
class Result:
    """What a launch left behind: instruction count (of whole warps), messages of checks that only warned."""

    instructions: int
    warnings: list[str] = field(default_factory=list)
    machine: Machine | None = None


class Device:
    """Buffers of one launch, so that their addresses are known before it: tensor maps need them.

    A kernel is loaded once per device object; `buffer` places an array, `launch` runs and copies arrays back.
    """

    def __init__(self, ptx: str, kernel: str | None = None):
        self.program: Program = load(ptx, kernel)
        self.memory = self.program.memory.fresh()
        self.arrays: list[tuple[np.ndarray, int]] = []

    def buffer(self, array: np.ndarray, name: str = "") -> int:
        """The device address of `array` (C-contiguous), which the launch updates in place."""
        for known, address in self.arrays:
            if known is array:
                return address
        if not array.flags.c_contiguous:
            raise EmulatorError("arrays given to the emulator must be C-contiguous")
        flat = array.reshape(-1).view(np.uint8)
        address = self.memory.add(name or f"buffer {len(self.arrays)}", flat)
        self.arrays.append((array, address))
        return address

    def launch(
        self, grid, block, args, *, cluster=None, smem: int = 0, sm_count: int = 4, seed: int = 0,
        arithmetic: str = "fast", warn=(), strict=(), clc: str = "success",
        trace=None,
    ) -> Result:  # fmt: skip
        """Runs the kernel once. See `launch`."""
        program = self.program
        grid, block = _dim3(grid), _dim3(block)
        cluster, explicit = _cluster(program, cluster)
        _check_shape(program, grid, block, cluster, sm_count)
        if arithmetic not in ("fast", "exact"):
            raise EmulatorError(f"arithmetic is fast or exact, not {arithmetic!r}")
        values = [
            self.buffer(a, f"argument {i}") if isinstance(a, np.ndarray) and a.ndim else a for i, a in enumerate(args)
        ]
        block_bytes = _parameters(program, values)
        memory = self.memory
        memory.finish()
        at = program.param_base - memory.base
        memory.bytes[at : at + len(block_bytes)] = np.frombuffer(block_bytes, np.uint8)
        machine = Machine(
            program, memory, grid, block, cluster, smem, sm_count, seed, arithmetic, warn, strict, explicit, clc
        )
        if trace is not None:
            trace.attach(machine)
        try:
            # The matrices of one instruction are too small for several threads, which then wait for each other.
            with _blas().limit(limits=1, user_api="blas"):
                machine.run()
        finally:
            for array, address in self.arrays:
                at = address - memory.base
                raw = array.reshape(-1).view(np.uint8)
                raw[:] = memory.bytes[at : at + raw.size]
        return Result(machine.instructions, [str(f) for f in machine.monitor.warnings], machine)


def launch(
    ptx: str, kernel: str | None = None, grid=1, block=1, args=(), *, cluster=None, smem: int = 0, sm_count: int = 4,
    seed: int = 0, arithmetic: str = "fast", warn=(), strict=(), clc: str = "success",
    trace=None,
) -> Result:  # fmt: skip
    """Runs a kernel of a PTX text.

    `grid`, `block` and `cluster` are numbers or up to three of them; `smem` is dynamic shared memory in bytes;
    `args` are numpy arrays (device buffers, updated in place), numpy or Python scalars, TensorMap records and
    `bytes` (structs by value), one per kernel parameter. `sm_count` CTAs run at once. The same `seed` gives the
    same run. `arithmetic` of matrix instructions: "fast" or "exact". `warn`
    names checks that only warn ("all": every one), `strict` those of the lenient ones that shall be errors. `clc`:
    what cluster launch control finds while clusters remain ("success", "failure", "random").
    Raises EmulatorError for whatever the program does wrong, DeadlockError if it cannot end.
    """
    return Device(ptx, kernel).launch(
        grid, block, args, cluster=cluster, smem=smem, sm_count=sm_count, seed=seed, arithmetic=arithmetic,
        warn=warn, strict=strict, clc=clc, trace=trace,
    )  # fmt: skip


@cache
def _blas() -> ThreadpoolController:
    """The libraries behind numpy's matrix products."""
    return ThreadpoolController()


def _dim3(x) -> tuple[int, int, int]:
    values = (int(x),) if np.ndim(x) == 0 else tuple(int(v) for v in x)
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise EmulatorError(f"a grid, block or cluster has one to three positive extents, not {x}")
    return (*values, 1, 1)[:3]


def _cluster(program: Program, asked) -> tuple[tuple[int, int, int], bool]:
    fixed = program.function.directives.get("reqnctapercluster")
    if fixed:
        fixed = _dim3(fixed)
        if asked is not None and _dim3(asked) != fixed:
            raise EmulatorError(f"the kernel requires clusters of {fixed}, asked for {asked}")
        return fixed, True
    return (_dim3(asked), True) if asked is not None else ((1, 1, 1), False)


def _check_shape(program: Program, grid, block, cluster, sm_count: int) -> None:
    for g, c in zip(grid, cluster, strict=True):
        if g % c:
            raise EmulatorError(f"the grid {grid} is not a multiple of the cluster {cluster}")
    if prod(cluster) > 16:
        raise EmulatorError(f"a cluster of {prod(cluster)} CTAs; 8 are portable, 16 the most")
    if prod(cluster) > sm_count:
        raise EmulatorError(f"a cluster of {prod(cluster)} CTAs does not fit on {sm_count} SMs (sm_count)")
    if prod(block) > 1024:
        raise EmulatorError(f"a block of {prod(block)} threads; 1024 is the most")
    directives = program.function.directives
    most = directives.get("maxntid")
    if most and prod(block) > prod(most):
        raise EmulatorError(f"a block of {prod(block)} threads, the kernel allows {prod(most)} (.maxntid)")
    exact = directives.get("reqntid")
    if exact and prod(block) != prod(exact):
        raise EmulatorError(f"a block of {prod(block)} threads, the kernel requires {prod(exact)} (.reqntid)")


def _parameters(program: Program, args) -> bytes:
    params = program.function.params
    if len(args) != len(params):
        raise EmulatorError(f"{program.name} takes {len(params)} arguments, {len(args)} were given")
    block = bytearray(max(program.param_size, 1))
    for i, (v, at, arg) in enumerate(zip(params, program.param_offsets, args, strict=True)):
        if isinstance(arg, TensorMap):
            raw = arg.check().to_bytes()
        elif isinstance(arg, bytes | bytearray):
            raw = bytes(arg)
        elif isinstance(arg, np.generic | np.ndarray):
            raw = arg.tobytes()
        elif isinstance(arg, float):
            raw = (np.float64 if v.size == 8 else np.float32)(arg).tobytes()
        elif isinstance(arg, int):
            raw = (int(arg) & ((1 << 8 * v.size) - 1)).to_bytes(v.size, "little")
        else:
            raise EmulatorError(f"argument {i}: cannot pass a {type(arg).__name__}")
        if len(raw) != v.size:
            raise EmulatorError(f"argument {i}: {len(raw)} bytes given, the parameter has {v.size}")
        block[at : at + v.size] = raw
    return bytes(block)
