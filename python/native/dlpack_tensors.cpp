#include "python/native/dlpack_tensors.h"

#include <memory>
#include <utility>
#include <vector>

#include "python/native/cuda_sync.h"
#include "python/native/errors.h"
#include "sconce/check.h"

namespace sconce::python {
namespace {

enum Code : uint8_t { kInt, kUInt, kFloat, kOpaque, kBFloat, kComplex, kBool };

struct DTypeRow {
  DType dtype;
  DLDataType dlpack;
};
constexpr DTypeRow kTypes[] = {
    {DType::kFloat32, {kFloat, 32, 1}},     {DType::kInt64, {kInt, 64, 1}},
    {DType::kUInt8, {kUInt, 8, 1}},         {DType::kBool, {kBool, 8, 1}},
    {DType::kInt32, {kInt, 32, 1}},         {DType::kFloat16, {kFloat, 16, 1}},
    {DType::kBFloat16, {kBFloat, 16, 1}},   {DType::kFloat64, {kFloat, 64, 1}},
    {DType::kInt8, {kInt, 8, 1}},           {DType::kInt16, {kInt, 16, 1}},
    {DType::kUInt16, {kUInt, 16, 1}},       {DType::kUInt32, {kUInt, 32, 1}},
    {DType::kUInt64, {kUInt, 64, 1}},       {DType::kComplex32, {kComplex, 32, 1}},
    {DType::kComplex64, {kComplex, 64, 1}}, {DType::kComplex128, {kComplex, 128, 1}},
    {DType::kFloat8E4M3FN, {10, 8, 1}},     {DType::kFloat8E4M3FNUZ, {11, 8, 1}},
    {DType::kFloat8E5M2, {12, 8, 1}},       {DType::kFloat8E5M2FNUZ, {13, 8, 1}},
    {DType::kFloat8E8M0FNU, {14, 8, 1}},    {DType::kFloat4E2M1FNx2, {17, 4, 2}},
};

DLDataType dl_dtype(DType dtype) noexcept {
  for (const DTypeRow& row : kTypes)
    if (row.dtype == dtype) return row.dlpack;
  return {kOpaque, 8, 1};
}

// What a type of tensors offers besides __dlpack__.
struct TensorType {
  const DLExchangeApi* api = nullptr;  // lives as long as the process
  bool has_flags = false;              // PyTorch's is_neg() and is_conj(): the memory has other values than the tensor
};

TensorType read_type(nb::handle type) {
  TensorType read;
  const nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) {
    read.api = static_cast<const DLExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    while (read.api && read.api->version.major != 1) read.api = read.api->previous;
    if (read.api && !read.api->view_object) read.api = nullptr;
  }
  read.has_flags = nb::hasattr(type, "is_neg") && nb::hasattr(type, "resolve_neg") && nb::hasattr(type, "is_conj");
  return read;
}

TensorType type_of(nb::handle object) {
  static std::vector<std::pair<PyTypeObject*, TensorType>> known;  // types are never released
  PyTypeObject* type = Py_TYPE(object.ptr());
  for (const auto& [seen, read] : known)
    if (seen == type) return read;
  const nb::handle handle(reinterpret_cast<PyObject*>(type));
  const TensorType read = read_type(handle);
  // Programs have few such types; one that makes them without end does not make this list long.
  if (known.size() < 64) {
    handle.inc_ref();
    known.emplace_back(type, read);
  }
  return read;
}

bool answers_true(nb::handle object, const char* method) {
  const nb::object answer = object.attr(method)();
  return answer.ptr() == Py_True;
}

bool on_gpu(const DLTensor& tensor) noexcept {
  return tensor.device.type == kDLCuda || tensor.device.type == kDLCudaManaged;
}

constexpr const char* kTaken = "sconce.dlpack";

// Takes the tensor out of its capsule, as the standard has it: no other library can take it any more, and the owner
// that is made here frees it.
template <class Managed>
void take_capsule(nb::handle capsule, const char* name, const char* used, ForeignTensor& foreign) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!managed) throw nb::python_error();
  foreign.tensor = managed->tensor;
  foreign.owner = owned(PyCapsule_New(managed, kTaken, [](PyObject* self) {
    auto* taken = static_cast<Managed*>(PyCapsule_GetPointer(self, kTaken));
    if (taken->deleter) taken->deleter(taken);
  }));
  if (PyCapsule_SetName(capsule.ptr(), used) != 0) throw nb::python_error();
}

nb::object ask(nb::handle object, bool to_host) {
  const nb::object method = nb::getattr(object, "__dlpack__");
  nb::dict arguments;
  arguments["max_version"] = nb::make_tuple(1, 0);
  if (to_host) arguments["dl_device"] = nb::make_tuple(static_cast<int>(kDLCpu), 0);
  const nb::object device = nb::getattr(object, "__dlpack_device__")();
  const int type = nb::cast<int>(nb::int_(device[0]));
  // 1: the legacy default stream waits for the object's library, and we for that stream.
  if (!to_host && (type == kDLCuda || type == kDLCudaManaged)) arguments["stream"] = nb::int_(1);
  PyObject* capsule = PyObject_Call(method.ptr(), nb::tuple().ptr(), arguments.ptr());
  if (capsule) return nb::steal<nb::object>(capsule);
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
  PyErr_Clear();
  // A library that knows no versions.
  PyDict_DelItemString(arguments.ptr(), "max_version");
  if (to_host) {
    SCONCE_CHECK(type == kDLCpu || type == kDLCudaHost, kInvalidArgument, "expected a tensor on the host, got a ",
                 class_name(object), " on a device");
    PyDict_DelItemString(arguments.ptr(), "dl_device");
  }
  return owned(PyObject_Call(method.ptr(), nb::tuple().ptr(), arguments.ptr()));
}

}  // namespace

std::optional<ForeignTensor> foreign_tensor(nb::handle object, bool to_host) {
  const TensorType type = type_of(object);
  if (type.has_flags && (answers_true(object, "is_neg") || answers_true(object, "is_conj"))) {
    // The values exist nowhere yet, so nothing can be written to them either.
    const nb::object resolved = object.attr("resolve_conj")().attr("resolve_neg")();
    std::optional<ForeignTensor> foreign = foreign_tensor(resolved, to_host);
    if (foreign) foreign->writable = false;
    return foreign;
  }
  ForeignTensor foreign;
  if (type.api) {
    if (type.api->view_object(object.ptr(), &foreign.tensor) != 0) throw nb::python_error();
    if (!(to_host && on_gpu(foreign.tensor))) {
      if (on_gpu(foreign.tensor)) {
        void* stream = nullptr;
        if (type.api->current_stream &&
            type.api->current_stream(foreign.tensor.device.type, foreign.tensor.device.id, &stream) != 0)
          throw nb::python_error();
        wait_for_stream(foreign.tensor.device.id, stream);
      }
      foreign.owner = nb::borrow(object);
      return foreign;
    }
  }
  if (!nb::hasattr(object, "__dlpack__")) return std::nullopt;
  const nb::object capsule = ask(object, to_host);
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    const auto* managed =
        static_cast<const DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    SCONCE_CHECK(managed->version.major == 1, kUnsupported, "DLPack of version ", managed->version.major, ".",
                 managed->version.minor, ", expected 1");
    foreign.writable = !(managed->flags & kDLReadOnly);
    take_capsule<DLManagedTensorVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned", foreign);
  } else {
    take_capsule<DLManagedTensor>(capsule, "dltensor", "used_dltensor", foreign);
  }
  if (on_gpu(foreign.tensor)) wait_for_stream(foreign.tensor.device.id, nullptr);
  return foreign;
}

DType dtype_of(const DLTensor& tensor, const char* what) {
  for (const DTypeRow& row : kTypes)
    if (row.dlpack.code == tensor.dtype.code && row.dlpack.bits == tensor.dtype.bits &&
        row.dlpack.lanes == tensor.dtype.lanes)
      return row.dtype;
  SCONCE_FAIL(kUnsupported, what, ": a DLPack tensor of a type that Sconce lacks: code ", int{tensor.dtype.code}, ", ",
              int{tensor.dtype.bits}, " bits, ", tensor.dtype.lanes, " lanes");
}

Device device_of(const DLTensor& tensor, const char* what) {
  switch (tensor.device.type) {
    case kDLCpu:
    case kDLCudaHost:
      return {};
    case kDLCuda:
    case kDLCudaManaged:
      return {DeviceType::kCuda, static_cast<int8_t>(tensor.device.id)};
    default:
      SCONCE_FAIL(kUnsupported, what, ": a DLPack tensor on a device that Sconce lacks: type ", tensor.device.type);
  }
}

DLDevice dl_device_of(const Tensor& tensor) noexcept {
  if (tensor.device().type == DeviceType::kCuda) return {kDLCuda, tensor.device().index};
  return {kDLCpu, 0};
}

namespace {

// What a capsule owns: the structure, the dimensions it points to, and the memory.
template <class Managed>
struct Export {
  Managed managed{};
  Tensor tensor;
  std::vector<int64_t> dims;

  explicit Export(const Tensor& shared) : tensor(shared) {
    dims.assign(tensor.sizes().begin(), tensor.sizes().end());
    dims.insert(dims.end(), tensor.strides().begin(), tensor.strides().end());
    managed.context = this;
    managed.deleter = [](Managed* self) { delete static_cast<Export*>(self->context); };
    managed.tensor = {tensor.data(),
                      dl_device_of(tensor),
                      static_cast<int32_t>(tensor.dim()),
                      dl_dtype(tensor.dtype()),
                      dims.data(),
                      dims.data() + tensor.dim(),
                      0};
  }
};

// Who takes the tensor renames the capsule.
template <class Managed>
void free_unused(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

}  // namespace

namespace {

std::unique_ptr<Export<DLManagedTensorVersioned>> versioned_export(const Tensor& tensor) {
  auto made = std::make_unique<Export<DLManagedTensorVersioned>>(tensor);
  made->managed.version = {1, 0};
  made->managed.flags = tensor.storage()->immutable() ? kDLReadOnly : 0;
  return made;
}

}  // namespace

nb::object dlpack_capsule(const Tensor& tensor, bool versioned) {
  if (versioned) {
    auto made = versioned_export(tensor);
    nb::object capsule = owned(PyCapsule_New(&made->managed, "dltensor_versioned", [](PyObject* self) {
      free_unused<DLManagedTensorVersioned>(self, "dltensor_versioned");
    }));
    made.release();
    return capsule;
  }
  if (tensor.storage()->immutable())
    throw nb::buffer_error("the tensor is a constant of a model; read-only memory needs DLPack 1.0");
  auto made = std::make_unique<Export<DLManagedTensor>>(tensor);
  nb::object capsule = owned(PyCapsule_New(&made->managed, "dltensor",
                                           [](PyObject* self) { free_unused<DLManagedTensor>(self, "dltensor"); }));
  made.release();
  return capsule;
}

nb::object torch_tensor(const Tensor& tensor) {
  static PyObject* const class_of_tensors = imported("torch", "Tensor");
  static const DLExchangeApi* const api = read_type(class_of_tensors).api;
  if (!api || !api->object_of_managed) {
    static PyObject* const from_dlpack = imported("torch.utils.dlpack", "from_dlpack");
    return nb::handle(from_dlpack)(dlpack_capsule(tensor, true));
  }
  auto made = versioned_export(tensor);
  void* object = nullptr;
  if (api->object_of_managed(&made->managed, &object) != 0) throw nb::python_error();
  made.release();
  return nb::steal<nb::object>(static_cast<PyObject*>(object));
}

}  // namespace sconce::python
