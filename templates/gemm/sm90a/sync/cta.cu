__syncthreads();
