// Structures that collision worlds of several versions share.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "collision/collision_model.hpp"

namespace tmkit {

struct CollisionWorld::Base {
    Base(SceneGraph scene, CollisionOptions options);
    ~Base();
    Base(const Base&) = delete;

    const CollisionView::Model& model() const { return view.model(); }
    // The first pair in contact among those that no joint can change.
    FramePair constant_collision() const;

    Rules rules;
    CollisionView view;              // all joints move
    CollisionView::Scratch at_zero;  // placed at the configuration zero
    std::vector<FrameId> movable;    // ascending

    struct MarginOfPair {
        FrameId a, b;  // a < b
        double margin;
        auto operator<=>(const MarginOfPair&) const = default;
    };
    std::vector<MarginOfPair> pair_margins;  // ascending

    // Scratches that no thread uses at present; threads then rarely create their own.
    struct alignas(64) Spare {
        std::atomic<CollisionView::Scratch*> scratch{nullptr};
    };
    mutable std::array<Spare, 8> spares;

private:
    mutable std::once_flag constant_checked_;
    mutable FramePair constant_collision_;
};

// The pair margins of frames in the scene, ascending.
std::vector<CollisionWorld::Base::MarginOfPair> margins_by_id(const SceneGraph& scene,
                                                              const CollisionOptions& options);

// A scratch borrowed from the base, or a new one while another thread has it.
class BorrowedScratch {
public:
    explicit BorrowedScratch(const CollisionWorld::Base& base)
        : spare_(base.spares[std::hash<std::thread::id>()(std::this_thread::get_id()) %
                             base.spares.size()]
                     .scratch),
          scratch_(spare_.exchange(nullptr)) {
        if (!scratch_) scratch_ = new CollisionView::Scratch(base.view.scratch());
    }
    BorrowedScratch(const BorrowedScratch&) = delete;
    ~BorrowedScratch() { delete spare_.exchange(scratch_); }
    CollisionView::Scratch& operator*() { return *scratch_; }

private:
    std::atomic<CollisionView::Scratch*>& spare_;
    CollisionView::Scratch* scratch_;
};

}  // namespace tmkit
