// Allocations of queries: every operator new of this program is counted.
//
// Reading a frame's pose from a Kinematics allocates nothing, a pose between two frames a few small
// lists. Creating one allocates its two arrays (q is moved in, poses are computed) for any number
// of frames, once the version has a layout.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "support/counted.hpp"
#include "support/editable_scene.hpp"
#include "tmkit/kinematics.hpp"
#include "tmkit/scene_graph.hpp"

namespace {

std::atomic<long> allocations{0};

}  // namespace

long allocations_so_far() { return allocations; }

void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size ? size : 1)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

tmkit::test::EditableScene chain(int frames) {
    tmkit::test::EditableScene scene = tmkit::test::EditableScene().add_root("world");
    std::string parent = "world";
    for (int number = 0; number < frames; ++number) {
        tmkit::FrameSpecification specification;
        specification.name = "link" + std::to_string(number);
        specification.parent = parent;
        specification.joint.type = tmkit::JointType::revolute;
        parent = specification.name;
        scene = scene.add_frame(specification);
    }
    return scene;
}

}  // namespace

TEST_CASE("the counter counts") {
    CHECK(count_allocations([] {
        std::vector<int> numbers(100);
        numbers[0] = 1;
        CHECK(numbers.size() == 100);
    }) >= 1);
}

TEST_CASE("reading a pose from a Kinematics allocates nothing") {
    const tmkit::test::EditableScene scene = chain(30);
    const tmkit::Kinematics at(scene, std::vector<double>(30, 0.1));
    double sum = at.pose("link29", "link3").translation[0];
    CHECK(count_allocations([&] { sum += at.pose("link29").translation[0]; }) == 0);
    // A pose between two frames allocates (10 times here).
    CHECK(count_allocations([&] { sum += at.pose("link29", "link3").translation[0]; }) <= 16);
}

TEST_CASE("forward kinematics allocates the same few arrays however long the chain") {
    std::vector<long> counts;
    for (const int frames : {10, 100, 1000}) {
        const tmkit::test::EditableScene scene = chain(frames);
        const std::vector<double> q(static_cast<std::size_t>(frames), 0.1);
        const tmkit::Kinematics warm(scene, q);
        counts.push_back(count_allocations([&] { const tmkit::Kinematics at(scene, q); }));
    }
    CHECK(counts == std::vector<long>{counts[0], counts[0], counts[0]});
    CHECK(counts[0] <= 3);  // the copy of q, the poses
}
