// Calls through the C interface that packages use. Sconce and PyTorch export the same functions, so the same object
// code calls either, depending on the library that it is linked with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "src/aoti_abi/op_args.h"

extern "C" {
AOTITorchError aoti_torch_empty_strided(int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t,
                                        AtenTensorHandle*);
AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle);
AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle, AtenTensorHandle*);
AOTITorchError aoti_torch__reinterpret_tensor(AtenTensorHandle, int64_t, const int64_t*, const int64_t*, int64_t,
                                              AtenTensorHandle*);
AOTITorchError aoti_torch_copy_(AtenTensorHandle, AtenTensorHandle, int32_t);
AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle, void**);
AOTITorchError aoti_torch_is_defined(AtenTensorHandle, bool*);
AOTITorchError aoti_torch_get_numel(AtenTensorHandle, int64_t*);
AOTITorchError aoti_torch_get_dim(AtenTensorHandle, int64_t*);
AOTITorchError aoti_torch_get_sizes(AtenTensorHandle, int64_t**);
AOTITorchError aoti_torch_get_strides(AtenTensorHandle, int64_t**);
AOTITorchError aoti_torch_get_dtype(AtenTensorHandle, int32_t*);
AOTITorchError aoti_torch_create_tensor_from_blob_v2(void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t,
                                                     int32_t, int32_t, AtenTensorHandle*, int32_t, const uint8_t*,
                                                     int64_t);
const char* torch_exception_get_what();
#define SCONCE_OP(name, results, ...) \
  AOTITorchError aoti_torch_cpu_##name(SCONCE_MAP(ABI_, __VA_ARGS__) RET_ABI_##results);
#include "src/operators/cpu_table.def"
#undef SCONCE_OP
}

namespace bench {

enum DType : int32_t {
  kU8 = 0,
  kI8 = 1,
  kI32 = 3,
  kI64 = 4,
  kF16 = 5,
  kF32 = 6,
  kF64 = 7,
  kC64 = 9,
  kBool = 11,
  kBF16 = 15,
  kF8 = 24
};
using Sizes = std::vector<int64_t>;

void check(AOTITorchError error);

// A tensor both libraries can hold. Copies share it.
class T {
 public:
  T() = default;
  explicit T(AtenTensorHandle owned) : handle_(owned, aoti_torch_delete_tensor_object) {}
  AtenTensorHandle get() const { return handle_.get(); }
  // Another view of the storage.
  T strided(const Sizes& sizes, const Sizes& strides, int64_t offset = 0) const;
  T transposed() const;  // the last two dimensions
  T permuted(const std::vector<int>& order) const;
  T channels_last() const;  // the same values in NHWC, a new tensor

 private:
  std::shared_ptr<AtenTensorOpaque> handle_;
};

T empty(const Sizes& sizes, DType dtype = kF32);
// Both programs get the same numbers, because each case restarts the stream.
T randn(const Sizes& sizes, DType dtype = kF32);
T uniform(const Sizes& sizes, double from, double to, DType dtype = kF32);
T integers(const Sizes& sizes, int64_t from, int64_t to, DType dtype = kI64);  // [from, to)
T shuffled(int64_t n);                                                         // a permutation, int64
T sorted(const Sizes& sizes, DType dtype = kF32);                              // along the last dimension
T numbers(const std::vector<int64_t>& values, DType dtype = kI64);
T spd(int64_t batch, int64_t n, DType dtype = kF32);  // symmetric positive definite
void restart_numbers();
// The same tensor as a package's weight, whose bytes never change. Each library defines its own.
T constant(T t);
// A weight that PyTorch packed, from pack_weights.py's file.
void read_packed(const char* path);
T packed(const std::string& name);
// A weight packed by oneDNN, with a description. Each library defines its own. The bytes must stay.
T opaque(void* data, size_t bytes, DType dtype, const Sizes& sizes, const Sizes& strides,
         const std::vector<uint8_t>& description);

// Arguments other than a tensor or a number.
struct Ints {
  Ints(std::initializer_list<int64_t> list) : values(list) {}
  Ints(Sizes list) : values(std::move(list)) {}
  Sizes values;
};
struct Flags {
  std::vector<int32_t> values;
};
struct Opt {  // an optional tensor that is present
  explicit Opt(T tensor) : t(std::move(tensor)), handle(t.get()) {}
  Opt(const Opt& o) : Opt(o.t) {}
  T t;
  AtenTensorHandle handle;
};
template <class V>
struct Some {  // an optional number that is present
  explicit Some(V v) : value(v) {}
  V value;
};
struct List {  // tensors
  explicit List(std::vector<T> list) : tensors(std::move(list)) {
    for (const T& t : tensors) handles.push_back(t.get());
  }
  std::vector<T> tensors;
  std::vector<AtenTensorHandle> handles;
};
struct OptList {  // optional tensors; an undefined one is absent
  explicit OptList(std::vector<T> list) : tensors(std::move(list)) { fill(); }
  OptList(const OptList& o) : OptList(o.tensors) {}
  std::vector<T> tensors;
  std::vector<AtenTensorHandle> handles;
  std::vector<const AtenTensorHandle*> pointers;

 private:
  void fill() {
    handles.reserve(tensors.size());
    for (const T& t : tensors) handles.push_back(t.get());
    for (const AtenTensorHandle& h : handles) pointers.push_back(h ? &h : nullptr);
  }
};
struct Absent {};  // absent argument that takes two parameters
inline constexpr std::nullptr_t none = nullptr;

template <class V>
auto flat(V& v) {
  using U = std::decay_t<V>;
  if constexpr (std::is_same_v<U, T>)
    return std::tuple<AtenTensorHandle>(v.get());
  else if constexpr (std::is_same_v<U, Opt>)
    return std::tuple<AtenTensorHandle*>(&v.handle);
  else if constexpr (std::is_same_v<U, Ints>)
    return std::tuple<const int64_t*, int64_t>(v.values.data(), static_cast<int64_t>(v.values.size()));
  else if constexpr (std::is_same_v<U, Flags>)
    return std::tuple<const int32_t*, int64_t>(v.values.data(), static_cast<int64_t>(v.values.size()));
  else if constexpr (std::is_same_v<U, List>)
    return std::tuple<const AtenTensorHandle*, int64_t>(v.handles.data(), static_cast<int64_t>(v.handles.size()));
  else if constexpr (std::is_same_v<U, OptList>)
    return std::tuple<const AtenTensorHandle**, int64_t>(v.pointers.data(), static_cast<int64_t>(v.pointers.size()));
  else if constexpr (std::is_same_v<U, Absent>)
    return std::tuple<std::nullptr_t, int>(nullptr, 0);
  else if constexpr (requires { v.value; })
    return std::tuple<decltype(&v.value)>(&v.value);
  else
    return std::tuple<U>(v);
}

using Call = std::function<void()>;
// Takes over the results of a call, to delete them or to keep them for comparison.
void take_results(AtenTensorHandle* results, size_t count);
// Names a tensor that a call writes, for comparison.
Call writing(T out, Call call);

template <size_t N, class F, class... A>
Call call(F* function, A... arguments) {
  return [function, held = std::tuple<A...>(std::move(arguments)...)]() mutable {
    AtenTensorHandle results[N ? N : 1] = {};
    const auto flattened = std::apply([](auto&... a) { return std::tuple_cat(flat(a)...); }, held);
    const auto pointers = [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple_cat(std::tuple(&results[I])...);
    };
    check(std::apply(function, std::tuple_cat(flattened, pointers(std::make_index_sequence<N>()))));
    if (N) take_results(results, N);
  };
}

// An argument of an operator that is called by name. Lists of numbers are int[] or bool[], as the schema says.
struct Argument {
  enum class Kind { kNone, kTensor, kTensors, kInt, kReal, kBool, kText, kInts };
  Argument(std::nullptr_t) {}
  Argument(T t) : kind(Kind::kTensor), tensors{std::move(t)} {}
  Argument(const Opt& o) : Argument(o.t) {}
  Argument(const List& list) : kind(Kind::kTensors), tensors(list.tensors) {}
  Argument(bool flag) : kind(Kind::kBool), whole(flag) {}
  Argument(int number) : kind(Kind::kInt), whole(number) {}
  Argument(int64_t number) : kind(Kind::kInt), whole(number) {}
  Argument(DType dtype) : kind(Kind::kInt), whole(dtype) {}
  Argument(double number) : kind(Kind::kReal), real(number) {}
  Argument(const char* given) : kind(Kind::kText), text(given) {}
  Argument(const Ints& list) : kind(Kind::kInts), ints(list.values) {}
  Kind kind = Kind::kNone;
  std::vector<T> tensors;
  int64_t whole = 0;
  double real = 0;
  std::string text;
  Sizes ints;
};
// Finds "aten::add", "Tensor" and calls it as the proxy executor does. Writes as many handles as there are tensors
// among the results.
using Operator = std::function<void(AtenTensorHandle* results)>;
// Each library defines its own.
Operator find_operator(const char* name, const char* overload, const std::vector<Argument>& arguments);

template <size_t N, class... A>
Call named(const char* name, const char* overload, const A&... arguments) {
  return [call = find_operator(name, overload, {Argument(arguments)...})] {
    AtenTensorHandle results[N] = {};
    call(results);
    take_results(results, N);
  };
}

struct Case {
  std::string family, name;
  std::function<Call()> make;  // allocates inputs when the case is first measured
};
class Cases {
 public:
  void family(std::string name) { family_ = std::move(name); }
  void add(std::string name, std::function<Call()> make) { all.push_back({family_, std::move(name), std::move(make)}); }
  std::vector<Case> all;

 private:
  std::string family_;
};

void add_matrix_cases(Cases&);
void add_convolution_cases(Cases&);
void add_attention_cases(Cases&);
void add_indexing_cases(Cases&);
void add_sorting_cases(Cases&);
void add_pooling_cases(Cases&);
void add_linalg_cases(Cases&);
void add_random_cases(Cases&);
void add_copy_cases(Cases&);
void add_quantised_cases(Cases&);
void add_function_cases(Cases&);
void add_layer_cases(Cases&);

// Each library defines its own.
std::shared_ptr<void> enter_library();

}  // namespace bench
