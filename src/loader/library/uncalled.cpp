#include "src/loader/library/uncalled.h"

#include <algorithm>
#include <cstddef>

#include "sconce/check.h"

namespace sconce::loader {
namespace {

constexpr const char* kSmallVector = "c10::SmallVectorBase::grow_pod";
constexpr const char* kPromote = "c10::SymInt::promote_to_negative";
constexpr const char* kSymInt = "c10::SymInt::SymInt";
constexpr const char* kDecrement = "c10::TensorImpl::decref_pyobject";
constexpr const char* kIncrement = "c10::TensorImpl::incref_pyobject";
constexpr const char* kTensorType = "c10::IValue::reportToTensorTypeError";
constexpr const char* kGuardInt = "c10::SymInt::guard_int";
constexpr const char* kGuardFloat = "c10::SymFloat::guard_float";

template <const auto& kName>
[[noreturn]] void fail() {
  SCONCE_FAIL(kModelFailed, "the model calls ", kName,
              ", a C++ function of libtorch, of which only the C interface is served");
}
template <const auto& kName>
void* failing() {
  return reinterpret_cast<void*>(&fail<kName>);
}

// Replaces an object of which only the address is used.
alignas(16) std::byte object[512];

const Uncalled kUncalled[] = {
    {"_ZN3c1015SmallVectorBaseIjE8grow_podEPKvmm", failing<kSmallVector>()},
    {"_ZN3c1019UndefinedTensorImpl10_singletonE", object},
    {"_ZN3c106SymInt19promote_to_negativeEv", failing<kPromote>()},
    {"_ZN3c106SymIntC1ENS_13intrusive_ptrINS_11SymNodeImplENS_6detail34intrusive_target_default_null_typeIS2_EEEE",
     failing<kSymInt>()},
    {"_ZNK3c1010TensorImpl15decref_pyobjectEv", failing<kDecrement>()},
    {"_ZNK3c1010TensorImpl15incref_pyobjectEv", failing<kIncrement>()},
    {"_ZNK3c106IValue23reportToTensorTypeErrorEv", failing<kTensorType>()},
    {"_ZNK3c106SymInt9guard_intEPKcl", failing<kGuardInt>()},
    {"_ZNK3c108SymFloat11guard_floatEPKcl", failing<kGuardFloat>()},
};

}  // namespace

std::span<const Uncalled> uncalled_names() noexcept { return kUncalled; }

bool is_uncalled(std::string_view symbol) noexcept {
  if (!symbol.starts_with("_ZN")) return false;
  return std::any_of(std::begin(kUncalled), std::end(kUncalled), [&](const Uncalled& u) { return symbol == u.symbol; });
}

}  // namespace sconce::loader
