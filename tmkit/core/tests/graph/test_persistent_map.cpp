// The persistent map against std::map: random edits, every earlier version kept, balance after each
// edit.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/valid_map.hpp"

namespace {

using tmkit::test::with, tmkit::test::without;
using Map = tmkit::PersistentMap<int, std::string>;
using Model = std::map<int, std::string>;

bool same(const Map& map, const Model& model) {
    if (map.size() != model.size() || map.empty() != model.empty()) return false;
    auto expected = model.begin();
    bool equal = true;
    map.for_each([&](int key, const std::string& value) {
        equal =
            equal && expected != model.end() && key == expected->first && value == expected->second;
        if (expected != model.end()) ++expected;
    });
    return equal && expected == model.end();
}

int height(const Map::Node* node) {
    return node ? 1 + std::max(height(node->left.get()), height(node->right.get())) : 0;
}

// A value that counts its existing copies.
struct Counted {
    static inline int alive = 0;
    int number = 0;
    explicit Counted(int n) : number(n) { ++alive; }
    Counted(const Counted& other) : number(other.number) { ++alive; }
    Counted& operator=(const Counted&) = default;
    ~Counted() { --alive; }
};

}  // namespace

TEST_CASE("random edits agree with std::map, and no version ever changes") {
    for (const int keys : {4, 40, 2000}) {
        std::mt19937 random(static_cast<unsigned>(keys));
        std::vector<std::pair<Map, Model>> versions{{Map(), Model()}};
        for (int step = 0; step < 3000; ++step) {
            const auto back = random() % std::min<std::size_t>(versions.size(), 5);
            auto [map, model] = versions[versions.size() - 1 - back];
            const int key = static_cast<int>(random() % static_cast<unsigned>(keys));
            if (random() % 3 == 0) {
                map = without(map, key);
                model.erase(key);
            } else {
                map = with(map, key, std::to_string(step));
                model[key] = std::to_string(step);
            }
            REQUIRE(tmkit::test::is_valid(map));
            REQUIRE(map.size() == model.size());
            const int probe = static_cast<int>(random() % static_cast<unsigned>(keys));
            const auto expected = model.find(probe);
            const std::string* found = map.find(probe);
            REQUIRE((found != nullptr) == (expected != model.end()));
            if (found) REQUIRE(*found == expected->second);
            REQUIRE(map.rank(probe) == static_cast<std::size_t>(
                                           std::distance(model.begin(), model.lower_bound(probe))));
            if (expected != model.end()) REQUIRE(map.at_rank(map.rank(probe)).key == probe);
            auto from = model.lower_bound(probe);
            map.for_each_from(probe, [&](int key, const std::string& value) {
                REQUIRE((from != model.end() && key == from->first && value == from->second));
                return ++from != model.end() && key < probe + 5;
            });
            REQUIRE((from == model.end() || from->first > probe));
            if (step % 100 == 0) REQUIRE(same(map, model));
            versions.emplace_back(map, model);
            if (versions.size() > 400) versions.erase(versions.begin(), versions.begin() + 200);
        }
        for (const auto& [map, model] : versions) REQUIRE(same(map, model));
    }
}

TEST_CASE("growing and shrinking in order keeps the tree low") {
    for (const bool ascending : {true, false}) {
        Map map;
        const int count = 5000;
        for (int i = 0; i < count; ++i) {
            map = with(map, ascending ? i : -i, "");
            REQUIRE(height(map.root()) <= std::log(map.size() + 1.0) / std::log(4.0 / 3.0) + 1.0);
        }
        CHECK(tmkit::test::is_valid(map));
        for (int i = 0; i < count; ++i) {
            map = without(map, ascending ? i : -i);
            if (i % 97 == 0) REQUIRE(tmkit::test::is_valid(map));
        }
        CHECK(map.empty());
        CHECK(map.root() == nullptr);
    }
}

TEST_CASE("an edit that changes nothing shares everything, any other shares all but a path") {
    Map map;
    for (int i = 0; i < 1000; ++i) map = with(map, i, "");
    CHECK(without(map, 1000).shares_root(map));
    const Map changed = with(map, 500, "new");
    CHECK_FALSE(changed.shares_root(map));
    CHECK(map.find(500)->empty());
    std::size_t shared = 0, total = 0;
    std::vector<const Map::Node*> waiting{changed.root()};
    std::map<const Map::Node*, bool> old;
    std::vector<const Map::Node*> before{map.root()};
    while (!before.empty()) {
        const Map::Node* node = before.back();
        before.pop_back();
        if (!node) continue;
        old[node] = true;
        before.push_back(node->left.get());
        before.push_back(node->right.get());
    }
    while (!waiting.empty()) {
        const Map::Node* node = waiting.back();
        waiting.pop_back();
        if (!node) continue;
        ++total;
        shared += old.count(node);
        waiting.push_back(node->left.get());
        waiting.push_back(node->right.get());
    }
    CHECK(total == 1000);
    CHECK(total - shared <= static_cast<std::size_t>(height(map.root())));
}

TEST_CASE("creating and releasing versions frees every value") {
    Counted::alive = 0;
    {
        using Values = tmkit::PersistentMap<int, Counted>;
        std::mt19937 random(1);
        std::vector<Values> versions(20);
        for (int step = 0; step < 5000; ++step) {
            Values next = versions[random() % versions.size()];
            const int key = static_cast<int>(random() % 100);
            next = random() % 2 ? with(next, key, Counted(step)) : without(next, key);
            versions[random() % versions.size()] = next;
        }
        CHECK(Counted::alive > 0);
        CHECK(Counted::alive <= 20 * 100);
    }
    CHECK(Counted::alive == 0);
}

TEST_CASE("edits in place agree with std::map, and no saved version changes") {
    for (const int keys : {4, 40, 2000}) {
        std::mt19937 random(static_cast<unsigned>(keys) + 7);
        Map map;
        Model model;
        std::vector<std::pair<Map, Model>> seen;
        for (int step = 0; step < 6000; ++step) {
            const int key = static_cast<int>(random() % static_cast<unsigned>(keys));
            if (random() % 3 == 0) {
                map.remove(key);
                model.erase(key);
            } else {
                map.assign(key, std::to_string(step));
                model[key] = std::to_string(step);
            }
            if (std::string* value = map.find_unshared(key); value && random() % 2) {
                *value += "!";
                model[key] += "!";
            }
            REQUIRE(tmkit::test::is_valid(map));
            if (random() % 100 == 0) seen.emplace_back(map, model);
        }
        REQUIRE(same(map, model));
        for (const auto& [version, expected] : seen) REQUIRE(same(version, expected));
    }
}

TEST_CASE("a thousand edits in place make few nodes") {
    tmkit::PersistentMap<int, Counted> map;
    for (int key = 0; key < 1000; ++key) map = with(map, key, Counted(key));
    const tmkit::PersistentMap<int, Counted> before = map;
    for (int round = 0; round < 1000; ++round) map.assign(round % 10, Counted(-1));
    CHECK(Counted::alive < 1000 + 60);  // the paths to ten keys, once
    CHECK(before.find(3)->number == 3);
    CHECK(map.find(3)->number == -1);
}

TEST_CASE("differences are those of the models, and shared subtrees are not opened") {
    for (const int keys : {4, 40, 2000}) {
        std::mt19937 random(static_cast<unsigned>(keys) + 11);
        std::vector<std::pair<Map, Model>> versions{{Map(), Model()}};
        for (int step = 0; step < 1500; ++step) {
            auto [map, model] = versions.back();
            const int key = static_cast<int>(random() % static_cast<unsigned>(keys));
            if (random() % 3 == 0) {
                map = without(map, key);
                model.erase(key);
            } else {
                map = with(map, key, std::to_string(random() % 3));
                model = Model(model);
                model[key] = *map.find(key);
            }
            versions.emplace_back(map, model);
        }
        for (int trial = 0; trial < 200; ++trial) {
            const auto& [a, model_a] = versions[random() % versions.size()];
            const auto& [b, model_b] = versions[random() % versions.size()];
            std::map<int, std::pair<std::string, std::string>> expected, found;
            for (const auto& [key, value] : model_a)
                if (!model_b.count(key) || model_b.at(key) != value)
                    expected[key] = {value, model_b.count(key) ? model_b.at(key) : "none"};
            for (const auto& [key, value] : model_b)
                if (!model_a.count(key)) expected[key] = {"none", value};
            int last = -1;
            Map::for_each_difference(a, b,
                                     [&](int key, const std::string* x, const std::string* y) {
                REQUIRE(key > last);
                last = key;
                found[key] = {x ? *x : "none", y ? *y : "none"};
            });
            REQUIRE(found == expected);
        }
    }
}

namespace {
// A value that counts its comparisons.
struct Compared {
    static inline int comparisons = 0;
    int number = 0;
    bool operator==(const Compared& other) const {
        ++comparisons;
        return number == other.number;
    }
};
}  // namespace

TEST_CASE("three changes among a hundred thousand are found with few visited nodes") {
    tmkit::PersistentMap<int, Compared> map;
    for (int key = 0; key < 100000; ++key) map.assign(key, Compared{key});
    auto other = without(with(with(map, 5, Compared{-1}), 70000, Compared{-2}), 31234);
    other.assign(200000, Compared{3});
    Compared::comparisons = 0;
    int differences = 0;
    tmkit::PersistentMap<int, Compared>::for_each_difference(
        map, other, [&](int, const Compared*, const Compared*) { ++differences; });
    CHECK(differences == 4);
    CHECK(Compared::comparisons < 200);
}
