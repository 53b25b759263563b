// cuBLAS and cuBLASLt on host memory, as far as the baselines call them: column-major, transposition and
// leading dimensions as documented, so that a wrong mapping gives a wrong result. With REAL_HEADERS the
// compiler holds these signatures against NVIDIA's.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef REAL_HEADERS
#include <cublasLt.h>
#include <cublas_v2.h>
#else
typedef void *cublasHandle_t, *cublasLtHandle_t, *cublasLtMatmulDesc_t, *cublasLtMatrixLayout_t;
typedef void *cublasLtMatmulPreference_t, *cudaStream_t;
typedef int cublasStatus_t, cublasOperation_t, cudaDataType, cudaDataType_t, cublasComputeType_t, cublasGemmAlgo_t;
typedef int cublasLtMatmulDescAttributes_t, cublasLtMatmulPreferenceAttributes_t;
typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;
#endif

enum { F32 = 0, F16 = 2, COMPUTE_32F = 68 };
#define INVALID 7  // macros, because these become cublasStatus_t
#define UNSUPPORTED 15

struct operation { int compute, scale, transa, transb; };
struct layout { int type; uint64_t rows, cols; int64_t ld; };

static float half_to_float(uint16_t bits)
{
    _Float16 value;
    memcpy(&value, &bits, 2);
    return (float)value;
}

static float load(const void *p, int64_t i, int type)
{
    if (type == F32) return ((const float *)p)[i];
    uint16_t bits = ((const uint16_t *)p)[i];
    if (type == F16) return half_to_float(bits);
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    return value;
}

static void store(void *p, int64_t i, int type, float value)
{
    if (type == F32) {
        ((float *)p)[i] = value;
    } else if (type == F16) {
        _Float16 half = (_Float16)value;
        memcpy((uint16_t *)p + i, &half, 2);
    } else {
        uint32_t bits;
        memcpy(&bits, &value, 4);
        bits += 0x7fff + ((bits >> 16) & 1);  // round to nearest even
        ((uint16_t *)p)[i] = (uint16_t)(bits >> 16);
    }
}

static int product(int transa, int transb, int64_t m, int64_t n, int64_t k, const void *a, int type_a, int64_t lda,
                   const void *b, int type_b, int64_t ldb, void *c, int type_c, int64_t ldc)
{
    if (lda < (transa ? k : m) || ldb < (transb ? n : k) || ldc < m) return INVALID;
    for (int64_t col = 0; col < n; ++col)
        for (int64_t row = 0; row < m; ++row) {
            float sum = 0;
            for (int64_t i = 0; i < k; ++i)
                sum += load(a, transa ? i + row * lda : row + i * lda, type_a) *
                       load(b, transb ? col + i * ldb : i + col * ldb, type_b);
            store(c, row + col * ldc, type_c, sum);
        }
    return 0;
}

#ifndef ONLY_LT
cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) { *handle = malloc(8); return 0; }
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) { free(handle); return 0; }
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) { (void)handle, (void)stream; return 0; }
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) { (void)handle; *version = 130102; return 0; }
const char *cublasGetStatusString(cublasStatus_t status) { return status == INVALID ? "an invalid value" : "?"; }

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void *alpha, const void *A, cudaDataType Atype, int lda, const void *B,
                            cudaDataType Btype, int ldb, const void *beta, void *C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    if (!handle || *(const float *)alpha != 1 || *(const float *)beta != 0) return INVALID;
    if ((int)compute != COMPUTE_32F || (int)algo != -1) return UNSUPPORTED;
    return product(transa, transb, m, n, k, A, Atype, lda, B, Btype, ldb, C, Ctype, ldc);
}
#endif

#ifndef ONLY_BLAS
const char *cublasLtGetStatusString(cublasStatus_t status) { (void)status; return "?"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) { *handle = malloc(8); return 0; }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { free(handle); return 0; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType_t scale)
{
    struct operation *made = calloc(1, sizeof *made);
    made->compute = compute, made->scale = scale;
    *desc = (void *)made;
    return 0;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { free(desc); return 0; }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attr,
                                              const void *buf, size_t size)
{
    struct operation *operation = (void *)desc;
    if (size != 4) return INVALID;
    if ((int)attr == 3) operation->transa = *(const int32_t *)buf;
    else if ((int)attr == 4) operation->transb = *(const int32_t *)buf;
    else return INVALID;
    return 0;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld)
{
    struct layout *made = malloc(sizeof *made);
    made->type = type, made->rows = rows, made->cols = cols, made->ld = ld;
    *layout = (void *)made;
    return 0;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { free(layout); return 0; }

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) { *made = malloc(8); return 0; }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made) { free(made); return 0; }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attr, const void *buf,
                                                    size_t size)
{
    if ((int)attr != 1 || size != 8) return INVALID;
    memcpy((void *)preference, buf, 8);
    return 0;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *came)
{
    (void)operation, (void)a, (void)b, (void)c, (void)d;
    uint64_t limit = *(uint64_t *)preference;
    if (!handle || wanted <= 0) return INVALID;
    *came = wanted < 5 ? wanted : 5;
    for (int i = 0; i < *came; ++i) {
        memset(&results[i], 0, sizeof results[i]);
        results[i].algo.data[0] = 100 + i;
        results[i].workspaceSize = limit;
        results[i].state = i == 1 ? UNSUPPORTED : 0;
    }
    return 0;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t adesc, const void *B, cublasLtMatrixLayout_t bdesc,
                              const void *beta, const void *C, cublasLtMatrixLayout_t cdesc, void *D,
                              cublasLtMatrixLayout_t ddesc, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_size, cudaStream_t stream)
{
    (void)stream;
    const struct operation *op = (void *)desc;
    const struct layout *a = (void *)adesc, *b = (void *)bdesc, *d = (void *)ddesc;
    if (!handle || *(const float *)alpha != 1 || *(const float *)beta != 0 || C != D || cdesc != ddesc) return INVALID;
    if (op->compute != COMPUTE_32F || op->scale != F32 || !workspace || workspace_size < 1) return INVALID;
    if (algo->data[0] < 100 || algo->data[0] > 104 || algo->data[0] == 101) return UNSUPPORTED;
    const uint64_t m = op->transa ? a->cols : a->rows, k = op->transa ? a->rows : a->cols;
    const uint64_t n = op->transb ? b->rows : b->cols, kb = op->transb ? b->cols : b->rows;
    if (k != kb || d->rows != m || d->cols != n) return INVALID;
    return product(op->transa, op->transb, m, n, k, A, a->type, a->ld, B, b->type, b->ld, D, d->type, d->ld);
}
#endif
