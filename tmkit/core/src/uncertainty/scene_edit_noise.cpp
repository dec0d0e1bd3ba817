#include <cmath>

#include "tmkit/scene_edit.hpp"
#include "tmkit/scene_gaussian.hpp"
#include "uncertainty/noise_path.hpp"

namespace tmkit {

void SceneEdit::put_noise(FrameId id, Ref<const EdgeNoise> noise) {
    if (!noise && !scene_.has_noise()) return;  // as in most scenes: not even a look at the frame
    const Ref<const EdgeNoise>& old = record(id).noise;
    if (old == noise || (old && noise && old->same_content(*noise))) return;
    if (noise) scene_.noises_.assign(id, noise);
    else scene_.noises_.remove(id);
    own(id).noise = std::move(noise);
}

void SceneEdit::set_noise(std::string_view frame, Ref<const EdgeNoise> noise) {
    const FrameRecord& on = record(frame);
    if (on.parent == no_frame) throw refusals::root_without(frame, "covariance");
    put_noise(on.id, std::move(noise));
}

void SceneEdit::add_noise(std::string_view frame, const EdgeNoise& noise) {
    const FrameRecord& on = record(frame);
    NoiseSum sum;
    if (on.noise) sum.add(*on.noise, as_it_is);
    sum.add(noise, as_it_is);
    set_noise(frame, sum.edge());
}

void SceneEdit::add_joint_noise(std::string_view joint, double variance) {
    const FrameRecord& leader = record(scene_.joint_frame(joint));
    if (!leader.joint->mimic.empty())
        throw Error(ErrorKind::scene, "joint '{}' mimics joint '{}': set the variance of that joint", joint,
                    leader.joint->mimic);
    if (!std::isfinite(variance) || variance < 0.0)
        throw Error(ErrorKind::scene, "the variance of joint '{}' must be a finite number and not negative, not {}",
                    joint, variance);
    if (variance == 0.0) return;
    // A motion along or about an axis leaves the axis, so the map is the same at every value of the joint.
    const Ref<const NoiseSource> source(new NoiseSource(1, "value of joint " + std::string(joint)));
    const double deviation = std::sqrt(variance);
    std::vector<std::pair<FrameId, EdgeNoise>> errors;
    scene_.joint_names_.for_each([&](const Ref<const Name>&, FrameId id) {
        const FrameRecord& frame = record(id);
        double factor = 1.0;
        const FrameRecord* at = &frame;
        for (; at->id != leader.id && !at->joint->mimic.empty(); at = &record(scene_.joint_frame(at->joint->mimic)))
            factor *= at->joint->mimic_multiplier;
        if (at->id != leader.id) return;
        const Vector3 move = (factor * deviation) * frame.joint->axis;
        EdgeNoise noise;
        noise.terms = {{source, 0}};
        noise.maps = {frame.joint_type == JointType::prismatic ? Vector6{move[0], move[1], move[2], 0.0, 0.0, 0.0}
                                                               : Vector6{0.0, 0.0, 0.0, move[0], move[1], move[2]}};
        errors.emplace_back(id, noise);
    });
    for (const auto& [id, noise] : errors) add_noise(record(id).name->text, noise);
}

}  // namespace tmkit
