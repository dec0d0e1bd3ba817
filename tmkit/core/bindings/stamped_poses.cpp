#include "tmkit/stamped_poses.hpp"

#include "state.hpp"

namespace tmkit::bindings {

std::optional<StampedPoses> stamps_copy(const Ref<const StampedPoses>& stamps) {
    return stamps ? std::optional<StampedPoses>(*stamps) : std::nullopt;
}

Ref<const StampedPoses> stamps_ref(const std::optional<StampedPoses>& stamps) {
    return stamps ? Ref<const StampedPoses>(new StampedPoses(*stamps)) : nullptr;
}

namespace {

using PoseTuple = nb::typed<nb::tuple, Pose, nb::ellipsis>;

StampedPoses make_history(const std::vector<double>& stamps, const std::vector<Pose>& poses,
                          std::size_t capacity, double window) {
    if (stamps.size() != poses.size())
        throw Error(ErrorKind::stamp, "{} stamps were given for {} poses", stamps.size(),
                    poses.size());
    StampedPoses result;
    result.capacity = capacity;
    result.window = window;
    for (std::size_t i = 0; i < stamps.size(); ++i) result.entries.push_back({stamps[i], poses[i]});
    result.check("");
    return result;
}

template <class Value> std::vector<Value> each(const StampedPoses& s, Value StampedPose::* field) {
    std::vector<Value> values;
    for (const StampedPose& entry : s.entries) values.push_back(entry.*field);
    return values;
}
std::vector<double> stamps_of(const StampedPoses& s) { return each(s, &StampedPose::stamp); }
std::vector<Pose> poses_of(const StampedPoses& s) { return each(s, &StampedPose::pose); }

nb::tuple state_of(const StampedPoses& s) {
    return nb::make_tuple(stamps_of(s), poses_of(s), s.capacity, s.window);
}

StampedPoses read_state(nb::handle state) {
    const StateTuple s(state, "stamped poses", 4);
    return make_history(s.get<std::vector<double>>(0), s.get<std::vector<Pose>>(1),
                        s.get<std::size_t>(2), s.get<double>(3));
}

}  // namespace

nb::object stamps_state(const Ref<const StampedPoses>& stamps) {
    return stamps ? nb::object(state_of(*stamps)) : nb::none();
}

Ref<const StampedPoses> stamps_from_state(nb::handle state) {
    return state.is_none() ? nullptr : stamps_ref(read_state(state));
}

void bind_stamped_poses(nb::module_& m) {
    nb::class_<StampedPoses> cls(m, "StampedPoses", nb::is_weak_referenceable(),
                                 R"(Stamped poses of an edge: a short history. Immutable.

Args:
    stamps: ascending stamps [s].
    poses: parent_from_frame at joint value 0, one for each stamp.
    capacity: largest number of poses.
    window: largest time between the oldest and the newest [s]; unlimited if omitted.

Raises:
    StampError: if the stamps do not ascend, are not finite, exceed the capacity or the window, or
        differ in number from the poses.)");
    cls.def("__init__", made_by(&make_history), "stamps"_a = nb::tuple(), "poses"_a = nb::tuple(),
            nb::kw_only(), "capacity"_a = StampedPoses::usual_capacity,
            "window"_a = StampedPoses::without_end)
        .def_prop_ro("stamps", [](const StampedPoses& s) { return make_array(stamps_of(s)); },
                     "(k,) ascending stamps [s]; read-only.")
        .def_prop_ro("poses",
                     [](const StampedPoses& s) {
        return PoseTuple(nb::tuple(nb::cast(poses_of(s))));
    }, "parent_from_frame at joint value 0, one for each stamp.")
        .def_ro("capacity", &StampedPoses::capacity, "Largest number of poses.")
        .def_ro("window", &StampedPoses::window,
                "Largest time between the oldest and the newest [s]; inf if unlimited.")
        .def("at",
             [](const StampedPoses& s, double stamp, std::string_view policy) {
        return in_range(s.at({stamp, stamp_policy(policy)}, ""));
    }, "stamp"_a, nb::kw_only(), "policy"_a = "interpolated",
             R"(Return parent_from_frame at a time. O(log k) for k poses.

Args:
    stamp: time on the clock of the stamps [s].
    policy: ``closest``, ``preceding``, ``interpolated``, ``screw`` or ``clamped``; see
        ``SceneGraph.pose``.

Raises:
    StampError: if the stamp is outside the history.
    UnknownNameError: if the policy is unknown.)")
        .def("moved", &StampedPoses::moved, "parent_from_old_parent"_a,
             "Return the same history relative to another parent, fixed relative to the old one. "
             "O(k)."
             R"(

Args:
    parent_from_old_parent: pose of the old parent in the new one.)")
        .def("__len__", [](const StampedPoses& s) { return s.entries.size(); });
    const auto key = [](const StampedPoses& s) {
        return nb::make_tuple(nb::tuple(nb::cast(stamps_of(s))), nb::tuple(nb::cast(poses_of(s))),
                              s.capacity, s.window);
    };
    bind_value(cls, key, [](const StampedPoses& s) {
        if (s.entries.empty()) return std::string("StampedPoses()");
        const std::size_t count = s.entries.size();
        return format_text("StampedPoses({} {} from {} s to {} s)", count,
                           count == 1 ? "pose" : "poses", s.oldest(), s.newest());
    });
    bind_state(cls, &state_of, &read_state);
}

}  // namespace tmkit::bindings
