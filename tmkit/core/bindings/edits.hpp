// Binding of an edit for all classes: SceneGraph, which returns a new version, and SceneEdit and
// SceneArrays, which work in place.
#pragma once

#include <type_traits>

#include "bindings.hpp"
#include "tmkit/scene_edit.hpp"
#include "tmkit/scene_errors.hpp"

namespace tmkit::bindings {

// Several edits that make one new version: see the docstring below.
struct SceneEditHandle {
    SceneEdit edit;
    bool discarded = false;  // by an exception
    // During changes in place, which cannot be undone without a full copy.
    bool out_of_memory = false;

    void require_kept() const {
        if (out_of_memory)
            throw Error(
                ErrorKind::scene,
                "this edit was discarded as memory ran out; begin another with scene.edit()");
        if (discarded)
            throw Error(ErrorKind::scene,
                        "this edit was discarded; begin another with scene.edit()");
    }
};

// The scene before an edit, to check arguments against. Arguments are converted before the edit
// begins, since their conversion may run user code that edits the same scene.
inline const SceneGraph& scene_before(const nb::typed<nb::object, SceneGraph>& self) {
    return nb::cast<const SceneGraph&>(self);
}
inline const SceneGraph& scene_before(const SceneEditHandle& self) {
    self.require_kept();
    return self.edit.scene();
}
inline const SceneArrays& scene_before(const SceneArrays& self) { return self; }

// An edit of a SceneGraph returns a new version, or the same object if nothing changed; the others
// work in place.
template <class Edit>
nb::typed<nb::object, SceneGraph> apply_edit(nb::typed<nb::object, SceneGraph> self, Edit&& edit) {
    const SceneGraph& scene = nb::cast<const SceneGraph&>(self);
    SceneEdit next(scene);
    edit(next);
    if (next.scene().same_version(scene)) return self;
    return nb::typed<nb::object, SceneGraph>(nb::cast(std::move(next).take()));
}

template <class Edit> void apply_edit(SceneEditHandle& self, Edit&& edit) {
    self.require_kept();
    try {
        edit(self.edit);
    } catch (const std::bad_alloc&) {
        self.edit = SceneEdit(SceneGraph());
        self.out_of_memory = true;
        throw;
    }
}

template <class Edit> void apply_edit(SceneArrays& self, Edit&& edit) { edit(self); }

// An edit with these arguments, made by `call` in the scene or in the arrays; EDIT names a method
// that all classes have.
template <class Self, class... Arguments> auto editing(auto call) {
    return [call](Self self, Arguments... arguments) {
        return apply_edit(self, [&](auto& s) { call(s, arguments...); });
    };
}
#define EDIT(method, ...) \
    editing<Self, __VA_ARGS__>([](auto& s, const auto&... given) { s.method(given...); })

// The scene during an edit.
inline const SceneGraph& scene_of(const SceneEdit& edit) { return edit.scene(); }
inline const SceneArrays& scene_of(const SceneArrays& arrays) { return arrays; }

// The docstring of a method of all classes, in which {a|b} is `a` for scenes and SceneEdit and `b`
// for SceneArrays.
template <class Self> Text text_for(std::string_view text) {
    std::string result;
    while (true) {
        const std::size_t open = text.find('{'), bar = text.find('|', open),
                          close = text.find('}', open);
        result += text.substr(0, open);
        if (open == text.npos) return {result};
        result += std::is_same_v<std::remove_cvref_t<Self>, SceneArrays>
                      ? text.substr(bar + 1, close - bar - 1)
                      : text.substr(open + 1, bar - open - 1);
        text.remove_prefix(close + 1);
    }
}

template <class Scene>
using At = Given<std::conditional_t<std::is_same_v<std::remove_cvref_t<Scene>, SceneArrays>,
                                    SceneArrays, SceneGraph>>;

// Noise of a given covariance: of the pose of a frame in its parent, or of its twist relative to a
// body. It has one new source, named after the edge. Null without a covariance.
Ref<const EdgeNoise> own_noise(const OptionalArray& covariance, std::string_view frame,
                               std::string_view reference, bool of_twist = false);
Ref<const EdgeNoise> own_noise(const PoseArgument& pose, std::string_view frame,
                               std::string_view reference);

// The error of an edge with these maps (6, dimension), by source. Null if there are none.
using SourceMaps = nb::typed<Mapping, SourceHandle, ArrayArgument>;
Ref<const EdgeNoise> noise_of(const SourceMaps& maps);

// The body of a frame exists, or is a new one with the frame's name. Functions that add many frames
// at once, as from files, also add their bodies.
template <class Scene, class Text>
void require_known_body(const Scene& scene, std::string_view frame,
                        const std::optional<Text>& body) {
    if (body && body->empty()) throw errors::empty_body_name();
    if (body && *body != frame && !scene.has_body(*body))
        throw errors::no_such_body(*body, scene.body_names());
}

// The self argument of the methods of a class with edits.
template <class Scene>
using SelfOf = std::conditional_t<std::is_same_v<Scene, SceneGraph>,
                                  nb::typed<nb::object, SceneGraph>, Scene&>;

// For SceneGraph, SceneEditHandle and SceneArrays, which lacks only the edits of whole scenes.
template <class Scene> void bind_scene_edits(nb::class_<Scene>& cls);
template <class Scene> void bind_content_edits(nb::class_<Scene>& cls);
template <class Scene> void bind_noise_edits(nb::class_<Scene>& cls);

}  // namespace tmkit::bindings
