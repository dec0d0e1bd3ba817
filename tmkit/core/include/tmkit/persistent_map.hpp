// A persistent ordered map, which makes copies of a scene cheap.
//
// An edit copies only the nodes from the root of a search tree down to the changed key; all others
// are shared between the versions. A node never changes once a second version holds it, so any
// thread can read a version without a lock or a copy. Nodes count their owners; the last version
// that releases one frees it.
//
//          version 1         version 2 = version 1 with D changed
//              B                 B'
//            /   \             /   \ .
//           A     D           A     D'        A, C and E exist once
//                / \               / \ .
//               C   E             C   E
//
// Weight balance. Each node stores the size of its subtree, and its weight is that plus one. It is
// balanced if neither child weighs more than `delta` times the other. An edit changes the weights
// on its path by one, so one rotation a node on the way back up restores the balance: a double one
// if the inner grandchild is at least `gamma` times the outer. Not every pair of parameters is
// valid; <3, 2> is the only pair of integers for which one rotation is proved to suffice (Hirai and
// Yamamoto, "Balancing weight-balanced trees", Journal of Functional Programming 21, 2011). A child
// holds at most 3/4 of the weight; the height is about 1.1 log2 n in practice. Debug builds check
// every new node.
//
// The sizes also give the number of smaller keys in O(log n): the index of a joint in the
// configuration. Iteration in key order is the insertion order of a scene.
//
// In-place updates. A node with a single owner, whose ancestors have a single owner each, is
// changed instead of copied. The first of a thousand edits copies its path, the others reuse the
// copies.
//
// Differences. `for_each_difference` walks both trees at once and skips shared subtrees: c changed
// keys among n cost O(c log n).
//
// Costs: find, assign, remove, rank, at_rank O(log n) comparisons; assign and remove copy O(log n)
// nodes (one word each for owners and size, key, value, two children); iteration O(n) in key order;
// copying a map O(1). A map with no key holds no node.
#pragma once

#include <cassert>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "tmkit/reference.hpp"

namespace tmkit {

template <class Key, class Value, class Compare = std::less<>> class PersistentMap {
public:
    static constexpr std::uint64_t delta = 3, gamma = 2;

    struct Node : Shared {
        Node(Key k, Value v, Ref<const Node> l, Ref<const Node> r)
            : size(1 + count(l) + count(r)), key(std::move(k)), value(std::move(v)),
              left(std::move(l)), right(std::move(r)) {
            assert(is_balanced());
        }
        static std::uint32_t count(const Ref<const Node>& tree) noexcept {
            return tree ? tree->size : 0;
        }
        static std::uint64_t weight(const Ref<const Node>& tree) noexcept {
            return count(tree) + std::uint64_t{1};
        }
        bool is_balanced() const {
            return weight(left) <= delta * weight(right) && weight(right) <= delta * weight(left);
        }
        std::uint32_t size;
        Key key;
        Value value;
        Ref<const Node> left, right;
    };

    std::size_t size() const noexcept { return count(root_); }
    bool empty() const noexcept { return !root_; }

    template <class Probe> const Value* find(const Probe& probe) const {
        const Node* node = root_.get();
        const Compare less;
        while (node) {
            if (less(probe, node->key)) node = node->left.get();
            else if (less(node->key, probe)) node = node->right.get();
            else return &node->value;
        }
        return nullptr;
    }

    // The number of keys smaller than `probe`.
    template <class Probe> std::size_t rank(const Probe& probe) const {
        std::size_t smaller = 0;
        const Node* node = root_.get();
        const Compare less;
        while (node) {
            if (less(node->key, probe)) {
                smaller += 1 + count(node->left);
                node = node->right.get();
            } else {
                node = node->left.get();
            }
        }
        return smaller;
    }

    std::vector<Key> keys() const {
        std::vector<Key> found;
        found.reserve(size());
        for_each([&](const Key& key, const Value&) { found.push_back(key); });
        return found;
    }

    // Return the node with this many smaller keys, which must exist. O(log n).
    const Node& at_rank(std::size_t rank) const {
        const Node* node = root_.get();
        for (;;) {
            const std::size_t smaller = count(node->left);
            if (rank == smaller) return *node;
            node = rank < smaller ? node->left.get() : node->right.get();
            if (rank > smaller) rank -= smaller + 1;
        }
    }

    // Insert or replace, in place if no other map shares the nodes of the path.
    void assign(const Key& key, const Value& value) { assign_at(root_, key, value, true); }

    // Erase a key if present, in place if no other map shares the nodes of the path.
    template <class Probe> void remove(const Probe& probe) {
        if (find(probe)) remove_at(root_, probe, true);
    }

    // The value of an existing key, to be changed in place; null if another map shares a node of
    // the path.
    template <class Probe> Value* find_unshared(const Probe& probe) {
        const Tree* tree = &root_;
        const Compare less;
        while (*tree && (*tree)->has_one_owner()) {
            const Node& node = **tree;
            if (less(probe, node.key)) tree = &node.left;
            else if (less(node.key, probe)) tree = &node.right;
            else return &const_cast<Node&>(node).value;
        }
        return nullptr;
    }

    // Call visit(key, before, after) for every key whose value may differ, in ascending key order;
    // `before` or `after` is null if the key is missing. Values differ if their nodes are not
    // shared and the values compare unequal.
    template <class Visit>
    static void for_each_difference(const PersistentMap& a, const PersistentMap& b, Visit&& visit) {
        std::vector<Pending> before, after;
        push(before, a.root_.get());
        push(after, b.root_.get());
        while (!before.empty() || !after.empty()) {
            if (!before.empty() && !after.empty() && before.back() == after.back()) {
                before.pop_back();
                after.pop_back();
                continue;
            }
            // Open the larger of the two front subtrees, which aligns a subtree that both share.
            const std::uint32_t size_before = count_unopened(before),
                                size_after = count_unopened(after);
            if (size_before || size_after) {
                open(size_before >= size_after ? before : after);
                continue;
            }
            const Node *x = front(before), *y = front(after);
            const int first = which_first(x, y);
            if (first <= 0) before.pop_back();
            if (first >= 0) after.pop_back();
            if (first < 0) visit(x->key, &x->value, static_cast<const Value*>(nullptr));
            else if (first > 0) visit(y->key, static_cast<const Value*>(nullptr), &y->value);
            else if (!(x->value == y->value)) visit(x->key, &x->value, &y->value);
        }
    }

    // Call visit(key, value) in ascending key order. The recursion depth is the height of the tree:
    // O(log n).
    template <class Visit> void for_each(Visit&& visit) const { walk(root_.get(), visit); }

    // Call visit(key, value) from the first key not smaller than `probe`, while visit returns true.
    // O(log n + visited).
    template <class Probe, class Visit>
    void for_each_from(const Probe& probe, Visit&& visit) const {
        walk_from(root_.get(), probe, visit);
    }

    const Node* root() const noexcept { return root_.get(); }
    bool shares_root(const PersistentMap& other) const noexcept { return root_ == other.root_; }

    PersistentMap() = default;

private:
    using Tree = Ref<const Node>;
    static std::uint32_t count(const Tree& tree) noexcept { return Node::count(tree); }
    static std::uint64_t weight(const Tree& tree) noexcept { return Node::weight(tree); }

    static Tree node(const Node& from, Tree left, Tree right) {
        return node(from.key, from.value, std::move(left), std::move(right));
    }
    static Tree node(const Key& key, const Value& value, Tree left, Tree right) {
        return Tree(new Node(key, value, std::move(left), std::move(right)));
    }

    static Tree balance(const Key& key, const Value& value, Tree left, Tree right) {
        if (weight(right) > delta * weight(left)) {
            const Tree inner = right->left;
            if (weight(inner) < gamma * weight(right->right))
                return node(*right, node(key, value, left, inner), right->right);
            return node(*inner, node(key, value, left, inner->left),
                        node(*right, inner->right, right->right));
        }
        if (weight(left) > delta * weight(right)) {
            const Tree inner = left->right;
            if (weight(inner) < gamma * weight(left->left))
                return node(*left, left->left, node(key, value, inner, right));
            return node(*inner, node(*left, left->left, inner->left),
                        node(key, value, inner->right, right));
        }
        return node(key, value, std::move(left), std::move(right));
    }

    // A subtree to visit, or, if not whole, its root alone.
    struct Pending {
        const Node* node;
        bool whole;
        bool operator==(const Pending&) const = default;
    };
    // Negative if the key of `x` is first, positive if that of `y` is, 0 if they are equal; at most
    // one is null.
    static int which_first(const Node* x, const Node* y) {
        const Compare less;
        if (x && (!y || less(x->key, y->key))) return -1;
        return y && (!x || less(y->key, x->key)) ? 1 : 0;
    }
    static void push(std::vector<Pending>& pending, const Node* node) {
        if (node) pending.push_back({node, true});
    }
    static const Node* front(const std::vector<Pending>& pending) {
        return pending.empty() ? nullptr : pending.back().node;
    }
    static std::uint32_t count_unopened(const std::vector<Pending>& pending) {
        return !pending.empty() && pending.back().whole ? pending.back().node->size : 0;
    }
    static void open(std::vector<Pending>& pending) {
        const Node* node = pending.back().node;
        pending.pop_back();
        push(pending, node->right.get());
        pending.push_back({node, false});
        push(pending, node->left.get());
    }

    // `alone`: all nodes above have one owner. Below the first shared node, the path is copied.
    static void assign_at(Tree& tree, const Key& key, const Value& value, bool alone) {
        if (!tree || !(alone = alone && tree->has_one_owner())) {
            tree = insert(tree, key, value);
            return;
        }
        Node& node = const_cast<Node&>(*tree);
        const Compare less;
        const bool leftwards = less(key, node.key);
        if (!leftwards && !less(node.key, key)) {
            node.value = value;
            return;
        }
        assign_at(leftwards ? node.left : node.right, key, value, alone);
        rebalance(tree, node);
    }

    template <class Probe> static void remove_at(Tree& tree, const Probe& probe, bool alone) {
        const Compare less;
        const bool leftwards = less(probe, tree->key);
        if (!(alone && tree->has_one_owner()) || (!leftwards && !less(tree->key, probe))) {
            tree = erase(tree, probe);
            return;
        }
        Node& node = const_cast<Node&>(*tree);
        remove_at(leftwards ? node.left : node.right, probe, alone);
        rebalance(tree, node);
    }

    static void rebalance(Tree& tree, Node& node) {
        node.size = 1 + count(node.left) + count(node.right);
        if (!node.is_balanced()) tree = balance(node.key, node.value, node.left, node.right);
    }

    static Tree insert(const Tree& tree, const Key& key, const Value& value) {
        if (!tree) return node(key, value, nullptr, nullptr);
        const Compare less;
        if (less(key, tree->key))
            return balance(tree->key, tree->value, insert(tree->left, key, value), tree->right);
        if (less(tree->key, key))
            return balance(tree->key, tree->value, tree->left, insert(tree->right, key, value));
        return node(key, value, tree->left, tree->right);
    }

    template <class Probe> static Tree erase(const Tree& tree, const Probe& probe) {
        const Compare less;
        if (less(probe, tree->key))
            return balance(tree->key, tree->value, erase(tree->left, probe), tree->right);
        if (less(tree->key, probe))
            return balance(tree->key, tree->value, tree->left, erase(tree->right, probe));
        if (!tree->left) return tree->right;
        if (!tree->right) return tree->left;
        if (count(tree->left) > count(tree->right)) {
            const Node& last = extreme(tree->left, &Node::right);
            return balance(last.key, last.value, erase(tree->left, last.key), tree->right);
        }
        const Node& first = extreme(tree->right, &Node::left);
        return balance(first.key, first.value, tree->left, erase(tree->right, first.key));
    }

    static const Node& extreme(const Tree& tree, Tree Node::* side) {
        const Node* node = tree.get();
        while (((*node).*side)) node = ((*node).*side).get();
        return *node;
    }

    template <class Visit> static void walk(const Node* node, Visit& visit) {
        if (!node) return;
        walk(node->left.get(), visit);
        visit(node->key, node->value);
        walk(node->right.get(), visit);
    }

    template <class Probe, class Visit>
    static bool walk_from(const Node* node, const Probe& probe, Visit& visit) {
        if (!node) return true;
        const bool counts = !Compare()(node->key, probe);
        if (counts && !(walk_from(node->left.get(), probe, visit) && visit(node->key, node->value)))
            return false;
        return walk_from(node->right.get(), probe, visit);
    }

    Tree root_;
};

}  // namespace tmkit
