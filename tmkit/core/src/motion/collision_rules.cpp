// The collision shapes of a scene and the rules that say which pairs of frames are checked, and with what margin.
#include <coal/BV/OBBRSS.h>
#include <coal/BVH/BVH_model.h>
#include <coal/shape/convex.h>
#include <coal/shape/geometric_shapes.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "collision_model.hpp"
#include "convex_hull.hpp"

namespace tmkit {
namespace {

std::string described(const Shape& shape) {
    return shape.source().empty() ? std::string("a mesh") : "mesh '" + shape.source() + "'";
}

std::shared_ptr<std::vector<coal::Vec3s>> points_of(const Shape& shape) {
    const std::vector<double>& v = shape.vertices();
    auto points = std::make_shared<std::vector<coal::Vec3s>>(v.size() / 3);
    for (std::size_t i = 0; i < points->size(); ++i) (*points)[i] = coal::Vec3s(v[3 * i], v[3 * i + 1], v[3 * i + 2]);
    return points;
}

// coal holds the number of a corner's neighbours in one byte.
constexpr std::size_t most_neighbours = 254;

std::size_t largest_neighbourhood(const Hull& hull) {
    std::vector<std::size_t> neighbours(hull.vertices.size(), 0);
    for (const auto& triangle : hull.triangles)
        for (const std::int32_t corner : triangle) ++neighbours[corner];
    return *std::max_element(neighbours.begin(), neighbours.end());
}

std::unique_ptr<coal::CollisionGeometry> build_hull(const Shape& shape) {
    const auto points = points_of(shape);
    const Hull hull = convex_hull(shape.vertices().data(), points->size(), most_neighbours);
    const auto refuse = [&](const std::string& why) {
        return Error(ErrorKind::shape, described(shape) + why,
                     {{"source", shape.source()}, {"vertices", static_cast<std::int64_t>(points->size())}});
    };
    if (hull.triangles.empty())
        throw refuse(" has no convex hull with a volume: its " + std::to_string(points->size()) +
                     " vertices lie in one plane; use a box instead, or check it at the level 'exact'");
    if (largest_neighbourhood(hull) > most_neighbours)
        throw refuse(" has a convex hull where more than " + std::to_string(most_neighbours) +
                     " edges meet in one corner; use a cone or cylinder instead, or a mesh with fewer facets");
    auto corners = std::make_shared<std::vector<coal::Vec3s>>();
    for (const std::int32_t vertex : hull.vertices) corners->push_back((*points)[vertex]);
    auto triangles = std::make_shared<std::vector<coal::Triangle>>();
    for (const auto& [a, b, c] : hull.triangles) triangles->emplace_back(a, b, c);
    return std::make_unique<coal::Convex<coal::Triangle>>(corners, static_cast<unsigned int>(corners->size()), triangles,
                                                          static_cast<unsigned int>(triangles->size()));
}

std::unique_ptr<coal::CollisionGeometry> build_triangles(const Shape& shape) {
    const std::vector<std::int32_t>& f = shape.faces();
    std::vector<coal::Triangle> triangles;
    for (std::size_t i = 0; i + 2 < f.size(); i += 3) triangles.emplace_back(f[i], f[i + 1], f[i + 2]);
    const auto points = points_of(shape);
    auto model = std::make_unique<coal::BVHModel<coal::OBBRSS>>();
    model->beginModel(static_cast<unsigned int>(triangles.size()), static_cast<unsigned int>(points->size()));
    model->addSubModel(*points, triangles);
    model->endModel();
    return model;
}

std::unique_ptr<coal::CollisionGeometry> build_geometry(const Shape& shape, CollisionLevel level) {
    const std::vector<double>& d = shape.dimensions();
    switch (shape.kind()) {
        case ShapeKind::box: return std::make_unique<coal::Box>(d[0], d[1], d[2]);
        case ShapeKind::sphere: return std::make_unique<coal::Sphere>(d[0]);
        case ShapeKind::cylinder: return std::make_unique<coal::Cylinder>(d[0], d[1]);
        case ShapeKind::cone: return std::make_unique<coal::Cone>(d[0], d[1]);
        case ShapeKind::capsule: return std::make_unique<coal::Capsule>(d[0], d[1]);
        case ShapeKind::mesh: break;
    }
    return level == CollisionLevel::hull ? build_hull(shape) : build_triangles(shape);
}

std::int32_t number_of(const SceneGraph& scene, const Layout& layout, const std::string& frame) {
    return layout.index_of(scene.record(frame).id);
}

void check_options(const CollisionOptions& options) {
    if (!std::isfinite(options.margin))
        throw Error(ErrorKind::configuration,
                    "margin must be a finite distance in metres, got " + std::to_string(options.margin),
                    {{"value", options.margin}});
    for (const PairMargin& pair : options.pair_margins)
        if (!(pair.margin < std::numeric_limits<double>::infinity()))
            throw Error(ErrorKind::configuration,
                        "the margin of the pair '" + pair.frame_a + "', '" + pair.frame_b +
                            "' must be finite, or -inf for never, got " + std::to_string(pair.margin),
                        {{"value", pair.margin}});
    std::map<std::pair<std::string, std::string>, double> seen;
    for (const PairMargin& pair : options.pair_margins) {
        const auto [known, is_new] = seen.insert({std::minmax(pair.frame_a, pair.frame_b), pair.margin});
        if (!is_new && known->second != pair.margin)
            throw Error(ErrorKind::configuration, "two different margins are given for the pair '" + pair.frame_a +
                                                      "', '" + pair.frame_b + "': " + std::to_string(known->second) +
                                                      " and " + std::to_string(pair.margin));
    }
}

}  // namespace

const CoalStructure& collision_structure(const Shape& shape, CollisionLevel level) {
    const auto build = [level](const Shape& from) -> std::unique_ptr<CollisionStructure> {
        auto structure = std::make_unique<CoalStructure>();
        structure->convex = from.kind() != ShapeKind::mesh || level == CollisionLevel::hull;
        try {
            structure->geometry = build_geometry(from, level);
            structure->geometry->computeLocalAABB();
        } catch (const Error& error) {  // kept, so that it need not be found out again
            structure->failure = error;
        }
        return structure;
    };
    const auto& structure =
        static_cast<const CoalStructure&>(shape.collision_structure(static_cast<int>(level), build));
    if (structure.failure) throw *structure.failure;
    return structure;
}

coal::Transform3s to_coal(const Pose& pose) {
    const Matrix3 r = pose.rotation();
    coal::Matrix3s rotation;
    rotation << r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8];
    return {rotation, coal::Vec3s(pose.translation[0], pose.translation[1], pose.translation[2])};
}

CollisionWorld::Rules::Rules(SceneGraph s, CollisionOptions o)
    : scene(std::move(s)), options(std::move(o)), layout(&scene.layout()) {
    check_options(options);
    margins = {0.0, options.margin};
    largest_margin = std::max(0.0, options.margin);
    collect_items();
    find_rigid_clusters();
    collect_exceptions();
}

void CollisionWorld::Rules::collect_items() {
    for (std::size_t frame = 0; frame < layout->size(); ++frame) {
        const FrameRecord& record = scene.record(layout->ids[frame]);
        if (!record.details) continue;
        bool first = true;
        for (const AttachedShape& attached : record.details->shapes) {
            if (!attached.collision) continue;
            if (first) object_frame.push_back(static_cast<std::int32_t>(frame));
            first = false;
            const CoalStructure& structure = collision_structure(*attached.shape, options.level);
            const coal::AABB& box = structure.geometry->aabb_local;
            items.push_back({static_cast<std::int32_t>(object_frame.size()) - 1, structure.geometry.get(),
                             structure.convex, structure.convex ? nullptr : hull_for_depth(*attached.shape), attached.pose, box.center(), 0.5 * (box.max_ - box.min_)});
        }
    }
}

// Triangles have no depth, so a pair of meshes that may penetrate is judged by hulls as well. A flat mesh has none.
const coal::CollisionGeometry* CollisionWorld::Rules::hull_for_depth(const Shape& shape) const {
    const auto penetrates = [](const PairMargin& pair) { return pair.margin < 0.0 && !std::isinf(pair.margin); };
    if (options.margin >= 0.0 && std::none_of(options.pair_margins.begin(), options.pair_margins.end(), penetrates)) return nullptr;
    try {
        return collision_structure(shape, CollisionLevel::hull).geometry.get();
    } catch (const Error&) {
        return nullptr;
    }
}

void CollisionWorld::Rules::find_rigid_clusters() {
    std::vector<bool> cut(layout->size(), false);
    for (const std::string& frame : options.movable) cut[number_of(scene, *layout, frame)] = true;
    std::vector<std::int32_t> cluster(layout->size());
    for (const std::int32_t frame : layout->order) {
        const std::int32_t parent = layout->parent[frame];
        const bool joined = parent >= 0 && layout->type[frame] == JointType::fixed && !cut[frame];
        cluster[frame] = joined ? cluster[parent] : frame;
    }
    for (const std::int32_t frame : object_frame) object_rigid.push_back(cluster[frame]);
}

// Bodies are rigid clusters too unless a movable edge lies inside one, so pairs on one body are exceptions.
void CollisionWorld::Rules::collect_exceptions() {
    std::vector<std::int32_t> object_of(layout->size(), -1);
    for (std::size_t i = 0; i < object_frame.size(); ++i) object_of[object_frame[i]] = static_cast<std::int32_t>(i);
    const auto except = [&](std::int32_t a, std::int32_t b, MarginClass margin) {
        if (a < 0 || b < 0 || a == b) return;
        exceptions_.push_back({a, b, margin});
        exceptions_.push_back({b, a, margin});
    };
    std::vector<std::pair<BodyId, std::int32_t>> by_body;
    for (std::size_t i = 0; i < object_frame.size(); ++i)
        by_body.emplace_back(layout->body[object_frame[i]], static_cast<std::int32_t>(i));
    std::sort(by_body.begin(), by_body.end());
    for (std::size_t i = 0; i < by_body.size(); ++i)
        for (std::size_t j = i + 1; j < by_body.size() && by_body[j].first == by_body[i].first; ++j)
            except(by_body[i].second, by_body[j].second, 0);
    for (const AllowedPair& pair : scene.allowed_pairs())
        except(object_of[number_of(scene, *layout, pair.a)], object_of[number_of(scene, *layout, pair.b)], 0);
    for (const PairMargin& pair : options.pair_margins) {
        const std::int32_t a = object_of[number_of(scene, *layout, pair.frame_a)];
        const std::int32_t b = object_of[number_of(scene, *layout, pair.frame_b)];
        except(a, b, std::isinf(pair.margin) ? MarginClass{0} : class_of(pair.margin));
    }
    // What forbids the check of a pair wins over a margin.
    std::stable_sort(exceptions_.begin(), exceptions_.end());
    std::vector<Exception> kept;
    for (const Exception& e : exceptions_) {
        if (kept.empty() || kept.back() < e) kept.push_back(e);
        else if (kept.back().margin != 0) kept.back() = e;
    }
    exceptions_ = std::move(kept);
    first_exception_.assign(object_frame.size() + 1, 0);
    for (const Exception& e : exceptions_) ++first_exception_[e.a + 1];
    for (std::size_t i = 0; i < object_frame.size(); ++i) first_exception_[i + 1] += first_exception_[i];
}

MarginClass CollisionWorld::Rules::class_of(double margin) {
    largest_margin = std::max(largest_margin, margin);
    const auto found = std::find(margins.begin() + 1, margins.end(), margin);
    if (found != margins.end()) return static_cast<MarginClass>(found - margins.begin());
    if (margins.size() > std::numeric_limits<MarginClass>::max())
        throw Error(ErrorKind::configuration, "more than 65534 different pair margins");
    margins.push_back(margin);
    return static_cast<MarginClass>(margins.size() - 1);
}

MarginClass CollisionWorld::Rules::margin_class(std::int32_t a, std::int32_t b) const {
    if (a == b || object_rigid[a] == object_rigid[b]) return 0;
    const auto begin = exceptions_.begin() + first_exception_[a], end = exceptions_.begin() + first_exception_[a + 1];
    const auto found = std::lower_bound(begin, end, Exception{a, b, 0});
    return found != end && found->b == b ? found->margin : MarginClass{1};
}

void CollisionWorld::Rules::fill_row(std::int32_t a, MarginClass* row) const {
    std::fill(row, row + object_count(), MarginClass{1});
    for (std::int32_t e = first_exception_[a]; e < first_exception_[a + 1]; ++e)
        row[exceptions_[e].b] = exceptions_[e].margin;
    for (std::size_t b = 0; b < object_count(); ++b)
        if (object_rigid[b] == object_rigid[a]) row[b] = 0;
}

}  // namespace tmkit
