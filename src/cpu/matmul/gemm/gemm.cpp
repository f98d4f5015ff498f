// How a product is cut up: orientation, the form in which B is read, blocks that fit the caches, threads.
#include "src/cpu/matmul/gemm/gemm.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>

#include "sconce/check.h"
#include "src/cpu/matmul/gemm/gemm_integer.h"
#include "src/cpu/matmul/gemm/gemm_isa.h"
#include "src/cpu/matmul/gemm/onednn_matmul.h"
#include "src/device/cpu_arena.h"
#include "src/device/cpu_isa.h"
#include "src/device/derived_memory.h"
#include "src/device/threads.h"

namespace sconce {

template <class S>
const GemmKernels<S>& gemm_kernels() noexcept {
  return std::get<GemmKernels<S>>(has_avx512() ? kGemmAvx512 : kGemmAvx2);
}
const GemmKernels<BFloat16, BFloat16>* gemm_pair_kernels() noexcept {
  return has_avx512_bf16() ? &kGemmAvx512Bf16 : nullptr;
}
template const GemmKernels<float>& gemm_kernels() noexcept;
template const GemmKernels<double>& gemm_kernels() noexcept;
template const GemmKernels<Half>& gemm_kernels() noexcept;
template const GemmKernels<BFloat16>& gemm_kernels() noexcept;
template const GemmKernels<ComplexFloat>& gemm_kernels() noexcept;
template const GemmKernels<ComplexDouble>& gemm_kernels() noexcept;

namespace {

// Less work than this is not worth another thread. Of few rows, reading B takes the time.
constexpr int64_t kFlopsPerThread = 1'000'000, kBytesPerThread = int64_t{256} << 10;
// Rows of A and steps of k that are worked on together: their bytes fit the second-level cache beside a chunk of B.
constexpr int64_t kBlockRows = 168;
constexpr int64_t kBlockBytes = 1536;  // of one row of A; so long a panel of B fits the first-level cache
constexpr int64_t kChunkPanels = 8;
// Where all rows of A are one block, a few panels of B are multiplied by all steps of k before the next ones, so that
// their part of C stays near. All of A is copied then: at most so much.
constexpr int64_t kColumnPanels = 4;
constexpr int64_t kWholeBytes = int64_t{4} << 20;
// Repacked constants that lie in memory a second time: at most this much for one, and for all together.
constexpr int64_t kPanelsBytes = int64_t{1} << 20;
constexpr int64_t kAllPanelsBytes = int64_t{16} << 20;
// Larger ones are repacked if the memory of their plain form can be given up, and at the first product of at most so
// many rows: with more, repacking at each call costs little. It costs most where rows of B are far apart, and for
// pairs.
constexpr int64_t kMaxPackedRows = 256, kMaxPackedRowsOfColumns = 64;
// Up to so many rows our kernels are faster with such a constant than oneDNN is without. GFLOP/s of one thread (Zen 4),
// ours repacked at each call, ours kept, oneDNN's:
//   float32, 768 x 768 by columns     16 rows 55, 95, 60    64 rows 85, 104, 93     128 rows 95, 107, 103
//   bfloat16, 3072 x 768 by columns   16 rows 97, 210, 115  128 rows 175, 218, 194  512 rows 203, 221, 204
// For 128 rows of float32 the 3 % are not worth a first run that packs: of GPT-2 it takes three times as long.
constexpr int64_t kOursRows = 64, kOursRowsOfPairs = 256;
// If B has at least so many bytes per row of A, reading it row by row is faster.
constexpr int64_t kStreamBytes = int64_t{128} << 10;
constexpr size_t kStackBytes = size_t{16} << 10;

std::atomic<int64_t> panels_bytes_in_use{0};

enum class Form {
  kDirect,  // rows of B as they lie in memory, a panel at a time
  kStream,  // the same, row by row
  kDot,     // columns of B as they lie in memory
  kPanels,  // repacked and kept
  kRepack,  // repacked block by block
};

template <class S, class Factor>
struct Job {
  const GemmKernels<S, Factor>* kernels;
  Form form;
  int64_t m, n, k;
  const S* a;
  int64_t a_bs, a_rs, a_cs;
  const S* b;
  int64_t b_bs, b_rs, b_cs;
  S* c;
  int64_t c_bs, c_rs;
  int64_t self_bs;
  GemmEpilogue<S> epilogue;
  const S* panels = nullptr;
  int64_t panels_bs = 0;
  int64_t block_m, block_k, chunk_n;
  bool copy_a;         // into scratch, as Factors, rows contiguous
  bool columns_first;  // all steps of k for a chunk of columns, then the next chunk; block_m is m

  // Of a panel that holds k.
  static constexpr int64_t kSteps = GemmKernels<S, Factor>::kSteps;
  static int64_t steps(int64_t k) { return (k + kSteps - 1) / kSteps * kSteps; }
  // An odd number of cache lines, so that the rows of a tile do not compete for the same places of the cache.
  int64_t copy_rs() const {
    constexpr int64_t kLine = 64 / sizeof(Factor);
    return ((block_k + kLine - 1) / kLine | 1) * kLine;
  }
  int64_t copies() const { return columns_first ? (k + block_k - 1) / block_k : 1; }  // blocks of A in scratch
  int64_t scratch_a() const {
    return copy_a ? copies() * block_m * copy_rs() * static_cast<int64_t>(sizeof(Factor)) : 0;
  }
  int64_t scratch_b() const {
    const int64_t columns = form == Form::kRepack ? chunk_n : form == Form::kDirect ? kernels->wide : 0;
    return (columns * steps(block_k) * static_cast<int64_t>(sizeof(S)) + 63) / 64 * 64;
  }
};

template <class S, class Factor>
int64_t padded(const GemmKernels<S, Factor>& kernels, int64_t n) {
  const int64_t rest = n % kernels.wide;
  return n - rest + (rest ? kernels.panel_width(rest) : 0);
}

// All panels of all batches of a constant. `twice`: its plain form stays in memory too; null where all such panels
// together would take too much.
template <class S, class Factor>
Storage::Value make_panels(const Job<S, Factor>& job, int64_t batches, int64_t batch_elements, bool twice) {
  const int64_t bytes = batches * batch_elements * static_cast<int64_t>(sizeof(S));
  const int64_t count = twice ? bytes : 0;
  DerivedMemory kept = allocate_derived("matrix product", static_cast<size_t>(bytes));
  if (twice && panels_bytes_in_use.fetch_add(count) + count > kAllPanelsBytes) {
    panels_bytes_in_use.fetch_sub(count);
    return nullptr;
  }
  std::shared_ptr<void> memory(kept.release(), [count](void* p) {
    FreeDerived()(p);
    panels_bytes_in_use.fetch_sub(count);
  });
  // Several panels at a time, and a few steps of each: what they need of a row lies side by side.
  constexpr int64_t kTogether = 8, kRowsAtOnce = 64;
  const int64_t wide = job.kernels->wide, groups = (job.n + kTogether * wide - 1) / (kTogether * wide);
  parallel_for(0, batches * groups, 1, [&, to = static_cast<S*>(memory.get())](int64_t begin, int64_t end) noexcept {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t i = at / groups, first = at % groups * kTogether * wide;
      const int64_t last = std::min(job.n, first + kTogether * wide);
      for (int64_t p = 0; p < job.k; p += kRowsAtOnce)
        for (int64_t j = first; j < last; j += wide) {
          const int64_t columns = std::min(job.n - j, wide);
          job.kernels->pack(std::min(job.k - p, kRowsAtOnce), columns,
                            job.b + i * job.b_bs + p * job.b_rs + j * job.b_cs, job.b_rs, job.b_cs,
                            to + i * batch_elements + j * job.steps(job.k) + p * job.kernels->panel_width(columns));
        }
    }
  });
  return {std::move(memory), static_cast<size_t>(bytes)};
}

template <class S, class Factor>
bool use_panels(Job<S, Factor>& job, int64_t batch, Storage* constant) {
  static const char kind = 0;
  const int64_t batches = job.b_bs == 0 ? 1 : batch;
  const int64_t elements = padded(*job.kernels, job.n) * job.steps(job.k);
  const bool small = batches * elements * static_cast<int64_t>(sizeof(S)) <= kPanelsBytes;
  if (!small && (!constant->has_source() || job.n < job.kernels->wide)) return false;
  const int64_t offset = reinterpret_cast<const char*>(job.b) - static_cast<const char*>(constant->data());
  const DerivedKey key{&kind, {offset, job.n, job.k, job.b_rs, job.b_cs, batches, job.b_bs}};
  const bool columns = job.b_cs != 1 && Job<S, Factor>::kSteps == 1;
  const bool pays = small || (job.m > kStreamRows && job.m <= (columns ? kMaxPackedRowsOfColumns : kMaxPackedRows));
  const auto how = [&]() -> Storage::Derive {
    return [of = job, batches, elements, offset, small](Storage& from) mutable -> Storage::Value {
      if (!small && !from.has_source()) return nullptr;
      of.b = reinterpret_cast<const S*>(static_cast<const char*>(from.data()) + offset);
      Storage::Value made = make_panels(of, batches, elements, !from.has_source());
      if (made.value) from.give_up(static_cast<size_t>(offset));
      return made;
    };
  };
  job.panels = static_cast<const S*>(pays ? constant->derived(key, std::ref(how)) : constant->known(key));
  job.panels_bs = batches == 1 ? 0 : elements;
  return job.panels != nullptr;
}

// Rows [m0, m1) and columns [n0, n1) of one product of the batch, on this thread.
template <class S, class Factor>
void rectangle(const Job<S, Factor>& job, int64_t batch, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
               std::byte* scratch) noexcept {
  const GemmKernels<S, Factor>& kernels = *job.kernels;
  auto* const copied = reinterpret_cast<Factor*>(scratch);
  S* const packed = reinterpret_cast<S*>(scratch + job.scratch_a());
  const S* const a = job.a + batch * job.a_bs;
  const S* const b = job.b + batch * job.b_bs;
  S* const c = job.c + batch * job.c_bs;
  const S* const panels = job.panels + batch * job.panels_bs;

  const auto place = [&](int64_t p0) {
    return copied + (job.columns_first ? p0 / job.block_k : 0) * job.block_m * job.copy_rs();
  };
  const auto copy_a = [&](int64_t i0, int64_t i1, int64_t p0, int64_t p1) {
    Factor* to = place(p0);
    for (int64_t i = i0; i < i1; ++i, to += job.copy_rs()) {
      const S* from = a + i * job.a_rs + p0 * job.a_cs;
      if (std::is_same_v<S, Factor> && job.a_cs == 1)
        std::memcpy(to, from, static_cast<size_t>(p1 - p0) * sizeof(S));
      else
        for (int64_t p = 0; p < p1 - p0; ++p) to[p] = static_cast<Factor>(from[p * job.a_cs]);
      for (int64_t p = p1 - p0; p < job.steps(p1 - p0); ++p) to[p] = Factor{};
    }
  };
  // One block of rows against columns [j0, j1), steps [p0, p1).
  const auto block = [&](int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t p0, int64_t p1) {
    const Factor* at = nullptr;
    int64_t a_rs = job.a_rs, a_cs = job.a_cs;
    if (job.copy_a) {
      at = place(p0);
      a_rs = job.copy_rs();
      a_cs = 1;
    } else if constexpr (std::is_same_v<S, Factor>) {
      at = a + i0 * a_rs + p0 * a_cs;
    }
    GemmEpilogue<S> e = job.epilogue;
    if (p0 > 0) {  // the earlier steps are in c
      e.self = c + i0 * job.c_rs + j0;
      e.self_rs = job.c_rs;
      e.self_cs = 1;
      e.beta = 1;
    } else if (e.self) {
      e.self += batch * job.self_bs + i0 * e.self_rs + j0 * e.self_cs;
    }
    S* to = c + i0 * job.c_rs + j0;
    if (job.form == Form::kDot) {
      kernels.dot(i1 - i0, j1 - j0, p1 - p0, at, a_rs, b + p0 + j0 * job.b_cs, job.b_cs, e, to, job.c_rs);
      return;
    }
    if (job.form == Form::kStream) {
      kernels.stream(i1 - i0, j1 - j0, p1 - p0, at, a_rs, a_cs, b + p0 * job.b_rs + j0, job.b_rs, e, to, job.c_rs);
      return;
    }
    for (int64_t j = j0; j < j1; j += kernels.wide) {
      const int64_t columns = std::min<int64_t>(j1 - j, kernels.wide);
      const int64_t width = kernels.panel_width(columns);
      const S* panel;
      int64_t panel_rs = width;
      if (job.form == Form::kPanels) {
        panel = panels + j * job.steps(job.k) + p0 * width;
      } else if (job.form == Form::kRepack) {
        panel = packed + (j - j0) * job.steps(p1 - p0);
      } else if (columns == width) {
        panel = b + p0 * job.b_rs + j;
        panel_rs = job.b_rs;
      } else {
        kernels.pack(p1 - p0, columns, b + p0 * job.b_rs + j * job.b_cs, job.b_rs, job.b_cs, packed);
        panel = packed;
      }
      kernels.panel(i1 - i0, job.steps(p1 - p0), at, a_rs, a_cs, panel, panel_rs, columns, e, to, job.c_rs);
      if (e.self) e.self += kernels.wide * e.self_cs;
      to += kernels.wide;
    }
  };

  const auto pack_chunk = [&](int64_t j0, int64_t j1, int64_t p0, int64_t p1) {
    if (job.form != Form::kRepack) return;
    for (int64_t j = j0; j < j1; j += kernels.wide)
      kernels.pack(p1 - p0, std::min<int64_t>(j1 - j, kernels.wide), b + p0 * job.b_rs + j * job.b_cs, job.b_rs,
                   job.b_cs, packed + (j - j0) * job.steps(p1 - p0));
  };
  const auto each_step = [&](auto f) {
    for (int64_t p0 = 0; p0 == 0 || p0 < job.k; p0 += job.block_k) f(p0, std::min(job.k, p0 + job.block_k));
  };
  const auto each_chunk = [&](auto f) {
    for (int64_t j0 = n0; j0 < n1; j0 += job.chunk_n) f(j0, std::min(n1, j0 + job.chunk_n));
  };
  if (job.columns_first) {
    if (job.copy_a) each_step([&](int64_t p0, int64_t p1) { copy_a(m0, m1, p0, p1); });
    return each_chunk([&](int64_t j0, int64_t j1) {
      each_step([&](int64_t p0, int64_t p1) {
        pack_chunk(j0, j1, p0, p1);
        block(m0, m1, j0, j1, p0, p1);
      });
    });
  }
  const bool one_block = m1 - m0 <= job.block_m;
  each_step([&](int64_t p0, int64_t p1) {
    if (job.copy_a && one_block) copy_a(m0, m1, p0, p1);
    each_chunk([&](int64_t j0, int64_t j1) {
      pack_chunk(j0, j1, p0, p1);
      for (int64_t i0 = m0; i0 < m1; i0 += job.block_m) {
        const int64_t i1 = std::min(m1, i0 + job.block_m);
        if (job.copy_a && !one_block) copy_a(i0, i1, p0, p1);
        block(i0, i1, j0, j1, p0, p1);
      }
    });
  });
}

template <class S, class Factor>
void run_job(const Job<S, Factor>& job, int64_t batch) {
  const int64_t scratch_bytes = job.scratch_a() + job.scratch_b();
  const double flops = 2.0 * static_cast<double>(batch) * static_cast<double>(job.m) * static_cast<double>(job.n) *
                       static_cast<double>(job.k);
  double worth = flops / kFlopsPerThread;  // threads
  if (job.m <= kStreamRows) {
    const double read = static_cast<double>(job.b_bs == 0 ? 1 : batch) * static_cast<double>(job.n) *
                        static_cast<double>(job.k) * static_cast<double>(sizeof(S));
    worth = std::max(worth, read / kBytesPerThread);
  }
  int64_t parts = 1;
  if (worth >= 2) parts = static_cast<int64_t>(std::min<double>(kernel_threads(), worth));
  if (parts == 1 && scratch_bytes <= static_cast<int64_t>(kStackBytes)) {
    alignas(64) std::byte scratch[kStackBytes];
    for (int64_t i = 0; i < batch; ++i) rectangle(job, i, 0, job.m, 0, job.n, scratch);
    return;
  }
  int64_t by_n = 1, by_m = 1;
  const int64_t unit_n = job.form == Form::kDot ? 16 : job.kernels->wide;
  if (batch < parts) {
    const int64_t wanted = (parts + batch - 1) / batch;
    by_n = std::min(wanted, (job.n + unit_n - 1) / unit_n);
    by_m = std::min((wanted + by_n - 1) / by_n, (job.m + job.kernels->rows - 1) / job.kernels->rows);
  }
  const auto split = [](int64_t length, int64_t unit, int64_t pieces, int64_t i) {
    return std::min(length, (length + unit - 1) / unit * i / pieces * unit);
  };
  const int64_t tasks = batch * by_n * by_m;
  parts = std::min(parts, tasks);
  const StoragePtr scratch = allocate_cpu(static_cast<size_t>(scratch_bytes * parts));
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t part = begin; part < end; ++part) {
      auto* const mine = static_cast<std::byte*>(scratch->data()) + part * scratch_bytes;
      for (int64_t task = tasks * part / parts; task < tasks * (part + 1) / parts; ++task) {
        const int64_t i = task / (by_n * by_m), im = task / by_n % by_m, in = task % by_n;
        rectangle(job, i, split(job.m, job.kernels->rows, by_m, im), split(job.m, job.kernels->rows, by_m, im + 1),
                  split(job.n, unit_n, by_n, in), split(job.n, unit_n, by_n, in + 1), mine);
      }
    }
  });
}

template <class S, class Factor>
bool streams(const MatrixProduct& p, const GemmKernels<S, Factor>& kernels) {
  return kernels.stream && p.b.column_stride == 1 && p.m <= kStreamRows &&
         p.k * p.n * static_cast<int64_t>(sizeof(S)) >= kStreamBytes * p.m;
}

// c[m, n] with unit column stride.
template <class S, class Factor>
void by_rows(const MatrixProduct& p, const GemmKernels<S, Factor>& kernels) {
  Job<S, Factor> job{};
  job.kernels = &kernels;
  job.m = p.m;
  job.n = p.n;
  job.k = p.k;
  job.a = static_cast<const S*>(p.a.data);
  job.a_bs = p.a.batch_stride;
  job.a_rs = p.a.row_stride;
  job.a_cs = p.a.column_stride;
  job.b = static_cast<const S*>(p.b.data);
  job.b_bs = p.b.batch_stride;
  job.b_rs = p.b.row_stride;
  job.b_cs = p.b.column_stride;
  job.c = static_cast<S*>(p.c);
  job.c_bs = p.c_batch_stride;
  job.c_rs = p.c_row_stride;
  job.self_bs = p.self.batch_stride;
  job.epilogue = {p.alpha, p.beta, static_cast<const S*>(p.beta == 0 ? nullptr : p.self.data), p.self.row_stride,
                  p.self.column_stride};

  constexpr bool kPairs = Job<S, Factor>::kSteps == 2;
  const int64_t b_bytes = job.k * job.n * static_cast<int64_t>(sizeof(S));
  if (p.b_constant && use_panels(job, p.batch, p.b_constant))
    job.form = Form::kPanels;
  else if (streams(p, kernels))
    job.form = Form::kStream;
  else if (!kPairs && (job.b_cs == 1 || job.n == 1) && (job.m <= kStreamRows || b_bytes <= 32 << 10))
    job.form = Form::kDirect;
  else if ((job.b_rs == 1 || job.k == 1) && job.m <= 2 * kernels.dot_rows)
    job.form = Form::kDot;
  else
    job.form = Form::kRepack;

  // A is copied if its rows are read often, or if the loops cannot read them as they lie.
  const bool often = job.m >= 4 && job.n >= 4 * kernels.wide && job.k >= 64;
  const bool in_rows = job.a_cs == 1 || job.k == 1;
  job.copy_a = !std::is_same_v<S, Factor> || often || (job.form == Form::kDot && !in_rows) ||
               (kPairs && (!in_rows || (job.k % 2 && job.form != Form::kDot)));
  // Sums of the small floats must stay in registers from the first step to the last.
  constexpr bool kSmall = !std::is_same_v<S, Sum<S>>;
  const int64_t steps = kBlockBytes / static_cast<int64_t>(sizeof(Factor));
  const bool whole = kSmall || (job.form != Form::kRepack && job.m <= kernels.rows) || job.k <= steps;
  const int64_t blocks = whole ? 1 : (job.k + steps - 1) / steps;
  job.block_k = std::max<int64_t>(1, (job.k + blocks - 1) / blocks);
  job.block_m =
      std::max<int64_t>(1, std::min(job.m, kBlockRows * std::max<int64_t>(1, steps) / std::max(steps, job.block_k)));
  job.columns_first = blocks > 1 && job.m == job.block_m && (job.form == Form::kRepack || job.form == Form::kPanels) &&
                      job.m * job.k * static_cast<int64_t>(sizeof(Factor)) <= kWholeBytes;
  job.chunk_n = kColumnPanels * kernels.wide;
  if (!job.columns_first) {
    if (job.form == Form::kDot || job.form == Form::kStream || (job.form != Form::kRepack && job.m <= job.block_m))
      job.chunk_n = job.n;
    else if (job.m > job.block_m)
      job.chunk_n = kChunkPanels * kernels.wide;
  }
  run_job(job, p.batch);
}

// Whether B is, or will be, a constant that use_panels() keeps, and no kernel of oneDNN's is faster.
template <class S, class Factor>
bool ours_is_faster(const MatrixProduct& p, const GemmKernels<S, Factor>& kernels) {
  const int64_t most = GemmKernels<S, Factor>::kSteps == 2 ? kOursRowsOfPairs : kOursRows;
  return p.b_constant && p.b_constant->has_source() && p.n >= kernels.wide && p.m > kStreamRows && p.m <= most;
}

// The kernels that suit: pairs of bfloat16 where the CPU has them, unless rows of B are read as they lie.
template <class S>
void by_rows(const MatrixProduct& p) {
  if constexpr (std::is_same_v<S, float>)
    if (onednn::matrix_product(p, ours_is_faster(p, gemm_kernels<S>()))) return;
  if constexpr (std::is_same_v<S, BFloat16>) {
    const auto* pairs = gemm_pair_kernels();
    if (onednn::matrix_product(p, pairs && ours_is_faster(p, *pairs))) return;
    const bool small = p.b_constant && p.k * p.n * static_cast<int64_t>(sizeof(S)) <= kPanelsBytes;
    const bool in_rows = p.b.column_stride == 1 && p.b.row_stride != 1 && p.m <= kStreamRows && !small;
    if (pairs && !in_rows) return by_rows<S, BFloat16>(p, *pairs);
  }
  by_rows<S, Sum<S>>(p, gemm_kernels<S>());
}

template <class S>
void run(const MatrixProduct& p) {
  // A row of C is written at a time; where C lies by columns, C' = B' @ A' is computed instead.
  const bool rows = p.c_column_stride == 1 || p.n == 1, columns = p.c_row_stride == 1 || p.m == 1;
  if (rows && !(columns && p.n == 1 && p.m > 1)) return by_rows<S>(p);
  if (columns) {
    MatrixProduct turned = p;
    std::swap(turned.m, turned.n);
    const auto turn = [](MatrixView view) {
      std::swap(view.row_stride, view.column_stride);
      return view;
    };
    turned.a = turn(p.b);
    turned.b = turn(p.a);
    turned.self = turn(p.self);
    std::swap(turned.c_row_stride, turned.c_column_stride);
    turned.b_constant = nullptr;
    return by_rows<S>(turned);
  }
  const StoragePtr result = allocate_cpu(static_cast<size_t>(p.batch * p.m * p.n) * sizeof(S));
  MatrixProduct packed = p;
  packed.c = result->data();
  packed.c_column_stride = 1;
  packed.c_row_stride = p.n;
  packed.c_batch_stride = p.m * p.n;
  by_rows<S>(packed);
  const S* from = static_cast<const S*>(result->data());
  for (int64_t i = 0; i < p.batch; ++i)
    for (int64_t r = 0; r < p.m; ++r)
      for (int64_t c = 0; c < p.n; ++c)
        static_cast<S*>(p.c)[i * p.c_batch_stride + r * p.c_row_stride + c * p.c_column_stride] = *from++;
}

// One matrix for the whole batch, whose rows follow each other: one product of more rows.
bool joins(const MatrixView& view, int64_t rows) { return view.batch_stride == rows * view.row_stride; }

}  // namespace

void matrix_product(const char* name, const MatrixProduct& product) {
  if (product.batch == 0 || product.m == 0 || product.n == 0) return;
  if (product.batch > 1 && product.b.batch_stride == 0 && joins(product.a, product.m) &&
      (!product.self.data || joins(product.self, product.m)) &&
      product.c_batch_stride == product.m * product.c_row_stride) {
    MatrixProduct joined = product;
    joined.m *= joined.batch;
    joined.batch = 1;
    return matrix_product(name, joined);
  }
  switch (product.dtype) {
    case DType::kFloat32:
      return run<float>(product);
    case DType::kFloat64:
      return run<double>(product);
    case DType::kBFloat16:
      return run<BFloat16>(product);
    case DType::kFloat16:
      return run<Half>(product);
    case DType::kComplex64:
      return run<ComplexFloat>(product);
    case DType::kComplex128:
      return run<ComplexDouble>(product);
    default:
      return integer_matrix_product(name, product);
  }
}

}  // namespace sconce
