#include "tmkit/shape.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "mesh_winding.hpp"
#include "tmkit/error.hpp"

namespace tmkit {
namespace {

constexpr std::size_t dimension_counts[] = {3, 1, 2, 2, 2};  // of the kinds before the mesh

// " (source)" for messages.
std::string note(const std::string& source) {
    return source.empty() ? source : " (" + source + ")";
}

void require_finite(std::span<const double> numbers, const char* problem,
                    const std::string& place) {
    if (!std::all_of(numbers.begin(), numbers.end(),
                     [](double number) { return std::isfinite(number); }))
        throw Error(ErrorKind::shape, "{} that is not finite{}", problem, place);
}

// what: "positive finite dimensions"
void require_positive(std::span<const double> numbers, const char* kind, const char* what,
                      const std::string& place) {
    for (const double number : numbers)
        if (!(number > 0.0) || !std::isfinite(number))
            throw Error(ErrorKind::shape, "a {} needs {} in metres, not {}{}", kind, what, number,
                        place);
}

constexpr double unbounded = std::numeric_limits<double>::infinity();

}  // namespace

const char* name_of(ShapeKind kind) {
    static constexpr const char* names[] = {"box",   "sphere",      "cylinder",
                                            "cone",  "capsule",     "mesh",
                                            "plane", "point_cloud", "height_field"};
    return names[static_cast<int>(kind)];
}

const char* name_of(CollisionLevel level) {
    static constexpr const char* names[] = {"exact", "hull", "box"};
    return names[static_cast<int>(level)];
}

Ref<const Shape> Shape::primitive(ShapeKind kind, std::vector<double> dimensions) {
    const std::size_t expected =
        kind < ShapeKind::mesh ? dimension_counts[static_cast<int>(kind)] : 0;
    if (kind >= ShapeKind::mesh || dimensions.size() != expected)
        throw Error(ErrorKind::shape, "a {} takes {} dimensions, not {}", name_of(kind), expected,
                    dimensions.size());
    require_positive(dimensions, name_of(kind), "positive finite dimensions", {});
    return Ref<const Shape>(new Shape({.kind = kind, .dimensions = std::move(dimensions)}));
}

Ref<const Shape> Shape::mesh(std::vector<double> vertices, std::vector<std::int32_t> faces,
                             std::string source, std::string checksums) {
    const std::string place = note(source);
    if (vertices.empty() || faces.empty() || vertices.size() % 3 || faces.size() % 3)
        throw Error(ErrorKind::shape,
                    "a mesh needs vertices (n, 3) and faces (m, 3), both with rows{}", place);
    require_finite(vertices, "a mesh has a vertex", place);
    const auto count = static_cast<std::int64_t>(vertices.size() / 3);
    for (std::int32_t index : faces)
        if (index < 0 || index >= count)
            throw Error(ErrorKind::shape,
                        "a mesh has a face that names vertex {}, but there are {}{}", index, count,
                        place);
    return made({ShapeKind::mesh,
                 {},
                 std::move(vertices),
                 std::move(faces),
                 0,
                 std::move(source),
                 std::move(checksums)});
}

Ref<const Shape> Shape::plane() { return made({.kind = ShapeKind::plane}); }

Ref<const Shape> Shape::point_cloud(std::vector<double> points, double radius, std::string source) {
    const std::string place = note(source);
    if (points.empty() || points.size() % 3)
        throw Error(ErrorKind::shape, "a point cloud needs points (n, 3), at least one{}", place);
    if (points.size() / 3 > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw Error(ErrorKind::shape, "a point cloud holds at most 2147483647 points{}", place);
    require_positive({&radius, 1}, "point cloud", "a positive finite radius", place);
    require_finite(points, "a point cloud has a point", place);
    return made({ShapeKind::point_cloud, {radius}, std::move(points), {}, 0, std::move(source)});
}

Ref<const Shape> Shape::height_field(std::vector<double> heights, std::size_t columns,
                                     std::array<double, 2> size, std::optional<double> floor,
                                     std::string source) {
    const std::string place = note(source);
    const std::size_t rows = columns == 0 ? 0 : heights.size() / columns;
    if (rows < 2 || columns < 2 || rows * columns != heights.size())
        throw Error(
            ErrorKind::shape,
            "a height field needs heights (rows, columns), at least 2 of each, not ({}, {}){}",
            rows, columns, place);
    if (heights.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() / 2))
        throw Error(ErrorKind::shape, "a height field holds at most 1073741823 heights{}", place);
    require_positive(size, "height field", "a positive finite size", place);
    require_finite(heights, "a height field has a height", place);
    const double lowest = *std::min_element(heights.begin(), heights.end());
    const double bottom = floor.value_or(lowest - 0.1 * std::max(size[0], size[1]));
    if (!(bottom < lowest) || !std::isfinite(bottom))
        throw Error(ErrorKind::shape,
                    "a height field needs a floor below its lowest height {}, not {}{}", lowest,
                    bottom, place);
    std::vector<double> dimensions{size[0], size[1], bottom};
    return made({ShapeKind::height_field,
                 std::move(dimensions),
                 std::move(heights),
                 {},
                 columns,
                 std::move(source)});
}

Shape::Shape(Content content)
    : kind_(content.kind), dimensions_(std::move(content.dimensions)),
      numbers_(std::move(content.numbers)), faces_(std::move(content.faces)),
      columns_(content.columns), source_(std::move(content.source)),
      checksums_(std::move(content.checksums)) {
    ContentHash hash;
    const std::uint64_t kind_word = static_cast<std::uint64_t>(kind_);
    hash.add(&kind_word, sizeof kind_word);
    hash.add(dimensions_);
    hash.add(numbers_);
    hash.add(faces_);
    if (kind_ == ShapeKind::height_field) {
        const std::uint64_t columns_word = columns_;
        hash.add(&columns_word, sizeof columns_word);
    }
    digest_ = hash.lanes();
    measure();
}

const std::vector<double>& Shape::numbers_of(ShapeKind kind) const {
    static const std::vector<double> none;
    return kind == kind_ ? numbers_ : none;
}

Vector3 Shape::surface_point(std::size_t row, std::size_t column) const {
    const double across = static_cast<double>(column) / static_cast<double>(columns_ - 1) - 0.5;
    const double along = static_cast<double>(row) / static_cast<double>(rows() - 1) - 0.5;
    return {across * dimensions_[0], along * dimensions_[1], numbers_[row * columns_ + column]};
}

double Shape::volume() const {
    if (kind_ == ShapeKind::point_cloud)
        throw Error(ErrorKind::shape, "a point cloud has no volume: its balls may overlap{}",
                    note(source_));
    if (kind_ != ShapeKind::mesh) return volume_;
    const auto vertex = [this](std::int32_t i) {
        return Vector3{numbers_[3 * i], numbers_[3 * i + 1], numbers_[3 * i + 2]};
    };
    const std::vector<std::int32_t>& faces = outward_faces();
    double volume = 0.0;
    for (std::size_t i = 0; i < faces.size(); i += 3)
        volume += dot(vertex(faces[i]), cross(vertex(faces[i + 1]), vertex(faces[i + 2]))) / 6.0;
    return volume;
}

const std::vector<std::int32_t>& Shape::outward_faces() const {
    std::call_once(is_wound_, [this] {
        const NoFork whole;
        std::vector<std::int32_t> faces = tmkit::outward_faces(numbers_of(ShapeKind::mesh), faces_);
        if (faces != faces_) outward_faces_ = std::move(faces);
    });
    return outward_faces_.empty() ? faces_ : outward_faces_;
}

void Shape::measure() {
    const double pi = std::numbers::pi;
    const auto& d = dimensions_;
    const auto set_centred_bounds = [this](double x, double y, double z) {
        lower_ = {-x, -y, -z};
        upper_ = {x, y, z};
    };
    switch (kind_) {
        case ShapeKind::box:
            set_centred_bounds(d[0] / 2, d[1] / 2, d[2] / 2);
            volume_ = d[0] * d[1] * d[2];
            break;
        case ShapeKind::sphere:
            set_centred_bounds(d[0], d[0], d[0]);
            volume_ = 4.0 / 3.0 * pi * d[0] * d[0] * d[0];
            break;
        case ShapeKind::cylinder:
        case ShapeKind::cone:
            set_centred_bounds(d[0], d[0], d[1] / 2);
            volume_ = pi * d[0] * d[0] * d[1] / (kind_ == ShapeKind::cone ? 3.0 : 1.0);
            break;
        case ShapeKind::capsule:
            set_centred_bounds(d[0], d[0], d[1] / 2 + d[0]);
            volume_ = pi * d[0] * d[0] * (d[1] + 4.0 / 3.0 * d[0]);
            break;
        case ShapeKind::plane:
            set_centred_bounds(unbounded, unbounded, unbounded);
            upper_[2] = 0.0;
            volume_ = unbounded;
            break;
        case ShapeKind::mesh:
        case ShapeKind::point_cloud: measure_numbers(); break;
        case ShapeKind::height_field: measure_field(); break;
    }
}

// Bounds of vertices or balls.
void Shape::measure_numbers() {
    lower_ = {unbounded, unbounded, unbounded};
    upper_ = {-unbounded, -unbounded, -unbounded};
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
        lower_[i % 3] = std::min(lower_[i % 3], numbers_[i]);
        upper_[i % 3] = std::max(upper_[i % 3], numbers_[i]);
    }
    if (kind_ == ShapeKind::point_cloud)
        for (int k = 0; k < 3; ++k) {
            lower_[k] -= dimensions_[0];
            upper_[k] += dimensions_[0];
        }
}

// Each cell has two prisms, each as high as the mean of its corners; the diagonal belongs to both.
void Shape::measure_field() {
    const double floor = dimensions_[2];
    lower_ = {-0.5 * dimensions_[0], -0.5 * dimensions_[1], floor};
    upper_ = {0.5 * dimensions_[0], 0.5 * dimensions_[1],
              *std::max_element(numbers_.begin(), numbers_.end())};
    double sum = 0.0;
    const auto height = [&](std::size_t row, std::size_t column) {
        return numbers_[row * columns_ + column] - floor;
    };
    for (std::size_t row = 0; row + 1 < rows(); ++row)
        for (std::size_t column = 0; column + 1 < columns_; ++column)
            sum += 2.0 * (height(row, column) + height(row + 1, column + 1)) +
                   height(row, column + 1) + height(row + 1, column);
    const double cells = static_cast<double>((rows() - 1) * (columns_ - 1));
    volume_ = sum / 6.0 * dimensions_[0] * dimensions_[1] / cells;
}

bool Shape::same_content(const Shape& other) const {
    return this == &other ||
           (digest_ == other.digest_ && kind_ == other.kind_ && dimensions_ == other.dimensions_ &&
            columns_ == other.columns_ && numbers_ == other.numbers_ && faces_ == other.faces_);
}

}  // namespace tmkit
