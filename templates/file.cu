${ part("banner.cu") }

${ part("gemm/common/includes.cu") }

#define DEVICE __device__ __forceinline__

namespace ${ plan.name } {
namespace {

${ part("constants.cu") }

${ part("smem.cu") }

${ wrappers }

${ body }

#ifndef __CUDACC_RTC__  // the host half; NVRTC compiles only the kernel
${ part("gemm/common/launcher/launcher.cu") }
#endif

}  // namespace
}  // namespace ${ plan.name }

#ifndef __CUDACC_RTC__
extern "C" __attribute__((visibility("default"))) cudaError_t ${ plan.name }_launch(
    const struct ${ plan.name }_args *args, cudaStream_t stream) {
  return args == nullptr ? cudaErrorInvalidValue : ${ plan.name }::launch(*args, stream);
}
/*% if "workspace" in plan.parts %*/
extern "C" __attribute__((visibility("default"))) int64_t ${ plan.name }_workspace_bytes(int64_t m, int64_t n) {
  return m < 1 || n < 1 ? 0 : ${ plan.name }::workspace_bytes(m, n);
}
/*% endif %*/
#endif
