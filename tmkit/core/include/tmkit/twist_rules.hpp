// Rules of the set of twist edges of a scene.
//
// The order in which edges of poses and of twists are added does not matter, and a part of an
// accepted set is accepted. An accepted set can therefore be written, read and rebuilt in any
// order. Shared by the persistent scene and its arrays.
//
// An edge leads from a reference body to a frame of another body; the frame is in a tree of poses.
// A path goes down along edges.
//
//   TE4  no two frames of one body in one tree have paths from a common body: their twists would be
//        defined twice;
//   TE5  no path leads from a body back to itself;
//   TE6  the edges to the frames of one tree join no two bodies twice, in any direction: they form
//        a forest of bodies.
//
// TE6 makes the twist between two bodies unique if poses permit computing it. TE4 and TE5 consider
// all trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tmkit {

class TwistRules {
public:
    using Number = std::uint32_t;  // identifies frames, trees and bodies

    struct Link {
        Number frame, tree, body, reference;
        bool waits = false;  // an observation, which TE4 and TE5 ignore
    };
    enum class Rule { TE4, TE5, TE6 };
    // The edge and the rule that it violates; TE4 also has the common body and the other frame.
    struct Violation {
        Rule rule;
        Link link;
        Number above = 0, other = 0;
    };

    void reserve(std::size_t links);  // no allocation after this for up to this many
    void clear() { links_.clear(); }
    void add(const Link& link) { links_.push_back(link); }

    // Return a rule that the links violate. With a new edge, which is the last link, the violation
    // names it; else, as trees are joined, TE6 precedes TE4. O(t log t) for t links, and again for
    // each body with several frames in one tree.
    std::optional<Violation> find_violation(bool with_new);

private:
    void number_bodies();
    template <class Visit> void climb(Number from, Visit&& visit);
    std::optional<Violation> leads_back();
    std::optional<Violation> find_second_path(bool with_new);
    std::optional<Violation> find_double_join();
    Violation make_violation(Rule rule, std::size_t link, Number above = 0,
                             std::size_t other = 0) const;

    std::vector<Link> links_;
    std::vector<Number> bodies_, numbers_;  // ascending, and their dense numbers by first mention
    std::vector<Number> raw_;               // by dense number
    std::vector<std::size_t> order_;        // of links: by body and tree, or by tree
    // By dense number: index in order_ of the first link of a body.
    std::vector<std::size_t> first_;
    std::vector<Number> queue_, set_;  // bodies to process; union-find
    std::vector<std::size_t> owner_;   // by dense number: the link that led there, plus one
};

}  // namespace tmkit
