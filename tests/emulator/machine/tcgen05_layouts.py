"""Operands of tcgen05.mma as bytes, laid out from the PTX ISA's tables without the emulator's own formulas."""

import itertools

import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def swizzled(address, width):
    """The 16-byte chunk number is XORed with the number of the 128-byte line: 8, 4 or 2 chunks wide."""
    mask = {128: 7, 64: 3, 32: 1, 0: 0}[width]
    return address ^ (address >> 7 & mask) << 4


def descriptor(start, lbo, sbo, code):
    """code: 0 no swizzle, 2 128B, 4 64B, 6 32B, 1 128B with 32-byte atom. 46 is the constant bit."""
    return start >> 4 | lbo >> 4 << 16 | sbo >> 4 << 32 | 1 << 46 | code << 61


CODES = {128: 2, 64: 4, 32: 6, 0: 0}


class Image:
    """Shared memory of one CTA, filled from offset 0; tiles start at multiples of 1024."""

    def __init__(self):
        self.data = bytearray()

    def reserve(self, nbytes):
        start = -(-len(self.data) // 1024) * 1024
        self.data.extend(bytes(start + nbytes - len(self.data)))
        return start

    def k_major(self, rows, width=128):
        """Places uint8 [rows, bytes of K]; one descriptor per 32 bytes of K."""
        rows = np.ascontiguousarray(rows)
        count, nbytes = rows.shape
        start = self.reserve(rows.size)
        found = []
        if not width:
            # Core matrices of 8 rows x 16 bytes, rows of them first: LBO between columns, SBO between rows.
            for r, c in itertools.product(range(count), range(nbytes // 16)):
                at = start + c * count * 16 + r * 16
                self.data[at : at + 16] = rows[r, 16 * c : 16 * c + 16].tobytes()
            return [descriptor(start + 2 * s * count * 16, count * 16, 128, 0) for s in range(nbytes // 32)]
        for slab, r, c in itertools.product(range(nbytes // width), range(count), range(width // 16)):
            at = start + swizzled(slab * count * width + r * width + 16 * c, width)
            from_ = slab * width + 16 * c
            self.data[at : at + 16] = rows[r, from_ : from_ + 16].tobytes()
        for s in range(nbytes // 32):
            slab, inside = divmod(32 * s, width)
            found.append(descriptor(start + slab * count * width + inside, 0, 8 * width, CODES[width]))
        return found

    def mn_major(self, values, width=128):
        """Places [K, M or N] elements whose rows run along M or N; one descriptor per 32 bytes' worth of K."""
        values = np.ascontiguousarray(values)
        depth, count, size = *values.shape, values.itemsize
        per = 32 // size
        start = self.reserve(values.nbytes)
        raw = values.view(np.uint8)
        if not width:
            # 8 k x 16 bytes of M: here SBO steps along M, LBO along K.
            sbo, lbo = 128 * (depth // 8), 128
            for k, c in itertools.product(range(depth), range(count * size // 16)):
                at = start + c * sbo + k // 8 * lbo + k % 8 * 16
                self.data[at : at + 16] = raw[k, 16 * c : 16 * c + 16].tobytes()
            return [descriptor(start + s * per // 8 * lbo, lbo, sbo, 0) for s in range(depth // per)]
        lbo = depth * width  # boxes of one swizzle row x all k, one after another
        wide = size == 4
        for k, box, c in itertools.product(range(depth), range(count * size // width), range(width // 16)):
            at = start + box * lbo + k * width + 16 * c
            # 32-byte atoms move in pairs of chunks, by the line modulo 4.
            at = at ^ (at >> 7 & 3) << 5 if wide else swizzled(at, width)
            self.data[at : at + 16] = raw[k, box * width + 16 * c : box * width + 16 * c + 16].tobytes()
        sbo, code = (4 * width, 1) if wide else (8 * width, CODES[width])
        return [descriptor(start + s * per * width, lbo, sbo, code) for s in range(depth // per)]

    def scales(self, codes):
        """Scale codes [rows, 4 blocks of K]: 512 bytes per 128 rows, as tcgen05.cp.32x128b reads them."""
        rows = -(-len(codes) // 128) * 128
        start = self.reserve(rows * 4)
        for r, b in np.ndindex(codes.shape):
            self.data[start + r // 128 * 512 + r % 32 * 16 + r % 128 // 32 * 4 + b] = codes[r, b]
        return [descriptor(start + 512 * i, 0, 128, 0) for i in range(rows // 128)]

    def half_scales(self, codes):
        """Scale codes [N, 4] for 64x128b.warpx2::01_23: 32 lines for each half of N, 4 bytes per 32 rows."""
        start, half = self.reserve(1024), len(codes) // 2
        for r, b in np.ndindex(codes.shape):
            line = r // half * 32 + r % 32
            self.data[start + line * 16 + r % half // 32 * 4 + b] = codes[r, b]
        return descriptor(start, 0, 128, 0)


def packed(codes):
    """4-bit codes [rows, k], two per byte, the lower k in the low nibble."""
    return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)


def padded(codes):
    """4-bit codes [rows, k]: 16 of them in 8 bytes, then 8 bytes of padding."""
    groups = packed(codes).reshape(len(codes), -1, 8)
    return np.concatenate([groups, np.full_like(groups, 0xAA)], axis=2).reshape(len(codes), -1)
