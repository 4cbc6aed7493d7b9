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

#ifdef TT_SYS_PACKAGE
// Installed packages hold these functions, but not their headers, or not all that those include.
#include "ttnn/operations/transformer/sdpa_config.hpp"

namespace ttnn {
Tensor clone(
    const Tensor& input,
    const std::optional<DataType>& dtype,
    const std::optional<MemoryConfig>& memory_config,
    const std::optional<DeviceComputeKernelConfig>& compute_kernel_config);
namespace experimental {
Tensor rotary_embedding_hf(
    const Tensor& input,
    const Tensor& cos,
    const Tensor& sin,
    bool is_decode_mode,
    const std::optional<MemoryConfig>& memory_config,
    std::optional<const DeviceComputeKernelConfig> compute_kernel_config);
}  // namespace experimental
namespace transformer {
Tensor scaled_dot_product_attention(
    const Tensor& q,
    const Tensor& k,
    const Tensor& v,
    const std::optional<Tensor>& mask,
    bool is_causal,
    std::optional<float> scale,
    std::optional<std::uint32_t> sliding_window_size,
    const std::optional<MemoryConfig>& memory_config,
    std::optional<operations::transformer::SDPAProgramConfig> program_config,
    std::optional<DeviceComputeKernelConfig> compute_kernel_config,
    const std::optional<Tensor>& attention_sink = std::nullopt);
}  // namespace transformer
}  // namespace ttnn
#else
#include "ttnn/operations/data_movement/clone/clone.hpp"
#include "ttnn/operations/experimental/transformer/rotary_embedding_hf/rotary_embedding_hf.hpp"
#include "ttnn/operations/transformer/sdpa/sdpa.hpp"
#endif

namespace tt_sys {

namespace metal = tt::tt_metal;

// Declared in one namespace or another.
using MathFidelity = decltype(ttnn::DeviceComputeKernelConfig::math_fidelity);

// Memory at the far end of DRAM. Results of operations grow from the near end, so a tensor placed here never shares
// its address with what a trace wrote into memory that was freed after the capture.
inline ttnn::Tensor allocate_far(const metal::TensorSpec& spec, metal::distributed::MeshDevice* mesh) {
    metal::distributed::DeviceLocalBufferConfig local{};
    local.page_size = spec.compute_page_size_bytes();
    local.buffer_type = spec.memory_config().buffer_type();
    local.sharding_args = spec.compute_buffer_sharding_args();
    local.bottom_up = false;
    metal::distributed::ReplicatedBufferConfig replicated{spec.compute_packed_buffer_size_bytes()};
    auto buffer = metal::distributed::MeshBuffer::create(replicated, local, mesh);
    return ttnn::Tensor(metal::MeshTensor(std::move(buffer), spec, metal::TensorTopology{}));
}

}  // namespace tt_sys
