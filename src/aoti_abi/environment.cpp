// The environment of a run: grad mode, assertions, warnings, profiling ranges, debug prints, accelerator state. ABI:
// c/shim.h, torch 2.6 to 2.15.
#include <atomic>
#include <cstdio>
#include <string>

#include "src/aoti_abi/failed_check.h"
#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"
#include "src/faults/frames.h"
#include "src/tensor/inspection.h"

using sconce::aoti_abi::guard;
using sconce::aoti_abi::in;

namespace {

thread_local bool grad_mode = false;

AOTITorchError no_accelerator(const char* function) {
  return guard(function, [] { SCONCE_FAIL(kUnsupported, "this process serves no accelerator"); });
}

}  // namespace

extern "C" {

bool aoti_torch_grad_mode_is_enabled() { return grad_mode; }
void aoti_torch_grad_mode_set_enabled(bool enabled) { grad_mode = enabled; }

// Throws through the C function, which the model's own try block expects.
SCONCE_LEAVABLE void aoti_torch_check(bool condition, const char* function, const char* file, uint32_t line,
                                      const char* message) {
  if (condition) [[likely]]
    return;
  sconce::faults::leave(sconce::aoti_abi::failed_check({message ? message : "check failed"}, function, file, line));
}

void aoti_torch_warn(const char* function, const char* file, uint32_t line, const char* message) {
  std::fprintf(stderr, "[WARNING] %s (%s at %s:%u)\n", message ? message : "", function, file, line);
}

// PyTorch aborts the process here; Sconce reports an error instead.
AOTITorchError aoti_torch_check_inf_and_nan(const char* tensor_name, AtenTensorHandle tensor) {
  return guard("aoti_torch_check_inf_and_nan", [&] {
    const auto found = sconce::count_nonfinite(in(tensor, "tensor"));
    SCONCE_CHECK(found.nan == 0 && found.inf == 0, kModelFailed, tensor_name ? tensor_name : "tensor", " has ",
                 found.nan, " NaN and ", found.inf, " Inf values");
  });
}

void aoti_torch_print_tensor_handle(AtenTensorHandle self, const char* message) {
  guard("aoti_torch_print_tensor_handle", [&] {
    const std::string text = sconce::summarize(in(self, "self"));
    std::fprintf(stderr, "[ %s ]: %s\n", message ? message : "", text.c_str());
  });
}

// A debugging aid (aot_inductor.debug_intermediate_value_printer=1) that writes files named by the package. A package
// must not write files here, and its results do not depend on them: Sconce logs one warning and continues.
void aoti_torch_save_tensor_handle(AtenTensorHandle, const char* tensor_name, const char*, const char*) {
  static std::atomic<bool> said = false;
  if (!said.exchange(true))
    std::fprintf(stderr, "[WARNING] tensor %s is not saved: packages must not write files\n",
                 tensor_name ? tensor_name : "");
}

// Profiling ranges are accepted but not recorded. The handle only has to be non-null.
AOTITorchError aoti_record_function_start(const char*, void*, const C10IValueHandle*, const uint64_t,
                                          AtenRecordFunctionHandle* ret) {
  static char range;
  *ret = reinterpret_cast<AtenRecordFunctionHandle>(&range);
  return 0;
}
AOTITorchError aoti_record_function_end(AtenRecordFunctionHandle) { return 0; }

// Arguments of profiling ranges exist only to be deleted.
AOTITorchError aoti_torch_int64_to_ivalue(int64_t, C10IValueHandle* ret) {
  *ret = reinterpret_cast<C10IValueHandle>(new char);
  return 0;
}
AOTITorchError aoti_torch_str_to_ivalue(const char*, C10IValueHandle* ret) {
  return aoti_torch_int64_to_ivalue(0, ret);
}
AOTITorchError aoti_torch_strlist_to_ivalue(const char**, int64_t, C10IValueHandle* ret) {
  return aoti_torch_int64_to_ivalue(0, ret);
}
AOTITorchError aoti_torch_tensor_to_ivalue(AtenTensorHandle, C10IValueHandle* ret) {
  return aoti_torch_int64_to_ivalue(0, ret);
}
AOTITorchError aoti_torch_delete_c10_value_object(C10IValueHandle handle) {
  delete reinterpret_cast<char*>(handle);
  return 0;
}

// State of an accelerator: throws, like PyTorch without one.
AOTITorchError aoti_torch_create_device_guard(int32_t, void**) {
  return no_accelerator("aoti_torch_create_device_guard");
}
AOTITorchError aoti_torch_delete_device_guard(void*) { return no_accelerator("aoti_torch_delete_device_guard"); }
AOTITorchError aoti_torch_device_guard_set_index(void*, int32_t) {
  return no_accelerator("aoti_torch_device_guard_set_index");
}
AOTITorchError aoti_torch_delete_stream(void*) { return no_accelerator("aoti_torch_delete_stream"); }
AOTITorchError aoti_torch_stream_id(void*, int64_t*) { return no_accelerator("aoti_torch_stream_id"); }
AOTITorchError aoti_torch_get_current_stream(int32_t, void**) {
  return no_accelerator("aoti_torch_get_current_stream");
}
AOTITorchError aoti_torch_get_current_device_index(int32_t*) {
  return no_accelerator("aoti_torch_get_current_device_index");
}

}  // extern "C"
