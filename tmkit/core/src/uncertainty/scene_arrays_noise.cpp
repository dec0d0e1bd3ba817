// Uncertainty in the arrays: the errors of edges, in room that was taken at construction.
#include "graph/scene_arrays_view.hpp"
#include "uncertainty/noise_path.hpp"

namespace tmkit {

void SceneArrays::require_noise_fits(std::size_t columns) const {
    if (columns > capacities_.noise) throw refusals::full("dimension of noise sources", capacities_.noise, "noise");
}

void SceneArrays::write_noise(Slot slot, const EdgeNoise* noise) {
    if (noise_.empty()) return;
    EdgeNoise& mine = *noise_[slot];
    if (noise == &mine) return;
    mine.terms.clear();
    mine.maps.clear();
    mine.covariance = noise ? noise->covariance : Covariance{};
    if (!noise) return;
    mine.terms.assign(noise->terms.begin(), noise->terms.end());  // within what was reserved
    mine.maps.assign(noise->maps.begin(), noise->maps.end());
}

void SceneArrays::set_noise(std::string_view frame, const Ref<const EdgeNoise>& noise) {
    const Writer writer(lock_);
    const Slot slot = require_frame(frame);
    if (parent_[slot] == none) throw refusals::root_without(frame, "covariance");
    require_noise_fits(noise ? noise->maps.size() : 0);
    write_noise(slot, noise.get());
}

const EdgeNoise* SceneArrays::noise(std::string_view frame) const { return noise_at(require_frame(frame)); }

SceneArrays::Way SceneArrays::way(Slot target, Slot reference, const Configuration& q) const {
    const Ways found = ways(target, reference);
    const auto fill = [&](Slot slot, std::int32_t edges, std::int32_t first) {
        for (std::int32_t i = edges; i-- > 0; slot = parent_[slot]) gathered_[first + i] = slot;
        return std::span<const Slot>(gathered_.data() + first, static_cast<std::size_t>(edges));
    };
    return {*this, q, fill(target, found.target, 0), fill(reference, found.reference, found.target)};
}

GaussianPose SceneArrays::gaussian_pose(std::string_view target, std::optional<std::string_view> reference,
                                        const Configuration& q) {
    const Writer writer(lock_);
    require_length(q);
    const Slot to = require_frame(target),
               from = reference ? require_frame(*reference) : rules::root_of(View(*this), to);
    if (noise_.empty()) return {pose_between(to, from, q), {}};
    noise_sum_.clear();
    return gaussian_along(way(to, from, q), noise_sum_);
}

}  // namespace tmkit
