// Tests of what only the layer itself can see: sessions, slots, codes. Built with the feature `cpp-tests` and run one by one
// from tests/cpp.rs, since tt-metal keeps one device per process.
#include "../session.h"
#include "tt_sys/tests.h"

#include <functional>

namespace tt_sys {

namespace {

#define CHECK(condition)                                                                            \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            throw std::logic_error(std::string(__FILE__) + ":" + std::to_string(__LINE__) + ": " #condition); \
        }                                                                                           \
    } while (false)

// What `body` throws; an error where it throws nothing.
std::string thrown(const std::function<void()>& body) {
    try {
        body();
    } catch (const std::exception& error) {
        return error.what();
    }
    throw std::logic_error("nothing was thrown");
}

std::unique_ptr<Device> opened() {
    OpenOptions options{};
    options.trace_region_size = std::size_t{16} << 20;
    return open_device(options);
}

std::unique_ptr<Tensor> zeros(const Device& device) {
    const std::vector<float> values(32 * 64, 0.0F);
    Spec spec{};
    for (const std::uint32_t extent : {1U, 1U, 32U, 64U}) {
        spec.shape.push_back(extent);
    }
    spec.layout = code::TILE;
    return from_floats(device, spec, rust::Slice<const float>(values.data(), values.size()));
}

void codes_without_meaning_are_refused() {
    CHECK(thrown([] { dtype_of(200); }).find("200") != std::string::npos);
    CHECK(thrown([] { layout_of(2); }).find("2") != std::string::npos);
    CHECK(thrown([] { buffer_type_of(9); }).find("9") != std::string::npos);
    Placement placement{};
    placement.memory_layout = 7;
    CHECK(thrown([&] { memory_config_of(placement); }).find("7") != std::string::npos);
    for (std::uint8_t number = 0; number < 6; number++) {
        CHECK(code_of(dtype_of(number)) == number);
    }
}

void placements_come_back_as_they_went() {
    for (std::uint8_t buffer : {code::DRAM, code::L1}) {
        for (std::uint8_t layout = 0; layout < 4; layout++) {
            Placement placement{};
            placement.buffer_type = buffer;
            placement.memory_layout = layout;
            if (layout != code::INTERLEAVED) {
                placement.grid_x = 8, placement.grid_y = 3, placement.shard_height = 64, placement.shard_width = 32;
            }
            const auto back = placement_of(memory_config_of(placement));
            CHECK(back.buffer_type == buffer && back.memory_layout == layout);
            CHECK(back.grid_x == placement.grid_x && back.grid_y == placement.grid_y);
            CHECK(back.shard_height == placement.shard_height && back.shard_width == placement.shard_width);
        }
    }
}

void shards_that_cannot_cross_are_refused() {
    Placement none{};
    none.memory_layout = 2;
    CHECK(thrown([&] { memory_config_of(none); }) == "shards on no core");
    const metal::CoreRange away({1, 0}, {2, 1});
    const metal::MemoryConfig config(
        metal::TensorMemoryLayout::WIDTH_SHARDED, metal::BufferType::L1,
        metal::ShardSpec(metal::CoreRangeSet(away), {32, 32}));
    CHECK(thrown([&] { placement_of(config); }).find("no rectangle at the origin") != std::string::npos);
}

void a_handle_without_a_tensor_is_an_error_and_none_where_it_may_be() {
    const auto none = no_tensor();
    CHECK(thrown([&] { tensor_of(*none); }).find("deallocated") != std::string::npos);
    CHECK(!optional_of(*none) && !tensor_is_allocated(*none));
    deallocate(*none);
}

void closing_empties_slots_and_keeps_handles() {
    auto device = opened();
    const auto tensor = zeros(*device);
    concat_begin(*device);
    concat_push(*device, *tensor);
    CHECK(device->session->slots.size() == 1 && device->session->pieces.size() == 1);
    close_device(*device);
    CHECK(!tensor->slot->tensor && device->session->pieces.empty() && !device_is_open(*device));
    close_device(*device);
    CHECK(thrown([&] { mesh_of(*device); }) == "the device is closed");
    device.reset();
    CHECK(thrown([&] { wrap(ttnn::Tensor(), *tensor); }) == "the device is closed");
}

void a_slot_leaves_its_session_when_its_last_handle_goes() {
    const auto device = opened();
    {
        const auto first = zeros(*device);
        const Tensor second(first->slot);
        CHECK(device->session->slots.size() == 1);
    }
    CHECK(device->session->slots.empty());
}

void what_ttnn_refuses_leaves_the_session_as_it_was() {
    const auto device = opened();
    const auto tensor = zeros(*device);
    Compute compute{};
    const auto none = no_tensor();
    // 64 columns times 32 rows.
    const auto refused = [&] { linear(*tensor, *tensor, *none, 0, false, false, 0, Placement{}, compute, Program{}); };
    CHECK(!thrown(refused).empty());
    CHECK(device->session->slots.size() == 1 && tensor_is_allocated(*tensor));
    synchronize(*device);
}

void a_capture_is_watched_until_it_ends_and_no_longer() {
    const auto device = opened();
    const auto tensor = zeros(*device);
    auto& session = *device->session;
    const auto copy = [&] { return clone_tensor(*tensor, Placement{}); };
    copy();
    const auto trace = begin_trace(*device);
    CHECK(session.capturing == trace && session.high_water);
    CHECK(thrown([&] { begin_trace(*device); }).find("already") != std::string::npos);
    CHECK(thrown([&] { end_trace(*device, trace + 1); }).find("not being captured") != std::string::npos);
    const auto address = tensor_address(*copy());
    end_trace(*device, trace);
    CHECK(!session.capturing && !session.high_water && session.traces.size() == 1);
    // What the copy left is taken, so that the next one lies elsewhere.
    CHECK(tensor_address(*copy()) != address);
    release_trace(*device, trace);
    release_trace(*device, trace);
    CHECK(session.traces.empty());
    CHECK(thrown([&] { execute_trace(*device, trace, true); }).find("released") != std::string::npos);
}

void programs_are_counted_while_that_is_asked_for() {
    const auto device = opened();
    const auto tensor = zeros(*device);
    const auto copy = [&] { return clone_tensor(*tensor, Placement{}); };
    CHECK(thrown([&] { programs_counted(*device); }).find("not being counted") != std::string::npos);
    // Compiled or not, it is one.
    for (int round = 0; round < 2; round++) {
        count_programs(*device);
        CHECK(thrown([&] { count_programs(*device); }).find("already") != std::string::npos);
        copy();
        copy();
        const auto counted = programs_counted(*device);
        if (counted != 2) {
            throw std::logic_error(std::to_string(counted) + " programs for 2");
        }
    }
    count_programs(*device);
    begin_trace(*device);
    close_device(*device);
    CHECK(!device->session->program_count && !device->session->high_water && !device->session->capturing);
}

struct Test {
    const char* name;
    void (*run)();
};

#define TEST(name) \
    Test { #name, name }

constexpr Test TESTS[] = {
    TEST(codes_without_meaning_are_refused),
    TEST(placements_come_back_as_they_went),
    TEST(shards_that_cannot_cross_are_refused),
    TEST(a_handle_without_a_tensor_is_an_error_and_none_where_it_may_be),
    TEST(closing_empties_slots_and_keeps_handles),
    TEST(a_slot_leaves_its_session_when_its_last_handle_goes),
    TEST(what_ttnn_refuses_leaves_the_session_as_it_was),
    TEST(programs_are_counted_while_that_is_asked_for),
    TEST(a_capture_is_watched_until_it_ends_and_no_longer),
};

}  // namespace

rust::Vec<rust::String> test_names() {
    rust::Vec<rust::String> names;
    for (const auto& test : TESTS) {
        names.push_back(test.name);
    }
    return names;
}

void run_test(rust::Str name) {
    for (const auto& test : TESTS) {
        if (name == rust::Str(test.name)) {
            return test.run();
        }
    }
    throw std::invalid_argument("no test " + std::string(name));
}

}  // namespace tt_sys
