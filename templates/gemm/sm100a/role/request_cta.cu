mbarrier_arrive_expect_tx(smem.clc_full[clc.slot], CLC_BYTES);
clc_try_cancel(smem.clc[clc.slot], smem.clc_full[clc.slot]);
