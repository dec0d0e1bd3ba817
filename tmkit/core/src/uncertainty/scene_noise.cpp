// Errors of edges: in scenes, and in arrays, which store them in memory reserved at construction.
#include <cmath>

#include "graph/scene_arrays_view.hpp"
#include "tmkit/scene_edit.hpp"
#include "uncertainty/noise_path.hpp"

namespace tmkit {

void NoiseEdits::store_noise(FrameId id, Ref<const EdgeNoise> noise) {
    if (!noise && !scene_.has_noise()) return;  // as in most scenes: without a look-up of the frame
    const Ref<const EdgeNoise>& old = record(id).noise;
    if (old == noise || (old && noise && old->same_content(*noise))) return;
    if (noise) scene_.noises_.assign(id, noise);
    else scene_.noises_.remove(id);
    own(id).noise = std::move(noise);
}

void NoiseEdits::set_noise(std::string_view frame, Ref<const EdgeNoise> noise) {
    const FrameRecord& on = record(frame);
    if (on.parent == no_frame) throw errors::root_without(frame, "covariance");
    store_noise(on.id, std::move(noise));
}

void NoiseEdits::add_noise(std::string_view frame, const EdgeNoise& noise) {
    const FrameRecord& on = record(frame);
    NoiseSum sum;
    if (on.noise) sum.add(*on.noise, as_it_is);
    sum.add(noise, as_it_is);
    set_noise(frame, sum.edge());
}

void NoiseEdits::add_joint_noise(std::string_view joint, double variance) {
    const FrameRecord& leader = record(scene_.joint_frame(joint));
    if (!leader.joint->mimic.empty())
        throw Error(ErrorKind::scene,
                    "joint '{}' mimics joint '{}': set the variance of that joint", joint,
                    leader.joint->mimic);
    if (!std::isfinite(variance) || variance < 0.0)
        throw Error(ErrorKind::scene,
                    "the variance of joint '{}' must be a finite number and not negative, not {}",
                    joint, variance);
    if (variance == 0.0) return;
    // A motion along or about an axis leaves the axis unchanged, so the map is the same at every
    // value of the joint.
    const Ref<const NoiseSource> source(new NoiseSource(1, "value of joint " + std::string(joint)));
    const double deviation = std::sqrt(variance);
    std::vector<std::pair<FrameId, EdgeNoise>> errors;
    scene_.joint_names_.for_each([&](const Ref<const Name>&, FrameId id) {
        const FrameRecord& frame = record(id);
        double factor = 1.0;
        const FrameRecord* ancestor = &frame;
        for (; ancestor->id != leader.id && !ancestor->joint->mimic.empty();
             ancestor = &record(scene_.joint_frame(ancestor->joint->mimic)))
            factor *= ancestor->joint->mimic_multiplier;
        if (ancestor->id != leader.id) return;
        const Vector3 move = (factor * deviation) * frame.joint->axis;
        EdgeNoise noise;
        noise.terms = {{source, 0}};
        noise.maps = {frame.joint_type == JointType::prismatic
                          ? Vector6{move[0], move[1], move[2], 0.0, 0.0, 0.0}
                          : Vector6{0.0, 0.0, 0.0, move[0], move[1], move[2]}};
        errors.emplace_back(id, noise);
    });
    for (const auto& [id, noise] : errors) add_noise(record(id).name->text, noise);
}

// --- arrays

void SceneArrays::require_noise_fits(std::size_t columns) const {
    if (columns > capacities_.noise)
        throw errors::full("dimension of noise sources", capacities_.noise, "noise");
}

void SceneArrays::write_noise(Slot slot, const EdgeNoise* noise) {
    if (noise_.empty()) return;
    EdgeNoise& mine = *noise_[slot];
    if (noise == &mine) return;
    mine.terms.clear();
    mine.maps.clear();
    mine.covariance = noise ? noise->covariance : Covariance{};
    if (!noise) return;
    mine.terms.assign(noise->terms.begin(), noise->terms.end());  // within the reserved memory
    mine.maps.assign(noise->maps.begin(), noise->maps.end());
}

void SceneArrays::set_noise(std::string_view frame, const Ref<const EdgeNoise>& noise) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (parent_[slot] == none) throw errors::root_without(frame, "covariance");
    require_noise_fits(noise ? noise->maps.size() : 0);
    write_noise(slot, noise.get());
}

const EdgeNoise* SceneArrays::noise(std::string_view frame) const {
    return noise_at(require_frame(frame));
}

SceneArrays::Path SceneArrays::path(Slot target, Slot reference, const Configuration& q) const {
    const PathLengths lengths = path_lengths(target, reference);
    const auto fill = [&](Slot slot, std::int32_t edges, std::int32_t first) {
        for (std::int32_t i = edges; i-- > 0; slot = parent_[slot]) gathered_[first + i] = slot;
        return std::span<const Slot>(gathered_.data() + first, static_cast<std::size_t>(edges));
    };
    return {*this, q, fill(target, lengths.target, 0),
            fill(reference, lengths.reference, lengths.target)};
}

GaussianPose SceneArrays::gaussian_pose(std::string_view target,
                                        std::optional<std::string_view> reference,
                                        const Configuration& q) {
    const Writer writer(lock_);
    require_length(q);
    const Slot to = require_frame(target),
               from = reference ? require_frame(*reference) : rules::root_of(View(*this), to);
    if (noise_.empty()) return {pose_between(to, from, q), {}};
    noise_sum_.clear();
    return path_gaussian(path(to, from, q), noise_sum_);
}

}  // namespace tmkit
