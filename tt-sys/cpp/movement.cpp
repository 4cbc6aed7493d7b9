// Operations that move values and change none, but for rounding to a data type.
#include "session.h"

#include "ttnn/operations/copy/typecast/typecast.hpp"
#include "ttnn/operations/data_movement/concat/concat.hpp"
#include "ttnn/operations/data_movement/pad/pad.hpp"
#include "ttnn/operations/data_movement/permute/permute.hpp"
#include "ttnn/operations/data_movement/reshape_view/reshape.hpp"
#include "ttnn/operations/data_movement/slice/slice.hpp"
#include "ttnn/operations/embedding/embedding.hpp"

namespace tt_sys {

namespace {

ttsl::SmallVector<std::uint32_t> list(rust::Slice<const std::uint32_t> values) {
    return ttsl::SmallVector<std::uint32_t>(values.begin(), values.end());
}

}  // namespace

std::unique_ptr<Tensor> embedding(
    const Tensor& ids, const Tensor& table, std::uint8_t dtype, Placement placement) {
    return wrap(
        ttnn::embedding(
            tensor_of(ids), tensor_of(table), std::nullopt, metal::Layout::TILE, {}, dtype_of(dtype),
            memory_config_of(placement)),
        ids);
}

// The list of operands grows piece by piece, since a list of handles cannot cross the bridge.
void concat_begin(const Device& device) { device.session->pieces.clear(); }

void concat_push(const Device& device, const Tensor& x) { device.session->pieces.push_back(tensor_of(x)); }

std::unique_ptr<Tensor> concat_end(const Device& device, std::int32_t dim, Placement placement) {
    const auto pieces = std::move(device.session->pieces);
    device.session->pieces.clear();
    return wrap(ttnn::concat(pieces, dim, memory_config_of(placement)), device.session);
}

std::unique_ptr<Tensor> slice(
    const Tensor& x,
    rust::Slice<const std::uint32_t> begins,
    rust::Slice<const std::uint32_t> ends,
    rust::Slice<const std::uint32_t> step,
    Placement placement) {
    return wrap(ttnn::slice(tensor_of(x), list(begins), list(ends), list(step), memory_config_of(placement)), x);
}

std::unique_ptr<Tensor> pad(
    const Tensor& x, rust::Slice<const std::uint32_t> after, float value, Placement placement) {
    ttsl::SmallVector<std::array<std::uint32_t, 2>> padding;
    for (const std::uint32_t count : after) {
        padding.push_back({0, count});
    }
    return wrap(ttnn::pad(tensor_of(x), padding, value, true, memory_config_of(placement)), x);
}

std::unique_ptr<Tensor> reshape(const Tensor& x, rust::Slice<const std::uint32_t> shape, Placement placement) {
    return wrap(ttnn::reshape(tensor_of(x), metal::Shape(list(shape)), memory_config_of(placement)), x);
}

std::unique_ptr<Tensor> permute(const Tensor& x, rust::Slice<const std::uint32_t> dims, Placement placement) {
    const ttsl::SmallVector<std::int64_t> order(dims.begin(), dims.end());
    return wrap(ttnn::permute(tensor_of(x), order, memory_config_of(placement)), x);
}

std::unique_ptr<Tensor> typecast(const Tensor& x, std::uint8_t dtype, Placement placement) {
    return wrap(ttnn::typecast(tensor_of(x), dtype_of(dtype), memory_config_of(placement)), x);
}

std::unique_ptr<Tensor> to_layout(const Tensor& x, std::uint8_t layout, Placement placement) {
    return wrap(
        ttnn::to_layout(tensor_of(x), layout_of(layout), std::nullopt, memory_config_of(placement)), x);
}

std::unique_ptr<Tensor> to_memory_config(const Tensor& handle, std::uint8_t dtype, Placement placement) {
    const auto& x = tensor_of(handle);
    return wrap(ttnn::to_memory_config(x, memory_config_of(placement), dtype_of(dtype)), handle);
}

std::unique_ptr<Tensor> clone_tensor(const Tensor& x, Placement placement) {
    return wrap(ttnn::clone(tensor_of(x), std::nullopt, memory_config_of(placement), std::nullopt), x);
}

}  // namespace tt_sys
