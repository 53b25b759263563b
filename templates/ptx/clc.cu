/*% macro clc_try_cancel() %*/
/*% if plan.launch.cluster_size > 1 %*/
// Asks for the work of a cluster that has not started. The answer lands at `answer` in both CTAs, on each one's `full`.
DEVICE void clc_try_cancel(uint64_t (&answer)[2], uint64_t &full) {
  asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
               ".multicast::cluster::all.b128 [%0], [%1];"
               :: "r"(smem_address(answer)), "r"(smem_address(&full)) : "memory");
}
/*% else %*/
// Asks for the work of a CTA that has not started. The answer lands at `answer`; its bytes count towards `full`.
DEVICE void clc_try_cancel(uint64_t (&answer)[2], uint64_t &full) {
  asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
               :: "r"(smem_address(answer)), "r"(smem_address(&full)) : "memory");
}
/*% endif %*/
/*% endmacro %*/

/*% macro clc_first_cta() %*/
// blockIdx.x of the first CTA whose work the answer gives; -1 if there was none to give.
DEVICE int clc_first_cta(const uint64_t (&answer)[2]) {
  int first;
  asm volatile("{\n.reg .b128 answer;\n.reg .pred given;\nld.shared.b128 answer, [%1];\nmov.b32 %0, -1;\n"
               "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 given, answer;\n"
               "@given clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %0, answer;\n}"
               : "=r"(first) : "r"(smem_address(answer)) : "memory");
  return first;
}
/*% endmacro %*/
