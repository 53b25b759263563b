uint32_t acc,/*% if "release" in plan.parts %*/ uint64_t &acc_empty,/*% endif %*/
