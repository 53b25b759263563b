const int slice = cluster_rank() * A_SLICE;  // the rows that this CTA loads for all
