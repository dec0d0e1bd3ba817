#include "tmkit/scene_arrays.hpp"

#include "edits.hpp"
#include "tmkit/no_fork.hpp"

namespace tmkit::bindings {
namespace {

// Capacities: a number of frames, or numbers by the names of the arrays.
using Room = std::variant<std::size_t, nb::typed<Mapping, nb::str, int>>;

Capacities read_capacities(const std::optional<Room>& room) {
    Capacities capacities;
    if (!room) return capacities;
    if (const std::size_t* frames = std::get_if<std::size_t>(&*room)) {
        capacities.frames = *frames;
        return capacities;
    }
    std::vector<std::string> known;
    for (const auto& [name, capacity] : capacity_names) known.emplace_back(name);
    for (nb::handle item : std::get<1>(*room).items()) {
        const nb::object key = item[0], count = item[1];
        std::string_view text;
        const auto match = nb::try_cast(key, text) ? std::ranges::find(known, text) : known.end();
        if (match == known.end())
            throw unknown_name("capacity", nb::cast<std::string>(nb::str(key)), known);
        std::size_t number = 0;
        if (!nb::try_cast(count, number))
            throw Error(ErrorKind::capacity,
                        "the capacity '{}' must be a number that is not negative, not {}", text,
                        nb::cast<std::string>(nb::repr(count)))
                .with({{"kind", text}});
        capacities.*capacity_names[static_cast<std::size_t>(match - known.begin())].second = number;
    }
    return capacities;
}

// Number of frames from which forward kinematics takes longer than a release of the GIL.
constexpr std::size_t frames_worth_forwarding_released = 512;

using WritableRows = nb::ndarray<double, nb::shape<-1, 7>, nb::c_contig, nb::device::cpu>;

void forward(SceneArrays& arrays, const ArrayArgument& q) {
    const HeldVector held(q, "q", [&] { return arrays.joint_count(); }, Units::of_joints(arrays));
    if (arrays.size() < frames_worth_forwarding_released) return arrays.forward(held.numbers());
    const std::vector<double> own = held.copy();  // other threads may write to the array now
    const nb::gil_scoped_release release;
    const NoFork whole;
    arrays.forward(own);
}

ReadOnlyArray poses(const SceneArrays& arrays) {
    std::vector<double> rows(7 * arrays.size());
    const std::size_t count = arrays.write_poses(rows);
    return make_array(std::move(rows), {count, 7});
}

std::size_t write_poses(const SceneArrays& arrays, const nb::object& destination) {
    WritableRows rows;
    if (!nb::try_cast<WritableRows>(destination, rows, false))
        throw Error(ErrorKind::configuration,
                    "out must be a writable, C-contiguous array (n, 7) of float64");
    const std::size_t count = arrays.write_poses({rows.data(), rows.size()});
    require_in_range(std::span<const double>(rows.data(), 7 * count), "a pose");
    return count;
}

ReadOnlyArray present_configuration(const SceneArrays& arrays) {
    std::vector<double> q(arrays.joint_count());
    const std::size_t count = arrays.write_q(q);
    return make_array(std::move(q), {count});
}

nb::typed<nb::dict, nb::str, int> capacities(const SceneArrays& arrays) {
    nb::typed<nb::dict, nb::str, int> made;
    for (const auto& [name, capacity] : capacity_names)
        if (capacity != &Capacities::noise) made[name] = arrays.capacities().*capacity;
    return made;
}

void bind_arrays_configuration(nb::class_<SceneArrays>& cls) {
    cls.def("forward", &forward, "q"_a,
            R"(Set the configuration (n_joints,): compute the poses of all frames in place. O(n).

Raises:
    ConfigurationError: if q has the wrong length or non-finite numbers.)")
        .def("freeze", &SceneArrays::freeze,
             R"(Return the present scene as a persistent ``SceneGraph``. O(n log n).

The original scene if there was no edit; otherwise the result of the same edits on it.)");
    cls.def_prop_ro(
           "q", &present_configuration,
           "(n_joints,) the present configuration, in joint_names order; a copy, read-only.")
        .def_prop_ro("poses", &poses,
                     "(n, 7) x, y, z, qx, qy, qz, qw of each frame relative to its root, in "
                     "frame_names order."
                     R"(

At the present configuration; a copy, read-only.)")
        .def("write_poses", &write_poses, "out"_a,
             nb::sig("def write_poses(self, out: numpy.typing.NDArray[numpy.float64]) -> int"),
             "Write ``poses`` into the first rows of an array (m, 7) of float64, and return the "
             "number of frames."
             R"(

Raises:
    ConfigurationError: if there are fewer rows than frames, or the array is read-only, of another
        type or not contiguous.)");
    cls.def("jacobian", [](const SceneArrays& self, std::string_view frame) {
        const std::size_t columns = self.joint_count();
        std::vector<double> rows(6 * columns);
        self.jacobian(frame, rows);
        return make_array(std::move(rows), {6, columns});
    }, "frame"_a, R"(Return the Jacobian (6, n_joints) of a frame's origin. O(depth + n_joints).

At the present configuration, as ``Kinematics.jacobian``.)" NO_FRAME);
}

void bind_arrays_motion(nb::class_<SceneArrays>& cls) {
    cls.def("twist",
            [](SceneArrays& self, std::string_view frame, const OptionalName& relative_to,
               const OptionalName& at, const OptionalName& axes, const OptionalArray& q,
               const OptionalArray& qd) {
        return make_array(self.related_twist(frame, relative_to, at, axes, Given(q, self).get(),
                                             Given<SceneArrays>::rates(qd, self).get()));
    },
            "frame"_a, nb::kw_only(), "relative_to"_a = nb::none(), "at"_a = nb::none(),
            "axes"_a = nb::none(), "q"_a = nb::none(), "qd"_a = nb::none(),
            "Return the twist (6,) of a frame relative to another: linear [m/s], then angular part "
            "[rad/s]."
            R"(

It combines twist edges, moving joints and fixed edges along the unique path between the two bodies,
with the bits of ``graph.twist``. O(depth); with t twist edges O(t depth), and O(n depth) if edges
of poses are on the path. For the writer, since it uses the arrays' scratch.

Args:
    frame: a frame of the moving body.
    relative_to: a frame of the reference body; the root of its tree if omitted.
    at: the frame whose origin has the linear velocity; ``frame`` if omitted.
    axes: the frame in whose axes the twist is; ``relative_to`` if omitted.
    q: (n_joints,) configuration [rad or m]; the present one if omitted.
    qd: (n_joints,) joint velocities [rad/s or m/s]; without them joints and free edges do not
        contribute.)" NO_PATH
            R"(
    ConfigurationError: if q or qd has the wrong length or non-finite numbers.
    SceneError: if the relative motion is not determined.
    ConcurrentWriteError: if another thread is writing.)");
    cls.def_prop_ro("capacities", &capacities, R"(The sizes of the arrays.

By name: ``frames``, ``bodies``, ``shapes``, ``allowed_pairs``, ``name_bytes``, ``twists``,
``stamps``, ``groups`` and ``group_members``.)")
        .def("__repr__", [](const SceneArrays& self) {
        return format_text("SceneArrays({} of {} frames, {} joints)", self.size(),
                           self.capacities().frames, self.joint_count());
    });
#ifdef TMKIT_DEFECTS
    cls.def("_defects", &SceneArrays::defects,
            "Describe a violated invariant, for tests; empty if there is none. O(n^2).");
#endif
}

}  // namespace

void bind_scene_arrays(nb::module_& m) {
    nb::class_<SceneArrays> arrays(
        m, "SceneArrays", nb::is_weak_referenceable(),
        R"(A scene at a configuration in preallocated arrays, edited in place: for control loops.

It begins as a copy of a scene at the zero configuration. Edits and ``forward`` work in place and
allocate nothing; after each, all poses are up to date. Edits keep the rules of ``SceneGraph`` and
raise the same errors; queries return the same bits. ``freeze`` returns a ``SceneGraph`` again.

One thread may write while any number of threads read: poses, Jacobians, names and parents are those
before or after an edit, never in between, and the writer never waits for readers. Edits,
``forward``, groups and ``freeze`` belong to the writer.

Args:
    scene: the scene to start from.
    capacity: number of frames, or numbers by the names of the arrays, such as
        ``{"frames": 100, "stamps": 1000}``: ``frames`` (by default twice those of the scene, at
        least 64), ``bodies`` (as many as frames), ``shapes`` (those of the scene and one for each
        frame), ``allowed_pairs`` (those of the scene and four for each frame), ``name_bytes``
        (length of the longest name or reason in UTF-8, at least 64), ``twists`` (those of the scene
        and one for each frame), ``stamps`` (stamped poses of all edges; twice those of the scene,
        at least 256), ``groups`` (those of the scene and 16), ``group_members`` (those of the scene
        and two for each frame) and ``noise`` (dimensions of noise sources on each edge; all those
        of the scene). Covariances of stamped poses need a ``noise`` of 6 at least.

Raises:
    UnknownNameError: if an array is unknown.
    CapacityError: if the scene exceeds a capacity. Edits raise it too, and then change nothing.
        ``kind`` names the capacity, ``capacity`` is its size.
    ConcurrentWriteError: if another thread is writing (edits, ``forward``, ``freeze``).

``os.fork`` waits until a ``forward`` of another thread has ended. The child then has its own copy
of the arrays, to read and to write.)");
    arrays.def("__init__",
               [](SceneArrays* self, const SceneGraph& scene, const std::optional<Room>& capacity) {
        new (self) SceneArrays(scene, read_capacities(capacity));
    }, "scene"_a, "capacity"_a = nb::none());
    bind_scene_edits(arrays);
    bind_content_edits(arrays);
    bind_noise_edits(arrays);
    bind_arrays_configuration(arrays);
    bind_arrays_motion(arrays);
    bind_structure_queries(arrays);
    bind_pose_queries(arrays);
}

}  // namespace tmkit::bindings
