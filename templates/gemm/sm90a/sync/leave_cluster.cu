cluster_sync();  // no CTA may exit while another can still signal its barriers
