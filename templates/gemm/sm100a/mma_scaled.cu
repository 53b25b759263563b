// Where the scales of atom `k` of a k tile are: A's come first, then B's, those of an atom column together.
DEVICE uint32_t scales_of_a(uint32_t scales, int k) { return scales + k * ATOM_COLUMNS; }
DEVICE uint32_t scales_of_b(uint32_t scales, int k) {
  return scales + (ATOMS_K + k * (BLOCK_N / ATOM_ROWS)) * ATOM_COLUMNS;
}

// The scales of a k tile on their way to tensor memory. The tensor core does what one thread issues in turn: the MMAs
// before have read the scales that are overwritten here, those after find the new ones.
DEVICE void copy_scales(uint32_t scales, const uint8_t *sfa, const uint8_t *sfb) {
#pragma unroll
  for (int k = 0; k < ATOMS_K; ++k) {
    tcgen05_copy(scales_of_a(scales, k), sfa + k * ATOM_BYTES);
#pragma unroll
    for (int n = 0; n < BLOCK_N / ATOM_ROWS; ++n)
      tcgen05_copy(scales_of_b(scales, k) + n * ATOM_COLUMNS, sfb + (n * ATOMS_K + k) * ATOM_BYTES);
  }
}

// One k tile into the accumulator at `acc`: MMA_K of A and B at a time, issued by one thread. Stepping along K inside a
// swizzled row is a plain addition of 32 bytes, because the swizzle acts on the final address. Of the four scales that
// a row has in an atom, the instruction names the first that it reads.
DEVICE void multiply(uint32_t acc, const Input *a, const Input *b, uint32_t scales, bool accumulate) {
#pragma unroll
  for (int k = 0; k < BLOCK_K; k += MMA_K) {
    const uint32_t block = k / MMA_K * STEP_SCALES, first = block % 4;
    const uint32_t instruction = INSTRUCTION | first << 29 | first << 4;
    tcgen05_mma_scaled(acc, tcgen05_descriptor(a + k), tcgen05_descriptor(b + k), instruction,
                       scales_of_a(scales, block / 4), scales_of_b(scales, block / 4), accumulate || k > 0);
  }
}
