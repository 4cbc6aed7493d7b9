// Operations that compute: matmuls, element-wise functions, norms.
#include "session.h"

#include "ttnn/operations/eltwise/binary/binary.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/operations/matmul/matmul.hpp"
#include "ttnn/operations/normalization/layernorm/layernorm.hpp"
#include "ttnn/operations/normalization/rmsnorm/rmsnorm.hpp"
#include "ttnn/operations/normalization/softmax/softmax.hpp"

namespace tt_sys {

namespace {

using ttnn::operations::unary::EltwiseUnaryWithParam;
using ttnn::operations::unary::UnaryOpType;
using ttnn::operations::unary::UnaryWithParam;

enum class Function : std::uint8_t { None, Gelu, Silu, Relu, Tanh, Sigmoid, Exp, Neg };

// Whole tiles, rows and columns.
constexpr int VECTOR_MODE = static_cast<int>(ttnn::operations::unary::VecMode::RC);

template <typename Fused>
Fused fused_of(std::uint8_t code) {
    // The parameter of gelu and exp says whether to approximate.
    switch (static_cast<Function>(code)) {
        case Function::Gelu: return Fused(UnaryOpType::GELU, 0.0F);
        case Function::Silu: return Fused(UnaryOpType::SILU);
        case Function::Relu: return Fused(UnaryOpType::RELU);
        case Function::Tanh: return Fused(UnaryOpType::TANH, 0.0F);
        case Function::Exp: return Fused(UnaryOpType::EXP, 0.0F);
        case Function::Neg: return Fused(UnaryOpType::NEG);
        default: throw std::invalid_argument("activation code " + std::to_string(code));
    }
}

std::optional<ttnn::operations::matmul::MatmulProgramConfig> program_of(
    const Program& program, std::uint8_t activation) {
    namespace matmul = ttnn::operations::matmul;
    constexpr std::uint8_t NONE = 0, MULTICAST = 1, MULTICAST_1D = 2;
    const auto fill = [&](auto& config) {
        config.compute_with_storage_grid_size = metal::CoreCoord(program.grid_x, program.grid_y);
        config.in0_block_w = program.in0_block_w;
        config.out_subblock_h = program.out_subblock_h;
        config.out_subblock_w = program.out_subblock_w;
        config.out_block_h = program.per_core_m;
        config.out_block_w = program.per_core_n;
        config.per_core_M = program.per_core_m;
        config.per_core_N = program.per_core_n;
        config.fuse_batch = true;
        if (activation != 0) {
            config.fused_activation = fused_of<UnaryWithParam>(activation);
        }
    };
    switch (program.kind) {
        case NONE: return std::nullopt;
        case MULTICAST: {
            matmul::MatmulMultiCoreReuseMultiCastProgramConfig config{};
            fill(config);
            return config;
        }
        case MULTICAST_1D: {
            matmul::MatmulMultiCoreReuseMultiCast1DProgramConfig config{};
            fill(config);
            config.mcast_in0 = true;
            return config;
        }
        default: throw std::invalid_argument("program config code " + std::to_string(program.kind));
    }
}

// Activations of the left operand, the right operand and the result; 0 is none.
struct Activations {
    std::vector<EltwiseUnaryWithParam> left, right, result;

    explicit Activations(rust::Slice<const std::uint8_t> codes) {
        if (codes.size() != 3) {
            throw std::invalid_argument("activations come in threes");
        }
        std::vector<EltwiseUnaryWithParam>* lists[] = {&left, &right, &result};
        for (std::size_t i = 0; i < 3; i++) {
            if (codes[i] == static_cast<std::uint8_t>(Function::Sigmoid)) {
                constexpr float ACCURATE = 0.0F;
                lists[i]->emplace_back(UnaryOpType::SIGMOID, std::vector<float>{float{VECTOR_MODE}, ACCURATE});
            } else if (codes[i] != 0) {
                lists[i]->push_back(fused_of<EltwiseUnaryWithParam>(codes[i]));
            }
        }
    }
};

template <typename Right>
ttnn::Tensor apply(
    const ttnn::Tensor& a,
    const Right& b,
    std::uint8_t op,
    const Activations& fused,
    metal::DataType dtype,
    const metal::MemoryConfig& memory) {
    enum : std::uint8_t { ADD, SUBTRACT, MULTIPLY, DIVIDE };
    const auto run = [&](auto&& function) {
        return function(a, b, std::optional<const metal::DataType>(dtype), std::optional(memory), std::nullopt,
            ttsl::Span<const EltwiseUnaryWithParam>(fused.result), ttsl::Span<const EltwiseUnaryWithParam>(fused.left),
            ttsl::Span<const EltwiseUnaryWithParam>(fused.right));
    };
    switch (op) {
        case ADD: return run([](auto&&... x) { return ttnn::add(x...); });
        case SUBTRACT: return run([](auto&&... x) { return ttnn::subtract(x...); });
        case MULTIPLY: return run([](auto&&... x) { return ttnn::multiply(x...); });
        case DIVIDE: return run([](auto&&... x) { return ttnn::divide(x...); });
        default: throw std::invalid_argument("binary operation code " + std::to_string(op));
    }
}

}  // namespace

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
    const Program& program) {
    const auto& a = tensor_of(x);
    const auto config = program_of(program, activation);
    std::optional<ttnn::Activation> apart;
    if (!config && activation != 0) {
        apart = fused_of<UnaryWithParam>(activation);
    }
    return wrap(
        ttnn::linear(
            a, tensor_of(w), optional_of(bias), transpose_a, transpose_b, memory_config_of(placement),
            dtype_of(dtype), config, apart, compute_of(a, compute)),
        x);
}

std::unique_ptr<Tensor> binary(
    const Tensor& a,
    const Tensor& b,
    std::uint8_t op,
    rust::Slice<const std::uint8_t> activations,
    std::uint8_t dtype,
    Placement placement) {
    return wrap(
        apply(tensor_of(a), tensor_of(b), op, Activations(activations), dtype_of(dtype), memory_config_of(placement)),
        a);
}

std::unique_ptr<Tensor> binary_scalar(
    const Tensor& a,
    float b,
    std::uint8_t op,
    rust::Slice<const std::uint8_t> activations,
    std::uint8_t dtype,
    Placement placement) {
    return wrap(
        apply(tensor_of(a), b, op, Activations(activations), dtype_of(dtype), memory_config_of(placement)), a);
}

std::unique_ptr<Tensor> unary(const Tensor& handle, std::uint8_t op, Placement placement) {
    const auto& x = tensor_of(handle);
    const auto memory = memory_config_of(placement);
    switch (static_cast<Function>(op)) {
        case Function::Gelu: return wrap(ttnn::gelu(x, false, memory), handle);
        case Function::Silu: return wrap(ttnn::silu(x, memory), handle);
        case Function::Relu: return wrap(ttnn::relu(x, memory), handle);
        case Function::Tanh: return wrap(ttnn::tanh(x, memory), handle);
        case Function::Sigmoid:
            return wrap(ttnn::sigmoid(x, VECTOR_MODE, ttnn::operations::unary::SigmoidMode::ACCURATE, memory), handle);
        case Function::Exp: return wrap(ttnn::exp(x, false, memory), handle);
        case Function::Neg: return wrap(ttnn::neg(x, memory), handle);
        default: throw std::invalid_argument("unary operation code " + std::to_string(op));
    }
}

std::unique_ptr<Tensor> layer_norm(
    const Tensor& handle,
    float epsilon,
    const Tensor& weight,
    const Tensor& bias,
    Placement placement,
    const Compute& compute) {
    const auto& x = tensor_of(handle);
    return wrap(
        ttnn::layer_norm(
            x, epsilon, optional_of(weight), optional_of(bias), std::nullopt, memory_config_of(placement),
            std::nullopt, compute_of(x, compute)),
        handle);
}

std::unique_ptr<Tensor> rms_norm(
    const Tensor& handle, float epsilon, const Tensor& weight, Placement placement, const Compute& compute) {
    const auto& x = tensor_of(handle);
    return wrap(
        ttnn::rms_norm(
            x, epsilon, optional_of(weight), std::nullopt, std::nullopt, memory_config_of(placement), std::nullopt,
            compute_of(x, compute)),
        handle);
}

std::unique_ptr<Tensor> softmax(const Tensor& handle, Placement placement, const Compute& compute) {
    const auto& x = tensor_of(handle);
    return wrap(ttnn::softmax(x, -1, memory_config_of(placement), compute_of(x, compute), true), handle);
}

}  // namespace tt_sys
