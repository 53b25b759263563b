multiply(tmem + slot * BLOCK_N, a, smem.b[ring.slot], k0 > ${ "range.begin" if "workspace" in plan.parts else 0 });
