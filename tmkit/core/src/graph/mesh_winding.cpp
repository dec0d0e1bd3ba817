#include "mesh_winding.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>

#include "tmkit/elementary.hpp"
#include "tmkit/pose.hpp"

namespace tmkit {
namespace {

// Relative to the bounding cube of a part: the rounding error of a flat one.
constexpr double no_volume = 1e-12;
// Maximum number of triangles tested for parts inside others.
constexpr std::int64_t most_looks = 100'000'000;

struct Edge {
    std::int32_t low, high;  // vertices
    std::int32_t face;
    int direction;  // 1 from low to high, else -1
};

struct Part {
    std::vector<std::int32_t> faces;
    Vector3 lower{}, upper{};
    double volume = 0.0;  // with all faces corrected so far
    bool is_orientable = true, is_closed = true;
    bool has_turned = false;  // faces inconsistent with the first
};

class Winding {
public:
    Winding(const std::vector<double>& vertices, const std::vector<std::int32_t>& faces)
        : vertices_(vertices), faces_(faces), count_(faces.size() / 3), turned_(count_),
          part_of_(count_, -1) {
        merge_vertices();
        sort_edges();
        for (std::size_t face = 0; face < count_; ++face)
            if (part_of_[face] < 0) grow(static_cast<std::int32_t>(face));
        close();
        for (Part& part : parts_) measure(part);
    }

    std::vector<std::int32_t> result() {
        for (const Part& part : parts_)
            if (part.is_orientable && is_reversed(part)) reverse(part);
        reverse_open_mesh();
        std::vector<std::int32_t> faces(faces_);
        for (std::size_t face = 0; face < count_; ++face)
            if (turned_[face]) std::swap(faces[3 * face], faces[3 * face + 2]);
        return faces;
    }

private:
    Vector3 vertex(std::int32_t index) const {
        return {vertices_[3 * index], vertices_[3 * index + 1], vertices_[3 * index + 2]};
    }
    Vector3 corner(std::int32_t face, int k) const { return vertex(faces_[3 * face + k]); }

    // Merge vertices by position: each gets the number of the first one there.
    void merge_vertices() {
        const auto place = [this](std::int32_t i) {
            return std::span(vertices_).subspan(3 * i, 3);
        };
        std::vector<std::int32_t> order(vertices_.size() / 3);
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
            const auto x = place(a), y = place(b);
            return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
        });
        merged_.resize(order.size());
        for (std::size_t k = 0; k < order.size(); ++k) {
            const bool is_same = k > 0 && std::ranges::equal(place(order[k]), place(order[k - 1]));
            merged_[order[k]] = is_same ? merged_[order[k - 1]] : order[k];
        }
    }

    void sort_edges() {
        edges_.reserve(3 * count_);
        for (std::size_t face = 0; face < count_; ++face) {
            std::array<std::int32_t, 3> at;
            for (int k = 0; k < 3; ++k) at[k] = merged_[faces_[3 * face + k]];
            if (at[0] == at[1] || at[1] == at[2] || at[2] == at[0]) continue;  // zero area
            for (int k = 0; k < 3; ++k) {
                const std::int32_t a = at[k], b = at[(k + 1) % 3];
                edges_.push_back({std::min(a, b), std::max(a, b), static_cast<std::int32_t>(face),
                                  a < b ? 1 : -1});
            }
        }
        std::sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) {
            return std::array{a.low, a.high, a.face} < std::array{b.low, b.high, b.face};
        });
        neighbours_.assign(3 * count_, {-1, false});
        std::vector<std::uint8_t> found(count_);
        for_each_edge([&](std::span<const Edge> same) {
            if (same.size() != 2 || same[0].face == same[1].face) return;
            const bool fits = same[0].direction != same[1].direction;
            for (int k = 0; k < 2; ++k) {
                const std::int32_t face = same[k].face;
                neighbours_[3 * face + found[face]++] = {same[1 - k].face, fits};
            }
        });
    }

    template <class Visit> void for_each_edge(Visit&& visit) const {
        for (std::size_t begin = 0, end = 0; begin < edges_.size(); begin = end) {
            const Edge& edge = edges_[begin];
            while (end < edges_.size() && edges_[end].low == edge.low &&
                   edges_[end].high == edge.high)
                ++end;
            visit(std::span(edges_).subspan(begin, end - begin));
        }
    }

    // Collect the part of a face and orient all its faces consistently.
    void grow(std::int32_t first) {
        const auto number = static_cast<std::int32_t>(parts_.size());
        Part part;
        part.faces.push_back(first);
        part_of_[first] = number;
        for (std::size_t next = 0; next < part.faces.size(); ++next) {
            const std::int32_t face = part.faces[next];
            for (int k = 0; k < 3; ++k) {
                const auto [other_part, fits] = neighbours_[3 * face + k];
                if (other_part < 0) continue;
                const bool is_inverted = turned_[face] != !fits;
                if (part_of_[other_part] < 0) {
                    part_of_[other_part] = number;
                    turned_[other_part] = is_inverted;
                    part.faces.push_back(other_part);
                } else if (turned_[other_part] != is_inverted) {
                    part.is_orientable = false;
                }
            }
        }
        if (!part.is_orientable)
            for (const std::int32_t face : part.faces) turned_[face] = false;
        part.has_turned =
            std::ranges::any_of(part.faces, [this](std::int32_t face) { return turned_[face]; });
        parts_.push_back(std::move(part));
    }

    // A part is closed if it traverses each edge equally often in both directions.
    void close() {
        std::vector<std::uint8_t> has_edges(parts_.size());
        std::vector<std::pair<std::int32_t, int>> runs;  // part and direction
        for_each_edge([&](std::span<const Edge> same) {
            runs.clear();
            for (const Edge& edge : same) {
                has_edges[part_of_[edge.face]] = true;
                runs.emplace_back(part_of_[edge.face],
                                  turned_[edge.face] ? -edge.direction : edge.direction);
            }
            std::sort(runs.begin(), runs.end());
            for (std::size_t begin = 0, end = 0; begin < runs.size(); begin = end) {
                int sum = 0;
                for (; end < runs.size() && runs[end].first == runs[begin].first; ++end)
                    sum += runs[end].second;
                if (sum != 0) parts_[runs[begin].first].is_closed = false;
            }
        });
        for (std::size_t part = 0; part < parts_.size(); ++part)
            if (!has_edges[part] || !parts_[part].is_orientable) parts_[part].is_closed = false;
    }

    double signed_volume(std::span<const std::int32_t> faces, const Vector3& middle) const {
        double sum = 0.0;
        for (const std::int32_t face : faces) {
            const double volume = dot(corner(face, 0) - middle,
                                      cross(corner(face, 1) - middle, corner(face, 2) - middle));
            sum += turned_[face] ? -volume : volume;
        }
        return sum / 6.0;
    }

    void measure(Part& part) const {
        part.lower = part.upper = corner(part.faces[0], 0);
        for (const std::int32_t face : part.faces)
            for (int k = 0; k < 3; ++k)
                for (int axis = 0; axis < 3; ++axis) {
                    part.lower[axis] = std::min(part.lower[axis], corner(face, k)[axis]);
                    part.upper[axis] = std::max(part.upper[axis], corner(face, k)[axis]);
                }
        part.volume = signed_volume(part.faces, 0.5 * (part.lower + part.upper));
        const double size = norm(part.upper - part.lower);
        if (std::abs(part.volume) <= no_volume * size * size * size) part.volume = 0.0;
    }

    // Return whether to reverse a part as a whole, after its faces are consistent.
    bool is_reversed(const Part& part) {
        if (part.is_closed && part.volume != 0.0) {
            const bool looks_in = part.volume < 0.0;
            if ((!looks_in && !part.has_turned) || !is_inside(part)) return looks_in;
        }
        const auto turned =
            std::ranges::count_if(part.faces, [this](std::int32_t face) { return turned_[face]; });
        const auto kept_count = static_cast<std::ptrdiff_t>(part.faces.size()) - turned;
        return turned == kept_count ? part.volume < 0.0 : turned > kept_count;
    }

    // Return whether a vertex of a part is inside another closed part: the solid angle of that is
    // then 4 pi.
    bool is_inside(const Part& part) {
        const Vector3 point = corner(part.faces[0], 0);
        for (const Part& other_part : parts_) {
            if (&other_part == &part || !other_part.is_closed || other_part.volume == 0.0) continue;
            bool is_around = true;
            for (int k = 0; k < 3; ++k)
                is_around &=
                    other_part.lower[k] < part.lower[k] && part.upper[k] < other_part.upper[k];
            if (!is_around || looks_ > most_looks) continue;
            looks_ += static_cast<std::int64_t>(other_part.faces.size());
            double angle = 0.0;  // half of it (Van Oosterom and Strackee, 1983)
            for (const std::int32_t face : other_part.faces) {
                std::array<Vector3, 3> to;
                for (int k = 0; k < 3; ++k) to[k] = corner(face, k) - point;
                const double a = norm(to[0]), b = norm(to[1]), c = norm(to[2]);
                const double below = a * b * c + dot(to[0], to[1]) * c + dot(to[1], to[2]) * a +
                                     dot(to[2], to[0]) * b;
                const double half = arctangent(dot(to[0], cross(to[1], to[2])), below);
                angle += turned_[face] ? -half : half;
            }
            if (std::abs(angle) > std::numbers::pi) return true;
        }
        return false;
    }

    void reverse(const Part& part) {
        for (const std::int32_t face : part.faces) turned_[face] = !turned_[face];
    }

    void reverse_open_mesh() {
        if (std::ranges::any_of(parts_, &Part::is_closed)) return;
        Vector3 middle{};
        for (std::size_t i = 0; i < vertices_.size(); ++i) middle[i % 3] += vertices_[i];
        middle = (3.0 / static_cast<double>(vertices_.size())) * middle;
        double volume = 0.0, size = 0.0;
        for (const Part& part : parts_) {
            volume += signed_volume(part.faces, middle);
            size = std::max(size, norm(part.upper - part.lower));
        }
        if (volume < -no_volume * size * size * size)
            for (const Part& part : parts_)
                if (part.is_orientable) reverse(part);
    }

    const std::vector<double>& vertices_;
    const std::vector<std::int32_t>& faces_;
    std::size_t count_;
    std::vector<std::int32_t> merged_;
    std::vector<Edge> edges_;
    // Three a face, each with whether its orientation agrees.
    std::vector<std::pair<std::int32_t, bool>> neighbours_;
    std::vector<bool> turned_;
    std::vector<std::int32_t> part_of_;
    std::vector<Part> parts_;
    std::int64_t looks_ = 0;
};

}  // namespace

std::vector<std::int32_t> outward_faces(const std::vector<double>& vertices,
                                        const std::vector<std::int32_t>& faces) {
    return Winding(vertices, faces).result();
}

}  // namespace tmkit
