#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "src/aoti_abi/constant_scope.h"
#include "src/aoti_abi/guard.h"
#include "tests/aoti_abi/core_abi.h"

using namespace sconce;
using namespace sconce::aoti_abi;

namespace {

constexpr int32_t kF32 = 6, kI64 = 4, kF64 = 7;

struct Handle {
  AtenTensorHandle h = nullptr;
  ~Handle() { aoti_torch_delete_tensor_object(h); }
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator AtenTensorHandle() const { return h; }
  AtenTensorHandle* out() { return &h; }
  template <class T>
  T* data() const {
    void* p = nullptr;
    CHECK(aoti_torch_get_data_ptr(h, &p) == 0);
    return static_cast<T*>(p);
  }
};

void make(Handle& handle, std::vector<int64_t> sizes, std::vector<int64_t> strides, int32_t dtype = kF32) {
  REQUIRE(aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(), dtype, 0, 0,
                                   handle.out()) == 0);
}

}  // namespace

TEST_CASE("shim: sizes and strides are borrowed from the handle and stay where they are") {
  Handle t;
  make(t, {2, 3}, {3, 1});
  int64_t *sizes, *again, *strides;
  REQUIRE(aoti_torch_get_sizes(t, &sizes) == 0);
  REQUIRE(aoti_torch_get_sizes(t, &again) == 0);
  REQUIRE(aoti_torch_get_strides(t, &strides) == 0);
  CHECK(sizes == again);
  CHECK(sizes[1] == 3);
  CHECK(strides[0] == 3);
  int64_t value;
  CHECK(aoti_torch_get_size(t, -1, &value) == 0);
  CHECK(value == 3);
  CHECK(aoti_torch_get_size(t, 2, &value) == 1);
  CHECK(take_error()->text.find("dimension 2 out of range") != std::string::npos);
  CHECK(aoti_torch_get_storage_size(t, &value) == 0);
  CHECK(value == 24);
  int32_t index;
  CHECK(aoti_torch_get_device_index(t, &index) == 0);
  CHECK(index == -1);
}

TEST_CASE("shim: _reinterpret_tensor adds to the offset, in elements; as_strided keeps it") {
  Handle t, view, twice, strided;
  make(t, {8}, {1});
  const int64_t sizes[] = {2}, strides[] = {2};
  REQUIRE(aoti_torch__reinterpret_tensor(t, 1, sizes, strides, 2, view.out()) == 0);
  REQUIRE(aoti_torch__reinterpret_tensor(view, 1, sizes, strides, 3, twice.out()) == 0);
  CHECK(twice.data<float>() == t.data<float>() + 5);
  REQUIRE(aoti_torch_as_strided(twice, sizes, strides, strided.out()) == 0);
  CHECK(strided.data<float>() == t.data<float>() + 5);
  Handle outside;
  CHECK(aoti_torch__reinterpret_tensor(t, 1, sizes, strides, 7, outside.out()) == 1);
  CHECK(outside.h == nullptr);
  CHECK(take_error().has_value());
}

TEST_CASE("shim: _alloc_from_pool counts bytes, of the new dtype") {
  Handle pool, t;
  make(pool, {64}, {1}, 0);
  const int64_t sizes[] = {2}, strides[] = {1};
  REQUIRE(aoti_torch__alloc_from_pool(pool, 16, kF64, 1, sizes, strides, t.out()) == 0);
  CHECK(t.data<char>() == pool.data<char>() + 16);
  Handle odd;
  CHECK(aoti_torch__alloc_from_pool(pool, 12, kF64, 1, sizes, strides, odd.out()) == 1);
  CHECK(take_error().has_value());
}

TEST_CASE("shim: a blob of no bytes may be null") {
  Handle t;
  const int64_t sizes[] = {0, 4}, strides[] = {4, 1};
  REQUIRE(aoti_torch_create_tensor_from_blob(nullptr, 2, sizes, strides, 0, kF32, 0, 0, t.out()) == 0);
  int64_t numel = -1;
  CHECK(aoti_torch_get_numel(t, &numel) == 0);
  CHECK(numel == 0);
}

TEST_CASE("shim: an opaque constant keeps its description") {
  Handle t;
  char packed[64] = {};
  const int64_t sizes[] = {2, 3}, strides[] = {1, 0};
  const uint8_t metadata[] = {1, 2, 3};
  REQUIRE(aoti_torch_create_tensor_from_blob_v2(packed, 2, sizes, strides, 0, kF32, 0, 0, t.out(), 3, metadata, 3) ==
          0);
  const auto* kept = tensor_of(t)->storage()->opaque_metadata();
  REQUIRE(kept);
  CHECK(kept->size() == 3);
  CHECK(t.data<char>() == packed);
}

TEST_CASE("shim: handles share storage, and the storage goes with the last") {
  Handle a;
  make(a, {4}, {1}, kI64);
  Handle b, c;
  REQUIRE(aoti_torch_new_tensor_handle(a, b.out()) == 0);
  REQUIRE(aoti_torch_assign_tensors_out(a, c.out()) == 0);
  CHECK(b.data<int64_t>() == a.data<int64_t>());
  CHECK(tensor_of(a)->storage()->references() == 3);
  Handle d;
  REQUIRE(aoti_torch_new_uninitialized_tensor(d.out()) == 0);
  bool defined = true;
  CHECK(aoti_torch_is_defined(d, &defined) == 0);
  CHECK(!defined);
  REQUIRE(aoti_torch_assign_tensors(a, d) == 0);  // (src, dst)
  CHECK(d.data<int64_t>() == a.data<int64_t>());
}

TEST_CASE("shim: tensor_copy_ is (src, dst), copy_ is (self, src)") {
  Handle a, b;
  make(a, {1}, {1});
  make(b, {1}, {1});
  *a.data<float>() = 1;
  *b.data<float>() = 2;
  REQUIRE(aoti_torch_tensor_copy_(a, b) == 0);
  CHECK(*b.data<float>() == 1);
  *b.data<float>() = 3;
  REQUIRE(aoti_torch_copy_(a, b, 0) == 0);
  CHECK(*a.data<float>() == 3);
}

TEST_CASE("shim: clone_preserve_strides keeps overlaps, clone does not") {
  Handle base, expanded, kept, packed;
  make(base, {3}, {1});
  for (int i = 0; i < 3; ++i) base.data<float>()[i] = static_cast<float>(i);
  const int64_t sizes[] = {2, 3}, strides[] = {0, 1};
  REQUIRE(aoti_torch__reinterpret_tensor(base, 2, sizes, strides, 0, expanded.out()) == 0);
  REQUIRE(aoti_torch_clone_preserve_strides(expanded, kept.out()) == 0);
  CHECK(tensor_of(kept)->stride(0) == 0);
  CHECK(kept.data<float>()[2] == 2);
  REQUIRE(aoti_torch_clone(expanded, packed.out()) == 0);
  CHECK(tensor_of(packed)->is_contiguous());
  CHECK(packed.data<float>()[5] == 2);
}

TEST_CASE("shim: null handles and unknown numbers are errors, not crashes") {
  AtenTensorHandle out = nullptr;
  void* p;
  CHECK(aoti_torch_get_data_ptr(nullptr, &p) == 1);
  CHECK(take_error()->text == "aoti_torch_get_data_ptr: null argument");
  CHECK(aoti_torch_clone(nullptr, &out) == 1);
  CHECK(take_error()->text == "aoti_torch_clone: self is null");
  const int64_t one[] = {1};
  CHECK(aoti_torch_empty_strided(1, one, one, 99, 0, 0, &out) == 1);
  CHECK(take_error()->text.find("dtype number 99") != std::string::npos);
  CHECK(aoti_torch_empty_strided(1, one, one, kF32, 12, 0, &out) == 1);
  CHECK(take_error()->code == ErrorCode::kUnsupported);
  const int64_t negative[] = {-1};
  CHECK(aoti_torch_empty_strided(1, negative, one, kF32, 0, 0, &out) == 1);
  take_error();
  CHECK(aoti_torch_delete_tensor_object(nullptr) == 0);
  CHECK(aoti_torch_dtype_element_size(99) == 0);
  CHECK(aoti_torch_dtype_element_size(10) == 16);
  CHECK(out == nullptr);
}

TEST_CASE("shim: the first error of a run is kept, and taken once") {
  void* p;
  aoti_torch_get_data_ptr(nullptr, &p);
  AtenTensorHandle out;
  aoti_torch_clone(nullptr, &out);
  CHECK(take_error()->text == "aoti_torch_get_data_ptr: null argument");
  CHECK(!take_error());
}

TEST_CASE("shim: a constant scope answers for the blob while it lives") {
  struct Scope final : ConstantScope {
    float value = 7;
    Tensor substitute(void*, Tensor requested) override {
      return Tensor::from_blob(&value, requested.sizes(), requested.strides(), requested.dtype());
    }
  };
  float blob = 1;
  const int64_t one[] = {1};
  Handle inside, outside;
  {
    Scope scope;
    REQUIRE(aoti_torch_create_tensor_from_blob_v2(&blob, 1, one, one, 0, kF32, 0, 0, inside.out(), 0, nullptr, 0) == 0);
    CHECK(*inside.data<float>() == 7);
  }
  REQUIRE(aoti_torch_create_tensor_from_blob_v2(&blob, 1, one, one, 0, kF32, 0, 0, outside.out(), 0, nullptr, 0) == 0);
  CHECK(*outside.data<float>() == 1);
}
