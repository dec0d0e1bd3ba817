// Searches of small tasks whose best plans are known; tests/task_planning/test_core_search.py has random ones.
#include <doctest/doctest.h>

#include "tmkit/task_search.hpp"

using namespace tmkit;

namespace {

constexpr std::int64_t plenty = 1'000'000;

// A row of rooms, a key in the last one, and a door that is open (a derived fact) while the key is carried.
Task rooms(std::int32_t count) {
    Task task{{count, 2, 2}, {-1, -1, 0}, {0, 0, 1}, {{2, 0}, {0, 0}}, {}, {{{{1, 1}}, {2, 0}}}};
    for (std::int32_t i = 0; i + 1 < count; ++i) {
        task.operators.push_back({{{0, i}}, {{{}, {0, i + 1}}}, 1});
        task.operators.push_back({{{0, i + 1}}, {{{}, {0, i}}}, 1});
    }
    task.operators.push_back({{}, {{{{0, count - 1}}, {1, 1}}}, 1});  // takes the key where it is
    return task;
}

}  // namespace

TEST_CASE("a plan goes to the key and back") {
    const TaskSearchResult found = search_task(rooms(5), plenty, plenty);
    CHECK(found.status == TaskSearchStatus::solved);
    CHECK(found.operators == std::vector<std::int32_t>{0, 2, 4, 6, 8, 7, 5, 3, 1});
}

TEST_CASE("that there is no plan is proved, and little work is no proof") {
    Task task = rooms(5);
    task.operators.erase(task.operators.begin() + 6);  // the way into the last room
    CHECK(search_task(task, plenty, 0).status == TaskSearchStatus::unsolvable);
    CHECK(search_task(rooms(5), 10, 0).status == TaskSearchStatus::limit);
}

TEST_CASE("the first plan is given up for a cheaper one") {
    Task task{{3}, {-1}, {0}, {{0, 2}}, {}, {}};
    task.operators = {{{}, {{{}, {0, 2}}}, 9}, {{{0, 0}}, {{{}, {0, 1}}}, 2}, {{{0, 1}}, {{{}, {0, 2}}}, 3}};
    CHECK(search_task(task, plenty, plenty).operators == std::vector<std::int32_t>{1, 2});
}
