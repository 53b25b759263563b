const int word = k0 / BLOCK_K * ATOMS_K * ATOM_WORDS;
${ load }(smem.sfa[ring.slot], map_sfa, smem.full[ring.slot], word, tile.row / ATOM_ROWS);
${ load }(smem.sfb[ring.slot], map_sfb, smem.full[ring.slot], word, tile.column / ATOM_ROWS);
