/*% set in_parts = plan.output.bytes == 1 %*/
/*% set box_columns = "STORE_COLUMNS" if in_parts else "CHUNK" %*/
/*% if plan.finish %*/
${ part("gemm/common/epilogue/finish.cu") }

/*% endif %*/
${ part(plan.parts.stage) }

// The last columns of D where they are no whole 16 bytes: a TMA store can end only at a 16-byte step.
DEVICE void store_tail(const Output *box, Output *d, int64_t ldd, int row, int column, int m, int n) {
  const int first = n / STORE_STEP * STORE_STEP, tail = n - first;
  for (int i = threadIdx.x % 32; i < STORE_ROWS * tail; i += 32) {
    const int r = i / tail, c = first + i % tail, chunk = (c - column) / STORE_STEP ^ r % 8;
    if (row + r < m) d[(row + r) * ldd + c] = box[r * ${ box_columns } + chunk * STORE_STEP + c % STORE_STEP];
  }
}

// Writes D from ${ "what the splits have shared of 32 rows" if "share" in plan.parts else "this warp's 32 lanes of the accumulator at `acc`" }, through its boxes. `turn` runs on from tile to tile:
// it names the box used longest ago.
DEVICE void store(${ part(plan.parts.source_parameters) } Output (&boxes)[STAGING][STORE_ROWS * ${ box_columns }], int &turn,
                  const CUtensorMap &map_d, Output *d, int64_t ldd, int row, int column, int m, int n${ ",\n                  const Epilogue &e" if plan.finish }) {
  const bool leader = threadIdx.x % 32 == 0;
  const int first_lane = threadIdx.x / 32 % 4 * STORE_ROWS, box_row = row + first_lane;
/*% if plan.finish %*/
  const int own_row = box_row + threadIdx.x % 32;
/*% endif %*/
/*% if in_parts %*/
  for (int first = 0; first < ${ plan.out_n }; first += STORE_COLUMNS) {
    const int box_column = column + first;
    if (leader) bulk_wait_read<STAGING - 1>();
    __syncwarp();  // the box is free
    for (int c = first; c < first + STORE_COLUMNS; c += CHUNK) {
      float v[CHUNK];
      ${ part(plan.parts.source, depth=3, row="own_row", column="column + c") }
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
/*% else %*/
  for (int c = 0; c < ${ plan.out_n }; c += CHUNK) {
    const int box_column = column + c;
    float v[CHUNK];
    ${ part(plan.parts.source, depth=2, row="own_row", column="box_column") }
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
/*% endif %*/
    fence_proxy_async();  // by every lane that wrote, before one lane's store reads
    __syncwarp();
    if (leader && box_column + STORE_STEP <= n) tma_store(map_d, boxes[turn], box_column, box_row);
    if (leader) bulk_commit();  // empty beyond the edge, so that groups keep counting boxes
    if (n % STORE_STEP != 0 && box_column < n && n < box_column + ${ box_columns })
      store_tail(boxes[turn], d, ldd, box_row, box_column, m, n);
    turn = turn + 1 == STAGING ? 0 : turn + 1;
  }
}
