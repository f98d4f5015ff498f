#include "src/cuda/attention/sequence_attention.h"

#include <limits>
#include <vector>

#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

// [B, T, H, D] as [B, H, T, D] and back.
Tensor turned(const Tensor& t) {
  const int64_t sizes[] = {t.size(0), t.size(2), t.size(1), t.size(3)},
                strides[] = {t.stride(0), t.stride(2), t.stride(1), t.stride(3)};
  return t.as_strided(sizes, strides, t.storage_offset());
}

// Tokens [first, first + count) of [tokens, H, D] or [1, tokens, H, D], as [1, H, count, D].
Tensor sequence_of(const Tensor& t, int64_t first, int64_t count) {
  const int64_t at = t.dim() - 3;
  const int64_t sizes[] = {1, t.size(at + 1), count, t.size(at + 2)},
                strides[] = {0, t.stride(at + 1), t.stride(at), t.stride(at + 2)};
  return t.as_strided(sizes, strides, t.storage_offset() + first * t.stride(at));
}

// Gathers the pages of sequence `number` from [pages, tokens, H, D], as [1, H, count, D].
Tensor paged(const Tensor& t, const Tensor& table, size_t number, int64_t count) {
  const int64_t tokens = t.size(1), used = (count + tokens - 1) / tokens, step = table.stride(1);
  const Tensor numbers = table.as_strided(IntSpan(&used, 1), IntSpan(&step, 1),
                                          table.storage_offset() + static_cast<int64_t>(number) * table.stride(0));
  const Tensor* const index = &numbers;
  const Tensor* const* const indices = &index;
  const Tensor packed = contiguous(index_Tensor(t, {&indices, 1}));
  const int64_t token = t.size(2) * t.size(3);
  const int64_t sizes[] = {1, t.size(2), count, t.size(3)}, strides[] = {0, t.size(3), token, 1};
  return packed.as_strided(sizes, strides, packed.storage_offset());
}

std::vector<int64_t> read(const char* name, const char* what, const Tensor& t) {
  SCONCE_CHECK(t.dim() == 1 && (t.dtype() == DType::kInt32 || t.dtype() == DType::kInt64), kInvalidArgument, name, ": ",
               what, " must be int32 of one dimension, got ", describe(t));
  Tensor here = Tensor::empty(t.sizes(), DType::kInt64);
  copy(converted(t, DType::kInt64), here, true);
  return {here.data_as<int64_t>(), here.data_as<int64_t>() + here.numel()};
}

struct Sequence {
  int64_t first_query, queries, first_key, keys;
};

void check_pages(const SequenceCall& call) {
  for (const Tensor* t : {&call.key, &call.value})
    SCONCE_CHECK(t->dim() == 4 && t->size(1) > 0 && t->size(1) == call.key.size(1), kInvalidArgument, call.name,
                 ": expected keys and values in pages of 4 dimensions, got ", describe(call.key), " and ",
                 describe(call.value));
  SCONCE_CHECK(call.pages->dim() == 2 && call.pages->dtype() == DType::kInt32 && !call.pages->is_cpu(),
               kInvalidArgument, call.name, ": block_table should be int32 of two dimensions on the device, got ",
               describe(*call.pages));
  SCONCE_CHECK(call.dropout.stream == AttentionDropout::Stream::kNone, kUnsupported, call.name,
               ": dropout with a block_table is not supported");
}

std::vector<Sequence> sequences_of(const SequenceCall& call) {
  refuse_capture("sequences of several lengths");
  const char* name = call.name;
  // With pages, used_keys gives the number of keys.
  const bool own_keys = call.cumulative_k || (call.pages && call.used_keys);
  SCONCE_CHECK(own_keys && !call.bias, kUnsupported, name, ": sequences of several lengths ",
               call.bias ? "with a bias are not supported" : "need the lengths of the keys too");
  for (const Tensor* t : {&call.query, &call.key, &call.value})
    SCONCE_CHECK((call.pages && t != &call.query) || t->dim() == 3 || (t->dim() == 4 && t->size(0) == 1),
                 kInvalidArgument, name, ": expected tokens of all sequences in one row, got ", describe(*t));
  if (call.pages) check_pages(call);
  const std::vector<int64_t> q = read(name, "cumulative lengths", *call.cumulative_q);
  const auto given = [&](const char* what, const Tensor* t) {
    return t ? read(name, what, *t) : std::vector<int64_t>();
  };
  const std::vector<int64_t> k = given("cumulative lengths", call.cumulative_k),
                             used = given("lengths of keys", call.used_keys);
  SCONCE_CHECK(
      !q.empty() && (!call.cumulative_k || q.size() == k.size()) && (!call.used_keys || used.size() + 1 == q.size()),
      kInvalidArgument, name, ": cumulative lengths of ", q.size(), " queries and ", k.size(), " keys",
      call.used_keys ? " and lengths of keys" : "", " do not fit");
  SCONCE_CHECK(!call.pages || call.pages->size(0) + 1 == static_cast<int64_t>(q.size()), kInvalidArgument, name,
               ": block_table ", describe(*call.pages), " of ", q.size() - 1, " sequences");
  const int64_t tokens = call.query.size(call.query.dim() - 3);
  // In pages, the keys of each sequence are numbered from 0.
  const int64_t key_tokens = call.pages ? call.pages->size(1) * call.key.size(1) : call.key.size(call.key.dim() - 3);
  std::vector<Sequence> sequences;
  for (size_t i = 0; i + 1 < q.size(); ++i) {
    const Sequence s{q[i], q[i + 1] - q[i], call.pages ? 0 : k[i], call.used_keys ? used[i] : k[i + 1] - k[i]};
    SCONCE_CHECK(s.first_query >= 0 && s.queries >= 0 && s.first_query + s.queries <= tokens && s.first_key >= 0 &&
                     s.keys >= 0 && s.first_key + s.keys <= key_tokens,
                 kInvalidArgument, name, ": sequence ", i, " has queries ", s.first_query, " to ",
                 s.first_query + s.queries, " of ", tokens, " and keys ", s.first_key, " to ", s.first_key + s.keys,
                 " of ", key_tokens);
    sequences.push_back(s);
  }
  return sequences;
}

void check_batch(const SequenceCall& call) {
  SCONCE_CHECK(call.query.dim() == 4 && call.key.dim() == 4 && call.value.dim() == 4, kInvalidArgument, call.name,
               ": expected tensors of 4 dimensions, got ", describe(call.query), ", ", describe(call.key), " and ",
               describe(call.value));
  SCONCE_CHECK(!call.used_keys, kUnsupported, call.name, ": lengths of keys need cumulative lengths of queries");
  SCONCE_CHECK(!call.pages, kUnsupported, call.name, ": a block_table needs cumulative lengths of queries");
}

AttentionCall forward_call(const SequenceCall& call) {
  AttentionCall forward(call.name);
  static_cast<AttentionSight&>(forward) = call.sight;
  forward.bias = call.bias;
  forward.slopes = call.slopes;
  forward.dropout = call.dropout;
  forward.scale = call.scale;
  forward.empty_logsumexp = call.empty_logsumexp;
  return forward;
}

void set_sequence(AttentionDropout& dropout, size_t number, int64_t keys) {
  dropout.first_batch = static_cast<int64_t>(number);
  dropout.row_elements = keys;
}

// Has the sizes of t except for the last one, and its order of dimensions unless row_major.
Tensor like(const Tensor& t, int64_t last, bool row_major) {
  Shape sizes(t.sizes());
  sizes[sizes.rank() - 1] = last;
  const DType dtype = attended_dtype(t.dtype());
  if (row_major) return Tensor::empty(sizes, dtype, t.device());
  return Tensor::empty_strided(sizes, dense_strides(sizes, t.strides()), dtype, t.device());
}

// Row `number` of [sequences, H], as [1, H]; [H] stays as it is.
Tensor of_sequence(const Tensor& t, size_t number) {
  if (t.dim() != 2) return t;
  const int64_t row = static_cast<int64_t>(number), sizes[] = {1, t.size(1)}, strides[] = {0, t.stride(1)};
  SCONCE_CHECK(row < t.size(0), kInvalidArgument, "attention: ", describe(t), " has no row for sequence ", row);
  return t.as_strided(sizes, strides, t.storage_offset() + row * t.stride(0));
}
Descale of_sequence(const Descale& all, size_t number) {
  Descale one;
  for (const auto part : {&Descale::query, &Descale::key, &Descale::value})
    if ((all.*part).defined()) one.*part = of_sequence(all.*part, number);
  return one;
}

// The part of logsumexp for one sequence, as [1, H, count].
Tensor sums_of(const Tensor& logsumexp, bool packed, size_t number, const Sequence& s) {
  const int64_t heads = logsumexp.size(packed ? 0 : 1), sizes[] = {1, heads, s.queries},
                strides[] = {0, logsumexp.stride(packed ? 0 : 1), logsumexp.stride(packed ? 1 : 2)};
  const int64_t at = packed ? s.first_query * logsumexp.stride(1) : static_cast<int64_t>(number) * logsumexp.stride(0);
  return logsumexp.as_strided(sizes, strides, logsumexp.storage_offset() + at);
}

}  // namespace

Attention attend_sequences(const SequenceCall& call, const SequenceSums& sums, const Tensor* into) {
  const DeviceScope scope(call.query.device());
  AttentionCall forward = forward_call(call);
  Tensor target;
  if (!call.cumulative_q) {
    check_batch(call);
    if (into) {
      SCONCE_CHECK(into->dim() == 4, kInvalidArgument, call.name, ": out is ", describe(*into));
      target = turned(*into);
      forward.into = &target;
    }
    forward.layout = sums.packed ? OutLayout::kOfQuery : OutLayout::kByToken;
    forward.logsumexp_rows = sums.packed ? call.query.size(1) : sums.rows;
    Attention done = attend_wide(forward, call.descale, turned(call.query), turned(call.key), turned(call.value));
    done.out = turned(done.out);
    return done;
  }
  const std::vector<Sequence> sequences = sequences_of(call);
  const Tensor &query = call.query, &value = call.value;
  const int64_t heads = query.size(query.dim() - 2), tokens = query.size(query.dim() - 3);
  const int64_t packed_sizes[] = {heads, tokens},
                row_sizes[] = {static_cast<int64_t>(sequences.size()), heads, sums.rows};
  Attention result{
      into ? *into : like(query, value.size(value.dim() - 1), !sums.packed),
      Tensor::empty(sums.packed ? IntSpan(packed_sizes) : IntSpan(row_sizes), DType::kFloat32, query.device())};
  const float most = std::numeric_limits<float>::infinity();
  if (result.logsumexp.numel() > 0) fill(result.logsumexp, &most);
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& s = sequences[i];
    if (s.queries == 0) continue;
    target = sequence_of(result.out, s.first_query, s.queries);
    forward.into = &target;
    forward.logsumexp_rows = s.queries;
    set_sequence(forward.dropout, i, s.keys);
    const auto keys_of = [&](const Tensor& t) {
      return call.pages ? paged(t, *call.pages, i, s.keys) : sequence_of(t, s.first_key, s.keys);
    };
    Tensor slopes;
    if (call.slopes) {
      slopes = of_sequence(*call.slopes, i);
      forward.slopes = &slopes;
    }
    const Attention done = attend_wide(forward, of_sequence(call.descale, i),
                                       sequence_of(query, s.first_query, s.queries), keys_of(call.key), keys_of(value));
    if (!sums.packed && sums.rows == 0) continue;
    SCONCE_CHECK(sums.packed || s.queries <= sums.rows, kInvalidArgument, call.name, ": a sequence of ", s.queries,
                 " queries, but at most ", call.most_queries, " were announced");
    Tensor place = sums_of(result.logsumexp, sums.packed, i, s);
    copy(done.logsumexp, place, false);
  }
  return result;
}

Gradients sequence_gradients(const SequenceCall& call, const Tensor& grad, const Tensor& logsumexp, bool of_bias,
                             bool row_major) {
  const DeviceScope scope(call.query.device());
  const auto run = [&](const Tensor& g, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& sums,
                       size_t number) {
    GradientCall backward(call.name, g, q, k, v, sums);
    static_cast<AttentionSight&>(backward) = call.sight;
    backward.bias = call.bias;
    backward.dropout = call.dropout;
    if (call.cumulative_q) set_sequence(backward.dropout, number, k.size(2));
    backward.scale = call.scale;
    backward.by_token = row_major;
    backward.of_bias = of_bias;
    return attention_gradients(backward);
  };
  if (!call.cumulative_q) {
    check_batch(call);
    SCONCE_CHECK(grad.dim() == 4, kInvalidArgument, call.name, ": grad_out is ", describe(grad));
    Gradients done = run(turned(grad), turned(call.query), turned(call.key), turned(call.value), logsumexp, 0);
    for (Tensor* t : {&done.query, &done.key, &done.value}) *t = turned(*t);
    return done;
  }
  const std::vector<Sequence> sequences = sequences_of(call);
  const bool packed = logsumexp.dim() == 2;
  SCONCE_CHECK(packed || (logsumexp.dim() == 3 && logsumexp.size(0) == static_cast<int64_t>(sequences.size())),
               kInvalidArgument, call.name, ": logsumexp ", describe(logsumexp), " of ", sequences.size(),
               " sequences");
  const auto empty = [&](const Tensor& t) {
    Tensor made = like(t, t.size(t.dim() - 1), row_major);
    fill_zero(made);
    return made;
  };
  Gradients result{empty(call.query), empty(call.key), empty(call.value), {}};
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& s = sequences[i];
    if (s.queries == 0 || s.keys == 0) continue;
    const auto keys_of = [&](const Tensor& t) { return sequence_of(t, s.first_key, s.keys); };
    const auto queries_of = [&](const Tensor& t) { return sequence_of(t, s.first_query, s.queries); };
    const Gradients done = run(queries_of(grad), queries_of(call.query), keys_of(call.key), keys_of(call.value),
                               sums_of(logsumexp, packed, i, s), i);
    Tensor of_query = queries_of(result.query), of_key = keys_of(result.key), of_value = keys_of(result.value);
    copy(done.query, of_query, false);
    copy(done.key, of_key, false);
    copy(done.value, of_value, false);
  }
  return result;
}

}  // namespace sconce::cuda
