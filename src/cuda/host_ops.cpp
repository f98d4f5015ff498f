// Operators without a kernel on CUDA: what they read is fetched, the CPU's kernel runs, what it gives is sent back.
// Right, and slow: each call waits for the device. The first of each says so on stderr.
#include <atomic>
#include <cstdio>
#include <deque>
#include <vector>

#include "src/cuda/copy.h"
#include "src/cuda/stream.h"
#include "src/ops/strided_loop.h"
#include "src/shim/op_args.h"
#include "src/shim/op_calls.h"
#include "src/shim/ops.h"

namespace sconce::cuda {
namespace {

// The tensors of one call on the host.
class HostCall {
 public:
  Tensor& in(AtenTensorHandle handle, const char* name) { return fetch(shim::in(handle, name)); }
  // Written: goes back once the kernel has run.
  Tensor& out(AtenTensorHandle handle, const char* name) {
    Tensor& device = shim::in(handle, name);
    Tensor& host = fetch(device);
    if (!device.is_cpu()) written_.push_back({&device, &host});
    return host;
  }
  const Tensor* optional_in(const AtenTensorHandle* handle) {
    const Tensor* given = shim::optional_in(handle);
    return given ? &fetch(*given) : nullptr;
  }
  TensorList list(const AtenTensorHandle* handles, int64_t length) {
    std::vector<const Tensor*>& pointers = lists_.emplace_back();
    for (int64_t i = 0; i < length; ++i) pointers.push_back(&fetch(shim::in(handles[i], "list")));
    return {pointers.data(), pointers.size()};
  }
  OptTensorList optional_list(const AtenTensorHandle** handles, int64_t length) {
    std::vector<const Tensor*>& pointers = lists_.emplace_back();
    for (int64_t i = 0; i < length; ++i) pointers.push_back(optional_in(handles[i]));
    std::vector<const Tensor* const*>& places = places_.emplace_back();
    for (const Tensor* const& pointer : pointers) places.push_back(&pointer);
    return {places.data(), places.size()};
  }

  void finish() {
    for (const auto& [device, host] : written_) copy(*host, *device, true);
  }
  Tensor sent(const Tensor& host) const {
    if (!host.defined()) return host;
    Tensor there = Tensor::empty_strided(host.sizes(), host.strides(), host.dtype(), device_);
    copy(host, there, true);
    return there;
  }
  template <size_t N>
  std::array<Tensor, N> sent(const std::array<Tensor, N>& host) const {
    std::array<Tensor, N> there;
    for (size_t i = 0; i < N; ++i) there[i] = sent(host[i]);
    return there;
  }

 private:
  Tensor& fetch(const Tensor& tensor) {
    if (tensor.is_cpu()) return fetched_.emplace_back(tensor);
    device_ = tensor.device();
    Tensor& here = fetched_.emplace_back(Tensor::empty_strided(
        tensor.sizes(), tensor.is_dense() ? tensor.strides() : IntSpan(row_major(tensor)), tensor.dtype()));
    copy(tensor, here, true);
    return here;
  }
  static Shape row_major(const Tensor& tensor) {
    Shape strides(tensor.sizes());
    contiguous_strides(tensor.sizes(), strides.data());
    return strides;
  }

  Device device_{DeviceType::kCuda, static_cast<int8_t>(current().device)};
  std::deque<Tensor> fetched_;
  std::deque<std::vector<const Tensor*>> lists_;
  std::deque<std::vector<const Tensor* const*>> places_;
  std::vector<std::pair<Tensor*, Tensor*>> written_;
};

void say_once(std::atomic<bool>& said, const char* name) {
  if (!said.exchange(true))
    std::fprintf(stderr, "[WARNING] %s has no kernel on CUDA here: it runs on the host, and waits for the device\n",
                 name);
}

}  // namespace
}  // namespace sconce::cuda

#undef FWD_In
#undef FWD_Out
#undef FWD_OptIn
#undef FWD_List
#undef FWD_OptList
#undef FWD_OptDevice
#define FWD_In(n) call.in(n, #n)
#define FWD_Out(n) call.out(n, #n)
#define FWD_OptIn(n) call.optional_in(n)
#define FWD_List(n) call.list(n, n##_len_)
#define FWD_OptList(n) call.optional_list(n, n##_len_)
#define FWD_OptDevice(n) std::optional<::sconce::Device>((void(n), void(n##_index_), ::sconce::Device{}))

#define SCONCE_HOST_0(...) __VA_ARGS__
#define SCONCE_HOST_1(...) ::sconce::shim::deliver(call.sent(__VA_ARGS__) RET_OUT_1)
#define SCONCE_HOST_2(...) ::sconce::shim::deliver(call.sent(__VA_ARGS__) RET_OUT_2)
#define SCONCE_HOST_3(...) ::sconce::shim::deliver(call.sent(__VA_ARGS__) RET_OUT_3)
#define SCONCE_HOST_4(...) ::sconce::shim::deliver(call.sent(__VA_ARGS__) RET_OUT_4)
#define SCONCE_HOST_5(...) ::sconce::shim::deliver(call.sent(__VA_ARGS__) RET_OUT_5)
#define SCONCE_HOST_6(...) ::sconce::shim::deliver(call.sent(__VA_ARGS__) RET_OUT_6)

#define SCONCE_OP(name, results, ...)                                                                 \
  extern "C" AOTITorchError aoti_torch_cuda_##name(SCONCE_MAP(ABI_, __VA_ARGS__) RET_ABI_##results) { \
    static std::atomic<bool> said{false};                                                             \
    return ::sconce::shim::guard("aoti_torch_cuda_" #name, [&] {                                      \
      ::sconce::cuda::say_once(said, #name);                                                          \
      ::sconce::cuda::HostCall call;                                                                  \
      SCONCE_HOST_##results(::sconce::cpu::name(SCONCE_MAP(FWD_, __VA_ARGS__)));                      \
      call.finish();                                                                                  \
    });                                                                                               \
  }
#include "src/cuda/host_table.def"
#undef SCONCE_OP
