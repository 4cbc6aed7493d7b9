// What the handles point to, and conversions between the bridge's plain types and tt-metal's.
#pragma once

#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "api.h"
#include "tt-sys/src/bridge.rs.h"
#include "tt_sys/handles.h"

namespace tt_sys {

// A tensor's place in its session. Emptied when the tensor is deallocated or the device closed; the handle may live on.
struct Slot {
    std::weak_ptr<Session> session;
    std::optional<ttnn::Tensor> tensor;

    ~Slot();
};

// Everything that keeps others out of the memory that a trace writes.
using Fillers = std::vector<std::shared_ptr<metal::distributed::MeshBuffer>>;

// Watches allocations during a capture.
class HighWater;

// Counts programs that are sent to the device.
class ProgramCount;

// An open device with everything that must go before it does.
struct Session {
    std::shared_ptr<metal::distributed::MeshDevice> mesh;
    std::unordered_set<Slot*> slots;
    std::unordered_map<std::uint32_t, Fillers> traces;
    std::shared_ptr<HighWater> high_water;
    std::shared_ptr<ProgramCount> program_count;
    std::optional<std::uint32_t> capturing;
    std::vector<ttnn::Tensor> pieces;

    // Frees tensors and traces, then closes the device. Does nothing the second time.
    void close();
    ~Session();
};

metal::distributed::MeshDevice& mesh_of(const Device& device);

// The tensor of a handle; an error where there is none any more.
ttnn::Tensor& tensor_of(const Tensor& handle);
std::optional<ttnn::Tensor> optional_of(const Tensor& handle);

// A handle to `tensor` in the session of `like`.
std::unique_ptr<Tensor> wrap(ttnn::Tensor tensor, const Tensor& like);
std::unique_ptr<Tensor> wrap(ttnn::Tensor tensor, const std::shared_ptr<Session>& session);
std::shared_ptr<Slot> slot_of(ttnn::Tensor tensor, const std::shared_ptr<Session>& session);

// Numbers that cross the bridge, as `spec.rs` has them; data types are in `session.cpp`.
namespace code {
constexpr std::uint8_t ROW_MAJOR = 0, TILE = 1;
constexpr std::uint8_t DRAM = 0, L1 = 1, TRACE = 2;
constexpr std::uint8_t INTERLEAVED = 0;
}  // namespace code

metal::DataType dtype_of(std::uint8_t number);
std::uint8_t code_of(metal::DataType dtype);
metal::Layout layout_of(std::uint8_t number);
metal::BufferType buffer_type_of(std::uint8_t number);
metal::MemoryConfig memory_config_of(Placement placement);
Placement placement_of(const metal::MemoryConfig& config);
metal::TensorSpec spec_of(const Spec& spec);
ttnn::DeviceComputeKernelConfig compute_of(const ttnn::Tensor& x, const Compute& compute);

}  // namespace tt_sys
