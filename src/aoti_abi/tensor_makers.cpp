// Tensors that a model makes, views and passes on. ABI: c/shim.h, torch 2.6 to 2.15; semantics of shim_common.cpp.
// Results are new references unless a comment says otherwise.
#include <cstring>
#include <vector>

#include "src/aoti_abi/constant_scope.h"
#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"

using sconce::Device;
using sconce::DeviceType;
using sconce::DType;
using sconce::IntSpan;
using sconce::Layout;
using sconce::Tensor;
using sconce::aoti_abi::guard;
using sconce::aoti_abi::in;
using sconce::aoti_abi::new_handle;

namespace sconce::aoti_abi {
namespace {

thread_local ConstantScope* current_scope = nullptr;

Device device_in(int32_t type, int32_t index) {
  SCONCE_CHECK(type == 0 || type == 1, kUnsupported, "device type ", type, " is not supported");
  return Device{static_cast<DeviceType>(type), static_cast<int8_t>(type == 0 ? -1 : index)};
}

IntSpan span_of(const int64_t* values, int64_t count) {
  SCONCE_CHECK(count >= 0 && count <= Tensor::kMaxRank && (values || count == 0), kInvalidArgument, "rank ", count,
               " out of range");
  return {values, static_cast<size_t>(count)};
}

Tensor view_blob(void* data, IntSpan sizes, IntSpan strides, int64_t offset, DType dtype, Device device, int32_t layout,
                 const uint8_t* opaque, int64_t opaque_size) {
  if (layout == static_cast<int32_t>(Layout::kMkldnn)) {
    SCONCE_CHECK(opaque && opaque_size > 0, kCorruptPackage, "an mkldnn constant without its layout description");
    // The size is in the metadata; sizes give only a lower bound, and only decoding kernels read the content.
    auto storage = StoragePtr::adopt(new Storage(data, 0, device, nullptr, nullptr));
    const auto* bytes = reinterpret_cast<const std::byte*>(opaque);
    storage->set_opaque_metadata({bytes, bytes + opaque_size});
    return Tensor(std::move(storage), dtype, sizes, strides, 0, Layout::kMkldnn);
  }
  SCONCE_CHECK(layout == 0, kUnsupported, "layout ", layout, " is not supported");
  const size_t bytes = storage_bytes_needed(sizes, strides, offset, dtype_bytes(dtype));
  return Tensor(StoragePtr::adopt(new Storage(data, bytes, device, nullptr, nullptr)), dtype, sizes, strides, offset);
}

}  // namespace

ConstantScope::ConstantScope() noexcept : previous_(current_scope) { current_scope = this; }
ConstantScope::~ConstantScope() { current_scope = previous_; }
ConstantScope* ConstantScope::current() noexcept { return current_scope; }

}  // namespace sconce::aoti_abi

using namespace sconce::aoti_abi;

extern "C" {

AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor) {
  delete_handle(tensor);
  return 0;
}

// Returns another reference to the same storage. Sizes and strides are copied, so one handle does not see a later
// resize_ of the other; generated code never relies on that.
AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle original, AtenTensorHandle* ret) {
  return guard("aoti_torch_new_tensor_handle", [&] { *ret = new_handle(in(original, "orig_handle")); });
}

AOTITorchError aoti_torch_new_uninitialized_tensor(AtenTensorHandle* ret) {
  return guard("aoti_torch_new_uninitialized_tensor", [&] { *ret = new_handle(Tensor()); });
}

AOTITorchError aoti_torch_empty_strided(int64_t ndim, const int64_t* sizes, const int64_t* strides, int32_t dtype,
                                        int32_t device_type, int32_t device_index, AtenTensorHandle* ret) {
  return guard("aoti_torch_empty_strided", [&] {
    *ret = new_handle(Tensor::empty_strided(span_of(sizes, ndim), span_of(strides, ndim), dtype_in(dtype, "dtype"),
                                            device_in(device_type, device_index)));
  });
}

// Pinning speeds up transfers to a device. Without a device, PyTorch returns plain memory too.
AOTITorchError aoti_torch_empty_strided_pinned(int64_t ndim, const int64_t* sizes, const int64_t* strides,
                                               int32_t dtype, int32_t device_type, int32_t device_index,
                                               AtenTensorHandle* ret) {
  return aoti_torch_empty_strided(ndim, sizes, strides, dtype, device_type, device_index, ret);
}

// storage_offset is added to the tensor's own, in elements.
AOTITorchError aoti_torch__reinterpret_tensor(AtenTensorHandle self, int64_t ndim, const int64_t* sizes,
                                              const int64_t* strides, int64_t storage_offset, AtenTensorHandle* ret) {
  return guard("aoti_torch__reinterpret_tensor", [&] {
    const Tensor& t = in(self, "self");
    SCONCE_CHECK(t.defined(), kInvalidArgument, "self is undefined");
    *ret = new_handle(t.as_strided(span_of(sizes, ndim), span_of(strides, ndim), t.storage_offset() + storage_offset));
  });
}

AOTITorchError aoti_torch__alloc_from_pool(AtenTensorHandle self, int64_t offset_bytes, int32_t dtype, int64_t ndim,
                                           const int64_t* sizes, const int64_t* strides, AtenTensorHandle* ret) {
  return guard("aoti_torch__alloc_from_pool", [&] {
    const Tensor& t = in(self, "self");
    const DType type = dtype_in(dtype, "dtype");
    const auto itemsize = static_cast<int64_t>(sconce::dtype_bytes(type));
    SCONCE_CHECK(t.storage_offset() == 0, kInvalidArgument, "the pool has a storage offset");
    SCONCE_CHECK(offset_bytes % itemsize == 0, kInvalidArgument, "offset ", offset_bytes, " is no multiple of ",
                 itemsize);
    *ret = new_handle(t.view_as(type, span_of(sizes, ndim), span_of(strides, ndim), offset_bytes / itemsize));
  });
}

// Keeps the number of dimensions and the offset.
AOTITorchError aoti_torch_as_strided(AtenTensorHandle self, const int64_t* sizes, const int64_t* strides,
                                     AtenTensorHandle* ret) {
  return guard("aoti_torch_as_strided", [&] {
    const Tensor& t = in(self, "self");
    *ret = new_handle(t.as_strided(span_of(sizes, t.dim()), span_of(strides, t.dim()), t.storage_offset()));
  });
}

AOTITorchError aoti_torch_create_tensor_from_blob(void* data, int64_t ndim, const int64_t* sizes,
                                                  const int64_t* strides, int64_t storage_offset, int32_t dtype,
                                                  int32_t device_type, int32_t device_index, AtenTensorHandle* ret) {
  return guard("aoti_torch_create_tensor_from_blob", [&] {
    *ret = new_handle(view_blob(data, span_of(sizes, ndim), span_of(strides, ndim), storage_offset,
                                dtype_in(dtype, "dtype"), device_in(device_type, device_index), 0, nullptr, 0));
  });
}

AOTITorchError aoti_torch_create_tensor_from_blob_v2(void* data, int64_t ndim, const int64_t* sizes,
                                                     const int64_t* strides, int64_t storage_offset, int32_t dtype,
                                                     int32_t device_type, int32_t device_index, AtenTensorHandle* ret,
                                                     int32_t layout, const uint8_t* opaque_metadata,
                                                     int64_t opaque_metadata_size) {
  return guard("aoti_torch_create_tensor_from_blob_v2", [&] {
    Tensor tensor =
        view_blob(data, span_of(sizes, ndim), span_of(strides, ndim), storage_offset, dtype_in(dtype, "dtype"),
                  device_in(device_type, device_index), layout, opaque_metadata, opaque_metadata_size);
    if (ConstantScope* scope = ConstantScope::current()) tensor = scope->substitute(data, std::move(tensor));
    *ret = new_handle(std::move(tensor));
  });
}

// Borrows data; the deleter, if any, runs when the last view is destroyed. ABI: torch_from_blob, torch 2.11.
AOTITorchError torch_from_blob(void* data, int64_t ndim, const int64_t* sizes, const int64_t* strides,
                               int64_t storage_offset, int32_t dtype, int32_t device_type, int32_t device_index,
                               AtenTensorHandle* ret, int32_t layout, const uint8_t* opaque_metadata,
                               int64_t opaque_metadata_size, void (*deleter)(void*, void*), void* deleter_context) {
  return guard("torch_from_blob", [&] {
    Tensor tensor =
        view_blob(data, span_of(sizes, ndim), span_of(strides, ndim), storage_offset, dtype_in(dtype, "dtype"),
                  device_in(device_type, device_index), layout, opaque_metadata, opaque_metadata_size);
    if (deleter) {
      struct Owner {
        void (*deleter)(void*, void*);
        void* context;
      };
      tensor.storage()->reset(
          data, tensor.storage()->bytes(),
          [](void* bytes, size_t, void* context) noexcept {
            std::unique_ptr<Owner> owner(static_cast<Owner*>(context));
            owner->deleter(bytes, owner->context);
          },
          new Owner{deleter, deleter_context});
    }
    *ret = new_handle(std::move(tensor));
  });
}

// Takes src, then dst, and makes dst share src's storage, sizes and strides.
AOTITorchError aoti_torch_assign_tensors(AtenTensorHandle src, AtenTensorHandle dst) {
  return guard("aoti_torch_assign_tensors", [&] { in(dst, "dst") = in(src, "src"); });
}

AOTITorchError aoti_torch_assign_tensors_out(AtenTensorHandle src, AtenTensorHandle* ret) {
  return guard("aoti_torch_assign_tensors_out", [&] { *ret = new_handle(in(src, "src")); });
}

}  // extern "C"
