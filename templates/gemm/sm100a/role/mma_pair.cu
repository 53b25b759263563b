cluster_rank() == 0 && elect_one()
