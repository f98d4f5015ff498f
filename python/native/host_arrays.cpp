#define SCONCE_IMPORTS_NUMPY
#include "python/native/host_arrays.h"

#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "python/native/errors.h"
#include "python/native/numpy_api.h"
#include "sconce/check.h"

namespace sconce::python {
namespace {

std::atomic<bool> leaving{false};

void release_object(void*, size_t, void* object) noexcept {
  if (leaving.load(std::memory_order_relaxed)) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF(static_cast<PyObject*>(object));
  PyGILState_Release(state);
}

constexpr const char* kStorageCapsule = "sconce.storage";

void release_storage(PyObject* capsule) {
  StoragePtr::adopt(static_cast<Storage*>(PyCapsule_GetPointer(capsule, kStorageCapsule)));
}

PyArrayObject* array(nb::handle object) { return reinterpret_cast<PyArrayObject*>(object.ptr()); }

constexpr std::pair<int, DType> kBuiltin[] = {
    {NPY_BOOL, DType::kBool},         {NPY_BYTE, DType::kInt8},        {NPY_UBYTE, DType::kUInt8},
    {NPY_SHORT, DType::kInt16},       {NPY_USHORT, DType::kUInt16},    {NPY_INT, DType::kInt32},
    {NPY_UINT, DType::kUInt32},       {NPY_LONG, DType::kInt64},       {NPY_ULONG, DType::kUInt64},
    {NPY_LONGLONG, DType::kInt64},    {NPY_ULONGLONG, DType::kUInt64}, {NPY_HALF, DType::kFloat16},
    {NPY_FLOAT, DType::kFloat32},     {NPY_DOUBLE, DType::kFloat64},   {NPY_CFLOAT, DType::kComplex64},
    {NPY_CDOUBLE, DType::kComplex128}};

// By NumPy's type number, -1 where there is no counterpart.
constexpr std::array<int8_t, NPY_HALF + 1> builtin_types() {
  std::array<int8_t, NPY_HALF + 1> types{};
  types.fill(-1);
  for (const auto& [number, dtype] : kBuiltin) types[static_cast<size_t>(number)] = static_cast<int8_t>(dtype);
  return types;
}

// ml_dtypes registers its types with NumPy, which numbers them as they come.
std::optional<DType> registered_type(PyArray_Descr* descr, int number) {
  static std::vector<std::pair<int, std::optional<DType>>> known;
  for (const auto& [seen, dtype] : known)
    if (seen == number) return dtype;
  const nb::object name = nb::getattr(nb::handle(reinterpret_cast<PyObject*>(descr)), "name");
  std::optional<DType> dtype = dtype_from_name(text_of(name));
  if (dtype && dtype_bytes(*dtype) != static_cast<size_t>(PyDataType_ELSIZE(descr))) dtype.reset();
  known.emplace_back(number, dtype);
  return dtype;
}

std::optional<DType> dtype_of(PyArray_Descr* descr) {
  static constexpr auto kTypes = builtin_types();
  const int number = descr->type_num;
  if (number >= 0 && number <= NPY_HALF) {
    const int8_t dtype = kTypes[static_cast<size_t>(number)];
    return dtype < 0 ? std::nullopt : std::optional(static_cast<DType>(dtype));
  }
  // Structures, strings and dates.
  if (number < NPY_USERDEF) return std::nullopt;
  return registered_type(descr, number);
}

nb::object descr_of_name(const char* module, const std::string& name) {
  const nb::object type = nb::getattr(nb::module_::import_(module), name.c_str());
  PyArray_Descr* descr = nullptr;
  if (!PyArray_DescrConverter(type.ptr(), &descr)) throw nb::python_error();
  return nb::steal<nb::object>(reinterpret_cast<PyObject*>(descr));
}

nb::object find_dtype(DType dtype) {
  for (const auto& [number, builtin] : kBuiltin)
    if (builtin == dtype) return owned(reinterpret_cast<PyObject*>(PyArray_DescrFromType(number)));
  const std::string name(dtype_name(dtype));
  SCONCE_CHECK(dtype == DType::kBFloat16 || is_float8(dtype), kUnsupported, "NumPy has no type ", name,
               ": take the tensor by DLPack (outputs=\"dlpack\" or \"torch\"), or its bits (sconce.Tensor.bits())");
  try {
    return descr_of_name("ml_dtypes", name);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError) && !error.matches(PyExc_AttributeError)) throw;
    SCONCE_FAIL(kUnsupported, "NumPy has no type ", name, ": pip install ml_dtypes",
                error.matches(PyExc_ImportError) ? "" : " (a newer one)",
                ", or take the tensor by DLPack (outputs=\"dlpack\" or \"torch\"), or its bits (sconce.Tensor.bits())");
  }
}

void copy_into(PyObject* to, PyObject* from) {
  if (PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(to), reinterpret_cast<PyArrayObject*>(from)) != 0)
    throw nb::python_error();
}

// The type of the array's elements in this machine's byte order.
nb::object native_descr(nb::handle object) {
  PyArray_Descr* descr = PyArray_DESCR(array(object));
  if (PyArray_ISNOTSWAPPED(array(object))) return nb::borrow(reinterpret_cast<PyObject*>(descr));
  return owned(reinterpret_cast<PyObject*>(PyArray_DescrNewByteorder(descr, NPY_NATIVE)));
}

}  // namespace

void import_numpy() {
  if (_import_array() < 0) throw nb::python_error();
}

void leave_objects() noexcept { leaving.store(true); }

bool is_array(nb::handle object) noexcept { return PyArray_Check(object.ptr()); }
bool is_numpy_scalar(nb::handle object) noexcept { return PyArray_IsScalar(object.ptr(), Generic); }
nb::object array_of_scalar(nb::handle object) { return owned(PyArray_FromScalar(object.ptr(), nullptr)); }

nb::object array_of_buffer(nb::handle object) {
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr())) return {};
  if (!PyObject_CheckBuffer(object.ptr()) && !nb::hasattr(object, "__array__")) return {};
  return owned(PyArray_FromAny(object.ptr(), nullptr, 0, 0, 0, nullptr));
}

ArrayView view_array(nb::handle object) {
  PyArrayObject* a = array(object);
  ArrayView view;
  view.dtype = dtype_of(PyArray_DESCR(a));
  view.data = reinterpret_cast<std::byte*>(PyArray_BYTES(a));
  view.rank = PyArray_NDIM(a);
  static_assert(sizeof(npy_intp) == sizeof(int64_t));
  view.sizes = reinterpret_cast<const int64_t*>(PyArray_DIMS(a));
  view.byte_strides = reinterpret_cast<const int64_t*>(PyArray_STRIDES(a));
  view.native = PyArray_ISNOTSWAPPED(a) && PyArray_CHKFLAGS(a, NPY_ARRAY_ALIGNED);
  view.writable = PyArray_CHKFLAGS(a, NPY_ARRAY_WRITEABLE);
  return view;
}

std::string dtype_text(nb::handle object) {
  return text_of(nb::str(nb::handle(reinterpret_cast<PyObject*>(PyArray_DESCR(array(object))))));
}

Tensor tensor_on(void* data, IntSpan sizes, IntSpan strides, DType dtype, Device device, nb::handle owner) {
  const size_t bytes = storage_bytes_needed(sizes, strides, 0, dtype_bytes(dtype));
  auto* storage = new Storage(data, bytes, device, release_object, owner.ptr());
  owner.inc_ref();
  return Tensor(StoragePtr::adopt(storage), dtype, sizes, strides);
}

nb::object numpy_dtype(DType dtype) {
  static std::array<PyObject*, 128> found{};  // never released
  PyObject*& known = found[static_cast<size_t>(dtype)];
  if (!known) known = find_dtype(dtype).release().ptr();
  return nb::borrow(known);
}

nb::object bits_dtype(DType dtype) {
  constexpr std::array<DType, 9> kBits = {DType::kUInt8, DType::kUInt8, DType::kUInt16, DType::kUInt8, DType::kUInt32,
                                          DType::kUInt8, DType::kUInt8, DType::kUInt8,  DType::kUInt64};
  const size_t bytes = dtype_bytes(dtype);
  return numpy_dtype(bytes == 16 ? DType::kComplex128 : kBits[bytes]);
}

nb::object array_on(const Tensor& tensor, nb::handle dtype) {
  npy_intp strides[Tensor::kMaxRank];
  const auto item = static_cast<int64_t>(tensor.itemsize());
  for (int64_t d = 0; d < tensor.dim(); ++d) strides[d] = tensor.stride(d) * item;
  const bool empty = tensor.numel() == 0 || !tensor.data();
  const int flags = tensor.storage()->immutable() ? 0 : NPY_ARRAY_WRITEABLE;
  nb::object base;
  if (!empty) {
    const StoragePtr& storage = tensor.storage();
    storage->retain();
    PyObject* capsule = PyCapsule_New(storage.get(), kStorageCapsule, release_storage);
    if (!capsule) {
      storage->release();
      throw nb::python_error();
    }
    base = nb::steal<nb::object>(capsule);
  }
  dtype.inc_ref();  // which the next call takes
  nb::object made = owned(
      PyArray_NewFromDescr(&PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype.ptr()), static_cast<int>(tensor.dim()),
                           reinterpret_cast<const npy_intp*>(tensor.sizes().data()), empty ? nullptr : strides,
                           empty ? nullptr : tensor.data(), empty ? 0 : flags, nullptr));
  if (!empty && PyArray_SetBaseObject(array(made), base.release().ptr()) != 0) throw nb::python_error();
  return made;
}

nb::object array_on(const Tensor& tensor) {
  const nb::object dtype = numpy_dtype(tensor.dtype());
  return array_on(tensor, dtype);
}

void copy_array(nb::handle from, const Tensor& to) {
  if (to.numel() == 0) return;
  const nb::object view = array_on(to, native_descr(from));
  copy_into(view.ptr(), from.ptr());
}

void copy_array(const Tensor& from, nb::handle to) {
  if (from.numel() == 0) return;
  const nb::object view = array_on(from, native_descr(to));
  copy_into(to.ptr(), view.ptr());
}

}  // namespace sconce::python
