// Records of frames, bodies and groups in a scene graph, and their specifications.
//
// Records are immutable once a version holds them, shared between versions, and refer to each other
// by ids, which survive rename and reparenting. A frame's record has a hot part (parent, body,
// joint type, pose), which every query reads, and pointers to data that most frames lack.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tmkit/joint.hpp"
#include "tmkit/layout.hpp"
#include "tmkit/noise.hpp"
#include "tmkit/shape.hpp"
#include "tmkit/stamped_poses.hpp"

namespace tmkit {

struct Name : Shared {
    explicit Name(std::string_view t) : text(t) {}
    std::string text;
};

struct NameLess {
    static std::string_view view(const Ref<const Name>& name) { return name->text; }
    static std::string_view view(std::string_view text) { return text; }
    template <class A, class B> bool operator()(const A& a, const B& b) const {
        return view(a) < view(b);
    }
};

// Mass properties of a body, in the axes of one of its frames: [kg], [m], and [kg m^2] about the
// centre of mass.
struct Inertia {
    double mass = 0.0;
    Vector3 center{0.0, 0.0, 0.0};
    Matrix3 matrix{};

    // Throws Error(scene) for a mass that is not positive and finite, or a matrix that is not
    // symmetric positive semi-definite (within 1e-9 of its trace) or has a principal moment more
    // than 1 % above the sum of the others.
    void check() const;
    // Check all rules but the last, which earlier versions lacked: stored data are read unchanged.
    // The matrix is returned with numbers of the order of 1.
    Matrix3 check_stored() const;
    // Return the same inertia in other axes, those of a frame; the present axes are at
    // `frame_from_axes` in it.
    Inertia in_axes_of(const Pose& frame_from_axes) const;
    bool operator==(const Inertia&) const = default;
};

// Free tags of a frame or a group, sorted by key. A value is canonical JSON text, so equal values
// are equal text. It may end with `@` and the stamp of the value [s], a JSON number.
using Attributes = std::vector<std::pair<std::string, std::string>>;

// A twist edge: the twist of the body of a frame relative to another body, at the frame's origin
// and in its axes [m/s, rad/s], linear part first. In the notation of the papers (g|C, D, [g]).
struct TwistEdge {
    std::string reference;  // name of the body D
    std::array<double, 6> vector{};
    // Error of the vector, constant in time; null if it is exact.
    Ref<const EdgeNoise> noise{};

    bool same_motion(const TwistEdge& other) const {
        return reference == other.reference && vector == other.vector;
    }
    bool operator==(const TwistEdge& other) const {
        return same_motion(other) && same_noise(noise, other.noise);
    }
};

inline bool same_stamps(const Ref<const StampedPoses>& a, const Ref<const StampedPoses>& b) {
    return a == b || (a && b && *a == *b);
}

// Rare data of frames, stored separately at no cost for other frames.
struct FrameDetails : Shared {
    std::vector<AttachedShape> shapes;
    std::vector<std::string> classes;
    Attributes attributes;
    std::optional<TwistEdge> twist;
    // Of the edge above, which lies between two bodies; null: no history.
    Ref<const StampedPoses> stamps;

    bool empty() const {
        return shapes.empty() && classes.empty() && attributes.empty() && !twist && !stamps;
    }
    bool same_but_for_noise(const FrameDetails& other) const {
        const bool same_twist =
            twist && other.twist ? twist->same_motion(*other.twist) : !twist && !other.twist;
        return classes == other.classes && attributes == other.attributes &&
               shapes == other.shapes && same_twist && same_stamps(stamps, other.stamps);
    }
    bool same_content(const FrameDetails& other) const {
        return same_but_for_noise(other) && twist == other.twist;
    }
};

struct FrameRecord : Shared {
    FrameId id = no_frame;
    FrameId parent = no_frame;  // no_frame for a root
    BodyId body = 0;
    JointType joint_type = JointType::fixed;
    // false: the motion of the edge is unknown; only for a fixed edge between two bodies.
    bool is_stated = true;
    Pose pose;  // parent_from_frame at joint value 0
    Ref<const Name> name;
    Ref<const Joint> joint;           // null for fixed and free
    Ref<const FrameDetails> details;  // null if there are none
    // Error of the edge, in the frame's tangent behind the joint; null if it is exact.
    Ref<const EdgeNoise> noise;

    const EdgeNoise* twist_noise() const {
        return details && details->twist ? details->twist->noise.get() : nullptr;
    }
};

struct BodyRecord : Shared {
    Ref<const Name> name;
    // Root frames of the body in each tree where it has frames; empty: no frame yet.
    std::vector<FrameId> tops;
    FrameId inertia_frame = no_frame;
    Inertia inertia;
};

// Frames and groups with a common meaning: groups nest, may share members, and may be below frames.
struct GroupRecord : Shared {
    std::vector<FrameId> frames;          // in the order given, each once
    std::vector<Ref<const Name>> groups;  // each once
    std::vector<FrameId> parents;         // frames above it, each once
    Attributes attributes;

    bool same_content(const GroupRecord& other) const {
        const auto same_name = [](const Ref<const Name>& a, const Ref<const Name>& b) {
            return a->text == b->text;
        };
        return frames == other.frames && parents == other.parents &&
               attributes == other.attributes &&
               std::equal(groups.begin(), groups.end(), other.groups.begin(), other.groups.end(),
                          same_name);
    }
};

// --- specifications, by name

struct FrameSpecification {
    std::string name, parent;
    Pose pose;
    Joint joint;
    std::string body;  // empty: a body with the frame's name
    std::vector<std::string> classes;
    std::vector<AttachedShape> shapes;
    std::optional<Inertia> inertia{};  // of the body, in the axes of this frame
    Attributes attributes{};
    std::optional<TwistEdge> twist{};
    Ref<const StampedPoses> stamps{};
    Ref<const EdgeNoise> noise{};  // its sources keep their identity

    bool same_content(const FrameSpecification& other) const;
};

struct AllowedPair {
    std::string a, b, reason;
};

struct GroupSpecification {
    std::string name;
    std::vector<std::string> frames, groups, parents{};
    Attributes attributes{};
    bool operator==(const GroupSpecification&) const = default;
};

}  // namespace tmkit
