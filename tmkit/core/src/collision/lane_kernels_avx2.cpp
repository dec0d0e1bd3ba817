// The kernels for processors with AVX2: this source is compiled for these.
#if defined(__AVX2__)
#define TMKIT_KERNELS avx2_kernels
#include "collision/lane_kernels.inl"
#endif
