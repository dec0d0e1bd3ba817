// A persistent ordered map: the reason why a scene can branch for free.
//
// Goal. A planner keeps thousands of versions of a scene that differ in one or two frames. Copying the map for each
// would cost O(n); here an edit copies only the nodes from the root of a search tree down to the changed key, and all
// other nodes are shared between the versions:
//
//          version 1         version 2 = version 1 with D changed
//              B                 B'
//            /   \             /   \ .
//           A     D           A     D'        A, C and E exist once
//                / \               / \ .
//               C   E             C   E
//
// Balance. Each node stores the size of its subtree. Let the weight of a tree be its size plus one. A node is balanced
// when neither child weighs more than `delta` = 3 times the other; an edit that breaks this is mended by one single
// rotation, or by a double one when the inner grandchild weighs at least `gamma` = 2 times the outer. The pair (3, 2)
// is the one proved sufficient for insertion and deletion by Hirai and Yamamoto, "Balancing weight-balanced trees"
// (Journal of Functional Programming 21, 2011); other pairs in older texts fail for deletion. The height is at most
// log(n + 1) / log(4 / 3), and about 1.1 log2 n in practice.
//
// The sizes also answer "how many keys are smaller than this one" in O(log n), which is how a joint finds its entry in
// the configuration without any index being kept.
//
// Costs: find, insert, erase, rank O(log n) comparisons; insert and erase copy O(log n) nodes; iteration O(n) in key
// order; copying a map O(1). A map with no key holds no node. Reading is safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "tmkit/reference.hpp"

namespace tmkit {

template <class Key, class Value, class Compare = std::less<>>
class PersistentMap {
public:
    struct Node : Shared {
        Node(Key k, Value v, Ref<const Node> l, Ref<const Node> r)
            : size(1 + count(l) + count(r)), key(std::move(k)), value(std::move(v)), left(std::move(l)),
              right(std::move(r)) {}
        std::uint32_t size;
        Key key;
        Value value;
        Ref<const Node> left, right;
    };

    std::size_t size() const noexcept { return count(root_); }
    bool empty() const noexcept { return !root_; }

    template <class Probe>
    const Value* find(const Probe& probe) const {
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
    template <class Probe>
    std::size_t rank(const Probe& probe) const {
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

    [[nodiscard]] PersistentMap insert(const Key& key, const Value& value) const {
        return PersistentMap(inserted(root_, key, value));
    }

    template <class Probe>
    [[nodiscard]] PersistentMap erase(const Probe& probe) const {
        return find(probe) ? PersistentMap(erased(root_, probe)) : *this;
    }

    // Calls visit(key, value) in ascending key order. The recursion is as deep as the tree is high: O(log n).
    template <class Visit>
    void for_each(Visit&& visit) const {
        walk(root_.get(), visit);
    }

    const Node* root() const noexcept { return root_.get(); }
    bool shares_root(const PersistentMap& other) const noexcept { return root_ == other.root_; }

    // True when every node has the right size, order and balance: for tests.
    bool is_valid() const { return valid(root_.get(), nullptr, nullptr); }

    PersistentMap() = default;

private:
    using Tree = Ref<const Node>;
    static constexpr std::uint64_t delta = 3, gamma = 2;

    explicit PersistentMap(Tree root) : root_(std::move(root)) {}

    static std::uint32_t count(const Tree& tree) noexcept { return tree ? tree->size : 0; }
    static std::uint64_t weight(const Tree& tree) noexcept { return count(tree) + std::uint64_t{1}; }

    static Tree node(const Node& from, Tree left, Tree right) { return node(from.key, from.value, left, right); }
    static Tree node(const Key& key, const Value& value, Tree left, Tree right) {
        return Tree(new Node(key, value, std::move(left), std::move(right)));
    }

    static Tree balanced(const Key& key, const Value& value, Tree left, Tree right) {
        if (weight(right) > delta * weight(left)) {
            const Tree inner = right->left;
            if (weight(inner) < gamma * weight(right->right))
                return node(*right, node(key, value, left, inner), right->right);
            return node(*inner, node(key, value, left, inner->left), node(*right, inner->right, right->right));
        }
        if (weight(left) > delta * weight(right)) {
            const Tree inner = left->right;
            if (weight(inner) < gamma * weight(left->left))
                return node(*left, left->left, node(key, value, inner, right));
            return node(*inner, node(*left, left->left, inner->left), node(key, value, inner->right, right));
        }
        return node(key, value, std::move(left), std::move(right));
    }

    static Tree inserted(const Tree& tree, const Key& key, const Value& value) {
        if (!tree) return node(key, value, nullptr, nullptr);
        const Compare less;
        if (less(key, tree->key))
            return balanced(tree->key, tree->value, inserted(tree->left, key, value), tree->right);
        if (less(tree->key, key))
            return balanced(tree->key, tree->value, tree->left, inserted(tree->right, key, value));
        return node(key, value, tree->left, tree->right);
    }

    template <class Probe>
    static Tree erased(const Tree& tree, const Probe& probe) {
        const Compare less;
        if (less(probe, tree->key))
            return balanced(tree->key, tree->value, erased(tree->left, probe), tree->right);
        if (less(tree->key, probe))
            return balanced(tree->key, tree->value, tree->left, erased(tree->right, probe));
        if (!tree->left) return tree->right;
        if (!tree->right) return tree->left;
        if (count(tree->left) > count(tree->right)) {
            const Node& last = extreme(tree->left, &Node::right);
            return balanced(last.key, last.value, erased(tree->left, last.key), tree->right);
        }
        const Node& first = extreme(tree->right, &Node::left);
        return balanced(first.key, first.value, tree->left, erased(tree->right, first.key));
    }

    static const Node& extreme(const Tree& tree, Tree Node::*side) {
        const Node* node = tree.get();
        while (((*node).*side)) node = ((*node).*side).get();
        return *node;
    }

    template <class Visit>
    static void walk(const Node* node, Visit& visit) {
        if (!node) return;
        walk(node->left.get(), visit);
        visit(node->key, node->value);
        walk(node->right.get(), visit);
    }

    static bool valid(const Node* node, const Key* lower, const Key* upper) {
        if (!node) return true;
        const Compare less;
        if ((lower && !less(*lower, node->key)) || (upper && !less(node->key, *upper))) return false;
        const std::uint64_t l = weight(node->left), r = weight(node->right);
        if (node->size != count(node->left) + count(node->right) + 1 || l > delta * r || r > delta * l) return false;
        return valid(node->left.get(), lower, &node->key) && valid(node->right.get(), &node->key, upper);
    }

    Tree root_;
};

}  // namespace tmkit
