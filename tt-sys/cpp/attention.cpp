// Attention, heads and rotation.
#include "session.h"

#include "ttnn/operations/experimental/transformer/nlp_concat_heads/nlp_concat_heads.hpp"
#include "ttnn/operations/experimental/transformer/nlp_create_qkv_heads/nlp_create_qkv_heads.hpp"

namespace tt_sys {

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
    const Compute& compute) {
    const auto& query = tensor_of(q);
    ttnn::operations::transformer::SDPAProgramConfig program{};
    program.compute_with_storage_grid_size = metal::CoreCoord(grid_x, grid_y);
    program.q_chunk_size = q_chunk;
    program.k_chunk_size = k_chunk;
    program.exp_approx_mode = compute.approximate;
    return wrap(
        ttnn::transformer::scaled_dot_product_attention(
            query, tensor_of(k), tensor_of(v), optional_of(mask), is_causal, scale, std::nullopt,
            memory_config_of(placement), program, compute_of(query, compute)),
        q);
}

std::unique_ptr<Tensor> rotary_embedding(
    const Tensor& handle, const Tensor& cos, const Tensor& sin, Placement placement, const Compute& compute) {
    const auto& x = tensor_of(handle);
    return wrap(
        ttnn::experimental::rotary_embedding_hf(
            x, tensor_of(cos), tensor_of(sin), false, memory_config_of(placement), compute_of(x, compute)),
        handle);
}

void create_heads(
    const Tensor& qkv,
    const Tensor& kv,
    std::uint32_t num_heads,
    std::uint32_t num_kv_heads,
    bool transpose_key,
    Placement placement,
    Tensor& q,
    Tensor& k,
    Tensor& v) {
    auto session = qkv.slot ? qkv.slot->session.lock() : nullptr;
    auto [query, key, value] = ttnn::experimental::nlp_create_qkv_heads(
        tensor_of(qkv), optional_of(kv), num_heads, num_kv_heads, transpose_key, memory_config_of(placement));
    q.slot = slot_of(std::move(query), session);
    k.slot = slot_of(std::move(key), session);
    v.slot = slot_of(std::move(value), session);
}

std::unique_ptr<Tensor> concat_heads(const Tensor& x, Placement placement) {
    return wrap(ttnn::experimental::nlp_concat_heads(tensor_of(x), memory_config_of(placement)), x);
}

}  // namespace tt_sys
