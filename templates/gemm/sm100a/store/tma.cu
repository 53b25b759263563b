/*% if plan.finish %*/
${ part("gemm/common/epilogue/finish.cu") }

/*% endif %*/
${ part(plan.parts.stage) }

// The last columns of D where they are no whole 16 bytes: a TMA store can end only at a 16-byte step.
DEVICE void store_tail(const Output *box, Output *d, int64_t ldd, int row, int column, int m, int n) {
  const int first = n / STORE_STEP * STORE_STEP, tail = n - first;
  for (int i = threadIdx.x % 32; i < STORE_ROWS * tail; i += 32) {
    const int r = i / tail, c = first + i % tail, chunk = (c - column) / STORE_STEP ^ r % 8;
    if (row + r < m) d[(row + r) * ldd + c] = box[r * ${ plan.box_extent } + chunk * STORE_STEP + c % STORE_STEP];
  }
}

// Writes D from ${ "what the splits have shared of 32 rows" if "share" in plan.parts else "this warp's 32 lanes of the accumulator at `acc`" }, through its boxes. `turn` runs on from tile to tile:
// it names the box used longest ago.
DEVICE void store(${ part(plan.parts.source_parameters) } Output (&boxes)[STAGING][STORE_ROWS * ${ plan.box_extent }], int &turn,
                  const CUtensorMap &map_d, Output *d, int64_t ldd, int row, int column, int m, int n${ ",\n                  const Epilogue &e" if plan.finish }) {
  const bool leader = threadIdx.x % 32 == 0;
  const int first_lane = threadIdx.x / 32 % 4 * STORE_ROWS, box_row = row + first_lane;
/*% if plan.finish %*/
  const int own_row = box_row + threadIdx.x % 32;
/*% endif %*/
  ${ part(plan.parts.boxes, depth=1) }
}
