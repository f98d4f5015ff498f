#include "server/api/routes.h"

#include <algorithm>
#include <type_traits>

#include "server/api/settings_handlers.h"
#include "server/console/console_api.h"
#include "server/registry/repository_request.h"
#include "server/rollout/golden_api.h"
#include "server/rollout/sets_api.h"
#include "server/rollout/shadow_api.h"
#include "server/telemetry/metrics.h"

namespace sconce::server::api {
namespace {

using enum http::Method;
using enum Access;
using enum BodyLimit;
using enum Description::Remark;
using Form = codecs::Inference::Form;
using http::kAdmin;
using http::kMetrics;
using http::kPublic;

constexpr uint8_t kEverywhere = kPublic | kAdmin | kMetrics;

// Groups of the OpenAPI document.
constexpr std::string_view kHealth = "health", kModels = "models", kInference = "inference", kServer = "server",
                           kSettings = "control", kMemory = "shared memory", kV1 = "KServe v1 and TensorFlow Serving",
                           kAdministration = "administration", kTrainers = "trainers";

// The paths of a model's route, with and without a version.
#define MODEL_PATHS(prefix, rest) \
  Paths { prefix "/{model}" rest, prefix "/{model}/versions/{version}" rest }

// Likewise; `former` was its name before, and is deprecated.
#define RENAMED_PATHS(prefix, rest, former)                                  \
  Paths({prefix "/{model}" rest, prefix "/{model}/versions/{version}" rest}, \
        {prefix "/{model}" former, prefix "/{model}/versions/{version}" former})

// TensorFlow Serving has a separate path for labels.
#define V1_PATHS(rest)                                                       \
  Paths {                                                                    \
    "/v1/models/{model}" rest, "/v1/models/{model}/versions/{version}" rest, \
        "/v1/models/{model}/labels/{version}" rest                           \
  }

// The first match wins, so literal segments come before {model}.
constexpr std::array kTable{
    Route{kGet, Paths{"/"}, kEverywhere, kReading, OnIoThread(answers::page, OnIoThread::kAllModels),
          Description{kServer, "A page about this server", "", "text"}},
    Route{kGet, Paths{"/page.css"}, kEverywhere, kAnyone, OnIoThread(answers::page_style),
          Description{kServer, "The stylesheet of that page", "", "style"}},
    Route{kGet, Paths{"/console"}, kAdmin, kAnyone, OnIoThread(answers::console),
          Description{kServer, "The console: a page in the browser", "", "page"}},
    Route{kGet, Paths{"/console/{file}"}, kAdmin, kAnyone, OnIoThread(answers::console),
          Description{kServer, "A file of the console", "", "Any"}},
    Route{kGet, Paths{"/metrics"}, kMetrics, kOfListener, OnIoThread(answers::metrics_text),
          Description{kServer, "Metrics in Prometheus' format", "", "text"}},
    Route{kGet, Paths{"/v2"}, kPublic | kAdmin, kReading, OnIoThread(answers::server_metadata),
          Description{kServer, "Name, version and extensions", "", "ServerMetadata"}},
    Route{kGet, Paths{"/v2/health/live"}, kEverywhere, kAnyone, OnIoThread(answers::live),
          Description{kHealth, "Is the server alive", "", "Live"}},
    Route{kGet, Paths{"/v2/health/ready"}, kEverywhere, kAnyone, OnIoThread(answers::ready),
          Description{kHealth, "Are all models ready; 503 if not", "", "Ready"}},
    Route{kGet, Paths{"/v2/models/stats"}, kPublic | kAdmin, kReading,
          OnIoThread(answers::statistics, OnIoThread::kAllModels),
          Description{kModels, "Statistics of all models", "", "Statistics"}},
    Route{kGet, Paths{"/v2/models"}, kPublic | kAdmin, kReading,
          OnIoThread(answers::model_list, OnIoThread::kAllModels),
          Description{kModels, "Names of models", "", "ModelList"}},
    Route{kGet, MODEL_PATHS("/v2/models", ""), kPublic | kAdmin, kReading,
          OnIoThread(answers::model_metadata, OnIoThread::kModel),
          Description{kModels, "Inputs and outputs", "", "ModelMetadata", kTakesSet}},
    Route{kGet, MODEL_PATHS("/v2/models", "/ready"), kPublic | kAdmin, kReading, OnIoThread(answers::model_ready),
          Description{kHealth, "Is the model ready; 503 if not", "", "ModelReady", kTakesSet}},
    Route{kGet, MODEL_PATHS("/v2/models", "/config"), kPublic | kAdmin, kReading,
          OnIoThread(answers::model_config, OnIoThread::kModel),
          Description{kModels, "Configuration, as Triton names it", "", "Object"}},
    Route{kGet, MODEL_PATHS("/v2/models", "/stats"), kPublic | kAdmin, kReading,
          OnIoThread(answers::statistics, OnIoThread::kAllModels),
          Description{kModels, "Statistics of a model", "", "Statistics"}},
    Route{kPost, MODEL_PATHS("/v2/models", "/infer"), kPublic | kAdmin, kOfListener, RunsModel(Form::kInfer),
          Description{kInference, "Run a model on tensors", "InferRequest", "InferAnswer", kAnswersBinary}, kInputs},
    Route{kPost, MODEL_PATHS("/v2/models", "/generate"), kPublic | kAdmin, kOfListener, RunsModel(Form::kGenerate),
          Description{kInference, "Run a model on values by name", "Object", "Object"}, kInputs},
    Route{kPost, MODEL_PATHS("/v2/models", "/generate_stream"), kPublic | kAdmin, kOfListener,
          RunsModel(Form::kGenerateStream),
          Description{kInference, "The same, answered as an event stream", "Object", "events"}, kInputs},
    Route{
        kPost, Paths{"/v2/repository/index"}, kPublic | kAdmin, kReading,
        OnIoThread(answers::repository_index, OnIoThread::kAllModels),
        Description{kModels, "Models, their versions and states", "IndexRequest", "Index", kBodyOptional | kOnlyReads}},
    Route{kPost, Paths{"/v2/repository/models/{model}/load"}, kPublic | kAdmin, kControl,
          OnControlThread(registry::check_load_request, &registry::ModelLoader::load_model),
          Description{kSettings, "Load a model, or its new versions", "Parameters", "", kBodyOptional}},
    Route{kPost, Paths{"/v2/repository/models/{model}/unload"}, kPublic | kAdmin, kControl,
          OnControlThread(registry::check_unload_request, &registry::ModelLoader::unload_model),
          Description{kSettings, "Unload a model", "Parameters", "", kBodyOptional}},
    Route{kGet, Paths{"/v2/trace/setting", "/v2/models/{model}/trace/setting"}, kPublic | kAdmin, kControlReading,
          OnIoThread(answers::trace_settings), Description{kSettings, "Trace settings", "", "TraceSettings"}},
    Route{kPost, Paths{"/v2/trace/setting", "/v2/models/{model}/trace/setting"}, kPublic | kAdmin, kControl,
          OnIoThread(answers::change_trace),
          Description{kSettings, "Change trace settings", "TraceSettings", "TraceSettings"}},
    Route{kGet, Paths{"/v2/logging"}, kPublic | kAdmin, kControlReading, OnIoThread(answers::log_settings),
          Description{kSettings, "Log settings", "", "LogSettings"}},
    Route{kPost, Paths{"/v2/logging"}, kPublic | kAdmin, kControl, OnIoThread(answers::change_log),
          Description{kSettings, "Change log settings", "LogSettings", "LogSettings"}},
    Route{kGet, Paths{"/v2/systemsharedmemory/status", "/v2/systemsharedmemory/region/{region}/status"}, kPublic,
          kOfListener, OnIoThread(answers::regions),
          Description{kMemory, "Registered regions", "", "Regions", kOfHost}},
    Route{kPost, Paths{"/v2/systemsharedmemory/region/{region}/register"}, kPublic, kOfListener,
          OnIoThread(answers::register_region),
          Description{kMemory, "Register a POSIX shared-memory region", "Region", ""}},
    Route{kPost, Paths{"/v2/systemsharedmemory/unregister", "/v2/systemsharedmemory/region/{region}/unregister"},
          kPublic, kOfListener, OnIoThread(answers::unregister_region),
          Description{kMemory, "Unregister a region, or all", "Object", "", kBodyOptional}},
    Route{kGet, Paths{"/v2/cudasharedmemory/status", "/v2/cudasharedmemory/region/{region}/status"}, kPublic,
          kOfListener, OnIoThread(answers::cuda_regions),
          Description{kMemory, "Registered CUDA regions", "", "CudaRegions", kOfHost}},
    Route{kPost, Paths{"/v2/cudasharedmemory/region/{region}/register"}, kPublic, kOfListener,
          OnIoThread(answers::register_cuda_region),
          Description{kMemory, "Register memory of a CUDA device", "CudaRegion", ""}},
    Route{kPost, Paths{"/v2/cudasharedmemory/unregister", "/v2/cudasharedmemory/region/{region}/unregister"}, kPublic,
          kOfListener, OnIoThread(answers::unregister_cuda_region),
          Description{kMemory, "Unregister a CUDA region, or all", "Object", "", kBodyOptional}},
    Route{kGet, Paths{"/openapi.json"}, kPublic | kAdmin, kReading, OnIoThread(answers::openapi),
          Description{kServer, "This document", "", "Object"}},
    Route{kPost, MODEL_PATHS("/v1/models", ":call"), kPublic | kAdmin, kOfListener, RunsModel(Form::kCall),
          Description{kInference, "Call a model as in Python", "Call", "Any"}, kInputs},
    Route{kPost, V1_PATHS(":predict"), kPublic, kOfListener, RunsModel(Form::kPredict),
          Description{kV1, "Run a model on rows or columns", "Predict", "Predictions"}, kInputs},
    Route{kGet, Paths{"/v1/models"}, kPublic, kOfListener, OnIoThread(answers::model_list, OnIoThread::kAllModels),
          Description{kV1, "Names of models", "", "ModelList"}},
    Route{kGet, V1_PATHS(""), kPublic, kOfListener, OnIoThread(answers::model_status),
          Description{kV1, "State of a model; 503 if it is not ready", "", "ModelStatus", kTakesSet}},
    Route{kGet, V1_PATHS("/metadata"), kPublic, kOfListener, OnIoThread(answers::model_signature, OnIoThread::kModel),
          Description{kV1, "Signature of a model", "", "Object", kTakesSet}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/constants"), kAdmin, kReading,
          OnAdminThread(rollout::admin::constants),
          Description{kAdministration, "Weights by name, dtype and shape", "", "Any"}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/weights"), kAdmin, kReading, OnAdminThread(rollout::admin::weights),
          Description{kAdministration, "Sets of weights", "", "Any"}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/weights/active"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::active_weights),
          Description{kAdministration, "The active weights as a safetensors file", "", "weights"}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/weights/diff"), kAdmin, kReading,
          OnAdminThread(rollout::admin::weights_difference),
          Description{kAdministration, "How far another set of weights is from the active one", "", "Any"}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/weights/guard"), kAdmin, kReading,
          OnAdminThread(rollout::admin::guard),
          Description{kAdministration, "The guard of published weights", "", "Any"}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/weights/shadow"), kAdmin, kReading,
          OnAdminThread(rollout::admin::shadow),
          Description{kAdministration, "Results of live requests on the staged weights", "", "Any"}},
    Route{kPut, MODEL_PATHS("/v2/admin/models", "/weights/shadow"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::change_shadow),
          Description{kAdministration, "Change how many live requests also run on staged weights", "Object", "Any"}},
    Route{kPost, MODEL_PATHS("/v2/admin/models", "/weights"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::stage_weights),
          Description{kAdministration, "Stage new weights", "Object", "Any", kAnswersLater}, kWeights},
    Route{kPost, MODEL_PATHS("/v2/admin/models", "/weights/commit"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::commit_weights),
          Description{kAdministration, "Publish the staged weights", "Object", "Any", kBodyOptional}},
    Route{kPost, MODEL_PATHS("/v2/admin/models", "/weights/abort"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::abort_weights),
          Description{kAdministration, "Drop the staged weights", "Object", "Any", kBodyOptional}},
    Route{kPost, MODEL_PATHS("/v2/admin/models", "/weights/rollback"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::rollback_weights),
          Description{kAdministration, "Publish the previous weights again", "Object", "Any", kBodyOptional}},
    Route{kPost, RENAMED_PATHS("/v2/admin/models", "/weights/set-version", "/weights/renumber"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::set_weight_version),
          Description{kAdministration, "Raise the version of the active weights", "Object", "Any"}},
    Route{kPost, MODEL_PATHS("/v2/admin/models", "/weights/release"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::release_weights),
          Description{kAdministration, "Release the memory of the previous weights", "Object", "Any", kBodyOptional}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/weights/pushes"), kAdmin, kReading,
          OnAdminThread(rollout::admin::pushes),
          Description{kAdministration, "Pushes by id, and their results", "", "Any"}},
    Route{kPost, RENAMED_PATHS("/v2/admin/models", "/weights/renew", "/weights/prolong"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::renew_push),
          Description{kAdministration, "Renew the lease of a push", "Object", "Any", kBodyOptional}},
    Route{kPost, MODEL_PATHS("/v2/admin/models", "/weights/prepare"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::prepare_push),
          Description{kAdministration, "Keep the staged weights of a push until it is decided", "Object", "Any",
                      kBodyOptional}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/golden"), kAdmin, kReading, OnAdminThread(rollout::admin::golden),
          Description{kAdministration, "Golden requests, and their verdict on the last weights", "", "Any"}},
    Route{kPost, MODEL_PATHS("/v2/admin/models", "/golden/record"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::record_golden),
          Description{kAdministration, "Record live answers as golden requests", "Object", "Any"}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/golden/recording"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::golden_recording),
          Description{kAdministration, "The recorded answers, as a safetensors file", "", "weights"}},
    Route{kPost, MODEL_PATHS("/v2/admin/models", "/golden/recording"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::end_recording),
          Description{kAdministration, "End the recording", "", "Any", kBodyOptional}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/sets"), kAdmin, kReading, OnAdminThread(rollout::admin::sets),
          Description{kAdministration, "Named sets of weights", "", "Any"}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/sets/{set}"), kAdmin, kReading, OnAdminThread(rollout::admin::set),
          Description{kAdministration, "A named set", "", "Any", kTakesSet}},
    Route{kPost, MODEL_PATHS("/v2/admin/models", "/sets/{set}"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::stage_weights),
          Description{kAdministration, "Fill a named set", "Object", "Any", kAnswersLater | kTakesSet}, kWeights},
    Route{kDelete, MODEL_PATHS("/v2/admin/models", "/sets/{set}"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::remove_set),
          Description{kAdministration, "Remove a named set", "", "Object", kTakesSet}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/sets/{set}/weights"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::set_weights),
          Description{kAdministration, "A named set's weights as a safetensors file", "", "weights", kTakesSet}},
    Route{kPost, RENAMED_PATHS("/v2/admin/models", "/sets/{set}/set-version", "/sets/{set}/renumber"), kAdmin,
          kOfListener, OnAdminThread(rollout::admin::set_version_of_set),
          Description{kAdministration, "Raise the version of a named set", "Object", "Any", kTakesSet}},
    Route{kPost, MODEL_PATHS("/v2/admin/models", "/sets/{set}/promote"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::promote_set),
          Description{kAdministration, "Publish a named set's weights", "Object", "Any", kBodyOptional | kTakesSet}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/routes"), kAdmin, kReading, OnAdminThread(rollout::admin::routes),
          Description{kAdministration, "The weight sets for requests that name none", "", "Shares"}},
    Route{kPut, MODEL_PATHS("/v2/admin/models", "/routes"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::change_routes),
          Description{kAdministration, "Change that", "Shares", "Shares"}},
    Route{kGet, MODEL_PATHS("/v2/admin/models", "/replicas"), kAdmin, kReading, OnAdminThread(rollout::admin::replicas),
          Description{kAdministration, "Replicas", "", "Any"}},
    Route{kPost, MODEL_PATHS("/v2/admin/models", "/replicas"), kAdmin, kOfListener,
          OnAdminThread(rollout::admin::add_replicas),
          Description{kAdministration, "Add replicas", "Object", "Any", kBodyOptional}},
    Route{kDelete,
          Paths{"/v2/admin/models/{model}/replicas", "/v2/admin/models/{model}/versions/{version}/replicas",
                "/v2/admin/models/{model}/replicas/{number}",
                "/v2/admin/models/{model}/versions/{version}/replicas/{number}"},
          kAdmin, kOfListener, OnAdminThread(rollout::admin::remove_replica),
          Description{kAdministration, "Remove a replica", "", "Any"}},
    Route{kGet, Paths{"/v2/admin/access"}, kAdmin, kReading, OnAdminThread(admin::access),
          Description{kAdministration, "The scopes of the request's token", "", "Any"}},
    Route{kGet, Paths{"/v2/admin/live"}, kAdmin, kReading, EventStream(console::feeds::overview),
          Description{kAdministration, "The server and its models, each second, as an event stream", "", "events"}},
    Route{kGet, Paths{"/v2/admin/log"}, kAdmin, kReading, OnAdminThread(console::admin::log_lines),
          Description{kAdministration, "The log's last lines", "", "Any"}},
    Route{kGet, Paths{"/v2/admin/log/live"}, kAdmin, kReading, EventStream(console::feeds::log_lines),
          Description{kAdministration, "The log's lines as they come, as an event stream", "", "events"}},
    Route{kGet, Paths{"/v2/admin/audit"}, kAdmin, kReading, OnAdminThread(rollout::admin::audit),
          Description{kAdministration, "Who changed which weights", "", "Any"}},
    Route{kGet, Paths{"/v2/admin/traces"}, kAdmin, kReading, OnAdminThread(admin::traces),
          Description{kAdministration, "When the last recorded requests waited, ran and were sent", "", "Any"}},
    Route{kGet, Paths{"/v2/admin/operations"}, kAdmin, kReading, OnAdminThread(rollout::admin::operations),
          Description{kAdministration, "Running and finished operations", "", "Any"}},
    Route{kGet, Paths{"/v2/admin/operations/{number}"}, kAdmin, kReading, OnAdminThread(rollout::admin::operation),
          Description{kAdministration, "An operation", "", "Any"}},
    Route{kDelete, Paths{"/v2/admin/operations/{number}"}, kAdmin, kOfListener,
          OnAdminThread(rollout::admin::cancel_operation),
          Description{kAdministration, "Cancel an operation", "", "Any"}},
    Route{kGet, Paths{"/health", "/health_generate"}, kAdmin, kAnyone, OnIoThread(answers::ready),
          Description{kTrainers, "Are all models ready; 503 if not", "", "Ready"}},
    Route{kPost, Paths{"/update_weights_from_disk"}, kAdmin, kOfListener,
          OnAdminThread(rollout::admin::update_from_disk),
          Description{kTrainers, "SGLang: weights from a file or folder", "Object", "Any"}},
    Route{kPost, Paths{"/update_weights_from_tensor"}, kAdmin, kOfListener,
          OnAdminThread(rollout::admin::update_from_tensor),
          Description{kTrainers, "SGLang: weights from the trainer's memory", "Object", "Any"}, kTensors},
    Route{
        kPost,
        Paths{"/init_weights_update_group", "/destroy_weights_update_group", "/update_weights_from_distributed",
              "/update_weights_from_ipc"},
        kAdmin, kOfListener, OnAdminThread(rollout::admin::no_transport),
        Description{kTrainers, "SGLang: weights by NCCL or ZeroMQ, which is refused", "Object", "Any", kBodyOptional}},
    Route{kPost, Paths{"/update_weight_version"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::update_version),
          Description{kTrainers, "Names the served weights", "Object", "Any"}},
    Route{kGet, Paths{"/get_weight_version", "/weight_version"}, kAdmin, kReading,
          OnAdminThread(rollout::admin::weight_version),
          Description{kTrainers, "SGLang: the served weights' name", "", "Any"}},
    Route{kGet, Paths{"/model_info", "/get_model_info"}, kAdmin, kReading, OnAdminThread(rollout::admin::model_info),
          Description{kTrainers, "SGLang: the model and its weights' name", "", "Any"}},
    Route{kPost, Paths{"/pause_generation"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::pause_generation),
          Description{kTrainers, "SGLang: an update in several requests begins", "Object", "Any", kBodyOptional}},
    Route{kPost, Paths{"/continue_generation"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::continue_generation),
          Description{kTrainers, "SGLang: publishes that update", "Object", "Any", kBodyOptional}},
    Route{kPost, Paths{"/begin_weight_update"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::begin_update),
          Description{kTrainers, "SGLang: an update in several requests begins", "Object", "Any", kBodyOptional}},
    Route{kPost, Paths{"/end_weight_update"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::end_update),
          Description{kTrainers, "SGLang: publishes that update", "Object", "Any", kBodyOptional}},
    Route{kGet, Paths{"/weights_checker"}, kAdmin, kReading, OnAdminThread(rollout::admin::weight_checksums),
          Description{kTrainers, "SGLang: checksums of the served weights", "", "Any"}},
    Route{kPost, Paths{"/weights_checker"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::check_weights),
          Description{kTrainers, "SGLang: checksums of the served weights, or whether they are those of a snapshot",
                      "Object", "Any", kBodyOptional}},
    Route{kGet, Paths{"/get_weights_by_name"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::weights_by_name),
          Description{kTrainers, "SGLang: the first rows of a weight", "", "Any"}},
    Route{kPost, Paths{"/get_weights_by_name"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::weights_by_name),
          Description{kTrainers, "SGLang: the first rows of a weight", "Object", "Any"}},
    Route{kGet, Paths{"/flush_cache"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::flush_cache),
          Description{kTrainers, "SGLang: does nothing", "", "Any"}},
    Route{kPost, Paths{"/flush_cache"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::flush_cache),
          Description{kTrainers, "SGLang: does nothing", "Object", "Any", kBodyOptional}},
    Route{kPost, Paths{"/pause"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::pause),
          Description{kTrainers, "vLLM: does nothing", "Object", "Any", kBodyOptional}},
    Route{kPost, Paths{"/resume"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::resume),
          Description{kTrainers, "vLLM: does nothing", "Object", "Any", kBodyOptional}},
    Route{kGet, Paths{"/is_paused"}, kAdmin, kReading, OnAdminThread(rollout::admin::is_paused),
          Description{kTrainers, "vLLM: false", "", "Any"}},
    Route{kPost, Paths{"/init_weight_transfer_engine"}, kAdmin, kOfListener,
          OnAdminThread(rollout::admin::init_transfer),
          Description{kTrainers, "vLLM: checks the transport", "Object", "Any"}},
    Route{kPost, Paths{"/start_weight_update"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::start_update),
          Description{kTrainers, "vLLM: begins an update", "Object", "Any", kBodyOptional}},
    Route{kPost, Paths{"/update_weights"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::update_weights),
          Description{kTrainers, "vLLM: adds tensors of the trainer's memory", "Object", "Any"}, kTensors},
    Route{kPost, Paths{"/finish_weight_update"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::finish_update),
          Description{kTrainers, "vLLM: publishes the update", "Object", "Any", kBodyOptional}},
    Route{kPost, Paths{"/shutdown_weight_transfer_engine"}, kAdmin, kOfListener,
          OnAdminThread(rollout::admin::shutdown_transfer),
          Description{kTrainers, "vLLM: drops an update that was begun", "Object", "Any", kBodyOptional}},
    Route{kPost, Paths{"/start_draft_weight_update"}, kAdmin, kOfListener,
          OnAdminThread(rollout::admin::start_draft_update),
          Description{kTrainers, "vLLM: weights of a draft model, which is refused", "Object", "Any", kBodyOptional}},
    Route{kPost, Paths{"/abort_requests"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::abort_requests),
          Description{kTrainers, "vLLM: does nothing", "Object", "Any", kBodyOptional}},
    Route{kPost, Paths{"/weight_checker"}, kAdmin, kOfListener, OnAdminThread(rollout::admin::compare_checksums),
          Description{kTrainers, "vLLM: checksums of the served weights, compared with others", "Object", "Any"},
          kTensors},
    Route{kGet, Paths{"/weight_info"}, kAdmin, kReading, OnAdminThread(rollout::admin::weight_info),
          Description{kTrainers, "vLLM: the served weights' name", "", "Any"}},
    Route{kGet, Paths{"/get_world_size"}, kAdmin, kReading, OnAdminThread(rollout::admin::world_size),
          Description{kTrainers, "vLLM: 1", "", "Any"}},
};

#undef V1_PATHS
#undef RENAMED_PATHS
#undef MODEL_PATHS

constexpr size_t kCount = kTable.size();
static_assert(kCount <= http::ConnectionCounters::kMaxRoutes);

// Conditions that HttpCall relies on.
constexpr bool is_sound(const Route& route) noexcept {
  const bool lane = is_inference(route), admin = std::holds_alternative<OnAdminThread>(route.handler);
  if (lane != (route.body == kInputs) || ((route.body == kWeights || route.body == kTensors) && !admin)) return false;
  const bool feed = std::holds_alternative<EventStream>(route.handler);
  if ((admin || feed) && route.listeners != kAdmin) return false;
  // No check_route() for these.
  if ((lane || feed) && is_control(route)) return false;
  if (lane || std::holds_alternative<OnControlThread>(route.handler)) {
    for (const std::string_view path : route.paths) {
      if (path.find("{model}") == std::string_view::npos) return false;
    }
  }
  return route.paths.begin() != route.paths.end();
}
static_assert(std::all_of(kTable.begin(), kTable.end(), is_sound));
static_assert(!std::is_default_constructible_v<Handler>, "a route without a handler compiles");

constexpr size_t count_patterns() noexcept {
  size_t count = 0;
  for (const Route& route : kTable) count += static_cast<size_t>(route.paths.end() - route.paths.begin());
  return count;
}

constexpr auto kPatterns = [] {
  std::array<http::RoutePattern, count_patterns()> patterns;
  size_t count = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const Route& route = kTable[i];
    for (const std::string_view path : route.paths) {
      patterns[count++] = http::RoutePattern(route.method, path, route.listeners, i);
    }
  }
  return patterns;
}();

constexpr auto kNames = [] {
  std::array<std::string_view, kCount> names;
  for (size_t i = 0; i < kCount; ++i) names[i] = kTable[i].paths.first();
  return names;
}();

}  // namespace

constinit const std::span<const Route> kRoutes = kTable;
constinit const std::span<const http::RoutePattern> kRoutePatterns = kPatterns;
constinit const std::span<const std::string_view> kRouteNames = kNames;

void OnAdminThread::start(const Admission& admission, rollout::Rollout& rollout, const telemetry::Telemetry& telemetry,
                          rollout::AdminRequest request, rollout::AdminDone done) const {
  if (starts != nullptr) return starts(rollout, std::move(request), std::move(done));
  if (text != nullptr)
    return rollout::start_admin(
        rollout.admin_threads, std::move(request),
        [&rollout, handler = text](const rollout::AdminRequest& given) { return handler(rollout, given); },
        std::move(done));
  rollout::start_admin(
      rollout.admin_threads, std::move(request),
      [&admission, &telemetry, handler = of_server](const rollout::AdminRequest& given) {
        return handler(admission, telemetry, given);
      },
      std::move(done));
}

}  // namespace sconce::server::api
