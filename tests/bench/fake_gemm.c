// A project's C entry point on host memory (bf16 in, bf16 out), in the ways that projects go right and wrong.
#include <stdint.h>
#include <string.h>
#include <unistd.h>

struct args { const void *a, *b; void *d; int64_t m, n, k, lda, ldb, ldd; };

static float widen(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    return value;
}

static uint16_t narrow(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static void gemm(const struct args *args, int64_t rows, int64_t k)
{
    const uint16_t *a = args->a, *b = args->b;
    uint16_t *d = args->d;
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t col = 0; col < args->n; ++col) {
            float sum = 0;
            for (int64_t i = 0; i < k; ++i) sum += widen(a[row * args->lda + i]) * widen(b[col * args->ldb + i]);
            d[row * args->ldd + col] = narrow(sum);
        }
}

int right_launch(const struct args *args, void *stream)
{
    (void)stream;
    gemm(args, args->m, args->k);
    return 0;
}

int short_k_launch(const struct args *args, void *stream)  // one element of k is left out
{
    (void)stream;
    gemm(args, args->m, args->k - 1);
    return 0;
}

int unwritten_launch(const struct args *args, void *stream)  // the last row is never written
{
    (void)stream;
    gemm(args, args->m - 1, args->k);
    return 0;
}

int later_wrong_launch(const struct args *args, void *stream)  // right at first, wrong once it is timed
{
    static int calls;
    (void)stream;
    gemm(args, args->m, ++calls > 3 ? args->k - 1 : args->k);
    return 0;
}

int once_launch(const struct args *args, void *stream)  // writes every output one time only
{
    static const void *seen[4096];
    static int count;
    (void)stream;
    for (int i = 0; i < count; ++i)
        if (seen[i] == args->d) return 0;
    seen[count++] = args->d;
    gemm(args, args->m, args->k);
    return 0;
}

int refusing_launch(const struct args *args, void *stream)
{
    (void)args, (void)stream;
    return 1;  // cudaErrorInvalidValue
}

int hanging_launch(const struct args *args, void *stream)
{
    (void)args, (void)stream;
    for (;;) pause();
}

int crashing_launch(const struct args *args, void *stream)
{
    (void)args, (void)stream;
    __builtin_trap();
}
