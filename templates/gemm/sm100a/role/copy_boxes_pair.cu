for (int i = 0; i < ${ rows }; i += BOX_MN)  // a swizzled row holds so many
  tma_load_pair(smem.${ operand }[ring.slot] + i * BLOCK_K, map_${ operand }, smem.full[ring.slot],
                ${ row } + i, k0);
