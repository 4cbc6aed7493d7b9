// Tensors to and from the host, and to and from files.
#include "session.h"

namespace tt_sys {

namespace {

template <typename T>
std::unique_ptr<Tensor> upload(const Device& device, const Spec& spec, rust::Slice<const T> values) {
    auto& mesh = mesh_of(device);
    const auto wanted = spec_of(spec);
    const auto host = ttnn::Tensor::from_span<T>(ttsl::Span<const T>(values.data(), values.size()), wanted);
    auto tensor = allocate_far(wanted, &mesh);
    metal::copy_to_device(host, tensor);
    return wrap(std::move(tensor), device.session);
}

template <typename T>
void write(const Tensor& handle, rust::Slice<const T> values) {
    auto& tensor = tensor_of(handle);
    const auto host =
        ttnn::Tensor::from_span<T>(ttsl::Span<const T>(values.data(), values.size()), tensor.tensor_spec());
    metal::copy_to_device(host, tensor);
}

template <typename T>
void read(const Tensor& handle, rust::Slice<T> out) {
    const auto values = tensor_of(handle).template to_vector<T>();
    if (values.size() != out.size()) {
        throw std::invalid_argument(
            "reading " + std::to_string(values.size()) + " values into room for " + std::to_string(out.size()));
    }
    std::copy(values.begin(), values.end(), out.begin());
}

}  // namespace

std::unique_ptr<Tensor> no_tensor() { return std::make_unique<Tensor>(); }

std::unique_ptr<Tensor> from_floats(const Device& device, const Spec& spec, rust::Slice<const float> values) {
    return upload<float>(device, spec, values);
}

std::unique_ptr<Tensor> from_u32(const Device& device, const Spec& spec, rust::Slice<const std::uint32_t> values) {
    return upload<std::uint32_t>(device, spec, values);
}

std::unique_ptr<Tensor> from_i32(const Device& device, const Spec& spec, rust::Slice<const std::int32_t> values) {
    return upload<std::int32_t>(device, spec, values);
}

std::unique_ptr<Tensor> allocate(const Device& device, const Spec& spec) {
    return wrap(allocate_far(spec_of(spec), &mesh_of(device)), device.session);
}

void write_floats(const Tensor& tensor, rust::Slice<const float> values) { write<float>(tensor, values); }

void write_u32(const Tensor& tensor, rust::Slice<const std::uint32_t> values) { write<std::uint32_t>(tensor, values); }

void write_i32(const Tensor& tensor, rust::Slice<const std::int32_t> values) { write<std::int32_t>(tensor, values); }

void read_floats(const Tensor& tensor, rust::Slice<float> out) { read<float>(tensor, out); }

void read_u32(const Tensor& tensor, rust::Slice<std::uint32_t> out) { read<std::uint32_t>(tensor, out); }

void read_i32(const Tensor& tensor, rust::Slice<std::int32_t> out) { read<std::int32_t>(tensor, out); }

Spec tensor_spec(const Tensor& handle) {
    const auto& tensor = tensor_of(handle);
    Spec spec{};
    const auto& shape = tensor.logical_shape();
    for (std::size_t dim = 0; dim < shape.rank(); dim++) {
        spec.shape.push_back(shape[static_cast<std::int32_t>(dim)]);
    }
    spec.dtype = code_of(tensor.dtype());
    spec.layout = tensor.layout() == metal::Layout::TILE ? code::TILE : code::ROW_MAJOR;
    spec.placement = placement_of(tensor.memory_config());
    return spec;
}

std::uint64_t tensor_address(const Tensor& handle) { return tensor_of(handle).buffer()->address(); }

bool tensor_is_allocated(const Tensor& handle) {
    return handle.slot && handle.slot->tensor && handle.slot->tensor->is_allocated();
}

void deallocate(const Tensor& handle) {
    if (handle.slot) {
        handle.slot->tensor.reset();
    }
}

void dump_tensor(const Tensor& handle, rust::Str path) {
    metal::dump_tensor_flatbuffer(std::string(path), tensor_of(handle).cpu(true));
}

std::unique_ptr<Tensor> load_tensor(const Device& device, rust::Str path) {
    auto& mesh = mesh_of(device);
    const auto host = metal::load_tensor_flatbuffer(std::string(path));
    auto tensor = allocate_far(host.tensor_spec(), &mesh);
    metal::copy_to_device(host, tensor);
    return wrap(std::move(tensor), device.session);
}

}  // namespace tt_sys
