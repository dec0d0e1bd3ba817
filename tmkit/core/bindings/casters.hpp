// nanobind's conversions of standard containers, which here throw std::bad_alloc when memory runs
// out.
//
// As nanobind ships them they are noexcept, so a string or a list that does not fit ends the
// process. What calls them catches all exceptions and makes a MemoryError of this one. Everything
// that these headers include themselves is included before the word is taken out of them.
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
