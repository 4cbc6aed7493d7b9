// Handles that cross the bridge. No header of tt-metal is needed here, so that the generated code compiles fast and
// knows nothing of its types: each handle is a pointer to what only the layer's own sources can see.
#pragma once

#include <cstdint>
#include <memory>

#include "rust/cxx.h"

namespace tt_sys {

struct Session;
struct Slot;

struct OpenOptions;
struct DeviceFacts;
struct MemoryUse;
struct Placement;
struct Spec;
struct Compute;
struct Program;
struct Resources;

// One open device. Destroying it closes it.
class Device {
public:
    explicit Device(std::shared_ptr<Session> session);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    std::shared_ptr<Session> session;
};

// One tensor on a device, or none at all (an argument left out). Destroying it gives its memory back, before or after
// the device was closed.
class Tensor {
public:
    Tensor();
    explicit Tensor(std::shared_ptr<Slot> slot);
    ~Tensor();
    Tensor(const Tensor&) = delete;
    Tensor& operator=(const Tensor&) = delete;

    std::shared_ptr<Slot> slot;
};

// Device.
std::unique_ptr<Device> open_device(const OpenOptions& options);
void close_device(const Device& device);
bool device_is_open(const Device& device);
DeviceFacts device_facts(const Device& device);
void synchronize(const Device& device);
MemoryUse memory_use(const Device& device, std::uint8_t buffer_type);
void begin_query(const Device& device);
Resources end_query(const Device& device);
rust::String runtime_version();
void count_programs(const Device& device);
std::uint64_t programs_counted(const Device& device);

// Traces.
std::uint32_t begin_trace(const Device& device);
void end_trace(const Device& device, std::uint32_t trace);
void execute_trace(const Device& device, std::uint32_t trace, bool blocking);
void release_trace(const Device& device, std::uint32_t trace);

// Tensors.
std::unique_ptr<Tensor> no_tensor();
std::unique_ptr<Tensor> from_floats(const Device& device, const Spec& spec, rust::Slice<const float> values);
std::unique_ptr<Tensor> from_u32(const Device& device, const Spec& spec, rust::Slice<const std::uint32_t> values);
std::unique_ptr<Tensor> from_i32(const Device& device, const Spec& spec, rust::Slice<const std::int32_t> values);
std::unique_ptr<Tensor> allocate(const Device& device, const Spec& spec);
void write_floats(const Tensor& tensor, rust::Slice<const float> values);
void write_u32(const Tensor& tensor, rust::Slice<const std::uint32_t> values);
void write_i32(const Tensor& tensor, rust::Slice<const std::int32_t> values);
void read_floats(const Tensor& tensor, rust::Slice<float> out);
void read_u32(const Tensor& tensor, rust::Slice<std::uint32_t> out);
void read_i32(const Tensor& tensor, rust::Slice<std::int32_t> out);
Spec tensor_spec(const Tensor& tensor);
std::uint64_t tensor_address(const Tensor& tensor);
bool tensor_is_allocated(const Tensor& tensor);
void deallocate(const Tensor& tensor);
void dump_tensor(const Tensor& tensor, rust::Str path);
std::unique_ptr<Tensor> load_tensor(const Device& device, rust::Str path);

// Operations.
std::unique_ptr<Tensor> linear(
    const Tensor& x,
    const Tensor& w,
    const Tensor& bias,
    std::uint8_t activation,
    bool transpose_a,
    bool transpose_b,
    std::uint8_t dtype,
    Placement placement,
    const Compute& compute,
    const Program& program);
std::unique_ptr<Tensor> binary(
    const Tensor& a,
    const Tensor& b,
    std::uint8_t op,
    rust::Slice<const std::uint8_t> activations,
    std::uint8_t dtype,
    Placement placement);
std::unique_ptr<Tensor> binary_scalar(
    const Tensor& a,
    float b,
    std::uint8_t op,
    rust::Slice<const std::uint8_t> activations,
    std::uint8_t dtype,
    Placement placement);
std::unique_ptr<Tensor> unary(const Tensor& x, std::uint8_t op, Placement placement);
std::unique_ptr<Tensor> layer_norm(
    const Tensor& x,
    float epsilon,
    const Tensor& weight,
    const Tensor& bias,
    Placement placement,
    const Compute& compute);
std::unique_ptr<Tensor> rms_norm(
    const Tensor& x, float epsilon, const Tensor& weight, Placement placement, const Compute& compute);
std::unique_ptr<Tensor> softmax(const Tensor& x, Placement placement, const Compute& compute);
std::unique_ptr<Tensor> attention(
    const Tensor& q,
    const Tensor& k,
    const Tensor& v,
    const Tensor& mask,
    bool is_causal,
    float scale,
    std::uint32_t q_chunk,
    std::uint32_t k_chunk,
    std::uint32_t grid_x,
    std::uint32_t grid_y,
    Placement placement,
    const Compute& compute);
std::unique_ptr<Tensor> rotary_embedding(
    const Tensor& x, const Tensor& cos, const Tensor& sin, Placement placement, const Compute& compute);
void create_heads(
    const Tensor& qkv,
    const Tensor& kv,
    std::uint32_t num_heads,
    std::uint32_t num_kv_heads,
    bool transpose_key,
    Placement placement,
    Tensor& q,
    Tensor& k,
    Tensor& v);
std::unique_ptr<Tensor> concat_heads(const Tensor& x, Placement placement);
std::unique_ptr<Tensor> embedding(const Tensor& ids, const Tensor& table, std::uint8_t dtype, Placement placement);
void concat_begin(const Device& device);
void concat_push(const Device& device, const Tensor& x);
std::unique_ptr<Tensor> concat_end(const Device& device, std::int32_t dim, Placement placement);
std::unique_ptr<Tensor> slice(
    const Tensor& x,
    rust::Slice<const std::uint32_t> begins,
    rust::Slice<const std::uint32_t> ends,
    rust::Slice<const std::uint32_t> step,
    Placement placement);
std::unique_ptr<Tensor> pad(const Tensor& x, rust::Slice<const std::uint32_t> after, float value, Placement placement);
std::unique_ptr<Tensor> reshape(const Tensor& x, rust::Slice<const std::uint32_t> shape, Placement placement);
std::unique_ptr<Tensor> permute(const Tensor& x, rust::Slice<const std::uint32_t> dims, Placement placement);
std::unique_ptr<Tensor> typecast(const Tensor& x, std::uint8_t dtype, Placement placement);
std::unique_ptr<Tensor> to_layout(const Tensor& x, std::uint8_t layout, Placement placement);
std::unique_ptr<Tensor> to_memory_config(const Tensor& x, std::uint8_t dtype, Placement placement);
std::unique_ptr<Tensor> clone_tensor(const Tensor& x, Placement placement);

}  // namespace tt_sys
