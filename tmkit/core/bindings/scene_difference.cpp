#include "tmkit/scene_difference.hpp"

#include "bindings.hpp"

namespace tmkit::bindings {
namespace {

// Names of the changed fields of a frame, as in FrameSpecification.
std::vector<std::string> changed_fields(const FrameDifference& d) {
    std::vector<std::string> fields;
    if (!d.before || !d.after) return fields;
    const FrameSpecification &a = *d.before, &b = *d.after;
    const auto note = [&](bool same, const char* name) {
        if (!same) fields.emplace_back(name);
    };
    note(a.name == b.name, "name");
    note(a.parent == b.parent && !d.reparented, "parent");
    note(a.pose == b.pose, "pose");
    note(a.joint.type == b.joint.type && a.joint == b.joint, "joint");
    note(a.body == b.body, "body");
    note(a.classes == b.classes, "classes");
    note(a.shapes == b.shapes, "shapes");
    note(a.inertia == b.inertia, "inertia");
    note(a.attributes == b.attributes, "attributes");
    note(a.twist == b.twist, "twist");
    note(same_stamps(a.stamps, b.stamps), "stamps");
    note(same_noise(a.noise, b.noise), "covariance");
    return fields;
}

std::string join_texts(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
    return all;
}

std::string text_of(const FrameDifference& d) {
    if (!d.before) return "added '" + d.after->name + "'";
    if (!d.after) return "removed '" + d.before->name + "'";
    return "'" + d.after->name + "': " + join_texts(changed_fields(d));
}

template <class Choose> Names names_where(const SceneDifference& difference, Choose&& choose) {
    nb::list names;
    for (const FrameDifference& frame : difference.frames)
        if (const FrameSpecification* frame_specification = choose(frame))
            names.append(frame_specification->name);
    return Names(nb::tuple(names));
}

using NameList = std::vector<std::string>;
// As for `pairs`.
using PairChange =
    std::tuple<std::string, std::string, std::optional<std::string>, std::optional<std::string>>;
using GroupContent = std::tuple<NameList, NameList, NameList, std::optional<AttributeMapping>>;
using GroupChange = std::pair<std::string, std::optional<GroupContent>>;

void bind_difference_properties(nb::class_<SceneDifference>& cls) {
    cls.def_ro("bodies_before", &SceneDifference::bare_bodies_before,
               "Bodies without frames in the first version only.")
        .def_ro("bodies_after", &SceneDifference::bare_bodies_after,
                "Bodies without frames in the second version only.")
        .def_prop_ro(
            "frames", [](const SceneDifference& d) { return tuple_of(d.frames); },
            "One entry for each frame that was added, removed or changed, in insertion order.")
        .def_prop_ro("added",
                     [](const SceneDifference& d) {
        return names_where(d,
                           [](const FrameDifference& f) { return f.before ? nullptr : &*f.after; });
    }, "Names of the frames in the second version only.")
        .def_prop_ro("removed",
                     [](const SceneDifference& d) {
        return names_where(d,
                           [](const FrameDifference& f) { return f.after ? nullptr : &*f.before; });
    }, "Names of the frames in the first version only.")
        .def_prop_ro("changed",
                     [](const SceneDifference& d) {
        return names_where(
            d, [](const FrameDifference& f) { return f.before && f.after ? &*f.after : nullptr; });
    }, "Names, in the second version, of the frames that differ.")
        .def_prop_ro("pairs",
                     [](const SceneDifference& d) {
        nb::list pairs;
        for (const PairDifference& pair : d.pairs) {
            const auto& names = pair.names_after ? *pair.names_after : *pair.names_before;
            pairs.append(nb::make_tuple(names.first, names.second, pair.before, pair.after));
        }
        using Reason = std::optional<std::string>;
        return nb::typed<nb::tuple, nb::typed<nb::tuple, nb::str, nb::str, Reason, Reason>,
                         nb::ellipsis>(nb::tuple(pairs));
    },
                     "Changed pairs that may touch: (a, b, reason before, reason after); a reason "
                     "is None if the pair is checked."
                     R"(

Names are those of the second version, if it has both frames.)")
        .def_prop_ro("groups",
                     [](const SceneDifference& d) {
        nb::list names;
        for (const GroupDifference& group : d.groups)
            names.append(group.after ? group.after->name : group.before->name);
        return Names(nb::tuple(names));
    }, "Names of the groups that differ.")
        .def("reversed", &SceneDifference::reverse,
             "Return the reverse difference: ``b.apply(diff(a, b).reversed()) == a``.")
        .def("__len__", &SceneDifference::size)
        .def("__bool__", [](const SceneDifference& d) {
        return !d.empty();
    }).def("__repr__", [](const SceneDifference& d) {
        std::vector<std::string> texts;
        for (const FrameDifference& frame : d.frames) texts.push_back(text_of(frame));
        if (!d.pairs.empty()) texts.push_back(format_text("{} allowed pairs", d.pairs.size()));
        if (!d.groups.empty()) texts.push_back(format_text("{} groups", d.groups.size()));
        const std::size_t count = texts.size();
        if (count > 8) {
            texts.resize(8);
            texts.push_back(format_text("and {} more", count - 8));
        }
        return "SceneDifference(" + join_texts(texts) + ")";
    });
}

}  // namespace

void bind_scene_difference(nb::module_& m) {
    nb::class_<FrameDifference>(
        m, "FrameDifference", nb::is_weak_referenceable(),
        R"(Difference of one frame between two versions of a scene. Immutable.

Args:
    frame_id: id of the frame; a new frame gets it if it is free.
    before: its specification in the first version, or None.
    after: its specification in the second version, or None.

Raises:
    SceneError: if the id is invalid, or both specifications are None.)")
        .def("__init__",
             [](FrameDifference* self, FrameId id, const std::optional<FrameSpecification>& before,
                const std::optional<FrameSpecification>& after) {
        if ((!before && !after) || id == no_frame || id > (1u << 31))
            throw Error(ErrorKind::scene,
                        "a frame difference needs an id from 1 to 2^31, and before, after or both");
        new (self) FrameDifference{id, before, after};
    },
             "frame_id"_a, "before"_a.none(), "after"_a.none())
        .def_ro("frame_id", &FrameDifference::id, "Id of the frame, the same in both.")
        .def_prop_ro("before", [](const FrameDifference& d) { return d.before; },
                     "Specification in the first version, or None.")
        .def_prop_ro("after", [](const FrameDifference& d) { return d.after; },
                     "Specification in the second version, or None.")
        .def_prop_ro("fields",
                     [](const FrameDifference& d) {
        return Names(nb::tuple(nb::cast(changed_fields(d))));
    }, "Names of the fields that differ; empty if the frame was added or removed.")
        .def("__repr__",
             [](const FrameDifference& d) { return "FrameDifference(" + text_of(d) + ")"; });

    nb::class_<SceneDifference> cls(m, "SceneDifference", nb::is_weak_referenceable(),
                                    R"(Difference of two versions of a scene. Immutable.

Created by ``diff(a, b)``; ``a.apply(diff(a, b)) == b``. Frames are matched by id: a renamed one is
one change.

Args:
    frames: in the order of their ids.
    pairs: as in the property ``pairs``.
    groups: (name, (frames, groups, parents, attributes or None) in the second version, or None).
    bodies_before: bodies without frames in the first version only.
    bodies_after: bodies without frames in the second version only.)");
    cls.def("__init__",
            [](SceneDifference* self, std::vector<FrameDifference> frames,
               const std::vector<PairChange>& pairs, const std::vector<GroupChange>& groups,
               const NameList& bodies_before, const NameList& bodies_after) {
        auto* result =
            new (self) SceneDifference{std::move(frames), {}, {}, bodies_before, bodies_after};
        for (const auto& [a, b, before, after] : pairs)
            result->pairs.push_back({{{a, b}}, {{a, b}}, before, after});
        for (const auto& [name, after] : groups) {
            result->groups.push_back({GroupSpecification{name, {}, {}}, {}});
            if (!after) continue;
            const auto& [frames, nested, parents, tags] = *after;
            result->groups.back().after = GroupSpecification{
                name, frames, nested, parents, tags ? attributes_of(*tags) : Attributes{}};
        }
    },
            "frames"_a, nb::kw_only(), "pairs"_a = nb::tuple(), "groups"_a = nb::tuple(),
            "bodies_before"_a = nb::tuple(), "bodies_after"_a = nb::tuple());
    bind_difference_properties(cls);
}

}  // namespace tmkit::bindings
