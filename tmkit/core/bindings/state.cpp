#include "state.hpp"

namespace tmkit::bindings {

StateTuple::StateTuple(nb::handle state, const char* what, std::size_t least, std::size_t most) : what_(what) {
    if (!nb::isinstance<nb::tuple>(state))
        throw damaged_state("{} must be a tuple, not {}", what, nb::type_name(state.type()).c_str());
    items_ = nb::borrow<nb::tuple>(state);
    if (size() < least || size() > most) {
        const std::string expected = std::to_string(least) + (least == most ? "" : " to " + std::to_string(most));
        throw damaged_state("{} must have {} entries, not {}", what, expected, size());
    }
}

std::vector<nb::object> StateTuple::items(std::size_t i) const {
    if (!nb::isinstance<nb::tuple>(at(i)) && !nb::isinstance<nb::list>(at(i))) throw wrong_entry(i);
    const nb::tuple owned(at(i));
    std::vector<nb::object> items;
    for (nb::handle item : owned) items.push_back(nb::borrow(item));
    return items;
}

Error StateTuple::wrong_entry(std::size_t i) const {
    return damaged_state("entry {} of {} cannot be a value of type {}", i, what_, nb::type_name(at(i).type()).c_str());
}

}  // namespace tmkit::bindings
