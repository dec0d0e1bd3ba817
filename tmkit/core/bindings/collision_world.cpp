#include "tmkit/collision_world.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "motion.hpp"
#include "tmkit/rows.hpp"

// Common parts of docstrings.
#define WRONG_LENGTH                                                                              \
    "\n\nRaises:\n    ConfigurationError: if a configuration has the wrong length or non-finite " \
    "numbers."
#define WRONG_BATCH                                                                                \
    "\n\nRaises:\n    ConfigurationError: if an array has the wrong shape or non-finite numbers, " \
    "or ``threads`` is below 1."
namespace tmkit::bindings {
namespace {

// A contact with names instead of numbers.
struct NamedContact {
    std::string frame_a, frame_b;
    double distance, margin;
    Vector3 point, normal;
};

struct NamedEdgeCollision {
    double fraction;
    std::vector<double> q;
    std::string frame_a, frame_b;
};

NamedContact name_frames(const CollisionWorld& world, const Contact& c) {
    return {world.frame_name(c.frame_a),
            world.frame_name(c.frame_b),
            c.distance,
            c.margin,
            c.point,
            c.normal};
}

std::optional<NamedContact> name_frames(const CollisionWorld& world,
                                        const std::optional<Contact>& c) {
    return c ? std::optional(name_frames(world, *c)) : std::nullopt;
}

using MarginMap = std::map<PairNames, double>;

std::vector<PairMargin> list_margins(const MarginMap& margins) {
    std::vector<PairMargin> list;
    for (const auto& [pair, value] : margins) list.push_back({pair.first, pair.second, value});
    return list;
}

void make_world(CollisionWorld* self, const SceneGraph& scene,
                const std::vector<std::string>& movable, double margin,
                const MarginMap& pair_margins, const std::string& level) {
    CollisionOptions options;
    options.movable = movable;
    options.margin = margin;
    options.pair_margins = list_margins(pair_margins);
    options.level = read_level(level);
    nb::gil_scoped_release released;
    scene.layout();  // cached in the version that Python holds, for the next query
    new (self) CollisionWorld(scene, std::move(options));
}

CollisionWorld moved_to(const CollisionWorld& world, const SceneGraph& scene,
                        const std::optional<std::vector<std::string>>& movable,
                        std::optional<double> margin,
                        const std::optional<MarginMap>& pair_margins) {
    CollisionChanges changes{movable, margin, {}};
    if (pair_margins) changes.pair_margins = list_margins(*pair_margins);
    nb::gil_scoped_release released;
    return world.moved_to(scene, changes);
}

using FrameNames = nb::typed<nb::frozenset, nb::str>;

std::optional<FrameNames> changed_frames(const CollisionWorld& world,
                                         const CollisionWorld& before) {
    const auto changed = world.changed_since(before);
    if (!changed) return std::nullopt;
    nb::set names;
    for (const FrameId id : *changed) {
        const FrameRecord* record = world.scene().find(id);
        if (!record) record = before.scene().find(id);
        if (record) names.add(record->name->text);
    }
    return FrameNames(nb::frozenset(names));
}

std::vector<double> configuration(const CollisionWorld& world, const ArrayArgument& q,
                                  const char* name = "q") {
    return read_vector(q, name, world.joint_count());
}

// Evaluate query(world, q) at a full configuration.
template <class Answer>
auto ask(const CollisionWorld& world, const ArrayArgument& argument, Answer&& answer) {
    const std::vector<double> q = configuration(world, argument);
    return without_gil([&](const auto&) { return std::invoke(answer, world, q.data()); });
}

// The rows of an (m, n_joints) argument.
struct Rows {
    Rows(const CollisionWorld& world, const ArrayArgument& argument, int threads,
         const char* name = "qs")
        : values(read_matrix(argument, name, world.joint_count())), columns(world.joint_count()),
          count(columns == 0 ? nb::len(argument.value) : values.size() / columns) {
        if (threads < 1)
            throw Error(ErrorKind::configuration, "threads must be at least 1, got {}", threads)
                .with({{"value", threads}});
    }
    const double* at(std::size_t row) const { return values.data() + row * columns; }

    std::vector<double> values;
    std::size_t columns, count;
};

// Evaluate query(world, q) at each row; the result does not depend on the number of threads.
template <class Answer>
auto answers_of(const CollisionWorld& world, const ArrayArgument& argument, int threads,
                Answer&& answer) {
    const Rows rows(world, argument, threads);
    std::vector<std::invoke_result_t<Answer, const CollisionWorld&, const double*>> answers(
        rows.count);
    return without_gil([&](const auto& interrupted) {
        for_each_row(answers.size(), threads, interrupted, [&](std::size_t row) {
            answers[row] = std::invoke(answer, world, rows.at(row));
        });
        return std::move(answers);
    });
}

nb::ndarray<nb::numpy, const bool> in_collision_batch(const CollisionWorld& world,
                                                      const ArrayArgument& argument, int threads) {
    const Rows rows(world, argument, threads);
    auto* answers = new std::vector<char>(rows.count);
    nb::capsule owner(answers, [](void* p) noexcept { delete static_cast<std::vector<char>*>(p); });
    constexpr std::size_t together = CollisionView::together;
    without_gil([&](const auto& interrupted) {
        const std::vector<std::uint32_t> order =
            world.order_by_nearness(rows.values.data(), rows.count);
        for_each_row((rows.count + together - 1) / together, threads, interrupted,
                     [&](std::size_t block) {
            const std::size_t first = block * together,
                              count = std::min(together, rows.count - first);
            std::array<const double*, together> q{};
            std::array<bool, together> first_collision{};
            for (std::size_t i = 0; i < count; ++i) q[i] = rows.at(order[first + i]);
            world.in_collisions(q.data(), static_cast<int>(count), first_collision.data());
            for (std::size_t i = 0; i < count; ++i)
                (*answers)[order[first + i]] = static_cast<char>(first_collision[i]);
        });
        return 0;
    });
    return {reinterpret_cast<const bool*>(answers->data()), {answers->size()}, owner};
}

double distance(const CollisionWorld& world, const double* q) {
    const std::optional<Contact> first_collision = world.nearest(q);
    return first_collision ? first_collision->distance : std::numeric_limits<double>::infinity();
}

ReadOnlyArray distance_batch(const CollisionWorld& world, const ArrayArgument& argument,
                             int threads) {
    return make_owned(answers_of(world, argument, threads, &distance));
}

std::vector<NamedContact> name_frames(const CollisionWorld& world,
                                      const std::vector<Contact>& contacts) {
    std::vector<NamedContact> result;
    for (const Contact& contact : contacts) result.push_back(name_frames(world, contact));
    return result;
}

std::vector<std::vector<NamedContact>> contacts_batch(const CollisionWorld& world,
                                                      const ArrayArgument& argument, int threads) {
    std::vector<std::vector<NamedContact>> lists;
    for (const std::vector<Contact>& contacts :
         answers_of(world, argument, threads, &CollisionWorld::contacts))
        lists.push_back(name_frames(world, contacts));
    return lists;
}

// The frame of a name, or the frames of the body of that name if no frame has it.
std::vector<std::int32_t> find_frames(const SceneGraph& scene, const std::string& name) {
    std::vector<std::int32_t> frames;
    if (!scene.find(name) && scene.has_body(name))
        for (const FrameId frame : scene.frames_of_body(name))
            frames.push_back(scene.layout().index_of(frame));
    if (frames.empty()) frames.push_back(scene.frame_number(name));
    return frames;
}

std::optional<NamedContact> compute_distance(const CollisionWorld& world, const std::string& a,
                                             const std::string& b, const ArrayArgument& argument) {
    const std::vector<std::int32_t> frames_a = find_frames(world.scene(), a),
                                    frames_b = find_frames(world.scene(), b);
    return name_frames(world, ask(world, argument, [&](const CollisionWorld& w, const double* q) {
        return w.between(frames_a, frames_b, q);
    }));
}

std::optional<NamedContact> find_collision(const CollisionWorld& world,
                                           const ArrayArgument& argument) {
    return name_frames(
        world, ask(world, argument,
                   [](const CollisionWorld& world, const double* q) -> std::optional<Contact> {
        const FramePair pair = world.find_collision(q);
        if (!pair) return std::nullopt;
        Contact contact = world.contact(pair, q);
        // Recomputed, within a tolerance.
        contact.distance = std::min(contact.distance, contact.margin);
        return contact;
    }));
}

bool edge_free(const CollisionWorld& world, const ArrayArgument& from, const ArrayArgument& to,
               double resolution) {
    require_positive(resolution, "resolution");
    const std::vector<double> q0 = configuration(world, from, "q0"),
                              q1 = configuration(world, to, "q1");
    return without_gil(
        [&](const auto&) { return world.edge_free(q0.data(), q1.data(), resolution); });
}

bool still_free(const CollisionWorld& world, const ArrayArgument& argument,
                const CollisionWorld& proved_in) {
    if (proved_in.joint_count() != world.joint_count()) return false;
    const Rows rows(world, argument, 1, "path");
    std::vector<const double*> each;
    for (std::size_t i = 0; i < rows.count; ++i) each.push_back(rows.at(i));
    return without_gil(
        [&](const auto&) { return world.still_free(proved_in, each.data(), each.size()); });
}

std::optional<NamedEdgeCollision> find_edge_collision(const CollisionWorld& world,
                                                      const ArrayArgument& from,
                                                      const ArrayArgument& to, double resolution) {
    require_positive(resolution, "resolution");
    const std::vector<double> q0 = configuration(world, from, "q0"),
                              q1 = configuration(world, to, "q1");
    const auto first_collision = without_gil(
        [&](const auto&) { return world.find_edge_collision(q0.data(), q1.data(), resolution); });
    if (!first_collision) return std::nullopt;
    return NamedEdgeCollision{first_collision->fraction, first_collision->q,
                              world.frame_name(first_collision->pair.a),
                              world.frame_name(first_collision->pair.b)};
}

using CheckedPairs =
    nb::typed<nb::tuple, nb::typed<nb::tuple, nb::str, nb::str, nb::float_>, nb::ellipsis>;

CheckedPairs checked_pairs(const CollisionWorld& world) {
    nb::list rows;
    for (const Contact& c : world.pairs())
        rows.append(
            nb::make_tuple(world.frame_name(c.frame_a), world.frame_name(c.frame_b), c.margin));
    return CheckedPairs(nb::tuple(rows));
}

void bind_contact(nb::module_& m) {
    nb::class_<NamedContact>(
        m, "Contact", nb::is_weak_referenceable(),
        R"(Two frames in contact, or near contact. Positions are in root axes [m].)")
        .def_ro("frame_a", &NamedContact::frame_a,
                "The frame named first, or the first one in the scene.")
        .def_ro("frame_b", &NamedContact::frame_b, "The other frame.")
        .def_ro("distance", &NamedContact::distance,
                R"(Signed distance [m]; negative is the depth of penetration.

Two meshes at the level 'exact' have no depth: the distance is at most 0 if their triangles
intersect.)")
        .def_ro("margin", &NamedContact::margin, "The margin of this pair [m].")
        .def_prop_ro("point", [](const NamedContact& c) { return make_array(c.point); },
                     "(3,) point midway between the nearest (or deepest) points, in root axes [m].")
        .def_prop_ro(
            "normal", [](const NamedContact& c) { return make_array(c.normal); },
            "(3,) unit vector from a to b, in root axes: moving b along it separates the two.")
        .def_prop_ro("point_a",
                     [](const NamedContact& c) {
        return make_array(c.point - 0.5 * c.distance * c.normal);
    }, "(3,) nearest (or deepest) point of a, in root axes [m].")
        .def_prop_ro("point_b",
                     [](const NamedContact& c) {
        return make_array(c.point + 0.5 * c.distance * c.normal);
    }, "(3,) nearest (or deepest) point of b, in root axes [m].")
        .def("__repr__", [](const NamedContact& c) {
        return format_text("Contact({}, {}, distance={})", quote(c.frame_a), quote(c.frame_b),
                           c.distance);
    });
    nb::class_<NamedEdgeCollision>(m, "EdgeCollision", nb::is_weak_referenceable(),
                                   "First collision of a straight joint motion.")
        .def_ro("fraction", &NamedEdgeCollision::fraction, "Fraction of the motion, 0 to 1.")
        .def_prop_ro("q", [](const NamedEdgeCollision& e) { return make_array(e.q); },
                     "(n_joints,) configuration of the collision, read-only.")
        .def_ro("frame_a", &NamedEdgeCollision::frame_a,
                "The first of the two frames in the scene.")
        .def_ro("frame_b", &NamedEdgeCollision::frame_b, "The other frame.")
        .def("__repr__", [](const NamedEdgeCollision& e) {
        return format_text("EdgeCollision({}, {}, fraction={})", quote(e.frame_a), quote(e.frame_b),
                           e.fraction);
    });
}

void bind_world(nb::class_<CollisionWorld>& cls) {
    cls.def("__init__", &make_world, "scene"_a, nb::kw_only(), "movable"_a = nb::tuple(),
            "margin"_a = 0.0, "pair_margins"_a = nb::dict(), "level"_a = "hull")
        .def(
            "moved_to", &moved_to, "scene"_a, nb::kw_only(), "movable"_a = nb::none(),
            "margin"_a = nb::none(), "pair_margins"_a = nb::none(),
            R"(Return the world of another version of the scene, reusing the structures of this one.

It gives the same results as a new world, and this one remains valid for its version. If only frames
that carry no joint were moved, reparented, added or removed, shapes were replaced or pairs allowed,
then only those are updated. If a joint or more than a few frames changed, everything is computed
again. Data beyond the shared structures (``nearest``, ``distance``, ``pairs``, path search) are
computed on the first query.

Args:
    scene: the other version.
    movable: as for ``CollisionWorld``; None for the frames that are movable here and in the other
        version.
    margin: margin [m], as for ``CollisionWorld``; None for the same margin as here.
    pair_margins: as for ``CollisionWorld``; None for the margins of this world whose frames are in
        the other version.

Raises:
    UnknownNameError: if a frame is not in the scene.
    ConfigurationError: if a margin is infinite, NaN or below -1.
    ShapeError: if a mesh has no convex hull.

Cost: about one check for a reparented object; O(changes log n + objects).)");
    cls.def("shares_with", &CollisionWorld::shares_with, "other"_a,
            R"(Return whether two worlds share structures, through ``moved_to``.

Args:
    other: the other world.)")
        .def_prop_ro("scene", [](const CollisionWorld& w) { return w.scene(); },
                     "The version of the scene.")
        .def_prop_ro("margin", [](const CollisionWorld& w) { return w.options().margin; },
                     "The default margin [m].")
        .def_prop_ro("level", [](const CollisionWorld& w) { return name_of(w.options().level); },
                     "Geometry of shapes without their own level: \"box\", \"hull\" or \"exact\".")
        .def_prop_ro("movable",
                     [](const CollisionWorld& w) { return tuple_of(w.options().movable); },
                     "Names of the frames whose edge does not join rigidly.")
        .def_prop_ro(
            "pairs", &checked_pairs,
            "Every checked pair as (frame_a, frame_b, margin), in frame order. O(frames^2).");
}

void bind_changes(nb::class_<CollisionWorld>& cls) {
    cls.def(
           "changed_frames", &changed_frames, "before"_a,
           "Return the frames whose collisions may differ from those in a world of another version."
           R"(

Args:
    before: the other world, from which this one was moved, or the reverse.

Returns:
    Names of frames of either version, also those of carried frames; some may be unchanged. None if
    the two do not share structures.

Cost: O(objects).)")
        .def("is_still_free", &still_free, "path"_a, nb::kw_only(), "proved_in"_a,
             R"(Return whether a path, proved free in another version, is still proved free.

Only the differences of the two worlds are checked.

Args:
    path: (k, n_joints) full configurations, joined by straight joint motions that
        :func:`search_path` has proved free in ``proved_in``.
    proved_in: the other world.

Returns:
    True if the path is proved free here. False if a changed object may obstruct it, or too much
    differs to decide; then check the whole path.

Raises:
    ConfigurationError: if the path has the wrong shape or non-finite numbers.

Cost: some 20 us for a path of an arm and an object that has been moved;
O(motions x objects that differ).)");
}

constexpr const char* batch_arguments = R"(

Args:
    qs: (m, n_joints) full configurations [rad or m].
    threads: number of threads; the result does not depend on it. Other Python threads can run.

Returns:
)";

void bind_collision_queries(nb::class_<CollisionWorld>& cls) {
    cls.def("is_in_collision",
            [](const CollisionWorld& w, const ArrayArgument& argument) {
        return ask(w, argument, &CollisionWorld::in_collision);
    }, "q"_a, R"(Return whether any checked pair is in contact at a configuration.

Args:
    q: (n_joints,) full configuration; limits are not checked.)" WRONG_LENGTH)
        .def("in_collision_batch", &in_collision_batch, "qs"_a, nb::kw_only(), "threads"_a = 1,
             Text{R"(Return the collision state of each row of ``qs``.)"} + batch_arguments +
                 R"(    (m,) bool, read-only.)" WRONG_BATCH)
        .def("distance_batch", &distance_batch, "qs"_a, nb::kw_only(), "threads"_a = 1,
             Text{"Return the smallest signed distance of all checked pairs for many "
                  "configurations."} +
                 batch_arguments +
                 R"(    (m,) distances [m], inf if no pair is checked; read-only.)" WRONG_BATCH)
        .def("contacts_batch", &contacts_batch, "qs"_a, nb::kw_only(), "threads"_a = 1,
             Text{R"(Return the ``contacts`` of many configurations.)"} + batch_arguments +
                 R"(    The contacts of each row, as for ``contacts``.)" WRONG_BATCH);
    cls.def("find_collision", &find_collision, "q"_a,
            "Return a checked pair in contact at a configuration (n_joints,), or None if it is "
            "free." WRONG_LENGTH)
        .def("contacts",
             [](const CollisionWorld& w, const ArrayArgument& argument) {
        return name_frames(w, ask(w, argument, &CollisionWorld::contacts));
    }, "q"_a,
             R"(Return all checked pairs within their margin at a full configuration (n_joints,).

Returns:
    The deepest contact of each pair, in frame order.)" WRONG_LENGTH)
        .def("nearest",
             [](const CollisionWorld& w, const ArrayArgument& argument) {
        return name_frames(w, ask(w, argument, &CollisionWorld::nearest));
    }, "q"_a,
             "Return the checked pair of smallest signed distance at a full configuration "
             "(n_joints,)."
             R"(

Returns:
    The pair, or None if no pair is checked.)" WRONG_LENGTH)
        .def("distance",
             [](const CollisionWorld& w, const ArrayArgument& argument) {
        return ask(w, argument, &distance);
    }, "q"_a,
             "Return the smallest signed distance over all checked pairs [m]; inf if none is "
             "checked."
             R"(

Args:
    q: (n_joints,) full configuration [rad or m].)" WRONG_LENGTH)
        .def("distance", &compute_distance, "frame_a"_a, "frame_b"_a, "q"_a,
             R"(Return the distance of two frames: the nearest of their collision shapes.

The pair need not be checked.

Args:
    frame_a: a frame; or a body, for all its frames, if no frame has the name.
    frame_b: the other.
    q: (n_joints,) full configuration [rad or m].

Returns:
    The nearest or deepest pair of frames, ``frame_a`` of the first name, with the signed distance
    [m], the nearest points and the normal from a to b; its margin is ``-inf`` if it is not checked.
    None if one side has no collision shape, or both are planes.

Raises:
    UnknownNameError: if no frame and no body has the name.
    ConfigurationError: if a configuration has the wrong length or non-finite numbers.)");
}

constexpr const char* resolution_argument = R"(
    resolution: largest step of any joint between two checks [rad or m].

Raises:
    ConfigurationError: if a configuration has the wrong length or non-finite numbers, or the
        resolution is not positive.)";

}  // namespace

void bind_collision_world(nb::module_& m) {
    bind_contact(m);
    nb::class_<CollisionWorld> cls(
        m, "CollisionWorld", nb::is_weak_referenceable(),
        R"(Collision checks of one version of a scene: its checked pairs and their margins.

Two frames with collision shapes are checked unless they are on one body, the scene allows the pair,
or they are rigidly joined (connected by fixed edges alone). A pair is in contact if its signed
distance is at most its margin; with margin 0 touching is contact (to 1e-6 m). Every root is at the
identity. Immutable; any number of threads may query at once, and no result depends on earlier
queries.

A plane is checked against all shapes but planes. The distance to a cloud or a field is that of its
nearest or deepest piece: a ball, or the ground under half a cell. A depth in a field is therefore
at most the sideways distance out of that piece.

Args:
    scene: the version of the scene.
    movable: names of frames whose edge may be changed later. Such an edge does not join rigidly: a
        block on a table, as its child, is checked against the table. Free joints never join.
    margin: margin [m], at least -1; a negative one permits all pairs to overlap by that depth.
    pair_margins: ``{(frame_a, frame_b): margin}`` [m] in place of ``margin`` for these pairs, in
        either order: negative permits penetration to that depth, ``-inf`` excludes the pair. It
        adds no pair that is not checked otherwise.
    level: geometry of shapes without their own level. ``"hull"``: meshes are their convex hulls.
        ``"exact"``: meshes are their triangles (surfaces only: an object wholly inside a mesh is
        not detected; negative margins of two meshes apply to their hulls). ``"box"``: meshes, point
        clouds and height fields are their bounding boxes in their own axes. At the other levels a
        point cloud is its balls and a height field the ground down to its floor. A configuration
        that is free at "box" is free at "hull", and one free at "hull" is free at "exact". Hulls
        and trees are computed once for each shape and shared.

Raises:
    UnknownNameError: if a frame is not in the scene, or the level is unknown.
    ConfigurationError: if a margin is infinite, NaN or below -1.
    ShapeError: if a mesh has no convex hull, e.g. a flat one.

Cost: some microseconds plus the missing hulls; a check of an arm over a table with ten blocks about
2 us.)");
    bind_world(cls);
    bind_changes(cls);
    bind_collision_queries(cls);
    cls.def(
           "is_edge_free", &edge_free, "q0"_a, "q1"_a, nb::kw_only(), "resolution"_a = 0.01,
           Text{
               "Return whether the straight joint motion from q0 to q1 is free, both ends included."
               R"(

Args:
    q0: (n_joints,) full configuration.
    q1: (n_joints,) full configuration.)"} +
               resolution_argument)
        .def("find_edge_collision", &find_edge_collision, "q0"_a, "q1"_a, nb::kw_only(),
             "resolution"_a = 0.01,
             Text{
                 R"(Return the first collision of a straight joint motion, or None if it is free.

Args:
    q0: (n_joints,) full configuration at the start [rad or m].
    q1: (n_joints,) full configuration at the end.)"} +
                 resolution_argument)
        .def("__repr__", [](const CollisionWorld& w) {
        return format_text("CollisionWorld({} pairs, margin={}, level='{}')", w.pairs().size(),
                           w.options().margin, name_of(w.options().level));
    });
}

}  // namespace tmkit::bindings
