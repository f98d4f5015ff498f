// Functions that libraries of PyTorch's stable ABI import, in addition to those of src/aoti_abi. ABI:
// torch/csrc/stable/c/shim.h and the library functions of aoti_torch/c/shim.h, torch 2.9 to 2.15.
#include <omp.h>

#include <optional>
#include <string>

#include "sconce/check.h"
#include "sconce/mutex.h"
#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"
#include "src/cpu/random/random.h"
#include "src/custom_ops/custom_library.h"
#include "src/custom_ops/registry.h"
#include "src/custom_ops/stable_values.h"
#include "src/device/threads.h"

using namespace sconce::custom_ops;
using sconce::aoti_abi::guard;
using sconce::aoti_abi::in;

extern "C" {
struct TorchLibraryOpaque;
struct StableListOpaque;
struct StringOpaque;
}

namespace {

LibraryBlock* block_of(TorchLibraryOpaque* handle) { return reinterpret_cast<LibraryBlock*>(handle); }
StableList& list_of(StableListOpaque* handle) {
  SCONCE_CHECK(handle, kInvalidArgument, "the list is null");
  return *reinterpret_cast<StableList*>(handle);
}
std::string& string_of(StringOpaque* handle) {
  SCONCE_CHECK(handle, kInvalidArgument, "the string is null");
  return *reinterpret_cast<std::string*>(handle);
}

// Fails unless a library is being opened, because nothing would report the errors.
AOTITorchError open_block(const char* function, const char* ns, const char* key, TorchLibraryOpaque** ret) {
  return guard(function, [&] {
    Collection* const collection = Collection::current();
    SCONCE_CHECK(collection, kFailedPrecondition,
                 "operators are registered only while their library is opened (op_libraries)");
    *ret = reinterpret_cast<TorchLibraryOpaque*>(collection->open_block(ns, key));
  });
}
AOTITorchError define(const char* function, TorchLibraryOpaque* self, const char* schema) {
  return guard(function, [&] {
    Collection* const collection = Collection::current();
    SCONCE_CHECK(collection && self, kFailedPrecondition, "no library is being opened");
    collection->define(block_of(self)->ns, schema);
  });
}
AOTITorchError implement(const char* function, TorchLibraryOpaque* self, const char* name, StableKernel kernel) {
  return guard(function, [&] {
    Collection* const collection = Collection::current();
    SCONCE_CHECK(collection && self, kFailedPrecondition, "no library is being opened");
    collection->implement(*block_of(self), name, kernel);
  });
}

AOTITorchError call_by_name(const char* function, const char* name, const char* overload, StableIValue* stack) {
  return guard(function, [&] {
    std::string full = name;
    if (overload && *overload) full.append(".").append(overload);
    const auto op = find_operator(full);
    SCONCE_CHECK(op, kUnsupported, "there is no operator ", full, " that can be called by name");
    const Schema& schema = op->schema();
    std::vector<Value> arguments(schema.arguments.size()), results(schema.results.size());
    for (size_t i = 0; i < arguments.size(); ++i) arguments[i] = from_stable(schema.arguments[i].type, stack[i]);
    op->call(arguments, results);
    for (size_t i = 0; i < results.size(); ++i) stack[i] = to_stable(schema.results[i].type, results[i]);
  });
}

AOTITorchError refused(const char* function, const char* reason) {
  return guard(function, [&] { SCONCE_FAIL(kUnsupported, reason); });
}

}  // namespace

extern "C" {

// Libraries
AOTITorchError aoti_torch_library_init_impl(const char* ns, const char* k, const char*, uint32_t,
                                            TorchLibraryOpaque** ret_new_torch_lib) {
  return open_block("aoti_torch_library_init_impl", ns, k ? k : "", ret_new_torch_lib);
}
AOTITorchError aoti_torch_library_init_def(const char* ns, const char*, uint32_t,
                                           TorchLibraryOpaque** ret_new_torch_lib) {
  return open_block("aoti_torch_library_init_def", ns, nullptr, ret_new_torch_lib);
}
AOTITorchError aoti_torch_library_init_fragment(const char* ns, const char*, uint32_t,
                                                TorchLibraryOpaque** ret_new_torch_lib) {
  return open_block("aoti_torch_library_init_fragment", ns, nullptr, ret_new_torch_lib);
}
AOTITorchError aoti_torch_library_def(TorchLibraryOpaque* self, const char* schema) {
  return define("aoti_torch_library_def", self, schema);
}
AOTITorchError torch_library_def_with_tags(TorchLibraryOpaque* self, const char* schema, const int32_t*, int32_t) {
  return define("torch_library_def_with_tags", self, schema);
}
AOTITorchError aoti_torch_library_impl(TorchLibraryOpaque* self, const char* name, StableKernel fn) {
  return implement("aoti_torch_library_impl", self, name, fn);
}
AOTITorchError torch_library_impl(TorchLibraryOpaque* self, const char* name, StableKernel fn, uint64_t) {
  return implement("torch_library_impl", self, name, fn);
}
AOTITorchError torch_library_set_python_module(TorchLibraryOpaque*, const char*, const char*) { return 0; }
AOTITorchError aoti_torch_delete_library_object(TorchLibraryOpaque* handle) {
  delete block_of(handle);
  return 0;
}

// Calls of operators
AOTITorchError aoti_torch_call_dispatcher(const char* name, const char* overload, StableIValue* stack) {
  return call_by_name("aoti_torch_call_dispatcher", name, overload, stack);
}
AOTITorchError torch_call_dispatcher(const char* name, const char* overload, StableIValue* stack, uint64_t) {
  return call_by_name("torch_call_dispatcher", name, overload, stack);
}

// Lists, strings, optional values
AOTITorchError torch_new_list_reserve_size(size_t size, StableListOpaque** ret) {
  return guard("torch_new_list_reserve_size", [&] {
    auto list = std::make_unique<StableList>();
    list->reserve(size);
    *ret = reinterpret_cast<StableListOpaque*>(list.release());
  });
}
AOTITorchError torch_list_size(StableListOpaque* list, size_t* size) {
  return guard("torch_list_size", [&] { *size = list_of(list).size(); });
}
AOTITorchError torch_list_get_item(StableListOpaque* list, size_t index, StableIValue* element) {
  return guard("torch_list_get_item", [&] {
    SCONCE_CHECK(index < list_of(list).size(), kInvalidArgument, "index ", index, " of ", list_of(list).size());
    *element = list_of(list)[index];
  });
}
AOTITorchError torch_list_set_item(StableListOpaque* list, size_t index, StableIValue element) {
  return guard("torch_list_set_item", [&] {
    SCONCE_CHECK(index < list_of(list).size(), kInvalidArgument, "index ", index, " of ", list_of(list).size());
    list_of(list)[index] = element;
  });
}
AOTITorchError torch_list_push_back(StableListOpaque* list, StableIValue element) {
  return guard("torch_list_push_back", [&] { list_of(list).push_back(element); });
}
AOTITorchError torch_delete_list(StableListOpaque* list) {
  delete reinterpret_cast<StableList*>(list);
  return 0;
}
AOTITorchError torch_new_string_handle(const char* data, size_t length, StringOpaque** handle) {
  return guard("torch_new_string_handle",
               [&] { *handle = reinterpret_cast<StringOpaque*>(new std::string(data, length)); });
}
AOTITorchError torch_delete_string(StringOpaque* handle) {
  delete reinterpret_cast<std::string*>(handle);
  return 0;
}
AOTITorchError torch_string_length(StringOpaque* handle, size_t* length) {
  return guard("torch_string_length", [&] { *length = string_of(handle).size(); });
}
AOTITorchError torch_string_c_str(StringOpaque* handle, const char** data) {
  return guard("torch_string_c_str", [&] { *data = string_of(handle).c_str(); });
}
AOTITorchError torch_new_stable_ivalue(StableIValue** ret_value) {
  return guard("torch_new_stable_ivalue", [&] { *ret_value = new StableIValue(0); });
}
AOTITorchError torch_delete_stable_ivalue(StableIValue* value) {
  delete value;
  return 0;
}

// Devices, threads
AOTITorchError torch_parse_device_string(const char* device_string, uint32_t* out_device_type,
                                         int32_t* out_device_index) {
  return guard("torch_parse_device_string", [&] {
    SCONCE_CHECK(device_string, kInvalidArgument, "the device is null");
    const sconce::Device device = sconce::parse_device(device_string);
    *out_device_type = static_cast<uint32_t>(device.type);
    *out_device_index = device.index;
  });
}
AOTITorchError torch_parallel_for(int64_t begin, int64_t end, int64_t grain_size, void (*func)(int64_t, int64_t, void*),
                                  void* ctx) {
  return guard("torch_parallel_for", [&] {
    // The first failure of the body, on any thread, is rethrown here.
    sconce::Mutex mutex;
    std::optional<sconce::aoti_abi::ShimError> failure;
    sconce::parallel_for(begin, end, grain_size, [&](int64_t from, int64_t to) noexcept {
      if (guard("torch_parallel_for", [&] { func(from, to, ctx); }) == 0) return;
      auto error = sconce::aoti_abi::take_error();
      const sconce::MutexLock lock(mutex);
      if (!failure) failure = std::move(error);
    });
    if (failure) throw sconce::Error(failure->code, failure->text);
  });
}
AOTITorchError torch_get_thread_idx(uint32_t* out_thread_idx) {
  *out_thread_idx = static_cast<uint32_t>(omp_get_thread_num());
  return 0;
}
AOTITorchError torch_get_num_threads(uint32_t* out_num_threads) {
  *out_num_threads = static_cast<uint32_t>(sconce::kernel_threads());
  return 0;
}

// Errors of the calling thread
const char* torch_exception_get_what() { return sconce::aoti_abi::error_text(); }
const char* torch_exception_get_what_without_backtrace() { return sconce::aoti_abi::error_text(); }

// Generators live as long as the process, so handles do not own them.
AOTITorchError torch_new_generator_handle(AtenGeneratorHandle self, AtenGeneratorHandle* ret_new_generator) {
  *ret_new_generator = self ? self : reinterpret_cast<AtenGeneratorHandle>(&sconce::default_generator());
  return 0;
}
AOTITorchError torch_delete_generator(AtenGeneratorHandle) { return 0; }
AOTITorchError torch_generator_get_device(AtenGeneratorHandle, int32_t* ret_device_type, int32_t* ret_device_index) {
  *ret_device_type = 0;
  *ret_device_index = -1;
  return 0;
}

// Tags that describe operators to the compiler
int32_t torch_tag_core() { return 0; }
int32_t torch_tag_cudagraph_unsafe() { return 1; }
int32_t torch_tag_data_dependent_output() { return 2; }
int32_t torch_tag_dynamic_output_shape() { return 3; }
int32_t torch_tag_flexible_layout() { return 4; }
int32_t torch_tag_generated() { return 5; }
int32_t torch_tag_inplace_view() { return 7; }
int32_t torch_tag_maybe_aliasing_or_mutating() { return 8; }
int32_t torch_tag_needs_contiguous_strides() { return 9; }
int32_t torch_tag_needs_exact_strides() { return 10; }
int32_t torch_tag_needs_fixed_stride_order() { return 11; }
int32_t torch_tag_nondeterministic_bitwise() { return 12; }
int32_t torch_tag_nondeterministic_seeded() { return 13; }
int32_t torch_tag_out_variant() { return 15; }
int32_t torch_tag_pointwise() { return 16; }
int32_t torch_tag_pt2_compliant_tag() { return 17; }
int32_t torch_tag_reduction() { return 18; }
int32_t torch_tag_view_copy() { return 19; }

// Refused: this process has none of these.
AOTITorchError torch_stream_native_handle(void*, void**) {
  return refused("torch_stream_native_handle", "streams of no known device");
}
AOTITorchError torch_mps_set_arg_bytes(void*, unsigned, const void*, uint64_t) {
  return refused("torch_mps_set_arg_bytes", "sconce does not run on MPS devices");
}

}  // extern "C"
