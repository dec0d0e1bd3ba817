#include "tmkit/scene_gaussian.hpp"

#include "tmkit/random.hpp"
#include "uncertainty/noise_path.hpp"

namespace tmkit {

GaussianPose gaussian_pose(const SceneGraph& scene, std::string_view target,
                           std::string_view reference, const double* q) {
    NoiseSum common;
    return path_gaussian(Path(scene, scene.record(reference), scene.record(target), q), common);
}

NoiseSum path_noise(const SceneGraph& scene, const FrameRecord& reference,
                    const FrameRecord& target, const double* q) {
    NoiseSum sum;
    sum_errors(Path(scene, reference, target, q), sum);
    return sum;
}

std::vector<Pose> sample_poses(const SceneGraph& scene, std::string_view target,
                               std::string_view reference, const double* q, std::size_t count,
                               std::uint64_t seed) {
    const Path path(scene, scene.record(reference), scene.record(target), q);
    struct Step {
        Pose pose;
        const EdgeNoise* noise;
        std::vector<std::size_t> first;  // by term: first number of its source
    };
    NoiseSum sources;  // numbers the columns
    std::vector<Step> down, up;
    for_each_edge(path, [&](const FrameRecord& edge, bool is_up) {
        Step& new_step = (is_up ? up : down).emplace_back(path.pose_of(edge), edge.noise.get());
        if (!edge.noise) return;
        sources.add(*edge.noise, as_it_is);
        for (const NoiseTerm& term : edge.noise->terms)
            new_step.first.push_back(sources.find(term.source.get())->column);
    });
    std::vector<double> w(sources.columns().size());
    const auto walk = [&](const std::vector<Step>& steps) {
        Pose pose;
        for (const Step& step : steps) {
            pose = pose * step.pose;
            if (!step.noise) continue;
            Vector6 xi{};
            for (std::size_t t = 0; t < step.first.size(); ++t) {
                const auto map = step.noise->map(step.noise->terms[t]);
                for (std::size_t c = 0; c < map.size(); ++c)
                    for (std::size_t k = 0; k < 6; ++k) xi[k] += w[step.first[t] + c] * map[c][k];
            }
            pose = pose * Pose::exp(xi);
        }
        return pose;
    };
    NormalRandom normal(seed);
    std::vector<Pose> poses(count);
    for (Pose& pose : poses) {
        for (double& number : w) number = normal();
        pose = walk(down);
        if (!up.empty()) pose = walk(up).inverse() * pose;
    }
    return poses;
}

}  // namespace tmkit
