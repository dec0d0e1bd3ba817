// Stamped poses of edges: the rules that they share with poses, and what follows from them.
#include <algorithm>

#include "ascent.hpp"
#include "scene_rules.hpp"
#include "tmkit/scene_edit.hpp"

namespace tmkit {

// --- edits -----------------------------------------------------------------------------------------------------------

void SceneEdit::check_new_stamps(const FrameSpecification& specification, const FrameRecord* parent) const {
    if (!parent) throw refusals::root_without(specification.name, "pose");
    if (body(parent->body).name->text == (specification.body.empty() ? specification.name : specification.body))
        throw refusals::moves_on_body(specification.name, parent->name->text);
    specification.stamps->check(specification.name);
}

// A history belongs to an edge: under another parent its poses mean nothing.
void SceneEdit::end_stamps(FrameRecord& changed) {
    if (!changed.details || !changed.details->stamps) return;
    FrameDetails details = *changed.details;
    details.stamps = nullptr;
    changed.details = details.empty() ? nullptr : Ref<const FrameDetails>(new FrameDetails(std::move(details)));
}

void SceneEdit::add_stamped_pose(std::string_view frame, const StampedPose& entry, std::optional<std::size_t> capacity,
                                 std::optional<double> window) {
    const FrameRecord& on = record(frame);
    rules::check_edge_for_stamps(GraphView(scene_), &on);
    const Ref<const StampedPoses> old = on.details ? on.details->stamps : nullptr;
    const StampedPoses none, &known = old ? *old : none;
    const Ref<const StampedPoses> made =
        known.with(entry, capacity.value_or(known.capacity), window.value_or(known.window), frame);
    const bool is_newest = entry.stamp == made->newest();
    const FrameId id = on.id;
    change_details(on, [&](FrameDetails& details) { details.stamps = made; });
    if (!is_newest || record(id).pose == entry.pose) return;
    own(id).pose = entry.pose;
    note_change(id, false);
}

void SceneEdit::set_stamped_poses(std::string_view frame, const Ref<const StampedPoses>& stamps) {
    const FrameRecord& on = record(frame);
    if (stamps) {
        rules::check_edge_for_stamps(GraphView(scene_), &on);
        stamps->check(frame);
    }
    change_details(on, [&](FrameDetails& details) { details.stamps = stamps; });
}

// --- queries ---------------------------------------------------------------------------------------------------------

Ref<const StampedPoses> SceneGraph::stamped_poses(std::string_view frame) const {
    const FrameRecord& on = record(frame);
    return on.details ? on.details->stamps : nullptr;
}

std::optional<std::array<double, 2>> SceneGraph::common_stamps(std::string_view a, std::string_view b) const {
    constexpr double end = std::numeric_limits<double>::infinity();
    const Ascent up(*this, record(a)), other(*this, record(b));
    const auto [steps_up, steps_other] = below_common(up, other);
    std::optional<std::array<double, 2>> found;
    const auto meet = [&](const FrameRecord& edge) {
        if (!edge.details || !edge.details->stamps) return;
        const StampedPoses& known = *edge.details->stamps;
        if (!found) found = {-end, end};
        (*found)[0] = known.entries.empty() ? end : std::max((*found)[0], known.oldest());
        (*found)[1] = known.entries.empty() ? -end : std::min((*found)[1], known.newest());
    };
    for (std::size_t i = 0; i < steps_up; ++i) meet(*up[i]);
    for (std::size_t i = 0; i < steps_other; ++i) meet(*other[i]);
    return found;
}

Vector6 SceneGraph::twist_from_stamps(std::string_view target, std::string_view reference, double first, double second,
                                      const double* q, StampPolicy policy) const {
    require_later(first, second, target);
    const Pose before = pose(target, reference, q, {first, policy}),
               after = pose(target, reference, q, {second, policy});
    require_no_twist_on_way(target, reference, true);
    return twist_between(before, after, second - first);
}

}  // namespace tmkit
