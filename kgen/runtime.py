"""The GPU as kgen uses it: memory, a stream, events, clocks, and the C entry point of a built project.

Everything goes through `cuda.bindings.runtime`, imported on first use, so that this module loads (and its
pure parts are testable) on a machine without a driver. Pointers are plain integers, sizes are bytes, leading
dimensions are elements. Every failed CUDA call raises `DeviceError` with the name and text of the error.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgen.errors import KgenError, UsageError

DTYPE_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}
INPUT_DTYPES = ("bf16", "fp16")
OUTPUT_DTYPES = ("bf16", "fp16", "fp32")


class DeviceError(KgenError):
    """A CUDA call that failed. `code` is the cudaError_t, or None where CUDA did not say it."""

    def __init__(self, what: str, code: int | None = None):
        self.code = code
        super().__init__(what)


class NoDeviceError(DeviceError):
    """There is no usable card or driver, so nothing was measured; the exit code says so."""

    exit_code = 3


@functools.cache
def cudart() -> Any:
    """The module `cuda.bindings.runtime`."""
    try:
        from cuda.bindings import runtime
    except ImportError as missing:
        raise NoDeviceError("cuda-python is not installed (pip install 'cuda-python>=13.0')") from missing
    return runtime


def error_text(code: int) -> str:
    """`cudaErrorName: text` for a cudaError_t."""
    try:
        rt = cudart()
        error = rt.cudaError_t(code)
        name, text = rt.cudaGetErrorName(error)[1], rt.cudaGetErrorString(error)[1]
        return f"{name.decode()}: {text.decode()}"
    except (ValueError, NoDeviceError):  # a code newer than the bindings
        return f"CUDA error {code}"


def check(result: tuple[Any, ...], what: str = "") -> Any:
    """Unpack what a `cuda.bindings` call returned: its value, a tuple of several, or None.

    `what` names the attempt in the message of the `DeviceError` raised for any code but success.
    """
    code, values = int(result[0]), result[1:]
    if code != 0:
        raise DeviceError(f"{what or 'CUDA call'}: {error_text(code)}", code)
    if not values:
        return None
    return values[0] if len(values) == 1 else values


@dataclass(frozen=True)
class Card:
    """Facts about the card in use; `versions` are CUDA's major * 1000 + minor * 10."""

    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    pci_bus_id: str
    driver_version: int
    runtime_version: int

    @property
    def sm_arch(self) -> str:
        """NVRTC's target without architecture-specific features, e.g. sm_90."""
        return "sm_{}{}".format(*self.compute_capability)


def open_card(index: int = 0) -> Card:
    """Make card `index` current in this thread (creating its context) and describe it.

    Raises `NoDeviceError` where there is no driver, no card, or the card cannot be opened.
    """
    rt = cudart()
    try:
        count = check(rt.cudaGetDeviceCount(), "looking for a card")
        if index >= count:
            raise NoDeviceError(f"card {index} was asked for, {count} found")
        check(rt.cudaSetDevice(index), "opening the card")
        check(rt.cudaFree(0), "creating the context")
    except NoDeviceError:
        raise
    except DeviceError as error:
        raise NoDeviceError(f"no usable card: {error}", error.code) from error

    attribute = rt.cudaDeviceAttr

    def ask(name: str) -> int:
        return int(check(rt.cudaDeviceGetAttribute(getattr(attribute, name), index), name))

    return Card(
        name=_text(check(rt.cudaGetDeviceProperties(index), "reading the card's properties").name),
        compute_capability=(
            ask("cudaDevAttrComputeCapabilityMajor"),
            ask("cudaDevAttrComputeCapabilityMinor"),
        ),
        sm_count=ask("cudaDevAttrMultiProcessorCount"),
        l2_bytes=ask("cudaDevAttrL2CacheSize"),
        memory_bytes=int(memory_info()[1]),
        pci_bus_id=_text(check(rt.cudaDeviceGetPCIBusId(32, index), "reading the bus id")),
        driver_version=int(check(rt.cudaDriverGetVersion(), "reading the driver's version")),
        runtime_version=int(check(rt.cudaRuntimeGetVersion(), "reading the runtime's version")),
    )


def memory_info() -> tuple[int, int]:
    """(free, total) bytes of the current card."""
    free, total = check(cudart().cudaMemGetInfo(), "reading the free memory")
    return int(free), int(total)


def _text(value: bytes | str) -> str:
    """CUDA hands names out as bytes, padded with zeros in some versions of the bindings."""
    return value.split(b"\0")[0].decode() if isinstance(value, bytes) else value.split("\0")[0]


class DeviceBuffer:
    """`size` bytes of device memory, freed by `free()`, by leaving a `with`, or with the object."""

    def __init__(self, size: int):
        self.size = size
        self.ptr = 0
        self.ptr = int(check(cudart().cudaMalloc(max(size, 1)), f"allocating {size:,} bytes"))

    def free(self) -> None:
        """Give the memory back; a second call does nothing."""
        ptr, self.ptr = self.ptr, 0
        if ptr:
            cudart().cudaFree(ptr)  # unchecked: after a sticky error there is nothing left to do about it

    def fill_byte(self, value: int, stream: Stream) -> None:
        """Set every byte, in stream order. 0xFF makes every bf16, fp16 and fp32 element a NaN."""
        memset(self.ptr, value, self.size, stream)

    def __enter__(self) -> DeviceBuffer:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def __del__(self) -> None:
        if getattr(self, "ptr", 0):
            self.free()


class Stream:
    """A stream that never waits for the legacy default stream. `handle` is the cudaStream_t as an integer."""

    def __init__(self) -> None:
        rt = cudart()
        self._stream = check(rt.cudaStreamCreateWithFlags(rt.cudaStreamNonBlocking), "creating a stream")
        self.handle = int(self._stream)

    def synchronize(self) -> None:
        """Wait for all work; raises what the work raised on the device."""
        check(cudart().cudaStreamSynchronize(self._stream), "waiting for the device")

    def record(self, event: Event) -> None:
        """Put `event` behind all work queued so far."""
        check(cudart().cudaEventRecord(event.raw, self._stream), "recording an event")

    @property
    def raw(self) -> Any:
        """The binding's own stream object, which its functions take fastest."""
        return self._stream


class Event:
    """A timing event."""

    def __init__(self) -> None:
        self.raw = check(cudart().cudaEventCreate(), "creating an event")

    def milliseconds_since(self, start: Event) -> float:
        """Device milliseconds between two events that have both completed."""
        return float(check(cudart().cudaEventElapsedTime(start.raw, self.raw), "reading an event pair"))


def memset(ptr: int, value: int, size: int, stream: Stream) -> None:
    """Set `size` bytes at device address `ptr`, in stream order."""
    check(cudart().cudaMemsetAsync(ptr, value, size, stream.raw), "setting device memory")


def copy(dst: int, src: int, size: int) -> None:
    """Copy `size` bytes between addresses of either side (the driver tells host from device). Blocks for
    host memory. Runs on the legacy stream: synchronise a `Stream` before copying what it wrote."""
    rt = cudart()
    check(rt.cudaMemcpy(dst, src, size, rt.cudaMemcpyKind.cudaMemcpyDefault), f"copying {size:,} bytes")


def synchronize() -> None:
    """Wait for everything on the card."""
    check(cudart().cudaDeviceSynchronize(), "waiting for the device")


@dataclass(frozen=True)
class GemmShape:
    """One D[m,n] = sum_k A[m,k] * B[n,k], all row-major; leading dimensions in elements."""

    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldd: int
    dtype_in: str = "bf16"
    dtype_out: str = "bf16"

    @classmethod
    def packed(
        cls, m: int, n: int, k: int, dtype_in: str = "bf16", dtype_out: str = "bf16", ld_multiple: int = 1
    ) -> GemmShape:
        """Rows one after the other, each padded to a multiple of `ld_multiple` elements."""
        if min(m, n, k) < 1:
            raise UsageError(f"shape {m}x{n}x{k}: every extent must be at least 1")
        if dtype_in not in INPUT_DTYPES or dtype_out not in OUTPUT_DTYPES:
            raise UsageError(
                f"no GEMM from {dtype_in} to {dtype_out} "
                f"(in: {', '.join(INPUT_DTYPES)}; out: {', '.join(OUTPUT_DTYPES)})"
            )

        def up(extent: int) -> int:
            return -(-extent // ld_multiple) * ld_multiple

        return cls(m, n, k, up(k), up(k), up(n), dtype_in, dtype_out)

    @property
    def name(self) -> str:
        """`m x n x k` for messages and tables."""
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def flops(self) -> int:
        """Multiplications plus additions."""
        return 2 * self.m * self.n * self.k

    @property
    def bytes_a(self) -> int:
        """Bytes that A occupies, row padding included."""
        return self.m * self.lda * DTYPE_BYTES[self.dtype_in]

    @property
    def bytes_b(self) -> int:
        """Bytes that B occupies, row padding included."""
        return self.n * self.ldb * DTYPE_BYTES[self.dtype_in]

    @property
    def bytes_d(self) -> int:
        """Bytes that D occupies, row padding included."""
        return self.m * self.ldd * DTYPE_BYTES[self.dtype_out]


class GemmArgs(ctypes.Structure):
    """`struct <name>_args` of every generated GEMM header."""

    _fields_ = (
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("d", ctypes.c_void_p),
        ("m", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("lda", ctypes.c_int64),
        ("ldb", ctypes.c_int64),
        ("ldd", ctypes.c_int64),
        ("workspace", ctypes.c_void_p),  # read only by kernels that split K
    )


class GemmLibrary:
    """The one C entry point of a built GEMM project: `cudaError_t <name>_launch(args *, cudaStream_t)`.

    `path` is the shared library, `name` the project's name. Opening it needs no card. Raises `UsageError`
    where the file or the symbol is missing.
    """

    def __init__(self, path: str | Path, name: str):
        self.path, self.name = Path(path).resolve(), name
        if not self.path.is_file():
            raise UsageError(f"{path}: no such library (build the project first)")
        try:
            self._library = ctypes.CDLL(str(self.path))
        except OSError as error:
            raise UsageError(f"{path}: not a loadable library: {error}") from error
        try:
            self._launch = getattr(self._library, f"{name}_launch")
        except AttributeError as error:
            raise UsageError(f"{path}: exports no {name}_launch (is the project's name {name}?)") from error
        self._launch.argtypes = (ctypes.POINTER(GemmArgs), ctypes.c_void_p)
        self._launch.restype = ctypes.c_int
        self._workspace_bytes = getattr(self._library, f"{name}_workspace_bytes", None)
        if self._workspace_bytes:
            self._workspace_bytes.argtypes = (ctypes.c_int64, ctypes.c_int64)
            self._workspace_bytes.restype = ctypes.c_int64
        self._workspaces: dict[tuple[int, int, int], DeviceBuffer] = {}

    def launch(
        self, a: int, b: int, d: int, m: int, n: int, k: int, lda: int, ldb: int, ldd: int, stream: int = 0
    ) -> None:
        """Queue one GEMM on `stream` (a cudaStream_t as an integer); pointers are device addresses.

        Raises `DeviceError` with the launcher's own error; what the kernel does wrong surfaces only when the
        stream is synchronised.
        """
        self._call(GemmArgs(a, b, d, m, n, k, lda, ldb, ldd, self._workspace(m, n, stream)), stream)

    def prepare(self, shape: GemmShape, a: int, b: int, d: int, stream: int) -> Callable[[], None]:
        """The same launch with everything that Python can do beforehand done: one C call per call."""
        workspace = self._workspace(shape.m, shape.n, stream)
        args = GemmArgs(a, b, d, shape.m, shape.n, shape.k, shape.lda, shape.ldb, shape.ldd, workspace)
        return functools.partial(self._call, args, stream)

    def _workspace(self, m: int, n: int, stream: int) -> int | None:
        """What a kernel that splits K needs: zero at first, left zero by every launch, one for each stream and size."""
        if not self._workspace_bytes:
            return None
        if (m, n, stream) not in self._workspaces:
            made = self._workspaces[m, n, stream] = DeviceBuffer(size := self._workspace_bytes(m, n))
            check(cudart().cudaMemset(made.ptr, 0, size), "clearing a workspace")
            synchronize()  # the launch may run in another stream
        return self._workspaces[m, n, stream].ptr

    def _call(self, args: GemmArgs, stream: int) -> None:
        code = self._launch(ctypes.byref(args), stream)
        if code != 0:
            raise DeviceError(f"{self.name}_launch: {error_text(code)}", code)
