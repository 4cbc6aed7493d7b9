// Sessions, slots and conversions.
#include "session.h"

namespace tt_sys {

namespace {

constexpr std::uint8_t BFLOAT16 = 0, FLOAT32 = 1, UINT32 = 2, BFLOAT8_B = 3, BFLOAT4_B = 4, INT32 = 5;
constexpr std::uint8_t ROW_MAJOR = 0, TILE = 1;
constexpr std::uint8_t INTERLEAVED = 0, HEIGHT_SHARDED = 1, WIDTH_SHARDED = 2, BLOCK_SHARDED = 3;
constexpr std::uint8_t L1 = 1;

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

metal::DataType dtype_of(std::uint8_t code) {
    switch (code) {
        case BFLOAT16: return metal::DataType::BFLOAT16;
        case FLOAT32: return metal::DataType::FLOAT32;
        case UINT32: return metal::DataType::UINT32;
        case BFLOAT8_B: return metal::DataType::BFLOAT8_B;
        case BFLOAT4_B: return metal::DataType::BFLOAT4_B;
        case INT32: return metal::DataType::INT32;
        default: throw std::invalid_argument("data type code " + std::to_string(code));
    }
}

std::uint8_t code_of(metal::DataType dtype) {
    switch (dtype) {
        case metal::DataType::BFLOAT16: return BFLOAT16;
        case metal::DataType::FLOAT32: return FLOAT32;
        case metal::DataType::UINT32: return UINT32;
        case metal::DataType::BFLOAT8_B: return BFLOAT8_B;
        case metal::DataType::BFLOAT4_B: return BFLOAT4_B;
        case metal::DataType::INT32: return INT32;
        default: throw std::invalid_argument("a data type that has no place here");
    }
}

metal::Layout layout_of(std::uint8_t code) {
    switch (code) {
        case ROW_MAJOR: return metal::Layout::ROW_MAJOR;
        case TILE: return metal::Layout::TILE;
        default: throw std::invalid_argument("layout code " + std::to_string(code));
    }
}

metal::MemoryConfig memory_config_of(const Placement& placement) {
    const auto buffer_type = placement.buffer_type == L1 ? metal::BufferType::L1 : metal::BufferType::DRAM;
    if (placement.memory_layout == INTERLEAVED) {
        return metal::MemoryConfig(metal::TensorMemoryLayout::INTERLEAVED, buffer_type);
    }
    const metal::CoreRangeSet cores(
        metal::CoreRange({0, 0}, {placement.grid_x - std::size_t{1}, placement.grid_y - std::size_t{1}}));
    const metal::ShardSpec shard(
        cores, {placement.shard_rows, placement.shard_columns}, metal::ShardOrientation::ROW_MAJOR);
    switch (placement.memory_layout) {
        case HEIGHT_SHARDED:
            return metal::MemoryConfig(metal::TensorMemoryLayout::HEIGHT_SHARDED, buffer_type, shard);
        case WIDTH_SHARDED:
            return metal::MemoryConfig(metal::TensorMemoryLayout::WIDTH_SHARDED, buffer_type, shard);
        case BLOCK_SHARDED:
            return metal::MemoryConfig(metal::TensorMemoryLayout::BLOCK_SHARDED, buffer_type, shard);
        default: throw std::invalid_argument("memory layout code " + std::to_string(placement.memory_layout));
    }
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
