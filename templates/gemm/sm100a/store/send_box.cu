fence_proxy_async();  // by every lane that wrote, before one lane's store reads
__syncwarp();
if (leader && box_column + STORE_STEP <= n) tma_store(map_d, boxes[turn], box_column, box_row);
if (leader) bulk_commit();  // empty beyond the edge, so that groups keep counting boxes
if (n % STORE_STEP != 0 && box_column < n && n < box_column + ${ plan.box_extent })
  store_tail(boxes[turn], d, ldd, box_row, box_column, m, n);
turn = turn + 1 == STAGING ? 0 : turn + 1;
