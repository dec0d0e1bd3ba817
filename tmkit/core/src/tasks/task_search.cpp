#include "tmkit/task_search.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_set>

namespace tmkit {
namespace {

constexpr std::int64_t infinite = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::int64_t boost = 1000;  // turns of the preferred queue for each step nearer to the goal

bool hold(const TaskFacts& facts, const std::int32_t* state) {
    return std::ranges::all_of(facts, [&](const TaskFact& f) { return state[f.variable] == f.value; });
}

// The task without delete effects: rules that add one fact each.
class Relaxation {
public:
    explicit Relaxation(const Task& task) : task_(task) {
        for (const std::int32_t size : task.domains) {
            offsets_.push_back(fact_count_);
            fact_count_ += size;
        }
        for (std::size_t i = 0; i < task.operators.size(); ++i) {
            const TaskOperator& o = task.operators[i];
            for (const TaskEffect& effect : o.effects) {
                std::vector<std::int32_t> needs = numbers(o.needs);
                for (const TaskFact& f : effect.conditions) needs.push_back(number(f));
                add(std::move(needs), number(effect.fact), static_cast<std::int32_t>(i), o.cost);
            }
        }
        for (const TaskEffect& axiom : task.axioms) add(numbers(axiom.conditions), number(axiom.fact), -1, 0);
        for (std::size_t v = 0; v < task.layers.size(); ++v)
            if (task.layers[v] >= 0) add_negation(static_cast<std::int32_t>(v));
        needed_by_.resize(fact_count_);
        for (std::size_t r = 0; r < rules_.size(); ++r)
            for (const std::int32_t fact : rules_[r].needs) needed_by_[fact].push_back(static_cast<std::int32_t>(r));
    }

    std::size_t size() const { return rules_.size(); }

    // The cost of a relaxed plan, infinite when there is none, and the operators of it that apply at once.
    std::int64_t judge(const std::int32_t* state, std::vector<std::int32_t>& preferred) {
        reach(state);
        preferred.clear();
        std::vector<std::int32_t> open = numbers(task_.goal), used;
        for (const std::int32_t fact : open)
            if (costs_[fact] == infinite) return infinite;
        std::vector<bool> seen(fact_count_);
        while (!open.empty()) {
            const std::int32_t fact = open.back();
            open.pop_back();
            if (seen[fact] || supporters_[fact] < 0) continue;
            seen[fact] = true;
            const Rule& rule = rules_[supporters_[fact]];
            open.insert(open.end(), rule.needs.begin(), rule.needs.end());
            if (rule.of >= 0) used.push_back(rule.of);
        }
        std::ranges::sort(used);
        used.erase(std::unique(used.begin(), used.end()), used.end());
        std::int64_t cost = 0;
        for (const std::int32_t i : used) {
            cost += task_.operators[i].cost;
            if (hold(task_.operators[i].needs, state)) preferred.push_back(i);
        }
        return cost;
    }

private:
    struct Rule {
        std::vector<std::int32_t> needs;
        std::int32_t fact, of;  // the operator, -1 for an axiom
        std::int64_t cost;
    };

    std::int32_t number(const TaskFact& f) const { return offsets_[f.variable] + f.value; }
    std::vector<std::int32_t> numbers(const TaskFacts& facts) const {
        std::vector<std::int32_t> found;
        for (const TaskFact& f : facts) found.push_back(number(f));
        return found;
    }

    // A need that is named twice counts once.
    void add(std::vector<std::int32_t> needs, std::int32_t fact, std::int32_t of, std::int64_t cost) {
        std::ranges::sort(needs);
        needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
        rules_.push_back({std::move(needs), fact, of, cost});
    }

    // A derived variable keeps its first value while each axiom for it is broken by one of its conditions.
    void add_negation(std::int32_t v) {
        std::vector<std::int32_t> broken;
        bool recursive = false;
        const auto is_derived_here = [&](const TaskFact& f) { return task_.layers[f.variable] >= task_.layers[v]; };
        for (const TaskEffect& axiom : task_.axioms)
            recursive |= axiom.fact.variable == v && std::ranges::any_of(axiom.conditions, is_derived_here);
        for (const TaskEffect& axiom : task_.axioms) {
            if (axiom.fact.variable != v || recursive) continue;
            broken.push_back(fact_count_++);  // a fact of the relaxation alone
            for (const TaskFact& f : axiom.conditions)
                for (std::int32_t other = 0; other < task_.domains[f.variable]; ++other)
                    if (other != f.value) add({number({f.variable, other})}, broken.back(), -1, 0);
        }
        add(std::move(broken), number({v, task_.init[v]}), -1, 0);
    }

    void reach(const std::int32_t* state) {
        costs_.assign(fact_count_, infinite);
        supporters_.assign(fact_count_, -1);
        left_.resize(rules_.size());
        sums_.resize(rules_.size());
        queue_.clear();
        for (std::size_t v = 0; v < offsets_.size(); ++v) push(offsets_[v] + state[v], 0, -1);
        for (std::size_t r = 0; r < rules_.size(); ++r) {
            left_[r] = static_cast<std::int32_t>(rules_[r].needs.size());
            sums_[r] = rules_[r].cost;
            if (left_[r] == 0) push(rules_[r].fact, sums_[r], static_cast<std::int32_t>(r));
        }
        while (!queue_.empty()) {
            std::ranges::pop_heap(queue_, std::greater<>());
            const auto [cost, fact] = queue_.back();
            queue_.pop_back();
            if (cost > costs_[fact]) continue;
            for (const std::int32_t r : needed_by_[fact]) {
                sums_[r] = std::min(infinite - 1, sums_[r] + cost);
                if (--left_[r] == 0) push(rules_[r].fact, sums_[r], r);
            }
        }
    }

    void push(std::int32_t fact, std::int64_t cost, std::int32_t supporter) {
        if (cost >= costs_[fact]) return;
        costs_[fact] = cost;
        supporters_[fact] = supporter;
        queue_.emplace_back(cost, fact);
        std::ranges::push_heap(queue_, std::greater<>());
    }

    const Task& task_;
    std::vector<std::int32_t> offsets_;
    std::int32_t fact_count_ = 0;
    std::vector<Rule> rules_;
    std::vector<std::vector<std::int32_t>> needed_by_;
    std::vector<std::int64_t> costs_, sums_;
    std::vector<std::int32_t> supporters_, left_;
    std::vector<std::pair<std::int64_t, std::int32_t>> queue_;
};

class Search {
public:
    Search(const Task& task, std::int64_t work) : task_(task), relaxation_(task), work_(work) {
        for (const TaskEffect& axiom : task.axioms) {
            const auto layer = static_cast<std::size_t>(task.layers[axiom.fact.variable]);
            if (axioms_.size() <= layer) axioms_.resize(layer + 1);
            axioms_[layer].push_back(&axiom);
        }
    }

    TaskSearchResult run(std::int64_t improvement_work) {
        TaskSearchResult result;
        std::vector<std::int32_t> state = task_.init;
        derive(state.data());
        std::int64_t nearest = infinite, bound = infinite;
        Edge edge{-1, -1};
        do {
            if (edge.parent >= 0) {
                if (nodes_[edge.parent].cost + task_.operators[edge.of].cost >= bound) continue;
                apply(task_.operators[edge.of], edge.parent, state);
            }
            const std::int32_t node = reached(state, edge);
            if (node < 0) continue;
            if (hold(task_.goal, values(node))) {
                result.status = TaskSearchStatus::solved;
                result.operators = path_to(node);
                if (bound == infinite) work_ = std::min(work_, improvement_work);
                bound = nodes_[node].cost;
                continue;
            }
            work_ -= static_cast<std::int64_t>(relaxation_.size());
            if (work_ < 0) break;
            ++result.evaluated;
            const std::int64_t estimate = nodes_[node].estimate = relaxation_.judge(values(node), preferred_);
            if (estimate == infinite) continue;
            if (estimate < nearest) queues_[1].priority -= boost;
            nearest = std::min(nearest, estimate);
            ++result.expanded;
            expand(node);
        } while (pop(edge));
        if (work_ >= 0 && bound == infinite) result.status = TaskSearchStatus::unsolvable;
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
        std::int64_t rank, estimate, number;  // of two that rank alike, the nearer to the goal is first
        Edge edge;
        bool operator>(const Entry& other) const {
            return std::tie(rank, estimate, number) > std::tie(other.rank, other.estimate, other.number);
        }
    };
    struct Queue {
        std::vector<Entry> entries;
        std::int64_t priority = 0;
    };
    struct Same {
        const Search* search;
        std::size_t operator()(std::int32_t node) const {
            std::uint64_t hash = 14695981039346656037u;
            for (const std::int32_t* v = search->values(node); v != search->values(node) + search->width(); ++v)
                hash = (hash ^ static_cast<std::uint64_t>(*v)) * 1099511628211u;
            return hash;
        }
        bool operator()(std::int32_t a, std::int32_t b) const {
            return std::equal(search->values(a), search->values(a) + search->width(), search->values(b));
        }
    };

    std::size_t width() const { return task_.domains.size(); }
    const std::int32_t* values(std::int32_t node) const { return pool_.data() + node * width(); }

    void derive(std::int32_t* state) {
        for (const std::vector<const TaskEffect*>& layer : axioms_)
            for (bool changed = true; changed;) {
                changed = false;
                work_ -= static_cast<std::int64_t>(layer.size());
                for (const TaskEffect* axiom : layer)
                    if (state[axiom->fact.variable] != axiom->fact.value && hold(axiom->conditions, state)) {
                        state[axiom->fact.variable] = axiom->fact.value;
                        changed = true;
                    }
            }
    }

    void apply(const TaskOperator& o, std::int32_t parent, std::vector<std::int32_t>& state) {
        state.assign(values(parent), values(parent) + width());
        for (const TaskEffect& effect : o.effects)
            if (hold(effect.conditions, values(parent))) state[effect.fact.variable] = effect.fact.value;
        for (std::size_t v = 0; v < width(); ++v)
            if (task_.layers[v] >= 0) state[v] = task_.init[v];
        derive(state.data());
    }

    // The node of a state that is new, or now reached at less cost; else -1.
    std::int32_t reached(const std::vector<std::int32_t>& state, const Edge& edge) {
        const std::int64_t cost = edge.parent < 0 ? 0 : nodes_[edge.parent].cost + task_.operators[edge.of].cost;
        const auto node = static_cast<std::int32_t>(nodes_.size());
        pool_.insert(pool_.end(), state.begin(), state.end());
        const auto [known, is_new] = known_.insert(node);
        if (is_new) {
            nodes_.push_back({edge, cost, -1});
            return node;
        }
        pool_.resize(pool_.size() - width());
        if (cost >= nodes_[*known].cost || nodes_[*known].estimate == infinite) return -1;
        nodes_[*known].edge = edge;
        nodes_[*known].cost = cost;
        return *known;
    }

    void expand(std::int32_t node) {
        const std::int64_t estimate = nodes_[node].estimate, rank = nodes_[node].cost + estimate;
        auto preferred = preferred_.begin();
        for (std::size_t i = 0; i < task_.operators.size(); ++i) {
            const auto of = static_cast<std::int32_t>(i);
            const bool is_preferred = preferred != preferred_.end() && *preferred == of;
            if (is_preferred) ++preferred;
            if (!is_preferred && !hold(task_.operators[i].needs, values(node))) continue;
            for (int q = 0; q <= static_cast<int>(is_preferred); ++q) {
                queues_[q].entries.push_back({rank, estimate, count_, {node, of}});
                std::push_heap(queues_[q].entries.begin(), queues_[q].entries.end(), std::greater<>());
            }
            ++count_;
        }
    }

    bool pop(Edge& edge) {
        Queue& queue = queues_[queues_[0].entries.empty() ||
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
        for (; nodes_[node].edge.parent >= 0; node = nodes_[node].edge.parent) path.push_back(nodes_[node].edge.of);
        std::ranges::reverse(path);
        return path;
    }

    const Task& task_;
    Relaxation relaxation_;
    std::int64_t work_;
    std::vector<std::vector<const TaskEffect*>> axioms_;  // by layer
    std::vector<std::int32_t> pool_;                      // the values of all nodes
    std::vector<Node> nodes_;
    std::unordered_set<std::int32_t, Same, Same> known_{16, Same{this}, Same{this}};
    std::vector<std::int32_t> preferred_;
    Queue queues_[2];  // of all, and of what preferred operators lead to
    std::int64_t count_ = 0;
};

}  // namespace

TaskSearchResult search_task(const Task& task, std::int64_t work, std::int64_t improvement_work) {
    return Search(task, work).run(improvement_work);
}

}  // namespace tmkit
