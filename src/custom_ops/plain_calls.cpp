// The plain C interface of custom operators: include/sconce/custom_op.h.
#include <algorithm>

#include "sconce/check.h"
#include "src/aoti_abi/guard.h"
#include "src/custom_ops/custom_library.h"

struct SconceCall {
  std::span<sconce::custom_ops::Value> arguments, results;
  std::string reason;  // of the first failure
};

namespace sconce::custom_ops {
namespace {

template <class F>
int guarded(SconceCall* call, F&& body) noexcept {
  if (aoti_abi::guard("", std::forward<F>(body)) == 0) return 0;
  const auto error = aoti_abi::take_error();
  if (call && call->reason.empty())
    aoti_abi::guard("", [&] {
      call->reason = error ? error->text.substr(std::min<size_t>(error->text.size(), 2)) : "out of memory";
    });
  return 1;
}

Value& argument(SconceCall* call, int index) {
  SCONCE_CHECK(index >= 0 && static_cast<size_t>(index) < call->arguments.size(), kInvalidArgument,
               "there is no argument ", index, " of ", call->arguments.size());
  return call->arguments[static_cast<size_t>(index)];
}
Value& result(SconceCall* call, int index) {
  SCONCE_CHECK(index >= 0 && static_cast<size_t>(index) < call->results.size(), kInvalidArgument, "there is no result ",
               index, " of ", call->results.size());
  return call->results[static_cast<size_t>(index)];
}

void describe_tensor(Tensor& tensor, SconceTensor* out) {
  SCONCE_CHECK(tensor.defined(), kInvalidArgument, "a tensor is undefined");
  *out = {tensor.data(),
          tensor.sizes().data(),
          tensor.strides().data(),
          static_cast<int32_t>(tensor.dim()),
          static_cast<int32_t>(tensor.dtype()),
          static_cast<int32_t>(tensor.device().type),
          tensor.device().index};
}

int define(SconceRegistry* registry, const char* schema, SconceKernel kernel, void* context) {
  return aoti_abi::guard("", [&] { reinterpret_cast<Collection*>(registry)->define_plain(schema, kernel, context); });
}
int is_none(SconceCall* call, int index, int* none) {
  return guarded(call, [&] { *none = argument(call, index).is_none(); });
}
int tensor_argument(SconceCall* call, int index, SconceTensor* tensor) {
  return guarded(call, [&] { describe_tensor(argument(call, index).tensor(), tensor); });
}
int int_argument(SconceCall* call, int index, int64_t* value) {
  return guarded(call, [&] { *value = argument(call, index).to_int(); });
}
int real_argument(SconceCall* call, int index, double* value) {
  return guarded(call, [&] { *value = argument(call, index).to_double(); });
}
int string_argument(SconceCall* call, int index, const char** text) {
  return guarded(call, [&] { *text = argument(call, index).as<std::string>().c_str(); });
}
template <class List, class Number>
int list_argument(SconceCall* call, int index, const Number** values, size_t* count) {
  return guarded(call, [&] {
    const List& list = argument(call, index).as<List>();
    *values = list.data();
    *count = list.size();
  });
}
int list_length(SconceCall* call, int index, size_t* count) {
  return guarded(call, [&] { *count = argument(call, index).as<Value::List>().size(); });
}
int list_tensor(SconceCall* call, int index, size_t item, SconceTensor* tensor) {
  return guarded(call, [&] {
    Value::List& items = argument(call, index).as<Value::List>();
    SCONCE_CHECK(item < items.size(), kInvalidArgument, "there is no item ", item, " of ", items.size());
    describe_tensor(items[item].tensor(), tensor);
  });
}
int new_result(SconceCall* call, int index, int32_t rank, const int64_t* sizes, int32_t dtype, SconceTensor* tensor) {
  return guarded(call, [&] {
    Value& slot = result(call, index);
    const auto type = dtype_from_number(dtype);
    SCONCE_CHECK(type, kUnsupported, "dtype number ", dtype, " is not known");
    SCONCE_CHECK(rank >= 0 && rank <= Tensor::kMaxRank, kInvalidArgument, "a result of rank ", rank);
    slot = Tensor::empty(IntSpan(sizes, static_cast<size_t>(rank)), *type);
    if (tensor) describe_tensor(slot.tensor(), tensor);
  });
}
int result_is_argument(SconceCall* call, int index, int argument_index) {
  return guarded(call, [&] { result(call, index) = Value::borrow(argument(call, argument_index).tensor()); });
}
int int_result(SconceCall* call, int index, int64_t value) {
  return guarded(call, [&] { result(call, index) = value; });
}
int real_result(SconceCall* call, int index, double value) {
  return guarded(call, [&] { result(call, index) = value; });
}
int fail(SconceCall* call, const char* reason) {
  return guarded(call, [&] { SCONCE_FAIL(kModelFailed, reason ? reason : "failed"); });
}

constexpr SconceHost kHost = {1,
                              sizeof(SconceHost),
                              define,
                              is_none,
                              tensor_argument,
                              int_argument,
                              real_argument,
                              string_argument,
                              list_argument<Value::Ints, int64_t>,
                              list_argument<Value::Reals, double>,
                              list_length,
                              list_tensor,
                              new_result,
                              result_is_argument,
                              int_result,
                              real_result,
                              fail};

}  // namespace

const SconceHost& plain_host() noexcept { return kHost; }

void CustomOperator::call_plain(std::span<Value> arguments, std::span<Value> results) const {
  SconceCall call{arguments, results, {}};
  const int code = plain_(context_, &call, &kHost);
  SCONCE_CHECK(code == 0, kModelFailed, schema().qualified(), ": ",
               call.reason.empty() ? "its kernel returned " + std::to_string(code) : call.reason);
  for (size_t i = 0; i < results.size(); ++i)
    SCONCE_CHECK(!results[i].is_none() || schema().results[i].type.optional(), kModelFailed, schema().qualified(),
                 ": its kernel gave no result ", i);
}

}  // namespace sconce::custom_ops
