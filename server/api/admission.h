// Admission: the objects that decide whether and when a request runs: models, access, limits of memory. Constructed
// before the first connection; outlives the last. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "server/codecs/shared_memory.h"
#include "server/http/access/credentials.h"
#include "server/http/access/web_pages.h"
#include "server/registry/model_loader.h"
#include "server/registry/repository.h"
#include "server/support/cached_text.h"
#include "server/support/config.h"
#include "server/support/memory/request_budget.h"
#include "server/support/thread_pool.h"

namespace sconce::server::api {

struct Admission {
  // All arguments outlive the object. draining: the server is not ready, and each answer closes its connection.
  Admission(const ServerConfig& config, registry::Repository& repository, registry::ModelLoader& loader,
            RequestBudget& request_memory, const std::atomic<bool>& draining)
      : config(config), repository(repository), loader(loader), request_memory(request_memory), draining(draining) {}

  const ServerConfig& config;
  registry::Repository& repository;
  registry::ModelLoader& loader;
  RequestBudget& request_memory;
  const std::atomic<bool>& draining;
  http::Credentials credentials{config};
  codecs::SharedMemory shared_memory{config.allow_shared_memory};
  const http::CorsRule cors{config.http_cors_origins};
  ThreadPool heavy_work;
  // For many models: the index, the index of ready models, and the names. Changes without a revision number become
  // visible up to half a second later.
  CachedText index{std::chrono::milliseconds(500)}, ready_index{std::chrono::milliseconds(500)},
      model_names{std::chrono::milliseconds(500)};
  std::atomic<uint64_t> controls{0};  // manual loads and unloads that have ended
  // Set these before the first request.
  std::string public_url;    // "http://127.0.0.1:8000", for the page; empty: off
  std::string admin_url;     // likewise for the admin listener
  std::string grpc_address;  // "127.0.0.1:8001"; empty: off
  uint8_t checks_host = 0;   // listeners that refuse a foreign Host, unless a token is needed
};

}  // namespace sconce::server::api
