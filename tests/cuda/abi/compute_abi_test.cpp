#include "src/cuda/abi/compute_abi.h"

#include <doctest/doctest.h>

#include <string_view>

#include "src/aoti_abi/compute.h"
#include "src/aoti_abi/op_args.h"
#include "src/device/device_backend.h"
#include "tests/cuda/device_calls.h"
#include "tests/cuda/reference.h"

namespace sconce::gpu {
namespace {

// The function that a CUDA model calls instead of the CPU's.
template <class F>
F* in_place_of(F*, std::string_view name) {
  for (const DeviceBackend::Replacement& replacement : backend().replacements())
    if (replacement.imported == name) return reinterpret_cast<F*>(replacement.function);
  return nullptr;
}
#define SCONCE_ON_DEVICE(name) in_place_of(&name, #name)

AtenTensorHandle handle(Tensor& tensor) { return reinterpret_cast<AtenTensorHandle>(&tensor); }

Tensor on_host(const Numbers& numbers, std::vector<int64_t> sizes, DType dtype) {
  const Tensor there = on_device(numbers, sizes, dtype);
  Tensor here = Tensor::empty(sizes, dtype);
  backend().copy(there, here);
  return here;
}

}  // namespace

TEST_CASE("aoti_torch_index_put_out: a mask, a dimension that is not indexed, values from the result itself") {
  const auto put = SCONCE_ON_DEVICE(aoti_torch_index_put_out);
  REQUIRE(bool{put != nullptr});
  const Numbers start{0, 1, 2, 3, 4, 5};
  for (const bool host : {false, true}) {
    CAPTURE(host);
    const auto make = [&](const Numbers& numbers, std::vector<int64_t> sizes, DType dtype) {
      return host ? on_host(numbers, std::move(sizes), dtype) : on_device(numbers, std::move(sizes), dtype);
    };
    const auto numbers = [&](const Tensor& t) {
      Tensor there = on_device(Numbers(static_cast<size_t>(t.numel())), {2, 3}, t.dtype());
      backend().copy(t, there);
      return numbers_of(there);
    };
    Tensor out = make(start, {2, 3}, DType::kFloat32), mask = make({1, 0, 1}, {3}, DType::kBool),
           values = make({7, 8}, {2}, DType::kFloat32);
    const AtenTensorHandle second[] = {nullptr, handle(mask)};
    REQUIRE(put(handle(out), handle(out), second, 2, handle(values), false) == 0);
    CHECK(numbers(out) == Numbers{7, 1, 8, 7, 4, 8});
    REQUIRE(put(handle(out), handle(out), second, 2, handle(values), true) == 0);
    CHECK(numbers(out) == Numbers{14, 1, 16, 14, 4, 16});

    Tensor rows = make({1, 0}, {2}, DType::kInt64), same = make(start, {2, 3}, DType::kFloat32);
    const AtenTensorHandle first[] = {handle(rows)};
    REQUIRE(put(handle(same), handle(same), first, 1, handle(same), false) == 0);
    CHECK(numbers(same) == Numbers{3, 4, 5, 0, 1, 2});
  }
}

TEST_CASE("aoti_torch__mm_plus_mm_out: two products on the device") {
  const auto both = SCONCE_ON_DEVICE(aoti_torch__mm_plus_mm_out);
  REQUIRE(bool{both != nullptr});
  const Numbers a = random_numbers(12, 1), b = random_numbers(20, 2), c = random_numbers(6, 3),
                d = random_numbers(10, 4);
  Tensor out = on_device(Numbers(15), {3, 5}, DType::kFloat64), ta = on_device(a, {3, 4}, DType::kFloat64),
         tb = on_device(b, {4, 5}, DType::kFloat64), tc = on_device(c, {3, 2}, DType::kFloat64),
         td = on_device(d, {2, 5}, DType::kFloat64);
  REQUIRE(both(handle(out), handle(ta), handle(tb), handle(tc), handle(td)) == 0);
  Numbers expected = product(a, b, 3, 4, 5);
  const Numbers second = product(c, d, 3, 2, 5);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += second[i];
  CHECK(difference(out, {3, 5}, expected, 1e-12) == "");
}

}  // namespace sconce::gpu
