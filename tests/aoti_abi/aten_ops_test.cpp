#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <vector>

#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"

using namespace sconce;
using namespace sconce::aoti_abi;

// Declared as custom operators do (generated/c_shim_aten.h, torch 2.15).
#define SCONCE_OP(name, results, ...) \
  extern "C" AOTITorchError aoti_torch_aten_##name(SCONCE_MAP(ABI_, __VA_ARGS__) RET_ABI_##results);
#include "src/operators/aten_table.def"
#undef SCONCE_OP

namespace {

struct Delete {
  void operator()(AtenTensorHandle handle) const { delete_handle(handle); }
};
using Owned = std::unique_ptr<std::remove_pointer_t<AtenTensorHandle>, Delete>;

Owned matrix() {  // [[0, 1, 2], [3, 4, 5]]
  const int64_t sizes[] = {2, 3};
  Tensor t = Tensor::empty(sizes, DType::kFloat32);
  for (int i = 0; i < 6; ++i) t.data_as<float>()[i] = static_cast<float>(i);
  return Owned(new_handle(std::move(t)));
}

// Calls with a handle for the result; an error fails the test.
template <class F>
Owned result(F&& call) {
  AtenTensorHandle handle = nullptr;
  REQUIRE(call(&handle) == 0);
  return Owned(handle);
}
std::vector<float> values(const Owned& handle) {
  const Tensor& t = *tensor_of(handle.get());
  REQUIRE(t.is_contiguous());
  return {t.data_as<float>(), t.data_as<float>() + t.numel()};
}

}  // namespace

TEST_CASE("aoti_torch_aten: reductions, differences and padding") {
  const Owned m = matrix();
  const int64_t dim = 1;
  CHECK(values(result([&](auto* r) { return aoti_torch_aten_amax(m.get(), &dim, 1, 0, r); })) ==
        std::vector<float>{2, 5});
  CHECK(values(result([&](auto* r) { return aoti_torch_aten_subtract_Tensor(m.get(), m.get(), 2, r); })) ==
        std::vector<float>{0, -1, -2, -3, -4, -5});
  const int64_t pad[] = {1, 0};
  double value = 9;
  CHECK(values(result([&](auto* r) { return aoti_torch_aten_pad(m.get(), pad, 2, "constant", &value, r); })) ==
        std::vector<float>{9, 0, 1, 2, 9, 3, 4, 5});
}

TEST_CASE("aoti_torch_aten: narrow shares memory, fill_ writes it") {
  const Owned m = matrix();
  const Owned row = result([&](auto* r) { return aoti_torch_aten_narrow(m.get(), 0, 1, 1, r); });
  CHECK(tensor_of(row.get())->data() == tensor_of(m.get())->data_as<float>() + 3);
  CHECK(aoti_torch_aten_fill__Scalar(row.get(), 7) == 0);
  CHECK(values(m) == std::vector<float>{0, 1, 2, 7, 7, 7});
}

TEST_CASE("aoti_torch_aten: new tensors take what is not given from self") {
  const Owned m = matrix();
  const int64_t sizes[] = {2, 2};
  const Owned zeros = result(
      [&](auto* r) { return aoti_torch_aten_new_zeros(m.get(), sizes, 2, nullptr, nullptr, nullptr, 0, nullptr, r); });
  CHECK(values(zeros) == std::vector<float>(4, 0));
  int32_t int64_number = 4;
  const Owned empty = result([&](auto* r) {
    return aoti_torch_aten_new_empty(m.get(), sizes, 2, &int64_number, nullptr, nullptr, 0, nullptr, r);
  });
  CHECK(tensor_of(empty.get())->dtype() == DType::kInt64);
  const Owned full =
      result([&](auto* r) { return aoti_torch_aten_full(sizes, 2, 1.5, nullptr, nullptr, nullptr, 0, nullptr, r); });
  CHECK(values(full) == std::vector<float>(4, 1.5f));
}

TEST_CASE("aoti_torch_aten: errors name the function") {
  AtenTensorHandle handle = nullptr;
  CHECK(aoti_torch_aten_narrow(nullptr, 0, 0, 1, &handle) == 1);
  CHECK(take_error()->text == "aoti_torch_aten_narrow: self is null");
  CHECK(handle == nullptr);
}
