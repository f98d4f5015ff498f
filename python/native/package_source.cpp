#include "python/native/package_source.h"

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <string>

#include "python/native/errors.h"
#include "sconce/check.h"

namespace sconce::python {
namespace {

struct Buffer {
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  }
  ~Buffer() { PyBuffer_Release(&view); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Py_buffer view{};
};

// The package has the bytes for itself, because Python's may be written by anybody. At a multiple of 64 bytes, so that
// weights are used there; the bytes of Python's objects are not, and their weights would be copied all the same.
std::shared_ptr<const Package> open_bytes(nb::handle object) {
  constexpr std::align_val_t kAlignment{64};
  const Buffer buffer(object);
  const nb::gil_scoped_release released;
  const auto size = static_cast<size_t>(buffer.view.len);
  const std::shared_ptr<std::byte> bytes(new (kAlignment) std::byte[size],
                                         [](std::byte* data) { operator delete[](data, kAlignment); });
  if (size > 0) std::memcpy(bytes.get(), buffer.view.buf, size);
  return Package::open(std::span<const std::byte>(bytes.get(), size), bytes);
}

}  // namespace

std::string path_of(nb::handle source) {
  if (!PyUnicode_Check(source.ptr()) && !nb::hasattr(source, "__fspath__")) return {};
  const nb::object bytes = nb::module_::import_("os").attr("fsencode")(source);
  char* text = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &text, &size) != 0) throw nb::python_error();
  const std::string path(text, static_cast<size_t>(size));
  SCONCE_CHECK(!path.empty(), kInvalidArgument, "path: it is empty");
  SCONCE_CHECK(path.find('\0') == std::string::npos, kInvalidArgument, "path: it has a null character");
  return path;
}

std::shared_ptr<const Package> open_package(nb::handle source) {
  if (const std::string path = path_of(source); !path.empty()) {
    const nb::gil_scoped_release released;
    return Package::open(path);
  }
  if (PyObject_CheckBuffer(source.ptr())) return open_bytes(source);
  SCONCE_CHECK(nb::hasattr(source, "read"), kInvalidArgument,
               "package: expected a path, bytes or a file object, got an object of type ", class_name(source));
  SCONCE_CHECK(!nb::isinstance(source, nb::module_::import_("io").attr("TextIOBase")), kInvalidArgument,
               "package: expected a file object opened for bytes, got one opened for text: ", class_name(source));
  const nb::object content = source.attr("read")();
  SCONCE_CHECK(PyObject_CheckBuffer(content.ptr()), kInvalidArgument,
               "package: expected a file object opened for bytes, its read() returned a ", class_name(content));
  return open_bytes(content);
}

}  // namespace sconce::python
