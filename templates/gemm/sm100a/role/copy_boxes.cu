for (int i = 0; i < ${ rows }; i += BOX_MN)  // a swizzled row holds so many
  ${ load }(smem.${ operand }[ring.slot] + i * BLOCK_K, map_${ operand }, smem.full[ring.slot],
  ${ " " * (load | length) } ${ row } + i, k0);
