#include "server/rollout/trainer_tensors/torch_pickles.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "sconce/check.h"
#include "sconce/tensor.h"
#include "server/support/failure.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {

namespace {

using Value = Pickle::Value;
constexpr int kDeepest = 4;  // maximum depth of parameters in serialized tensors

// A tensor without a name; or only a storage with its dtype.
struct Form {
  std::optional<DType> dtype;
  std::vector<int64_t> sizes, strides;
  uint64_t offset = 0;  // in bytes
  size_t memory = 0;
};

using TypedMemory = TrainerTensors::Storage;

// A text that is stored for each tensor; short, because a pickle may refer to one text many times.
std::string short_text(std::string_view text, const char* what) {
  SCONCE_CHECK(text.size() <= Pickle::kLongestName, kInvalidArgument, what, " of ", text.size(), " bytes; ",
               Pickle::kLongestName, " are read");
  return std::string(text);
}

class TensorReader {
 public:
  static constexpr size_t kDeviceArguments = 15;  // of torch's rebuild_cuda_tensor

  TensorReader(const Pickle& pickle, TrainerTensors& to, int depth) : pickle_(pickle), to_(to), depth_(depth) {}

  Form tensor(Value value) {
    SCONCE_CHECK(depth_ < kDeepest, kInvalidArgument, "a tensor within too many others");
    const Pickle::Name callee = pickle_.callee(value);
    if (callee.ends_with("rebuild_cuda_tensor") || callee.ends_with("_rebuild_cuda_tensor_modified") ||
        callee.ends_with("_rebuild_cuda_tensor_original"))
      return on_device(arguments(value, kDeviceArguments), {});
    if (callee.ends_with("rebuild_tensor")) {
      const std::vector<Value>& given = arguments(value, 3);
      const TypedMemory memory = storage(given[1]);
      const std::vector<Value>& metadata = sequence(given[2], 3, "the metadata");
      return form(memory, memory.dtype, metadata[0], metadata[1], metadata[2]);
    }
    const bool third = callee.is("torch._utils._rebuild_tensor_v3");
    if (third || callee.is("torch._utils._rebuild_tensor_v2")) {
      const std::vector<Value>& given = arguments(value, third ? 7 : 5);
      const TypedMemory memory = storage(given[0]);
      return form(memory, third ? dtype(given[6]) : memory.dtype, given[1], given[2], given[3]);
    }
    if (callee.is("torch._utils._rebuild_parameter") || callee.is("torch._utils._rebuild_parameter_with_state")) {
      TensorReader inner(pickle_, to_, depth_ + 1);
      return inner.tensor(arguments(value, 1)[0]);
    }
    if (callee.ends_with("LocalSerializedTensor")) return serialized(value);
    SCONCE_FAIL(kInvalidArgument, "expected a tensor, got ", pickle_.describe(value));
  }

  // The arguments of torch's rebuild_cuda_tensor. uuid: of the device, if the sender gives it separately.
  Form on_device(const std::vector<Value>& given, std::string_view uuid) {
    SCONCE_CHECK(given.size() >= kDeviceArguments, kInvalidArgument,
                 "expected the 15 arguments of rebuild_cuda_tensor, got ", given.size());
    const size_t index = to_.memories.size();
    TrainerMemory& kept = to_.memories.emplace_back();
    // The counter is read first, so that the reference is released even if the rest is invalid.
    if (const auto counter = pickle_.bytes(given[11])) {
      kept.counter_place = whole(given[12], "the index of the reference counter");
      kept.counter = short_text(*counter, "a name of reference counters");
    }
    kept.bytes = whole(given[8], "the size of the storage");
    kept.offset = whole(given[9], "the offset of the storage");
    kept.uuid = uuid;
    if (const auto text = pickle_.text(given[6])) {
      if (uuid.empty()) kept.uuid = short_text(*text, "a device's name");
    } else {
      kept.index = static_cast<int64_t>(whole(given[6], "the device"));
    }
    const auto handle = pickle_.bytes(given[7]);
    if (kept.bytes > 0 && pickle_.kind(given[7]) != Pickle::Kind::kNone) {
      SCONCE_CHECK(handle, kInvalidArgument, "expected the bytes of a CUDA IPC handle, got ",
                   pickle_.describe(given[7]));
      kept.where = TrainerMemory::Where::kDevice;
      take_handle(*handle, kept);
      take_event(given[13], given[14], kept);
    } else {
      kept.bytes = 0;
    }
    return form({index, dtype(given[5])}, dtype(given[5]), given[3], given[1], given[2]);
  }

 private:
  // Two bytes before CUDA's handle give its kind.
  static void take_handle(std::string_view handle, TrainerMemory& memory) {
    if (handle.size() > 1 && handle.size() != kDeviceMemoryHandleBytes) {
      SCONCE_CHECK(handle[1] != 'e', kInvalidArgument,
                   "memory of PyTorch's expandable segments cannot be shared with this server: leave "
                   "expandable_segments out of the trainer's PYTORCH_CUDA_ALLOC_CONF");
      if (handle[1] == 'c') handle.remove_prefix(2);
    }
    SCONCE_CHECK(handle.size() == kDeviceMemoryHandleBytes, kInvalidArgument, "a CUDA IPC handle must have ",
                 kDeviceMemoryHandleBytes, " bytes, got ", handle.size());
    std::memcpy(memory.handle.data(), handle.data(), handle.size());
  }
  void take_event(Value handle, Value needed, TrainerMemory& memory) const {
    if (!pickle_.boolean(needed).value_or(false)) return;
    const auto bytes = pickle_.bytes(handle);
    SCONCE_CHECK(bytes && bytes->size() == kDeviceEventHandleBytes, kInvalidArgument, "expected the ",
                 kDeviceEventHandleBytes, " bytes of a CUDA IPC event, got ", pickle_.describe(handle));
    std::memcpy(memory.event.emplace().data(), bytes->data(), bytes->size());
  }

  // A tensor that was pickled separately for each rank.
  Form serialized(Value value) {
    const auto state = pickle_.state(value);
    const auto values = state ? pickle_.member(*state, "values") : std::nullopt;
    const auto* const ranks = values ? pickle_.sequence(*values) : nullptr;
    SCONCE_CHECK(ranks && ranks->size() == 1 && pickle_.bytes(ranks->front()), kInvalidArgument,
                 "a LocalSerializedTensor must have the values of one rank, because this server is one");
    const Pickle& inner = to_.read(*pickle_.bytes(ranks->front()));
    return TensorReader(inner, to_, depth_ + 1).tensor(inner.root());
  }

  Form form(TypedMemory memory, std::optional<DType> dtype, Value offset, Value sizes, Value strides) const {
    SCONCE_CHECK(dtype, kInvalidArgument, "a tensor with an unknown dtype");
    Form form{dtype, integers(sizes, "the sizes"), integers(strides, "the strides"), 0, memory.memory};
    SCONCE_CHECK(!__builtin_mul_overflow(whole(offset, "the offset"), dtype_bytes(*dtype), &form.offset),
                 kInvalidArgument, "the offset is too large");
    return form;
  }

  TypedMemory storage(Value value) {
    const Pickle::Name callee = pickle_.callee(value);
    if (callee.ends_with("rebuild_typed_storage")) {
      const std::vector<Value>& given = arguments(value, 2);
      TypedMemory memory = untyped(given[0]);
      memory.dtype = dtype(given[1]);
      return memory;
    }
    if (callee.ends_with("rebuild_typed_storage_child")) {
      const std::vector<Value>& given = arguments(value, 2);
      TypedMemory memory = untyped(given[0]);
      memory.dtype = storage_dtype(pickle_.name(given[1]));
      return memory;
    }
    return untyped(value);
  }

  TypedMemory untyped(Value value) {
    const auto [known, is_new] = to_.storages.try_emplace({&pickle_, value});
    TypedMemory& result = known->second;
    if (!is_new) return result;
    const Pickle::Name callee = pickle_.callee(value);
    result.memory = to_.memories.size();
    TrainerMemory& memory = to_.memories.emplace_back();
    if (callee.ends_with("rebuild_storage_filename")) {
      const std::vector<Value>& given = arguments(value, 4);
      const auto object = pickle_.bytes(given[2]);
      SCONCE_CHECK(object, kInvalidArgument, "expected the name of a shared-memory object, got ",
                   pickle_.describe(given[2]));
      memory.where = TrainerMemory::Where::kObject;
      // Stored first, so that the reference is released even if the rest is invalid.
      memory.object = short_text(*object, "a name of a shared-memory object");
      memory.bytes = whole(given[3], "the size of the storage");
      if (given.size() > 4) {  // then the size is in elements
        result.dtype = dtype(given[4]);
        SCONCE_CHECK(!__builtin_mul_overflow(memory.bytes, dtype_bytes(*result.dtype), &memory.bytes), kInvalidArgument,
                     "the storage is too large");
      }
    } else if (callee.ends_with("_load_from_bytes")) {
      const auto saved = pickle_.bytes(arguments(value, 1)[0]);
      SCONCE_CHECK(saved, kInvalidArgument, "expected the bytes of a storage");
      result.dtype = saved_storage(*saved, memory);
    } else if (callee.ends_with("rebuild_storage_fd")) {
      SCONCE_FAIL(kInvalidArgument,
                  "a tensor of the CPU behind a file descriptor, which is not sent with the request: call "
                  "torch.multiprocessing.set_sharing_strategy('file_system'), or push tensors of a GPU, or a "
                  "safetensors file");
    } else if (!callee.ends_with("rebuild_storage_empty")) {
      SCONCE_FAIL(kInvalidArgument, "expected a storage, got ", pickle_.describe(value));
    }
    return result;
  }

  // The format of torch.save() without a zip archive: five pickles, then the number of elements and the bytes.
  std::optional<DType> saved_storage(std::string_view bytes, TrainerMemory& memory) {
    constexpr std::string_view kMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
    const auto next = [&]() -> const Pickle& {
      const Pickle& pickle = to_.read(bytes);
      bytes.remove_prefix(pickle.bytes());
      return pickle;
    };
    const bool ours = bytes.size() > 14 && bytes.substr(4, kMagic.size()) == kMagic;
    SCONCE_CHECK(ours, kInvalidArgument, "a storage in a form of torch.save() that is not read here");
    next();  // the magic number
    next();  // the version
    next();  // information about the writer's machine
    const Pickle& object = next();
    next();  // keys of the storages
    const Value root = object.root();
    const auto* const id =
        object.kind(root) == Pickle::Kind::kPersistent ? object.sequence(object.items(root)[0]) : nullptr;
    SCONCE_CHECK(id && id->size() >= 5 && object.text((*id)[0]) == "storage", kInvalidArgument,
                 "expected a storage in torch.save()'s bytes, got ", object.describe(root));
    const Pickle::Name type = object.name((*id)[1]);
    const std::optional<DType> dtype = storage_dtype(type);
    const size_t item = dtype ? dtype_bytes(*dtype) : 1;
    SCONCE_CHECK(dtype || type.ends_with("UntypedStorage"), kInvalidArgument, "a storage of type ",
                 excerpt(type.text()));
    uint64_t count = 0;
    SCONCE_CHECK(bytes.size() >= sizeof count, kInvalidArgument, "a saved storage ends too early");
    std::memcpy(&count, bytes.data(), sizeof count);
    bytes.remove_prefix(sizeof count);
    SCONCE_CHECK(count <= bytes.size() / item, kInvalidArgument, "a saved storage ends too early");
    memory.where = TrainerMemory::Where::kBytes;
    memory.content = bytes.substr(0, static_cast<size_t>(count) * item);
    memory.bytes = memory.content.size();
    return dtype;
  }

  const std::vector<Value>& arguments(Value call, size_t least) const {
    const auto* const given = pickle_.arguments(call);
    SCONCE_CHECK(given && given->size() >= least, kInvalidArgument, "expected ", least, " arguments in ",
                 pickle_.describe(call));
    return *given;
  }
  const std::vector<Value>& sequence(Value value, size_t least, const char* what) const {
    const auto* const items = pickle_.sequence(value);
    SCONCE_CHECK(items && items->size() >= least, kInvalidArgument, "expected ", what, " of a tensor, got ",
                 pickle_.describe(value));
    return *items;
  }
  uint64_t whole(Value value, const char* what) const {
    const auto number = pickle_.integer(value);
    SCONCE_CHECK(number && *number >= 0, kInvalidArgument, what, " must be an int of 0 or more, got ",
                 pickle_.describe(value));
    return static_cast<uint64_t>(*number);
  }

 public:
  // A tuple, a list or a torch.Size of integers.
  std::vector<int64_t> integers(Value value, const char* what) const {
    if (pickle_.callee(value).is("torch.Size")) value = arguments(value, 1)[0];
    const std::vector<Value>& items = sequence(value, 0, what);
    SCONCE_CHECK(items.size() <= size_t{Tensor::kMaxRank}, kInvalidArgument, items.size(), " dimensions are too many");
    std::vector<int64_t> result;
    for (const Value item : items) result.push_back(static_cast<int64_t>(whole(item, what)));
    return result;
  }
  DType dtype(Value value) const {
    const Pickle::Name name = pickle_.name(value);
    const auto known = name.module == "torch" ? dtype_from_name(name.last) : std::optional<DType>();
    SCONCE_CHECK(known, kInvalidArgument, "expected a dtype, got ", pickle_.describe(value));
    return *known;
  }
  // For a class such as torch.FloatStorage; nullopt for a class without a dtype.
  static std::optional<DType> storage_dtype(Pickle::Name type) {
    constexpr std::pair<std::string_view, DType> kTypes[] = {{"torch.FloatStorage", DType::kFloat32},
                                                             {"torch.DoubleStorage", DType::kFloat64},
                                                             {"torch.HalfStorage", DType::kFloat16},
                                                             {"torch.BFloat16Storage", DType::kBFloat16},
                                                             {"torch.LongStorage", DType::kInt64},
                                                             {"torch.IntStorage", DType::kInt32},
                                                             {"torch.ShortStorage", DType::kInt16},
                                                             {"torch.CharStorage", DType::kInt8},
                                                             {"torch.ByteStorage", DType::kUInt8},
                                                             {"torch.BoolStorage", DType::kBool},
                                                             {"torch.ComplexFloatStorage", DType::kComplex64},
                                                             {"torch.ComplexDoubleStorage", DType::kComplex128}};
    for (const auto& [name, dtype] : kTypes)
      if (type.is(name)) return dtype;
    return std::nullopt;
  }

 private:
  const Pickle& pickle_;
  TrainerTensors& to_;
  const int depth_;
};

void add(TrainerTensors& to, std::string name, Form form) {
  to.add({std::move(name), *form.dtype, std::move(form.sizes), std::move(form.strides), form.offset, form.memory});
}

// Calls read(i) for each element, even if some throw, so that all references are released. Then throws the first
// exception.
template <class F>
void each(size_t count, const F& read) {
  std::exception_ptr first;
  for (size_t i = 0; i < count; ++i) {
    std::exception_ptr problem = exception_of([&] { read(i); });
    if (!first) first = std::move(problem);
  }
  if (first) std::rethrow_exception(first);
}

// One entry of a flat bucket's metadata.
struct Part {
  std::string name;
  DType dtype;
  std::vector<int64_t> sizes;
  uint64_t begin, end;  // in elements of the flat tensor
};

Part part_of(const Pickle& pickle, const TensorReader& reader, Value value) {
  auto members = pickle.state(value);
  // State of a class with slots: (None, members).
  if (const auto* const pair = members ? pickle.sequence(*members) : nullptr; pair && pair->size() == 2)
    members = (*pair)[1];
  if (pickle.kind(value) == Pickle::Kind::kDict) members = value;
  const auto member = [&](const char* key) {
    const auto found = members ? pickle.member(*members, key) : std::nullopt;
    SCONCE_CHECK(found, kInvalidArgument, "metadata of a tensor without '", key, "'");
    return *found;
  };
  const auto number = [&](const char* key) {
    const auto found = pickle.integer(member(key));
    SCONCE_CHECK(found && *found >= 0, kInvalidArgument, "metadata of a tensor: '", key, "' must be an int");
    return static_cast<uint64_t>(*found);
  };
  const auto name = pickle.text(member("name"));
  SCONCE_CHECK(name, kInvalidArgument, "metadata of a tensor: 'name' must be a str");
  return {short_text(*name, "a name of a tensor"), reader.dtype(member("dtype")),
          reader.integers(member("shape"), "the shape"), number("start_idx"), number("end_idx")};
}

}  // namespace

void read_named_tensors(std::string_view bytes, TrainerTensors& to) {
  const Pickle& pickle = to.read(bytes);
  const auto* const list = pickle.sequence(pickle.root());
  SCONCE_CHECK(list, kInvalidArgument, "expected a list of (name, tensor), got ", pickle.describe(pickle.root()));
  TensorReader reader(pickle, to, 0);
  each(list->size(), [&](size_t i) {
    const Value item = (*list)[i];
    const auto* const pair = pickle.sequence(item);
    SCONCE_CHECK(pair && pair->size() == 2 && pickle.text((*pair)[0]), kInvalidArgument,
                 "expected (name, tensor), got ", pickle.describe(item));
    const std::string name = short_text(*pickle.text((*pair)[0]), "a name of a tensor");
    const std::string where = "tensor '" + excerpt(name) + "'";
    const ErrorContext context(where);
    add(to, name, reader.tensor((*pair)[1]));
  });
}

void read_flat_bucket(std::string_view bytes, TrainerTensors& to) {
  const Pickle& pickle = to.read(bytes);
  const auto flat = pickle.member(pickle.root(), "flattened_tensor"), list = pickle.member(pickle.root(), "metadata");
  const auto* const metadata = list ? pickle.sequence(*list) : nullptr;
  SCONCE_CHECK(flat && metadata, kInvalidArgument, "expected a dict of 'flattened_tensor' and 'metadata', got ",
               pickle.describe(pickle.root()));
  TensorReader reader(pickle, to, 0);
  const Form whole = reader.tensor(*flat);
  SCONCE_CHECK(whole.sizes.size() == 1 && whole.strides.size() == 1 && (whole.strides[0] == 1 || whole.sizes[0] <= 1),
               kInvalidArgument, "the flat tensor must have one dimension, without gaps");
  const uint64_t item = dtype_bytes(*whole.dtype);
  for (const Value value : *metadata) {
    const Part part = part_of(pickle, reader, value);
    const std::string shown = excerpt(part.name);
    // A bucket of bytes may hold any dtype.
    SCONCE_CHECK(part.dtype == *whole.dtype || *whole.dtype == DType::kUInt8, kInvalidArgument, "tensor '", shown,
                 "' is ", dtype_name(part.dtype), " in a flat tensor of ", dtype_name(*whole.dtype),
                 ": send one bucket for each dtype");
    std::vector<int64_t> strides = row_major_strides(part.sizes);
    const uint64_t needed = storage_bytes_needed(part.sizes, strides, 0, dtype_bytes(part.dtype));
    SCONCE_CHECK(part.begin <= part.end && part.end <= static_cast<uint64_t>(whole.sizes[0]) &&
                     (part.end - part.begin) * item == needed,
                 kInvalidArgument, "tensor '", shown, "': elements ", part.begin, " to ", part.end,
                 " of the flat tensor's ", whole.sizes[0], " are not those of its shape");
    to.add({part.name, part.dtype, part.sizes, std::move(strides), whole.offset + part.begin * item, whole.memory});
  }
}

namespace {

// The memory in {UUID: (function, arguments)} or {UUID: arguments}.
Form of_handles(const Pickle& pickle, TensorReader& reader, Value handles, std::span<const std::string> uuids) {
  std::optional<Value> handle;
  std::string_view uuid;
  for (const std::string& own : uuids)
    if (!handle && (handle = pickle.member(handles, own))) uuid = own;
  SCONCE_CHECK(handle, kInvalidArgument, "no handle for a GPU of this server in ", pickle.describe(handles),
               "; this server's are: ", uuids.empty() ? "none" : uuids.front(), uuids.size() > 1 ? "..." : "");
  const auto* const items = pickle.sequence(*handle);
  // Later releases of vLLM omit the function.
  if (items && items->size() >= TensorReader::kDeviceArguments) return reader.on_device(*items, uuid);
  const auto* const given = items && items->size() == 2 ? pickle.sequence((*items)[1]) : nullptr;
  const Pickle::Name function = given ? pickle.name((*items)[0]) : Pickle::Name{};
  SCONCE_CHECK(function.ends_with("rebuild_cuda_tensor") || function.ends_with("_rebuild_cuda_tensor_modified"),
               kInvalidArgument, "expected (rebuild_cuda_tensor, arguments), or its arguments, got ",
               pickle.describe(*handle));
  return reader.on_device(*given, uuid);
}

}  // namespace

void read_ipc_handles(std::string_view bytes, const NamedHandles& named, std::span<const std::string> uuids,
                      TrainerTensors& to) {
  const Pickle& pickle = to.read(bytes);
  const size_t count = named.names.size();
  SCONCE_CHECK(named.dtypes.size() == count && named.shapes.size() == count &&
                   (named.bytes.empty() || named.bytes.size() == count),
               kInvalidArgument, "names, dtype_names, shapes and tensor_sizes must be as many: ", count, ", ",
               named.dtypes.size(), ", ", named.shapes.size(), " and ", named.bytes.size());
  TensorReader reader(pickle, to, 0);
  if (!named.bytes.empty()) {
    // The bucket may be longer than its tensors.
    const Form bucket = of_handles(pickle, reader, pickle.root(), uuids);
    uint64_t at = bucket.offset;
    for (size_t i = 0; i < count; ++i) {
      const std::string where = "tensor '" + excerpt(named.names[i]) + "'";
      const ErrorContext context(where);
      const auto dtype = dtype_from_name(named.dtypes[i]);
      SCONCE_CHECK(dtype, kInvalidArgument, "unknown dtype '", excerpt(named.dtypes[i]), "'");
      std::vector<int64_t> strides = row_major_strides(named.shapes[i]);
      const auto size = static_cast<uint64_t>(named.bytes[i]);
      SCONCE_CHECK(
          named.bytes[i] >= 0 && size == storage_bytes_needed(named.shapes[i], strides, 0, dtype_bytes(*dtype)),
          kInvalidArgument, "tensor_sizes says ", named.bytes[i], " bytes, which are not those of ",
          excerpt(named.dtypes[i]), " ", excerpt(to_string(IntSpan(named.shapes[i]))));
      to.add({named.names[i], *dtype, named.shapes[i], std::move(strides), at, bucket.memory});
      at += size;
    }
    return;
  }
  const auto* const list = pickle.sequence(pickle.root());
  SCONCE_CHECK(list && list->size() == count, kInvalidArgument, "expected a list of ", count, " handles, got ",
               pickle.describe(pickle.root()));
  each(count, [&](size_t i) {
    const std::string where = "tensor '" + excerpt(named.names[i]) + "'";
    const ErrorContext context(where);
    Form form = of_handles(pickle, reader, (*list)[i], uuids);
    SCONCE_CHECK(named.dtypes[i] == dtype_name(*form.dtype) && named.shapes[i] == form.sizes, kInvalidArgument,
                 "dtype_names and shapes say ", excerpt(named.dtypes[i]), " ",
                 excerpt(to_string(IntSpan(named.shapes[i]))), ", the handle ", dtype_name(*form.dtype), " ",
                 excerpt(to_string(IntSpan(form.sizes))));
    add(to, named.names[i], std::move(form));
  });
}

}  // namespace sconce::server::rollout
