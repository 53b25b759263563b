/*% macro elect_one() %*/
// True in one lane of a converged warp.
DEVICE bool elect_one() {
  int elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(elected));
  return elected;
}
/*% endmacro %*/

/*% macro setmaxnreg_inc() %*/
template <int N> DEVICE void setmaxnreg_inc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
/*% endmacro %*/

/*% macro setmaxnreg_dec() %*/
template <int N> DEVICE void setmaxnreg_dec() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
/*% endmacro %*/
