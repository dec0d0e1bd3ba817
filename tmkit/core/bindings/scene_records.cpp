#include "tmkit/scene_records.hpp"

#include <algorithm>

#include "fields.hpp"
#include "state.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit::bindings {

// What stands before the value of a key in a JSON object.
static std::string quoted_key(bool is_first, const std::string& key) {
    std::string text = is_first ? "\"" : ", \"";
    for (const char letter : key) {
        if (letter == '"' || letter == '\\') text += '\\';
        text += letter;
    }
    return text + "\": ";
}

// A value of an attribute as canonical JSON text, and back.
std::string attribute_text(const std::string& key, nb::handle value) {
    return nb::cast<std::string>(registered_function(Registered::attribute_text)(key, value));
}

// JSON that ends in a digit is a number, in which there is no `@`.
std::string_view unstamped(std::string_view text) {
    const bool ends_in_digit = !text.empty() && text.back() >= '0' && text.back() <= '9';
    return ends_in_digit ? text.substr(0, text.rfind('@')) : text;
}

nb::object stamps_of(const Attributes& attributes) {
    std::string text;
    for (const auto& [key, value] : attributes)
        if (const std::size_t end = unstamped(value).size(); end < value.size())
            text += quoted_key(text.empty(), key) + value.substr(end + 1);
    return registered_function(Registered::attribute_map)("{" + text + "}");
}

Attributes attributes_of(const AttributeMapping& values) {
    Attributes attributes;
    for (nb::handle item : values.items()) {
        std::string_view text;
        const bool is_text = nb::try_cast(item[0], text);
        if (!is_text && nb::isinstance<nb::str>(item[0]))
            throw Error(ErrorKind::scene, "an attribute's key has an unpaired surrogate: {}",
                        nb::cast<std::string>(nb::repr(item[0])));
        if (!is_text || text.empty())
            throw Error(ErrorKind::scene, "an attribute's key is text that is not empty, not {}",
                        nb::cast<std::string>(nb::repr(item[0])));
        const std::string key(text);
        attributes.emplace_back(key, attribute_text(key, item[1]));
    }
    return attributes;
}

Attributes with_attribute(Attributes attributes, const std::string& key, const std::string& text) {
    if (key.empty()) throw Error(ErrorKind::scene, "an attribute needs a key that is not empty");
    std::erase_if(attributes, [&](const auto& entry) { return entry.first == key; });
    attributes.emplace_back(key, text);
    return attributes;
}

const FrameDetails& details_on(const FrameRecord& record) {
    static const FrameDetails none;
    return record.details ? *record.details : none;
}

nb::object attribute_map(const Attributes& attributes) {
    std::string text;
    for (const auto& [key, value] : attributes)
        text.append(quoted_key(text.empty(), key)).append(unstamped(value));
    return registered_function(Registered::attribute_map)("{" + text + "}");
}

TwistEdge read_twist_edge(const std::string& reference, nb::handle vector) {
    return {reference, read_array<6>(vector, "vector"), nullptr};
}

std::optional<TwistEdge> read_twist(const std::optional<TwistArgument>& twist) {
    if (!twist) return std::nullopt;
    return read_twist_edge(std::get<0>(*twist), std::get<1>(*twist));
}

std::optional<std::tuple<std::string, ReadOnlyArray>> twist_tuple(
    const std::optional<TwistEdge>& twist) {
    if (!twist) return std::nullopt;
    return std::tuple{twist->reference, make_array(twist->vector)};
}

namespace {

Inertia unchecked_inertia(double mass, const ArrayArgument& center, const OptionalArray& matrix) {
    Inertia inertia{mass, read_vector3(center, "center"), {}};
    if (matrix) {
        const std::vector<double> v = read_shaped(*matrix, "matrix", 3, 3);
        std::copy(v.begin(), v.end(), inertia.matrix.begin());
    }
    return inertia;
}

Inertia make_inertia(double mass, const ArrayArgument& center, const OptionalArray& matrix) {
    const Inertia inertia = unchecked_inertia(mass, center, matrix);
    inertia.check();
    return inertia;
}

Inertia read_inertia(double mass, const ArrayArgument& center, const OptionalArray& matrix) {
    const Inertia inertia = unchecked_inertia(mass, center, matrix);
    inertia.check_stored();
    return inertia;
}

void bind_inertia(nb::module_& m) {
    nb::class_<Inertia> cls(
        m, "Inertia", nb::is_weak_referenceable(),
        R"(Mass properties of a body, in the axes of one of its frames. Immutable.

Args:
    mass: kilograms.
    center: (3,) centre of mass, metres.
    matrix: (3, 3) inertia about the centre of mass, kg m^2; zeros if omitted.

Raises:
    SceneError: if the mass is not positive, or if no solid has such a matrix: it is not symmetric positive
        semi-definite, or one principal moment exceeds the sum of the others by more than 1 %.)");
    cls.def("__init__", made_by(&make_inertia), "mass"_a,
            "center"_a = nb::make_tuple(0.0, 0.0, 0.0), nb::kw_only(), "matrix"_a = nb::none())
        .def_ro("mass", &Inertia::mass, "Kilograms.")
        .def_prop_ro("center", [](const Inertia& i) { return make_array(i.center); },
                     "(3,) centre of mass, metres.")
        .def_prop_ro("matrix", [](const Inertia& i) { return make_square(i.matrix, 3); },
                     "(3, 3) inertia about the centre of mass, kg m^2.");
    const auto key = [](const Inertia& a) {
        return nb::make_tuple(a.mass, a.center[0], a.center[1], a.center[2]);
    };
    bind_value(cls, key,
               [](const Inertia& i) { return formatted("Inertia({}, {})", i.mass, i.center); });
    bind_state(cls, [](nb::handle self) {
        return nb::make_tuple(self.attr("mass"), self.attr("center"), self.attr("matrix"));
    }, "an inertia", &read_inertia);
}

void bind_specification_properties(nb::class_<FrameSpecification>& cls) {
    cls.def_ro("name", &FrameSpecification::name, "Name of the frame.")
        .def_prop_ro("parent",
                     [](const FrameSpecification& f) {
        return f.parent.empty() ? std::optional<std::string>() : f.parent;
    }, "Name of the parent, None for a root.")
        .def_prop_ro("pose", [](const FrameSpecification& f) { return f.pose; },
                     "parent_from_frame at joint value 0.")
        .def_prop_ro("joint", [](const FrameSpecification& f) { return f.joint; },
                     "How the frame moves relative to its parent.")
        .def_prop_ro("body",
                     [](const FrameSpecification& f) { return f.body.empty() ? f.name : f.body; },
                     "Name of the body it is on.")
        .def_prop_ro("classes", [](const FrameSpecification& f) { return tuple_of(f.classes); },
                     "What the frame is.")
        .def_prop_ro("shapes", [](const FrameSpecification& f) { return tuple_of(f.shapes); },
                     "The shapes on it.")
        .def_prop_ro("inertia", [](const FrameSpecification& f) { return f.inertia; },
                     "Mass properties of the body, in the axes of this frame, or None.")
        .def_prop_ro("attributes",
                     [](const FrameSpecification& f) { return attribute_map(f.attributes); },
                     "Its attributes, an immutable map; see :meth:`SceneGraph.attributes`.")
        .def_prop_ro("attribute_stamps",
                     [](const FrameSpecification& f) { return stamps_of(f.attributes); },
                     "When its attributes were set: seconds by key, of those with a stamp.")
        .def_prop_ro("twist", [](const FrameSpecification& f) { return twist_tuple(f.twist); },
                     "Name of the reference body and (6,) the twist, or None.")
        .def_prop_ro("twist_noise",
                     [](const FrameSpecification& f) {
        return f.twist ? noise_or_none(f.twist->noise) : std::nullopt;
    }, "The error of the twist, or None when it is exact or there is none.")
        .def_prop_ro("stamps", [](const FrameSpecification& f) { return stamps_copy(f.stamps); },
                     "The stamped poses of its edge, or None.")
        .def_prop_ro("noise", [](const FrameSpecification& f) { return noise_or_none(f.noise); },
                     "The error of its pose, or None when it is exact.")
        .def("__repr__", [](const FrameSpecification& f) {
        const std::string parent = f.parent.empty() ? "None" : formatted("'{}'", f.parent);
        return formatted("FrameSpecification('{}', parent={})", f.name, parent);
    });
}

// The name of a parent or body; empty for None.
std::string name_or_empty(const std::string& frame, const OptionalName& name) {
    if (name && name->empty())
        throw Error(ErrorKind::scene,
                    "frame '{}' needs a parent and a body whose names are not empty, or None",
                    frame);
    return std::string(name.value_or(""));
}

// In this order: a twist is set before its noise.
constexpr Field<FrameSpecification> specification_fields[] = {
    {"name", &set_member<&FrameSpecification::name>},
    {"parent",
     [](FrameSpecification& f, nb::handle value) {
    f.parent = name_or_empty(f.name, nb::cast<OptionalName>(value));
}},
    {"pose", &set_member<&FrameSpecification::pose>},
    {"joint", &set_member<&FrameSpecification::joint>},
    {"body",
     [](FrameSpecification& f, nb::handle value) {
    f.body = name_or_empty(f.name, nb::cast<OptionalName>(value));
}},
    {"classes", &set_member<&FrameSpecification::classes>},
    {"shapes",
     [](FrameSpecification& f, nb::handle value) {
    f.shapes = attached_shapes(nb::cast<std::vector<ShapeArgument>>(value));
}},
    {"inertia", &set_member<&FrameSpecification::inertia>},
    {"attributes",
     [](FrameSpecification& f, nb::handle value) {
    f.attributes =
        value.is_none() ? Attributes{} : attributes_of(nb::cast<AttributeMapping>(value));
    std::sort(f.attributes.begin(), f.attributes.end());
}},
    {"twist",
     [](FrameSpecification& f, nb::handle value) {
    std::optional<TwistEdge> twist = read_twist(nb::cast<std::optional<TwistArgument>>(value));
    if (twist && f.twist) twist->noise = f.twist->noise;
    f.twist = std::move(twist);
}},
    {"twist_noise",
     [](FrameSpecification& f, nb::handle value) {
    const auto noise = nb::cast<std::optional<NoiseHandle>>(value);
    if (noise && !f.twist) throw errors::without_twist(f.name);
    if (f.twist) f.twist->noise = noise ? noise->noise : nullptr;
}},
    {"stamps",
     [](FrameSpecification& f, nb::handle value) {
    f.stamps = stamps_ref(nb::cast<std::optional<StampedPoses>>(value));
}},
    {"noise",
     [](FrameSpecification& f, nb::handle value) {
    const auto noise = nb::cast<std::optional<NoiseHandle>>(value);
    f.noise = noise ? noise->noise : nullptr;
}},
};

void bind_frame_specification(nb::module_& m) {
    nb::class_<FrameSpecification> cls(m, "FrameSpecification", nb::is_weak_referenceable(),
                                       R"(The full specification of one frame of a scene. Immutable.

Args:
    name: unique among frames.
    parent: name of the parent, None for a root.
    pose: parent_from_frame at joint value 0; the identity if omitted.
    joint: how the frame moves relative to its parent; fixed if omitted.
    body: the body it is on; one of the frame's own name if omitted.
    classes: what the frame is, e.g. ``movable``.
    shapes: the shapes on it; a ``Shape`` alone is put at its origin.

The other fields are set by ``replace``, for example ``replace(inertia=Inertia(1.0))``: ``inertia``,
``attributes`` (JSON values by key, which may be ``graph.Stamped``), ``twist`` (name of the reference body, and (6,)
the twist), ``twist_noise``, ``stamps`` and ``noise``. Each takes the value that the property of its name has.

Raises:
    SceneError: if the name of the parent or body is empty.)");
    cls.def("__init__",
            [](FrameSpecification* self, const std::string& name, const OptionalName& parent,
               const Pose& pose, const Joint& joint, const OptionalName& body,
               const std::vector<std::string>& classes, const std::vector<ShapeArgument>& shapes) {
        new (self) FrameSpecification{
            name,    name_or_empty(name, parent), pose, joint, name_or_empty(name, body),
            classes, attached_shapes(shapes)};
    },
            "name"_a, "parent"_a.none(), nb::kw_only(), "pose"_a = Pose{}, "joint"_a = Joint{},
            "body"_a = nb::none(), "classes"_a = nb::tuple(), "shapes"_a = nb::tuple());
    bind_replace(cls, specification_fields, [](FrameSpecification&) {}, "FrameSpecification",
                 "SceneError: if a name is empty, an attribute is not JSON, or there is noise of a "
                 "twist without a twist.");
    bind_specification_properties(cls);
}

void bind_group(nb::module_& m) {
    nb::class_<GroupSpecification> cls(m, "Group", nb::is_weak_referenceable(),
                                       "A group: its name, and what it holds itself. Immutable.");
    cls.def_ro("name", &GroupSpecification::name, "Its name.")
        .def_prop_ro("frames", [](const GroupSpecification& g) { return tuple_of(g.frames); },
                     "Its frames, as they were given.")
        .def_prop_ro("groups", [](const GroupSpecification& g) { return tuple_of(g.groups); },
                     "The groups in it, as they were given.")
        .def_prop_ro("parents", [](const GroupSpecification& g) { return tuple_of(g.parents); },
                     "The frames that it is below.")
        .def_prop_ro("attributes",
                     [](const GroupSpecification& g) { return attribute_map(g.attributes); },
                     "Its attributes, an immutable map; see :meth:`SceneGraph.attributes`.")
        .def_prop_ro("attribute_stamps", [](const GroupSpecification& g) {
        return stamps_of(g.attributes);
    }, "When its attributes were set: seconds by key, of those with a stamp.");
    const auto key = [](const GroupSpecification& g) {
        return nb::make_tuple(tuple_of(g.frames), tuple_of(g.groups));
    };
    bind_value(cls, key, [](const GroupSpecification& g) {
        return "Group(frames=" + nb::cast<std::string>(nb::repr(tuple_of(g.frames))) +
               ", groups=" + nb::cast<std::string>(nb::repr(tuple_of(g.groups))) + ")";
    });
}

}  // namespace

void bind_scene_records(nb::module_& m) {
    bind_inertia(m);
    bind_frame_specification(m);
    bind_group(m);
}

}  // namespace tmkit::bindings
