multiply(tmem + slot * BLOCK_N, a, smem.b[ring.slot], k0 > 0);
