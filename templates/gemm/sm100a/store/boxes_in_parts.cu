for (int first = 0; first < ${ plan.out_n }; first += STORE_COLUMNS) {
  const int box_column = column + first;
  if (leader) bulk_wait_read<STAGING - 1>();
  __syncwarp();  // the box is free
  for (int c = first; c < first + STORE_COLUMNS; c += CHUNK) {
    float v[CHUNK];
    ${ part(plan.parts.source, depth=2, row="own_row", column="column + c") }
/*% if plan.finish and not plan.pairs %*/
    finish_row(v, own_row, column + c, e);
/*% endif %*/
/*% if plan.finish %*/
/*% for r in plan.finish.reductions %*/
    reduce_${ r.op }(v, own_row, column + c, e);
/*% endfor %*/
/*% endif %*/
    stage(boxes[turn], v, c - first);
  }
  ${ part("gemm/sm100a/store/send_box.cu", depth=1) }
}
