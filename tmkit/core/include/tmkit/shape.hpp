// Visual and collision shapes of frames.
//
// A Shape is immutable and shared by reference between all versions of all scenes, the collision
// worlds and Python: a mesh is in memory once. Its collision structures belong to the shape, one
// for each level of detail. They are built once, on first use, from any thread, and are freed with
// the last owner of the shape.
//
// Dimensions [m]: box (x, y, z); sphere (radius); cylinder, cone and capsule (radius, length),
// centred at their origin along z, a capsule's length without its caps, a cone's tip at +z; plane
// (), the half space z <= 0; point cloud (radius), a ball of that radius around each point; height
// field (x, y, floor). Equality and hash are by content (kind, dimensions, numbers, faces). The
// source of a mesh, a cloud or a field is a note and excluded. bindings/shape.cpp describes the
// positions of the heights of a field.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tmkit/no_fork.hpp"
#include "tmkit/pose.hpp"
#include "tmkit/reference.hpp"

namespace tmkit {

using ContentSum = std::array<std::uint64_t, 2>;  // hashes, added lane by lane in any order

// Two lanes of the 64-bit finaliser of MurmurHash3 over eight bytes at a time; not cryptographic.
class ContentHash {
public:
    void add(const void* data, std::size_t bytes) {
        const auto* next = static_cast<const unsigned char*>(data);
        while (bytes > 0) {
            std::uint64_t word = 0;
            const std::size_t length = std::min<std::size_t>(bytes, 8);
            std::memcpy(&word, next, length);
            lanes_[0] = mix(lanes_[0] ^ word);
            lanes_[1] = mix(lanes_[1] + word * 0x9E3779B97F4A7C15ull);
            next += length;
            bytes -= length;
        }
    }
    template <class T> void add(const std::vector<T>& values) {
        const std::uint64_t count = values.size();
        add(&count, sizeof count);
        add(values.data(), values.size() * sizeof(T));
    }
    const ContentSum& lanes() const { return lanes_; }

private:
    static std::uint64_t mix(std::uint64_t x) {
        x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDull;
        x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ull;
        return x ^ (x >> 33);
    }
    ContentSum lanes_{0x2545F4914F6CDD1Dull, 0x94D049BB133111EBull};
};

// The numbers are part of the digest: new kinds go to the end.
enum class ShapeKind {
    box,
    sphere,
    cylinder,
    cone,
    capsule,
    mesh,
    plane,
    point_cloud,
    height_field
};

const char* name_of(ShapeKind kind);

// Collision geometry of a shape: the shape itself, its convex hull, or its bounding box in its own
// axes.
enum class CollisionLevel : std::uint8_t { exact, hull, box };
constexpr std::size_t collision_level_count = 3;

const char* name_of(CollisionLevel level);

// Base class of collision structures, which keeps the graph independent of the collision library.
class CollisionStructure {
public:
    virtual ~CollisionStructure() = default;
};

class Shape : public Shared {
public:
    // Throws Error(shape) for the wrong number of dimensions or one that is not positive and
    // finite.
    static Ref<const Shape> primitive(ShapeKind kind, std::vector<double> dimensions);
    // vertices: 3 n numbers [m]; faces: 3 m indices. checksums: of the files that `source` names,
    // as printed by `sha256sum`; empty for arrays. Throws Error(shape) if empty, not finite or out
    // of range.
    static Ref<const Shape> mesh(std::vector<double> vertices, std::vector<std::int32_t> faces,
                                 std::string source, std::string checksums = {});
    static Ref<const Shape> plane();
    // points: 3 n numbers [m]. Throws Error(shape) if empty or not finite, or for a radius that is
    // not positive.
    static Ref<const Shape> point_cloud(std::vector<double> points, double radius,
                                        std::string source);
    // heights: row by row [m]; size: along x and y [m]. By default, the floor is a tenth of the
    // longer side below the lowest height. Throws Error(shape) for fewer than 2 rows or columns, a
    // height that is not finite, a size that is not positive, or a floor that is not below all
    // heights.
    static Ref<const Shape> height_field(std::vector<double> heights, std::size_t columns,
                                         std::array<double, 2> size, std::optional<double> floor,
                                         std::string source);

    ShapeKind kind() const { return kind_; }
    const std::vector<double>& dimensions() const { return dimensions_; }
    // Empty for shapes of other kinds.
    const std::vector<double>& vertices() const { return numbers_of(ShapeKind::mesh); }
    const std::vector<double>& points() const { return numbers_of(ShapeKind::point_cloud); }
    const std::vector<double>& heights() const { return numbers_of(ShapeKind::height_field); }
    const std::vector<std::int32_t>& faces() const { return faces_; }
    // The faces of a mesh with inverted faces corrected (mesh_winding.hpp). Computed on first use.
    const std::vector<std::int32_t>& outward_faces() const;
    std::size_t columns() const { return columns_; }  // of a height field; else 0
    std::size_t rows() const { return columns_ == 0 ? 0 : numbers_.size() / columns_; }
    // The corner of a height field's surface at a row and a column.
    Vector3 surface_point(std::size_t row, std::size_t column) const;
    const std::string& source() const { return source_; }
    // a label like the source, not part of the content.
    const std::string& checksums() const { return checksums_; }
    // 128 bits of content hash, stable across processes and platforms of one byte order.
    const std::array<std::uint64_t, 2>& digest() const { return digest_; }
    const Vector3& lower() const { return lower_; }  // infinite for a plane
    const Vector3& upper() const { return upper_; }
    // Volume [m^3]; for a mesh the signed volume of its faces, correct if it is closed and its
    // faces point outwards; infinite for a plane. Throws Error(shape) for a point cloud, whose
    // balls overlap.
    double volume() const;

    bool same_content(const Shape& other) const;

    // The collision structure of a level. `build` runs at most once for each level.
    template <class Build>
    const CollisionStructure& collision_structure(CollisionLevel level, Build&& build) const {
        const auto slot = static_cast<std::size_t>(level);
        std::call_once(built_[slot], [&] {
            const NoFork whole;
            structures_[slot] = build(*this);
        });
        return *structures_[slot];
    }

private:
    struct Content {
        ShapeKind kind;
        std::vector<double> dimensions, numbers;
        std::vector<std::int32_t> faces;
        std::size_t columns = 0;
        std::string source, checksums;
    };
    explicit Shape(Content content);
    static Ref<const Shape> made(Content content) {
        return Ref<const Shape>(new Shape(std::move(content)));
    }
    const std::vector<double>& numbers_of(ShapeKind kind) const;
    void measure();
    void measure_numbers();
    void measure_field();

    ShapeKind kind_;
    std::vector<double> dimensions_;
    std::vector<double> numbers_;  // vertices, points or heights
    std::vector<std::int32_t> faces_;
    std::size_t columns_;
    std::string source_, checksums_;
    std::array<std::uint64_t, 2> digest_{};
    Vector3 lower_{}, upper_{};
    double volume_ = 0.0;
    mutable std::once_flag is_wound_;
    mutable std::vector<std::int32_t> outward_faces_;  // empty if no face is inverted
    mutable std::once_flag built_[collision_level_count];
    mutable std::unique_ptr<CollisionStructure> structures_[collision_level_count];
};

// A shape on a frame, with its pose and purpose.
struct AttachedShape {
    Ref<const Shape> shape;
    Pose pose;                                        // frame_from_shape
    std::array<double, 4> color{0.7, 0.7, 0.7, 1.0};  // red, green, blue, alpha, 0 to 1
    bool has_color = false;  // false: the viewer chooses, and `color` is ignored
    bool visual = true;
    bool collision = true;
    std::optional<double> friction;  // coefficient of its surface; none: the simulator chooses
    // Geometry used in collisions; none: that of the collision world.
    std::optional<CollisionLevel> level;
    std::optional<double> stamp{};  // time of attachment or observation [s]

    bool operator==(const AttachedShape& other) const {
        return shape->same_content(*other.shape) && pose == other.pose && color == other.color &&
               has_color == other.has_color && visual == other.visual &&
               collision == other.collision && friction == other.friction && level == other.level &&
               stamp == other.stamp;
    }
};

}  // namespace tmkit
