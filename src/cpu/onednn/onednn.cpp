#include "src/cpu/onednn/onednn.h"

#include <omp.h>

#include <atomic>

#include "sconce/check.h"
#include "src/device/cpu_arena.h"
#include "src/device/cpu_isa.h"
#include "src/device/lazy_library.h"
#include "src/device/threads.h"

SCONCE_LAZY_LIBRARY(oneDNN);

namespace sconce::onednn {
namespace {

std::atomic<Use> use{Use::kByPolicy};

dnnl_stream_t stream() {
  thread_local const dnnl::stream own(engine());
  return own.get();
}

}  // namespace

bool suits(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
      return has_avx512();
    case DType::kBFloat16:
      return has_avx512_bf16();
    case DType::kInt8:
    case DType::kUInt8:
      return has_avx512_vnni();
    default:
      return false;
  }
}

bool worth(double work, double least) noexcept {
  switch (use.load(std::memory_order_relaxed)) {
    case Use::kAlways:
      return work > 0;
    case Use::kNever:
      return false;
    default:
      return work >= least;
  }
}

bool available() noexcept {
  static const bool open = try_open_library(sconce_lazy_oneDNN);
  return open;
}

void testing_use(Use how) noexcept { use = how; }

dnnl::memory::data_type data_type(DType dtype) {
  using Type = dnnl::memory::data_type;
  switch (dtype) {
    case DType::kFloat32:
      return Type::f32;
    case DType::kBFloat16:
      return Type::bf16;
    case DType::kInt8:
      return Type::s8;
    case DType::kUInt8:
      return Type::u8;
    case DType::kInt32:
      return Type::s32;
    default:
      SCONCE_FAIL(kInternal, "oneDNN: no data type for ", dtype_name(dtype));
  }
}

// Never destroyed: threads that end late may still use it.
const dnnl::engine& engine() {
  static const auto* const cpu = [] {
    if (only_avx2()) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);  // before the first primitive; no effect later
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return *cpu;
}

void set_threads() noexcept {
  if (omp_get_max_threads() != kernel_threads()) omp_set_num_threads(kernel_threads());
}

Primitive::Primitive(const dnnl::primitive_desc_base& description, dnnl::primitive primitive)
    : primitive_(std::move(primitive)) {
  const dnnl::memory::desc scratch = description.query_md(dnnl::query::scratchpad_md);
  scratch_bytes_ = scratch.get_size();
  if (scratch_bytes_ > 0) add(DNNL_ARG_SCRATCHPAD, scratch);
}

void Primitive::add(int argument, const dnnl::memory::desc& desc) {
  memories_.emplace_back(desc, engine(), static_cast<void*>(DNNL_MEMORY_NONE));
  arguments_.push_back({argument, memories_.back().get()});
}

void Primitive::run(std::span<const void* const> data, std::span<const dnnl_memory_t> own) const {
  set_threads();
  const size_t first = scratch_bytes_ > 0 ? 1 : 0;
  StoragePtr scratch;
  if (first) {
    scratch = allocate_cpu(scratch_bytes_);
    memories_[0].set_data_handle(scratch->data());
  }
  for (size_t i = 0; i < data.size(); ++i) {
    if (i < own.size() && own[i])
      arguments_[first + i].memory = own[i];
    else
      memories_[first + i].set_data_handle(const_cast<void*>(data[i]));
  }
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), stream(), static_cast<int>(arguments_.size()), arguments_.data());
  SCONCE_CHECK(status == dnnl_success, kInternal, "oneDNN: a primitive failed with status ", static_cast<int>(status));
}

bool fuse(const Fusion& fusion, double sum, const dnnl::memory::desc* other, dnnl::post_ops& ops) {
  using dnnl::algorithm;
  if (sum != 0) ops.append_sum(static_cast<float>(sum));
  if (other) {
    algorithm how;
    switch (fusion.combination) {
      case Combination::kAdd:
        how = algorithm::binary_add;
        break;
      case Combination::kSubtract:
        how = algorithm::binary_sub;
        break;
      case Combination::kMultiply:
        how = algorithm::binary_mul;
        break;
      case Combination::kDivide:
        how = algorithm::binary_div;
        break;
      default:
        return false;
    }
    ops.append_binary(how, *other);
  }
  struct Step {
    Activation activation;
    algorithm how;
    float a, b;
  };
  const Step steps[] = {{Activation::kRelu, algorithm::eltwise_relu, 0, 0},
                        {Activation::kLeakyRelu, algorithm::eltwise_relu, fusion.a, 0},
                        {Activation::kSigmoid, algorithm::eltwise_logistic, 0, 0},
                        {Activation::kTanh, algorithm::eltwise_tanh, 0, 0},
                        {Activation::kHardswish, algorithm::eltwise_hardswish, 0, 0},
                        {Activation::kSwish, algorithm::eltwise_swish, 1, 0},
                        {Activation::kHardsigmoid, algorithm::eltwise_linear, 1.0f / 6.0f, 0.5f},
                        {Activation::kHardsigmoid, algorithm::eltwise_clip, 0, 1},
                        {Activation::kGelu, algorithm::eltwise_gelu_erf, 0, 0},
                        {Activation::kGeluTanh, algorithm::eltwise_gelu_tanh, 0, 0},
                        {Activation::kHardtanh, algorithm::eltwise_clip, fusion.a, fusion.b}};
  for (const Step& step : steps)
    if (step.activation == fusion.activation) ops.append_eltwise(1, step.how, step.a, step.b);
  return true;
}

dnnl::primitive_attr attributes(const dnnl::post_ops& ops) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(ops);
  return attr;
}

bool is_fast(std::string_view implementation) noexcept {
  return implementation.starts_with("br") || (implementation.find("jit") != std::string_view::npos &&
                                              implementation.find("gemm") == std::string_view::npos);
}

}  // namespace sconce::onednn
