// Noise sources of the errors of poses.
//
// A *noise source* is a standard normal vector of some dimension, independent of all other sources:
// the calibration of a mount, one observation of a camera, the slip of a grasp. The error of an
// edge of the tree is a linear map of sources,
//
//     xi_e = sum_k J_ek w_k,        covariance of e = sum_k J_ek J_ek^T
//
// in the tangent of the edge's child (covariance.hpp); that of a twist edge is of its six numbers.
// Two edges with maps of one source have correlated errors. Correlations survive every change of
// structure: when a cup is picked up, the new edge from hand to cup holds the maps of all edges
// between them. The error of the arm in both cancels in the pose of the cup relative to the table.
//
// The identity of a source is its reference. Scenes of one lineage share sources; unrelated scenes
// cannot.
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
    std::string label;  // origin of the error, for users
};

struct NoiseTerm {
    Ref<const NoiseSource> source;
    std::size_t column;  // first column of `maps` of this source
    bool operator==(const NoiseTerm&) const = default;
};

// Error of one edge. Immutable, shared between versions. Each source appears once.
struct EdgeNoise : Shared {
    Covariance covariance;  // sum of the maps' squares, or the covariance that the user gave
    std::vector<NoiseTerm> terms;
    std::vector<Vector6> maps;  // columns, as many for each term as its source has dimensions

    std::span<const Vector6> map(const NoiseTerm& term) const {
        return {maps.data() + term.column, term.source->dimension};
    }
    bool same_content(const EdgeNoise& other) const {
        return this == &other ||
               (covariance == other.covariance && terms == other.terms && maps == other.maps);
    }

    // Noise with one new source; null for a zero covariance.
    static Ref<const EdgeNoise> of_covariance(const Covariance& covariance, std::string label);
    // The same errors from new sources with the same correlations: `fresh` maps each source to its
    // replacement.
    template <class Fresh> Ref<const EdgeNoise> with_sources(Fresh&& fresh) const {
        const Ref<EdgeNoise> copy(new EdgeNoise(*this));
        for (NoiseTerm& term : copy->terms) term.source = fresh(term.source);
        return copy;
    }
};

inline bool same_noise(const Ref<const EdgeNoise>& a, const Ref<const EdgeNoise>& b) {
    return a == b || (a && b && a->same_content(*b));
}

// A sum of maps, source by source.
class NoiseSum {
public:
    // Add maps[i] -> carry(maps[i]) of a source.
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
    // Reserve space for terms and columns; the next sum allocates nothing.
    void reserve(std::size_t terms, std::size_t columns) {
        terms_.reserve(terms);
        columns_.reserve(columns);
    }
    void clear() {
        terms_.clear();
        columns_.clear();
    }
    // Return the noise of an edge with this error, without sources whose maps are zero; null if
    // none is left.
    Ref<const EdgeNoise> edge() const;
    void write_edge(EdgeNoise& edge) const;  // in place; an edge without sources is exact

private:
    Vector6* columns_of(const Ref<const NoiseSource>& source);

    std::vector<NoiseTerm> terms_;
    std::vector<Vector6> columns_;
};

// --- measurements

// Measurement of one frame relative to another by a sensor.
//
// A measurement is a value z with noise of covariance R, and a function h of the pose X =
// reference_from_target:
//
//     pose       X itself, z = Z: the residual is log(Z^-1 X), R is in the tangent at Z   6 numbers
//                (if R constrains the orientation; see retraction.hpp)
//     position   origin of the target, or a point fixed in it, in the reference's axes [m]   3
//     bearing    unit direction to that point; residual in two axes across it [rad]       2
//     range      distance to that point [m]                                               1
//
// Each returns its residual e = h(X) - z and the derivative of e by the tangent of X (right,
// local).
struct Measurement {
    enum class Kind { pose, position, bearing, range };

    Kind kind = Kind::pose;
    std::string target;
    std::optional<std::string> reference;  // by default the root of the target's tree
    Pose pose{};                           // reference_from_target as measured
    Vector3 vector{};                      // position, or unit direction
    double distance = 0.0;                 // range
    Vector3 point{};                       // in the target's axes
    std::vector<double> covariance{};      // size() x size(), row-major

    std::size_t size() const { return std::array{6, 3, 2, 1}[static_cast<std::size_t>(kind)]; }
    // Return the same measurement with the value h(X). Throws as linearise.
    Measurement expected_at(const Pose& reference_from_target) const;
    // Compute the residual (size()), exactly zero for an expected value, and its derivative
    // (size() x 6, row-major). Throws Error(scene) for a direction or a range at distance zero,
    // which have no derivative.
    void linearise(const Pose& reference_from_target, std::vector<double>& residual,
                   std::vector<double>& derivative) const;

private:
    double require_distance(const Vector3& point_in_reference) const;
};

struct ConditionOptions {
    int most_iterations = 50;
    // Convergence limit of the last change of sources, which have variance 1. Steps shrink by the
    // ratio of errors to curvature, so the remaining error is much smaller.
    double tolerance = 1e-9;
};

struct ConditionReport {
    int iterations = 0;
    bool converged = false;
    // Of the measurements under the prediction, before conditioning.
    double squared_mahalanobis = 0.0;
    std::vector<double> innovation, innovation_covariance;
};

}  // namespace tmkit
