#include "tmkit/shape.hpp"

#include "fields.hpp"
#include "state.hpp"

#define NO_SIZE "\n\nRaises:\n    ShapeError: if a size is not positive."

namespace tmkit::bindings {

std::string digest_text(const ContentSum& digest) {
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(digest[0]),
                  static_cast<unsigned long long>(digest[1]));
    return text;
}

namespace {

std::string source_text(const Shape& shape) {
    return shape.source().empty() ? "" : ", source='" + shape.source() + "'";
}

std::string shape_text(const Shape& shape) {
    const auto& d = shape.dimensions();
    switch (shape.kind()) {
        case ShapeKind::mesh:
            return format_text("Mesh({} vertices, {} faces{})", shape.vertices().size() / 3,
                               shape.faces().size() / 3, source_text(shape));
        case ShapeKind::plane: return "Plane()";
        case ShapeKind::point_cloud:
            return format_text("PointCloud({} points, radius={}{})", shape.points().size() / 3,
                               d[0], source_text(shape));
        case ShapeKind::height_field:
            return format_text("HeightField({} x {} heights, size=({}, {}), floor={}{})",
                               shape.rows(), shape.columns(), d[0], d[1], d[2], source_text(shape));
        case ShapeKind::box: return format_text("Box({})", d);
        default: break;
    }
    const std::string length = d.size() > 1 ? format_text(", length={}", d[1]) : "";
    return format_text("{}(radius={}{})", capitalise(name_of(shape.kind())), d[0], length);
}

ShapeHandle make_mesh(const ArrayArgument& vertices, const ArrayArgument& faces,
                      const std::string& source, const std::string& checksums) {
    std::vector<double> v = read_matrix(vertices, "vertices", 3, ErrorKind::shape, "m");
    return {Shape::mesh(std::move(v), read_indices(faces, "faces", 3, ErrorKind::shape), source,
                        checksums)};
}

double read_length(const NumberArgument& length, const char* what) {
    return read_number(length, what, "m", ErrorKind::shape);
}

ShapeHandle make_cloud(const ArrayArgument& points, const NumberArgument& radius,
                       const std::string& source) {
    return {Shape::point_cloud(read_matrix(points, "points", 3, ErrorKind::shape, "m"),
                               read_length(radius, "radius"), source)};
}

ShapeHandle make_field(const ArrayArgument& heights, const ArrayArgument& size,
                       const std::optional<NumberArgument>& floor, const std::string& source) {
    std::size_t columns = 0;
    std::vector<double> h = read_grid(heights, "heights", columns, ErrorKind::shape, "m");
    const std::vector<double> s = read_vector(size, "size", 2, ErrorKind::shape, "m");
    const std::optional<double> height =
        floor ? std::optional(read_length(*floor, "floor")) : std::nullopt;
    return {Shape::height_field(std::move(h), columns, {s[0], s[1]}, height, source)};
}

// State for pickle: (kind, dimensions, arrays, source, checksums). Version 0.1 has no checksums.
ShapeHandle shape_from_state(nb::handle state) {
    const bool is_old = nb::isinstance<nb::tuple>(state) && nb::len(state) == 4;
    const StateTuple s(state, "a shape", is_old ? 4 : 5);
    const auto kind = s.get<std::string>(0), source = s.get<std::string>(3);
    auto dimensions = s.get<std::vector<double>>(1);
    const std::vector<nb::object> arrays = s.items(2);
    const auto require = [&](std::size_t dimension_count, std::size_t array_count) {
        if (dimensions.size() != dimension_count || arrays.size() != array_count)
            throw damaged_state("a shape of kind '{}' cannot have {} dimensions and {} arrays",
                                kind, dimensions.size(), arrays.size());
    };
    const std::string checksums = is_old ? "" : s.get<std::string>(4);
    if (kind == "mesh")
        return require(0, 2), make_mesh({arrays[0]}, {arrays[1]}, source, checksums);
    if (kind == "plane") return {Shape::plane()};
    if (kind == "point_cloud")
        return require(1, 1), make_cloud({arrays[0]}, {dimensions[0], {}}, source);
    if (kind == "height_field")
        return require(3, 1),
               make_field({arrays[0]}, {nb::make_tuple(dimensions[0], dimensions[1])},
                          NumberArgument{dimensions[2], {}}, source);
    for (const ShapeKind candidate : {ShapeKind::box, ShapeKind::sphere, ShapeKind::cylinder,
                                      ShapeKind::cone, ShapeKind::capsule})
        if (kind == name_of(candidate)) return {Shape::primitive(candidate, std::move(dimensions))};
    throw Error(ErrorKind::shape, "unknown shape kind '{}'", kind);
}

nb::tuple shape_state(nb::handle self) {
    const Shape& shape = *nb::cast<const ShapeHandle&>(self).shape;
    nb::tuple arrays = nb::make_tuple();
    if (shape.kind() == ShapeKind::mesh)
        arrays = nb::make_tuple(self.attr("vertices"), self.attr("faces"));
    if (shape.kind() == ShapeKind::point_cloud) arrays = nb::make_tuple(self.attr("points"));
    if (shape.kind() == ShapeKind::height_field) arrays = nb::make_tuple(self.attr("heights"));
    return nb::make_tuple(name_of(shape.kind()), shape.dimensions(), arrays, shape.source(),
                          shape.checksums());
}

// A read-only array over numbers of a shape, which lives as long as the array.
template <class Number>
OwnedArray<Number> view_of(const ShapeHandle& handle, const std::vector<Number>& numbers,
                           std::size_t columns = 3) {
    const std::size_t shape[] = {columns ? numbers.size() / columns : 0, columns};
    auto* owned = new Ref<const Shape>(handle.shape);
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Ref<const Shape>*>(p); });
    return {nb::cast(nb::ndarray<nb::numpy, const Number>(numbers.data(), 2, shape, owner))};
}

std::string attached_text(const AttachedShape& a) {
    const std::string level = a.level ? format_text(", level='{}'", name_of(*a.level)) : "";
    return format_text("AttachedShape({}, {}{})", shape_text(*a.shape), pose_text(a.pose), level);
}

std::optional<std::string> level_text(const std::optional<CollisionLevel>& level) {
    return level ? std::optional<std::string>(name_of(*level)) : std::nullopt;
}

void bind_large_shapes(nb::module_& m) {
    m.def("Plane", [] { return ShapeHandle{Shape::plane()}; },
          "Create a half space: z <= 0 of its frame. Planes never collide with each other.");
    m.def("PointCloud", &make_cloud, "points"_a, nb::kw_only(), "radius"_a, "source"_a = "",
          R"(Create an obstacle from points, e.g. of a depth camera: a ball around each.

Args:
    points: (n, 3) points [m].
    radius: radius of the balls [m]; about the distance between neighbouring points leaves no gaps.
    source: a label of the origin; empty if omitted.

Raises:
    ShapeError: if there are no points, a number is not finite, or the radius is not positive.)");
    m.def("HeightField", &make_field, "heights"_a, nb::kw_only(), "size"_a, "floor"_a = nb::none(),
          "source"_a = "",
          R"(Create the ground below a surface of heights on a grid, down to a flat underside.

Column ``i`` of row ``j`` is at ``x = (i / (columns - 1) - 0.5) * size[0]`` and
``y = (j / (rows - 1) - 0.5) * size[1]``: the first row is the one of least y. A cell is two
triangles that share the edge from its corner of least x and y to that of largest x and y.

Args:
    heights: (rows, columns) z of the surface [m], at least 2 of each.
    size: (2,) full lengths along x and y [m].
    floor: z of the underside [m], below all heights; if omitted, a tenth of the longer side below
        the lowest.
    source: a label of the origin; empty if omitted.

Raises:
    ShapeError: if there are too few heights, a number is not finite, a size is not positive, or the
        floor is too high.)");
}

void check_attached(AttachedShape& attached) {
    if (attached.stamp && !std::isfinite(*attached.stamp))
        throw Error(ErrorKind::shape, "the stamp of a shape is finite seconds, not {}",
                    *attached.stamp);
    if (attached.friction && !(*attached.friction >= 0.0 && std::isfinite(*attached.friction)))
        throw Error(ErrorKind::shape, "friction must be a finite number at least 0, not {}",
                    *attached.friction);
}

void set_color(AttachedShape& attached, const ArrayArgument& color) {
    const std::vector<double> c = read_vector(color, "color", 4, ErrorKind::shape);
    for (double v : c)
        if (v < 0.0 || v > 1.0)
            throw Error(ErrorKind::shape, "color must be red, green, blue, alpha between 0 and 1");
    std::copy(c.begin(), c.end(), attached.color.begin());
    attached.has_color = true;
}

constexpr Field<AttachedShape> attached_fields[] = {
    {"shape", [](AttachedShape& a,
                 nb::handle value) { a.shape = nb::cast<const ShapeHandle&>(value).shape; }},
    {"pose", &set_member<&AttachedShape::pose>},
    {"color",
     [](AttachedShape& a, nb::handle value) {
    a.color = AttachedShape{}.color;
    a.has_color = false;
    if (!value.is_none()) set_color(a, nb::cast<ArrayArgument>(value));
}},
    {"visual", &set_member<&AttachedShape::visual>},
    {"collision", &set_member<&AttachedShape::collision>},
    {"friction", &set_member<&AttachedShape::friction>},
    {"level",
     [](AttachedShape& a, nb::handle value) {
    a.level.reset();
    if (!value.is_none()) a.level = read_level(nb::cast<std::string>(value));
}},
    {"stamp", &set_member<&AttachedShape::stamp>},
};

void bind_attached_shape(nb::module_& m) {
    nb::class_<AttachedShape> attached(m, "AttachedShape", nb::is_weak_referenceable(),
                                       R"(A shape on a frame, with its pose and purpose. Immutable.

Args:
    shape: the shape.
    pose: frame_from_shape.
    color: red, green, blue, alpha from 0 to 1, or None for the viewer's choice.
    visual: whether viewers draw it.
    collision: whether it collides.
    friction: coefficient of friction of its surface, or None for the simulator's default.
    level: geometry used in collisions, ``"box"``, ``"hull"`` or ``"exact"``, or None for the level
        of the collision world; see ``CollisionWorld``.

``replace(stamp=...)`` sets a stamp, the time of its attachment or observation on any clock [s]. It
is part of equality.

Raises:
    ShapeError: if a colour is outside 0 to 1 or the friction negative.
    UnknownNameError: if the level is unknown.)");
    attached.def(
        "__init__",
        [](AttachedShape* self, const ShapeHandle& shape, const Pose& pose,
           const OptionalArray& color, bool visual, bool collision,
           const std::optional<double>& friction, const std::optional<std::string>& level) {
        new (self)
            AttachedShape(make_attached(shape, pose, color, visual, collision, friction, level));
    },
        "shape"_a, "pose"_a = Pose{}, nb::kw_only(), "color"_a = nb::none(), "visual"_a = true,
        "collision"_a = true, "friction"_a = nb::none(), "level"_a = nb::none());
    bind_replace(attached, attached_fields, &check_attached, "AttachedShape",
                 "ShapeError: if a colour is outside 0 to 1, the friction negative, or the stamp "
                 "not finite.");
    attached
        .def_prop_ro("shape", [](const AttachedShape& a) { return ShapeHandle{a.shape}; },
                     "The shape.")
        .def_prop_ro("pose", [](const AttachedShape& a) { return a.pose; }, "frame_from_shape.")
        .def_prop_ro("color",
                     [](const AttachedShape& a) {
        return a.has_color
                   ? std::optional(std::make_tuple(a.color[0], a.color[1], a.color[2], a.color[3]))
                   : std::nullopt;
    }, "Red, green, blue, alpha from 0 to 1, or None.")
        .def_ro("visual", &AttachedShape::visual, "Whether viewers draw it.")
        .def_ro("collision", &AttachedShape::collision, "Whether it collides.")
        .def_ro("friction", &AttachedShape::friction,
                "Coefficient of friction of its surface, or None.")
        .def_ro("stamp", &AttachedShape::stamp,
                "Time of its attachment or observation [s], or None.")
        .def_prop_ro("level", [](const AttachedShape& a) { return level_text(a.level); },
                     "Geometry used in collisions: ``box``, ``hull``, ``exact``, or None.");
    bind_value(attached, [](const AttachedShape& a) { return a.shape->digest()[0] >> 3; },
               &attached_text);

    bind_state(attached, [](nb::handle self) {
        return nb::make_tuple(self.attr("shape"), self.attr("pose"), self.attr("color"),
                              self.attr("visual"), self.attr("collision"), self.attr("friction"),
                              self.attr("level"), self.attr("stamp"));
    }, "an attached shape", &make_attached);
}

void bind_shape_content(nb::class_<ShapeHandle>& cls) {
    cls.def_prop_ro("kind",
                    [](const ShapeHandle& s) { return std::string(name_of(s.shape->kind())); },
                    "``box``, ``sphere``, ``cylinder``, ``cone``, ``capsule``, ``mesh``, "
                    "``plane``, ``point_cloud``"
                    R"(
or ``height_field``.)")
        .def_prop_ro("dimensions",
                     [](const ShapeHandle& s) { return tuple_of(s.shape->dimensions()); },
                     "Dimensions [m]: box (x, y, z); sphere, point cloud (radius,); cylinder, "
                     "cone, capsule (radius, length);"
                     R"(
height field (x, y, floor); mesh and plane ().)")
        .def_prop_ro("vertices",
                     [](const ShapeHandle& s) { return view_of(s, s.shape->vertices()); },
                     "(n, 3) vertices of a mesh [m]; (0, 3) for other kinds.")
        .def_prop_ro("faces", [](const ShapeHandle& s) { return view_of(s, s.shape->faces()); },
                     "(m, 3) indices of the corners of a mesh's triangles; (0, 3) for other kinds.")
        .def_prop_ro("outward_faces",
                     [](const ShapeHandle& s) { return view_of(s, s.shape->outward_faces()); },
                     "(m, 3) faces of a mesh, counter-clockwise seen from outside, with inverted "
                     "ones corrected."
                     R"(

Triangles that share an edge face the same side of it, and those of closed parts face outwards. A
part inside another may be a cavity, and faces the side of most of its triangles, as does an open
part. O(m log m) on first use.)")
        .def_prop_ro("points", [](const ShapeHandle& s) { return view_of(s, s.shape->points()); },
                     "(n, 3) points of a point cloud [m]; (0, 3) for other kinds.")
        .def_prop_ro("heights",
                     [](const ShapeHandle& s) {
        return view_of(s, s.shape->heights(), s.shape->columns());
    }, "(rows, columns) heights of a height field [m]; (0, 0) for other kinds.")
        .def_prop_ro("source", [](const ShapeHandle& s) { return s.shape->source(); },
                     "Origin of a mesh, a cloud or a field; may be empty.")
        .def_prop_ro("checksums", [](const ShapeHandle& s) {
        return s.shape->checksums();
    }, "SHA-256 of the files of a mesh, as printed by ``sha256sum``; empty for arrays.");
}

void bind_primitives(nb::module_& m) {
    const auto radius_and_length = [&m](const char* name, ShapeKind kind, const char* text) {
        m.def(name, [kind](const NumberArgument& radius, const NumberArgument& length) {
            const double r = read_length(radius, "radius"), l = read_length(length, "length");
            return ShapeHandle{Shape::primitive(kind, {r, l})};
        }, "radius"_a, "length"_a, text);
    };
    m.def("Box", [](const ArrayArgument& size) {
        return ShapeHandle{
            Shape::primitive(ShapeKind::box, read_vector(size, "size", 3, ErrorKind::shape, "m"))};
    }, "size"_a, R"(Create a box of full side lengths (3,) [m], centred at its origin.

Raises:
    ShapeError: if a length is not positive.)");
    m.def("Sphere", [](const NumberArgument& radius) {
        return ShapeHandle{Shape::primitive(ShapeKind::sphere, {read_length(radius, "radius")})};
    }, "radius"_a, R"(Create a sphere of a radius [m].

Raises:
    ShapeError: if the radius is not positive.)");
    radius_and_length("Cylinder", ShapeKind::cylinder,
                      R"(Create a cylinder along z, centred at its origin.

Args:
    radius: radius [m].
    length: length along z [m].)" NO_SIZE);
    radius_and_length("Cone", ShapeKind::cone,
                      R"(Create a cone along z with its tip at +length/2.

Args:
    radius: radius of the base [m].
    length: length from base to tip [m].)" NO_SIZE);
    radius_and_length("Capsule", ShapeKind::capsule,
                      R"(Create a capsule along z, centred at its origin.

Args:
    radius: radius of the cylinder and its caps [m].
    length: length of the cylinder without the caps [m].)" NO_SIZE);
    m.def("Mesh", &make_mesh, "vertices"_a, "faces"_a, nb::kw_only(), "source"_a = "",
          "checksums"_a = "",
          R"(Create a triangle mesh.

Args:
    vertices: (n, 3) vertices [m].
    faces: (m, 3) indices of vertices, counter-clockwise seen from outside.
    source: a label of the origin, e.g. ``package://NAME/file.obj``; empty if omitted.
    checksums: SHA-256 of its files, as printed by ``sha256sum``; only readers of files set it. JSON
        then refers to the file instead of writing arrays. Empty if omitted.

Raises:
    ShapeError: if an array is empty, a number is not finite, or an index is out of range.)");
}

}  // namespace

AttachedShape ShapeArgument::attached() const {
    if (nb::isinstance<AttachedShape>(value)) return nb::cast<const AttachedShape&>(value);
    return make_attached(nb::cast<const ShapeHandle&>(value), {}, {}, true, true, {}, {});
}

std::vector<AttachedShape> attached_shapes(const std::vector<ShapeArgument>& shapes) {
    std::vector<AttachedShape> attached;
    attached.reserve(shapes.size());
    for (const ShapeArgument& shape : shapes) attached.push_back(shape.attached());
    return attached;
}

AttachedShape make_attached(const ShapeHandle& shape, const Pose& pose, const OptionalArray& color,
                            bool visual, bool collision, const std::optional<double>& friction,
                            const std::optional<std::string>& level, const OptionalStamp& stamp) {
    AttachedShape attached{shape.shape, pose,     {0.7, 0.7, 0.7, 1.0}, false, visual,
                           collision,   friction, std::nullopt,         stamp};
    check_attached(attached);
    if (level) attached.level = read_level(*level);
    if (color) set_color(attached, *color);
    return attached;
}

CollisionLevel read_level(const std::string& name) {
    for (const CollisionLevel level :
         {CollisionLevel::exact, CollisionLevel::hull, CollisionLevel::box})
        if (name == name_of(level)) return level;
    throw unknown_name("level", name, {"exact", "hull", "box"});
}

void bind_shape(nb::module_& m) {
    nb::class_<ShapeHandle> shape(
        m, "Shape", nb::is_weak_referenceable(),
        R"(An immutable shape, shared by reference between scenes, versions and collision worlds.

Created by ``Box``, ``Sphere``, ``Cylinder``, ``Cone``, ``Capsule``, ``Mesh``, ``Plane``,
``PointCloud`` and ``HeightField``. Equality and hash are by content; the source of a mesh, a cloud
or a field is a label and excluded. Lengths are [m], in the shape's own axes. Arrays are read-only
views of the shape's memory, which they keep alive.)");
    bind_shape_content(shape);
    shape
        .def_prop_ro("digest", [](const ShapeHandle& s) { return digest_text(s.shape->digest()); },
                     "32 hexadecimal digits of the content, the same in every process.")
        .def_prop_ro("bounds",
                     [](const ShapeHandle& s) {
        const auto corner = [](const Vector3& c) {
            return make_owned(std::vector<double>(c.begin(), c.end()));
        };
        return std::make_pair(corner(s.shape->lower()), corner(s.shape->upper()));
    }, "Lower and upper corner (3,) of the axis-aligned bounding box [m]; infinite for a plane.")
        .def_prop_ro("volume",
                     [](const ShapeHandle& s) {
        const double volume = s.shape->volume();
        if (s.shape->kind() != ShapeKind::plane) require_in_range({&volume, 1}, "the volume");
        return volume;
    }, R"(Volume [m^3]; infinite for a plane.

For a mesh, the signed volume of its faces, correct if they are closed and face outwards.

Raises:
    ShapeError: for a point cloud, whose balls may overlap.)")
        .def("__copy__", [](const ShapeHandle& s) {
        return s;
    }).def("__deepcopy__", [](const ShapeHandle& s, nb::handle) { return s; }, "memo"_a);

    bind_value(shape, [](const ShapeHandle& s) { return s.shape->digest()[0] >> 2; },
               [](const ShapeHandle& s) { return shape_text(*s.shape); });
    bind_state(shape, &shape_state, &shape_from_state);
    bind_primitives(m);
    bind_large_shapes(m);
    bind_attached_shape(m);
}

}  // namespace tmkit::bindings
