// The kernels for every processor.
#define TMKIT_KERNELS plain_kernels
#include "collision/lane_kernels.inl"

namespace tmkit::lanes {

#if defined(__x86_64__)
extern const Kernels avx2_kernels;

const Kernels& kernels() {
    static const bool is_wide = __builtin_cpu_supports("avx2");
    return is_wide ? avx2_kernels : plain_kernels;
}
#else
const Kernels& kernels() { return plain_kernels; }
#endif

}  // namespace tmkit::lanes
