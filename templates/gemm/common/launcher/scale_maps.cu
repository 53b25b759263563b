const int64_t words = (args.k + ATOM_K - 1) / ATOM_K * ATOM_WORDS;  // of a row of atoms
/*% for t in plan.tensor_maps if not t.stride %*/
CUtensorMap ${ t.name } = tensor_map(error, ${ t.dtype }, sizeof(uint64_t), args.${ t.operand },
                                 (${ t.rows } + ATOM_ROWS - 1) / ATOM_ROWS, words, words, ${ t.box_rows_expr },
                                 ${ t.box_columns_expr }, CU_TENSOR_MAP_SWIZZLE_NONE);
/*% endfor %*/
