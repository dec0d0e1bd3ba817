// A library of point clouds, for the C++ types of function blocks.
#pragma once

#include <array>
#include <vector>

namespace lidar {

template <class Number> struct Cloud {
    std::vector<std::array<Number, 3>> points;
};

}  // namespace lidar
