cluster_sync();  // no CTA may signal a barrier of another before it is initialised
