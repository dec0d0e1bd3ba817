#include "tmkit/scene_graph.hpp"

#include "edits.hpp"
#include "state.hpp"
#include "tmkit/scene_difference.hpp"

namespace tmkit::bindings {
namespace {

void bind_edit_end(nb::class_<SceneEditHandle>& cls) {
    cls.def_prop_ro("scene",
                    [](const SceneEditHandle& e) {
        if (e.out_of_memory) e.require_kept();
        return e.edit.scene();
    }, "The scene with the edits so far.")
        .def("finish",
             [](const SceneEditHandle& e) {
        if (e.discarded) throw Error(ErrorKind::scene, "this edit was discarded by an exception");
        e.require_kept();
        return e.edit.scene();
    }, R"(Return the new version. May be called again after more edits.

Raises:
    SceneError: the edits were discarded.)")
        .def("__enter__", [](nb::typed<nb::object, SceneEditHandle> self) { return self; })
        .def("__exit__",
             [](SceneEditHandle& e, nb::handle type, nb::handle, nb::handle) {
        if (!type.is_none()) e.discarded = true;
    }, "exception_type"_a.none(), "exception"_a.none(), "traceback"_a.none())
        .def("__repr__", [](const SceneEditHandle& e) {
        return formatted("SceneEdit({} frames{})", e.edit.scene().size(),
                         e.discarded || e.out_of_memory ? ", discarded" : "");
    });
}

}  // namespace

void bind_scene_graph(nb::module_& m) {
    nb::class_<SceneGraph> scene(
        m, "SceneGraph", nb::is_weak_referenceable(),
        R"(One consistent version of the world: frames in trees, joints, bodies and shapes, as an immutable value.

An edit returns a new version that shares nearly everything with this one, which stays as it was; an
edit that changes nothing returns the same object. Safe to read from any thread. Equality is by content, in
insertion order; of versions made from one another it costs what ``diff`` costs, of others O(n). The first hash of a
version costs O(n).

Args:
    root: name of the first root frame; None for an empty scene.)");
    scene.def("__init__", [](SceneGraph* self, const std::optional<std::string>& root) {
        SceneEdit edit{SceneGraph()};
        if (root) edit.add_root(*root);
        new (self) SceneGraph(std::move(edit).take());
    }, "root"_a.none() = "world");
    bind_scene_queries(scene);
    bind_relations(scene);
    bind_scene_edits(scene);
    bind_content_edits(scene);
    bind_noise_edits(scene);
    scene.def("edit", [](const SceneGraph& s) { return SceneEditHandle{SceneEdit(s)}; },
              "Begin many edits that make one new version: ``with scene.edit() as edit: ...; edit.finish()``.");
    scene
        .def("__eq__",
             [](const SceneGraph& a, nb::handle b) {
        return nb::isinstance<SceneGraph>(b) && a.same_content(nb::cast<const SceneGraph&>(b));
    }, "other"_a.none())
        .def("__hash__", [](const SceneGraph& s) { return static_cast<Py_hash_t>(s.content_hash() >> 2); })
        .def("__copy__", [](nb::typed<nb::object, SceneGraph> self) { return self; })
        .def("__deepcopy__", [](nb::typed<nb::object, SceneGraph> self, nb::handle) { return self; }, "memo"_a)
        .def("__repr__", [](const SceneGraph& s) {
        return formatted("SceneGraph({} frames, {} joints)", s.size(), s.joint_count());
    });
    bind_state(scene, &scene_state, &scene_from_state);

    nb::class_<SceneEditHandle> edit(m, "SceneEdit", nb::is_weak_referenceable(),
                                     R"(Many edits that make one new version.

Made by ``scene.edit()``. Its methods are the edits of ``SceneGraph`` and work in place; the scene it began with
stays as it was. Used with ``with``, an exception discards all edits; so does a MemoryError in the middle of one.)");
    bind_scene_edits(edit);
    bind_content_edits(edit);
    bind_noise_edits(edit);
    bind_edit_end(edit);

    m.def("diff", &difference, "a"_a, "b"_a, R"(Return the difference between two versions of a scene.

O(changes log n) when one was made from the other, or both from a third: what they share is skipped. Between scenes
of different origin it is correct too, but not the smallest, and O(n).

Args:
    a: the first version.
    b: the second version.

Returns:
    The difference; ``a.apply(diff(a, b)) == b``.)");
}

}  // namespace tmkit::bindings
