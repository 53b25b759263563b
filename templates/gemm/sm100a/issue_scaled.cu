// Copies are in order with the MMAs of the same thread only, so each issuer has scales of its own.
const uint32_t scales = tmem + SCALE_TMEM + consumer * SCALE_COLUMNS;
copy_scales(scales, smem.sfa[ring.slot] + consumer * ATOMS_K * ATOM_BYTES, smem.sfb[ring.slot]);
multiply(tmem + slot * BLOCK_N, a, smem.b[ring.slot], scales, k0 > ${ "range.begin" if "workspace" in plan.parts else 0 });
