/*% if plan.launch.cluster_size > 1 %*/__cluster_dims__(${ plan.launch.cluster | join(", ") }) /*% endif %*/
