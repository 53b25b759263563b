#ifndef __CUDACC_RTC__
#include "${ plan.name }.h"
#endif

/*% if plan.tensor_maps %*/
#include <cuda.h>
/*% endif %*/
/*% for header in plan.headers %*/
#include <${ header }>
/*% endfor %*/
#include <cuda_runtime.h>
#include <stdint.h>
