// What CUDA C has and C++ has not, so that g++ compiles a kernel as it stands.
#pragma once
#include <utility>

typedef decltype(sizeof 0) size_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __constant__ static const
// All shared variables stand in one section, which the runtime poisons and watches.
#define __shared__ static __attribute__((section("cuda_shared")))

struct uint3 {
  uint x, y, z;
};
struct EmulatedPlace {
  uint3 thread, block, block_size, grid_size;
};
extern "C" {
extern EmulatedPlace emulated;
extern char __start_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_cuda_shared[] __attribute__((weak, visibility("hidden")));
int emulated_barrier(int line, int predicate, int reduction);
unsigned long emulated_meet(uint mask, unsigned long given, int kind, int argument, int width, int line);
void emulated_touch(const void* place, int size, int write, int atomic, void* pc);
}
#define threadIdx ((const uint3&)emulated.thread)
#define blockIdx ((const uint3&)emulated.block)
#define blockDim ((const uint3&)emulated.block_size)
#define gridDim ((const uint3&)emulated.grid_size)
#define warpSize 32

// ---- where threads wait for one another; each place is told by its line
#define __syncthreads() ((void)emulated_barrier(__LINE__, 0, 0))
#define __syncthreads_or(p) emulated_barrier(__LINE__, (p), 1)
#define __syncthreads_and(p) emulated_barrier(__LINE__, (p), 2)
#define __syncthreads_count(p) emulated_barrier(__LINE__, (p), 3)
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)

template <class T>
inline T emulated_shuffle(int line, int kind, uint mask, T value, int argument, int width = 32) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  unsigned long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = emulated_meet(mask, bits, kind, argument, width, line);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
inline void emulated_warp_barrier(int line, uint mask = 0xffffffffu) {
  emulated_meet(mask, 0, 7, 0, 32, line);
}
#define __shfl_sync(...) emulated_shuffle(__LINE__, 0, __VA_ARGS__)
#define __shfl_up_sync(...) emulated_shuffle(__LINE__, 1, __VA_ARGS__)
#define __shfl_down_sync(...) emulated_shuffle(__LINE__, 2, __VA_ARGS__)
#define __shfl_xor_sync(...) emulated_shuffle(__LINE__, 3, __VA_ARGS__)
#define __ballot_sync(m, p) ((uint)emulated_meet((m), !!(p), 4, 0, 32, __LINE__))
#define __any_sync(m, p) ((int)emulated_meet((m), !!(p), 5, 0, 32, __LINE__))
#define __all_sync(m, p) ((int)emulated_meet((m), !!(p), 6, 0, 32, __LINE__))
#define __syncwarp(...) emulated_warp_barrier(__LINE__ __VA_OPT__(, ) __VA_ARGS__)

// ---- vectors: a copy is one access of 8 or 16 bytes, which has to be aligned
#ifdef EMULATED_CHECKS
#define EMULATED_UNSEEN __attribute__((no_sanitize("thread"), noinline))
#define EMULATED_COPY(T)                                                                    \
  T() = default;                                                                            \
  EMULATED_UNSEEN T(const T& other) {                                                       \
    emulated_touch(&other, sizeof(T), 0, 0, __builtin_return_address(0));                   \
    __builtin_memcpy((void*)this, (const void*)&other, sizeof(T));                          \
  }                                                                                         \
  EMULATED_UNSEEN T& operator=(const T& other) {                                            \
    emulated_touch(&other, sizeof(T), 0, 0, __builtin_return_address(0));                   \
    emulated_touch(this, sizeof(T), 1, 0, __builtin_return_address(0));                     \
    __builtin_memcpy((void*)this, (const void*)&other, sizeof(T));                          \
    return *this;                                                                           \
  }
#else
#define EMULATED_UNSEEN inline
#define EMULATED_COPY(T)
#endif
#define EMULATED_VECTORS(name, T)                                       \
  struct alignas(2 * sizeof(T)) name##2 {                               \
    T x, y;                                                             \
    EMULATED_COPY(name##2)                                              \
  };                                                                    \
  struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) name##4 {     \
    T x, y, z, w;                                                       \
    EMULATED_COPY(name##4)                                              \
  };                                                                    \
  inline name##2 make_##name##2(T x, T y) {                             \
    name##2 v;                                                          \
    v.x = x, v.y = y;                                                   \
    return v;                                                           \
  }                                                                     \
  inline name##4 make_##name##4(T x, T y, T z, T w) {                   \
    name##4 v;                                                          \
    v.x = x, v.y = y, v.z = z, v.w = w;                                 \
    return v;                                                           \
  }
EMULATED_VECTORS(char, signed char)
EMULATED_VECTORS(uchar, unsigned char)
EMULATED_VECTORS(short, short)
EMULATED_VECTORS(ushort, unsigned short)
EMULATED_VECTORS(int, int)
EMULATED_VECTORS(uint, unsigned)
EMULATED_VECTORS(float, float)
struct alignas(16) double2 {
  double x, y;
  EMULATED_COPY(double2)
};
struct alignas(16) longlong2 {
  long long x, y;
  EMULATED_COPY(longlong2)
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
  EMULATED_COPY(ulonglong2)
};
template <class T>
inline T __ldg(const T* p) {
  return *p;
}

// ---- atomic updates: fibers change places where they wait only, so plain code is atomic
#define EMULATED_ATOMIC(name, result)                                                  \
  template <class T, class U>                                                          \
  EMULATED_UNSEEN T name(T* place, U given) {                                          \
    emulated_touch(place, sizeof(T), 1, 1, __builtin_return_address(0));               \
    const T value = (T)given, old = *place;                                            \
    *place = (result);                                                                 \
    return old;                                                                        \
  }
EMULATED_ATOMIC(atomicAdd, old + value)
EMULATED_ATOMIC(atomicSub, old - value)
EMULATED_ATOMIC(atomicMin, value < old ? value : old)
EMULATED_ATOMIC(atomicMax, value > old ? value : old)
EMULATED_ATOMIC(atomicAnd, old & value)
EMULATED_ATOMIC(atomicOr, old | value)
EMULATED_ATOMIC(atomicXor, old ^ value)
EMULATED_ATOMIC(atomicExch, value)
template <class T>
EMULATED_UNSEEN T atomicCAS(T* place, T expected, T value) {
  emulated_touch(place, sizeof(T), 1, 1, __builtin_return_address(0));
  const T old = *place;
  if (old == expected) *place = value;
  return old;
}

// ---- functions
#define EMULATED_FUNCTION(name)                         \
  extern "C" double name(double) noexcept;              \
  extern "C" float name##f(float) noexcept;
#define EMULATED_FUNCTION_OF_TWO(name)                  \
  extern "C" double name(double, double) noexcept;      \
  extern "C" float name##f(float, float) noexcept;
EMULATED_FUNCTION(floor) EMULATED_FUNCTION(ceil) EMULATED_FUNCTION(trunc)
EMULATED_FUNCTION(rint) EMULATED_FUNCTION(round) EMULATED_FUNCTION(fabs)
EMULATED_FUNCTION(sqrt) EMULATED_FUNCTION(cbrt) EMULATED_FUNCTION(exp)
EMULATED_FUNCTION(exp2) EMULATED_FUNCTION(expm1) EMULATED_FUNCTION(log)
EMULATED_FUNCTION(log2) EMULATED_FUNCTION(log10) EMULATED_FUNCTION(log1p)
EMULATED_FUNCTION(sin) EMULATED_FUNCTION(cos) EMULATED_FUNCTION(tan)
EMULATED_FUNCTION(asin) EMULATED_FUNCTION(acos) EMULATED_FUNCTION(atan)
EMULATED_FUNCTION(sinh) EMULATED_FUNCTION(cosh) EMULATED_FUNCTION(tanh)
EMULATED_FUNCTION(asinh) EMULATED_FUNCTION(acosh) EMULATED_FUNCTION(atanh)
EMULATED_FUNCTION(erf) EMULATED_FUNCTION(erfc) EMULATED_FUNCTION(lgamma)
EMULATED_FUNCTION_OF_TWO(fmod) EMULATED_FUNCTION_OF_TWO(pow)
EMULATED_FUNCTION_OF_TWO(atan2) EMULATED_FUNCTION_OF_TWO(hypot)
EMULATED_FUNCTION_OF_TWO(copysign) EMULATED_FUNCTION_OF_TWO(nextafter)
EMULATED_FUNCTION_OF_TWO(fmin) EMULATED_FUNCTION_OF_TWO(fmax)
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
template <class T>
inline T min(T x, T y) {
  return y < x ? y : x;
}
template <class T>
inline T max(T x, T y) {
  return x < y ? y : x;
}

#define EMULATED_BITS(name, To, From)       \
  inline To name(From x) {                  \
    To y;                                   \
    __builtin_memcpy(&y, &x, sizeof y);     \
    return y;                               \
  }
EMULATED_BITS(__float_as_int, int, float)
EMULATED_BITS(__float_as_uint, uint, float)
EMULATED_BITS(__int_as_float, float, int)
EMULATED_BITS(__uint_as_float, float, uint)
EMULATED_BITS(__double_as_longlong, long long, double)
EMULATED_BITS(__longlong_as_double, double, long long)
inline int __popc(uint x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(uint(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline uint __umulhi(uint x, uint y) { return uint((unsigned long long)x * y >> 32); }

// ---- what the runtime asks of a module: how to call a kernel, what its arguments are
#define EMULATED_OURS __attribute__((no_sanitize("thread")))
namespace emulated_module {
template <class... A, size_t... I>
EMULATED_OURS inline void call(void (*kernel)(A...), void** given, std::index_sequence<I...>) {
  kernel(*(A*)given[I]...);
}
template <class T>
struct Size {
  static constexpr int value = sizeof(T);
};
template <class T>
struct Size<T*> {
  static constexpr int value = -int(sizeof(T));
};
template <class... A>
inline int sizes(void (*)(A...), int* out) {
  const int all[] = {Size<A>::value..., 0};
  for (size_t i = 0; i < sizeof...(A); i++) out[i] = all[i];
  return sizeof...(A);
}
template <class... A>
EMULATED_OURS inline void call(void (*kernel)(A...), void** given) {
  call(kernel, given, std::index_sequence_for<A...>{});
}
}  // namespace emulated_module
#define EMULATED_KERNEL(name)                                               \
  extern "C" EMULATED_OURS void emulated_call_##name(void** given) {        \
    emulated_module::call(name, given);                                     \
  }                                                                         \
  extern "C" EMULATED_OURS int emulated_sizes_##name(int* out) {            \
    return emulated_module::sizes(name, out);                               \
  }
#define EMULATED_MODULE                                                     \
  extern "C" EMULATED_OURS void emulated_shared(char** first, char** last) { \
    *first = __start_cuda_shared, *last = __stop_cuda_shared;               \
  }
