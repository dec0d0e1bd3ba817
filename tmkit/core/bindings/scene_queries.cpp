#include <cmath>

#include "bindings.hpp"
#include "tmkit/kinematics.hpp"
#include "tmkit/scene_edit.hpp"

namespace tmkit::bindings {
namespace {

// Number of frames whose poses cost about as much as a release of the GIL.
constexpr std::size_t frames_worth_a_release = 500;

Kinematics kinematics_at(const SceneGraph& scene, const OptionalArray& q, const OptionalArray& qd) {
    const ConfigurationArgument configuration(q, scene);
    if (!configuration.held && scene.joint_count() > 0)
        throw Error(ErrorKind::configuration,
                    "this scene has {} joints, so at() needs a configuration q",
                    scene.joint_count());
    std::vector<double> own =
        configuration.held ? configuration.held->copy() : std::vector<double>();
    std::vector<double> velocities =
        qd ? read_vector(*qd, "qd", scene.joint_count(), ErrorKind::configuration,
                         Units::of_joints(scene, true))
           : std::vector<double>();
    if (scene.size() < frames_worth_a_release)
        return Kinematics(scene, std::move(own), std::move(velocities));
    nb::gil_scoped_release release;
    return Kinematics(scene, std::move(own), std::move(velocities));
}

ReadOnlyArray limits_of(const SceneGraph& scene, double EntryLimits::* limit) {
    std::vector<double> values;
    for (const EntryLimits& entry : scene.entry_limits()) values.push_back(entry.*limit);
    return make_owned(std::move(values));
}

ReadOnlyArray joint_limits(const SceneGraph& scene) {
    std::vector<double> values;
    for (const EntryLimits& entry : scene.entry_limits()) {
        values.push_back(entry.lower);
        values.push_back(entry.upper);
    }
    return make_owned(std::move(values), {scene.joint_count(), 2});
}

ReadOnlyArray configuration(const SceneGraph& scene,
                            const nb::typed<Mapping, nb::str, double>& values,
                            const OptionalArray& base) {
    std::vector<double> q = base ? read_vector(*base, "base", scene.joint_count(),
                                               ErrorKind::configuration, Units::of_joints(scene))
                                 : std::vector<double>(scene.joint_count(), 0.0);
    const std::vector<std::string> names = scene.joint_names();
    for (nb::handle item : values.items()) {
        const nb::handle key = item[0], value = item[1];
        std::string_view text;
        if (!nb::try_cast(key, text))
            throw Error(ErrorKind::configuration, "joint names are text, not {}",
                        nb::cast<std::string>(nb::repr(key)));
        const std::string name(text);
        const auto position = std::find(names.begin(), names.end(), name);
        if (position == names.end()) {
            // Rejects an unknown name.
            const FrameRecord& record = scene.record(scene.joint_frame(name));
            throw Error(ErrorKind::configuration,
                        "joint '{}' mimics '{}', so it has no value; set '{}'", name,
                        record.joint->mimic, record.joint->mimic)
                .with({{"joint", name}});
        }
        NumberArgument given;
        double number = 0.0;
        const bool is_number = nb::try_cast(value, given);
        if (is_number) {
            const FrameRecord& record = scene.record(scene.joint_frame(name));
            const char* unit = record.joint->type == JointType::prismatic ? "m" : "rad";
            number = read_number(given, ("joint '" + name + "'").c_str(), unit,
                                 ErrorKind::configuration);
        }
        if (!is_number || !std::isfinite(number))
            throw Error(ErrorKind::configuration, "joint '{}' needs a finite number, not {}", name,
                        nb::cast<std::string>(nb::repr(value)))
                .with({{"joint", name}});
        q[static_cast<std::size_t>(position - names.begin())] = number;
    }
    return make_array(std::move(q));
}

// The rows of an (m, n_joints) argument, the number of values and the number of rows.
std::tuple<std::vector<double>, std::size_t, std::size_t> configurations(const SceneGraph& scene,
                                                                         const ArrayArgument& q) {
    std::vector<double> rows =
        read_matrix(q, "q", scene.joint_count(), ErrorKind::configuration, Units::of_joints(scene));
    const std::size_t columns = scene.joint_count(),
                      count = columns ? rows.size() / columns : nb::len(q.value);
    return {std::move(rows), columns, count};
}

ReadOnlyArray pose_batch(const SceneGraph& scene, std::string_view frame,
                         const OptionalName& relative_to, const ArrayArgument& q) {
    const auto [rows, columns, count] = configurations(scene, q);
    std::vector<double> poses(7 * count);
    const std::string to(frame), from(reference_frame(scene, frame, relative_to));
    {
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < count; ++i)
            write_pose(&poses[7 * i], scene.pose(to, from, rows.data() + i * columns));
    }
    return make_rows(std::move(poses), 7);
}

ReadOnlyArray poses(const SceneGraph& scene, const std::vector<std::string>& frames,
                    const OptionalName& relative_to, const OptionalArray& q) {
    const ConfigurationArgument configuration(q, scene);
    const std::vector<Pose> poses = scene.poses(frames, relative_to, configuration.get());
    std::vector<double> rows(7 * poses.size());
    for (std::size_t i = 0; i < poses.size(); ++i) write_pose(&rows[7 * i], poses[i]);
    return make_rows(std::move(rows), 7);
}

ReadOnlyArray poses_batch(const SceneGraph& scene, const ArrayArgument& q) {
    const auto [rows, columns, count] = configurations(scene, q);
    const std::size_t frames = scene.size();
    std::vector<double> poses(7 * count * frames);
    {
        nb::gil_scoped_release release;
        const Layout& layout = scene.layout();
        std::vector<Pose> row(frames);
        for (std::size_t i = 0; i < count; ++i) {
            layout.forward(rows.data() + i * columns, row.data());
            for (std::size_t frame = 0; frame < frames; ++frame)
                write_pose(&poses[7 * (i * frames + frame)], row[frame]);
        }
    }
    return make_array(std::move(poses), {count, frames, 7});
}

void bind_array_queries(nb::class_<SceneGraph>& cls) {
    const auto transform = [&cls](const char* name, const char* rows, bool points,
                                  std::string text) {
        text += R"( O(n + depth log n).

Args:
    )" + std::string(rows) +
                R"(: (n, 3){}, in coordinates of the source.
    source: the frame of the given coordinates.
    target: the frame of the returned coordinates.)" Q_ON_PATH R"(

Returns:
    (n, 3){}, in coordinates of the target; read-only.)" NO_POSE;
        const char* unit = points ? " [m]" : "";
        cls.def(name,
                [rows, points](const SceneGraph& s, const ArrayArgument& row_argument,
                               std::string_view source, std::string_view target,
                               const OptionalArray& q) {
            const Pose pose = s.pose(source, target, ConfigurationArgument(q, s).get());
            return make_each(row_argument, rows, 3, [&](const double* row) {
                const Vector3 vector{row[0], row[1], row[2]};
                return points ? pose.apply(vector) : pose.rotate(vector);
            }, points ? "m" : "");
        },
                nb::arg(rows), nb::kw_only(), "source"_a, "target"_a, "q"_a = nb::none(),
                format_text(text, unit, unit).c_str());
    };
    transform("transform_points", "points", true,
              "Transform points from coordinates of one frame to those of another.");
    transform("transform_vectors", "vectors", false,
              "Rotate free vectors from the axes of one frame to those of another.");
    cls.def("poses", &poses, "frames"_a, nb::kw_only(), "relative_to"_a = nb::none(),
            "q"_a = nb::none(),
            "Return the poses of several frames at one configuration. "
            "O(k log n), and O(depth log n) a parent."
            R"(

Row i has the bits of ``pose(frames[i], relative_to=relative_to, q=q)``. For the frames of a class:
``scene.poses(scene.frames_of_class("movable"), q=q)``.

Args:
    frames: names of k frames, in the order of the rows; a frame may be repeated.
    relative_to: the reference frame of all poses; the root of each frame's tree if
        omitted.)" Q_ON_PATH R"(

Returns:
    (k, 7) relative_to_from_frame: x, y, z [m], qx, qy, qz, qw; read-only.)" NO_POSE);
    cls.def("pose_batch", &pose_batch, "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(),
            "q"_a,
            R"(Return the pose of one frame relative to another for many configurations. O(m depth).

Other threads can run. Row i has the bits of ``pose(frame, relative_to=relative_to, q=q[i])``.

Args:)" POSE_ARGS R"(
    q: (m, n_joints) configurations [rad or m].

Returns:
    (m, 7) relative_to_from_frame: x, y, z, qx, qy, qz, qw; read-only.)" NO_PATH R"(
    ConfigurationError: if q has the wrong shape or non-finite numbers.)")
        .def("poses_batch", &poses_batch, "q"_a,
             R"(Return the poses of all frames for many configurations (m, n_joints). O(m n).

Other threads can run. ``poses_batch(q)[i]`` has the bits of ``at(q[i]).poses``.

Returns:
    (m, n_frames, 7) x, y, z, qx, qy, qz, qw relative to the root; read-only.

Raises:
    ConfigurationError: if q has the wrong shape or non-finite numbers.)");
}

void bind_configuration_queries(nb::class_<SceneGraph>& cls) {
    cls.def("digest", [](const SceneGraph& s) {
        const std::string bytes = s.content_bytes();
        return nb::cast<std::string>(nb::module_::import_("hashlib")
                                         .attr("sha256")(nb::bytes(bytes.data(), bytes.size()))
                                         .attr("hexdigest")());
    }, R"(Return the SHA-256 of the content as hexadecimal text, equal exactly for equal scenes.

Each call costs O(n); ``fingerprint`` costs less. The same in every process. The content, as for
``==``, is insertion order, names, parents, bodies, joints, poses, classes, attributes, shapes,
inertia, allowed pairs and groups; not ids. -0.0 is 0.0. A pose is its seven numbers: q and -q, the
same rotation, make different scenes.)");
    cls.def_prop_ro("fingerprint", [](const SceneGraph& s) { return digest_text(s.content_sum()); },
                    R"(Key of the content for dictionaries and caches, as 32 hexadecimal digits.

Equal for equal scenes, the same in every process. O(changes log n) if the fingerprint of a related
version is known: one from which this version was made, or which was made from this one. O(n log n)
for the first one, after a rename, and if frames with errors changed. Repeated access is O(1).
Not cryptographic: confirm equal fingerprints with ``==`` if an adversary may have made the scenes.
Within one process the scene itself is a key of the same cost.)");
    cls.def("at", &kinematics_at, "q"_a = nb::none(), "qd"_a = nb::none(),
            R"(Run forward kinematics at a configuration. O(n).

Args:
    q: (n_joints,) configuration [rad or m], in joint_names order; optional without joints.
    qd: (n_joints,) joint velocities [rad/s or m/s], for twists; none if omitted.

Returns:
    The scene at this configuration, with all poses computed.

Raises:
    ConfigurationError: if q is missing in a scene with joints, or q or qd has the wrong length or
        non-finite numbers.)")
        .def("configuration", &configuration, "values"_a, nb::kw_only(), "base"_a = nb::none(),
             R"(Return a configuration (n_joints,) from joint values by name.

Args:
    values: values [rad or m] by joint name.
    base: the configuration with all other entries; zeros if omitted.)" NO_JOINT R"(
    ConfigurationError: if a joint mimics another, or a value is not finite.)");
    cls.def_prop_ro(
           "joint_limits", &joint_limits,
           R"((n_joints, 2) smallest and largest values [rad or m]; -inf and inf if unlimited.

They satisfy the limits of the joint and of all joints that mimic it. O(joints log n), as the two
below.)")
        .def_prop_ro("velocity_limits",
                     [](const SceneGraph& s) { return limits_of(s, &EntryLimits::velocity); },
                     R"((n_joints,) largest speeds [rad/s or m/s].

They satisfy the limits of the joint and of all joints that mimic it; 0 is no limit, as in many
files.)")
        .def_prop_ro("effort_limits",
                     [](const SceneGraph& s) { return limits_of(s, &EntryLimits::effort); },
                     R"((n_joints,) largest torques or forces [N m or N].

They satisfy the limits of the joint and of each single joint that mimics it: a force F on a mimic
joint is ``|multiplier| F`` on its leader.)");
}

}  // namespace

void bind_scene_queries(nb::class_<SceneGraph>& cls) {
    bind_pose_queries(cls);
    bind_structure_queries(cls);
    bind_array_queries(cls);
    bind_configuration_queries(cls);
    cls.def_static("from_frames",
                   [](const std::vector<FrameSpecification>& frames,
                      const std::vector<std::tuple<std::string, std::string, std::string>>& allowed,
                      const std::vector<std::string>& bodies_without_frames) {
        SceneEdit edit{SceneGraph()};
        for (const std::string& body : bodies_without_frames) edit.add_body(body);
        edit.add_frames(frames);
        for (const auto& [a, b, reason] : allowed) edit.allow_collision(a, b, reason);
        return std::move(edit).take();
    },
                   "frames"_a, nb::kw_only(), "allowed"_a = nb::tuple(),
                   "bodies_without_frames"_a = nb::tuple(),
                   R"(Create a scene from all its frames at once. O(n log n).

Args:
    frames: in insertion order; a parent, or the leader of a mimic joint, may be later.
    allowed: pairs that may touch, with the reason: (a, b, reason).
    bodies_without_frames: bodies without a frame.

Raises:
    UnknownNameError, DuplicateNameError, CycleError, SceneError: if a single edit raises it.)");
#ifdef TMKIT_DEFECTS
    cls.def("_defects", &SceneGraph::defects,
            "Describe a violated invariant, for tests; empty if there is none.");
#endif
    // The HTML is written in Python.
    cls.def("_repr_html_", [](nb::handle self) {
        return nb::cast<std::string>(registered_function(Registered::tree_html)(self));
    }, "Return the HTML for notebooks.");
}

}  // namespace tmkit::bindings
