// Shapes: what a frame looks like and collides with.
//
// A Shape is immutable and shared by reference between all versions of all scenes, the collision worlds and Python: a
// mesh exists once in memory however many hold it. Its collision structure (a coal geometry) hangs off the shape, is
// built on first use, once, safely from many threads, and is freed with the last owner of the shape.
//
// Dimensions in metres: box (x, y, z); sphere (radius); cylinder, cone and capsule (radius, length), centred at their
// origin along z, a capsule's length without its caps, a cone's tip at +z. Equality and hash are by content (kind,
// dimensions, vertices, faces); the source of a mesh is a remark and no part of it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tmkit/pose.hpp"
#include "tmkit/reference.hpp"

namespace tmkit {

enum class ShapeKind { box, sphere, cylinder, cone, capsule, mesh };

const char* name_of(ShapeKind kind);

// What a collision structure derives from, so that the graph need not know the collision library.
class CollisionStructure {
public:
    virtual ~CollisionStructure() = default;
};

class Shape : public Shared {
public:
    // Throws Error(shape) for the wrong number of dimensions or one that is not positive and finite.
    static Ref<const Shape> primitive(ShapeKind kind, std::vector<double> dimensions);
    // vertices: 3 n numbers, metres; faces: 3 m indices. Throws Error(shape) when empty, not finite or out of range.
    static Ref<const Shape> mesh(std::vector<double> vertices, std::vector<std::int32_t> faces, std::string source);

    ShapeKind kind() const { return kind_; }
    const std::vector<double>& dimensions() const { return dimensions_; }
    const std::vector<double>& vertices() const { return vertices_; }
    const std::vector<std::int32_t>& faces() const { return faces_; }
    const std::string& source() const { return source_; }
    // 128 bits of content hash, stable across processes and platforms of one byte order.
    const std::array<std::uint64_t, 2>& digest() const { return digest_; }
    const Vector3& lower() const { return lower_; }
    const Vector3& upper() const { return upper_; }
    // Cubic metres; for a mesh the signed volume of its faces, right when it is closed and faces outwards.
    double volume() const { return volume_; }

    bool same_content(const Shape& other) const;

    // Collision structures by level: 0 exact, 1 convex hull. `build` runs at most once for each level.
    template <class Build>
    const CollisionStructure& collision_structure(int level, Build&& build) const {
        std::call_once(built_[level], [&] { structures_[level] = build(*this); });
        return *structures_[level];
    }

    Shape(ShapeKind kind, std::vector<double> dimensions, std::vector<double> vertices,
          std::vector<std::int32_t> faces, std::string source);

private:
    void measure();

    ShapeKind kind_;
    std::vector<double> dimensions_, vertices_;
    std::vector<std::int32_t> faces_;
    std::string source_;
    std::array<std::uint64_t, 2> digest_{};
    Vector3 lower_{}, upper_{};
    double volume_ = 0.0;
    mutable std::once_flag built_[2];
    mutable std::unique_ptr<CollisionStructure> structures_[2];
};

// A shape on a frame: where it sits, and what it is for.
struct AttachedShape {
    Ref<const Shape> shape;
    Pose pose;                                 // frame_from_shape
    std::array<double, 4> color{0.7, 0.7, 0.7, 1.0};  // red, green, blue, alpha, 0 to 1
    bool has_color = false;                    // false: the viewer chooses, and `color` is not meant
    bool visual = true;
    bool collision = true;
    std::optional<double> friction;            // coefficient of its surface; none: the simulator chooses

    bool operator==(const AttachedShape& other) const {
        return shape->same_content(*other.shape) && pose == other.pose && color == other.color &&
               has_color == other.has_color && visual == other.visual && collision == other.collision &&
               friction == other.friction;
    }
};

}  // namespace tmkit
