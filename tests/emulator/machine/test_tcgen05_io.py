"""tcgen05.ld, st and cp of every shape in whole kernels, which are written here: a kernel per shape and count."""

import numpy as np
import pytest

from kgen.emulator.launch import launch

from .conftest import HERE, only
from .tcgen05_layouts import descriptor

COLUMNS = 512

HEAD = f'#include "{HERE}/ptx.cuh"\n' + """
__shared__ uint32_t slot;
__device__ uint32_t begin() {
  if (threadIdx.x / 32 == 0) alloc<1>(smem(&slot), 512);
  fence_before();
  __syncthreads();
  fence_after();
  return slot;
}
__device__ void end(uint32_t tmem) {
  fence_before();
  __syncthreads();
  fence_after();
  if (threadIdx.x / 32 == 0) dealloc<1>(tmem, 512);
}
// Every word of the warp's lanes: lane << 16 | column, or what they hold to out[lane][column].
__device__ void fill(uint32_t tmem, uint32_t columns) {
#pragma unroll 1
  for (uint32_t j = 0; j < columns; j += 8) {
    uint32_t v[8];
    for (int i = 0; i < 8; i++) v[i] = threadIdx.x << 16 | (j + i);
    store8(tmem + (threadIdx.x / 32 * 32 << 16) + j, v);
  }
  wait_st();
}
__device__ void dump(uint32_t tmem, uint32_t columns, uint32_t *out) {
#pragma unroll 1
  for (uint32_t j = 0; j < columns; j += 8) {
    uint32_t v[8];
    load8(v, tmem + (threadIdx.x / 32 * 32 << 16) + j);
    wait_ld();
    for (int i = 0; i < 8; i++) out[threadIdx.x * columns + j + i] = v[i];
  }
}
"""

# (row, column) that register i of thread t holds, from the tables of the PTX ISA, relative to the address.
SHAPES = {
    # shape: (registers at x1, row, column)
    "32x32b": (1, lambda t, i: t, lambda t, i: i),
    "16x64b": (1, lambda t, i: t // 4 + 8 * (t % 2), lambda t, i: 2 * i + t // 2 % 2),
    "16x128b": (2, lambda t, i: t // 4 + 8 * (i % 2), lambda t, i: 4 * (i // 2) + t % 4),
    "16x256b": (4, lambda t, i: t // 4 + 8 * (i // 2 % 2), lambda t, i: 8 * (i // 4) + 2 * (t % 4) + i % 2),
    "16x32bx2": (1, lambda t, i: t % 16, lambda t, i: i),
}
CASES = [
    (shape, n, half)
    for shape, (registers, _, _) in SHAPES.items()
    for n in (1, 2, 4, 8, 16, 32, 64, 128)
    for half in (False, True)
    if registers * n <= 128
]


def first(n):
    """The column that the instructions name; the largest of them need all 512."""
    return 5 if n < 32 else 0


def name(shape, n, half):
    return f"io_{shape}_x{n}{'_half' * half}"


def split(n, half):
    """Columns between the two halves of 16x32bx2."""
    return n * (2 if half else 1) + (3 if n < 128 else 0)


def kernel(shape, n, half):
    """Fill, load, keep the registers; store thread << 16 | register; dump everything."""
    count = SHAPES[shape][0] * n
    registers = ", ".join(f"%{i}" for i in range(count))
    imm = f", {split(n, half)}" if shape == "16x32bx2" else ""
    outs = ", ".join(f'"=r"(v[{i}])' for i in range(count))
    ins = ", ".join(f'"r"(v[{i}])' for i in range(count))
    load = f"tcgen05.ld.sync.aligned.{shape}.x{n}{'.pack::16b' * half}.b32 {{{registers}}}, [%{count}]{imm};"
    store = f"tcgen05.st.sync.aligned.{shape}.x{n}{'.unpack::16b' * half}.b32 [%{count}]{imm}, {{{registers}}};"
    return f"""
extern "C" __global__ void __launch_bounds__(128) {name(shape, n, half)}(
    uint32_t *regs, uint32_t *out, uint32_t lane) {{
  const uint32_t tmem = begin(), t = threadIdx.x;
  const uint32_t at = tmem + (t / 32 * 32 + lane << 16) + {first(n)};
  fill(tmem, {COLUMNS});
  uint32_t v[{count}];
  asm volatile("{load}" : {outs} : "r"(at));
  wait_ld();
  for (int i = 0; i < {count}; i++) regs[t * {count} + i] = v[i];
  for (int i = 0; i < {count}; i++) v[i] = (0x8000 + t) << 16 | (0x4000 + i);
  asm volatile("{store}" :: {ins}, "r"(at) : "memory");
  wait_st();
  dump(tmem, {COLUMNS}, out);
  end(tmem);
}}
"""


@pytest.fixture(scope="module")
def shapes_ptx(compiled, tmp_path_factory):
    source = tmp_path_factory.mktemp("io") / "tcgen05_io.cu"
    source.write_text(HEAD + "".join(kernel(*c) for c in CASES))
    return compiled(str(source), "100a")


@pytest.mark.parametrize("shape, n, half", CASES)
def test_load_and_store(shapes_ptx, shape, n, half):
    registers, row, column = SHAPES[shape]
    t, i = np.arange(32)[:, None], np.arange(registers * n)[None, :]
    rows, columns = np.broadcast_arrays(row(t, i), column(t, i))
    second = t // 16 * split(n, half) * (shape == "16x32bx2")
    for lane in (0, 16) if shape != "32x32b" else (0,):
        regs, out = np.zeros((4, 32, registers * n), np.uint32), np.zeros((128, COLUMNS), np.uint32)
        ptx = only(shapes_ptx, name(shape, n, half))
        result = launch(ptx, None, 1, 128, [regs, out, np.uint32(lane)], seed=lane)
        assert not result.warnings
        want = (np.arange(128)[:, None] << 16 | np.arange(COLUMNS)).astype(np.uint32)
        for w in range(4):
            lanes = 32 * w + lane + rows
            stored = ((0x8000 + 32 * w + t) << 16 | (0x4000 + i)).astype(np.uint32)
            if half:
                # The low 16 bits of two neighbouring columns share a register.
                at = first(n) + 2 * columns + second
                assert (regs[w] == at | (at + 1) << 16).all()
                want[lanes, at], want[lanes, at + 1] = stored & 0xFFFF, stored >> 16
            else:
                at = first(n) + columns + second
                assert (regs[w] == lanes << 16 | at).all()
                want[lanes, at] = stored
        assert (out == want).all()


# --- cp -------------------------------------------------------------------------------------------------------

# shape: (rows, bytes per row, lanes of each row)
COPIES = {
    "128x256b": (128, 32, lambda r: [r]),
    "128x128b": (128, 16, lambda r: [r]),
    "64x128b.warpx2::02_13": (64, 16, lambda r: [r, r + 64]),
    "64x128b.warpx2::01_23": (64, 16, lambda r: [r, r + 32] if r < 32 else [r + 32, r + 64]),
    "32x128b.warpx4": (32, 16, lambda r: [r, r + 32, r + 64, r + 96]),
    "4x256b": (4, 32, lambda r: [32 * r]),
}
FORMATS = ["", ".b8x16.b4x16_p64", ".b8x16.b6x16_p32"]


def copy_kernel(index, shape, fmt):
    return f"""
extern "C" __global__ void __launch_bounds__(128) cp_{index}(const uint8_t *image, uint64_t desc, uint32_t *out) {{
  __shared__ __align__(1024) uint8_t tile[4096];
  __shared__ uint64_t bar[2];
  if (threadIdx.x == 0) {{
    init(smem(bar), 1);
    init(smem(bar + 1), 1);
    fence_init();
  }}
  const uint32_t tmem = begin();
  fill(tmem, 32);
  fence_before();
  __syncthreads();
  fence_after();
  if (threadIdx.x / 32 == 0 && elect()) {{
    expect(smem(bar), 4096);
    bulk_load(smem(tile), image, 4096, smem(bar));
    wait(smem(bar), 0);
    asm volatile("tcgen05.cp.cta_group::1.{shape}{fmt} [%0], %1;"
                 ::"r"(tmem + 3), "l"(desc + (smem(tile) >> 4)) : "memory");
    commit(smem(bar + 1));
  }}
  __syncwarp();
  wait(smem(bar + 1), 0);
  fence_after();
  dump(tmem, 32, out);
  end(tmem);
}}
"""


@pytest.fixture(scope="module")
def copies_ptx(compiled, tmp_path_factory):
    source = tmp_path_factory.mktemp("cp") / "tcgen05_cp.cu"
    cases = [(s, f) for s in COPIES for f in FORMATS]
    source.write_text(HEAD + "".join(copy_kernel(i, *c) for i, c in enumerate(cases)))
    return compiled(str(source), "100a")


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("shape", COPIES)
def test_copy(copies_ptx, shape, fmt):
    rows, nbytes, lanes = COPIES[shape]
    image = np.random.default_rng(3).integers(0, 256, 4096).astype(np.uint8)
    index = [(s, f) for s in COPIES for f in FORMATS].index((shape, fmt))
    # Core matrices of 8 rows x 16 bytes; the second column of them 2048 bytes on.
    desc, out = descriptor(0, 2048, 128, 0), np.zeros((128, 32), np.uint32)
    want = (np.arange(128)[:, None] << 16 | np.arange(32)).astype(np.uint32)
    for r in range(rows):
        groups = [image[r * 16 + 2048 * c :][:16] for c in range(nbytes // 16)]
        data = np.concatenate([_expanded(g, fmt) for g in groups]).astype(np.uint8).view(np.uint32)
        for lane in lanes(r):
            want[lane, 3 : 3 + nbytes // 4] = data
    for seed in range(2):
        result = launch(only(copies_ptx, f"cp_{index}"), None, 1, 128, [image, np.uint64(desc), out], seed=seed)
        assert not result.warnings and (out == want).all()


def _expanded(group, fmt):
    """16 bytes as they are, or the byte containers of the 16 elements in the first 8 or 12 of them."""
    if not fmt:
        return group
    bits = 4 if "b4x16" in fmt else 6
    value = int.from_bytes(group.tobytes(), "little")
    codes = np.array([value >> bits * i & (1 << bits) - 1 for i in range(16)])
    return codes << 2 if bits == 4 else codes
