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
        throw Error(ErrorKind::configuration,
                    std::string(name) + " must be positive and finite, got " + number_text(value), {{"value", value}});
}

}  // namespace tmkit::bindings
