// What pickle keeps of a scene, and how it is read back.
#include <nanobind/stl/array.h>

#include <unordered_map>

#include "bindings.hpp"
#include "tmkit/scene_edit.hpp"

namespace tmkit::bindings {

// What pickle keeps: (format, shapes, frames, allowed pairs, groups, bare bodies, noise sources). A shape and a source are
// written once however many frames hold them.
nb::tuple scene_state(const SceneGraph& scene) {
    nb::list shapes, frames, allowed;
    std::unordered_map<const Shape*, std::size_t> places;
    const auto attached_state = [&](const FrameRecord& record) {
        nb::list attached;
        if (!record.details) return attached;
        for (const AttachedShape& a : record.details->shapes) {
            const auto [place, is_new] = places.emplace(a.shape.get(), places.size());
            if (is_new) shapes.append(nb::cast(ShapeHandle{a.shape}));
            attached.append(nb::make_tuple(place->second, a.pose, a.color, a.has_color, a.visual, a.collision, a.friction,
                                           a.level ? nb::cast(name_of(*a.level)) : nb::none()));
        }
        return attached;
    };
    nb::list sources;
    std::unordered_map<const NoiseSource*, std::size_t> numbers;
    const auto noise_state = [&](const EdgeNoise* noise) -> nb::object {
        if (!noise) return nb::none();
        nb::list terms;
        for (const NoiseTerm& term : noise->terms) {
            const auto [number, is_new] = numbers.emplace(term.source.get(), numbers.size());
            if (is_new) sources.append(nb::make_tuple(term.source->dimension, term.source->label));
            terms.append(number->second);
        }
        return nb::make_tuple(noise->covariance.matrix(), terms, noise->maps);
    };
    for (const std::string& name : scene.frame_names()) {
        const FrameRecord& record = scene.record(name);
        const BodyRecord& body = scene.body(record.body);
        nb::object parent = record.parent == no_frame ? nb::none() : nb::cast(scene.record(record.parent).name->text);
        nb::object inertia = body.inertia_frame == record.id ? nb::cast(body.inertia) : nb::none();
        frames.append(nb::make_tuple(name, parent, body.name->text, record.pose, joint_of(record),
                                     record.details ? record.details->classes : std::vector<std::string>{},
                                     attached_state(record), inertia, attributes_on(record), twist_tuple(scene.twist(name)),
                                     stamps_state(scene.stamped_poses(name)), noise_state(record.noise.get()),
                                     noise_state(record.twist_noise())));
    }
    nb::list groups;
    for (const std::string& name : scene.group_names()) {
        const GroupSpecification group = scene.group(name);
        groups.append(nb::make_tuple(group.name, group.frames, group.groups));
    }
    for (const AllowedPair& pair : scene.allowed_pairs()) allowed.append(nb::make_tuple(pair.a, pair.b, pair.reason));
    return nb::make_tuple(8, shapes, frames, allowed, groups, scene.bare_bodies(), sources);
}

SceneGraph scene_from_state(const nb::tuple& state) {
    const int format = nb::cast<int>(state[0]);
    if (format < 2 || format > 8)  // 2 had no groups and attributes, 3 no levels of shapes, 4 no twists and bare bodies, 5 no stamps, 6 no noise, 7 none of twists
        throw Error(ErrorKind::scene, "this pickled scene is of format " + std::to_string(format) + ", written by another version of tmkit; formats 2 to 8 are read");
    const auto shapes = nb::cast<std::vector<ShapeHandle>>(state[1]);
    std::vector<Ref<const NoiseSource>> sources;
    if (format > 6)
        for (const auto& [dimension, label] : nb::cast<std::vector<std::pair<std::size_t, std::string>>>(state[6]))
            sources.emplace_back(new NoiseSource(dimension, label));
    const auto read_noise = [&](nb::handle entry) -> Ref<const EdgeNoise> {
        if (entry.is_none()) return nullptr;
        const nb::tuple n = nb::cast<nb::tuple>(entry);
        const auto made = make_ref<EdgeNoise>();
        made->covariance = Covariance::checked(nb::cast<Matrix6>(n[0]), "covariance");
        std::size_t columns = 0;
        for (const std::size_t number : nb::cast<std::vector<std::size_t>>(n[1])) {
            made->terms.push_back({sources.at(number), columns});
            columns += sources.at(number)->dimension;
        }
        made->maps = nb::cast<std::vector<Vector6>>(n[2]);
        if (made->maps.size() != columns) throw Error(ErrorKind::scene, "a pickled scene holds a covariance whose maps do not fit its sources");
        return made;
    };
    std::vector<FrameSpecification> specifications;
    for (nb::handle entry : nb::cast<nb::list>(state[2])) {
        const nb::tuple f = nb::cast<nb::tuple>(entry);
        std::vector<AttachedShape> attached;
        for (nb::handle item : nb::cast<nb::list>(f[6])) {
            const nb::tuple a = nb::cast<nb::tuple>(item);
            attached.push_back({shapes.at(nb::cast<std::size_t>(a[0])).shape, nb::cast<Pose>(a[1]), nb::cast<std::array<double, 4>>(a[2]),
                                nb::cast<bool>(a[3]), nb::cast<bool>(a[4]), nb::cast<bool>(a[5]), nb::cast<std::optional<double>>(a[6]), std::nullopt});
            if (format > 3 && !a[7].is_none()) attached.back().level = read_level(nb::cast<std::string>(a[7]));
        }
        specifications.push_back({nb::cast<std::string>(f[0]), f[1].is_none() ? "" : nb::cast<std::string>(f[1]), nb::cast<Pose>(f[3]),
                                  nb::cast<Joint>(f[4]), nb::cast<std::string>(f[2]), nb::cast<std::vector<std::string>>(f[5]), std::move(attached),
                                  nb::cast<std::optional<Inertia>>(f[7]),
                                  nb::len(f) > 8 ? nb::cast<Attributes>(f[8]) : Attributes{},
                                  nb::len(f) > 9 ? read_twist(nb::cast<std::optional<TwistArgument>>(f[9])) : std::nullopt,
                                  nb::len(f) > 10 ? stamps_from_state(f[10]) : nullptr,
                                  nb::len(f) > 11 ? read_noise(f[11]) : nullptr});
        if (nb::len(f) > 12 && specifications.back().twist) specifications.back().twist->noise = read_noise(f[12]);
    }
    SceneEdit edit{SceneGraph()};
    if (format > 4)
        for (const std::string& body : nb::cast<std::vector<std::string>>(state[5])) edit.add_body(body);
    edit.add_frames(specifications);
    for (nb::handle entry : nb::cast<nb::list>(state[3])) {
        const nb::tuple pair = nb::cast<nb::tuple>(entry);
        edit.allow_collision(nb::cast<std::string>(pair[0]), nb::cast<std::string>(pair[1]), nb::cast<std::string>(pair[2]));
    }
    if (format > 2) {
        const auto groups = nb::cast<std::vector<std::tuple<std::string, std::vector<std::string>, std::vector<std::string>>>>(state[4]);
        for (const auto& group : groups) edit.set_group({std::get<0>(group), {}, {}});  // first all of them: they may nest
        for (const auto& [name, frames, nested] : groups) edit.set_group({name, frames, nested});
    }
    return std::move(edit).take();
}

}  // namespace tmkit::bindings
