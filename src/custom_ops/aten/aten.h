// Tables of ATen's operators that are called by name, one per family. A row is a schema and a kernel.
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
constexpr AtenRow::Kind kAnyDevice = AtenRow::kAnyDevice;  // only views or copies memory
constexpr AtenRow::Kind kRandom = AtenRow::kRandom;        // draws random numbers, like all of aten_random_rows()

std::span<const AtenRow> aten_tensor_rows();       // tensors.cpp: makers, views, copies
std::span<const AtenRow> aten_movement_rows();     // movement.cpp: gathering, scattering, parts
std::span<const AtenRow> aten_math_rows();         // math.cpp: elementwise, products, reductions, sorting, sets
std::span<const AtenRow> aten_function_rows();     // functions.cpp: operators on complex numbers
std::span<const AtenRow> aten_elementwise_rows();  // elementwise.cpp: functions that Inductor usually compiles
std::span<const AtenRow> aten_reduction_rows();    // reductions.cpp: reductions that Inductor usually compiles
std::span<const AtenRow> aten_layer_rows();        // layers.cpp: convolutions, attention, norms, resizing
std::span<const AtenRow> aten_gradient_rows();     // gradients.cpp: gradients, losses
std::span<const AtenRow> aten_list_rows();         // lists.cpp: on lists, one tensor at a time
std::span<const AtenRow> aten_linalg_rows();       // linalg.cpp: linear algebra, Fourier transforms
std::span<const AtenRow> aten_random_rows();       // random.cpp
std::span<const AtenRow> aten_earlier_rows();      // earlier.cpp: for packages of earlier versions
std::span<const AtenRow> aten_lowered_rows();      // lowered.cpp: left uncompiled by fallback_by_default
std::span<const AtenRow> inductor_rows();          // inductor_rows.cpp: the compiler's own prims
std::span<const AtenRow> quantised_rows();         // quantised_rows.cpp: exports of PyTorch's quantisers
std::span<const AtenRow> vision_rows();            // vision.cpp: torchvision's

inline std::array<std::span<const AtenRow>, 16> aten_tables() {
  return {aten_tensor_rows(),  aten_movement_rows(),    aten_math_rows(),      aten_function_rows(),
          aten_list_rows(),    aten_layer_rows(),       aten_gradient_rows(),  aten_linalg_rows(),
          aten_random_rows(),  aten_elementwise_rows(), aten_reduction_rows(), quantised_rows(),
          aten_earlier_rows(), inductor_rows(),         aten_lowered_rows(),   vision_rows()};
}

}  // namespace sconce::custom_ops
