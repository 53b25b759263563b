if (args.m > BLOCK_M || args.n > BLOCK_N || args.k > BLOCK_K) return cudaErrorInvalidValue;  // one tile of everything
