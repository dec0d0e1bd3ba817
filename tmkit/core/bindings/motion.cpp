#include "motion.hpp"

#include <cmath>

namespace tmkit::bindings {

std::string quoted(const std::string& text) { return nb::cast<std::string>(nb::repr(nb::cast(text))); }

std::string pair_text(const std::optional<PairNames>& pair) {
    if (!pair) return "None";
    std::string text = "(";
    text += quoted(pair->first) + ", " + quoted(pair->second);
    return text += ')';
}

PairCounts named_counts(const CollisionWorld* world, const std::vector<PairCount>& counts) {
    nb::list rows;
    for (const PairCount& count : counts)
        rows.append(nb::make_tuple(world->frame_name(count.pair.a), world->frame_name(count.pair.b), count.count));
    return PairCounts(nb::tuple(rows));
}

void require_positive(double value, const char* name) {
    if (!(value > 0.0) || std::isinf(value))
        throw Error(ErrorKind::configuration, "{} must be positive and finite, got {}", name, number_text(value))
            .with({{"value", value}});
}

ReadOnlyArray array_of(const std::vector<std::vector<double>>& rows, std::size_t columns) {
    std::vector<double> values;
    for (const std::vector<double>& row : rows) values.insert(values.end(), row.begin(), row.end());
    return make_array(std::move(values), {rows.size(), columns});
}

InverseKinematics make_problem(const SceneGraph& scene, const std::string& tip, const std::vector<std::string>& joints,
                               const ArrayArgument& q, const char* name, const std::optional<std::string>& reference) {
    const std::int32_t tip_number = frame_number(scene, tip);
    const std::int32_t reference_number = reference ? frame_number(scene, *reference) : scene.layout().root[tip_number];
    return InverseKinematics(scene, tip_number, reference_number, joint_entries(scene, joints),
                             read_vector(q, name, scene.joint_count()));
}

}  // namespace tmkit::bindings
