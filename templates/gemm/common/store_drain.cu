if (threadIdx.x % 32 == 0) bulk_wait_read<0>();  // shared memory must outlive the last store's reads
