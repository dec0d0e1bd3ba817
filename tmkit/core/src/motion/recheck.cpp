// The final check of a path: finer than the search, and bounded in what the tool travels between two checks.
#include <algorithm>
#include <cmath>
#include <optional>

#include "tmkit/path_search.hpp"

namespace tmkit {
namespace {

std::vector<std::int32_t> changing_entries(const Configurations& path) {
    std::vector<std::int32_t> entries;
    for (std::size_t i = 0; i < path.front().size(); ++i)
        if (std::any_of(path.begin(), path.end(), [&](const auto& q) { return q[i] != path.front()[i]; }))
            entries.push_back(static_cast<std::int32_t>(i));
    return entries;
}

// Fills q on the way from a to b; exact at both ends.
void interpolate(const std::vector<double>& a, const std::vector<double>& b, std::int64_t k, std::int64_t steps,
                 std::vector<double>& q) {
    const double fraction = static_cast<double>(k) / static_cast<double>(steps);
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = k == steps ? b[i] : a[i] + fraction * (b[i] - a[i]);
}

class Rechecker {
public:
    Rechecker(const CollisionWorld& world, const Configurations& path, const RecheckOptions& options)
        : options_(options), path_(path), entries_(changing_entries(path)),
          view_(world.view(mask(entries_, path.front().size()), path.front().data())), scratch_(view_.scratch()),
          q_(path.front()) {
        const Layout& layout = world.scene().layout();
        if (options.tool_frame >= 0)
            tool_.emplace(layout, options.tool_frame, layout.root[options.tool_frame], entries_, path.front().data());
    }

    static std::vector<bool> mask(const std::vector<std::int32_t>& entries, std::size_t size) {
        std::vector<bool> moves(size, false);
        for (const std::int32_t entry : entries) moves[entry] = true;
        return moves;
    }

    // Steps of a segment that satisfy both bounds. The tool's chords are measured and the steps refined until they fit.
    std::int64_t steps(std::size_t segment) {
        const auto &a = path_[segment], &b = path_[segment + 1];
        std::int64_t count = edge_steps(a.data(), b.data(), a.size(), options_.resolution);
        if (!tool_) return count;
        for (double longest = longest_chord(a, b, count); longest > options_.tool_travel;
             longest = longest_chord(a, b, count))
            count = static_cast<std::int64_t>(std::ceil(1.02 * static_cast<double>(count) * longest / options_.tool_travel));
        return count;
    }

    // The first collision among the samples 1 .. steps of a segment; `result` counts and receives it.
    bool segment_fails(std::size_t segment, RecheckResult& result, const std::function<bool()>& interrupted) {
        const std::int64_t count = steps(segment);
        for (std::int64_t k = 1; k <= count; ++k) {
            interpolate(path_[segment], path_[segment + 1], k, count, q_);
            if (++result.checks % 4096 == 0 && interrupted && interrupted()) return true;
            if (const FramePair pair = view_.find_collision(q_.data(), scratch_)) {
                result.status = RecheckStatus::collision;
                result.pair = pair;
                result.segment = static_cast<std::int64_t>(segment);
                result.fraction = static_cast<double>(k) / static_cast<double>(count);
                result.q = q_;
                return true;
            }
        }
        return false;
    }

private:
    double longest_chord(const std::vector<double>& a, const std::vector<double>& b, std::int64_t count) {
        double longest = 0.0;
        Vector3 last = tool_at(a);
        for (std::int64_t k = 1; k <= count; ++k) {
            interpolate(a, b, k, count, q_);
            const Vector3 at = tool_at(q_);
            longest = std::max(longest, norm(at - last));
            last = at;
        }
        return longest;
    }

    Vector3 tool_at(const std::vector<double>& q) {
        x_.resize(entries_.size());
        for (std::size_t i = 0; i < entries_.size(); ++i) x_[i] = q[entries_[i]];
        Matrix3 rotation;
        Vector3 translation;
        tool_->forward(x_.data(), rotation, translation);
        return translation;
    }

    const RecheckOptions& options_;
    const Configurations& path_;
    std::vector<std::int32_t> entries_;
    CollisionView view_;
    CollisionView::Scratch scratch_;
    std::optional<Chain> tool_;
    std::vector<double> q_, x_;
};

}  // namespace

std::int32_t find_out_of_limits(const SceneGraph& scene, const std::vector<std::int32_t>& entries, const double* q) {
    for (const std::int32_t entry : entries) {
        const Joint& joint = joint_of_entry(scene, entry);
        if (joint.type == JointType::continuous) continue;
        if (!(q[entry] >= joint.lower - limit_tolerance && q[entry] <= joint.upper + limit_tolerance)) return entry;
    }
    return -1;
}

RecheckResult recheck_path(const CollisionWorld& world, const Configurations& path, const RecheckOptions& options,
                           const std::function<bool()>& interrupted) {
    RecheckResult result;
    if (path.empty()) return result;
    const std::vector<std::int32_t> entries = changing_entries(path);
    const auto out_of_limits = [&](std::size_t row) {
        result.joint = find_out_of_limits(world.scene(), entries, path[row].data());
        if (result.joint < 0) return false;
        result.status = RecheckStatus::out_of_limits;
        result.segment = row == 0 ? 0 : static_cast<std::int64_t>(row) - 1;
        result.fraction = row == 0 ? 0.0 : 1.0;
        result.q = path[row];
        return true;
    };
    if (out_of_limits(0)) return result;
    ++result.checks;
    if (const FramePair pair = world.find_collision(path[0].data())) {
        result.status = RecheckStatus::collision;
        result.pair = pair;
        result.segment = 0;
        result.q = path[0];
        return result;
    }
    Rechecker rechecker(world, path, options);
    for (std::size_t segment = 0; segment + 1 < path.size(); ++segment)
        if (rechecker.segment_fails(segment, result, interrupted) || out_of_limits(segment + 1)) break;
    return result;
}

}  // namespace tmkit
