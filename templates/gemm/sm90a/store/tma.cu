/*% if plan.finish %*/
${ part("gemm/common/epilogue/finish.cu") }

/*% endif %*/
${ part(plan.parts.stage) }

// The last columns of D where they are no whole 16 bytes: a TMA store can end only at a 16-byte step.
DEVICE void store_tail(const Output *box, Output *d, int64_t ldd, int row, int column, int m, int n) {
  const int first = n / STORE_STEP * STORE_STEP, tail = n - first;
  for (int i = threadIdx.x % 32; i < STORE_ROWS * tail; i += 32) {
    const int r = i / tail, c = first + i % tail, chunk = (c - column) / STORE_STEP ^ r % 8;
    if (row + r < m) d[(row + r) * ldd + c] = box[r * STORE_COLUMNS + chunk * STORE_STEP + c % STORE_STEP];
  }
}

// Writes this warp's rows of D through its boxes. `turn` runs on from tile to tile: it names the box used longest ago.
DEVICE void store(const Accumulators &acc, Output (&boxes)[STAGING][STORE_ROWS * STORE_COLUMNS], int &turn,
                  const CUtensorMap &map_d, Output *d, int64_t ldd, int row, int column, int m, int n${ ",\n                  const Epilogue &e" if plan.finish }) {
  const bool leader = threadIdx.x % 32 == 0;
#pragma unroll
  for (int i = 0; i < M_BLOCKS * ${ plan.out_n } / STORE_COLUMNS; ++i) {
    const int block = i / (${ plan.out_n } / STORE_COLUMNS), c = i % (${ plan.out_n } / STORE_COLUMNS) * STORE_COLUMNS;
    const int box_row = row + block * 64 + threadIdx.x / 32 % 4 * STORE_ROWS, box_column = column + c;
/*% if plan.finish %*/
    float v[STORE_COLUMNS / 2];
    finish_part(v, acc[block] + ${ "c" if plan.pairs else "c / 2" }, box_row, box_column, e);
/*% for r in plan.finish.reductions %*/
    reduce_${ r.op }(v, box_row, box_column, e);
/*% endfor %*/
/*% endif %*/
    if (leader) bulk_wait_read<STAGING - 1>();
    __syncwarp();  // the box is free
    stage(boxes[turn], ${ "v" if plan.finish else "acc[block] + c / 2" });
    fence_proxy_async();  // by every lane that wrote, before one lane's store reads
    __syncwarp();
    if (leader && box_column + STORE_STEP <= n) tma_store(map_d, boxes[turn], box_column, box_row);
    if (leader) bulk_commit();  // empty beyond the edge, so that groups keep counting boxes
    if (n % STORE_STEP != 0 && box_column < n && n < box_column + STORE_COLUMNS)
      store_tail(boxes[turn], d, ldd, box_row, box_column, m, n);
    turn = turn + 1 == STAGING ? 0 : turn + 1;
  }
}
