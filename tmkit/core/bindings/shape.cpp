#include "tmkit/shape.hpp"

#include <nanobind/stl/array.h>

#include <cmath>
#include <limits>

#include "bindings.hpp"

namespace tmkit::bindings {
namespace {

std::string digest_text(const Shape& shape) {
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(shape.digest()[0]),
                  static_cast<unsigned long long>(shape.digest()[1]));
    return text;
}

std::string shape_text(const Shape& shape) {
    if (shape.kind() == ShapeKind::mesh)
        return "Mesh(" + std::to_string(shape.vertices().size() / 3) + " vertices, " +
               std::to_string(shape.faces().size() / 3) + " faces" +
               (shape.source().empty() ? "" : ", source='" + shape.source() + "'") + ")";
    std::string text = name_of(shape.kind());
    text[0] = static_cast<char>(std::toupper(text[0]));
    const auto& d = shape.dimensions();
    if (shape.kind() == ShapeKind::box)
        return text + "([" + number_text(d[0]) + ", " + number_text(d[1]) + ", " + number_text(d[2]) + "])";
    return text + "(radius=" + number_text(d[0]) + (d.size() > 1 ? ", length=" + number_text(d[1]) : "") + ")";
}

Ref<const Shape> make_mesh(const ArrayArgument& vertices, const ArrayArgument& faces, const std::string& source) {
    std::vector<double> v = read_matrix(vertices, "vertices", 3, ErrorKind::shape);
    const std::vector<double> f = read_matrix(faces, "faces", 3, ErrorKind::shape);
    for (double index : f)
        if (index != std::trunc(index) || std::abs(index) > std::numeric_limits<std::int32_t>::max())
            throw Error(ErrorKind::shape, "faces must hold integers of 32 bits, not " + number_text(index));
    return Shape::mesh(std::move(v), std::vector<std::int32_t>(f.begin(), f.end()), source);
}

Ref<const Shape> shape_from_state(const std::string& kind, std::vector<double> dimensions, const nb::object& vertices,
                                  const nb::object& faces, const std::string& source) {
    if (kind == "mesh") return make_mesh({vertices}, {faces}, source);
    for (const ShapeKind candidate : {ShapeKind::box, ShapeKind::sphere, ShapeKind::cylinder, ShapeKind::cone, ShapeKind::capsule})
        if (kind == name_of(candidate)) return Shape::primitive(candidate, std::move(dimensions));
    throw Error(ErrorKind::shape, "unknown shape kind '" + kind + "'");
}

AttachedShape make_attached(const ShapeHandle& shape, const Pose& pose, const std::optional<ArrayArgument>& color,
                            bool visual, bool collision, const std::optional<double>& friction) {
    if (friction && !(*friction >= 0.0 && std::isfinite(*friction)))
        throw Error(ErrorKind::shape, "friction must be a finite number at least 0, not " + number_text(*friction));
    AttachedShape attached{shape.shape, pose, {0.7, 0.7, 0.7, 1.0}, color.has_value(), visual, collision, friction};
    if (color) {
        const std::vector<double> c = read_vector(*color, "color", 4, ErrorKind::shape);
        for (double v : c)
            if (v < 0.0 || v > 1.0) throw Error(ErrorKind::shape, "color must be red, green, blue, alpha between 0 and 1");
        std::copy(c.begin(), c.end(), attached.color.begin());
    }
    return attached;
}

}  // namespace

void bind_shape(nb::module_& m) {
    nb::class_<ShapeHandle>(m, "Shape", R"(An immutable shape, shared by reference between scenes, versions and collision worlds.

Made by ``Box``, ``Sphere``, ``Cylinder``, ``Cone``, ``Capsule`` and ``Mesh``. Equal and hashed by content; the source of
a mesh is a remark and no part of it. Metres throughout, in the shape's own axes.)")
        .def_prop_ro("kind", [](const ShapeHandle& s) { return std::string(name_of(s.shape->kind())); },
                     "``box``, ``sphere``, ``cylinder``, ``cone``, ``capsule`` or ``mesh``.")
        .def_prop_ro("dimensions", [](const ShapeHandle& s) { return nb::typed<nb::tuple, double, nb::ellipsis>(nb::tuple(nb::cast(s.shape->dimensions()))); },
                     "Metres: box (x, y, z); sphere (radius,); cylinder, cone, capsule (radius, length); mesh ().")
        .def_prop_ro("vertices",
                     [](const ShapeHandle& s) { return make_array(s.shape->vertices(), {s.shape->vertices().size() / 3, 3}); },
                     "(n, 3) vertices of a mesh in metres, a read-only copy; (0, 3) for other kinds.")
        .def_prop_ro("faces",
                     [](const ShapeHandle& s) {
                         return make_owned(s.shape->faces(), {s.shape->faces().size() / 3, 3});
                     },
                     "(m, 3) indices of the corners of a mesh's triangles, a read-only copy; (0, 3) for other kinds.")
        .def_prop_ro("source", [](const ShapeHandle& s) { return s.shape->source(); }, "Where a mesh came from; may be empty.")
        .def_prop_ro("digest", [](const ShapeHandle& s) { return digest_text(*s.shape); },
                     "32 hexadecimal digits that depend on the content alone, the same in every process.")
        .def_prop_ro("bounds",
                     [](const ShapeHandle& s) { return std::make_pair(make_array(s.shape->lower()), make_array(s.shape->upper())); },
                     "Lower and upper corner (3,) of the axis-aligned box around the shape, metres.")
        .def_prop_ro("volume", [](const ShapeHandle& s) { return s.shape->volume(); },
                     "Cubic metres; for a mesh the signed volume of its faces, right when they are closed and face outwards.")
        .def("__eq__", [](const ShapeHandle& a, nb::handle b) {
            return nb::isinstance<ShapeHandle>(b) && a.shape->same_content(*nb::cast<const ShapeHandle&>(b).shape);
        })
        .def("__hash__", [](const ShapeHandle& s) { return static_cast<Py_hash_t>(s.shape->digest()[0] >> 2); })
        .def("__repr__", [](const ShapeHandle& s) { return shape_text(*s.shape); })
        .def("__copy__", [](const ShapeHandle& s) { return s; })
        .def("__deepcopy__", [](const ShapeHandle& s, nb::handle) { return s; }, nb::arg("memo"))
        .def("__getstate__",
             [](nb::handle self) {
                 return nb::make_tuple(self.attr("kind"), nb::list(self.attr("dimensions")), self.attr("vertices"),
                                       self.attr("faces"), self.attr("source"));
             })
        .def("__setstate__",
             [](ShapeHandle& self, const nb::tuple& state) {
                 new (&self) ShapeHandle{shape_from_state(nb::cast<std::string>(state[0]), nb::cast<std::vector<double>>(state[1]),
                                                          nb::borrow(state[2]), nb::borrow(state[3]), nb::cast<std::string>(state[4]))};
             });
    const auto radius_and_length = [&m](const char* name, ShapeKind kind, const char* text) {
        m.def(name, [kind](double radius, double length) { return ShapeHandle{Shape::primitive(kind, {radius, length})}; },
              nb::arg("radius"), nb::arg("length"), text);
    };
    m.def("Box", [](const ArrayArgument& size) { return ShapeHandle{Shape::primitive(ShapeKind::box, read_vector(size, "size", 3, ErrorKind::shape))}; },
          nb::arg("size"), "Make a box of full side lengths (3,) in metres, centred at its origin.\n\nRaises:\n    ShapeError: a length that is not positive.");
    m.def("Sphere", [](double radius) { return ShapeHandle{Shape::primitive(ShapeKind::sphere, {radius})}; }, nb::arg("radius"),
          "Make a sphere of a radius in metres.\n\nRaises:\n    ShapeError: a radius that is not positive.");
    radius_and_length("Cylinder", ShapeKind::cylinder, "Make a cylinder along z, centred at its origin; metres.\n\nRaises:\n    ShapeError: a size that is not positive.");
    radius_and_length("Cone", ShapeKind::cone, "Make a cone along z with its tip at +length/2; metres.\n\nRaises:\n    ShapeError: a size that is not positive.");
    radius_and_length("Capsule", ShapeKind::capsule, "Make a capsule along z, centred; the length is without the caps; metres.\n\nRaises:\n    ShapeError: a size that is not positive.");
    m.def("Mesh", [](const ArrayArgument& vertices, const ArrayArgument& faces, const std::string& source) { return ShapeHandle{make_mesh(vertices, faces, source)}; },
          nb::arg("vertices"), nb::arg("faces"), nb::kw_only(), nb::arg("source") = "",
          R"(Make a triangle mesh.

Args:
    vertices: (n, 3) metres.
    faces: (m, 3) indices of vertices, counter-clockwise seen from outside.
    source: where it came from, e.g. ``package://NAME/file.obj``; a remark.

Raises:
    ShapeError: no rows, numbers that are not finite, or an index out of range.)");

    nb::class_<AttachedShape>(m, "AttachedShape", R"(A shape on a frame: where it sits and what it is for. Immutable.

Args:
    shape: the shape.
    pose: frame_from_shape.
    color: red, green, blue, alpha from 0 to 1, or None to let the viewer choose.
    visual: whether it is drawn.
    collision: whether it collides.
    friction: coefficient of friction of its surface, or None to let the simulator choose.

Raises:
    ShapeError: a colour outside 0 to 1, or a negative friction.)")
        .def("__init__",
             [](AttachedShape* self, const ShapeHandle& shape, const Pose& pose, const std::optional<ArrayArgument>& color,
                bool visual, bool collision, const std::optional<double>& friction) {
                 new (self) AttachedShape(make_attached(shape, pose, color, visual, collision, friction));
             },
             nb::arg("shape"), nb::arg("pose") = Pose{}, nb::kw_only(), nb::arg("color") = nb::none(),
             nb::arg("visual") = true, nb::arg("collision") = true, nb::arg("friction") = nb::none())
        .def_prop_ro("shape", [](const AttachedShape& a) { return ShapeHandle{a.shape}; }, "The shape.")
        .def_prop_ro("pose", [](const AttachedShape& a) { return a.pose; }, "frame_from_shape.")
        .def_prop_ro("color",
                     [](const AttachedShape& a) {
                         return a.has_color ? std::optional(std::make_tuple(a.color[0], a.color[1], a.color[2], a.color[3])) : std::nullopt;
                     },
                     "Red, green, blue, alpha from 0 to 1, or None.")
        .def_ro("visual", &AttachedShape::visual, "Whether it is drawn.")
        .def_ro("collision", &AttachedShape::collision, "Whether it collides.")
        .def_ro("friction", &AttachedShape::friction, "Coefficient of friction of its surface, or None.")
        .def("__eq__", [](const AttachedShape& a, nb::handle b) { return nb::isinstance<AttachedShape>(b) && a == nb::cast<const AttachedShape&>(b); })
        .def("__hash__", [](const AttachedShape& a) { return static_cast<Py_hash_t>(a.shape->digest()[0] >> 3); })
        .def("__repr__", [](const AttachedShape& a) { return "AttachedShape(" + shape_text(*a.shape) + ", " + pose_text(a.pose) + ")"; })
        .def("__getstate__", [](nb::handle self) { return nb::make_tuple(self.attr("shape"), self.attr("pose"), self.attr("color"), self.attr("visual"), self.attr("collision"), self.attr("friction")); })
        .def("__setstate__", [](AttachedShape& self, const nb::tuple& s) {
            new (&self) AttachedShape(make_attached(nb::cast<ShapeHandle>(s[0]), nb::cast<Pose>(s[1]), nb::cast<std::optional<ArrayArgument>>(s[2]), nb::cast<bool>(s[3]), nb::cast<bool>(s[4]), nb::cast<std::optional<double>>(s[5])));
        });
}

}  // namespace tmkit::bindings
