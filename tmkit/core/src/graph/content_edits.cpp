#include "tmkit/content_edits.hpp"

#include <algorithm>

#include "graph/scene_rules.hpp"

namespace tmkit {

void ContentEdits::set_classes(std::string_view frame, std::vector<std::string> classes) {
    rules::check_classes(GraphView(scene_), &record(frame), classes);
    change_details(record(frame),
                   [&](FrameDetails& details) { details.classes = std::move(classes); });
}

void ContentEdits::set_shapes(std::string_view frame, std::vector<AttachedShape> shapes) {
    change_details(record(frame),
                   [&](FrameDetails& details) { details.shapes = std::move(shapes); });
}

void ContentEdits::add_shape(std::string_view frame, const AttachedShape& shape) {
    change_details(record(frame), [&](FrameDetails& details) { details.shapes.push_back(shape); });
}

void ContentEdits::set_attributes(std::string_view frame, Attributes attributes) {
    std::sort(attributes.begin(), attributes.end());
    change_details(record(frame),
                   [&](FrameDetails& details) { details.attributes = std::move(attributes); });
}

void ContentEdits::allow_collision(std::string_view a, std::string_view b,
                                   std::string_view reason) {
    const FrameId first = record(a).id, second = record(b).id;
    if (first == second) throw errors::collides_with_itself(a);
    const Ref<const Name>* old = scene_.allowed_.find(Pair{first, second});
    if (old && (*old)->text == reason) return;
    const auto reason_name = make_ref<const Name>(reason);
    scene_.allowed_.assign({first, second}, reason_name);
    scene_.allowed_.assign({second, first}, reason_name);
}

void ContentEdits::forbid_collision(std::string_view a, std::string_view b) {
    const FrameId first = record(a).id, second = record(b).id;
    scene_.allowed_.remove(Pair{first, second});
    scene_.allowed_.remove(Pair{second, first});
}

void ContentEdits::forbid_collisions(FrameId frame) {
    std::vector<FrameId> partners;
    scene_.allowed_.for_each_from(Pair{frame, no_frame},
                                  [&](const Pair& pair, const Ref<const Name>&) {
        if (pair.first != frame) return false;
        partners.push_back(pair.second);
        return true;
    });
    for (const FrameId partner : partners) {
        scene_.allowed_.remove(Pair{frame, partner});
        scene_.allowed_.remove(Pair{partner, frame});
    }
}

void ContentEdits::set_group(const GroupSpecification& group) {
    if (group.name.empty()) throw errors::empty_group_name();
    auto new_group = make_ref<GroupRecord>();
    const auto enter = [&](const std::vector<std::string>& names, std::vector<FrameId>& ids) {
        for (const std::string& frame : names)
            if (const FrameId id = record(frame).id;
                std::find(ids.begin(), ids.end(), id) == ids.end())
                ids.push_back(id);
    };
    enter(group.frames, new_group->frames);
    enter(group.parents, new_group->parents);
    new_group->attributes = group.attributes;
    std::sort(new_group->attributes.begin(), new_group->attributes.end());
    std::vector<std::string_view> below;  // groups reached from here
    for (const std::string& member : group.groups) {
        if (member == group.name) throw errors::group_holds_itself(member);
        if (!scene_.groups_.find(std::string_view(member)))
            throw unknown_name("group", member, scene_.group_names());
        if (std::find(below.begin(), below.end(), member) != below.end()) continue;
        new_group->groups.push_back(make_ref<const Name>(member));
        below.push_back(member);
    }
    for (std::size_t next = 0; next < below.size(); ++next)
        for (const Ref<const Name>& nested : (*scene_.groups_.find(below[next]))->groups) {
            if (nested->text == group.name)
                throw errors::group_holds_in_turn(below[next], group.name);
            if (std::find(below.begin(), below.end(), nested->text) == below.end())
                below.push_back(nested->text);
        }
    const Ref<const GroupRecord>* old = scene_.groups_.find(std::string_view(group.name));
    if (old && (*old)->same_content(*new_group)) return;
    scene_.groups_.assign(make_ref<const Name>(group.name), Ref<const GroupRecord>(new_group));
}

// Remove members from all groups: `goes` selects them among `members`.
template <class Members, class Goes>
void ContentEdits::drop_members(Members GroupRecord::* members, Goes&& goes) {
    std::vector<std::pair<Ref<const Name>, Ref<GroupRecord>>> holders;
    scene_.groups_.for_each(
        [&](const Ref<const Name>& holder, const Ref<const GroupRecord>& group) {
        const Members& present = (*group).*members;
        if (std::none_of(present.begin(), present.end(), goes)) return;
        const Ref<GroupRecord> changed(new GroupRecord(*group));
        std::erase_if((*changed).*members, goes);
        holders.emplace_back(holder, changed);
    });
    for (const auto& [holder, group] : holders)
        scene_.groups_.assign(holder, Ref<const GroupRecord>(group));
}

void ContentEdits::remove_group(std::string_view name) {
    if (!scene_.groups_.find(name)) throw unknown_name("group", name, scene_.group_names());
    drop_members(&GroupRecord::groups,
                 [&](const Ref<const Name>& member) { return member->text == name; });
    scene_.groups_.remove(name);
}

void ContentEdits::leave_groups(const std::vector<FrameId>& leaving) {
    const auto goes = [&](FrameId id) {
        return std::binary_search(leaving.begin(), leaving.end(), id);
    };
    drop_members(&GroupRecord::frames, goes);
    drop_members(&GroupRecord::parents, goes);
}

}  // namespace tmkit
