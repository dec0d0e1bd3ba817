// Final check of a path: finer than the search, and with a bound on the tool's travel between two
// checks.
#include <algorithm>
#include <cmath>
#include <optional>

#include "tmkit/path_search.hpp"

namespace tmkit {
namespace {

std::vector<std::int32_t> changing_entries(const Configurations& path) {
    std::vector<std::int32_t> entries;
    for (std::size_t i = 0; i < path.front().size(); ++i)
        if (std::any_of(path.begin(), path.end(),
                        [&](const auto& q) { return q[i] != path.front()[i]; }))
            entries.push_back(static_cast<std::int32_t>(i));
    return entries;
}

class Rechecker {
public:
    Rechecker(const CollisionWorld& world, const Configurations& path,
              const RecheckOptions& options)
        : options_(options), path_(path), entries_(changing_entries(path)),
          view_(world, entries_, path.front().data()), scratch_(view_.scratch()), q_(path.front()),
          x_(entries_.size()) {
        const Layout& layout = world.scene().layout();
        if (options.tool_frame >= 0)
            tool_.emplace(layout, options.tool_frame, layout.root[options.tool_frame], entries_,
                          path.front().data());
    }

    // Find the first collision on a segment after its start; `result` counts and receives it. Also
    // true if interrupted. The step is the longest within both bounds, predicted from the step
    // before and shortened if the tool travels too far.
    bool segment_fails(std::size_t segment, RecheckResult& result,
                       const std::function<bool()>& interrupted) {
        from_ = path_[segment].data();
        to_ = path_[segment + 1].data();
        segment_ = segment;
        const double longest =
            1.0 / static_cast<double>(edge_steps(from_, to_, q_.size(), options_.resolution));
        Sample last = sample(0.0);
        for (double step = longest; last.fraction < 1.0;) {
            Sample next = sample(std::min(1.0, last.fraction + step));
            double travel = norm(next.tool - last.tool);
            for (; travel > options_.tool_travel; travel = norm(next.tool - last.tool)) {
                step = almost * (next.fraction - last.fraction) * options_.tool_travel / travel;
                // No number is between the two.
                if (last.fraction + step <= last.fraction) break;
                next = sample(last.fraction + step);
            }
            if (sample_fails(next.fraction, result, interrupted)) return true;
            const double growth =
                travel > 0.0 ? almost * options_.tool_travel / travel : most_growth;
            step =
                std::min(longest, (next.fraction - last.fraction) * std::min(growth, most_growth));
            last = next;
            if (last.fraction + step <= last.fraction) step = longest;
        }
        return false;
    }

private:
    static constexpr double almost = 0.98, most_growth = 2.0;

    // A configuration on the segment, with the position of the tool's origin.
    struct Sample {
        double fraction;
        Vector3 tool;
    };

    // Only the last sample can be checked.
    Sample sample(double fraction) {
        for (std::size_t i = 0; i < entries_.size(); ++i)
            x_[i] = q_[static_cast<std::size_t>(entries_[i])] =
                at(static_cast<std::size_t>(entries_[i]), fraction);
        Sample new_sample{fraction, {}};
        Matrix3 rotation;
        if (tool_) tool_->forward(x_.data(), rotation, new_sample.tool);
        return new_sample;
    }

    double at(std::size_t entry, double fraction) const {
        return fraction == 1.0 ? to_[entry] : from_[entry] + fraction * (to_[entry] - from_[entry]);
    }

    bool sample_fails(double fraction, RecheckResult& result,
                      const std::function<bool()>& interrupted) {
        if (++result.checks % 4096 == 0 && interrupted && interrupted()) return true;
        const FramePair pair = view_.find_collision(q_.data(), scratch_);
        if (!pair) return false;
        result.status = RecheckStatus::collision;
        result.pair = pair;
        result.segment = static_cast<std::int64_t>(segment_);
        result.fraction = fraction;
        result.q = q_;
        return true;
    }

    const RecheckOptions& options_;
    const Configurations& path_;
    std::vector<std::int32_t> entries_;
    CollisionView view_;
    CollisionView::Scratch scratch_;
    std::optional<Chain> tool_;
    std::vector<double> q_, x_;
    const double *from_ = nullptr, *to_ = nullptr;  // the ends of the segment
    std::size_t segment_ = 0;
};

}  // namespace

std::int32_t find_out_of_limits(const std::vector<EntryLimits>& limits,
                                const std::vector<std::int32_t>& entries, const double* q) {
    for (const std::int32_t entry : entries) {
        const auto& [lower, upper, velocity, effort] = limits[entry];
        if (!(q[entry] >= lower - limit_tolerance && q[entry] <= upper + limit_tolerance))
            return entry;
    }
    return -1;
}

RecheckResult recheck_path(const CollisionWorld& world, const Configurations& path,
                           const RecheckOptions& options,
                           const std::function<bool()>& interrupted) {
    RecheckResult result;
    if (path.empty()) return result;
    const std::vector<std::int32_t> entries = changing_entries(path);
    const std::vector<EntryLimits> limits = world.scene().entry_limits();
    const auto out_of_limits = [&](std::size_t row) {
        result.joint = find_out_of_limits(limits, entries, path[row].data());
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
        if (rechecker.segment_fails(segment, result, interrupted) || out_of_limits(segment + 1))
            break;
    return result;
}

}  // namespace tmkit
