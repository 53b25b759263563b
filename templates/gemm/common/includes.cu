#include "${ plan.name }.h"

/*% if plan.tensor_maps %*/
#include <cuda.h>
/*% endif %*/
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>
