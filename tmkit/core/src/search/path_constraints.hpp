// Path constraints over the moving joints of a search.
//
// Each constraint is one number, an angle or a distance, that must not exceed its tolerance. A configuration is
// projected by damped least squares with the gradients of these numbers (Stilman, "Task constrained motion planning in
// robot joint space", IROS 2007); a motion between two configurations is halved, its middle projected, until straight
// pieces keep the constraints (after Berenson et al., "Manipulation planning on constraint manifolds", ICRA 2009).
#pragma once

#include <cmath>
#include <vector>

#include "tmkit/path_search.hpp"

namespace tmkit {

using Points = std::vector<std::vector<double>>;  // of the moving joints only

inline double distance(const double* a, const double* b, std::size_t size) {
    double sum = 0.0;
    for (std::size_t i = 0; i < size; ++i) sum += (b[i] - a[i]) * (b[i] - a[i]);
    return std::sqrt(sum);
}

class ConstraintSet {
public:
    // Throws Error(configuration) for more than 6 constraints, or more than max_chain_joints entries.
    ConstraintSet(const SceneGraph& scene, const std::vector<PathConstraint>& constraints,
                  const std::vector<std::int32_t>& entries, const double* q);

    bool empty() const { return parts_.empty(); }
    // Whether a straight motion keeps each number below a share of its tolerance, or below what it is at either end, at
    // samples `finer` times as dense as usual. At both ends each must be within the tolerance.
    bool keeps(const double* a, const double* b, double share = 1.0, double finer = 1.0) const;
    // Moves x, within the limits, to where all hold with some slack; false when the iterations end before.
    bool project(double* x) const;
    // Appends points of a motion from a to b, b last, between which straight motions keep the constraints; false when
    // there is none by halving. At both ends the constraints hold.
    bool bridge(const double* a, const double* b, Points& points, int halvings = 14) const;

private:
    struct Part {
        PathConstraint constraint;
        Chain chain;  // root_from_frame
    };

    // The number of a part at x, and by how much it grows with twists of the frame if `gradient` is given: linear at
    // the frame's origin, then angular.
    double value(const Part& part, const double* x, Vector6* gradient = nullptr, Vector6* columns = nullptr) const;

    std::size_t size_;
    std::vector<Part> parts_;
    std::vector<std::array<double, 2>> limits_;
    double spacing_ = 0.01;  // between samples, in the maximum norm
};

}  // namespace tmkit
