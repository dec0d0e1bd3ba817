// Where the errors of poses come from.
//
// A *noise source* is a standard normal vector of some dimension, independent of all other sources:
// the calibration of one mount, one look of a camera, the slip of one grasp. The error of an edge
// of the tree is a linear map of sources,
//
//     xi_e = sum_k J_ek w_k,        covariance of e = sum_k J_ek J_ek^T
//
// in the tangent of the edge's child (covariance.hpp); that of a twist edge is of its six numbers.
// Two edges that hold maps of one source have correlated errors, and so correlations survive every
// change of structure: when a cup is picked up, the new edge from hand to cup holds the maps of all
// edges between them, and what the arm's error did to both cancels when the cup is asked for
// relative to the table.
//
// A source is known by its identity alone (a reference), so scenes made from one another share
// sources, and scenes that have nothing to do with each other cannot.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tmkit/covariance.hpp"
#include "tmkit/reference.hpp"

namespace tmkit {

struct NoiseSource : Shared {
    NoiseSource(std::size_t d, std::string l) : dimension(d), label(std::move(l)) {}
    std::size_t dimension;
    std::string label;  // for people: where the error comes from
};

struct NoiseTerm {
    Ref<const NoiseSource> source;
    std::size_t column;  // of `maps`, where its own begin
    bool operator==(const NoiseTerm&) const = default;
};

// The error of one edge. Immutable, shared between versions. Each source appears once.
struct EdgeNoise : Shared {
    Covariance covariance;  // sum of the maps' squares; of a covariance that was given, that itself
    std::vector<NoiseTerm> terms;
    std::vector<Vector6> maps;  // columns: as many for each term as its source has dimensions

    std::span<const Vector6> map(const NoiseTerm& term) const {
        return {maps.data() + term.column, term.source->dimension};
    }
    bool same_content(const EdgeNoise& other) const {
        return this == &other ||
               (covariance == other.covariance && terms == other.terms && maps == other.maps);
    }

    // One source of its own; null for no error at all.
    static Ref<const EdgeNoise> of_covariance(const Covariance& covariance, std::string label);
    // The same errors from sources of their own, which correlate with each other as these do:
    // `fresh` gives each its twin.
    template <class Fresh> Ref<const EdgeNoise> with_sources(Fresh&& fresh) const {
        const Ref<EdgeNoise> copy(new EdgeNoise(*this));
        for (NoiseTerm& term : copy->terms) term.source = fresh(term.source);
        return copy;
    }
};

inline bool same_noise(const Ref<const EdgeNoise>& a, const Ref<const EdgeNoise>& b) {
    return a == b || (a && b && a->same_content(*b));
}

// Sums maps source by source.
class NoiseSum {
public:
    // Adds maps[i] -> carry(maps[i]) of a source.
    template <class Carry>
    void add(const Ref<const NoiseSource>& source, std::span<const Vector6> map, Carry&& carry) {
        Vector6* mine = columns_of(source);
        for (std::size_t i = 0; i < map.size(); ++i) {
            const Vector6 moved = carry(map[i]);
            for (std::size_t k = 0; k < 6; ++k) mine[i][k] += moved[k];
        }
    }
    template <class Carry> void add(const EdgeNoise& noise, Carry&& carry) {
        for (const NoiseTerm& term : noise.terms) add(term.source, noise.map(term), carry);
    }

    const std::vector<NoiseTerm>& terms() const { return terms_; }
    const std::vector<Vector6>& columns() const { return columns_; }
    std::span<const Vector6> map(const NoiseTerm& term) const {
        return {columns_.data() + term.column, term.source->dimension};
    }
    const NoiseTerm* find(const NoiseSource* source) const;
    Covariance covariance() const { return Covariance::of_columns(columns_); }
    // Room for so many sources and columns, which the next sum fills without allocating.
    void reserve(std::size_t terms, std::size_t columns) {
        terms_.reserve(terms);
        columns_.reserve(columns);
    }
    void clear() {
        terms_.clear();
        columns_.clear();
    }
    // What an edge holds for this error; sources whose maps vanished are left out, null when none
    // is left.
    Ref<const EdgeNoise> edge() const;
    void write_edge(EdgeNoise& edge) const;  // the same in place; an edge without sources is exact

private:
    Vector6* columns_of(const Ref<const NoiseSource>& source);

    std::vector<NoiseTerm> terms_;
    std::vector<Vector6> columns_;
};

// --- measurements
// ----------------------------------------------------------------------------------------------------

// What a sensor says of one frame relative to another.
//
// A measurement is a value z with noise of covariance R, and a function h of the pose X =
// reference_from_target:
//
//     pose       X itself, z = Z: the residual is log(Z^-1 X), R is in the tangent at Z 6 numbers
//                (where R knows the orientation; see retraction.hpp)
//     position   the origin of the target, or a point fixed in it, in the reference's axes; metres
//     3 bearing    the direction to that point, a unit vector; residual in two axes across it,
//     radians  2 range      the distance to that point; metres 1
//
// Each gives its residual e = h(X) - z and the derivative of e by the tangent of X (right, local).
struct Measurement {
    enum class Kind { pose, position, bearing, range };

    Kind kind = Kind::pose;
    std::string target;
    std::optional<std::string> reference;  // the root of the target's tree when there is none
    Pose pose{};                           // reference_from_target as measured
    Vector3 vector{};                      // position, or unit direction
    double distance = 0.0;                 // range
    Vector3 point{};                       // in the target's axes
    std::vector<double> covariance{};      // size() x size(), row-major

    std::size_t size() const { return std::array{6, 3, 2, 1}[static_cast<std::size_t>(kind)]; }
    // The same measurement with the value h(X). Throws as linearise.
    Measurement expected_at(const Pose& reference_from_target) const;
    // residual (size()), exactly zero for an expected value, and derivative (size() x 6,
    // row-major). Throws Error(scene) where a direction or a range has none: at distance zero.
    void linearise(const Pose& reference_from_target, std::vector<double>& residual,
                   std::vector<double>& derivative) const;

private:
    double require_distance(const Vector3& point_in_reference) const;
};

struct ConditionOptions {
    int most_iterations = 50;
    // Of the last change of sources, which have variance 1. Steps shrink by the ratio of errors to
    // curvature, so what is left is far less than that.
    double tolerance = 1e-9;
};

struct ConditionReport {
    int iterations = 0;
    bool converged = false;
    double squared_mahalanobis =
        0.0;  // of what was measured under what was expected, before conditioning
    std::vector<double> innovation, innovation_covariance;
};

}  // namespace tmkit
