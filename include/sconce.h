/* Sconce in C: open a package, load a model, run it, replace its weights.
 *
 *   sconce_package* package = NULL;
 *   sconce_model* model = NULL;
 *   sconce_error* error = sconce_package_open("model.pt2", &package);
 *   if (!error) error = sconce_model_load(package, NULL, &model);
 *   if (!error) error = sconce_model_run(model, inputs, 1, outputs, 1, NULL, NULL);
 *   if (error) fprintf(stderr, "%s\n", sconce_error_text(error));
 *   sconce_error_free(error);
 *
 * Errors. A function that can fail returns NULL, or an error that the caller frees with sconce_error_free(). A function
 * that fails does not write its results. No C++ exception leaves a function. A null or impossible argument is
 * SCONCE_INVALID_ARGUMENT; an invalid or freed handle or pointer is not detected.
 *
 * Ownership. An object returned through `sconce_X** out` belongs to the caller, who frees it with sconce_X_free();
 * freeing NULL does nothing. Text returned through `const char**`, and pointers in *_info structs, belong to the handle
 * and stay valid as long as it does. Arguments are read only during the call, unless a function says otherwise. Text is
 * UTF-8 and ends with a zero byte; a path has the bytes of the file system.
 *
 * Threads. Any thread may call any function at any time, with two exceptions: a sconce_update handle is for one thread
 * at a time, and a handle must not be in use when it is freed. After a fork, the child must not use its parent's
 * handles.
 *
 * Structs that begin with `size` can grow: the caller sets it to sizeof the struct. Zero is the default of every other
 * member, so `sconce_load_options options = {sizeof options};` has all defaults. A struct of a later version is
 * accepted if the members unknown to this version are zero. The library fills a struct only up to the caller's `size`.
 * NULL for options means defaults; NULL for a struct to fill means that it is not needed.
 *
 * Symbols have the version SCONCE_0.1. Names and meanings do not change; later versions add names (SCONCE_0.2, ...).
 */
#ifndef SCONCE_H
#define SCONCE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define SCONCE_NOEXCEPT noexcept
extern "C" {
#else
#define SCONCE_NOEXCEPT
#endif

/* DLPack's structs under our own names, so that dlpack.h may be included before this header, after it or not at all. If
 * dlpack.h comes first, they are the same types; otherwise they have the same layout, so a pointer can be cast. */
#if defined(DLPACK_DLPACK_H_) && defined(DLPACK_MAJOR_VERSION)
typedef DLDataType sconce_dtype;
typedef DLTensor sconce_tensor;
typedef DLManagedTensorVersioned sconce_managed_tensor;
#else
typedef struct sconce_dl_device {
  int32_t device_type; /* SCONCE_CPU, SCONCE_CUDA, SCONCE_CUDA_HOST */
  int32_t device_id;
} sconce_dl_device;

typedef struct sconce_dl_dtype {
  uint8_t code; /* sconce_dtype_code */
  uint8_t bits;
  uint16_t lanes; /* 1; 2 for float4_e2m1fn_x2 */
} sconce_dl_dtype;

typedef struct sconce_dl_tensor {
  void* data;
  sconce_dl_device device;
  int32_t ndim;
  sconce_dl_dtype dtype;
  int64_t* shape;
  int64_t* strides;     /* in elements; NULL: row-major */
  uint64_t byte_offset; /* of the first element from data */
} sconce_dl_tensor;

typedef struct sconce_dl_version {
  uint32_t major, minor;
} sconce_dl_version;

typedef struct sconce_dl_managed_tensor {
  sconce_dl_version version;
  void* manager_ctx;
  void (*deleter)(struct sconce_dl_managed_tensor* self);
  uint64_t flags; /* bit 0: read-only */
  sconce_dl_tensor dl_tensor;
} sconce_dl_managed_tensor;

typedef sconce_dl_dtype sconce_dtype;
typedef sconce_dl_tensor sconce_tensor;
typedef sconce_dl_managed_tensor sconce_managed_tensor;
#endif

/* DLDeviceType */
enum { SCONCE_CPU = 1, SCONCE_CUDA = 2, SCONCE_CUDA_HOST = 3, SCONCE_CUDA_MANAGED = 13 };

/* DLDataTypeCode */
typedef enum sconce_dtype_code {
  SCONCE_INT = 0,
  SCONCE_UINT = 1,
  SCONCE_FLOAT = 2,
  SCONCE_BFLOAT = 4,
  SCONCE_COMPLEX = 5,
  SCONCE_BOOL = 6,
  SCONCE_FLOAT8_E4M3FN = 10,
  SCONCE_FLOAT8_E4M3FNUZ = 11,
  SCONCE_FLOAT8_E5M2 = 12,
  SCONCE_FLOAT8_E5M2FNUZ = 13,
  SCONCE_FLOAT8_E8M0FNU = 14,
  SCONCE_FLOAT4_E2M1FN = 17
} sconce_dtype_code;

typedef struct sconce_package sconce_package;
typedef struct sconce_model sconce_model;
typedef struct sconce_update sconce_update;
typedef struct sconce_error sconce_error;

/* ---- Errors ---- */

typedef enum sconce_code {
  SCONCE_OK = 0,
  SCONCE_INVALID_ARGUMENT = 1, /* the caller's tensors, names or settings */
  SCONCE_NOT_FOUND = 2,
  SCONCE_ALREADY_EXISTS = 3,
  SCONCE_FAILED_PRECONDITION = 4,
  SCONCE_BUSY = 5, /* one weight update at a time */
  SCONCE_TOO_LARGE = 6,
  SCONCE_UNSUPPORTED_MEDIA = 7,
  SCONCE_QUEUE_FULL = 8,
  SCONCE_FORBIDDEN = 9,
  SCONCE_CANCELLED = 10,
  SCONCE_MODEL_FAILED = 11, /* a failed assertion or an exception in the model */
  SCONCE_DEVICE = 12,
  SCONCE_INTERNAL = 13,
  SCONCE_UNSUPPORTED = 14,
  SCONCE_UNAVAILABLE = 15,
  SCONCE_DEADLINE_EXCEEDED = 16,
  SCONCE_OUT_OF_MEMORY = 17,
  SCONCE_CORRUPT_PACKAGE = 18, /* the archive or a weight file contradicts itself */
  SCONCE_INCOMPATIBLE = 19,    /* valid, but cannot run on this host */
  SCONCE_IO = 20
} sconce_code;

sconce_code sconce_error_code(const sconce_error* error) SCONCE_NOEXCEPT; /* SCONCE_OK for NULL */
/* A sentence fragment that names the thing and the reason. Lives as long as the error; "" for NULL. */
const char* sconce_error_text(const sconce_error* error) SCONCE_NOEXCEPT;
void sconce_error_free(sconce_error* error) SCONCE_NOEXCEPT;
const char* sconce_code_name(sconce_code code) SCONCE_NOEXCEPT; /* "INVALID_ARGUMENT"; "UNKNOWN" for other numbers */

const char* sconce_version(void) SCONCE_NOEXCEPT; /* of the library: "0.1.0" */
void sconce_string_free(char* text) SCONCE_NOEXCEPT;
/* Seeds the random streams of models that draw numbers, as torch.manual_seed does. */
void sconce_manual_seed(uint64_t seed) SCONCE_NOEXCEPT;
/* Installs a handler of SIGBUS for the whole process. With it, runs of a package whose file was truncated fail with
 * SCONCE_UNAVAILABLE; without it, the process ends. */
void sconce_guard_mapped_files(void) SCONCE_NOEXCEPT;
/* Installs handlers of SIGFPE, SIGSEGV, SIGILL and SIGBUS for the whole process. With them, a fault in a package's own
 * code (an integer division by zero) ends only its run, with SCONCE_MODEL_FAILED; without them, it ends the process.
 * Other faults go to the previous handlers. Also does the work of sconce_guard_mapped_files(). Thread-safe. */
void sconce_guard_package_faults(void) SCONCE_NOEXCEPT;

/* ---- Packages ---- */

/* Opens a .pt2 archive, a model's .so, or a directory laid out as an archive. None of its code runs. */
sconce_error* sconce_package_open(const char* path, sconce_package** out) SCONCE_NOEXCEPT;
/* Opens an archive or a model's .so in memory, without a copy. Errors use `name` (NULL: "<memory>") in place of a path.
 * The bytes must not change until `release(context)` is called. It is called once, on any thread: when the package, its
 * models and their tensors are freed, or before the return if this call fails. If `release` is NULL, the caller keeps
 * the bytes that long. Weights that start at a multiple of 64 bytes are used in place, so align the bytes to 64. */
sconce_error* sconce_package_open_memory(const void* bytes, size_t size, const char* name,
                                         void (*release)(void* context), void* context,
                                         sconce_package** out) SCONCE_NOEXCEPT;
void sconce_package_free(sconce_package* package) SCONCE_NOEXCEPT; /* its models stay */

/* Compares the checksum of every member, weights included. */
sconce_error* sconce_package_verify(const sconce_package* package) SCONCE_NOEXCEPT;
size_t sconce_package_model_count(const sconce_package* package) SCONCE_NOEXCEPT; /* 0 for NULL */
sconce_error* sconce_package_model_name(const sconce_package* package, size_t index, const char** name) SCONCE_NOEXCEPT;

typedef struct sconce_check_options {
  size_t size;
  const char* model_name;          /* NULL: the only model, or the one called "model" */
  const char* const* op_libraries; /* paths of libraries with custom operators */
  size_t op_library_count;
} sconce_check_options;
/* Checks whether this process could load a model: symbols, libraries, instruction sets, platform. None of the model's
 * code runs. SCONCE_INCOMPATIBLE has every reason. */
sconce_error* sconce_package_check(const sconce_package* package, const sconce_check_options* options) SCONCE_NOEXCEPT;
/* The package's description of its models, as JSON text (docs/c_api.md). */
sconce_error* sconce_package_inspect(const sconce_package* package, char** json) SCONCE_NOEXCEPT;

/* ---- Signature ---- */

typedef struct sconce_dim {
  int64_t min, max;   /* equal: a fixed size; max INT64_MAX: no limit */
  const char* symbol; /* dimensions of equal symbols have equal sizes; "" if there is none */
} sconce_dim;

#define SCONCE_UNKNOWN_STRIDE INT64_MIN

typedef struct sconce_tensor_info {
  size_t size;
  const char* name;    /* as in the generated code: "arg0_1" */
  int32_t dtype_known; /* 0: not recorded (source stripped, or torch 2.6) */
  sconce_dtype dtype;
  const char* dtype_name; /* PyTorch's: "float32"; "" if unknown */
  const char* device;     /* "cpu", "cuda:0"; "" if unknown */
  int32_t ndim;           /* -1: rank and sizes unknown */
  const sconce_dim* dims;
  const int64_t* strides; /* SCONCE_UNKNOWN_STRIDE where dynamic; NULL: unknown */
  int32_t is_none;        /* an output that is always None */
  int32_t may_be_written; /* an input that the model may write in place */
} sconce_tensor_info;

/* ---- Models ---- */

typedef struct sconce_load_options {
  size_t size;
  const char* model_name;     /* NULL: the only model, or the one called "model" */
  const char* const* devices; /* "cpu", "cuda:1"; none: the CPU */
  size_t device_count;
  int32_t replicas;    /* per device; 0: one */
  int32_t threads;     /* of operators outside compiled kernels; 0: as many as the package was compiled for */
  const int32_t* cpus; /* cores to pin replica threads to, divided among replicas; none: not pinned */
  size_t cpu_count;
  const char* const* op_libraries; /* paths of libraries with custom operators */
  size_t op_library_count;
  int32_t skip_input_checks; /* 1: sizes and strides of inputs are not checked; count, dtype and rank are */
  int32_t verify;            /* 1: compares checksums of weights too */
  int32_t skip_warm_up;      /* 1: the first runs, not a load or a commit, pack weights */
  int32_t device_outputs;    /* 1: outputs of CUDA models stay on the device; 0: they arrive in host memory */
  int32_t cuda_graphs;       /* CUDA graphs per replica; 0: 8, -1: none */
  int32_t allow_tf32;        /* 1: float32 matrix products on CUDA devices may round operands to 10 bits */
  /* The path of the program `sconce`. A load of a CPU model with at least 1 MiB of weights then makes a warm-up run,
   * which packs weights, so that the first requests do not wait for it. A child process makes the same run on dummy
   * inputs first. NULL: a load makes no run. */
  const char* trial_program;
  int64_t trial_timeout_ms; /* limit of that child, which is then killed; 0: 10 seconds */
} sconce_load_options;

/* Loads a model and makes it ready. The package may be freed afterwards. */
sconce_error* sconce_model_load(const sconce_package* package, const sconce_load_options* options,
                                sconce_model** out) SCONCE_NOEXCEPT;
/* Waits for runs and for the callbacks of submitted runs. SCONCE_FAILED_PRECONDITION in a callback; the model then
 * stays. */
sconce_error* sconce_model_free(sconce_model* model) SCONCE_NOEXCEPT;

typedef struct sconce_model_info {
  size_t size;
  const char* name;
  size_t inputs, outputs, constants;
  int32_t replicas;       /* as loaded */
  int32_t runs_on_caller; /* 1: sconce_model_run() uses the calling thread, unless all replicas are busy */
  int64_t load_ns;
  uint64_t constant_bytes; /* of one constant set */
} sconce_model_info;
sconce_error* sconce_model_get_info(const sconce_model* model, sconce_model_info* info) SCONCE_NOEXCEPT;

/* As above, without loading: from the package's description. replicas, load_ns and constant_bytes are 0. The counts may
 * be 0 too, if the package has no source. */
sconce_error* sconce_package_get_info(const sconce_package* package, size_t model,
                                      sconce_model_info* info) SCONCE_NOEXCEPT;
sconce_error* sconce_package_input(const sconce_package* package, size_t model, size_t index,
                                   sconce_tensor_info* info) SCONCE_NOEXCEPT;
sconce_error* sconce_package_output(const sconce_package* package, size_t model, size_t index,
                                    sconce_tensor_info* info) SCONCE_NOEXCEPT;

sconce_error* sconce_model_input(const sconce_model* model, size_t index, sconce_tensor_info* info) SCONCE_NOEXCEPT;
sconce_error* sconce_model_output(const sconce_model* model, size_t index, sconce_tensor_info* info) SCONCE_NOEXCEPT;
/* The mapping of the Python call to flat inputs and outputs, as JSON text (docs/c_api.md); "null" if not recorded. */
sconce_error* sconce_model_call_spec(const sconce_model* model, char** json) SCONCE_NOEXCEPT;

typedef enum sconce_constant_type {
  SCONCE_CONSTANT_UNKNOWN = 0,
  SCONCE_PARAMETER = 1,
  SCONCE_BUFFER = 2,
  SCONCE_TENSOR_CONSTANT = 3,
  SCONCE_FOLDED = 4
} sconce_constant_type;

typedef struct sconce_constant_info {
  size_t size;
  const char* name; /* for updates: the FQN, "layers.0.weight", or the constant's own name if it has none */
  const char* code_name;
  int32_t dtype_known;
  sconce_dtype dtype;
  const char* dtype_name;
  const char* device; /* "" if unknown */
  int32_t ndim;
  const int64_t* shape;
  const int64_t* strides; /* NULL: unknown */
  uint64_t bytes;
  int32_t type;    /* sconce_constant_type */
  int32_t folded;  /* computed at load, not stored */
  int32_t mutated; /* the model writes it or may write it: each replica has its own copy */
  int32_t opaque;  /* packed for oneDNN: cannot be replaced */
} sconce_constant_info;
sconce_error* sconce_model_constant(const sconce_model* model, size_t index,
                                    sconce_constant_info* info) SCONCE_NOEXCEPT;

/* ---- Runs ----
 *
 * Inputs are DLPack tensors in the model's flat order, in host memory or on the model's CUDA device, used in place.
 * They must not change until the run ends. All work on CUDA inputs must be complete before the call; outputs can be
 * used at once. An input that the model writes is written in place. Sizes and strides are not negative; data is aligned
 * to its element.
 *
 * Outputs belong to the caller, who calls the tensor's own deleter or sconce_tensor_free() on any thread, before or
 * after the model is freed. An output that is None is NULL. An output never shares memory with an input: if the model
 * returns an input, it is copied. If bit 0 of `flags` is set, it is a constant and must not be written.
 */

typedef struct sconce_run_options {
  size_t size;
  uint64_t affinity;      /* runs with equal numbers use the same replica; 0: the least loaded */
  int32_t device_outputs; /* 1: leaves outputs on the device, regardless of the load options */
} sconce_run_options;

typedef struct sconce_run_info {
  size_t size;
  union {
    uint64_t weight_version; /* of the constant set of this run */
    uint64_t generation;     /* deprecated: its former name */
  };
  int32_t replica;
  int64_t queue_ns, compute_ns;
  char label[264]; /* of that set; "" if it has none */
} sconce_run_info;

/* output_count is the model's. outputs[] is set only if the run succeeds. */
sconce_error* sconce_model_run(sconce_model* model, const sconce_tensor* const* inputs, size_t input_count,
                               sconce_managed_tensor** outputs, size_t output_count, const sconce_run_options* options,
                               sconce_run_info* info) SCONCE_NOEXCEPT;

/* Called once, on a thread of the library. It receives ownership of `error` (NULL if the run succeeded) and of the
 * outputs (if it did). The array and `info` are valid until it returns. It must not block, throw or unwind. It may call
 * sconce_model_submit() and functions that only read; functions that would wait for a run fail with
 * SCONCE_FAILED_PRECONDITION. */
typedef void (*sconce_run_callback)(void* context, sconce_error* error, sconce_managed_tensor** outputs,
                                    size_t output_count, const sconce_run_info* info);
/* Queues a run. The bytes of the inputs must stay until the callback; the structs, shapes and strides need not. If this
 * returns an error, the callback is not called. */
sconce_error* sconce_model_submit(sconce_model* model, const sconce_tensor* const* inputs, size_t input_count,
                                  const sconce_run_options* options, sconce_run_callback callback,
                                  void* context) SCONCE_NOEXCEPT;
/* Returns the error that a run with these inputs would return, without running. */
sconce_error* sconce_model_check_inputs(const sconce_model* model, const sconce_tensor* const* inputs,
                                        size_t input_count) SCONCE_NOEXCEPT;
void sconce_tensor_free(sconce_managed_tensor* tensor) SCONCE_NOEXCEPT;

/* ---- Replicas ---- */

typedef struct sconce_replica_info {
  size_t size;
  int32_t index;
  int32_t graphs; /* CUDA graphs that it has recorded */
  uint64_t graph_runs;
  int64_t load;        /* requests queued or running */
  uint64_t cpus[16];   /* bit i of word w: pinned to core 64 * w + i; all zero: not pinned */
  char device[16];     /* "cuda:0" */
  char no_graphs[256]; /* why its runs are not recorded as graphs, truncated; "": they may be */
  char failure[512];   /* the error that lost its device, truncated; "": it works */
} sconce_replica_info;

/* Adds a replica while others serve; `cpus` as in the load options. */
sconce_error* sconce_model_add_replica(sconce_model* model, const char* device, const int32_t* cpus, size_t cpu_count,
                                       int32_t* index) SCONCE_NOEXCEPT;
/* Waits for the replica's requests, then removes it. SCONCE_FAILED_PRECONDITION for the last one. */
sconce_error* sconce_model_remove_replica(sconce_model* model, int32_t index) SCONCE_NOEXCEPT;
/* Fills up to `room` structs and sets `count` to the number of replicas. All structs have the `size` of the first. */
sconce_error* sconce_model_replicas(const sconce_model* model, sconce_replica_info* infos, size_t room,
                                    size_t* count) SCONCE_NOEXCEPT;
/* Frees memory that replicas have cached and not used since the last call; meant to be called every few seconds. */
void sconce_model_give_back_idle_memory(sconce_model* model) SCONCE_NOEXCEPT;
/* SCONCE_DEVICE if every replica has lost its device: restart the process. SCONCE_UNAVAILABLE if the package's file was
 * overwritten and its old content is lost: load the model again. */
sconce_error* sconce_model_health(const sconce_model* model) SCONCE_NOEXCEPT;

/* ---- Weights ----
 *
 * An update stages a new constant set beside the active one; a commit exchanges them. No run waits or sees two sets,
 * and an error leaves the active set unchanged. The old set is kept for rollback until the next update. A model has one
 * update at a time; a second one gets SCONCE_BUSY. See docs/weights.md.
 */

typedef struct sconce_update_options {
  size_t size;
  int32_t partial;      /* 1: constants that are not named keep their values; 0: all must be named, except buffers */
  int32_t check_finite; /* 1: refuses NaN and infinities */
  int32_t dry_run;      /* 1: checks everything and stages nothing */
  const char* label;    /* shown with results; at most 256 printable bytes */
  const char* const* ignore; /* names that may be given though the model has no such constant */
  size_t ignore_count;
} sconce_update_options;

/* One constant's values: row-major, little endian. */
typedef struct sconce_weight {
  const char* name;
  sconce_dtype dtype;
  int32_t ndim;
  const int64_t* shape;
} sconce_weight;

/* An update in steps: declare once; write (or memory and complete) each entry; finish; then sconce_model_commit(). For
 * the bytes of a file as they arrive, see sconce_update_begin_stream(). */
sconce_error* sconce_model_begin_update(sconce_model* model, const sconce_update_options* options,
                                        sconce_update** out) SCONCE_NOEXCEPT;
/* Checks every name, dtype and shape before it allocates memory. */
sconce_error* sconce_update_declare(sconce_update* update, const sconce_weight* entries, size_t count) SCONCE_NOEXCEPT;
/* Copies a tensor, on any device and with any strides, into an entry of its dtype and shape, and completes the entry.
 */
sconce_error* sconce_update_write(sconce_update* update, size_t entry, const sconce_tensor* tensor) SCONCE_NOEXCEPT;
/* The buffer for the bytes of an entry, valid until the entry is completed. */
sconce_error* sconce_update_memory(sconce_update* update, size_t entry, void** bytes, size_t* size) SCONCE_NOEXCEPT;
sconce_error* sconce_update_complete(sconce_update* update, size_t entry) SCONCE_NOEXCEPT;
/* Makes the new set ready on every replica: it is staged, unless dry_run. */
sconce_error* sconce_update_finish(sconce_update* update) SCONCE_NOEXCEPT;
/* Ends an unfinished update. A staged set stays. */
void sconce_update_free(sconce_update* update) SCONCE_NOEXCEPT;

/* All steps in one call: stages the given tensors. */
sconce_error* sconce_model_stage_tensors(sconce_model* model, const char* const* names,
                                         const sconce_tensor* const* tensors, size_t count,
                                         const sconce_update_options* options) SCONCE_NOEXCEPT;
typedef struct sconce_file_options {
  size_t size;
  const char* package_model; /* which model of a package file; NULL as in the load options */
  const char* sha256;        /* 64 hexadecimal digits of the file; NULL: not compared */
  /* Called after each block, on the calling thread. A result other than 0 stops with SCONCE_CANCELLED. NULL: none. */
  int (*progress)(void* context, uint64_t done_bytes, uint64_t total_bytes);
  void* context;
} sconce_file_options;
/* As above, from a .safetensors, .npz, .npy or .pt2 file, or a package's blob of weights. */
sconce_error* sconce_model_stage_file(sconce_model* model, const char* path, const sconce_file_options* file_options,
                                      const sconce_update_options* options) SCONCE_NOEXCEPT;

typedef struct sconce_stream_options {
  size_t size;
  const char* source; /* its name in errors; NULL: "stream" */
  uint64_t bytes;     /* of the whole stream; 0: not known */
  const char* sha256; /* 64 hexadecimal digits of the whole stream; NULL: not compared */
} sconce_stream_options;
/* Replaces sconce_update_declare(): the update's weights arrive as the bytes of a .safetensors file, in pieces of any
 * size, for example from a socket. They are declared when the header is complete, and go directly to their final
 * memory. Either write each piece, or read it into the buffer that next returns; then end the stream and finish the
 * update. After an error, the update can only be freed. */
sconce_error* sconce_update_begin_stream(sconce_update* update, const sconce_stream_options* options) SCONCE_NOEXCEPT;
/* The buffer for the next bytes, valid until the next call with this update. It is never empty, so that a read can
 * detect the end of the input. */
sconce_error* sconce_update_stream_next(sconce_update* update, void** bytes, size_t* size) SCONCE_NOEXCEPT;
/* Reports the number of bytes written to that buffer, at most its size. SCONCE_CORRUPT_PACKAGE if the weights are not a
 * safetensors file, or for bytes after its end. */
sconce_error* sconce_update_stream_advance(sconce_update* update, size_t size) SCONCE_NOEXCEPT;
/* As above, but copies bytes from the caller's memory. */
sconce_error* sconce_update_stream_write(sconce_update* update, const void* bytes, size_t size) SCONCE_NOEXCEPT;
/* Ends the stream. SCONCE_CORRUPT_PACKAGE if bytes are missing, SCONCE_INVALID_ARGUMENT if the digest differs. */
sconce_error* sconce_update_stream_end(sconce_update* update) SCONCE_NOEXCEPT;
/* Bytes received, and bytes of the whole stream (0 until known). Either may be NULL. */
sconce_error* sconce_update_stream_progress(const sconce_update* update, uint64_t* done,
                                            uint64_t* total) SCONCE_NOEXCEPT;

/* Makes the staged set active, and sets `weight_version` (may be NULL). Returns when no run uses the old set. */
sconce_error* sconce_model_commit(sconce_model* model, uint64_t* weight_version) SCONCE_NOEXCEPT;
sconce_error* sconce_model_abort(sconce_model* model) SCONCE_NOEXCEPT; /* drops the staged set */
/* Exchanges the previous and the active set, under a new weight version. */
sconce_error* sconce_model_rollback(sconce_model* model, uint64_t* weight_version) SCONCE_NOEXCEPT;
sconce_error* sconce_model_release_previous(sconce_model* model) SCONCE_NOEXCEPT;
uint64_t sconce_model_weight_version(const sconce_model* model) SCONCE_NOEXCEPT; /* 0 for NULL */
uint64_t sconce_model_generation(const sconce_model* model) SCONCE_NOEXCEPT;     /* deprecated: its former name */

typedef enum sconce_set_state { SCONCE_ACTIVE = 0, SCONCE_STAGED = 1, SCONCE_PREVIOUS = 2 } sconce_set_state;
/* "sha-256:HEX" of a set. Equal values have the same digest on every host. */
sconce_error* sconce_model_digest(const sconce_model* model, sconce_set_state state, char** text) SCONCE_NOEXCEPT;

typedef struct sconce_set_info {
  size_t size;
  int32_t state; /* sconce_set_state */
  union {
    uint64_t weight_version; /* 0: not published yet */
    uint64_t generation;     /* deprecated: its former name */
  };
  uint64_t bytes;     /* of all its constants */
  uint64_t own_bytes; /* not shared with the active set */
  int64_t since_ns;   /* when it was staged or published: nanoseconds since 1970 */
  char label[264];
} sconce_set_info;
/* The active set first. `room` and `count` as in sconce_model_replicas(). */
sconce_error* sconce_model_sets(const sconce_model* model, sconce_set_info* infos, size_t room,
                                size_t* count) SCONCE_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* SCONCE_H */
