// The rules that the twist edges of a scene keep together, as a property of the set of edges: the
// order in which edges of poses and of twists are added does not matter, and a part of an accepted
// set is accepted. So what was accepted once can be written, read and built again in any order.
// Shared by the persistent scene and its arrays.
//
// An edge leads from a reference body to a frame of another body; the frame is in a tree of poses.
// A path goes down along edges.
//
//   TE4  no two frames of one body in one tree have paths from a common body: their twists would be
//   given twice; TE5  no path leads from a body back to itself; TE6  the edges to the frames of one
//   tree join no two bodies twice, in whatever direction: they form a forest of bodies.
//
// TE6 makes the twist between two bodies unique wherever poses allow it to be computed. TE4 and TE5
// look at all trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tmkit {

class TwistRules {
public:
    using Number = std::uint32_t;  // whatever identifies frames, trees and bodies

    struct Link {
        Number frame, tree, body, reference;
        bool waits = false;  // an observation: TE4 and TE5 do not look at it
    };
    enum class Rule { TE4, TE5, TE6 };
    // Which edge breaks which rule: TE4 has the common body and the other frame besides.
    struct Broken {
        Rule rule;
        Link link;
        Number above = 0, other = 0;
    };

    void reserve(std::size_t links);  // after which nothing allocates up to so many
    void clear() { links_.clear(); }
    void add(const Link& link) { links_.push_back(link); }

    // A rule that the links break, and how: the first with a new edge, which is the last link and
    // is named then; else, as trees are joined, TE6 before TE4. O(t log t) for t links, and as much
    // again for each body with several of its frames in one tree.
    std::optional<Broken> broken(bool with_new);

private:
    void number_bodies();
    template <class Visit> void climb(Number from, Visit&& visit);
    std::optional<Broken> leads_back();
    std::optional<Broken> given_twice(bool with_new);
    std::optional<Broken> joined_twice();
    Broken found(Rule rule, std::size_t link, Number above = 0, std::size_t other = 0) const;

    std::vector<Link> links_;
    std::vector<Number> bodies_, numbers_;  // ascending, and their dense numbers by first mention
    std::vector<Number> raw_;               // by dense number
    std::vector<std::size_t> order_;        // of links: by body and tree, or by tree
    std::vector<std::size_t> first_;   // by dense number: where the links of a body begin in order_
    std::vector<Number> queue_, set_;  // bodies to look above of; union-find
    std::vector<std::size_t> owner_;   // by dense number: which link led there, plus one
};

}  // namespace tmkit
