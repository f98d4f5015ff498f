#include "src/custom_ops/custom_library.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sconce/check.h"
#include "src/aoti_abi/guard.h"

namespace sconce::custom_ops {
namespace {

thread_local Collection* collecting = nullptr;

// Returns the failure of body as text; the thread's own error stays unchanged.
template <class F>
std::string text_of_failure(F&& body) {
  if (aoti_abi::guard("", std::forward<F>(body)) == 0) return {};
  const auto error = aoti_abi::take_error();
  return error ? error->text.substr(std::min<size_t>(error->text.size(), 2)) : "out of memory";
}

std::optional<KernelKey> key_of(std::string_view name, bool& ignored) {
  if (name == "CPU") return KernelKey::kCpu;
  if (name == "CUDA") return KernelKey::kCuda;
  if (name == "CompositeExplicitAutograd" || name == "CompositeExplicitAutogradNonFunctional")
    return KernelKey::kCompositeExplicit;
  if (name == "CompositeImplicitAutograd" || name.empty()) return KernelKey::kCompositeImplicit;
  ignored = true;
  return std::nullopt;
}

bool on_cuda(Value& value) {
  if (Value::List* items = value.get_if<Value::List>())
    return std::any_of(items->begin(), items->end(), [](Value& item) { return on_cuda(item); });
  return value.is_tensor() && value.tensor().defined() && value.tensor().device().type == DeviceType::kCuda;
}

// The slots for arguments and results; up to 16 need no allocation.
class Stack {
 public:
  explicit Stack(size_t slots) {
    if (slots > small_.size()) large_.resize(slots);
  }
  StableIValue* data() noexcept { return large_.empty() ? small_.data() : large_.data(); }

 private:
  std::array<StableIValue, 16> small_{};
  std::vector<StableIValue> large_;
};

}  // namespace

void CustomOperator::set_kernel(KernelKey key, StableKernel kernel) {
  StableKernel& slot = kernels_[static_cast<size_t>(key)];
  SCONCE_CHECK(!slot && !plain_, kAlreadyExists, schema().qualified(), " has a second kernel for the same device");
  slot = kernel;
}
void CustomOperator::set_kernel(SconceKernel kernel, void* context) {
  plain_ = kernel;
  context_ = context;
}

bool CustomOperator::runnable() const noexcept {
  return plain_ || std::any_of(std::begin(kernels_), std::end(kernels_), [](StableKernel k) { return k != nullptr; });
}

StableKernel CustomOperator::kernel_for(std::span<Value> arguments) const {
  const bool cuda = std::any_of(arguments.begin(), arguments.end(), on_cuda);
  for (const KernelKey key :
       {cuda ? KernelKey::kCuda : KernelKey::kCpu, KernelKey::kCompositeExplicit, KernelKey::kCompositeImplicit})
    if (const StableKernel kernel = kernels_[static_cast<size_t>(key)]) return kernel;
  SCONCE_FAIL(kUnsupported, schema().qualified(), ": its library has no kernel for ", cuda ? "CUDA" : "the CPU");
}

void CustomOperator::call(std::span<Value> arguments, std::span<Value> results) const {
  check_arguments(schema(), arguments);
  if (plain_) return call_plain(arguments, results);
  call_stable(kernel_for(arguments), arguments, results);
}

void CustomOperator::call_stable(StableKernel kernel, std::span<Value> arguments, std::span<Value> results) const {
  Stack stack(std::max(arguments.size(), results.size()));
  StableIValue* const slots = stack.data();
  for (size_t i = 0; i < arguments.size(); ++i) slots[i] = to_stable(schema().arguments[i].type, arguments[i]);
  kernel(slots, arguments.size(), results.size());  // takes ownership of the arguments, may throw any exception
  for (size_t i = 0; i < results.size(); ++i) results[i] = from_stable(schema().results[i].type, slots[i]);
}

Collection::Collection() {
  SCONCE_CHECK(!collecting, kInternal, "two libraries of custom operators are opened at once by one thread");
  collecting = this;
}
Collection::~Collection() { collecting = nullptr; }
Collection* Collection::current() noexcept { return collecting; }

void Collection::add_error(std::string text) { errors_.push_back(std::move(text)); }

LibraryBlock* Collection::open_block(const char* ns, const char* key) {
  auto block = std::make_unique<LibraryBlock>();
  block->ns = ns ? ns : "";
  if (key) block->key = key_of(key, block->ignored);
  return block.release();
}

void Collection::define(const std::string& ns, const char* schema) {
  const std::string wrong = text_of_failure([&] {
    SCONCE_CHECK(schema, kInvalidArgument, "a schema is null");
    operators_.push_back(std::make_shared<CustomOperator>(parse_schema(schema, ns)));
  });
  if (!wrong.empty()) add_error(wrong);
}

void Collection::implement(const LibraryBlock& block, const char* name, StableKernel kernel) {
  if (block.ignored) return;
  const std::string wrong = text_of_failure([&] {
    SCONCE_CHECK(name && kernel, kInvalidArgument, "a kernel without a name or function");
    pending_.push_back(
        {parse_operator_name(name, block.ns).qualified(), block.key.value_or(KernelKey::kCompositeImplicit), kernel});
  });
  if (!wrong.empty()) add_error(wrong);
}

void Collection::define_plain(const char* schema, SconceKernel kernel, void* context) {
  const std::string wrong = text_of_failure([&] {
    SCONCE_CHECK(schema && kernel, kInvalidArgument, "an operator without a schema or function");
    auto made = std::make_shared<CustomOperator>(parse_schema(schema));
    made->set_kernel(kernel, context);
    operators_.push_back(std::move(made));
  });
  if (!wrong.empty()) add_error(wrong);
}

std::vector<std::unique_ptr<Registration>> Collection::finish(const std::string& library) {
  for (const Pending& pending : pending_) {
    const auto defined = std::find_if(operators_.begin(), operators_.end(),
                                      [&](const auto& made) { return made->schema().qualified() == pending.name; });
    if (defined == operators_.end()) {
      add_error("it has a kernel for " + pending.name + ", which it does not define");
      continue;
    }
    const std::string wrong = text_of_failure([&] { (*defined)->set_kernel(pending.key, pending.kernel); });
    if (!wrong.empty()) add_error(wrong);
  }
  std::vector<std::unique_ptr<Registration>> registered;
  for (const auto& made : operators_) {
    const std::string wrong = text_of_failure([&] { registered.push_back(std::make_unique<Registration>(made)); });
    if (!wrong.empty()) add_error(wrong);
  }
  std::string all;
  for (const std::string& error : errors_) all += (all.empty() ? "" : "; ") + error;
  SCONCE_CHECK(errors_.empty(), kIncompatible, "library of custom operators ", library, ": ", all);
  return registered;
}

}  // namespace sconce::custom_ops
