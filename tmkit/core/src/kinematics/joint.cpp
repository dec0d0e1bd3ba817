#include "tmkit/joint.hpp"

#include <cmath>

#include "tmkit/error.hpp"

namespace tmkit {

const char* name_of(JointType type) {
    static constexpr const char* names[] = {"fixed", "revolute", "continuous", "prismatic", "free"};
    return names[static_cast<int>(type)];
}

void Joint::check() {
    const std::string which = name.empty() ? std::string("joint") : "joint '" + name + "'";
    const auto refuse = [&](const std::string& reason) { throw Error(ErrorKind::scene, which + " " + reason); };
    const double length = norm(axis);
    if (!std::isfinite(length) || length < 1e-9) refuse("has an axis that is zero or not finite; give a direction");
    if (std::abs(length - 1.0) > 4e-15)
        for (double& component : axis) component /= length;
    if (std::isnan(lower) || std::isnan(upper) || lower > upper)
        refuse("has limits [" + std::to_string(lower) + ", " + std::to_string(upper) +
               "]; lower must not exceed upper");
    if (lower == unlimited || upper == -unlimited) refuse("has limits that no value meets");
    if (!(velocity >= 0.0) || !(effort >= 0.0)) refuse("has a negative velocity or effort limit");
    if (!(damping >= 0.0) || !(friction >= 0.0)) refuse("has a negative damping or friction");
    if (std::isinf(damping) || std::isinf(friction)) refuse("has an infinite damping or friction");
    if (!std::isfinite(mimic_multiplier) || !std::isfinite(mimic_offset)) refuse("has a mimic rule that is not finite");
}

bool Joint::same_content(const Joint& o) const {
    return type == o.type && name == o.name && axis == o.axis && lower == o.lower && upper == o.upper &&
           velocity == o.velocity && effort == o.effort && damping == o.damping && friction == o.friction &&
           mimic == o.mimic && mimic_multiplier == o.mimic_multiplier && mimic_offset == o.mimic_offset;
}

bool Joint::moves_like(const Joint& o) const {
    return type == o.type && axis == o.axis && mimic == o.mimic && mimic_multiplier == o.mimic_multiplier &&
           mimic_offset == o.mimic_offset;
}

}  // namespace tmkit
