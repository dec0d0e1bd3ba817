// Searches of small tasks with known best plans; tests/task_planning/test_task_plan_source.py has
// random ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "tmkit/task_search.hpp"

using namespace tmkit;

namespace {

constexpr std::int64_t plenty = 10'000'000;
constexpr TaskSearchWork by_search{plenty, plenty, 0};
constexpr TaskSearchWork by_agenda{0, plenty, plenty};

using Numbers = std::vector<std::int32_t>;

// A row of rooms, a key in the last one, and a door that is open (a derived fact) while the key is
// carried.
Task rooms(std::int32_t count) {
    Task task{{count, 2, 2}, {-1, -1, 0}, {0, 0, 1}, {}, {}, {{{{1, 1}}, {2, 0}}}};
    for (std::int32_t i = 0; i + 1 < count; ++i) {
        task.operators.push_back({{{0, i}}, {{{}, {0, i + 1}}}, 1});
        task.operators.push_back({{{0, i + 1}}, {{{}, {0, i}}}, 1});
    }
    task.operators.push_back({{}, {{{{0, count - 1}}, {1, 1}}}, 1});  // takes the key from its room
    return task;
}
const TaskFacts door_open_at_start{{2, 0}, {0, 0}};

// Dishes are cold (0), on the stove (1) or cooked (2): operator 2 i puts dish i on it, from
// anywhere; 2 i + 1 cooks.
Task dishes(std::int32_t count) {
    Task task{Numbers(count, 3), Numbers(count, -1), Numbers(count, 0), {}, {}, {}};
    for (std::int32_t i = 0; i < count; ++i) {
        task.operators.push_back({{}, {{{}, {i, 1}}}, 1});
        task.operators.push_back({{{i, 1}}, {{{}, {i, 2}}}, 1});
    }
    return task;
}
TaskFacts all_at(std::int32_t count, std::int32_t value) {
    TaskFacts facts;
    for (std::int32_t i = 0; i < count; ++i) facts.push_back({i, value});
    return facts;
}
TaskConstraint stove_capacity(std::int32_t count, std::int32_t capacity) {
    TaskConstraint constraint{all_at(count, 1), capacity - 1, {}};
    for (std::int32_t i = 0; i < count; ++i) constraint.operators.push_back(2 * i);
    return constraint;
}

// The largest number of the facts that hold at a time along the plan.
std::int32_t greatest_count(const TaskSearch& search, const TaskValues& start, const Numbers& plan,
                            const TaskFacts& facts) {
    std::int32_t greatest = 0;
    TaskValues state = start;
    for (const std::int32_t number : plan) {
        CHECK(search.is_applicable(number, state));
        state = search.apply(number, state);
        std::int32_t count = 0;
        for (const TaskFact& f : facts) count += state[f.variable] == f.value;
        greatest = std::max(greatest, count);
    }
    return greatest;
}

// Blocks on a table: variable i is the position of block i, a block, the table (`count`) or the
// hand (`count` + 1); variable `count` + i is whether it is clear, the last one whether the hand is
// empty.
Task blocks(std::int32_t count) {
    const auto n = static_cast<std::size_t>(count);
    Task task{Numbers(n, count + 2), Numbers(2 * n + 1, -1), Numbers(2 * n + 1, 0), {}, {}, {}};
    task.domains.resize(2 * n + 1, 2);
    const TaskFact empty{2 * count, 1}, full{2 * count, 0};
    for (std::int32_t i = 0; i < count; ++i) {
        const TaskFact held{i, count + 1}, clear{count + i, 1};
        TaskFacts exclusive{clear, held};
        for (std::int32_t j = 0; j <= count; ++j) {
            if (j == i) continue;
            TaskOperator pick{
                {{i, j}, clear, empty}, {{{}, held}, {{}, {count + i, 0}}, {{}, full}}, 1};
            TaskOperator put{{held}, {{{}, {i, j}}, {{}, clear}, {{}, empty}}, 1};
            if (j < count) {
                pick.effects.push_back({{}, {count + j, 1}});
                put.needs.push_back({count + j, 1});
                put.effects.push_back({{}, {count + j, 0}});
                exclusive.push_back({j, i});
            }
            task.operators.push_back(pick);
            task.operators.push_back(put);
        }
        task.mutexes.push_back(exclusive);
    }
    return task;
}
// Each block is on the given block or the table.
TaskValues piles(const Numbers& below) {
    const auto count = static_cast<std::int32_t>(below.size());
    TaskValues values = below;
    for (std::int32_t i = 0; i < count; ++i)
        values.push_back(std::ranges::find(below, i) == below.end());
    values.push_back(1);
    return values;
}

}  // namespace

TEST_CASE("a plan goes to the key and back, in one search or by the agenda") {
    const TaskSearch search(rooms(5));
    for (const TaskSearchWork& work : {by_search, by_agenda}) {
        const TaskSearchResult result = search.plan({0, 0, 1}, door_open_at_start, work);
        CHECK(result.status == TaskSearchStatus::solved);
        CHECK(result.operators == Numbers{0, 2, 4, 6, 8, 7, 5, 3, 1});
    }
}

TEST_CASE("a plan begins in any state, with any derived values") {
    const TaskSearch search(rooms(5));
    CHECK(search.derive({2, 1, 1}) == TaskValues{2, 1, 0});
    CHECK(search.plan({2, 1, 1}, door_open_at_start, by_search).operators == Numbers{3, 1});
    CHECK(search.applicable({4, 0, 1}) == Numbers{7, 8});
}

TEST_CASE("a missing plan is proved, and exhausted work is no proof") {
    Task task = rooms(5);
    task.operators.erase(task.operators.begin() + 6);  // the move into the last room
    const TaskSearch closed(task), open(rooms(5));
    CHECK(closed.plan({0, 0, 1}, door_open_at_start, by_search).status ==
          TaskSearchStatus::unsolvable);
    CHECK(closed.plan({0, 0, 1}, door_open_at_start, by_agenda).status == TaskSearchStatus::limit);
    CHECK(open.plan({0, 0, 1}, door_open_at_start, {10, 0, 0}).status == TaskSearchStatus::limit);
    const TaskSearch forbidden = open.with_constraints({{{}, -1, {6}}});
    CHECK(forbidden.plan({0, 0, 1}, door_open_at_start, by_search).status ==
          TaskSearchStatus::unsolvable);
}

TEST_CASE("the first plan is replaced by a cheaper one") {
    Task task{{3}, {-1}, {0}, {}, {}, {}};
    task.operators = {
        {{}, {{{}, {0, 2}}}, 9}, {{{0, 0}}, {{{}, {0, 1}}}, 2}, {{{0, 1}}, {{{}, {0, 2}}}, 3}};
    const TaskSearch search(std::move(task));
    for (const TaskSearchWork& work : {by_search, by_agenda})
        CHECK(search.plan({0}, {{0, 2}}, work).operators == Numbers{1, 2});
}

TEST_CASE("no more dishes than its capacity are on the stove") {
    constexpr std::int32_t count = 12;
    const TaskSearch search(dishes(count));
    const TaskValues start(count, 0);
    for (const std::int32_t capacity : {1, 5, count}) {
        const TaskSearch limited = search.with_constraints({stove_capacity(count, capacity)});
        const TaskSearchResult result = limited.plan(start, all_at(count, 2), by_agenda);
        CHECK(result.operators.size() == 2 * count);
        CHECK(greatest_count(limited, start, result.operators, all_at(count, 1)) <= capacity);
    }
}

TEST_CASE("a goal of more dishes on the stove than its capacity is unsolvable at once") {
    const TaskSearch search(dishes(30));
    const TaskSearchResult result = search.with_constraints({stove_capacity(30, 13)})
                                        .plan(TaskValues(30, 0), all_at(30, 1), by_agenda);
    CHECK(result.status == TaskSearchStatus::unsolvable);
    CHECK(result.evaluated == 0);
    const TaskSearchResult enough = search.with_constraints({stove_capacity(30, 30)})
                                        .plan(TaskValues(30, 0), all_at(30, 1), by_agenda);
    CHECK(enough.operators.size() == 30);
}

TEST_CASE("an operator that may or may not remove a fact is counted by the state") {
    const TaskSearch search(dishes(2));
    const TaskSearch limited = search.with_constraints({{{{0, 1}, {1, 1}}, 0, {0, 2}}});
    CHECK(limited.applicable({0, 0}) == Numbers{0, 2});
    CHECK(limited.applicable({1, 0}) == Numbers{1});
    CHECK(limited.applicable({2, 0}) == Numbers{0, 2});
    CHECK(limited.plan({0, 0}, {{0, 2}, {1, 1}}, by_search).operators == Numbers{0, 1, 2});
    CHECK(limited.plan({0, 0}, {{0, 1}, {1, 1}}, by_search).status == TaskSearchStatus::unsolvable);
}

TEST_CASE("a path is followed until the goal holds") {
    const TaskSearch search(dishes(1));
    const std::optional<TaskPath> path = search.follow({0}, {{0, 2}}, {1, 0, 1, 0}, true);
    REQUIRE(path);
    CHECK(path->operators == Numbers{0, 1});
    CHECK(path->states == std::vector<TaskValues>{{0}, {1}, {2}});
    CHECK(!search.follow({0}, {{0, 2}}, {1, 0, 1, 0}, false));
    CHECK(!search.follow({0}, {{0, 2}}, {0}, true));
}

TEST_CASE("an interruption ends the search at the next goal") {
    const TaskSearch search(dishes(12));
    int calls = 0;
    const auto interrupt = [&] { return ++calls == 3; };
    const TaskSearchResult result =
        search.plan(TaskValues(12, 0), all_at(12, 2), by_agenda, interrupt);
    CHECK(result.status == TaskSearchStatus::interrupted);
    CHECK(calls == 3);
}

TEST_CASE("several threads get equal plans of one object") {
    constexpr std::int32_t count = 12;
    const TaskSearch search =
        TaskSearch(dishes(count)).with_constraints({stove_capacity(count, 3)});
    const TaskFacts goal = all_at(count, 2);
    constexpr TaskSearchWork work{0, 100'000, plenty};
    const Numbers expected = search.plan(TaskValues(count, 0), goal, work).operators;
    std::vector<Numbers> plans(4);
    std::vector<std::thread> threads;
    for (Numbers& plan : plans)
        threads.emplace_back(
            [&] { plan = search.plan(TaskValues(count, 0), goal, work).operators; });
    for (std::thread& thread : threads) thread.join();
    for (const Numbers& plan : plans) CHECK(plan == expected);
}

TEST_CASE("an obstructing block is moved before a tower is built on it") {
    // Block 3 is on block 0, and the goal is the tower 3, 2, 1.
    const TaskSearch search(blocks(4));
    const TaskSearchResult result =
        search.plan(piles({4, 4, 4, 0}), {{0, 1}, {1, 2}, {2, 3}}, by_agenda);
    CHECK(result.status == TaskSearchStatus::solved);
    CHECK(result.operators.size() == 8);
}

TEST_CASE(
    "a plan of the agenda has no more moves than blocks, where each can go to its goal at once") {
    // A pile of twelve blocks is reversed.
    constexpr std::int32_t count = 12;
    Numbers below{count};
    TaskFacts goal;
    for (std::int32_t i = 1; i < count; ++i) {
        below.push_back(i - 1);
        goal.push_back({i - 1, i});
    }
    const TaskSearch search(blocks(count));
    const TaskSearchResult result = search.plan(piles(below), goal, by_agenda);
    CHECK(result.status == TaskSearchStatus::solved);
    CHECK(result.operators.size() == 2 * count);
    CHECK(search.plan(piles(below), goal, by_agenda).operators == result.operators);
}
