// Floors: the least that the numbers of a task can cost, in plain loops over arrays, for comparison
// with the library.
//
// Compiled by the benchmarks with `g++ -O3 -ffp-contract=off -shared -fPIC` and called by ctypes.
// Nothing here knows names, edits, threads or errors; every function does its task `repeat` times,
// so that the cost of the call does not count.
//
// Sines are the C library's; with -DTMKIT_SINES they are those of the library, and then all bits
// are the same as its own.
#include <cmath>

#ifdef TMKIT_SINES
#include "tmkit/elementary.hpp"
#endif

namespace {

#ifdef TMKIT_SINES
using tmkit::sine_cosine;
#else
struct SineCosine {
    double sine, cosine;
};
SineCosine sine_cosine(double angle) { return {std::sin(angle), std::cos(angle)}; }
#endif

struct Vector {
    double x, y, z;
};
struct Quaternion {
    double x, y, z, w;
};
struct Pose {
    Vector translation;
    Quaternion rotation;
};

Vector cross(const Vector& a, const Vector& b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// With the correction of the norm that keeps long chains from drifting.
Pose compose(const Pose& a, const Pose& b) {
    const Quaternion &p = a.rotation, &q = b.rotation;
    Quaternion r{p.w * q.x + p.x * q.w + p.y * q.z - p.z * q.y,
                 p.w * q.y - p.x * q.z + p.y * q.w + p.z * q.x,
                 p.w * q.z + p.x * q.y - p.y * q.x + p.z * q.w,
                 p.w * q.w - p.x * q.x - p.y * q.y - p.z * q.z};
    const double c = 1.5 - 0.5 * (r.x * r.x + r.y * r.y + r.z * r.z + r.w * r.w);
    r = {r.x * c, r.y * c, r.z * c, r.w * c};
    const Vector u{p.x, p.y, p.z}, v = b.translation, half = cross(u, v),
                                   t{2 * half.x, 2 * half.y, 2 * half.z}, w = cross(u, t);
    return {{v.x + p.w * t.x + w.x + a.translation.x, v.y + p.w * t.y + w.y + a.translation.y,
             v.z + p.w * t.z + w.z + a.translation.z},
            r};
}

}  // namespace

// Forward kinematics of fixed and revolute edges, frames numbered with parents first: parent -1 is
// a root, entry -1 fixed.
extern "C" void floor_forward(int repeat, int frames, const int* parent, const int* entry,
                              const Pose* pose, const Vector* axis, const double* q, Pose* poses) {
    for (int round = 0; round < repeat; ++round)
        for (int i = 0; i < frames; ++i) {
            if (parent[i] < 0) {
                poses[i] = pose[i];
            } else if (entry[i] < 0) {
                poses[i] = compose(poses[parent[i]], pose[i]);
            } else {
                const auto [s, c] = sine_cosine(0.5 * q[entry[i]]);
                const Quaternion turn{s * axis[i].x, s * axis[i].y, s * axis[i].z, c};
                poses[i] = compose(poses[parent[i]], compose(pose[i], {{0, 0, 0}, turn}));
            }
        }
}
