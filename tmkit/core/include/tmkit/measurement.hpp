// What a sensor says of one frame relative to another.
//
// A measurement is a value z with noise of covariance R, and a function h of the pose X = reference_from_target:
//
//     pose       X itself, z = Z: the residual is log(Z^-1 X), R is in the tangent at Z               6 numbers
//     position   the origin of the target, or a point fixed in it, in the reference's axes; metres    3
//     bearing    the direction to that point, a unit vector; residual in two axes across it, radians  2
//     range      the distance to that point; metres                                                   1
//
// Each gives its residual e = h(X) - z and the derivative of e by the tangent of X (right, local).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tmkit/covariance.hpp"

namespace tmkit {

struct Measurement {
    enum class Kind { pose, position, bearing, range };

    Kind kind = Kind::pose;
    std::string target;
    std::optional<std::string> reference;  // the root of the target's tree when there is none
    Pose pose{};                           // reference_from_target as measured
    Vector3 vector{};                      // position, or unit direction
    double distance = 0.0;                 // range
    Vector3 point{};                       // in the target's axes
    std::vector<double> covariance{};      // size() x size(), row-major

    std::size_t size() const { return std::array{6, 3, 2, 1}[static_cast<std::size_t>(kind)]; }
    // residual (size()) and derivative (size() x 6, row-major). Throws Error(scene) where a direction or a range has
    // none: at distance zero.
    void linearise(const Pose& reference_from_target, std::vector<double>& residual,
                   std::vector<double>& derivative) const;
};

struct ConditionOptions {
    int most_iterations = 50;
    // Of the last change of sources, which have variance 1. Steps shrink by the ratio of errors to curvature, so what
    // is left is far less than that.
    double tolerance = 1e-9;
};

struct ConditionReport {
    int iterations = 0;
    bool converged = false;
    double squared_mahalanobis = 0.0;  // of what was measured under what was expected, before conditioning
    std::vector<double> innovation, innovation_covariance;
};

}  // namespace tmkit
