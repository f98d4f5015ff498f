// Rows of ATen's operators that are called by name: schema and kernel, a table per family.
#pragma once

#include <array>
#include <span>

#include "src/custom_ops/operator/operator.h"

namespace sconce::custom_ops {

struct AtenRow {
  const char* schema;
  BoxedKernel kernel;
  enum Kind { kPlain, kAnyDevice, kRandom } kind = kPlain;
};
constexpr AtenRow::Kind kAnyDevice = AtenRow::kAnyDevice;  // it only looks at memory otherwise, or copies it
constexpr AtenRow::Kind kRandom = AtenRow::kRandom;        // it draws random numbers; so do all of aten_random_rows()

std::span<const AtenRow> aten_tensor_rows();       // tensors.cpp: makers, views, copies
std::span<const AtenRow> aten_movement_rows();     // movement.cpp: gathering, scattering, parts
std::span<const AtenRow> aten_math_rows();         // math.cpp: elementwise, products, reductions, sorting, sets
std::span<const AtenRow> aten_function_rows();     // functions.cpp: what complex numbers need
std::span<const AtenRow> aten_elementwise_rows();  // elementwise.cpp: what compiled code mostly has in itself
std::span<const AtenRow> aten_reduction_rows();    // reductions.cpp: and of reductions
std::span<const AtenRow> aten_layer_rows();        // layers.cpp: convolutions, attention, norms, resizing
std::span<const AtenRow> aten_gradient_rows();     // gradients.cpp: gradients, losses
std::span<const AtenRow> aten_list_rows();         // lists.cpp: tensors of a list, each for itself
std::span<const AtenRow> aten_linalg_rows();       // linalg.cpp: linear algebra, Fourier transforms
std::span<const AtenRow> aten_random_rows();       // random.cpp
std::span<const AtenRow> aten_earlier_rows();      // earlier.cpp: what earlier versions call by name
std::span<const AtenRow> aten_lowered_rows();      // lowered.cpp: what fallback_by_default leaves uncompiled
std::span<const AtenRow> inductor_rows();          // inductor_rows.cpp: prims of the compiler's own
std::span<const AtenRow> quantised_rows();         // quantised_rows.cpp: what the quantisers of PyTorch export

inline std::array<std::span<const AtenRow>, 15> aten_tables() {
  return {aten_tensor_rows(),  aten_movement_rows(),    aten_math_rows(),      aten_function_rows(),
          aten_list_rows(),    aten_layer_rows(),       aten_gradient_rows(),  aten_linalg_rows(),
          aten_random_rows(),  aten_elementwise_rows(), aten_reduction_rows(), quantised_rows(),
          aten_earlier_rows(), inductor_rows(),         aten_lowered_rows()};
}

}  // namespace sconce::custom_ops
