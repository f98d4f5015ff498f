#include "python/native/tensor_object.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "python/native/arguments.h"
#include "python/native/dlpack_tensors.h"
#include "python/native/errors.h"
#include "python/native/host_arrays.h"
#include "sconce/check.h"
#include "sconce/device_memory.h"

namespace sconce::python {
namespace {

PyTypeObject* tensor_type = nullptr;

nb::tuple tuple_of(IntSpan values) {
  nb::list list;
  for (const int64_t value : values) list.append(value);
  return nb::tuple(list);
}

// The tensor on the host: itself, or a copy.
Tensor on_host(const Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  const nb::gil_scoped_release released;
  return copy_to(tensor, Device{});
}

nb::object numpy(const TensorObject& self) {
  const nb::object dtype = numpy_dtype(self.tensor.dtype());
  return array_on(on_host(self.tensor), dtype);
}

nb::object bits(const TensorObject& self) { return array_on(on_host(self.tensor), bits_dtype(self.tensor.dtype())); }

nb::object array_protocol(const TensorObject& self, nb::handle dtype, nb::handle copy) {
  nb::object array = numpy(self);
  if (!dtype.is_none()) array = array.attr("astype")(dtype, nb::arg("copy") = false);
  return copy.ptr() == Py_True ? nb::object(array.attr("copy")()) : array;
}

nb::object dlpack(const TensorObject& self, nb::handle, nb::handle max_version, nb::handle dl_device, nb::handle copy) {
  // Runs are over when they return, so there is nothing that a stream could have to wait for.
  Tensor tensor = self.tensor;
  const DLDevice own = dl_device_of(tensor);
  bool copied = false;
  if (!dl_device.is_none()) {
    const DLDevice wanted{nb::cast<int32_t>(dl_device[0]), nb::cast<int32_t>(dl_device[1])};
    if (wanted.type != own.type || wanted.id != own.id) {
      if (wanted.type != kDLCpu || copy.ptr() == Py_False)
        throw nb::buffer_error("the tensor can be had where it is, or as a copy on the host");
      tensor = on_host(tensor);
      copied = true;
    }
  }
  if (copy.ptr() == Py_True && !copied) {
    const nb::gil_scoped_release released;
    tensor = copy_to(tensor, tensor.device());
  }
  const bool versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  return dlpack_capsule(tensor, versioned);
}

TensorObject from_bits(nb::handle array, const std::string& dtype) {
  const std::optional<DType> type = dtype_from_name(dtype);
  SCONCE_CHECK(type, kInvalidArgument, "dtype: unknown '", dtype, "'");
  SCONCE_CHECK(is_array(array), kInvalidArgument, "bits: expected a NumPy array, got an object of type ",
               class_name(array));
  const Tensor bits = host_tensor(array, "bits", std::nullopt);
  SCONCE_CHECK(bits.itemsize() == dtype_bytes(*type), kInvalidArgument, "bits: expected elements of ",
               dtype_bytes(*type), " bytes for ", dtype, ", got ", dtype_name(bits.dtype()));
  return {bits.view_as(*type, bits.sizes(), bits.strides(), bits.storage_offset())};
}

}  // namespace

const Tensor* tensor_of_object(nb::handle object) noexcept {
  if (Py_TYPE(object.ptr()) != tensor_type) return nullptr;
  return &nb::inst_ptr<TensorObject>(object)->tensor;
}

nb::object object_of_tensor(Tensor tensor) { return nb::cast(TensorObject{std::move(tensor)}); }

void bind_tensor(nb::module_& module) {
  auto type =
      nb::class_<TensorObject>(module, "Tensor", nb::is_final(), R"(A tensor of the runtime, on the host or a GPU.

Libraries that know DLPack take it without a copy: torch.from_dlpack(t), jax.dlpack.from_dlpack(t), cupy.from_dlpack(t).)");
  type.def_static("from_bits", &from_bits, nb::arg("bits"), nb::arg("dtype"),
                  R"(Views a NumPy array as elements of another dtype of the same size.

For dtypes that NumPy lacks: Tensor.from_bits(uint16_array, "bfloat16"). dtype is PyTorch's name.
Raises InvalidArgument if the sizes differ.)")
      .def_prop_ro(
          "shape", [](const TensorObject& self) { return tuple_of(self.tensor.sizes()); }, "Sizes, in elements.")
      .def_prop_ro(
          "strides", [](const TensorObject& self) { return tuple_of(self.tensor.strides()); },
          "Strides, in elements (NumPy's are in bytes).")
      .def_prop_ro(
          "dtype", [](const TensorObject& self) { return std::string(dtype_name(self.tensor.dtype())); },
          "PyTorch's name of the element type, such as 'float32' or 'bfloat16'.")
      .def_prop_ro(
          "device", [](const TensorObject& self) { return to_string(self.tensor.device()); },
          "'cpu', or a GPU such as 'cuda:0'.")
      .def_prop_ro(
          "nbytes", [](const TensorObject& self) { return self.tensor.bytes(); }, "Bytes of all elements.")
      .def("numpy", &numpy,
           R"(A NumPy array of the values: a view if the tensor is on the host, else a copy.

bfloat16 and float8 need ml_dtypes. Raises Unsupported without it.)")
      .def("bits", &bits, "A NumPy array of unsigned integers of the same size, such as uint16 for bfloat16.")
      .def("__array__", &array_protocol, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack__", &dlpack, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
           nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__",
           [](const TensorObject& self) {
             const DLDevice device = dl_device_of(self.tensor);
             return nb::make_tuple(device.type, device.id);
           })
      .def("__len__",
           [](const TensorObject& self) {
             if (self.tensor.dim() == 0) throw nb::type_error("len() of a 0-dimensional tensor");
             return self.tensor.size(0);
           })
      .def("__repr__", [](const TensorObject& self) {
        return "sconce.Tensor(" + describe(self.tensor) + ", " + to_string(self.tensor.device()) + ")";
      });
  tensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
}

}  // namespace sconce::python
