#include "tmkit/scene_records.hpp"

#include <algorithm>

#include "fields.hpp"
#include "state.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit::bindings {

// Text before the value of a key in a JSON object.
static std::string quote_key(bool is_first, const std::string& key) {
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
std::string_view remove_stamp(std::string_view text) {
    const bool ends_in_digit = !text.empty() && text.back() >= '0' && text.back() <= '9';
    return ends_in_digit ? text.substr(0, text.rfind('@')) : text;
}

nb::object stamps_of(const Attributes& attributes) {
    std::string text;
    for (const auto& [key, value] : attributes)
        if (const std::size_t end = remove_stamp(value).size(); end < value.size())
            text += quote_key(text.empty(), key) + value.substr(end + 1);
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
        text.append(quote_key(text.empty(), key)).append(remove_stamp(value));
    return registered_function(Registered::attribute_map)("{" + text + "}");
}

TwistEdge read_twist_edge(const std::string& reference, nb::handle vector) {
    return {reference, read_array<6>(vector, "vector", twist_units), nullptr};
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

Inertia unchecked_inertia(const NumberArgument& mass, const ArrayArgument& center,
                          const OptionalArray& matrix) {
    Inertia inertia{read_number(mass, "mass", "kg"), read_vector3(center, "center", "m"), {}};
    if (matrix) {
        const std::vector<double> v = read_shaped(*matrix, "matrix", 3, 3, "kg*m^2");
        std::copy(v.begin(), v.end(), inertia.matrix.begin());
    }
    return inertia;
}

Inertia make_inertia(const NumberArgument& mass, const ArrayArgument& center,
                     const OptionalArray& matrix) {
    const Inertia inertia = unchecked_inertia(mass, center, matrix);
    inertia.check();
    return inertia;
}

Inertia read_inertia(double mass, const ArrayArgument& center, const OptionalArray& matrix) {
    const Inertia inertia = unchecked_inertia({mass, {}}, center, matrix);
    inertia.check_stored();
    return inertia;
}

void bind_inertia(nb::module_& m) {
    nb::class_<Inertia> cls(
        m, "Inertia", nb::is_weak_referenceable(),
        R"(Mass properties of a body, in the axes of one of its frames. Immutable.

Args:
    mass: mass [kg].
    center: (3,) centre of mass [m].
    matrix: (3, 3) inertia about the centre of mass [kg m^2]; zeros if omitted.

Raises:
    SceneError: if the mass is not positive, the matrix is not symmetric positive semi-definite, or
        one principal moment exceeds the sum of the others by more than 1 %.)");
    cls.def("__init__", made_by(&make_inertia), "mass"_a,
            "center"_a = nb::make_tuple(0.0, 0.0, 0.0), nb::kw_only(), "matrix"_a = nb::none())
        .def_ro("mass", &Inertia::mass, "Kilograms.")
        .def_prop_ro("center", [](const Inertia& i) { return make_array(i.center); },
                     "(3,) centre of mass [m].")
        .def_prop_ro("matrix", [](const Inertia& i) { return make_square(i.matrix, 3); },
                     "(3, 3) inertia about the centre of mass [kg m^2].");
    const auto key = [](const Inertia& a) {
        return nb::make_tuple(a.mass, a.center[0], a.center[1], a.center[2]);
    };
    bind_value(cls, key,
               [](const Inertia& i) { return format_text("Inertia({}, {})", i.mass, i.center); });
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
                     "Joint between the frame and its parent.")
        .def_prop_ro("body",
                     [](const FrameSpecification& f) { return f.body.empty() ? f.name : f.body; },
                     "Name of its body.")
        .def_prop_ro("classes", [](const FrameSpecification& f) { return tuple_of(f.classes); },
                     "Classes of the frame.")
        .def_prop_ro("shapes", [](const FrameSpecification& f) { return tuple_of(f.shapes); },
                     "Shapes of the frame.")
        .def_prop_ro("inertia", [](const FrameSpecification& f) { return f.inertia; },
                     "Mass properties of the body, in the axes of this frame, or None.")
        .def_prop_ro("attributes",
                     [](const FrameSpecification& f) { return attribute_map(f.attributes); },
                     "Attributes, an immutable map; see :meth:`SceneGraph.attributes`.")
        .def_prop_ro("attribute_stamps",
                     [](const FrameSpecification& f) { return stamps_of(f.attributes); },
                     "Stamps of its attributes [s] by key, for those with a stamp.")
        .def_prop_ro("twist", [](const FrameSpecification& f) { return twist_tuple(f.twist); },
                     "Name of the reference body and (6,) the twist, or None.")
        .def_prop_ro("twist_noise",
                     [](const FrameSpecification& f) {
        return f.twist ? noise_or_none(f.twist->noise) : std::nullopt;
    }, "Error of the twist; None if it is exact or there is no twist.")
        .def_prop_ro("stamps", [](const FrameSpecification& f) { return stamps_copy(f.stamps); },
                     "Stamped poses of its edge, or None.")
        .def_prop_ro("noise", [](const FrameSpecification& f) { return noise_or_none(f.noise); },
                     "Error of its pose; None if it is exact.")
        .def("__repr__", [](const FrameSpecification& f) {
        const std::string parent = f.parent.empty() ? "None" : format_text("'{}'", f.parent);
        return format_text("FrameSpecification('{}', parent={})", f.name, parent);
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
                                       R"(Full specification of one frame of a scene. Immutable.

Args:
    name: unique among frames.
    parent: name of the parent, None for a root.
    pose: parent_from_frame at joint value 0; the identity if omitted.
    joint: joint between the frame and its parent; fixed if omitted.
    body: its body; a body with the frame's name if omitted.
    classes: classes of the frame, e.g. ``movable``.
    shapes: shapes of the frame; a ``Shape`` alone is placed at its origin.

``replace`` sets the other fields, for example ``replace(inertia=Inertia(1.0))``: ``inertia``,
``attributes`` (JSON values by key, which may be ``graph.Stamped``), ``twist`` (name of the
reference body, and (6,) the twist), ``twist_noise``, ``stamps`` and ``noise``. Each has the type of
the property of the same name.

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
    nb::class_<GroupSpecification> cls(
        m, "Group", nb::is_weak_referenceable(),
        "Specification of a group: its name and its direct members. Immutable.");
    cls.def_ro("name", &GroupSpecification::name, "Name of the group.")
        .def_prop_ro("frames", [](const GroupSpecification& g) { return tuple_of(g.frames); },
                     "Its frames, in the order given.")
        .def_prop_ro("groups", [](const GroupSpecification& g) { return tuple_of(g.groups); },
                     "Its groups, in the order given.")
        .def_prop_ro("parents", [](const GroupSpecification& g) { return tuple_of(g.parents); },
                     "Frames above it.")
        .def_prop_ro("attributes",
                     [](const GroupSpecification& g) { return attribute_map(g.attributes); },
                     "Attributes, an immutable map; see :meth:`SceneGraph.attributes`.")
        .def_prop_ro("attribute_stamps", [](const GroupSpecification& g) {
        return stamps_of(g.attributes);
    }, "Stamps of its attributes [s] by key, for those with a stamp.");
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
