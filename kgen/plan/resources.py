"""What a kernel occupies and how its parts hand over: the vocabulary of every plan.

Frozen records, no arithmetic of a particular kernel family. A count is never typed: a barrier's arrivals are the sum
of who arrives, and its bytes the sum of what is delivered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class Constant:
    """A named constant of the generated file: `constexpr <type> <name> = <expr>; // <why>`.

    `value` is what the plan computed; it is what the expression must come to.
    """

    name: str
    expr: str
    value: int
    why: str = ""


@dataclass(frozen=True)
class SmemRegion:
    """One member of the kernel's shared storage: `count` elements of `ctype`, at `offset` bytes."""

    name: str
    ctype: str
    extents: tuple[str, ...]  # C array extents, as expressions over constants
    offset: int
    bytes: int
    why: str


@dataclass(frozen=True)
class SmemMap:
    """Shared memory of one CTA. Offsets and sizes in bytes, regions in address order without overlap."""

    regions: tuple[SmemRegion, ...]
    alignment: int

    @property
    def bytes(self) -> int:
        last = self.regions[-1] if self.regions else None
        return last.offset + last.bytes if last else 0


@dataclass(frozen=True)
class TmemRegion:
    """Columns of tensor memory, all 128 lanes of 32 bits, from `first` on."""

    name: str
    first: int
    columns: int
    why: str


@dataclass(frozen=True)
class TensorMemory:
    """Tensor memory of one CTA. Allocations are powers of two from 32 to 512 columns (PTX ISA, tcgen05.alloc)."""

    regions: tuple[TmemRegion, ...]
    allocated: int
    allocator: str  # the role whose first warp allocates and frees

    @property
    def used(self) -> int:
        return sum(r.columns for r in self.regions)


@dataclass(frozen=True)
class Role:
    """Warps of a CTA that run one program."""

    name: str
    first_warp: int
    warps: int
    does: str
    registers: int | None = None  # per thread after setmaxnreg; None = as launched

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def warp_numbers(self) -> str:
        """As people write them: 4, or 0-7."""
        last = self.first_warp + self.warps - 1
        return str(last) if self.warps == 1 else f"{self.first_warp}-{last}"


@dataclass(frozen=True)
class Arriver:
    """Who arrives on a barrier: in each of `ctas` CTAs, `groups` groups of the given kind, one arrival per group."""

    role: str
    groups: int
    per: Literal["thread", "warp", "elected", "commit"]
    ctas: int = 1

    @property
    def arrivals(self) -> int:
        return self.groups * self.ctas

    def __str__(self) -> str:
        whose = f" of {self.ctas} CTAs" if self.ctas > 1 else ""
        unit = {"thread": "threads", "warp": "warps", "elected": "elected thread", "commit": "commit"}[self.per]
        if self.per in ("commit", "elected") and self.groups > 1:
            unit += "s"
        return f"{self.role}: {self.groups} {unit}{whose}"


@dataclass(frozen=True)
class Delivery:
    """Bytes that the TMA engine adds to a barrier per phase: `copies` boxes of `bytes_each` from one operand."""

    operand: str
    copies: int
    bytes_each: int

    @property
    def bytes(self) -> int:
        return self.copies * self.bytes_each


@dataclass(frozen=True)
class Barrier:
    """An array of `depth` mbarriers. `first_parity` is the parity of the waiter's first wait."""

    name: str
    depth: int
    arrivers: tuple[Arriver, ...]
    waiter: str
    first_parity: int
    why: str
    deliveries: tuple[Delivery, ...] = ()

    @property
    def arrivals(self) -> int:
        return sum(a.arrivals for a in self.arrivers)

    @property
    def tx_bytes(self) -> int:
        return sum(d.bytes for d in self.deliveries)


@dataclass(frozen=True)
class Pipeline:
    """An edge between two roles: a ring of buffers, filled by `producer`, emptied by `consumer`.

    `full` tells the consumer that a buffer holds data, `empty` (absent where a CTA-wide barrier does the job) tells
    the producer that it may be overwritten.
    """

    name: str
    depth: int
    buffers: tuple[str, ...]
    producer: str
    consumer: str
    full: Barrier
    empty: Barrier | None
    extent: str = "STAGES"  # the constant that names the depth; empty where the only buffer needs none

    @property
    def barriers(self) -> tuple[Barrier, ...]:
        return (self.full, self.empty) if self.empty else (self.full,)


@dataclass(frozen=True)
class TensorMap:
    """A TMA descriptor: a row-major [rows, columns] matrix read or written in boxes of [box_rows, box_columns].

    Where the tile of a CTA takes several boxes, `boxes` of them lie one after another.
    """

    name: str
    operand: str
    rows: str  # the argument that gives the extent
    columns: str
    stride: str  # the argument that gives the row stride, in elements
    box_rows: int
    box_columns: int
    box_rows_expr: str
    box_columns_expr: str
    dtype: str
    element_bytes: int
    boxes: int = 1
    packed: int = 1  # elements of the matrix to an element of the map

    @property
    def per_unit(self) -> str:
        """What turns a stride in elements into one in elements of the map, in C."""
        return f" / {self.packed}" if self.packed > 1 else ""

    @property
    def box_bytes(self) -> int:
        return self.box_rows * self.box_columns * self.element_bytes


@dataclass(frozen=True)
class Launch:
    """Grid and block. `ctas` is a C expression; cluster dimensions in CTAs along x, y, z."""

    threads: int
    cluster: tuple[int, int, int]
    ctas_per_sm: int
    launch_registers: int  # most registers per thread at launch, from the launch bounds
    smem_bytes: int  # dynamic shared memory asked for

    @property
    def cluster_size(self) -> int:
        x, y, z = self.cluster
        return x * y * z


@dataclass(frozen=True)
class Dtype:
    """An element type in its several spellings."""

    name: str
    ctype: str
    ptx: str
    tensor_map: str
    numpy: str
    vector: str  # suffix of CUDA's conversion from two floats
    header: str  # that defines ctype; empty for a built-in type
    bytes: int  # of what the kernel addresses: an element, or `packed` of them
    packed: int = 1  # elements to such a unit
    storage: str = ""  # its type in the kernel, where that is not ctype
    saturates: bool = False  # as D's type: what exceeds its largest number becomes that

    @property
    def unit(self) -> str:
        """The type by which the kernel addresses the matrix."""
        return self.storage or self.ctype

    @property
    def kernel_header(self) -> str:
        """The header that `unit` needs."""
        return "" if self.storage else self.header


@dataclass(frozen=True)
class Scales:
    """Block scales of A and B: one 8-bit number per `block` elements of K.

    They lie in atoms of 512 bytes, for 128 rows and four blocks each, as tcgen05.cp takes them to tensor memory.
    """

    name: str  # ue8m0 or ue4m3
    block: int
    per_step: int  # scales of a row that one MMA reads
    atoms: int  # of 128 rows, along one k tile

    ATOM_BYTES: ClassVar[int] = 512
    ATOM_COLUMNS: ClassVar[int] = 4  # of tensor memory
    ATOM_ROWS: ClassVar[int] = 128


DTYPES = {
    d.name: d
    for d in (
        Dtype(
            name="bf16",
            ctype="__nv_bfloat16",
            ptx="bf16",
            tensor_map="CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
            numpy="ml_dtypes.bfloat16",
            vector="bfloat162",
            header="cuda_bf16.h",
            bytes=2,
        ),
        Dtype(
            name="fp16",
            ctype="__half",
            ptx="f16",
            tensor_map="CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
            numpy="np.float16",
            vector="half2",
            header="cuda_fp16.h",
            bytes=2,
        ),
        Dtype(
            name="fp32",
            ctype="float",
            ptx="f32",
            tensor_map="CU_TENSOR_MAP_DATA_TYPE_FLOAT32",
            numpy="np.float32",
            vector="",
            header="",
            bytes=4,
        ),
        Dtype(
            name="tf32",
            ctype="float",
            ptx="tf32",
            tensor_map="CU_TENSOR_MAP_DATA_TYPE_FLOAT32",
            numpy="np.float32",
            vector="",
            header="",
            bytes=4,
        ),
        Dtype(
            name="e4m3",
            ctype="__nv_fp8_e4m3",
            ptx="e4m3",
            tensor_map="CU_TENSOR_MAP_DATA_TYPE_UINT8",
            numpy="ml_dtypes.float8_e4m3fn",
            vector="",
            header="cuda_fp8.h",
            bytes=1,
            storage="uint8_t",
            saturates=True,
        ),
        Dtype(
            name="e5m2",
            ctype="__nv_fp8_e5m2",
            ptx="e5m2",
            tensor_map="CU_TENSOR_MAP_DATA_TYPE_UINT8",
            numpy="ml_dtypes.float8_e5m2",
            vector="",
            header="cuda_fp8.h",
            bytes=1,
            storage="uint8_t",
        ),
        Dtype(
            name="e2m1",
            ctype="uint8_t",
            ptx="e2m1",
            tensor_map="CU_TENSOR_MAP_DATA_TYPE_UINT8",
            numpy="np.uint8",
            vector="",
            header="",
            bytes=1,
            packed=2,
            storage="uint8_t",
        ),
    )
}
