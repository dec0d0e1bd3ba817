#include "tmkit/noise.hpp"

#include <algorithm>

#include "tmkit/error.hpp"

namespace tmkit {

Ref<const EdgeNoise> EdgeNoise::of_covariance(const Covariance& covariance, std::string label) {
    std::vector<Vector6> columns = covariance.root();
    if (columns.empty()) return nullptr;
    const auto made = make_ref<EdgeNoise>();
    made->covariance = covariance;
    made->terms = {{Ref<const NoiseSource>(new NoiseSource(columns.size(), std::move(label))), 0}};
    made->maps = std::move(columns);
    return made;
}

const NoiseTerm* NoiseSum::find(const NoiseSource* source) const {
    for (const NoiseTerm& term : terms_)
        if (term.source.get() == source) return &term;
    return nullptr;
}

Vector6* NoiseSum::columns_of(const Ref<const NoiseSource>& source) {
    if (const NoiseTerm* known = find(source.get())) return columns_.data() + known->column;
    terms_.push_back({source, columns_.size()});
    columns_.resize(columns_.size() + source->dimension);
    return columns_.data() + terms_.back().column;
}

void NoiseSum::write_edge(EdgeNoise& edge) const {
    edge.terms.clear();
    edge.maps.clear();
    for (const NoiseTerm& term : terms_) {
        const auto columns = map(term);
        if (std::all_of(columns.begin(), columns.end(), [](const Vector6& c) { return c == Vector6{}; })) continue;
        edge.terms.push_back({term.source, edge.maps.size()});
        edge.maps.insert(edge.maps.end(), columns.begin(), columns.end());
    }
    edge.covariance = Covariance::of_columns(edge.maps);
    require_in_range(edge.covariance.matrix(), "a covariance");
}

Ref<const EdgeNoise> NoiseSum::edge() const {
    const auto made = make_ref<EdgeNoise>();
    write_edge(*made);
    return made->terms.empty() ? Ref<const EdgeNoise>() : Ref<const EdgeNoise>(made);
}

}  // namespace tmkit
