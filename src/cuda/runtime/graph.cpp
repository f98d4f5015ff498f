#include "src/cuda/runtime/graph.h"

#include <algorithm>

#include "src/cuda/runtime/caching_allocator.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/graph_copies.h"

namespace sconce::cuda {

std::vector<cudaGraphNode_t> record_copies(size_t count, cudaStream_t stream) {
  std::vector<cudaGraphNode_t> nodes;
  for (size_t first = 0; first < count; first += kPiecesAtOnce) {
    launch_copies(CopyPieces{}, 1, stream);
    SCONCE_CUDA(cudaGetLastError());
    // The stream's next operation would wait for the newest node, so this gives the node of the copy.
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t* last = nullptr;
    size_t waits = 0;
    SCONCE_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, nullptr, &waits));
    SCONCE_CHECK(status == cudaStreamCaptureStatusActive && waits == 1, kDevice,
                 "recording a CUDA graph: a copy did not become one node");
    nodes.push_back(*last);
  }
  return nodes;
}

Graph::Graph(cudaGraph_t recorded, CachingAllocator* memory, cudaStream_t stream,
             std::vector<std::shared_ptr<const void>> kept, std::vector<cudaGraphNode_t> before,
             std::vector<cudaGraphNode_t> after)
    : recorded_(recorded),
      memory_(memory),
      stream_(stream),
      kept_(std::move(kept)),
      before_{std::move(before), {}},
      after_{std::move(after), {}} {
  SCONCE_CUDA(cudaGraphInstantiate(&graph_, recorded, 0));
}

Graph::~Graph() {
  SCONCE_CUDA_RELEASE(cudaGraphExecDestroy(graph_));
  SCONCE_CUDA_RELEASE(cudaGraphDestroy(recorded_));
  memory_->orphan();
}

void Graph::set(Copies& copies, std::span<const DeviceCopy> wanted) {
  if (std::equal(wanted.begin(), wanted.end(), copies.last.begin(), copies.last.end())) return;
  SCONCE_CHECK(wanted.size() <= copies.nodes.size() * kPiecesAtOnce, kInternal, "CUDA graph: ", wanted.size(),
               " pieces to copy are more than were reserved");
  for (size_t n = 0; n < copies.nodes.size(); ++n) {
    CopyPieces pieces{};
    int count = 0;
    for (size_t i = n * kPiecesAtOnce; i < std::min(wanted.size(), (n + 1) * kPiecesAtOnce); ++i)
      pieces.of[count++] = {wanted[i].from, wanted[i].to, wanted[i].bytes};
    void* argument = nullptr;
    const cudaKernelNodeParams params = copy_node(pieces, std::max(count, 1), &argument);
    copies.last.clear();  // if setting fails halfway, no arguments are known
    SCONCE_CUDA(cudaGraphExecKernelNodeSetParams(graph_, copies.nodes[n], &params));
  }
  copies.last.assign(wanted.begin(), wanted.end());
}

void Graph::launch(std::span<const DeviceCopy> before, std::span<const DeviceCopy> after) {
  set(before_, before);
  set(after_, after);
  SCONCE_CUDA(cudaGraphLaunch(graph_, stream_));
}

}  // namespace sconce::cuda
