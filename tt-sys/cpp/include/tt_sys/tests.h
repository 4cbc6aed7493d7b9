// The layer's own tests, by name.
#pragma once

#include "rust/cxx.h"

namespace tt_sys {

rust::Vec<rust::String> test_names();
void run_test(rust::Str name);

}  // namespace tt_sys
