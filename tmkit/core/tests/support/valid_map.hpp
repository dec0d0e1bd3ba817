// Check of size, order and balance of every node of a persistent map.
#pragma once

#include "tmkit/persistent_map.hpp"

namespace tmkit::test {

template <class Key, class Value, class Compare>
bool is_valid(const PersistentMap<Key, Value, Compare>& map) {
    using Map = PersistentMap<Key, Value, Compare>;
    using Node = Map::Node;
    const auto valid = [](const auto& self, const Node* node, const Key* lower,
                          const Key* upper) -> bool {
        if (!node) return true;
        const Compare less;
        if ((lower && !less(*lower, node->key)) || (upper && !less(node->key, *upper)))
            return false;
        if (node->size != Node::count(node->left) + Node::count(node->right) + 1 ||
            !node->is_balanced())
            return false;
        return self(self, node->left.get(), lower, &node->key) &&
               self(self, node->right.get(), &node->key, upper);
    };
    return valid(valid, map.root(), nullptr, nullptr);
}

// Another version with a value, and one without a key.
auto with(auto map, const auto& key, const auto& value) {
    map.assign(key, value);
    return map;
}
auto without(auto map, const auto& key) {
    map.remove(key);
    return map;
}

}  // namespace tmkit::test
