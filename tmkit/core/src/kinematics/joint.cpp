#include "tmkit/joint.hpp"

#include <cmath>

#include "tmkit/error.hpp"

namespace tmkit {

const char* name_of(JointType type) {
    static constexpr const char* names[] = {"fixed", "revolute", "continuous", "prismatic", "free"};
    return names[static_cast<int>(type)];
}

// The defect of the numbers of a joint, without its axis; empty if there is none.
static std::string defect_of_limits(const Joint& j) {
    if (std::isnan(j.lower) || std::isnan(j.upper) || j.lower > j.upper)
        return "has limits [" + std::to_string(j.lower) + ", " + std::to_string(j.upper) +
               "]; lower must not exceed upper";
    if (j.lower == Joint::unlimited || j.upper == -Joint::unlimited)
        return "has limits that no value satisfies";
    if (!(j.velocity >= 0.0) || !(j.effort >= 0.0))
        return "has a negative velocity or effort limit";
    return {};
}

static std::string defect_of_rules(const Joint& j) {
    if (!(j.damping >= 0.0) || !(j.friction >= 0.0)) return "has a negative damping or friction";
    if (std::isinf(j.damping) || std::isinf(j.friction))
        return "has an infinite damping or friction";
    if (!std::isfinite(j.mimic_multiplier) || !std::isfinite(j.mimic_offset))
        return "has a mimic rule that is not finite";
    return {};
}

void Joint::check() {
    std::string defect;
    const double length = norm(axis);
    if (!std::isfinite(length) || length < 1e-9)
        defect = "has an axis that is zero or not finite; give a direction";
    if (defect.empty()) defect = defect_of_limits(*this);
    if (defect.empty()) defect = defect_of_rules(*this);
    if (!defect.empty())
        throw Error(ErrorKind::scene, "{}{}",
                    (name.empty() ? std::string("joint ") : "joint '" + name + "' "), defect);
    if (std::abs(length - 1.0) > 4e-15)
        for (double& component : axis) component /= length;
}

bool Joint::operator==(const Joint& o) const {
    return type == o.type && is_stated == o.is_stated && name == o.name && axis == o.axis &&
           mimic == o.mimic && numbers() == o.numbers();
}

bool Joint::moves_like(const Joint& o) const {
    return type == o.type && axis == o.axis && mimic == o.mimic &&
           mimic_multiplier == o.mimic_multiplier && mimic_offset == o.mimic_offset;
}

}  // namespace tmkit
