// Edits of joints: their rules, limits and mimic joints.
#pragma once

#include "tmkit/body_edits.hpp"

namespace tmkit {

class JointEdits : public BodyEdits {
public:
    using BodyEdits::BodyEdits;

    void set_joint(std::string_view frame, Joint joint);

protected:
    LeaderRanges leader_ranges() const;
    Ref<const Joint> checked_joint(Joint joint, FrameId frame, std::string_view frame_name);
    void check_limits(const Joint& joint, FrameId id, const FrameRecord* leader);
    void store_joint(FrameId frame, const Ref<const Joint>& joint);
    void require_no_followers(const std::vector<FrameId>& leaving) const;  // ids ascending
    void drop_joint(const FrameRecord& record);
};

}  // namespace tmkit
