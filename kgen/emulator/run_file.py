"""RUN.yaml: how to launch a foreign kernel, for `kgen emulate FILE --run RUN.yaml`.

    kernel: name              # or a unique part of it; may be left out if there is one
    grid: 4                   # or [x, y, z]
    block: 128
    cluster: 2                # optional
    smem: 49152               # dynamic shared memory in bytes, optional
    buffers:
      a: {dtype: bf16, shape: [256, 64], init: random}      # zeros, ones, arange, random, or a file (.npy, raw)
    maps:
      map_a: {buffer: a, box: [64, 64], swizzle: 128B}      # rows, columns as in the buffer, outermost first
    args: [map_a, a, {u32: 256}, 1.5]                        # one per kernel parameter
    expect: {d: "a.astype(float) @ b.astype(float).T"}       # optional numpy expressions over the buffers' first values
    tolerance: 0.01           # absolute plus relative
    seed: 0

Extents of maps are those of the buffer unless `extent` says less; `strides` (bytes) likewise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
import yaml

from kgen.emulator.launch import Device, Result
from kgen.emulator.swizzle import Swizzle
from kgen.emulator.tensormap import DataType, OobFill, encode_tiled
from kgen.errors import UsageError

__all__ = ["Outcome", "run_file"]

_TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
    "u8": np.uint8, "s8": np.int8, "u16": np.uint16, "s16": np.int16, "u32": np.uint32, "s32": np.int32,
    "u64": np.uint64, "s64": np.int64,
}  # fmt: skip
_MAP_TYPES = {
    "f16": DataType.FLOAT16, "bf16": DataType.BFLOAT16, "f32": DataType.FLOAT32, "f64": DataType.FLOAT64,
    "e4m3": DataType.UINT8, "e5m2": DataType.UINT8, "u8": DataType.UINT8, "s8": DataType.UINT8,
    "u16": DataType.UINT16, "u32": DataType.UINT32, "s32": DataType.INT32, "u64": DataType.UINT64,
    "s64": DataType.INT64,
}  # fmt: skip
_KEYS = {
    "kernel", "grid", "block", "cluster", "smem", "buffers", "maps", "args", "expect", "tolerance", "seed",
    "sm_count", "arithmetic", "warn",
}  # fmt: skip


@dataclass
class Outcome:
    """What a run gave: the buffers after it, and the largest error of each expectation."""

    result: Result
    buffers: dict[str, np.ndarray]
    errors: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


def run_file(ptx: str, run: Path, **options) -> Outcome:
    """Launches the kernel in `ptx` as the file says; `options` (seed, trace ...) go before those in the file.

    Raises UsageError for a malformed file, EmulatorError for what the kernel does wrong.
    """
    run = Path(run)
    try:
        data = yaml.safe_load(run.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise UsageError(f"{run}: {error}") from None
    if not isinstance(data, dict):
        raise UsageError(f"{run}: must be a mapping with grid, block, buffers and args")
    if unknown := set(data) - _KEYS:
        raise UsageError(f"{run}: unknown {', '.join(sorted(unknown))}; known: {', '.join(sorted(_KEYS))}")
    device = Device(ptx, data.get("kernel"))
    rng = np.random.default_rng(data.get("seed", 0))
    specs = data.get("buffers", {})
    buffers = {name: _buffer(run, name, spec, rng) for name, spec in specs.items()}
    before = {name: x.copy() for name, x in buffers.items()}
    for name, x in buffers.items():
        device.buffer(x, name)
    maps = {name: _map(run, name, spec, specs, buffers, device) for name, spec in data.get("maps", {}).items()}
    args = [_argument(run, x, buffers, maps, device) for x in data.get("args", [])]
    chosen = {k: data[k] for k in ("seed", "sm_count", "arithmetic", "warn") if k in data}
    result = device.launch(
        data.get("grid", 1), data.get("block", 1), args, cluster=data.get("cluster"), smem=data.get("smem", 0),
        **(chosen | options),
    )  # fmt: skip
    outcome = Outcome(result, buffers)
    tolerance = float(data.get("tolerance", 1e-2))
    for name, text in data.get("expect", {}).items():
        if name not in buffers:
            raise UsageError(f"{run}: expect.{name}: no such buffer")
        try:
            wanted = np.asarray(eval(str(text), {"np": np}, before), float)
        except Exception as error:
            raise UsageError(f"{run}: expect.{name}: {error}") from None
        got = buffers[name].astype(float)
        error = np.abs(got - wanted)
        outcome.errors[name] = float(np.nanmax(error, initial=0))
        if not (error <= tolerance * (1 + np.abs(wanted))).all():
            outcome.failed.append(name)
    return outcome


def _buffer(run: Path, name: str, spec, rng) -> np.ndarray:
    if not isinstance(spec, dict) or "dtype" not in spec or "shape" not in spec:
        raise UsageError(f"{run}: buffers.{name}: needs dtype and shape")
    if spec["dtype"] not in _TYPES:
        raise UsageError(f"{run}: buffers.{name}: dtype is one of {', '.join(_TYPES)}")
    dtype, shape = np.dtype(_TYPES[spec["dtype"]]), tuple(np.atleast_1d(spec["shape"]).tolist())
    init = spec.get("init", "zeros")
    if init == "random":
        if dtype.kind in "iu":
            return rng.integers(0, min(np.iinfo(dtype).max, 100), shape).astype(dtype)
        return np.ascontiguousarray(rng.standard_normal(shape).astype(dtype))
    if init in ("zeros", "ones"):
        return np.full(shape, init == "ones", dtype)
    if init == "arange":
        return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)
    if isinstance(init, int | float):
        return np.full(shape, init, dtype)
    path = run.parent / str(init)
    if not path.is_file():
        raise UsageError(f"{run}: buffers.{name}: init is zeros, ones, arange, random, a number, or a file ({path})")
    data = np.load(path) if path.suffix == ".npy" else np.fromfile(path, dtype)
    return np.ascontiguousarray(data.astype(dtype).reshape(shape))


def _map(run: Path, name: str, spec: dict, specs: dict, buffers: dict, device: Device):
    source = spec.get("buffer")
    if source not in buffers or "box" not in spec:
        raise UsageError(f"{run}: maps.{name}: needs buffer (one of {', '.join(buffers)}) and box")
    array = buffers[source]
    extent = tuple(spec.get("extent", array.shape))
    strides = tuple(spec.get("strides", array.strides[:-1]))
    wanted = str(spec.get("swizzle", "none")).lower()
    mode = next((x for x in Swizzle if wanted in (x.label.lower(), x.name.lower())), None)
    if mode is None:
        raise UsageError(
            f"{run}: maps.{name}: swizzle is one of {', '.join(x.name for x in Swizzle)} or 32B, 64B, 128B"
        )
    kind = _MAP_TYPES.get(specs[source]["dtype"])
    if "type" in spec:
        kind = DataType[str(spec["type"]).upper()]
    if kind is None:
        raise UsageError(f"{run}: maps.{name}: tensor maps have no type for {specs[source]['dtype']}")
    return encode_tiled(
        kind, device.buffer(array), extent[::-1], strides[::-1], tuple(spec["box"])[::-1],
        tuple(spec.get("element_strides", [1] * array.ndim))[::-1], swizzle=mode,
        oob_fill=OobFill.NAN if spec.get("oob") == "nan" else OobFill.ZERO,
    )  # fmt: skip


def _argument(run: Path, x, buffers: dict, maps: dict, device: Device):
    if isinstance(x, str):
        if x in maps:
            return maps[x]
        if x in buffers:
            return device.buffer(buffers[x])
        raise UsageError(f"{run}: args: {x} is neither a buffer nor a map")
    if isinstance(x, dict) and len(x) == 1:
        ((kind, value),) = x.items()
        if kind == "bytes":
            return bytes.fromhex(str(value))
        if kind in _TYPES:
            return np.array(value, _TYPES[kind])[()]
    if isinstance(x, int | float) and not isinstance(x, bool):
        return x
    raise UsageError(f"{run}: args: {x!r} is no buffer, map, number, or {{type: value}}")
