// A library to preload: every result of libm, BLAS and LAPACK comes back with its last bit turned
// over.
//
// What a plan does not owe to them stays the same to the byte. Results that only an exact
// evaluation gives (zero, powers of two, integers: the low 20 bits are zero) stay as they are,
// since every CPU finds those. Of BLAS and LAPACK, it stands before what numpy calls. With
// LAST_BITS_LOG=FILE the calls are counted there, by function and by who called.
#include <dlfcn.h>
#include <link.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::map<std::pair<const char*, std::string>, long> calls;
thread_local bool inside = false;  // libm calls itself

struct Writer {
    ~Writer() {
        const char* path = std::getenv("LAST_BITS_LOG");
        if (FILE* file = path ? std::fopen(path, "a") : nullptr) {
            for (const auto& [key, count] : calls)
                std::fprintf(file, "%s\t%s\t%ld\n", key.first, key.second.c_str(), count);
            std::fclose(file);
        }
    }
} writer;

bool is_on(const char* what) {
    const char* only = std::getenv("LAST_BITS_OF");  // "libm" or "blas"; both when it is left out
    return !only || std::strstr(only, what);
}
const bool libm_on = is_on("libm"), blas_on = is_on("blas");
const bool logs = std::getenv("LAST_BITS_LOG");

void note(const char* name, void* caller) {
    if (!logs) return;
    Dl_info info{};
    const char* who = dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "?";
    const char* base = std::strrchr(who, '/');
    const std::lock_guard lock(mutex);
    ++calls[{name, base ? base + 1 : who}];
}

double turned(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (!std::isfinite(value) || (bits & 0xFFFFF) == 0) return value;
    bits ^= 1;
    std::memcpy(&value, &bits, sizeof bits);
    return value;
}

void turn(double* values, std::int64_t count, std::int64_t step = 1) {
    if (blas_on)
        for (std::int64_t i = 0; i < count; ++i) values[i * step] = turned(values[i * step]);
}

template <class Function> Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// numpy's OpenBLAS is loaded for numpy alone, so it is looked for among what is loaded.
template <class Function> Function* in_openblas(const char* name) {
    static void* library = [] {
        std::string path;
        dl_iterate_phdr([](dl_phdr_info* info, std::size_t, void* found) {
            if (std::strstr(info->dlpi_name, "openblas64"))
                *static_cast<std::string*>(found) = info->dlpi_name;
            return 0;
        }, &path);
        return dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    }();
    void* symbol = library ? dlsym(library, name) : nullptr;
    if (!symbol) std::fprintf(stderr, "last_bits: no %s in numpy's OpenBLAS\n", name), std::abort();
    return reinterpret_cast<Function*>(symbol);
}

}  // namespace

#define CALLER __builtin_return_address(0)

#define ONE(name)                                        \
    extern "C" double name(double x) {                   \
        static auto* real = next<double(double)>(#name); \
        if (inside) return real(x);                      \
        note(#name, CALLER);                             \
        inside = true;                                   \
        const double value = real(x);                    \
        inside = false;                                  \
        return libm_on ? turned(value) : value;          \
    }
#define TWO(name)                                                \
    extern "C" double name(double x, double y) {                 \
        static auto* real = next<double(double, double)>(#name); \
        if (inside) return real(x, y);                           \
        note(#name, CALLER);                                     \
        inside = true;                                           \
        const double value = real(x, y);                         \
        inside = false;                                          \
        return libm_on ? turned(value) : value;                  \
    }

// clang-format off: lists of calls without semicolons
ONE(sin) ONE(cos) ONE(tan) ONE(asin) ONE(acos) ONE(atan) ONE(sinh) ONE(cosh) ONE(tanh) ONE(asinh) ONE(acosh) ONE(atanh)
ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p) ONE(cbrt) ONE(erf) ONE(erfc) ONE(lgamma) ONE(tgamma)
TWO(atan2) TWO(pow) TWO(hypot)
    // clang-format on

    extern "C" void sincos(double x, double* sine, double* cosine) {
    static auto* real = next<void(double, double*, double*)>("sincos");
    note("sincos", CALLER);
    real(x, sine, cosine);
    if (libm_on) *sine = turned(*sine), *cosine = turned(*cosine);
}

// What numpy asks of BLAS and LAPACK for real numbers of double precision; integers are of 64 bits
// there.
using Int = std::int64_t;

extern "C" double scipy_cblas_ddot64_(Int n, const double* x, Int dx, const double* y, Int dy) {
    static auto* real = in_openblas<decltype(scipy_cblas_ddot64_)>(__func__);
    note(__func__, CALLER);
    double value = real(n, x, dx, y, dy);
    turn(&value, 1);
    return value;
}

extern "C" void scipy_cblas_dgemv64_(int order, int t, Int m, Int n, double a, const double* A,
                                     Int lda, const double* x, Int dx, double b, double* y,
                                     Int dy) {
    static auto* real = in_openblas<decltype(scipy_cblas_dgemv64_)>(__func__);
    note(__func__, CALLER);
    real(order, t, m, n, a, A, lda, x, dx, b, y, dy);
    turn(y, t == 111 ? m : n, dy);
}

extern "C" void scipy_cblas_dgemm64_(int order, int ta, int tb, Int m, Int n, Int k, double a,
                                     const double* A, Int lda, const double* B, Int ldb, double b,
                                     double* C, Int ldc) {
    static auto* real = in_openblas<decltype(scipy_cblas_dgemm64_)>(__func__);
    note(__func__, CALLER);
    real(order, ta, tb, m, n, k, a, A, lda, B, ldb, b, C, ldc);
    const bool by_rows = order == 101;
    for (Int i = 0; i < (by_rows ? m : n); ++i) turn(C + i * ldc, by_rows ? n : m);
}

extern "C" void scipy_cblas_dsyrk64_(int order, int uplo, int t, Int n, Int k, double a,
                                     const double* A, Int lda, double b, double* C, Int ldc) {
    static auto* real = in_openblas<decltype(scipy_cblas_dsyrk64_)>(__func__);
    note(__func__, CALLER);
    real(order, uplo, t, n, k, a, A, lda, b, C, ldc);
    for (Int i = 0; i < n; ++i) turn(C + i * ldc, n);
}

extern "C" Int scipy_dgesv_64_(Int* n, Int* right, double* A, Int* lda, Int* pivots, double* B,
                               Int* ldb, Int* info) {
    static auto* real = in_openblas<decltype(scipy_dgesv_64_)>(__func__);
    note(__func__, CALLER);
    const Int result = real(n, right, A, lda, pivots, B, ldb, info);
    for (Int i = 0; i < *right; ++i) turn(B + i * *ldb, *n);
    return result;
}

extern "C" Int scipy_dgetrf_64_(Int* m, Int* n, double* A, Int* lda, Int* pivots, Int* info) {
    static auto* real = in_openblas<decltype(scipy_dgetrf_64_)>(__func__);
    note(__func__, CALLER);
    const Int result = real(m, n, A, lda, pivots, info);
    for (Int i = 0; i < *n; ++i) turn(A + i * *lda, *m);
    return result;
}

extern "C" Int scipy_dpotrf_64_(char* uplo, Int* n, double* A, Int* lda, Int* info) {
    static auto* real = in_openblas<decltype(scipy_dpotrf_64_)>(__func__);
    note(__func__, CALLER);
    const Int result = real(uplo, n, A, lda, info);
    for (Int i = 0; i < *n; ++i) turn(A + i * *lda, *n);
    return result;
}

extern "C" Int scipy_dsyevd_64_(char* job, char* uplo, Int* n, double* A, Int* lda, double* w,
                                double* work, Int* lwork, Int* iwork, Int* liwork, Int* info) {
    static auto* real = in_openblas<decltype(scipy_dsyevd_64_)>(__func__);
    const bool asks = *lwork == -1 || *liwork == -1;
    if (!asks) note(__func__, CALLER);
    const Int result = real(job, uplo, n, A, lda, w, work, lwork, iwork, liwork, info);
    if (asks) return result;
    turn(w, *n);
    for (Int i = 0; *job == 'V' && i < *n; ++i) turn(A + i * *lda, *n);
    return result;
}

extern "C" Int scipy_dgesdd_64_(char* job, Int* m, Int* n, double* A, Int* lda, double* s,
                                double* u, Int* ldu, double* vt, Int* ldvt, double* work,
                                Int* lwork, Int* iwork, Int* info) {
    static auto* real = in_openblas<decltype(scipy_dgesdd_64_)>(__func__);
    if (*lwork != -1) note(__func__, CALLER);
    const Int result = real(job, m, n, A, lda, s, u, ldu, vt, ldvt, work, lwork, iwork, info);
    if (*lwork == -1) return result;
    const Int least = *m < *n ? *m : *n;
    turn(s, least);
    for (Int i = 0; *job != 'N' && i < least; ++i)
        turn(u + i * *ldu, *m), turn(vt + i * *ldvt, least);
    return result;
}
