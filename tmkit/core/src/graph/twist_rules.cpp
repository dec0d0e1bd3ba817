#include "tmkit/twist_rules.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace tmkit {

void TwistRules::reserve(std::size_t links) {
    links_.reserve(links);
    order_.reserve(links);
    for (auto* by_body : {&bodies_, &numbers_, &raw_, &queue_, &set_}) by_body->reserve(2 * links);
    first_.reserve(2 * links + 1);
    owner_.reserve(2 * links);
}

std::optional<TwistRules::Violation> TwistRules::find_violation(bool with_new) {
    if (links_.size() < 2) return std::nullopt;
    number_bodies();
    if (with_new)  // joining trees creates no path
        if (auto back = leads_back()) return back;
    const auto twice = find_second_path(with_new);
    if (twice && with_new) return twice;
    const auto joined = find_double_join();
    return joined ? joined : twice;
}

// Assign dense numbers by first mention, which makes the result independent of the identities of
// bodies.
void TwistRules::number_bodies() {
    bodies_.clear();
    for (const Link& link : links_) bodies_.insert(bodies_.end(), {link.body, link.reference});
    std::sort(bodies_.begin(), bodies_.end());
    bodies_.erase(std::unique(bodies_.begin(), bodies_.end()), bodies_.end());
    const auto none = static_cast<Number>(-1);
    numbers_.assign(bodies_.size(), none);
    raw_.clear();
    for (Link& link : links_)
        for (Number* body : {&link.body, &link.reference}) {
            Number& number = numbers_[static_cast<std::size_t>(
                std::lower_bound(bodies_.begin(), bodies_.end(), *body) - bodies_.begin())];
            if (number == none) {
                number = static_cast<Number>(raw_.size());
                raw_.push_back(*body);
            }
            *body = number;
        }
    order_.resize(links_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    const auto key = [this](std::size_t link) {
        return std::tuple(links_[link].body, links_[link].tree, link);
    };
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    first_.assign(raw_.size() + 1, 0);
    for (const Link& link : links_) ++first_[link.body + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
}

// Visit a body and those above it, nearest first; visit(body) returns whether to continue from it.
template <class Visit> void TwistRules::climb(Number from, Visit&& visit) {
    queue_.clear();
    if (visit(from)) queue_.push_back(from);
    for (std::size_t next = 0; next < queue_.size(); ++next)
        for (std::size_t index = first_[queue_[next]]; index != first_[queue_[next] + 1]; ++index)
            if (const Link& link = links_[order_[index]]; !link.waits && visit(link.reference))
                queue_.push_back(link.reference);
}

std::optional<TwistRules::Violation> TwistRules::leads_back() {
    const Link& newest = links_.back();
    if (newest.waits) return std::nullopt;
    bool back = false;
    owner_.assign(raw_.size(), 0);
    climb(newest.reference, [&](Number body) {
        back = back || body == newest.body;
        return std::exchange(owner_[body], 1) == 0;
    });
    if (!back) return std::nullopt;
    return make_violation(Rule::TE5, links_.size() - 1);
}

std::optional<TwistRules::Violation> TwistRules::find_second_path(bool with_new) {
    const auto together = [this](std::size_t a, std::size_t b) {
        return links_[a].body == links_[b].body && links_[a].tree == links_[b].tree;
    };
    std::optional<Violation> twice;
    for (std::size_t begin = 0, end; begin < order_.size() && !twice; begin = end) {
        for (end = begin + 1; end < order_.size() && together(order_[begin], order_[end]);) ++end;
        if (end - begin < 2) continue;
        owner_.assign(raw_.size(), 0);
        for (std::size_t index = begin; index < end && !twice; ++index) {
            if (links_[order_[index]].waits) continue;
            climb(links_[order_[index]].reference, [&](Number body) {
                std::size_t& owner = owner_[body];
                if (owner != 0 && owner != order_[index] + 1 && !twice) {
                    std::size_t first = owner - 1, second = order_[index];
                    if (with_new && second + 1 == links_.size()) std::swap(first, second);
                    twice = make_violation(Rule::TE4, first, body, second);
                }
                return std::exchange(owner, order_[index] + 1) == 0;
            });
        }
    }
    return twice;
}

std::optional<TwistRules::Violation> TwistRules::find_double_join() {
    const auto key = [this](std::size_t link) {
        return std::tuple(links_[link].tree, links_[link].waits, link);
    };
    std::sort(order_.begin(), order_.end(),
              [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    const auto root = [this](Number body) {
        while (set_[body] != body) body = set_[body] = set_[set_[body]];
        return body;
    };
    set_.resize(raw_.size());
    for (std::size_t begin = 0, end; begin < order_.size(); begin = end) {
        for (end = begin;
             end < order_.size() && links_[order_[end]].tree == links_[order_[begin]].tree; ++end)
            for (const Number body : {links_[order_[end]].body, links_[order_[end]].reference})
                set_[body] = body;
        for (std::size_t index = begin; index < end; ++index) {
            const Number a = root(links_[order_[index]].body),
                         b = root(links_[order_[index]].reference);
            if (a == b) return make_violation(Rule::TE6, order_[index]);
            set_[a] = b;
        }
    }
    return std::nullopt;
}

TwistRules::Violation TwistRules::make_violation(Rule rule, std::size_t link, Number above,
                                                 std::size_t other) const {
    Link named = links_[link];
    named.body = raw_[named.body];
    named.reference = raw_[named.reference];
    return {rule, named, raw_[above], links_[other].frame};
}

}  // namespace tmkit
