cluster_sync();
