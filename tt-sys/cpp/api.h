// tt-metal's headers, and in one place all that differs between its versions.
//
// TT_SYS_METAL_VERSION is major * 10000 + minor * 100 + patch, as the build script found it.
#pragma once

#include <tt-metalium/distributed.hpp>
#include <tt-metalium/memory_reporter.hpp>
#include <tt-metalium/mesh_buffer.hpp>

#include "ttnn/core.hpp"
#include "ttnn/device.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/trace.hpp"
#include "ttnn/tensor/serialization.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/tensor/tensor_ops.hpp"
#include "ttnn/types.hpp"

namespace tt_sys {

namespace metal = tt::tt_metal;

// Memory at the far end of DRAM. Results of operations grow from the near end, so a tensor placed here never shares
// its address with what a trace wrote into memory that was freed after the capture.
inline ttnn::Tensor allocate_far(const metal::TensorSpec& spec, metal::distributed::MeshDevice* mesh) {
#if TT_SYS_METAL_VERSION >= 7300
    metal::distributed::DeviceLocalBufferConfig local{};
    local.page_size = spec.compute_page_size_bytes();
    local.buffer_type = spec.memory_config().buffer_type();
    local.sharding_args = spec.compute_buffer_sharding_args();
    local.bottom_up = false;
    metal::distributed::ReplicatedBufferConfig replicated{spec.compute_packed_buffer_size_bytes()};
    auto buffer = metal::distributed::MeshBuffer::create(replicated, local, mesh);
    return ttnn::Tensor(metal::MeshTensor(std::move(buffer), spec, metal::TensorTopology{}));
#else
#error "tt-metal before 0.73 is not supported: its tensors cannot be made from a buffer at the far end of DRAM"
#endif
}

}  // namespace tt_sys
