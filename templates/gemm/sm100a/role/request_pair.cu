for (int rank = 0; rank < CLUSTER_SIZE; ++rank)  // the answer comes to both CTAs, and each counts its bytes
  mbarrier_arrive_expect_tx_cluster(smem.clc_full[clc.slot], CLC_BYTES, rank);
clc_try_cancel(smem.clc[clc.slot], smem.clc_full[clc.slot]);
