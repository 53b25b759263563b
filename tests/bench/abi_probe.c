// Prints what the real headers say of the numbers and layouts that kgen/cublas_abi.py repeats.
#include <cublasLt.h>
#include <stddef.h>
#include <stdio.h>

#define NUMBER(name) printf(#name " %d\n", (int)(name))
#define OFFSET(type, field) printf(#type "." #field " %d\n", (int)offsetof(type, field))
#define SIZE(type) printf("sizeof " #type " %d\n", (int)sizeof(type))

int main(void)
{
    NUMBER(CUDA_R_32F);
    NUMBER(CUDA_R_16F);
    NUMBER(CUDA_R_16BF);
    NUMBER(CUBLAS_COMPUTE_32F);
    NUMBER(CUBLAS_OP_N);
    NUMBER(CUBLAS_OP_T);
    NUMBER(CUBLAS_GEMM_DEFAULT);
    NUMBER(CUBLAS_STATUS_SUCCESS);
    NUMBER(CUBLASLT_MATMUL_DESC_TRANSA);
    NUMBER(CUBLASLT_MATMUL_DESC_TRANSB);
    NUMBER(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
    SIZE(cublasLtMatmulAlgo_t);
    SIZE(cublasLtMatmulHeuristicResult_t);
    OFFSET(cublasLtMatmulHeuristicResult_t, algo);
    OFFSET(cublasLtMatmulHeuristicResult_t, workspaceSize);
    OFFSET(cublasLtMatmulHeuristicResult_t, state);
    OFFSET(cublasLtMatmulHeuristicResult_t, wavesCount);
    OFFSET(cublasLtMatmulHeuristicResult_t, reserved);
    return 0;
}
