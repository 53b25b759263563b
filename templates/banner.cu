// ${ plan.name }: D[m,n] = sum over k of A[m,k] * B[n,k], for ${ plan.arch.product } (${ plan.arch.name }).
// ${ plan.input_names } in, fp32 accumulate, ${ plan.output.name } out; ${ plan.arrangement }.
//
/*% for line in about_lines %*/
// ${ line }
/*% endfor %*/
/*% for line in finish_words %*/
// ${ line }
/*% endfor %*/
//
// Shared memory, ${ "{:,}".format(plan.smem.bytes) } bytes per CTA:
/*% for r in plan.smem.regions %*/
//   ${ "%7d  %-*s %7d B  %s" % (r.offset, name_width, r.name, r.bytes, r.why) }
/*% endfor %*/
/*% if plan.barriers %*/
// Barriers:
/*% for b in plan.barriers %*/
/*% set line %*/
${ b.name }[${ b.depth }]: ${ b.arrivals } arrival${ "s" if b.arrivals > 1 } (${ b.arrivers | join("; ") })${ " and {:,} bytes".format(b.tx_bytes) if b.tx_bytes }; the ${ b.waiter } waits, first for parity ${ b.first_parity }
/*% endset %*/
//   ${ line.strip() | wordwrap(113, break_long_words=false, wrapstring="\n//     ") }
/*% endfor %*/
/*% endif %*/
/*% if plan.tmem %*/
// Tensor memory, ${ plan.tmem.allocated } of 512 columns:
/*% for r in plan.tmem.regions %*/
//   ${ r.first }-${ r.first + r.columns - 1 }  ${ r.name }: ${ r.why }
/*% endfor %*/
/*% endif %*/
// Warps:
/*% for r in plan.roles %*/
//   ${ r.warp_numbers }  ${ r.name }: ${ r.does }
/*% endfor %*/
// Build: nvcc -std=c++17 -O3 -gencode ${ plan.arch.gencode } -c ${ plan.name }.cu
