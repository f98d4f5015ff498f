// oneDNN as the engine of large products and convolutions.
//
// Small ones use our own kernels: opening the library takes 2 ms and 5 MB of memory, compiling a primitive takes 0.2 to
// 0.5 ms (AMX: up to 4 ms), and each call has an overhead. Time of the library / time of our kernels, measured on one
// thread (Zen 4; the same on Emerald Rapids, where bfloat16 runs on AMX):
//   matrix products, 16 rows and more   float32 0.80-0.95 (AVX2: 0.95-1.8)   bfloat16 0.5-0.95 (AMX 0.08-0.3)
//                    fewer rows         1.0-3.0
//   channels-last convolution           float32 0.82-0.98                    bfloat16 0.41-0.60  (AMX 0.12-0.28)
//   depthwise and grouped, the same     float32 0.27-0.59                    bfloat16 0.17-0.55
//   row-major convolution with copies   float32 0.9-1.6 (small images 0.75)  bfloat16 0.3-0.7
//   int8 products, two rows and more    0.06-0.36 (AMX 0.02-0.36)
// Hence only CPUs with AVX-512 use it: float32; bfloat16 with AVX512_BF16 or AMX; int8 with VNNI (without VNNI, the
// library's 16-bit sums saturate). Without the library, our kernels handle all sizes.
//
// Primitives are cached per thread (PlanTable); the library caches compiled code per process. Scratch memory comes from
// the arena, threads are the caller's team. The library allocates a list of arguments per call; nothing else is
// allocated after warm-up.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "sconce/dtype.h"
#include "sconce/storage.h"
#include "src/cpu/vector/post_ops.h"

namespace sconce::onednn {

// Whether products of this dtype (of A and B) use the library here, by CPUID alone: opens nothing.
bool suits(DType dtype) noexcept;
// Whether `work` multiplications are worth a call of the library: at least `least`, unless a test overrides it.
bool worth(double work, double least) noexcept;
// Opens the library at the first call; false if it is missing.
bool available() noexcept;

enum class Use { kByPolicy, kAlways, kNever };
void testing_use(Use use) noexcept;  // not while a kernel runs

dnnl::memory::data_type data_type(DType dtype);
const dnnl::engine& engine();

// One primitive with its arguments, of one thread.
class Primitive {
 public:
  Primitive() = default;
  Primitive(const dnnl::primitive_desc_base& description, dnnl::primitive primitive);

  bool usable() const noexcept { return static_cast<bool>(primitive_); }
  void add(int argument, const dnnl::memory::desc& desc);
  // In the order of add(). If `own` is not null, a primitive uses that memory.
  void run(std::span<const void* const> data, std::span<const dnnl_memory_t> own = {}) const;

 private:
  dnnl::primitive primitive_;
  size_t scratch_bytes_ = 0;
  mutable std::vector<dnnl::memory> memories_;
  mutable std::vector<dnnl_exec_arg_t> arguments_;  // the last one is the scratch memory, if any
};

// Sets the library's number of threads to the caller's: call before a primitive is described, made or run.
void set_threads() noexcept;

// Post operations of a fusion: `sum` times the result's previous value, then the combination with a tensor of `other`,
// then the activation. False if the library does not support it.
bool fuse(const Fusion& fusion, double sum, const dnnl::memory::desc* other, dnnl::post_ops& ops);
// Attributes of these operations, with scratch memory from the arena.
dnnl::primitive_attr attributes(const dnnl::post_ops& ops);
// Whether this is a fast implementation, judged by its name.
bool is_fast(std::string_view implementation) noexcept;

}  // namespace sconce::onednn
