#pragma once
#include <cuda_runtime.h>
#ifdef __cplusplus
extern "C"
#endif
cudaError_t scale(void* values, int count, cudaStream_t stream);
