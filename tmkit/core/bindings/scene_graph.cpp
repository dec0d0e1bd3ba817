#include "tmkit/scene_graph.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "edits.hpp"
#include "state.hpp"
#include "tmkit/scene_difference.hpp"
#include "tmkit/scene_edit.hpp"

namespace tmkit::bindings {
namespace {

void bind_edit_end(nb::class_<SceneEditHandle>& cls) {
    cls.def_prop_ro("scene",
                    [](const SceneEditHandle& e) {
        if (e.out_of_memory) e.require_kept();
        return e.edit.scene();
    }, "The scene with the edits so far.")
        .def("finish",
             [](const SceneEditHandle& e) {
        if (e.discarded) throw Error(ErrorKind::scene, "this edit was discarded by an exception");
        e.require_kept();
        return e.edit.scene();
    }, R"(Return the new version. May be called again after more edits.

Raises:
    SceneError: if the edits were discarded.)")
        .def("__enter__", [](nb::typed<nb::object, SceneEditHandle> self) { return self; })
        .def("__exit__",
             [](SceneEditHandle& e, nb::handle type, nb::handle, nb::handle) {
        if (!type.is_none()) e.discarded = true;
    }, "exception_type"_a.none(), "exception"_a.none(), "traceback"_a.none())
        .def("__repr__", [](const SceneEditHandle& e) {
        return format_text("SceneEdit({} frames{})", e.edit.scene().size(),
                           e.discarded || e.out_of_memory ? ", discarded" : "");
    });
}

}  // namespace

void bind_scene_graph(nb::module_& m) {
    nb::class_<SceneGraph> scene(m, "SceneGraph", nb::is_weak_referenceable(),
                                 "One consistent version of the world: frames in trees, joints, "
                                 "bodies and shapes, as an immutable value."
                                 R"(

An edit returns a new version that shares nearly everything with this one, which does not change; an
edit without effect returns the same object. Safe to read from any thread. Equality is by content,
in insertion order. It costs as much as ``diff`` for versions of a lineage, and O(n) for others. The
first hash of a version costs O(n).

Args:
    root: name of the first root frame; None for an empty scene.)");
    scene.def("__init__", [](SceneGraph* self, const std::optional<std::string>& root) {
        SceneEdit edit{SceneGraph()};
        if (root) edit.add_root(*root);
        new (self) SceneGraph(std::move(edit).take());
    }, "root"_a.none() = "world");
    bind_scene_queries(scene);
    bind_relations(scene);
    bind_scene_edits(scene);
    bind_content_edits(scene);
    bind_noise_edits(scene);
    scene.def("edit", [](const SceneGraph& s) { return SceneEditHandle{SceneEdit(s)}; },
              "Begin several edits that make one new version: ``with scene.edit() as edit: ...; "
              "edit.finish()``.");
    scene
        .def("__eq__",
             [](const SceneGraph& a, nb::handle b) {
        return nb::isinstance<SceneGraph>(b) && a.same_content(nb::cast<const SceneGraph&>(b));
    }, "other"_a.none())
        .def("__hash__",
             [](const SceneGraph& s) { return static_cast<Py_hash_t>(s.content_hash() >> 2); })
        .def("__copy__", [](nb::typed<nb::object, SceneGraph> self) { return self; })
        .def("__deepcopy__",
             [](nb::typed<nb::object, SceneGraph> self, nb::handle) { return self; }, "memo"_a)
        .def("__repr__", [](const SceneGraph& s) {
        return format_text("SceneGraph({} frames, {} joints)", s.size(), s.joint_count());
    });
    bind_state(scene, &scene_state, &scene_from_state);

    nb::class_<SceneEditHandle> edit(m, "SceneEdit", nb::is_weak_referenceable(),
                                     R"(Several edits that make one new version.

Created by ``scene.edit()``. Its methods are the edits of ``SceneGraph`` and work in place; the
original scene does not change. In a ``with`` block, an exception discards all edits, as does a
MemoryError during one.)");
    bind_scene_edits(edit);
    bind_content_edits(edit);
    bind_noise_edits(edit);
    bind_edit_end(edit);

    m.def("diff", &difference, "a"_a, "b"_a,
          R"(Return the difference between two versions of a scene.

O(changes log n) for versions of a lineage, since shared parts are skipped. For unrelated scenes it
is correct, but not the smallest, and O(n).

Args:
    a: the first version.
    b: the second version.

Returns:
    The difference; ``a.apply(diff(a, b)) == b``.)");
}

// --- pickled state of a scene

constexpr int scene_format = 9;  // written and accepted format

// State for pickle: (format, shapes, frames, allowed pairs, groups, bare bodies, noise sources). A
// shape and a source are written once for all frames that share them.
nb::tuple scene_state(const SceneGraph& scene) {
    nb::list shapes, frames, allowed;
    std::unordered_map<const Shape*, std::size_t> places;
    const auto attached_state = [&](const FrameSpecification& frame) {
        nb::list attached;
        for (const AttachedShape& a : frame.shapes) {
            const auto [place, is_new] = places.emplace(a.shape.get(), places.size());
            if (is_new) shapes.append(nb::cast(ShapeHandle{a.shape}));
            attached.append(nb::make_tuple(
                place->second, a.pose, a.color, a.has_color, a.visual, a.collision, a.friction,
                a.level ? nb::cast(name_of(*a.level)) : nb::none(), a.stamp));
        }
        return attached;
    };
    nb::list sources;
    std::unordered_map<const NoiseSource*, std::size_t> numbers;
    const auto noise_state = [&](const EdgeNoise* noise) -> nb::object {
        if (!noise) return nb::none();
        nb::list terms;
        for (const NoiseTerm& term : noise->terms) {
            const auto [number, is_new] = numbers.emplace(term.source.get(), numbers.size());
            if (is_new) sources.append(nb::make_tuple(term.source->dimension, term.source->label));
            terms.append(number->second);
        }
        return nb::make_tuple(noise->covariance.matrix(), terms, noise->maps);
    };
    for (const std::string& name : scene.frame_names()) {
        FrameSpecification f = scene.specification(name);
        const nb::object parent = f.parent.empty() ? nb::none() : nb::cast(f.parent);
        frames.append(nb::make_tuple(
            name, parent, f.body, f.pose, std::move(f.joint), f.classes, attached_state(f),
            f.inertia, f.attributes, twist_tuple(f.twist), stamps_state(f.stamps),
            noise_state(f.noise.get()), noise_state(f.twist ? f.twist->noise.get() : nullptr)));
    }
    nb::list groups;
    for (const GroupSpecification& g : scene.groups_inside_out())
        groups.append(nb::make_tuple(g.name, g.frames, g.groups, g.parents, g.attributes));
    for (const AllowedPair& pair : scene.allowed_pairs())
        allowed.append(nb::make_tuple(pair.a, pair.b, pair.reason));
    return nb::make_tuple(scene_format, shapes, frames, allowed, groups,
                          scene.bodies_without_frames(), sources);
}

namespace {

// The shapes and noise sources that the frames of a pickled scene refer to by number.
struct SharedParts {
    std::vector<ShapeHandle> shapes;
    std::vector<Ref<const NoiseSource>> sources;

    Ref<const EdgeNoise> noise(nb::handle state) const;
    AttachedShape attached(nb::handle state) const;
};

Ref<const EdgeNoise> SharedParts::noise(nb::handle state) const {
    if (state.is_none()) return nullptr;
    const StateTuple n(state, "noise", 3);
    EdgeNoise edge_noise;
    edge_noise.maps = n.get<std::vector<Vector6>>(2);
    for (const Vector6& column : edge_noise.maps)
        for (const double number : column)
            if (!std::isfinite(number))
                throw damaged_state("a map of a noise source holds {}", number);
    std::size_t columns = 0;
    for (const std::size_t number : n.get<std::vector<std::size_t>>(1)) {
        if (number >= sources.size())
            throw damaged_state("it names noise source {} of {}", number, sources.size());
        const Ref<const NoiseSource>& source = sources[number];
        if (std::any_of(edge_noise.terms.begin(), edge_noise.terms.end(),
                        [&](const NoiseTerm& term) { return term.source == source; }))
            throw damaged_state("an edge has two maps of noise source '{}'", source->label);
        if (source->dimension > edge_noise.maps.size() - columns)
            throw damaged_state("an edge has fewer maps than its noise sources have dimensions");
        edge_noise.terms.push_back({source, columns});
        columns += source->dimension;
    }
    if (columns != edge_noise.maps.size())
        throw damaged_state("an edge has more maps than its noise sources have dimensions");
    edge_noise.covariance = Covariance::of_columns(edge_noise.maps);
    return with_covariance(edge_noise, Covariance::checked(n.get<Matrix6>(0), "covariance"));
}

AttachedShape SharedParts::attached(nb::handle state) const {
    const StateTuple a(state, "an attached shape", 9);
    const std::size_t number = a.get<std::size_t>(0);
    if (number >= shapes.size())
        throw damaged_state("it names shape {} of {}", number, shapes.size());
    const OptionalArray color =
        a.get<bool>(3) ? std::optional(ArrayArgument{a.at(2)}) : std::nullopt;
    return make_attached(shapes[number], a.get<Pose>(1), color, a.get<bool>(4), a.get<bool>(5),
                         a.get<std::optional<double>>(6), a.get<std::optional<std::string>>(7),
                         a.get<OptionalStamp>(8));
}

Attributes read_attributes(const StateTuple& frame, std::size_t i) {
    Attributes attributes = frame.get<Attributes>(i);
    const nb::object loads = nb::module_::import_("json").attr("loads");
    for (const auto& [key, text] : attributes) {
        const std::string_view json = remove_stamp(text),
                               stamp = std::string_view(text).substr(json.size());
        const auto same = [&](std::string_view value_text) {
            return attribute_text(key, loads(value_text)) == value_text;
        };
        const auto is_time = [&](std::string_view value_text) {
            return nb::isinstance<nb::float_>(loads(value_text));
        };
        if (key.empty() || !same(json) ||
            !(stamp.empty() || (same(stamp.substr(1)) && is_time(stamp.substr(1)))))
            throw damaged_state("attribute '{}' is not kept as JSON", key);
    }
    std::sort(attributes.begin(), attributes.end());
    const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (std::adjacent_find(attributes.begin(), attributes.end(), same_key) != attributes.end())
        throw damaged_state("there are two attributes of one key");
    return attributes;
}

FrameSpecification read_frame(nb::handle state, const SharedParts& parts) {
    const StateTuple f(state, "a frame", 13);
    FrameSpecification frame{f.get<std::string>(0),
                             f.get<std::optional<std::string>>(1).value_or(""),
                             f.get<Pose>(3),
                             f.get<Joint>(4),
                             f.get<std::string>(2),
                             f.get<std::vector<std::string>>(5),
                             {},
                             f.get<std::optional<Inertia>>(7),
                             read_attributes(f, 8)};
    for (const nb::object& item : f.items(6)) frame.shapes.push_back(parts.attached(item));
    frame.twist = read_twist(f.get<std::optional<TwistArgument>>(9));
    frame.stamps = stamps_from_state(f.at(10));
    frame.noise = parts.noise(f.at(11));
    if (frame.twist) frame.twist->noise = parts.noise(f.at(12));
    return frame;
}

}  // namespace

SceneGraph scene_from_state(nb::handle state) {
    const StateTuple s(state, "a scene", 7);
    if (const int format = s.get<int>(0); format != scene_format)
        throw Error(ErrorKind::scene,
                    "this pickled scene is of format {}, written by another version of tmkit; "
                    "format {} is read",
                    format, scene_format);
    SharedParts parts{s.get<std::vector<ShapeHandle>>(1), {}};
    for (const auto& [dimension, label] :
         s.get<std::vector<std::pair<std::size_t, std::string>>>(6)) {
        if (dimension == 0) throw damaged_state("a noise source has no dimension");
        parts.sources.emplace_back(new NoiseSource(dimension, label));
    }
    std::vector<FrameSpecification> frames;
    for (const nb::object& entry : s.items(2)) frames.push_back(read_frame(entry, parts));
    SceneEdit edit{SceneGraph()};
    for (const std::string& body : s.get<std::vector<std::string>>(5)) edit.add_body(body);
    edit.add_frames(frames);
    using Text = std::string;
    for (const auto& [a, b, reason] : s.get<std::vector<std::tuple<Text, Text, Text>>>(3))
        edit.allow_collision(a, b, reason);
    for (const nb::object& item : s.items(4)) {
        const StateTuple g(item, "a group", 5);
        const auto names = [&](std::size_t i) { return g.get<std::vector<Text>>(i); };
        edit.set_group({g.get<Text>(0), names(1), names(2), names(3), read_attributes(g, 4)});
    }
    return std::move(edit).take();
}

}  // namespace tmkit::bindings
