// RRT-Connect.
#include "tmkit/path_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "collision/lanes.hpp"
#include "search/path_checker.hpp"
#include "tmkit/random.hpp"

namespace tmkit {
namespace {

// Nodes of a search tree. Nearest neighbours by a scan, of eight nodes at once: with the few
// thousand nodes of a query, it costs less than one edge check.
class Tree {
public:
    explicit Tree(std::size_t size) : size_(size) {}

    std::int32_t add(const double* x, std::int32_t parent) {
        const std::int32_t number = count(), lane = number % lanes::width;
        if (lane == 0) blocks_.resize(blocks_.size() + size_, {lanes::Floats{} + lanes::endless});
        Coordinate* block = blocks_.data() + (blocks_.size() - size_);
        for (std::size_t k = 0; k < size_; ++k) block[k].of[lane] = static_cast<float>(x[k]);
        coordinates_.insert(coordinates_.end(), x, x + size_);
        nodes_.push_back({parent, 0});
        return number;
    }

    const double* at(std::int32_t node) const {
        return coordinates_.data() + std::size_t(node) * size_;
    }
    std::int32_t count() const { return static_cast<std::int32_t>(nodes_.size()); }

    // To single precision.
    std::int32_t nearest(const double* point) const {
        return lanes::kernels().nearest(&blocks_.data()->of, blocks_.size() / size_, size_, point);
    }

    // Draw a node, more likely one that was drawn seldom: of a few, the one that was drawn least.
    std::int32_t draw(Random& random) {
        constexpr int few = 4;
        std::int32_t least = 0;
        for (int i = 0; i < few; ++i) {
            const auto node = static_cast<std::int32_t>(random.below(std::uint64_t(count())));
            if (i == 0 || nodes_[node].draws < nodes_[least].draws) least = node;
        }
        ++nodes_[least].draws;
        return least;
    }

    // From the node to the root of its tree.
    Points path(std::int32_t node) const {
        Points points;
        for (; node >= 0; node = nodes_[node].parent)
            points.emplace_back(at(node), at(node) + size_);
        return points;
    }

private:
    struct Node {
        std::int32_t parent, draws;
    };
    struct Coordinate {
        lanes::Floats of;
    };
    std::size_t size_;
    std::vector<Node> nodes_;
    std::vector<double> coordinates_;
    std::vector<Coordinate> blocks_;  // of eight nodes: by block, by coordinate
};

// --- searching

class Search {
public:
    Search(PathChecker& checker, const std::vector<std::array<double, 2>>& ranges,
           const PathSettings& settings)
        : checker_(checker), ranges_(ranges), settings_(settings), size_(checker.size()),
          random_(settings.seed, 2), starts_(size_), goals_(size_), step_(size_),
          targets_(CollisionView::together, step_), ends_(targets_) {}

    // Return a free path from the start to one of the goals, or nullopt.
    std::optional<Points> run(const std::vector<double>& start, const Points& goals,
                              const std::vector<Points>& known_paths, std::int64_t& iterations) {
        for (const std::vector<double>& goal : goals) {
            if (Points path{start}; checker_.connect(start.data(), goal.data(), path, true))
                return path;
            if (&goal == goals.data()) straight_ = checker_.last_blocking();
        }
        for (const Points& path : known_paths)
            if (path.size() > 1 && is_free(path)) return path;
        starts_.add(start.data(), -1);
        for (const std::vector<double>& goal : goals) goals_.add(goal.data(), -1);
        Tree* grows = &starts_;
        Tree* joins = &goals_;
        std::size_t together = 1;
        while (iterations < settings_.max_iterations && !checker_.should_stop()) {
            // The smaller tree grows: otherwise the one in free space fills up, and the one in a
            // narrow region does not grow.
            if (grows->count() > joins->count()) std::swap(grows, joins);
            const auto count = static_cast<std::size_t>(std::min<std::int64_t>(
                std::int64_t(together), settings_.max_iterations - iterations));
            iterations += std::int64_t(count);
            const unsigned open = draw_steps(*grows, *joins, count);
            bool is_grown = false;
            for (std::size_t i = 0; i < count; ++i) {
                if (!(open >> i & 1)) continue;
                const std::int32_t node = extend(*grows, from_[i], targets_[i].data());
                if (node < 0) continue;
                is_grown = true;
                const std::vector<double> meeting(grows->at(node), grows->at(node) + size_);
                const std::int32_t join_to_ends = connect(*joins, meeting);
                if (join_to_ends >= 0)
                    return grows == &starts_ ? join_trees(node, join_to_ends)
                                             : join_trees(join_to_ends, node);
            }
            if (!checker_.constraints().empty()) continue;
            together = is_grown ? std::max<std::size_t>(together / 2, 1)
                                : std::min(2 * together, CollisionView::together);
        }
        return std::nullopt;
    }

    FramePair straight() const { return straight_; }

private:
    bool is_free(const Points& path) {
        for (std::size_t i = 0; i + 1 < path.size(); ++i)
            if (!checker_.edge_is_free(path[i].data(), path[i + 1].data(), i + 2 == path.size()) ||
                !checker_.constraints().keeps(path[i].data(), path[i + 1].data()))
                return false;
        return true;
    }

    // Draw targets of steps from their nearest nodes; return the steps to check, as bits. Of
    // several, those whose ends certainly collide are excluded: this costs as much as one check.
    unsigned draw_steps(Tree& tree, Tree& opposite, std::size_t count) {
        unsigned open = 0;
        for (std::size_t i = 0; i < count; ++i) {
            double* target = targets_[i].data();
            draw(tree, opposite, target);
            if (!checker_.constraints().empty() && !checker_.constraints().project(target))
                continue;
            open |= 1u << i;
            from_[i] = tree.nearest(target);
            if (count == 1) continue;
            step_towards(tree.at(from_[i]), target);
            ends_[i] = step_;
        }
        return count > 1 ? open & ~checker_.find_blocked(ends_, count) : open;
    }

    // Draw a target near a node of the tree, which expands it, or one time in eight near a node of
    // the other tree, where the two may meet. Where there is little room, steps towards targets in
    // the whole range mostly collide.
    void draw(Tree& tree, Tree& opposite, double* target) {
        Tree& drawn = random_.below(8) == 0 ? opposite : tree;
        const double* center = drawn.at(drawn.draw(random_));
        const double radius = settings_.step * random_.uniform(1.0, 2.0);
        for (std::size_t k = 0; k < size_; ++k)
            target[k] = random_.uniform(std::max(ranges_[k][0], center[k] - radius),
                                        std::min(ranges_[k][1], center[k] + radius));
    }

    // Compute the end of a step, and whether it reaches x; return their distance.
    double step_towards(const double* a, const double* x) {
        const double distance = tmkit::distance(a, x, size_);
        reached_ = distance <= settings_.step;
        const double fraction = reached_ ? 1.0 : settings_.step / distance;
        for (std::size_t i = 0; i < size_; ++i)
            step_[i] = reached_ ? x[i] : a[i] + fraction * (x[i] - a[i]);
        return distance;
    }

    // Take one step from a node towards x, or the whole way if it is near; return the new node, or
    // -1 for a collision. With constraints the step is projected, and must approach x by a minimum
    // fraction of its length.
    std::int32_t extend(Tree& tree, std::int32_t from, const double* x) {
        const double* a = tree.at(from);
        const double distance = step_towards(a, x);
        if (!reached_ && !checker_.constraints().empty() &&
            !(checker_.constraints().project(step_.data()) &&
              tmkit::distance(step_.data(), x, size_) <= distance - 0.2 * settings_.step))
            return -1;
        points_.clear();
        if (!checker_.connect(a, step_.data(), points_)) return -1;
        for (const std::vector<double>& point : points_) from = tree.add(point.data(), from);
        return from;
    }

    // Step towards a point until it is reached; return the node there, or -1.
    std::int32_t connect(Tree& tree, const std::vector<double>& point) {
        std::int32_t node = tree.nearest(point.data());
        do {
            node = extend(tree, node, point.data());
        } while (node >= 0 && !reached_);
        return node;
    }

    Points join_trees(std::int32_t start_node, std::int32_t goal_node) const {
        Points path = starts_.path(start_node);
        std::reverse(path.begin(), path.end());
        const Points goal_part = goals_.path(goal_node);
        path.insert(path.end(), goal_part.begin() + 1, goal_part.end());
        return path;
    }

    PathChecker& checker_;
    const std::vector<std::array<double, 2>>& ranges_;
    const PathSettings& settings_;
    std::size_t size_;
    Random random_;
    Tree starts_, goals_;
    std::vector<double> step_;
    // Of the steps of one round: the nodes, the targets and the ends.
    std::array<std::int32_t, CollisionView::together> from_{};
    Points targets_, ends_;
    Points points_;
    bool reached_ = false;
    FramePair straight_;
};

// Common data of all attempts of a query: the moving values, shifted by whole turns, and the
// sampling region.
class QueryPlanner {
public:
    QueryPlanner(const CollisionWorld& world, const PathQuery& query, const PathSettings& settings,
                 const std::function<bool()>& interrupted)
        : world_(world), query_(query), entries_(query.entries), start_(query.start),
          settings_(settings), limits_(world.scene().entry_limits()),
          checker_(world, query, settings, interrupted) {
        for (const std::int32_t entry : entries_) x_start_.push_back(start_[entry]);
        for (const std::vector<double>& goal : query.goals) {
            std::vector<double> x;
            for (const std::int32_t entry : entries_) x.push_back(near_start(entry, goal[entry]));
            x_goals_.push_back(std::move(x));
        }
    }

    PathResult run() {
        if (ends_are_valid()) search();
        result_.checks += checker_.checks();
        result_.blocking = checker_.blocking().sorted();
        return std::move(result_);
    }

private:
    bool is_limited(std::int32_t entry) const {
        return std::isfinite(limits_[entry].lower) || std::isfinite(limits_[entry].upper);
    }

    double near_start(std::int32_t entry, double value) const {
        if (joint_of_entry(world_.scene(), entry).type != JointType::continuous ||
            is_limited(entry))
            return value;
        return value - 2.0 * std::numbers::pi *
                           std::round((value - start_[entry]) / (2.0 * std::numbers::pi));
    }

    bool start_is_valid() {
        result_.joint = find_out_of_limits(limits_, entries_, start_.data());
        if (result_.joint >= 0) return fails(PathStatus::start_out_of_limits);
        ++result_.checks;
        result_.pair = world_.find_collision(start_.data());
        if (result_.pair) return fails(PathStatus::start_in_collision);
        if (checker_.constraints().keeps(x_start_.data(), x_start_.data())) return true;
        return fails(PathStatus::start_violates_constraint);
    }

    // Check start and goals; goal_index_ receives the numbers of usable goals.
    bool ends_are_valid() {
        if (!start_is_valid()) return false;
        const ConstraintSet& constraints = checker_.constraints();
        FramePair in_way;
        std::int32_t outside = -1;
        for (std::size_t i = 0; i < x_goals_.size(); ++i) {
            const std::int32_t joint =
                find_out_of_limits(limits_, entries_, checker_.full(x_goals_[i].data()).data());
            const FramePair pair =
                joint < 0 ? checker_.find_collision(x_goals_[i].data()) : FramePair{};
            if (joint < 0 && !pair && constraints.keeps(x_goals_[i].data(), x_goals_[i].data()))
                goal_index_.push_back(static_cast<std::int64_t>(i));
            if (pair && !in_way) in_way = pair;
            if (joint >= 0 && outside < 0) outside = joint;
        }
        if (!goal_index_.empty()) return true;
        result_.pair = in_way;
        if (in_way) return fails(PathStatus::goal_in_collision);
        result_.joint = outside;
        return fails(outside >= 0 ? PathStatus::goal_out_of_limits
                                  : PathStatus::goal_violates_constraint);
    }

    bool fails(PathStatus status) {
        result_.status = status;
        return false;
    }

    std::vector<std::array<double, 2>> sampling_ranges() const {
        std::vector<std::array<double, 2>> ranges;
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            const Joint& joint = joint_of_entry(world_.scene(), entries_[i]);
            double lower = x_start_[i], upper = x_start_[i];
            for (const std::vector<double>& goal : valid_) {
                lower = std::min(lower, goal[i]);
                upper = std::max(upper, goal[i]);
            }
            const double around = joint.type == JointType::prismatic ? 1.0 : std::numbers::pi;
            const EntryLimits& limits = limits_[entries_[i]];
            ranges.push_back({std::isfinite(limits.lower) ? limits.lower : lower - around,
                              std::isfinite(limits.upper) ? limits.upper : upper + around});
        }
        return ranges;
    }

    void search() {
        sort_goals();
        const std::vector<std::array<double, 2>> ranges = sampling_ranges();
        std::vector<Points> known_paths;
        for (const Configurations& path : query_.known) known_paths.push_back(join_to_ends(path));
        Search search(checker_, ranges, settings_);
        std::optional<Points> path = search.run(x_start_, valid_, known_paths, result_.iterations);
        result_.straight = search.straight();
        // Of a known path with its own ends, no corner is new.
        const auto match =
            path ? std::find(known_paths.begin(), known_paths.end(), *path) : known_paths.end();
        const bool is_new =
            match == known_paths.end() ||
            match->size() > query_.known[std::size_t(match - known_paths.begin())].size();
        if (path && path->size() > 2 && is_new)
            shorten_path(*path, checker_, settings_.shortcut_iterations);
        if (path && checker_.stop_reason() != PathStatus::interrupted) accept(*path);
        else result_.status = checker_.should_stop() ? checker_.stop_reason() : PathStatus::no_path;
    }

    // The moving values of a path, shifted by whole turns so that its beginning is nearest to the
    // start, from the start to the goal nearest to its end.
    Points join_to_ends(const Configurations& path) const {
        constexpr double same = 1e-9;
        Points points;
        for (const std::vector<double>& q : path) {
            std::vector<double>& x = points.emplace_back();
            for (const std::int32_t entry : entries_)
                x.push_back(q[entry] +
                            (near_start(entry, path.front()[entry]) - path.front()[entry]));
        }
        if (points.empty()) return {};
        const auto nearer = [&](const auto& a, const auto& b) {
            return distance(points.back(), a) < distance(points.back(), b);
        };
        const std::vector<double>& goal = *std::min_element(valid_.begin(), valid_.end(), nearer);
        for (const bool at_end : {false, true}) {
            const std::vector<double>& end = at_end ? goal : x_start_;
            if (distance(at_end ? points.back() : points.front(), end) <= same)
                (at_end ? points.back() : points.front()) = end;
            else points.insert(at_end ? points.end() : points.begin(), end);
        }
        return points;
    }

    // Sort the goals for the straight tries, the nearest first; stable for equal distances.
    void sort_goals() {
        const auto distance = [&](std::int64_t goal) {
            return path_length({x_start_, x_goals_[goal]});
        };
        std::stable_sort(goal_index_.begin(), goal_index_.end(),
                         [&](std::int64_t a, std::int64_t b) { return distance(a) < distance(b); });
        for (const std::int64_t goal : goal_index_) valid_.push_back(x_goals_[goal]);
    }

    void accept(const Points& points) {
        for (const std::vector<double>& x : points) result_.path.push_back(checker_.full(x.data()));
        result_.status = PathStatus::solved;
        result_.length = path_length(points);
        const auto match = std::find(valid_.begin(), valid_.end(), points.back());
        result_.goal_index = goal_index_[static_cast<std::size_t>(match - valid_.begin())];
    }

    const CollisionWorld& world_;
    const PathQuery& query_;
    const std::vector<std::int32_t>& entries_;
    const std::vector<double>& start_;
    const PathSettings& settings_;
    const std::vector<EntryLimits> limits_;
    PathChecker checker_;
    std::vector<double> x_start_;
    Points x_goals_, valid_;
    std::vector<std::int64_t> goal_index_;
    PathResult result_;
};

}  // namespace

double path_length(const Points& path) {
    double length = 0.0;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) length += distance(path[i], path[i + 1]);
    return length;
}

PathResult search_path(const CollisionWorld& world, const PathQuery& query,
                       const PathSettings& settings, const std::function<bool()>& interrupted) {
    PathQuery clamped = query;
    const std::vector<EntryLimits> limits = world.scene().entry_limits();
    clamp_to_limits(world.scene(), limits, query.entries, clamped.start);
    for (std::vector<double>& goal : clamped.goals)
        clamp_to_limits(world.scene(), limits, query.entries, goal);
    return QueryPlanner(world, clamped, settings, interrupted).run();
}

}  // namespace tmkit
