#include "lazy_search.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace tmkit {
namespace {

// Turns of the preferred queue for each decrease of the estimate.
constexpr std::int64_t boost = 1000;
constexpr std::int64_t interruption_period = 256;  // states between two calls of `interrupted`

class LazySearch {
public:
    LazySearch(const ConstrainedTask& task, const TaskFacts& goal, const LazySearchOptions& options)
        : task_(task), goal_(goal), options_(options), relaxation_(task, goal),
          work_(options.work) {}

    TaskSearchResult run(const TaskValues& start) {
        TaskSearchResult result;
        TaskValues state = start;
        std::int64_t nearest = infinite_cost, bound = options_.bound;
        bool is_interrupted = false;
        Edge edge{-1, -1};
        do {
            if (edge.parent >= 0) {
                if (nodes_[edge.parent].cost + operator_of(edge).cost >= bound) continue;
                task_.apply(operator_of(edge), values(edge.parent), state, work_);
            }
            const std::int32_t node = find_node(state, edge);
            if (node < 0) continue;
            if (hold(goal_, values(node)) && nodes_[node].cost < bound) {
                result.operators = path_to(node);
                if (result.status != TaskSearchStatus::solved)
                    work_ = std::min(work_, options_.improvement_work);
                result.status = TaskSearchStatus::solved;
                bound = nodes_[node].cost;
                continue;
            }
            work_ -= task_.rule_count();
            if (work_ < 0) break;
            if (++result.evaluated % interruption_period == 0 && options_.interrupted &&
                *options_.interrupted && (*options_.interrupted)()) {
                is_interrupted = true;
                break;
            }
            const std::int64_t estimate = nodes_[node].estimate =
                relaxation_.evaluate(values(node), preferred_, applicable_);
            if (estimate == infinite_cost) continue;
            if (estimate < nearest) queues_[1].priority -= boost;
            nearest = std::min(nearest, estimate);
            ++result.expanded;
            expand(node);
        } while (pop(edge));
        if (is_interrupted) result.status = TaskSearchStatus::interrupted;
        else if (work_ >= 0 && result.status != TaskSearchStatus::solved)
            result.status = TaskSearchStatus::unsolvable;
        return result;
    }

private:
    struct Edge {
        std::int32_t parent, of;
    };
    struct Node {
        Edge edge;
        std::int64_t cost, estimate;
    };
    struct Entry {
        // Of equal rank, the lower estimate is first.
        std::int64_t rank, estimate, number;
        Edge edge;
        bool operator>(const Entry& other) const {
            return std::tie(rank, estimate, number) >
                   std::tie(other.rank, other.estimate, other.number);
        }
    };
    struct Queue {
        std::vector<Entry> entries;
        std::int64_t priority = 0;
    };
    struct Same {
        const LazySearch* search;
        std::size_t operator()(std::int32_t node) const {
            std::uint64_t hash = 14695981039346656037u;
            for (const std::int32_t* v = search->values(node);
                 v != search->values(node) + search->task_.width(); ++v)
                hash = (hash ^ static_cast<std::uint64_t>(*v)) * 1099511628211u;
            return hash;
        }
        bool operator()(std::int32_t a, std::int32_t b) const {
            return std::equal(search->values(a), search->values(a) + search->task_.width(),
                              search->values(b));
        }
    };

    const std::int32_t* values(std::int32_t node) const {
        return pool_.data() + static_cast<std::size_t>(node) * task_.width();
    }
    const TaskOperator& operator_of(const Edge& edge) const {
        return task_.task().operators[edge.of];
    }

    // The node of a state that is new, or reached at a lower cost; else -1.
    std::int32_t find_node(const TaskValues& state, const Edge& edge) {
        const std::int64_t cost =
            edge.parent < 0 ? 0 : nodes_[edge.parent].cost + operator_of(edge).cost;
        const auto node = static_cast<std::int32_t>(nodes_.size());
        pool_.insert(pool_.end(), state.begin(), state.end());
        const auto [old_node, is_new] = known_.insert(node);
        if (is_new) {
            nodes_.push_back({edge, cost, -1});
            return node;
        }
        pool_.resize(pool_.size() - task_.width());
        if (cost >= nodes_[*old_node].cost || nodes_[*old_node].estimate == infinite_cost)
            return -1;
        nodes_[*old_node].edge = edge;
        nodes_[*old_node].cost = cost;
        return *old_node;
    }

    void expand(std::int32_t node) {
        const std::int64_t estimate = nodes_[node].estimate;
        const std::int64_t rank = nodes_[node].cost + options_.weight * estimate;
        auto preferred = preferred_.begin();
        for (const std::int32_t of : applicable_) {
            const bool is_preferred = preferred != preferred_.end() && *preferred == of;
            if (is_preferred) ++preferred;
            for (int q = 0; q <= static_cast<int>(is_preferred); ++q) {
                queues_[q].entries.push_back({rank, estimate, count_, {node, of}});
                std::push_heap(queues_[q].entries.begin(), queues_[q].entries.end(),
                               std::greater<>());
            }
            ++count_;
        }
    }

    bool pop(Edge& edge) {
        Queue& queue =
            queues_[queues_[0].entries.empty() ||
                    (!queues_[1].entries.empty() && queues_[1].priority <= queues_[0].priority)];
        if (queue.entries.empty()) return false;
        std::pop_heap(queue.entries.begin(), queue.entries.end(), std::greater<>());
        edge = queue.entries.back().edge;
        queue.entries.pop_back();
        ++queue.priority;
        return --work_ >= 0;
    }

    std::vector<std::int32_t> path_to(std::int32_t node) const {
        std::vector<std::int32_t> path;
        for (; nodes_[node].edge.parent >= 0; node = nodes_[node].edge.parent)
            path.push_back(nodes_[node].edge.of);
        std::ranges::reverse(path);
        return path;
    }

    const ConstrainedTask& task_;
    const TaskFacts& goal_;
    const LazySearchOptions& options_;
    RelaxedPlanner relaxation_;
    std::int64_t work_;
    TaskValues pool_;  // the values of all nodes
    std::vector<Node> nodes_;
    std::unordered_set<std::int32_t, Same, Same> known_{16, Same{this}, Same{this}};
    std::vector<std::int32_t> preferred_, applicable_;
    Queue queues_[2];  // of all successors, and of those by preferred operators
    std::int64_t count_ = 0;
};

}  // namespace

TaskSearchResult search_lazily(const ConstrainedTask& task, const TaskValues& start,
                               const TaskFacts& goal, const LazySearchOptions& options) {
    return LazySearch(task, goal, options).run(start);
}

}  // namespace tmkit
