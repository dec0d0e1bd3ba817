// nanobind's conversions of standard containers, which here throw std::bad_alloc if memory runs
// out.
//
// nanobind declares them noexcept, so a string or a list that does not fit ends the process. Their
// callers catch all exceptions and translate this one to MemoryError. All headers that these
// headers include come first, before noexcept is removed from them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#define noexcept
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>
#undef noexcept
