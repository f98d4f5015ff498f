#include "tests/cpu/case_file.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "sconce/check.h"
#include "src/tensor/elements/convert.h"
#include "src/tensor/elements/dispatch.h"
#include "tests/files.h"

namespace sconce::testing {
namespace {

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  template <class T>
  T read() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string text() {
    const auto n = read<uint16_t>();
    return std::string(take(n), n);
  }
  const char* take(size_t n) {
    SCONCE_CHECK(at_ + n <= bytes_.size(), kIo, "case file is truncated");
    at_ += n;
    return bytes_.data() + at_ - n;
  }
  bool done() const { return at_ == bytes_.size(); }

  Tensor tensor() {
    const auto dtype = static_cast<DType>(read<int8_t>());
    std::vector<int64_t> sizes(read<uint8_t>()), strides(sizes.size());
    for (auto& s : sizes) s = read<int32_t>();
    for (auto& s : strides) s = read<int32_t>();
    const auto offset = read<uint32_t>();
    const int64_t bytes = read<uint32_t>();
    Tensor storage = Tensor::empty({&bytes, 1}, DType::kUInt8);
    if (bytes > 0) std::memcpy(storage.data(), take(static_cast<size_t>(bytes)), static_cast<size_t>(bytes));
    return storage.view_as(dtype, sizes, strides, offset);
  }

  Value value(const Values& before) {
    switch (read<char>()) {
      case 'T':
        return {tensor()};
      case 'A': {  // a view of the storage of an earlier argument
        const Tensor& base = before.at(read<uint8_t>()).tensor();
        std::vector<int64_t> sizes(read<uint8_t>()), strides(sizes.size());
        for (auto& s : sizes) s = read<int32_t>();
        for (auto& s : strides) s = read<int32_t>();
        return {base.as_strided(sizes, strides, read<uint32_t>())};
      }
      case 'I':
        return {read<int64_t>()};
      case 'D':
        return {read<double>()};
      case 'C': {
        const auto real = read<double>();
        return {std::complex<double>(real, read<double>())};
      }
      case 'B':
        return {read<uint8_t>() != 0};
      case 'S':
        return {text()};
      case 'L': {
        Values list(read<uint16_t>());
        for (auto& item : list) item = value(before);
        return {std::move(list)};
      }
      default:
        return {};
    }
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

using Cases = std::map<std::string, std::vector<Case>, std::less<>>;

void read_cases(const std::string& path, Cases& into) {
  std::ifstream file(path, std::ios::binary);
  SCONCE_CHECK(file, kIo, "cannot open ", path);
  std::stringstream content;
  content << file.rdbuf();
  Reader in(content.str());
  for (int number = 0; !in.done(); ++number) {
    Case c;
    c.number = number;
    c.op = in.text();
    c.tolerance = in.read<double>();
    const auto count = in.read<uint8_t>();
    for (int i = 0; i < count; ++i) c.args.push_back(in.value(c.args));
    const auto results = in.read<uint8_t>();
    c.fails = results == 255;
    if (c.fails) {
      c.message = in.text();
    } else {
      for (int i = 0; i < results; ++i) {
        Expected e;
        e.argument = in.read<int8_t>();
        e.tensor = in.tensor();
        c.results.push_back(std::move(e));
      }
    }
    into[c.op].push_back(std::move(c));
  }
}

template <class T>
bool same(T a, T b, double tolerance) {
  if constexpr (kIsComplex<T>) {
    const ComplexDouble x(convert_value<ComplexDouble>(a)), y(convert_value<ComplexDouble>(b));
    return same(x.real(), y.real(), tolerance) && same(x.imag(), y.imag(), tolerance);
  } else if constexpr (std::is_integral_v<T>) {
    return a == b;
  } else {
    const double x = convert_value<double>(a), y = convert_value<double>(b);
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    if (tolerance == 0) return std::memcmp(&a, &b, sizeof(T)) == 0;
    return x == y || std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y));
  }
}

// The row-major index of the first element that differs, whose two values go to the stream; -1 if none does.
int64_t first_difference(const Tensor& got, const Tensor& want, double tolerance, std::ostream& values) {
  int64_t at = -1;
  if (want.dtype() == DType::kFloat4E2M1FNx2) return std::memcmp(got.data(), want.data(), want.bytes()) ? 0 : -1;
  dispatch_all(want.dtype(), "first_difference", [&]<class T>() {
    std::vector<int64_t> index(static_cast<size_t>(want.dim()), 0);
    for (int64_t i = 0; i < want.numel() && at < 0; ++i) {
      int64_t g = 0, w = 0;
      for (int64_t d = 0; d < want.dim(); ++d) {
        g += index[d] * got.stride(d);
        w += index[d] * want.stride(d);
      }
      if (!same(got.data_as<T>()[g], want.data_as<T>()[w], tolerance)) {
        at = i;
        values.precision(17);
        values << convert_value<ComplexDouble>(got.data_as<T>()[g]) << ", PyTorch "
               << convert_value<ComplexDouble>(want.data_as<T>()[w]);
      }
      for (int64_t d = want.dim() - 1; d >= 0 && ++index[d] == want.size(d); --d) index[d] = 0;
    }
  });
  return at;
}

Tensor whole_storage(const Tensor& t) {
  const auto elements = static_cast<int64_t>(t.storage()->bytes() / t.itemsize());
  const int64_t one = 1;
  return t.as_strided({&elements, 1}, {&one, 1}, 0);
}

std::string check_result(const Tensor& got, const Expected& want, const Case& c) {
  std::ostringstream problem;
  if (got.dtype() != want.tensor.dtype() || to_string(got.sizes()) != to_string(want.tensor.sizes()) ||
      to_string(got.strides()) != to_string(want.tensor.strides())) {
    problem << "got " << describe(got) << " strides " << to_string(got.strides()) << ", PyTorch "
            << describe(want.tensor) << " strides " << to_string(want.tensor.strides());
    return problem.str();
  }
  const bool written = want.argument >= 0;
  const Tensor a = written ? whole_storage(got) : got, b = written ? whole_storage(want.tensor) : want.tensor;
  if (to_string(a.sizes()) != to_string(b.sizes())) return "storage sizes differ";
  std::ostringstream values;
  const int64_t at = a.numel() ? first_difference(a, b, c.tolerance, values) : -1;
  if (at >= 0)
    problem << describe(got) << ": element " << at << (written ? " of the storage" : "") << " differs: got "
            << values.str();
  return problem.str();
}

}  // namespace

double Value::real() const {
  if (const auto* i = std::get_if<int64_t>(&held)) return static_cast<double>(*i);
  return std::get<double>(held);
}

std::vector<int64_t> Value::integers() const {
  std::vector<int64_t> out;
  for (const Value& v : list()) out.push_back(v.integer());
  return out;
}

ListArgument::ListArgument(const Values& values) {
  for (const Value& v : values) pointers_.push_back(v.optional_tensor());
  for (const Tensor* const& p : pointers_) handles_.push_back(p ? &p : nullptr);
}

std::vector<Case> cases_of(std::string_view file, std::string_view op) {
  static std::map<std::string, Cases, std::less<>> files;
  auto found = files.find(file);
  if (found == files.end()) {
    found = files.emplace(file, Cases{}).first;
    read_cases(source_path("tests/data/" + std::string(file)), found->second);
    if (const char* more = std::getenv("SCONCE_CASES")) read_cases(more, found->second);
  }
  const auto cases = found->second.find(op);
  return cases == found->second.end() ? std::vector<Case>{} : cases->second;
}

void run_cases(std::string_view file, std::string_view op, const std::function<std::vector<Tensor>(Case&)>& call) {
  std::vector<Case> cases = cases_of(file, op);
  REQUIRE_MESSAGE(!cases.empty(), file, " has no cases of ", op);
  for (Case& c : cases) {
    CAPTURE(c.op);
    CAPTURE(c.number);
    std::string inputs;
    for (const Value& v : c.args) {
      if (const Tensor* t = v.optional_tensor()) inputs += describe(*t) + "; ";
      if (const auto* i = std::get_if<int64_t>(&v.held)) inputs += std::to_string(*i) + "; ";
      if (const auto* b = std::get_if<bool>(&v.held)) inputs += *b ? "true; " : "false; ";
      if (const auto* d = std::get_if<double>(&v.held)) inputs += std::to_string(*d) + "; ";
      if (const auto* s = std::get_if<std::string>(&v.held)) inputs += *s + "; ";
      if (const auto* l = std::get_if<Values>(&v.held))
        for (const Value& item : *l) inputs += (item.optional_tensor() ? describe(item.tensor()) : "none") + ", ";
    }
    CAPTURE(inputs);
    std::vector<Tensor> got;
    std::string error;
    try {
      got = call(c);
    } catch (const Error& e) {
      error = e.what();
    }
    if (c.fails) {
      CHECK_MESSAGE(!error.empty(), "no error, PyTorch says: ", c.message);
      CHECK_MESSAGE(error.find(c.message) != std::string::npos, "error '", error, "' lacks '", c.message, "'");
      continue;
    }
    CHECK_MESSAGE(error.empty(), "error: ", error);
    if (!error.empty()) continue;
    size_t returned = 0;
    for (const Expected& want : c.results) {
      if (want.argument < 0 && returned >= got.size()) {
        FAIL_CHECK("too few results");
        break;
      }
      const Tensor& result = want.argument >= 0 ? c.args[static_cast<size_t>(want.argument)].tensor() : got[returned++];
      const std::string problem = check_result(result, want, c);
      CHECK_MESSAGE(problem.empty(), problem);
    }
  }
}

}  // namespace sconce::testing
