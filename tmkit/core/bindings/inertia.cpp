#include "state.hpp"

namespace tmkit::bindings {
namespace {

Inertia make_inertia(double mass, const ArrayArgument& center, const OptionalArray& matrix) {
    Inertia inertia{mass, read_vector3(center, "center"), {}};
    if (matrix) {
        const std::vector<double> v = read_shaped(*matrix, "matrix", 3, 3);
        std::copy(v.begin(), v.end(), inertia.matrix.begin());
    }
    inertia.check();
    return inertia;
}

}  // namespace

void bind_inertia(nb::module_& m) {
    auto cls = nb::class_<Inertia>(m, "Inertia", nb::is_weak_referenceable(),
                                   R"(Mass properties of a body, in the axes of one of its frames. Immutable.

Args:
    mass: kilograms.
    center: (3,) centre of mass, metres.
    matrix: (3, 3) inertia about the centre of mass, kg m^2; zeros if omitted.

Raises:
    SceneError: a mass that is not positive, or a matrix that is not symmetric positive semi-definite.)")
                   .def("__init__",
                        [](Inertia* self, double mass, const ArrayArgument& center, const OptionalArray& matrix) {
        new (self) Inertia(make_inertia(mass, center, matrix));
    }, "mass"_a, "center"_a = nb::make_tuple(0.0, 0.0, 0.0), nb::kw_only(), "matrix"_a = nb::none())
                   .def_ro("mass", &Inertia::mass, "Kilograms.")
                   .def_prop_ro("center", [](const Inertia& i) { return make_array(i.center); },
                                "(3,) centre of mass, metres.")
                   .def_prop_ro("matrix", [](const Inertia& i) { return make_square(i.matrix, 3); },
                                "(3, 3) inertia about the centre of mass, kg m^2.")
                   .def("__eq__", &equals<Inertia>, "other"_a.none())
                   .def("__hash__", [](const Inertia& a) {
        return nb::hash(nb::make_tuple(a.mass, a.center[0], a.center[1], a.center[2]));
    }).def("__repr__", [](const Inertia& i) {
        return "Inertia(" + number_text(i.mass) + ", [" + number_text(i.center[0]) + ", " + number_text(i.center[1]) +
               ", " + number_text(i.center[2]) + "])";
    });
    bind_state(cls, [](nb::handle self) {
        return nb::make_tuple(self.attr("mass"), self.attr("center"), self.attr("matrix"));
    }, [](nb::handle state) {
        const StateTuple s(state, "an inertia", 3);
        return make_inertia(s.get<double>(0), {s.at(1)}, ArrayArgument{s.at(2)});
    });
}

}  // namespace tmkit::bindings
