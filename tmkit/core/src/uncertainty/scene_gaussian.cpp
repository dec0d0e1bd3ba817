#include "tmkit/scene_gaussian.hpp"

#include "tmkit/random.hpp"
#include "uncertainty/noise_path.hpp"

namespace tmkit {

GaussianPose gaussian_pose(const SceneGraph& scene, std::string_view target, std::string_view reference,
                           const double* q) {
    NoiseSum common;
    return gaussian_along(Path(scene, scene.record(reference), scene.record(target), q), common);
}

NoiseSum path_noise(const SceneGraph& scene, const FrameRecord& reference, const FrameRecord& target, const double* q) {
    NoiseSum sum;
    sum_errors(Path(scene, reference, target, q), sum);
    return sum;
}

JointGaussian joint_gaussian(const SceneGraph& scene, const std::vector<std::pair<std::string, std::string>>& pairs,
                             const double* q) {
    const std::size_t m = pairs.size();
    JointGaussian result{std::vector<Pose>(m), std::vector<double>(36 * m * m, 0.0)};
    std::vector<NoiseSum> errors;
    for (std::size_t i = 0; i < m; ++i) {
        errors.push_back(path_noise(scene, scene.record(pairs[i].second), scene.record(pairs[i].first), q));
        result.means[i] = scene.pose(pairs[i].first, pairs[i].second, q);
    }
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j <= i; ++j)
            for (const NoiseTerm& term : errors[i].terms()) {
                const NoiseTerm* twin = errors[j].find(term.source.get());
                if (!twin) continue;
                const auto a = errors[i].map(term), b = errors[j].map(*twin);
                for (std::size_t c = 0; c < a.size(); ++c)
                    for (std::size_t r = 0; r < 6; ++r)
                        for (std::size_t s = 0; s < 6; ++s)
                            result.covariance[(6 * i + r) * 6 * m + 6 * j + s] += a[c][r] * b[c][s];
            }
    for (std::size_t r = 0; r < 6 * m; ++r)
        for (std::size_t s = r + 1; s < 6 * m; ++s) result.covariance[r * 6 * m + s] = result.covariance[s * 6 * m + r];
    return result;
}

std::vector<Pose> sample_poses(const SceneGraph& scene, std::string_view target, std::string_view reference,
                               const double* q, std::size_t count, std::uint64_t seed) {
    const Path path(scene, scene.record(reference), scene.record(target), q);
    struct Step {
        Pose pose;
        const EdgeNoise* noise;
        std::vector<std::size_t> first;  // by term: where the numbers of its source begin
    };
    NoiseSum sources;  // only to number the columns
    std::vector<Step> down, up;
    for_each_edge(path, [&](const FrameRecord& edge, bool is_up) {
        Step& made = (is_up ? up : down).emplace_back(path.pose_of(edge), edge.noise.get());
        if (!edge.noise) return;
        sources.add(*edge.noise, as_it_is);
        for (const NoiseTerm& term : edge.noise->terms) made.first.push_back(sources.find(term.source.get())->column);
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
