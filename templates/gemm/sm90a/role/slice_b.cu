const int slice = cluster_rank() * B_SLICE;  // the rows that this CTA loads for all
