// Sessions, slots and conversions.
#include "session.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <tt-metalium/graph_tracking.hpp>

namespace tt_sys {

namespace {

// At each code its data type.
constexpr metal::DataType DATA_TYPES[] = {
    metal::DataType::BFLOAT16,
    metal::DataType::FLOAT32,
    metal::DataType::UINT32,
    metal::DataType::BFLOAT8_B,
    metal::DataType::BFLOAT4_B,
    metal::DataType::INT32};

// At each code its memory layout.
constexpr metal::TensorMemoryLayout MEMORY_LAYOUTS[] = {
    metal::TensorMemoryLayout::INTERLEAVED,
    metal::TensorMemoryLayout::HEIGHT_SHARDED,
    metal::TensorMemoryLayout::WIDTH_SHARDED,
    metal::TensorMemoryLayout::BLOCK_SHARDED};

}  // namespace

Slot::~Slot() {
    if (auto open = session.lock()) {
        open->slots.erase(this);
    }
}

void Session::close() {
    if (!mesh) {
        return;
    }
    pieces.clear();
    if (const auto trace = std::exchange(capturing, std::nullopt)) {
        // Closing waits for ever for the work of a capture that is not ended.
        try {
            ttnn::operations::trace::end_trace_capture(
                mesh.get(), metal::distributed::MeshTraceId(*trace), ttnn::QueueId(0));
        } catch (...) {
            // No room for it, which nobody wants any more.
        }
    }
    if (std::exchange(high_water, nullptr)) {
        metal::GraphTracker::instance().pop_processor();
    }
    if (std::exchange(program_count, nullptr)) {
        metal::GraphTracker::instance().pop_processor();
    }
    for (Slot* slot : slots) {
        slot->tensor.reset();
    }
    for (const auto& [trace, fillers] : traces) {
        ttnn::operations::trace::release_trace(mesh.get(), metal::distributed::MeshTraceId(trace));
    }
    traces.clear();
    auto closing = std::move(mesh);
    mesh.reset();
    ttnn::close_device(*closing);
}

Session::~Session() {
    try {
        close();
    } catch (...) {
        // The device could not be closed in order; the process that owns it is ending it anyway.
    }
}

Device::Device(std::shared_ptr<Session> opened) : session(std::move(opened)) {}

Device::~Device() {
    try {
        session->close();
    } catch (...) {
        // As above: a destructor has no one to tell.
    }
}

Tensor::Tensor() = default;
Tensor::Tensor(std::shared_ptr<Slot> taken) : slot(std::move(taken)) {}
Tensor::~Tensor() = default;

metal::distributed::MeshDevice& mesh_of(const Device& device) {
    if (!device.session->mesh) {
        throw std::runtime_error("the device is closed");
    }
    return *device.session->mesh;
}

ttnn::Tensor& tensor_of(const Tensor& handle) {
    if (!handle.slot || !handle.slot->tensor) {
        throw std::runtime_error("the tensor was deallocated, or its device closed");
    }
    return *handle.slot->tensor;
}

std::optional<ttnn::Tensor> optional_of(const Tensor& handle) {
    if (!handle.slot) {
        return std::nullopt;
    }
    return tensor_of(handle);
}

std::shared_ptr<Slot> slot_of(ttnn::Tensor tensor, const std::shared_ptr<Session>& session) {
    auto slot = std::make_shared<Slot>();
    slot->session = session;
    slot->tensor = std::move(tensor);
    session->slots.insert(slot.get());
    return slot;
}

std::unique_ptr<Tensor> wrap(ttnn::Tensor tensor, const std::shared_ptr<Session>& session) {
    return std::make_unique<Tensor>(slot_of(std::move(tensor), session));
}

std::unique_ptr<Tensor> wrap(ttnn::Tensor tensor, const Tensor& like) {
    auto session = like.slot->session.lock();
    if (!session) {
        throw std::runtime_error("the device is closed");
    }
    return wrap(std::move(tensor), session);
}

metal::DataType dtype_of(std::uint8_t number) {
    if (number >= std::size(DATA_TYPES)) {
        throw std::invalid_argument("data type code " + std::to_string(number));
    }
    return DATA_TYPES[number];
}

std::uint8_t code_of(metal::DataType dtype) {
    const auto found = std::find(std::begin(DATA_TYPES), std::end(DATA_TYPES), dtype);
    if (found == std::end(DATA_TYPES)) {
        throw std::invalid_argument("a data type that has no place here");
    }
    return static_cast<std::uint8_t>(found - std::begin(DATA_TYPES));
}

metal::Layout layout_of(std::uint8_t number) {
    switch (number) {
        case code::ROW_MAJOR: return metal::Layout::ROW_MAJOR;
        case code::TILE: return metal::Layout::TILE;
        default: throw std::invalid_argument("layout code " + std::to_string(number));
    }
}

metal::BufferType buffer_type_of(std::uint8_t number) {
    switch (number) {
        case code::DRAM: return metal::BufferType::DRAM;
        case code::L1: return metal::BufferType::L1;
        case code::TRACE: return metal::BufferType::TRACE;
        default: throw std::invalid_argument("memory code " + std::to_string(number));
    }
}

metal::MemoryConfig memory_config_of(Placement placement) {
    if (placement.memory_layout >= std::size(MEMORY_LAYOUTS)) {
        throw std::invalid_argument("memory layout code " + std::to_string(placement.memory_layout));
    }
    const auto layout = MEMORY_LAYOUTS[placement.memory_layout];
    const auto buffer_type = buffer_type_of(placement.buffer_type);
    if (placement.memory_layout == code::INTERLEAVED) {
        return metal::MemoryConfig(layout, buffer_type);
    }
    if (placement.grid_x == 0 || placement.grid_y == 0) {
        throw std::invalid_argument("shards on no core");
    }
    const metal::CoreRange cores({0, 0}, {placement.grid_x - 1, placement.grid_y - 1});
    return metal::MemoryConfig(
        layout, buffer_type,
        metal::ShardSpec(metal::CoreRangeSet(cores), {placement.shard_height, placement.shard_width}));
}

Placement placement_of(const metal::MemoryConfig& config) {
    const auto layout = std::find(std::begin(MEMORY_LAYOUTS), std::end(MEMORY_LAYOUTS), config.memory_layout());
    if (layout == std::end(MEMORY_LAYOUTS)) {
        throw std::invalid_argument("a memory layout that has no place here");
    }
    Placement placement{};
    placement.buffer_type = config.buffer_type() == metal::BufferType::L1 ? code::L1 : code::DRAM;
    placement.memory_layout = static_cast<std::uint8_t>(layout - std::begin(MEMORY_LAYOUTS));
    if (placement.memory_layout == code::INTERLEAVED) {
        return placement;
    }
    if (!config.shard_spec()) {
        throw std::invalid_argument("shards of more than two dimensions, which have no place here");
    }
    const auto& shards = *config.shard_spec();
    const auto cores = shards.grid.bounding_box();
    if (cores.start_coord != metal::CoreCoord(0, 0) || shards.grid.num_cores() != cores.size()) {
        throw std::invalid_argument("shards on cores that are no rectangle at the origin");
    }
    placement.grid_x = static_cast<std::uint32_t>(cores.end_coord.x) + 1;
    placement.grid_y = static_cast<std::uint32_t>(cores.end_coord.y) + 1;
    placement.shard_height = shards.shape[0];
    placement.shard_width = shards.shape[1];
    return placement;
}

metal::TensorSpec spec_of(const Spec& spec) {
    ttsl::SmallVector<std::uint32_t> shape(spec.shape.begin(), spec.shape.end());
    return metal::TensorSpec(
        metal::Shape(std::move(shape)),
        metal::TensorLayout(
            dtype_of(spec.dtype), metal::PageConfig(layout_of(spec.layout)), memory_config_of(spec.placement)));
}

ttnn::DeviceComputeKernelConfig compute_of(const ttnn::Tensor& x, const Compute& compute) {
    constexpr MathFidelity FIDELITIES[] = {
        MathFidelity::LoFi, MathFidelity::HiFi2, MathFidelity::HiFi3, MathFidelity::HiFi4};
    if (compute.fidelity >= std::size(FIDELITIES)) {
        throw std::invalid_argument("math fidelity code " + std::to_string(compute.fidelity));
    }
    return ttnn::init_device_compute_kernel_config(
        x.device()->arch(),
        std::nullopt,
        FIDELITIES[compute.fidelity],
        compute.approximate,
        compute.fp32_dest,
        compute.packer_l1);
}

}  // namespace tt_sys
