for (int c = 0; c < ${ plan.out_n }; c += CHUNK) {
  const int box_column = column + c;
  float v[CHUNK];
  ${ part(plan.parts.source, depth=1, row="own_row", column="box_column") }
/*% if plan.finish and not plan.pairs %*/
  finish_row(v, own_row, box_column, e);
/*% endif %*/
/*% if plan.finish %*/
/*% for r in plan.finish.reductions %*/
  reduce_${ r.op }(v, own_row, box_column, e);
/*% endfor %*/
/*% endif %*/
  if (leader) bulk_wait_read<STAGING - 1>();
  __syncwarp();  // the box is free
  stage(boxes[turn], v);
  ${ part("gemm/sm100a/store/send_box.cu", depth=1) }
}
