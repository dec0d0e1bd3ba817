#include "tmkit/stamped_poses.hpp"

#include "state.hpp"

namespace tmkit::bindings {

std::optional<StampedPoses> stamps_copy(const Ref<const StampedPoses>& stamps) {
    return stamps ? std::optional<StampedPoses>(*stamps) : std::nullopt;
}

Ref<const StampedPoses> stamps_ref(const std::optional<StampedPoses>& stamps) {
    return stamps ? Ref<const StampedPoses>(new StampedPoses(*stamps)) : nullptr;
}

Ref<const StampCovariance> stamp_covariance(const OptionalArray& covariance,
                                            std::string_view what) {
    if (!covariance) return nullptr;
    return Ref<const StampCovariance>(new StampCovariance(read_covariance(*covariance, what)));
}

namespace {

using PoseTuple = nb::typed<nb::tuple, Pose, nb::ellipsis>;
using CovarianceTuple = TupleOf<std::optional<ReadOnlyArray>>;
using CovarianceList = std::vector<OptionalArray>;

StampedPoses make_history(const std::vector<double>& stamps, const std::vector<Pose>& poses,
                          const std::optional<CovarianceList>& covariances, std::size_t capacity,
                          double window) {
    if (stamps.size() != poses.size())
        throw Error(ErrorKind::stamp, "{} stamps were given for {} poses", stamps.size(),
                    poses.size());
    if (covariances && covariances->size() != poses.size())
        throw Error(ErrorKind::stamp, "{} covariances were given for {} poses", covariances->size(),
                    poses.size());
    StampedPoses result;
    result.capacity = capacity;
    result.window = window;
    for (std::size_t i = 0; i < stamps.size(); ++i) {
        const std::string what = format_text("the covariance at {} s", stamps[i]);
        result.entries.push_back(
            {stamps[i], poses[i],
             covariances ? stamp_covariance((*covariances)[i], what) : nullptr});
    }
    result.check("");
    return result;
}

nb::object covariance_or_none(const StampedPose& entry) {
    return entry.covariance ? nb::cast(covariance_array(entry.covariance->value)) : nb::none();
}

nb::tuple covariances_of(const StampedPoses& s) {
    nb::list covariances;
    for (const StampedPose& entry : s.entries) covariances.append(covariance_or_none(entry));
    return nb::tuple(covariances);
}

template <class Value> std::vector<Value> each(const StampedPoses& s, Value StampedPose::* field) {
    std::vector<Value> values;
    for (const StampedPose& entry : s.entries) values.push_back(entry.*field);
    return values;
}
std::vector<double> stamps_of(const StampedPoses& s) { return each(s, &StampedPose::stamp); }
std::vector<Pose> poses_of(const StampedPoses& s) { return each(s, &StampedPose::pose); }

// Covariances are a fifth entry, if there are any.
nb::tuple state_of(const StampedPoses& s) {
    nb::tuple state = nb::make_tuple(stamps_of(s), poses_of(s), s.capacity, s.window);
    if (!s.has_covariances()) return state;
    nb::list covariances;
    for (const StampedPose& entry : s.entries)
        covariances.append(entry.covariance ? nb::cast(entry.covariance->value.matrix())
                                            : nb::none());
    return nb::tuple(state + nb::make_tuple(covariances));
}

StampedPoses read_state(nb::handle state) {
    using Matrices = std::vector<std::optional<Matrix6>>;
    const bool has_covariances = nb::isinstance<nb::tuple>(state) && nb::len(state) == 5;
    const StateTuple s(state, "stamped poses", has_covariances ? 5 : 4);
    StampedPoses result = make_history(s.get<std::vector<double>>(0), s.get<std::vector<Pose>>(1),
                                       std::nullopt, s.get<std::size_t>(2), s.get<double>(3));
    if (!has_covariances) return result;
    const Matrices matrices = s.get<Matrices>(4);
    if (matrices.size() != result.entries.size())
        throw damaged_state("{} covariances for {} stamped poses", matrices.size(),
                            result.entries.size());
    for (std::size_t i = 0; i < matrices.size(); ++i)
        if (matrices[i])
            result.entries[i].covariance = Ref<const StampCovariance>(new StampCovariance(
                Covariance::checked(*matrices[i], "a covariance of stamped poses")));
    return result;
}

void bind_history_queries(nb::class_<StampedPoses>& cls) {
    cls.def("at",
            [](const StampedPoses& s, const NumberArgument& stamp, std::string_view policy) {
        return in_range(s.at({read_stamp(stamp), stamp_policy(policy)}, ""));
    }, "stamp"_a, nb::kw_only(), "policy"_a = "interpolated",
            R"(Return parent_from_frame at a time. O(log k) for k poses.

Args:
    stamp: time on the clock of the stamps [s].
    policy: ``closest``, ``preceding``, ``interpolated``, ``screw`` or ``clamped``; see
        ``SceneGraph.pose``.

Raises:
    StampError: if the stamp is outside the history.
    UnknownNameError: if the policy is unknown.)")
        .def("gaussian_at",
             [](const StampedPoses& s, const NumberArgument& stamp, std::string_view policy) {
        const Moment moment{read_stamp(stamp), stamp_policy(policy)};
        const Ref<const EdgeNoise> noise = s.noise_at(moment, "", "", nullptr);
        return in_range(GaussianPose{s.at(moment, ""), noise ? noise->covariance : Covariance{}});
    }, "stamp"_a, nb::kw_only(), "policy"_a = "interpolated",
             R"(Return parent_from_frame at a time with its covariance, to first order. O(log k).

Poses without a covariance are exact here; ``graph.gaussian_pose`` uses the error of the edge for
them. Between two stamps with independent errors the covariance is ``A S0 A^T + B S1 B^T``, with the
derivatives A and B of the interpolated pose by the two errors. It is smaller there than at the
stamps: it assumes that the frame moves exactly along the interpolation.

Args:
    stamp: time on the clock of the stamps [s].
    policy: as for ``at``; ``clamped`` returns the covariance of the nearer end outside the history.

Raises:
    StampError: if the stamp is outside the history.
    UnknownNameError: if the policy is unknown.

Source: Sola, Deray and Atchuthan, "A micro Lie theory for state estimation in robotics".)")
        .def("with_covariance",
             [](const StampedPoses& s, const NumberArgument& stamp,
                const ArrayArgument& covariance) {
        const double time = read_stamp(stamp);
        const std::string what = format_text("the covariance at {} s", time);
        return s.with_covariance(time, read_covariance(covariance, what));
    },
             "stamp"_a, "covariance"_a,
             R"(Return the history with another covariance of one pose. O(k).

Args:
    stamp: stamp of the pose [s].
    covariance: (6, 6) covariance of the pose, as for the constructor.

Raises:
    StampError: if there is no pose at the stamp.
    SceneError: if the covariance is not symmetric positive semi-definite.)")
        .def("moved", &StampedPoses::moved, "parent_from_old_parent"_a,
             "Return the same history relative to another parent, fixed relative to the old one. "
             "O(k)."
             R"(

Args:
    parent_from_old_parent: pose of the old parent in the new one.)")
        .def("__len__", [](const StampedPoses& s) { return s.entries.size(); });
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
    covariances: (6, 6) covariance of each pose, ordered [rho, theta] [m, rad], in the frame's own
        axes, or None for the error of the edge; by default None for all.
    capacity: largest number of poses.
    window: largest time between the oldest and the newest [s]; unlimited if omitted.

Raises:
    StampError: if the stamps do not ascend, are not finite, exceed the capacity or the window, or
        differ in number from the poses or covariances.
    SceneError: if a covariance is not symmetric positive semi-definite.)");
    cls.def("__init__", made_by(&make_history), "stamps"_a = nb::tuple(), "poses"_a = nb::tuple(),
            nb::kw_only(), "covariances"_a = nb::none(),
            "capacity"_a = StampedPoses::usual_capacity, "window"_a = StampedPoses::without_end)
        .def_prop_ro("stamps", [](const StampedPoses& s) { return make_array(stamps_of(s)); },
                     "(k,) ascending stamps [s]; read-only.")
        .def_prop_ro("poses",
                     [](const StampedPoses& s) {
        return PoseTuple(nb::tuple(nb::cast(poses_of(s))));
    }, "parent_from_frame at joint value 0, one for each stamp.")
        .def_prop_ro(
            "covariances", [](const StampedPoses& s) { return CovarianceTuple(covariances_of(s)); },
            "(6, 6) covariance of each pose in the frame's own axes, read-only; None: the error is "
            "that of the edge.")
        .def_ro("capacity", &StampedPoses::capacity, "Largest number of poses.")
        .def_ro("window", &StampedPoses::window,
                "Largest time between the oldest and the newest [s]; inf if unlimited.");
    bind_history_queries(cls);
    const auto key = [](const StampedPoses& s) {
        return nb::make_tuple(nb::tuple(nb::cast(stamps_of(s))), nb::tuple(nb::cast(poses_of(s))),
                              s.capacity, s.window, s.has_covariances());
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
