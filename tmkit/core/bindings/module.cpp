#include "bindings.hpp"

NB_MODULE(_core, m) {
    m.doc() =
        "The compiled core of tmkit. Import its names from tmkit or from the package that exports "
        "them.";
    // A library does not print, even if other modules hold its objects to the end; tests turn the
    // warnings on.
    nb::set_leak_warnings(false);
    m.def("_set_leak_warnings", &nb::set_leak_warnings, nb::arg("on"),
          "Report objects that outlive the interpreter, for tests.");
    using namespace tmkit::bindings;
    bind_registered(m);
    bind_elementary(m);
    bind_pose(m);
    bind_gaussian_pose(m);
    bind_noise(m);
    bind_measurement(m);
    bind_shape(m);
    bind_joint(m);
    bind_stamped_poses(m);
    bind_scene_records(m);
    bind_scene_difference(m);
    bind_scene_graph(m);
    bind_kinematics(m);
    bind_scene_arrays(m);
    bind_scene_functions(m);
    bind_collision_world(m);
    bind_motion_settings(m);
    bind_inverse_kinematics(m);
    bind_path_search(m);
    bind_task_search(m);
    bind_argument_errors(m);  // last, since it processes all bound functions
}
