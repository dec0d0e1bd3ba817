#include "tmkit/joint.hpp"

#include "fields.hpp"
#include "state.hpp"

namespace tmkit::bindings {
namespace {

struct Mimic {
    std::string joint;
    double multiplier = 1.0, offset = 0.0;
    bool operator==(const Mimic&) const = default;
};

Mimic make_mimic(const std::string& joint, double multiplier, double offset) {
    if (joint.empty())
        throw Error(ErrorKind::scene, "a mimic rule needs the name of the leading joint");
    if (!std::isfinite(multiplier) || !std::isfinite(offset))
        throw Error(ErrorKind::scene, "the mimic rule of joint '{}' is not finite", joint);
    return {joint, multiplier, offset};
}

void set_mimic(Joint& joint, const std::optional<Mimic>& mimic) {
    const Mimic rule = mimic.value_or(Mimic{});
    joint.mimic = rule.joint;
    joint.mimic_multiplier = rule.multiplier;
    joint.mimic_offset = rule.offset;
}

Joint make_joint(JointType type, const ArrayArgument& axis, const JointNumbers& numbers,
                 const std::string& name, const std::optional<Mimic>& mimic) {
    Joint joint;
    joint.type = type;
    joint.axis = read_vector3(axis, "axis");
    joint.numbers() = numbers;
    joint.name = name;
    set_mimic(joint, mimic);
    joint.check();
    return joint;
}

Joint unstated_joint() {
    Joint joint;
    joint.is_stated = false;
    return joint;
}

Joint read_joint(int type, const ArrayArgument& axis, double lower, double upper, double velocity,
                 double effort, double damping, double friction, const std::string& name,
                 const std::optional<Mimic>& mimic) {
    const bool is_unstated = type == joint_code(JointType::fixed, false);
    if (type < 0 || (type > static_cast<int>(JointType::free) && !is_unstated))
        throw damaged_state("there is no joint type {}", type);
    if (is_unstated) return unstated_joint();
    const JointNumbers numbers{lower, upper, velocity, effort, damping, friction};
    return make_joint(static_cast<JointType>(type), axis, numbers, name, mimic);
}

std::string joint_text(const Joint& joint) {
    if (!joint.is_stated) return "Unstated()";
    const std::string type = capitalise(name_of(joint.type));
    if (!is_actuated(joint.type)) return type + "()";
    std::string text = numbers_text(joint.axis);
    if (joint.type != JointType::continuous)
        text += format_text(", lower={}, upper={}", joint.lower, joint.upper);
    if (!joint.name.empty()) text += format_text(", name='{}'", joint.name);
    if (!joint.mimic.empty()) text += format_text(", mimic='{}'", joint.mimic);
    return format_text("{}({})", type, text);
}

// The docstring of an actuated joint.
std::string moving_text(const std::string& summary, bool limited) {
    return summary + R"(

Args:
    axis: (3,) direction in the frame itself; it is normalised.)" +
           (limited ? R"(
    lower: smallest value [rad or m].
    upper: largest value [rad or m].)"
                    : "") +
           R"(
    velocity: largest speed [rad/s or m/s].
    effort: largest torque or force [N m or N].
    name: name of the joint, unique in a scene; if empty, the frame's name.
    mimic: rule of a joint that follows another and has no entry in the configuration.

``replace(damping=..., friction=...)`` sets damping and friction.

Raises:
    SceneError: if the axis is zero, a number is NaN, )" +
           (limited ? "lower is above upper, " : "") + "a limit is negative.";
}

// A limit of a joint in its unit, or in that of its velocity or effort.
double read_limit(const NumberArgument& limit, const char* what, JointType type) {
    const bool turns = type != JointType::prismatic;
    const std::string_view name(what);
    if (name == "velocity") return read_number(limit, what, turns ? "rad/s" : "m/s");
    if (name == "effort") return read_number(limit, what, turns ? "N*m" : "N");
    return read_number(limit, what, turns ? "rad" : "m");
}

template <auto member> void set_limit(Joint& joint, const char* what, nb::handle value) {
    joint.*member = read_limit(nb::cast<NumberArgument>(value), what, joint.type);
}

void bind_limited(nb::module_& m, const char* name, JointType type, const std::string& summary) {
    m.def(
        name,
        [type](const ArrayArgument& axis, const NumberArgument& lower, const NumberArgument& upper,
               const NumberArgument& velocity, const NumberArgument& effort,
               const std::string& joint_name, const std::optional<Mimic>& mimic) {
        return make_joint(
            type, axis,
            {read_limit(lower, "lower", type), read_limit(upper, "upper", type),
             read_limit(velocity, "velocity", type), read_limit(effort, "effort", type)},
            joint_name, mimic);
    },
        "axis"_a, nb::kw_only(), "lower"_a = -Joint::unlimited, "upper"_a = Joint::unlimited,
        "velocity"_a = Joint::unlimited, "effort"_a = Joint::unlimited, "name"_a = "",
        "mimic"_a = nb::none(), moving_text(summary, true).c_str());
}

constexpr Field<Joint> joint_fields[] = {
    {"axis",
     [](Joint& joint, nb::handle value) {
    joint.axis = read_vector3(nb::cast<ArrayArgument>(value), "axis");
}},
    {"lower", [](Joint& joint, nb::handle v) { set_limit<&Joint::lower>(joint, "lower", v); }},
    {"upper", [](Joint& joint, nb::handle v) { set_limit<&Joint::upper>(joint, "upper", v); }},
    {"velocity",
     [](Joint& joint, nb::handle v) { set_limit<&Joint::velocity>(joint, "velocity", v); }},
    {"effort", [](Joint& joint, nb::handle v) { set_limit<&Joint::effort>(joint, "effort", v); }},
    {"damping", &set_member<&Joint::damping>},
    {"friction", &set_member<&Joint::friction>},
    {"name", &set_member<&Joint::name>},
    {"mimic", [](Joint& joint,
                 nb::handle value) { set_mimic(joint, nb::cast<std::optional<Mimic>>(value)); }},
};

void bind_joint_members(nb::class_<Joint>& cls) {
    cls.def_prop_ro("type", [](const Joint& j) { return std::string(name_of(j.type)); },
                    "``fixed``, ``revolute``, ``continuous``, ``prismatic`` or ``free``.")
        .def_ro("is_stated", &Joint::is_stated,
                "Whether the motion of the edge is stated. If not, the edge is of type ``fixed`` "
                "and has a pose only.")
        .def_prop_ro("axis", [](const Joint& j) { return make_array(j.axis); },
                     "(3,) unit vector in the frame itself, read-only.")
        .def_ro("name", &Joint::name, "Name of the joint; empty outside a scene if none was given.")
        .def_ro("lower", &Joint::lower, "Smallest value [rad or m]; -inf if unlimited.")
        .def_ro("upper", &Joint::upper, "Largest value [rad or m]; inf if unlimited.")
        .def_ro("velocity", &Joint::velocity, "Largest speed [rad/s or m/s]; inf if unlimited.")
        .def_ro("effort", &Joint::effort, "Largest torque or force [N m or N]; inf if unlimited.")
        .def_ro("damping", &Joint::damping, "Damping [N m s/rad or N s/m].")
        .def_ro("friction", &Joint::friction, "Friction [N m or N].")
        .def_prop_ro("is_actuated", [](const Joint& j) { return is_actuated(j.type); },
                     "Whether the joint has a value: revolute, continuous or prismatic.")
        .def_prop_ro("mimic", [](const Joint& j) {
        return j.mimic.empty() ? std::optional<Mimic>()
                               : Mimic{j.mimic, j.mimic_multiplier, j.mimic_offset};
    }, "Rule of a joint that follows another, or None.");
    const auto key = [](const Joint& j) {
        return nb::make_tuple(static_cast<int>(j.type), j.name, j.lower, j.upper, j.axis[0],
                              j.axis[1], j.axis[2]);
    };
    bind_value(cls, key, &joint_text);
}

void bind_joint_makers(nb::module_& m) {
    m.def("Fixed", [] { return Joint{}; }, "Create a fixed joint.");
    m.def("Unstated", &unstated_joint, R"(Create an edge with a pose and without a stated motion.

It is of type ``fixed`` for poses, collision and planning. Queries of motion across it raise an
error, unless a twist edge covers it. ``add_pose`` and ``add_fact`` create such edges between two
bodies.)");
    m.def("Free", [] {
        Joint j;
        j.type = JointType::free;
        return j;
    }, "Create a free joint: its pose is scene data, without an entry in the configuration.");
    bind_limited(m, "Revolute", JointType::revolute,
                 "Create a joint that rotates about an axis [rad].");
    bind_limited(m, "Prismatic", JointType::prismatic,
                 "Create a joint that slides along an axis [m].");
    m.def("Continuous",
          [](const ArrayArgument& axis, double velocity, double effort, const std::string& name,
             const std::optional<Mimic>& mimic) {
        return make_joint(JointType::continuous, axis,
                          {-Joint::unlimited, Joint::unlimited, velocity, effort}, name, mimic);
    },
          "axis"_a, nb::kw_only(), "velocity"_a = Joint::unlimited, "effort"_a = Joint::unlimited,
          "name"_a = "", "mimic"_a = nb::none(),
          moving_text("Create a joint that rotates about an axis without limits [rad].", false)
              .c_str());
}

}  // namespace

void bind_joint(nb::module_& m) {
    nb::class_<Mimic> rule(
        m, "Mimic", nb::is_weak_referenceable(),
        R"(Rule of a joint that follows another: value = multiplier * leader + offset.

Args:
    joint: name of the leading joint.
    multiplier: factor.
    offset: offset [rad or m].

Raises:
    SceneError: if the name is empty, or a number is not finite.)");
    rule.def("__init__", made_by(&make_mimic), "joint"_a, "multiplier"_a = 1.0, "offset"_a = 0.0)
        .def_ro("joint", &Mimic::joint, "Name of the leading joint.")
        .def_ro("multiplier", &Mimic::multiplier, "Factor.")
        .def_ro("offset", &Mimic::offset, "Offset [rad or m].");
    bind_value(rule, [](const Mimic& a) { return nb::make_tuple(a.joint, a.multiplier, a.offset); },
               [](const Mimic& a) {
        return format_text("Mimic('{}', multiplier={}, offset={})", a.joint, a.multiplier,
                           a.offset);
    });

    bind_state(rule, [](const Mimic& a) {
        return std::make_tuple(a.joint, a.multiplier, a.offset);
    }, "a mimic rule", &make_mimic);

    nb::class_<Joint> cls(m, "Joint", nb::is_weak_referenceable(),
                          R"(Joint between a frame and its parent. Immutable.

Created by ``Fixed``, ``Revolute``, ``Continuous``, ``Prismatic``, ``Free`` and ``Unstated``. The
pose of a frame at joint value v is parent_from_frame = pose @ motion(v), a rotation about the axis
or a translation along it.)");
    bind_joint_members(cls);
    bind_replace(cls, joint_fields, [](Joint& joint) { joint.check(); }, "Joint",
                 "SceneError: if the axis is zero, a number is NaN, lower is above upper, or "
                 "another number is negative.");

    bind_state(cls, [](nb::handle self) {
        const Joint& j = nb::cast<const Joint&>(self);
        return nb::make_tuple(joint_code(j.type, j.is_stated),
                              nb::make_tuple(j.axis[0], j.axis[1], j.axis[2]), j.lower, j.upper,
                              j.velocity, j.effort, j.damping, j.friction, j.name,
                              self.attr("mimic"));
    }, "a joint", &read_joint);
    bind_joint_makers(m);
}

}  // namespace tmkit::bindings
