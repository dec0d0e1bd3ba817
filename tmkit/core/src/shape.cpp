#include "tmkit/shape.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "tmkit/error.hpp"

namespace tmkit {
namespace {

std::size_t dimension_count(ShapeKind kind) {
    switch (kind) {
        case ShapeKind::box: return 3;
        case ShapeKind::sphere: return 1;
        case ShapeKind::mesh: return 0;
        default: return 2;
    }
}

// Two lanes of the 64-bit finaliser of MurmurHash3 over eight bytes at a time; not cryptographic.
class ContentHash {
public:
    void add(const void* data, std::size_t bytes) {
        const auto* next = static_cast<const unsigned char*>(data);
        while (bytes > 0) {
            std::uint64_t word = 0;
            const std::size_t taken = std::min<std::size_t>(bytes, 8);
            std::memcpy(&word, next, taken);
            lanes_[0] = mix(lanes_[0] ^ word);
            lanes_[1] = mix(lanes_[1] + word * 0x9E3779B97F4A7C15ull);
            next += taken;
            bytes -= taken;
        }
    }
    template <class T>
    void add(const std::vector<T>& values) {
        const std::uint64_t count = values.size();
        add(&count, sizeof count);
        add(values.data(), values.size() * sizeof(T));
    }
    std::array<std::uint64_t, 2> lanes() const { return lanes_; }

private:
    static std::uint64_t mix(std::uint64_t x) {
        x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDull;
        x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ull;
        return x ^ (x >> 33);
    }
    std::array<std::uint64_t, 2> lanes_{0x2545F4914F6CDD1Dull, 0x94D049BB133111EBull};
};

}  // namespace

const char* name_of(ShapeKind kind) {
    static constexpr const char* names[] = {"box", "sphere", "cylinder", "cone", "capsule", "mesh"};
    return names[static_cast<int>(kind)];
}

Ref<const Shape> Shape::primitive(ShapeKind kind, std::vector<double> dimensions) {
    const std::size_t expected = dimension_count(kind);
    if (kind == ShapeKind::mesh || dimensions.size() != expected)
        throw Error(ErrorKind::shape, std::string("a ") + name_of(kind) + " takes " + std::to_string(expected) +
                                          " dimensions, not " + std::to_string(dimensions.size()));
    for (double value : dimensions)
        if (!(value > 0.0) || !std::isfinite(value))
            throw Error(ErrorKind::shape, std::string("a ") + name_of(kind) +
                                              " needs positive finite dimensions in metres, not " +
                                              std::to_string(value));
    return Ref<const Shape>(new Shape(kind, std::move(dimensions), {}, {}, ""));
}

Ref<const Shape> Shape::mesh(std::vector<double> vertices, std::vector<std::int32_t> faces, std::string source) {
    const auto place = source.empty() ? std::string() : " (" + source + ")";
    if (vertices.empty() || faces.empty() || vertices.size() % 3 || faces.size() % 3)
        throw Error(ErrorKind::shape, "a mesh needs vertices (n, 3) and faces (m, 3), both with rows" + place);
    for (double value : vertices)
        if (!std::isfinite(value)) throw Error(ErrorKind::shape, "a mesh has a vertex that is not finite" + place);
    const auto count = static_cast<std::int64_t>(vertices.size() / 3);
    for (std::int32_t index : faces)
        if (index < 0 || index >= count)
            throw Error(ErrorKind::shape, "a mesh has a face that names vertex " + std::to_string(index) +
                                              ", but there are " + std::to_string(count) + place);
    return Ref<const Shape>(new Shape(ShapeKind::mesh, {}, std::move(vertices), std::move(faces), std::move(source)));
}

Shape::Shape(ShapeKind kind, std::vector<double> dimensions, std::vector<double> vertices,
             std::vector<std::int32_t> faces, std::string source)
    : kind_(kind), dimensions_(std::move(dimensions)), vertices_(std::move(vertices)), faces_(std::move(faces)),
      source_(std::move(source)) {
    ContentHash hash;
    const std::uint64_t kind_word = static_cast<std::uint64_t>(kind_);
    hash.add(&kind_word, sizeof kind_word);
    hash.add(dimensions_);
    hash.add(vertices_);
    hash.add(faces_);
    digest_ = hash.lanes();
    measure();
}

void Shape::measure() {
    const double pi = std::numbers::pi;
    const auto& d = dimensions_;
    const auto centred = [this](double x, double y, double z) {
        lower_ = {-x, -y, -z};
        upper_ = {x, y, z};
    };
    switch (kind_) {
        case ShapeKind::box:
            centred(d[0] / 2, d[1] / 2, d[2] / 2);
            volume_ = d[0] * d[1] * d[2];
            break;
        case ShapeKind::sphere:
            centred(d[0], d[0], d[0]);
            volume_ = 4.0 / 3.0 * pi * d[0] * d[0] * d[0];
            break;
        case ShapeKind::cylinder:
        case ShapeKind::cone:
            centred(d[0], d[0], d[1] / 2);
            volume_ = pi * d[0] * d[0] * d[1] / (kind_ == ShapeKind::cone ? 3.0 : 1.0);
            break;
        case ShapeKind::capsule:
            centred(d[0], d[0], d[1] / 2 + d[0]);
            volume_ = pi * d[0] * d[0] * (d[1] + 4.0 / 3.0 * d[0]);
            break;
        case ShapeKind::mesh: {
            const double infinity = std::numeric_limits<double>::infinity();
            lower_ = {infinity, infinity, infinity};
            upper_ = {-infinity, -infinity, -infinity};
            const auto vertex = [this](std::int32_t i) {
                return Vector3{vertices_[3 * i], vertices_[3 * i + 1], vertices_[3 * i + 2]};
            };
            for (std::size_t i = 0; i < vertices_.size(); ++i) {
                lower_[i % 3] = std::min(lower_[i % 3], vertices_[i]);
                upper_[i % 3] = std::max(upper_[i % 3], vertices_[i]);
            }
            for (std::size_t i = 0; i < faces_.size(); i += 3)
                volume_ += dot(vertex(faces_[i]), cross(vertex(faces_[i + 1]), vertex(faces_[i + 2]))) / 6.0;
            break;
        }
    }
}

bool Shape::same_content(const Shape& other) const {
    return this == &other || (digest_ == other.digest_ && kind_ == other.kind_ && dimensions_ == other.dimensions_ &&
                              vertices_ == other.vertices_ && faces_ == other.faces_);
}

}  // namespace tmkit
