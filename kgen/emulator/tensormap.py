"""Tensor maps: what `cuTensorMapEncodeTiled` accepts, and the record that stands for its 128 opaque bytes.

The hardware format is undocumented, so a map built here is our own record with a magic number. It travels
wherever the real one would: as a `__grid_constant__` parameter, in global or in shared memory.

Sources: CUDA driver API, "Tensor Map Object Management" (argument order, enumerations, every rule below);
PTX ISA "tensormap.replace" for field names and the element-type codes, which differ from the driver's.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from enum import IntEnum
from operator import index

from kgen.emulator.swizzle import Swizzle
from kgen.emulator.tensorbox import CHUNK_BITS, Box, tile_box
from kgen.errors import EmulatorError


class DataType(IntEnum):
    """CUtensorMapDataType."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12
    U4X16_ALIGN8B = 13
    U4X16_ALIGN16B = 14
    U6X16_ALIGN16B = 15

    @property
    def bits(self) -> int:
        """Bits of one element in global memory."""
        return _BITS[self]

    @property
    def is_float(self) -> bool:
        return DataType.FLOAT16 <= self <= DataType.TFLOAT32_FTZ

    @property
    def is_padded(self) -> bool:
        """Groups of 16 elements that occupy 16 bytes in shared memory but 8 or 12 in global memory."""
        return self >= DataType.U4X16_ALIGN16B


_BITS = dict(zip(DataType, (8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6), strict=True))


class Interleave(IntEnum):
    """CUtensorMapInterleave."""

    NONE = 0
    B16 = 1
    B32 = 2


class L2Promotion(IntEnum):
    """CUtensorMapL2promotion; a hint without effect here."""

    NONE = 0
    L2_64B = 1
    L2_128B = 2
    L2_256B = 3


class OobFill(IntEnum):
    """CUtensorMapFloatOOBfill."""

    ZERO = 0
    NAN = 1


# CUtensorMapSwizzle, by value.
SWIZZLES = (
    Swizzle.NONE,
    Swizzle.B32,
    Swizzle.B64,
    Swizzle.B128,
    Swizzle.B128_ATOM_32B,
    Swizzle.B128_ATOM_32B_FLIP_8B,
    Swizzle.B128_ATOM_64B,
)

_MAGIC = b"kgenTMAP"
_LAYOUT = struct.Struct("<8s6B2xQ5I4Q5H5B")  # up to the element strides; the last 4 bytes are a checksum
SIZE = 128


class TensorMapError(EmulatorError):
    """Arguments that `cuTensorMapEncodeTiled` refuses; `problems` names each violated rule."""

    def __init__(self, problems: list[str]):
        self.problems = problems
        super().__init__("tensor map refused:\n  " + "\n  ".join(problems))


class TensorStoreOverhang(EmulatorError):
    """A tensor store that writes past globalDim[0], up to the end of a 16-byte chunk."""


@dataclass(frozen=True)
class TensorMap:
    """A tiled tensor map. Dimensions are innermost first; strides are bytes and start at dimension 1."""

    dtype: DataType
    address: int
    global_dim: tuple[int, ...]
    global_strides: tuple[int, ...]
    box_dim: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: Interleave = Interleave.NONE
    swizzle: Swizzle = Swizzle.NONE
    l2_promotion: L2Promotion = L2Promotion.NONE
    oob_fill: OobFill = OobFill.ZERO

    # Shared-memory alignment that a tensor copy needs whatever the swizzle (CUDA programming guide, table
    # of TMA alignment requirements). The phase of a swizzle is zero only at multiples of `swizzle.period`.
    shared_alignment = 128

    @property
    def rank(self) -> int:
        return len(self.global_dim)

    def box(self, coords) -> Box:
        """The box at `coords` (signed, innermost first) for a load: may reach outside the tensor.

        Raises EmulatorError for a wrong number of coordinates, coordinates that the data type forbids, and
        interleaved maps, which are not modelled.
        """
        return tile_box(self, tuple(int(c) for c in coords))

    def store_box(self, coords, allow_overhang: bool = False) -> Box:
        """As `box`, for a store or reduction: elements outside are not written.

        PTX ISA asks for start coordinates >= 0 in stores (on an H200 the others are an illegal instruction);
        that parts beyond the upper bounds are clipped is what every GEMM with a tail relies on. Along
        dimension 0 the card clips whole 16-byte chunks only: where the row ends inside one, the rest of it
        is written as well, into the padding or whatever else lies there. That is TensorStoreOverhang,
        or, with `allow_overhang`, a box whose `inside` says what the card writes. 16U4_ALIGN16B has no store.
        """
        if self.dtype is DataType.U4X16_ALIGN16B:
            raise EmulatorError("tensor store: 16U4_ALIGN16B maps can only be loaded")
        box = self.box(coords)
        if min(coords) < 0:
            raise EmulatorError(f"tensor store: start coordinates must not be negative, got {tuple(coords)}")
        if self.global_dim[0] * self.dtype.bits % CHUNK_BITS == 0:
            return box
        written = tile_box(self, tuple(int(c) for c in coords), whole_chunks=True)
        past = int(written.inside.sum() - box.inside.sum()) * box.unit_bytes
        if past and not allow_overhang:
            row = self.global_dim[0] * self.dtype.bits // 8
            raise TensorStoreOverhang(
                f"tensor store: globalDim[0] is {row} bytes, no multiple of 16: the store at "
                f"{tuple(map(int, coords))} writes {past} bytes past it, whole 16-byte chunks"
            )
        return written

    def replaced(self, field: str, value, ord: int = 0) -> TensorMap:
        """The map after `tensormap.replace.tile.<field>`; call `check` before its next use.

        `value` is the register's integer, `ord` the dimension or stride it names. `rank` takes rank - 1.
        """
        value = index(value)
        if field == "global_address":
            return replace(self, address=value)
        if field in ("box_dim", "global_dim", "element_stride", "global_stride"):
            name = {"element_stride": "element_strides", "global_stride": "global_strides"}.get(field, field)
            values = getattr(self, name)
            if not 0 <= ord < len(values):
                raise EmulatorError(f"tensormap.replace.{field}: no element {ord} in a rank {self.rank} map")
            return replace(self, **{name: (*values[:ord], value, *values[ord + 1 :])})
        if field == "rank":
            return self._resized(value + 1)
        if field == "elemtype":
            return replace(self, dtype=DataType(_member("elemtype", _REPLACE_TYPES, value)))
        if field == "interleave_layout":
            return replace(self, interleave=Interleave(_member(field, (0, 1, 2), value)))
        if field == "fill_mode":
            return replace(self, oob_fill=OobFill(_member(field, (0, 1), value)))
        if field == "swizzle_mode":
            return replace(self, swizzle=_member(field, SWIZZLES[:4], value))
        if field == "swizzle_atomicity":
            atoms = (Swizzle.B128, *SWIZZLES[4:])
            if self.swizzle not in atoms:
                if value:
                    raise EmulatorError(f"tensormap.replace.{field}: only the 128B mode has atoms over 16B")
                return self
            return replace(self, swizzle=_member(field, atoms, value))
        raise EmulatorError(f"tensormap.replace: unknown field {field}")

    def _resized(self, rank: int) -> TensorMap:
        if not 1 <= rank <= 5:
            raise EmulatorError(f"tensormap.replace.rank: {rank} dimensions, must be 1..5")

        def fit(values, n, fill):
            return (*values[:n], *(fill,) * (n - len(values)))

        return replace(
            self,
            global_dim=fit(self.global_dim, rank, 1),
            global_strides=fit(self.global_strides, rank - 1, 0),
            box_dim=fit(self.box_dim, rank, 1),
            element_strides=fit(self.element_strides, rank, 1),
        )

    def check(self) -> TensorMap:
        """Itself, or TensorMapError naming every rule it breaks."""
        problems = _problems(self)
        if problems:
            raise TensorMapError(problems)
        return self

    def to_bytes(self) -> bytes:
        """128 bytes that `from_bytes` understands."""

        def pad(values, n):
            return (*values, *(0,) * (n - len(values)))

        body = _LAYOUT.pack(
            _MAGIC,
            self.rank,
            self.dtype,
            self.interleave,
            SWIZZLES.index(self.swizzle),
            self.l2_promotion,
            self.oob_fill,
            self.address,
            *pad([d - 1 for d in self.global_dim], 5),  # 2**32 must fit in 32 bits
            *pad(self.global_strides, 4),
            *pad(self.box_dim, 5),
            *pad(self.element_strides, 5),
        ).ljust(SIZE - 4, b"\0")
        return body + struct.pack("<I", zlib.crc32(body))

    @staticmethod
    def from_bytes(data: bytes) -> TensorMap:
        """The map in 128 bytes; EmulatorError if they are not one (or were overwritten since)."""
        data = bytes(data)
        if len(data) != SIZE or data[:8] != _MAGIC:
            raise EmulatorError("the 128 bytes given as a tensor map are not one: build it with encode_tiled")
        if struct.unpack("<I", data[-4:])[0] != zlib.crc32(data[:-4]):
            raise EmulatorError("a tensor map was changed by ordinary stores: use tensormap.replace")
        _, rank, dtype, interleave, swizzle, l2, oob, address, *rest = _LAYOUT.unpack_from(data)
        return TensorMap(
            DataType(dtype),
            address,
            tuple(d + 1 for d in rest[:rank]),
            tuple(rest[5 : 5 + rank - 1]),
            tuple(rest[9 : 9 + rank]),
            tuple(rest[14 : 14 + rank]),
            Interleave(interleave),
            SWIZZLES[swizzle],
            L2Promotion(l2),
            OobFill(oob),
        )


# Element types of tensormap.replace.elemtype, in the order of its codes.
_REPLACE_TYPES = (0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12, 13, 14, 15)


def _member(what: str, table, value: int):
    if not 0 <= value < len(table):
        raise EmulatorError(f"{what}: {value} is not one of its codes 0..{len(table) - 1}")
    return table[value]


def encode_tiled(
    dtype,
    address,
    global_dim,
    global_strides,
    box_dim,
    element_strides,
    interleave=0,
    swizzle=0,
    l2_promotion=0,
    oob_fill=0,
    *,
    arch="sm_100",
) -> TensorMap:
    """`cuTensorMapEncodeTiled` without the output pointer; the rank is the length of `global_dim`.

    arch: the context's device. "sm_90" has neither the 128B swizzles with larger atoms (refused on an H200)
    nor the 4- and 6-bit types (ptxas refuses both in tensormap.replace for sm_90a).
    Enumerations are the driver's integers or the classes of this module (`swizzle` also a `Swizzle`).
    `address` is an integer or anything with `__index__`. Raises TensorMapError with every violated rule.
    """
    problems: list[str] = []

    def enum(name, cls, value):
        try:
            return cls(value)
        except ValueError:
            problems.append(f"{name}: {value!r} is not a value of the enumeration")
            return cls(0)

    if not isinstance(swizzle, Swizzle):
        if not 0 <= int(swizzle) < len(SWIZZLES):
            problems.append(f"swizzle: {swizzle!r} is not a value of the enumeration")
            swizzle = 0
        swizzle = SWIZZLES[int(swizzle)]
    dims, box = tuple(map(int, global_dim)), tuple(map(int, box_dim))
    steps = tuple(map(int, element_strides))
    rank = len(dims)
    # The driver reads rank - 1 strides and ignores what follows.
    strides = tuple(map(int, global_strides or ()))[: max(rank - 1, 0)]
    for name, values, need in (
        ("globalStrides", strides, rank - 1),
        ("boxDim", box, rank),
        ("elementStrides", steps, rank),
    ):
        if len(values) != need and 1 <= rank <= 5:
            problems.append(f"{name}: {len(values)} entries for a rank {rank} tensor, needs {need}")
    record = TensorMap(
        enum("tensorDataType", DataType, dtype),
        index(address),
        dims,
        strides,
        box,
        steps,
        enum("interleave", Interleave, interleave),
        swizzle,
        enum("l2Promotion", L2Promotion, l2_promotion),
        enum("oobFill", OobFill, oob_fill),
    )
    problems += _problems(record) if not problems else []
    if arch == "sm_90" and swizzle in SWIZZLES[4:]:
        problems.append(f"swizzle: {swizzle} does not exist on sm_90")
    if arch == "sm_90" and record.dtype >= DataType.U4X16_ALIGN8B:
        problems.append(f"tensorDataType: {record.dtype.name} does not exist on sm_90")
    if problems:
        raise TensorMapError(problems)
    return record


def encode_im2col(*args, **kwargs):
    """`cuTensorMapEncodeIm2col` is not modelled."""
    raise EmulatorError("im2col tensor maps are not modelled; only tiled ones are")


def _problems(m: TensorMap) -> list[str]:
    """Every rule of the driver's reference that the record breaks, each starting with the argument's name."""
    found: list[str] = []

    def need(ok: bool, text: str):
        if not ok:
            found.append(text)

    need(1 <= m.rank <= 5, f"tensorRank: {m.rank}, must be 1..5")
    if found:
        return found
    need(m.interleave == 0 or m.rank >= 3, f"tensorRank: {m.rank}, interleaved layouts need at least 3")
    wide = m.interleave is Interleave.B32 or m.dtype.is_padded
    align = 32 if wide else 16
    need(0 <= m.address < 1 << 64, f"globalAddress: {m.address:#x} is not a 64-bit address")
    need(m.address % align == 0, f"globalAddress: {m.address:#x} is not a multiple of {align}")
    for d, n in enumerate(m.global_dim):
        need(1 <= n <= 1 << 32, f"globalDim[{d}]: {n}, must be 1..2^32")
    for d, n in enumerate(m.global_strides):
        need(n % align == 0, f"globalStrides[{d}]: {n} bytes is not a multiple of {align}")
        need(0 <= n < 1 << 40, f"globalStrides[{d}]: {n} bytes, must be below 2^40")
    for d, n in enumerate(m.box_dim):
        need(1 <= n <= 256, f"boxDim[{d}]: {n}, must be 1..256")
    for d, n in enumerate(m.element_strides):
        ignored = d == 0 and m.interleave == 0
        need(ignored or 1 <= n <= 8, f"elementStrides[{d}]: {n}, must be 1..8")
    inner_bits = m.box_dim[0] * (8 if m.dtype.is_padded else m.dtype.bits)
    if m.interleave == 0:
        need(inner_bits % 128 == 0, f"boxDim[0]: a row of {inner_bits // 8} bytes is not a multiple of 16")
        if m.swizzle is not Swizzle.NONE:
            fits = inner_bits <= 8 * m.swizzle.span
            need(fits, f"boxDim[0]: a row of {inner_bits // 8} bytes exceeds the {m.swizzle} swizzle's span")
    if m.interleave is Interleave.B32:
        need(m.swizzle is Swizzle.B32, f"swizzle: interleave 32B requires the 32B swizzle, not {m.swizzle}")
    if m.dtype is DataType.U4X16_ALIGN8B:
        need(m.global_dim[0] % 2 == 0, f"globalDim[0]: {m.global_dim[0]}, must be even for 16U4_ALIGN8B")
    if m.dtype.is_padded:
        need(m.box_dim[0] == 128, f"boxDim[0]: {m.box_dim[0]}, must be 128 for the ALIGN16B types")
        whole = m.global_dim[0] % 128 == 0
        need(whole, f"globalDim[0]: {m.global_dim[0]}, must be a multiple of 128 for the ALIGN16B types")
        allowed = [Swizzle.NONE, Swizzle.B128, Swizzle.B128_ATOM_32B]
        if m.dtype is DataType.U6X16_ALIGN16B:
            allowed.append(Swizzle.B128_ATOM_64B)  # the store's mode
        need(m.swizzle in allowed, f"swizzle: {m.swizzle} is not allowed for the ALIGN16B types")
    if m.oob_fill is OobFill.NAN:
        need(m.dtype.is_float, f"oobFill: NaN fill needs a floating type, not {m.dtype.name}")
    return found
