// Collision shapes of a scene and the rules of its checked pairs and their margins.
#include <algorithm>
#include <cmath>
#include <map>

#include "collision/collision_model.hpp"

namespace tmkit {
namespace {

constexpr double lowest_margin = -1.0;  // [m]; a lower one would disable all checks

}  // namespace

void check_options(const CollisionOptions& options) {
    if (!std::isfinite(options.margin))
        throw Error(ErrorKind::configuration, "margin must be a finite distance in metres, got {}",
                    options.margin)
            .with({{"value", options.margin}});
    if (options.margin < lowest_margin)
        throw Error(
            ErrorKind::configuration,
            "margin must be at least -1 metre, got {}: all shapes could pass through each other; "
            "exempt single pairs with pair_margins",
            options.margin)
            .with({{"value", options.margin}});
    for (const PairMargin& pair : options.pair_margins)
        if (!(pair.margin < std::numeric_limits<double>::infinity()))
            throw Error(
                ErrorKind::configuration,
                "the margin of the pair '{}', '{}' must be finite, or -inf for never, got {}",
                pair.frame_a, pair.frame_b, pair.margin)
                .with({{"value", pair.margin}});
    std::map<std::pair<std::string_view, std::string_view>, double> seen;
    for (const PairMargin& pair : options.pair_margins) {
        const auto [known, is_new] =
            seen.insert({std::minmax<std::string_view>(pair.frame_a, pair.frame_b), pair.margin});
        if (!is_new && known->second != pair.margin)
            throw Error(ErrorKind::configuration,
                        "two different margins are given for the pair '{}', '{}': {} and {}",
                        pair.frame_a, pair.frame_b, known->second, pair.margin);
    }
}

double largest_margin_of(const CollisionOptions& options) {
    double largest = std::max(0.0, options.margin);
    for (const PairMargin& pair : options.pair_margins) largest = std::max(largest, pair.margin);
    return largest;
}

bool needs_depth(const CollisionOptions& options) {
    const auto penetrates = [](const PairMargin& pair) {
        return pair.margin < 0.0 && !std::isinf(pair.margin);
    };
    return options.margin < 0.0 ||
           std::any_of(options.pair_margins.begin(), options.pair_margins.end(), penetrates);
}

CollisionShape make_collision_shape(std::int32_t object, const AttachedShape& attached,
                                    const CollisionOptions& options) {
    const CoalStructure& structure =
        collision_structure(*attached.shape, attached.level.value_or(options.level));
    CollisionShape shape{structure.geometry(), object, attached.pose * Pose{structure.offset}};
    // Triangles have no depth, so hulls decide for a pair of meshes that may penetrate. A flat mesh
    // has none.
    if (shape.kind == GeometryKind::triangles && needs_depth(options))
        shape.hull = hull_or_null(*attached.shape);
    return shape;
}

CollisionWorld::Rules::Rules(SceneGraph s, CollisionOptions o)
    : scene(std::move(s)), options(std::move(o)), layout(&scene.layout()) {
    check_options(options);
    margins = {0.0, options.margin};
    largest_margin = largest_margin_of(options);
    joint_count = layout->joint_count();
    collect_shapes();
    find_rigid_clusters();
    collect_exceptions();
}

void CollisionWorld::Rules::collect_shapes() {
    object_of.assign(layout->size(), -1);
    for (std::size_t frame = 0; frame < layout->size(); ++frame) {
        const FrameRecord& record = scene.record(layout->ids[frame]);
        if (!record.details) continue;
        for (const AttachedShape& attached : record.details->shapes) {
            if (!attached.collision) continue;
            if (object_of[frame] < 0) {
                object_of[frame] = static_cast<std::int32_t>(object_frame.size());
                object_frame.push_back(static_cast<std::int32_t>(frame));
            }
            shapes.push_back(make_collision_shape(object_of[frame], attached, options));
        }
    }
}

void CollisionWorld::Rules::find_rigid_clusters() {
    std::vector<bool> cut(layout->size(), false);
    for (const std::string& frame : options.movable) cut[scene.frame_number(frame)] = true;
    cluster.resize(layout->size());
    for (const std::int32_t frame : layout->tree().order) {
        const std::int32_t parent = layout->parent[frame];
        const bool joined = parent >= 0 && layout->type[frame] == JointType::fixed && !cut[frame];
        cluster[frame] = joined ? cluster[parent] : layout->ids[frame];
    }
}

// Bodies are rigid clusters too unless a movable edge is inside one, so pairs on one body are
// exceptions.
void CollisionWorld::Rules::collect_exceptions() {
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
        except(object_of[scene.frame_number(pair.a)], object_of[scene.frame_number(pair.b)], 0);
    for (const PairMargin& pair : options.pair_margins) {
        const std::int32_t a = object_of[scene.frame_number(pair.frame_a)];
        const std::int32_t b = object_of[scene.frame_number(pair.frame_b)];
        except(a, b, std::isinf(pair.margin) ? MarginClass{0} : class_of(pair.margin));
    }
    sort_exceptions();
}

// By pair, each once: a forbidden check has priority over a margin.
void CollisionWorld::Rules::sort_exceptions() {
    std::stable_sort(exceptions_.begin(), exceptions_.end());
    std::vector<Exception> kept;
    for (const Exception& e : exceptions_) {
        if (kept.empty() || kept.back() < e) kept.push_back(e);
        else if (kept.back().margin != 0) kept.back() = e;
    }
    exceptions_ = std::move(kept);
    first_exception_.assign(object_frame.size() + 1, 0);
    for (const Exception& e : exceptions_) ++first_exception_[e.a + 1];
    for (std::size_t i = 0; i < object_frame.size(); ++i)
        first_exception_[i + 1] += first_exception_[i];
}

MarginClass CollisionWorld::Rules::class_of(double margin) {
    const auto match = std::find(margins.begin() + 1, margins.end(), margin);
    if (match != margins.end()) return static_cast<MarginClass>(match - margins.begin());
    if (margins.size() > std::numeric_limits<MarginClass>::max())
        throw Error(ErrorKind::configuration, "more than 65534 different pair margins");
    margins.push_back(margin);
    return static_cast<MarginClass>(margins.size() - 1);
}

MarginClass CollisionWorld::Rules::margin_class(std::int32_t a, std::int32_t b) const {
    return a == b || cluster_of(a) == cluster_of(b) ? MarginClass{0} : exception_class(a, b);
}

MarginClass CollisionWorld::Rules::exception_class(std::int32_t a, std::int32_t b) const {
    const auto begin = exceptions_.begin() + first_exception_[a],
               end = exceptions_.begin() + first_exception_[a + 1];
    const auto match = std::lower_bound(begin, end, Exception{a, b, 0});
    return match != end && match->b == b ? match->margin : MarginClass{1};
}

void CollisionWorld::Rules::fill_row(std::int32_t a, FrameId joined, MarginClass* row) const {
    std::fill(row, row + object_count(), MarginClass{1});
    for (std::int32_t e = first_exception_[a]; e < first_exception_[a + 1]; ++e)
        row[exceptions_[e].b] = exceptions_[e].margin;
    for (std::size_t b = 0; b < object_count(); ++b)
        if (cluster_of(static_cast<std::int32_t>(b)) == joined) row[b] = 0;
}

}  // namespace tmkit
