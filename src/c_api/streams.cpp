// Weights that arrive as a stream of bytes, in C: sconce_update_begin_stream() and sconce_update_stream_*.
#include <algorithm>
#include <cstring>

#include "src/c_api/boundary.h"
#include "src/c_api/handles.h"
#include "src/c_api/options.h"
#include "src/c_api/structs.h"

using namespace sconce;
using namespace sconce::c_api;

namespace {

using State = sconce_update::Stream;

sconce_update& open_stream(sconce_update* given) {
  sconce_update& update = required(given, "update");
  SCONCE_CHECK(update.state == State::kOpen, kFailedPrecondition,
               update.state == State::kNone     ? "the update has no stream: call sconce_update_begin_stream() first"
               : update.state == State::kFailed ? "the stream of weights has failed: free the update"
                                                : "the stream of weights has ended");
  return update;
}

// Runs a step of the stream. If it throws, the stream cannot be used again.
template <class Step>
void step_of(sconce_update& update, Step step) {
  update.state = State::kFailed;
  step(*update.stream);
  update.state = State::kOpen;
}

}  // namespace

sconce_error* sconce_update_begin_stream(sconce_update* update, const sconce_stream_options* options) noexcept {
  return guarded([&] {
    const State state = required(update, "update").state;
    SCONCE_CHECK(state == State::kNone, kFailedPrecondition, "the update has a stream already");
    SCONCE_CHECK(!update->declared, kFailedPrecondition,
                 "the update's entries are declared; a stream declares them itself");
    const auto given = taken(options, "options");
    StreamOptions stream;
    stream.source = given.source ? given.source : "stream";
    if (given.bytes > 0) stream.bytes = given.bytes;
    if (given.sha256) stream.sha256 = digest_of(given.sha256, "options");
    update->stream.emplace(*update->update, std::move(stream));
    update->state = State::kOpen;
  });
}

sconce_error* sconce_update_stream_next(sconce_update* given, void** bytes, size_t* size) noexcept {
  return guarded([&] {
    sconce_update& update = open_stream(given);
    required(bytes, "bytes");
    required(size, "size");
    step_of(update, [&](WeightStream& stream) {
      const std::span<std::byte> room = stream.next();
      *bytes = room.data();
      *size = update.room = room.size();
    });
  });
}

sconce_error* sconce_update_stream_advance(sconce_update* given, size_t size) noexcept {
  return guarded([&] {
    sconce_update& update = open_stream(given);
    SCONCE_CHECK(size <= update.room, kInvalidArgument, "size: ", size, " bytes are more than the ", update.room,
                 " that sconce_update_stream_next() gave room for");
    update.room = 0;
    step_of(update, [&](WeightStream& stream) { stream.advance(size); });
  });
}

sconce_error* sconce_update_stream_write(sconce_update* given, const void* bytes, size_t size) noexcept {
  return guarded([&] {
    sconce_update& update = open_stream(given);
    SCONCE_CHECK(bytes || size == 0, kInvalidArgument, "bytes is null, and size is ", size);
    update.room = 0;
    step_of(update, [&](WeightStream& stream) {
      for (const auto* from = static_cast<const std::byte*>(bytes); size > 0;) {
        const std::span<std::byte> room = stream.next();
        const size_t piece = std::min(size, room.size());
        std::memcpy(room.data(), from, piece);
        stream.advance(piece);
        from += piece;
        size -= piece;
      }
    });
  });
}

sconce_error* sconce_update_stream_end(sconce_update* given) noexcept {
  return guarded([&] {
    sconce_update& update = open_stream(given);
    step_of(update, [](WeightStream& stream) { stream.end(); });
    update.state = State::kEnded;
  });
}

sconce_error* sconce_update_stream_progress(const sconce_update* update, uint64_t* done, uint64_t* total) noexcept {
  return guarded([&] {
    SCONCE_CHECK(required(update, "update").stream, kFailedPrecondition,
                 "the update has no stream: call sconce_update_begin_stream() first");
    if (done) *done = update->stream->bytes_done();
    if (total) *total = update->stream->bytes_total();
  });
}
