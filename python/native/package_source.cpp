#include "python/native/package_source.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "python/native/errors.h"
#include "sconce/check.h"

namespace sconce::python {
namespace {

struct MemoryFile {
  int fd = memfd_create("sconce-package", MFD_CLOEXEC);
  ~MemoryFile() {
    if (fd >= 0) close(fd);
  }
};

struct Buffer {
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  }
  ~Buffer() { PyBuffer_Release(&view); }
  Py_buffer view{};
};

std::shared_ptr<const Package> open_bytes(nb::handle bytes) {
  const Buffer buffer(bytes);
  const nb::gil_scoped_release released;
  const MemoryFile file;
  SCONCE_CHECK(file.fd >= 0, kOutOfMemory, "memfd_create: ", std::strerror(errno));
  const auto* data = static_cast<const char*>(buffer.view.buf);
  for (auto left = static_cast<size_t>(buffer.view.len); left > 0;) {
    const ssize_t written = write(file.fd, data, left);
    SCONCE_CHECK(written > 0 || errno == EINTR, kOutOfMemory, "package: ", std::strerror(errno));
    if (written < 0) continue;
    data += written;
    left -= static_cast<size_t>(written);
  }
  return Package::open("/proc/self/fd/" + std::to_string(file.fd));
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
  const nb::object content = source.attr("read")();
  SCONCE_CHECK(PyObject_CheckBuffer(content.ptr()), kInvalidArgument,
               "package: expected a file object opened for bytes, its read() returned a ", class_name(content));
  return open_bytes(content);
}

}  // namespace sconce::python
