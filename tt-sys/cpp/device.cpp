// Opening, closing and asking a device; traces.
#include "session.h"

#include <tt-metalium/graph_tracking.hpp>

#include "ttnn/graph/graph_processor.hpp"
#include "ttnn/graph/graph_trace_utils.hpp"

namespace tt_sys {

// How far from the near end of DRAM a capture has allocated, its operations' own temporaries included.
class HighWater : public metal::IGraphProcessor {
public:
    void track_allocate(const metal::Buffer* buffer) override {
        if (buffer->buffer_type() == metal::BufferType::DRAM) {
            end = std::max<std::uint64_t>(end, buffer->address() + buffer->aligned_size_per_bank());
        }
    }

    std::uint64_t end = 0;
};

class ProgramCount : public metal::IGraphProcessor {
public:
    void track_program(metal::Program*, const metal::IDevice*) override { programs++; }

    std::uint64_t programs = 0;
};

namespace {

// Takes what is free of DRAM before `end`. A trace writes where its operations had their temporaries, although these were
// freed; whatever came to lie there (a tensor, a kernel that is compiled later) would be overwritten by a replay.
Fillers fill_before(std::uint64_t end, metal::distributed::MeshDevice& mesh) {
    constexpr std::uint64_t SMALLEST = 64, LARGEST = std::uint64_t{1} << 32;
    const auto banks = metal::detail::GetMemoryView(&mesh, metal::BufferType::DRAM).num_banks;
    Fillers fillers;
    for (std::uint64_t size = LARGEST; size >= SMALLEST;) {
        metal::distributed::DeviceLocalBufferConfig local{};
        local.page_size = std::min<std::uint64_t>(size, 1024);
        local.buffer_type = metal::BufferType::DRAM;
        local.bottom_up = true;
        const auto largest = metal::detail::GetMemoryView(&mesh, metal::BufferType::DRAM);
        std::shared_ptr<metal::distributed::MeshBuffer> filler;
        if (size <= largest.largest_contiguous_bytes_free_per_bank) {
            const metal::distributed::ReplicatedBufferConfig all{size * banks};
            filler = metal::distributed::MeshBuffer::create(all, local, &mesh);
        }
        if (filler && filler->address() < end) {
            fillers.push_back(std::move(filler));
        } else {
            size /= 2;
        }
    }
    return fillers;
}

// tt-metal takes the trace region from the size of DRAM without looking whether that is enough.
void check_trace_region(std::uint64_t wanted, const metal::distributed::MeshDevice& mesh) {
    const std::uint64_t there =
        std::uint64_t{mesh.dram_size_per_channel()} * static_cast<std::uint64_t>(mesh.num_dram_channels());
    if (wanted >= there) {
        throw std::invalid_argument(
            "trace_region_size is " + std::to_string(wanted) + " bytes, but the card has " + std::to_string(there) +
            " of DRAM");
    }
}

}  // namespace

std::unique_ptr<Device> open_device(const OpenOptions& options) {
    auto session = std::make_shared<Session>();
    session->mesh =
        ttnn::open_mesh_device(options.device_id, options.l1_small_size, options.trace_region_size, 1);
    check_trace_region(options.trace_region_size, *session->mesh);
    session->mesh->enable_program_cache();
    return std::make_unique<Device>(std::move(session));
}

void close_device(const Device& device) { device.session->close(); }

bool device_is_open(const Device& device) { return device.session->mesh != nullptr; }

DeviceFacts device_facts(const Device& device) {
    auto& mesh = mesh_of(device);
    const auto grid = mesh.compute_with_storage_grid_size();
    const auto dram = metal::detail::GetMemoryView(&mesh, metal::BufferType::DRAM);
    DeviceFacts facts{};
    facts.arch = tt::arch_to_str(mesh.arch());
    facts.grid_x = static_cast<std::uint32_t>(grid.x);
    facts.grid_y = static_cast<std::uint32_t>(grid.y);
    facts.dram_banks = static_cast<std::uint32_t>(dram.num_banks);
    facts.dram_bank_bytes = dram.total_bytes_per_bank;
    facts.l1_bytes = mesh.l1_size_per_core();
    facts.clock_mhz = static_cast<std::uint32_t>(mesh.get_clock_rate_mhz());
    return facts;
}

void synchronize(const Device& device) { metal::distributed::Finish(mesh_of(device).mesh_command_queue()); }

MemoryUse memory_use(const Device& device, std::uint8_t buffer_type) {
    const auto view = metal::detail::GetMemoryView(&mesh_of(device), buffer_type_of(buffer_type));
    MemoryUse use{};
    use.banks = view.num_banks;
    use.total_per_bank = view.total_bytes_per_bank;
    use.allocated_per_bank = view.total_bytes_allocated_per_bank;
    use.largest_free_per_bank = view.largest_contiguous_bytes_free_per_bank;
    return use;
}

void begin_query(const Device& device) {
    mesh_of(device);
    ttnn::graph::GraphProcessor::begin_graph_capture(ttnn::graph::GraphProcessor::RunMode::NO_DISPATCH);
}

Resources end_query(const Device& device) {
    const auto trace = ttnn::graph::GraphProcessor::end_graph_capture();
    mesh_of(device);
    const auto usage = ttnn::graph::extract_resource_usage_per_core(trace);
    Resources resources{};
    resources.circular_buffers = usage.peak_cb;
    resources.l1_buffers = usage.peak_l1;
    resources.l1_total = usage.peak_total;
    return resources;
}

rust::String runtime_version() {
    constexpr int VERSION = TT_SYS_METAL_VERSION;
    return std::to_string(VERSION / 10000) + "." + std::to_string(VERSION / 100 % 100) + "." +
           std::to_string(VERSION % 100);
}

void count_programs(const Device& device) {
    mesh_of(device);
    if (device.session->program_count) {
        throw std::runtime_error("programs are being counted already");
    }
    device.session->program_count = std::make_shared<ProgramCount>();
    metal::GraphTracker::instance().push_processor(device.session->program_count);
}

std::uint64_t programs_counted(const Device& device) {
    const auto count = std::exchange(device.session->program_count, nullptr);
    if (!count) {
        throw std::runtime_error("programs are not being counted");
    }
    metal::GraphTracker::instance().pop_processor();
    return count->programs;
}

std::uint32_t begin_trace(const Device& device) {
    auto& session = *device.session;
    auto& mesh = mesh_of(device);
    if (session.capturing) {
        throw std::runtime_error("a trace is being captured already");
    }
    const std::uint32_t trace = *ttnn::operations::trace::begin_trace_capture(&mesh, ttnn::QueueId(0));
    session.capturing = trace;
    session.traces[trace];
    session.high_water = std::make_shared<HighWater>();
    metal::GraphTracker::instance().push_processor(session.high_water);
    return trace;
}

void end_trace(const Device& device, std::uint32_t trace) {
    auto& session = *device.session;
    auto& mesh = mesh_of(device);
    if (session.capturing != trace) {
        throw std::runtime_error("trace " + std::to_string(trace) + " is not being captured");
    }
    session.capturing.reset();
    metal::GraphTracker::instance().pop_processor();
    const std::uint64_t end = std::exchange(session.high_water, nullptr)->end;
    const auto others = mesh.get_trace_buffers_size();
    try {
        ttnn::operations::trace::end_trace_capture(&mesh, metal::distributed::MeshTraceId(trace), ttnn::QueueId(0));
    } catch (...) {
        // tt-metal has added the trace's size although it found no room for it, and would refuse smaller ones later.
        mesh.set_trace_buffers_size(others);
        throw;
    }
    session.traces[trace] = fill_before(end, mesh);
}

void execute_trace(const Device& device, std::uint32_t trace, bool blocking) {
    auto& mesh = mesh_of(device);
    if (!device.session->traces.contains(trace)) {
        throw std::runtime_error("trace " + std::to_string(trace) + " was released");
    }
    ttnn::operations::trace::execute_trace(
        &mesh, metal::distributed::MeshTraceId(trace), ttnn::QueueId(0), blocking);
}

void release_trace(const Device& device, std::uint32_t trace) {
    auto& mesh = mesh_of(device);
    if (device.session->traces.erase(trace) == 1) {
        ttnn::operations::trace::release_trace(&mesh, metal::distributed::MeshTraceId(trace));
    }
}

}  // namespace tt_sys
