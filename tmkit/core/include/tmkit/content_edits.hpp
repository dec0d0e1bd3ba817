// Edits of the shapes, classes and attributes of frames, of allowed collisions and of groups.
#pragma once

#include "tmkit/joint_edits.hpp"

namespace tmkit {

class ContentEdits : public JointEdits {
public:
    using JointEdits::JointEdits;

    void set_classes(std::string_view frame, std::vector<std::string> classes);
    void set_shapes(std::string_view frame, std::vector<AttachedShape> shapes);
    void add_shape(std::string_view frame, const AttachedShape& shape);
    void set_attributes(std::string_view frame, Attributes attributes);
    void allow_collision(std::string_view a, std::string_view b, std::string_view reason);
    void forbid_collision(std::string_view a, std::string_view b);
    void set_group(const GroupSpecification& group);  // creates or replaces
    void remove_group(std::string_view name);

protected:
    using Pair = SceneGraph::Pair;
    void forbid_collisions(FrameId frame);  // with any other frame
    template <class Members, class Goes>
    void drop_members(Members GroupRecord::* members, Goes&& goes);
    void leave_groups(const std::vector<FrameId>& leaving);
};

}  // namespace tmkit
