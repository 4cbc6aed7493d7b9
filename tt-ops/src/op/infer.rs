//! Operand checks and output shapes of everything that computes. Pure: no device is asked.

use crate::dtype::DataType;
use crate::error::{Result, TtError};
use crate::layout::{Layout, MemoryConfig};
use crate::op::Op;
use crate::shape::Shape;
use crate::spec::{TensorSpec, WeightSpec};

/// What an operand holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSpec {
    /// A tensor.
    Tensor(TensorSpec),
    /// A packed weight.
    Weight(WeightSpec),
}

/// What comes out: one spec per result.
pub type OutputSpecs = Vec<TensorSpec>;

/// The operands of one op, with its name for messages.
pub(super) struct Operands<'a> {
    pub(super) op: &'static str,
    inputs: &'a [InputSpec],
}

impl Operands<'_> {
    pub(super) fn tensor(&self, index: usize) -> Result<TensorSpec> {
        match self.inputs.get(index) {
            Some(InputSpec::Tensor(spec)) => Ok(*spec),
            Some(InputSpec::Weight(spec)) => {
                Err(TtError::argument(self.op, format!("weight {spec} as operand {index}"), "a tensor"))
            }
            None => Err(TtError::argument(self.op, format!("{} operands", self.inputs.len()), "more")),
        }
    }

    /// A float tensor in tiles.
    pub(super) fn tile(&self, index: usize) -> Result<TensorSpec> {
        let spec = self.float(index)?;
        if spec.layout != Layout::Tile {
            let (got, wanted) = (spec.layout.to_string(), Layout::Tile.to_string());
            return Err(TtError::Layout { op: self.op, got, wanted });
        }
        Ok(spec)
    }

    pub(super) fn float(&self, index: usize) -> Result<TensorSpec> {
        let spec = self.tensor(index)?;
        if spec.dtype.is_float() {
            Ok(spec)
        } else {
            Err(TtError::dtype(self.op, spec.to_string(), "a float type"))
        }
    }

    /// A vector of `n` elements: leading extents are 1.
    fn vector(&self, index: usize, n: usize, what: &str) -> Result<()> {
        let spec = self.tensor(index)?;
        if spec.shape.volume() != n || spec.shape.last() != n {
            return Err(TtError::shape(self.op, format!("{what} {}", spec.shape), format!("[{n}]")));
        }
        activation_type(self.op, spec.dtype)
    }

    pub(super) fn all(&self) -> Result<Vec<TensorSpec>> {
        (0..self.inputs.len()).map(|i| self.tensor(i)).collect()
    }

    fn count(&self, wanted: usize) -> Result<()> {
        if self.inputs.len() == wanted {
            return Ok(());
        }
        Err(TtError::argument(self.op, format!("{} operands", self.inputs.len()), wanted.to_string()))
    }
}

/// What an op may write: block formats and integers only come from `typecast`.
pub(super) fn activation_type(op: &'static str, dtype: DataType) -> Result<()> {
    if dtype.is_activation() {
        Ok(())
    } else {
        Err(TtError::dtype(op, dtype.to_string(), "float32 or bfloat16"))
    }
}

impl Op {
    /// Checks operands and says what comes out. Ops that are not told where to place their results place them in DRAM.
    ///
    /// # Errors
    /// Shapes, data types, layouts or arguments that do not fit, with what would have.
    pub fn infer(&self, inputs: &[InputSpec]) -> Result<OutputSpecs> {
        let place = self.memory_config().unwrap_or_default();
        let mut outputs = self.infer_results(inputs)?;
        for output in &mut outputs {
            place.check(self.name(), output.shape, output.layout)?;
            *output = output.with_memory_config(place);
        }
        Ok(outputs)
    }

    /// Where the op is told to place its result.
    fn memory_config(&self) -> Option<MemoryConfig> {
        match self {
            Self::Linear { memory_config, .. }
            | Self::LayerNorm { memory_config, .. }
            | Self::RmsNorm { memory_config, .. }
            | Self::ToMemoryConfig { memory_config } => Some(*memory_config),
            _ => None,
        }
    }

    /// [`infer`](Self::infer) but for the placement.
    fn infer_results(&self, inputs: &[InputSpec]) -> Result<OutputSpecs> {
        let operands = Operands { op: self.name(), inputs };
        let op = operands.op;
        match self {
            Self::Linear { bias, residual, dtype, program_config, core_grid, .. } => {
                operands.count(2 + usize::from(*bias) + usize::from(*residual))?;
                activation_type(op, *dtype)?;
                if program_config.is_some() && core_grid.is_some() {
                    return Err(TtError::argument(op, "a program config and a core grid", "one of them"));
                }
                if let Some(grid) = core_grid {
                    grid.check(op)?;
                }
                if let Some(config) = program_config {
                    config.check(op)?;
                }
                Ok(vec![linear(&operands, *bias, *residual, *dtype)?])
            }
            Self::Matmul { transpose_a, transpose_b, dtype, .. } => {
                operands.count(2)?;
                activation_type(op, *dtype)?;
                Ok(vec![matmul(&operands, *transpose_a, *transpose_b)?.with_dtype(*dtype)])
            }
            Self::LayerNorm { epsilon, weight, bias, dtype, .. } => {
                operands.count(1 + usize::from(*weight) + usize::from(*bias))?;
                Ok(vec![norm(&operands, *epsilon, *dtype)?])
            }
            Self::RmsNorm { epsilon, weight, dtype, .. } => {
                operands.count(1 + usize::from(*weight))?;
                Ok(vec![norm(&operands, *epsilon, *dtype)?])
            }
            Self::Embedding { dtype } => {
                operands.count(2)?;
                activation_type(op, *dtype)?;
                Ok(vec![embedding(&operands)?.with_dtype(*dtype)])
            }
            Self::ScaledDotProductAttention { is_causal, scale, attn_mask, program_config, .. } => {
                operands.count(3 + usize::from(*attn_mask))?;
                if let Some(config) = program_config {
                    config.check(op)?;
                }
                super::infer_heads::attention(&operands, *is_causal, *scale, *attn_mask)
            }
            Self::RotaryEmbedding { dtype } => {
                operands.count(3)?;
                activation_type(op, *dtype)?;
                super::infer_heads::rotary(&operands, *dtype)
            }
            Self::SplitQueryKeyValueAndSplitHeads { kv, num_heads, num_kv_heads, transpose_key } => {
                operands.count(1 + usize::from(*kv))?;
                super::infer_heads::split(&operands, *kv, *num_heads, *num_kv_heads, *transpose_key)
            }
            Self::Concat { dim } => super::infer_movement::concat(&operands, *dim),
            Self::Binary { scalar, rhs_activation, dtype, .. } => {
                activation_type(op, *dtype)?;
                operands.count(if scalar.is_some() { 1 } else { 2 })?;
                if scalar.is_some() && rhs_activation.is_some() {
                    return Err(TtError::argument(op, "an activation of a number", "one of a tensor"));
                }
                let a = operands.float(0)?;
                let out = if scalar.is_some() { a } else { binary(op, a, operands.float(1)?)? };
                Ok(vec![out.with_dtype(*dtype)])
            }
            _ => {
                operands.count(1)?;
                self.infer_one(&operands)
            }
        }
    }

    /// [`infer`](Self::infer) for ops of one operand.
    fn infer_one(&self, operands: &Operands<'_>) -> Result<OutputSpecs> {
        let op = operands.op;
        let x = operands.tensor(0)?;
        let out = match self {
            Self::Unary { dtype, .. } => {
                activation_type(op, *dtype)?;
                operands.float(0)?.with_dtype(*dtype)
            }
            Self::Softmax { dtype } => {
                activation_type(op, *dtype)?;
                operands.tile(0)?.with_dtype(*dtype)
            }
            Self::Swiglu { dtype } => {
                activation_type(op, *dtype)?;
                let x = operands.tile(0)?;
                if !x.shape.last().is_multiple_of(2) {
                    return Err(TtError::shape(op, x.shape.to_string(), "an even last extent"));
                }
                x.with_shape(x.shape.with_last(x.shape.last() / 2)).with_dtype(*dtype)
            }
            Self::Typecast { dtype } => {
                let unsigned = x.dtype == DataType::Uint32 || *dtype == DataType::Uint32;
                if x.dtype.is_float() != dtype.is_float() && unsigned {
                    return Err(TtError::dtype(
                        op,
                        format!("{} to {dtype}", x.dtype),
                        "int32 for whole numbers",
                    ));
                }
                x.with_dtype(*dtype)
            }
            Self::ToLayout { layout } => x.with_layout(*layout),
            Self::ToMemoryConfig { .. } => x,
            Self::Clone { dtype } if x.dtype == *dtype => x,
            Self::Clone { dtype } => {
                return Err(TtError::dtype(op, x.dtype.to_string(), dtype.to_string()));
            }
            Self::ConcatenateHeads => return super::infer_heads::concatenate(operands),
            Self::Slice { begins, ends, step } => {
                return super::infer_movement::slice(operands, begins, ends, step);
            }
            Self::Reshape { shape } => return super::infer_movement::reshape(operands, *shape),
            Self::Permute { dims } => return super::infer_movement::permute(operands, dims),
            _ => return Err(TtError::argument(op, "one operand", "more")),
        };
        Ok(vec![out])
    }
}

fn linear(operands: &Operands<'_>, bias: bool, residual: bool, dtype: DataType) -> Result<TensorSpec> {
    let op = operands.op;
    let x = operands.tile(0)?;
    let Some(InputSpec::Weight(w)) = operands.inputs.get(1) else {
        return Err(TtError::argument(op, "a tensor as operand 1", "a weight"));
    };
    if x.shape.last() != w.k {
        return Err(TtError::shape(
            op,
            format!("x {}, w [{}, {}]", x.shape, w.k, w.n),
            format!("x [.., {}]", w.k),
        ));
    }
    let out = x.with_shape(x.shape.with_last(w.n)).with_dtype(dtype);
    if bias {
        operands.vector(2, w.n, "bias")?;
    }
    if residual {
        let r = operands.tile(2 + usize::from(bias))?;
        if r.shape != out.shape {
            return Err(TtError::shape(op, format!("residual {}", r.shape), out.shape.to_string()));
        }
        if r.dtype != dtype {
            return Err(TtError::dtype(op, format!("residual {}", r.dtype), dtype.to_string()));
        }
    }
    Ok(out)
}

fn matmul(operands: &Operands<'_>, transpose_a: bool, transpose_b: bool) -> Result<TensorSpec> {
    let op = operands.op;
    let (a, b) = (operands.tile(0)?, operands.tile(1)?);
    let bad = || {
        let flags = format!("(transpose_a {transpose_a}, transpose_b {transpose_b})");
        TtError::shape(op, format!("a {}, b {} {flags}", a.shape, b.shape), "[.., m, k] and [.., k, n]")
    };
    if a.shape.rank() < 2 || b.shape.rank() < 2 {
        return Err(bad());
    }
    let (da, db) = (a.shape.as_rank4(), b.shape.as_rank4());
    let (m, ka) = if transpose_a { (da[3], da[2]) } else { (da[2], da[3]) };
    let (kb, n) = if transpose_b { (db[3], db[2]) } else { (db[2], db[3]) };
    let batch_fits = (0..2).all(|i| da[i] == db[i] || db[i] == 1);
    if ka != kb || !batch_fits {
        return Err(bad());
    }
    let rank = a.shape.rank().max(b.shape.rank());
    let shape = Shape::new(&[da[0], da[1], m, n][4 - rank..]).ok_or_else(bad)?;
    Ok(a.with_shape(shape))
}

fn binary(op: &'static str, a: TensorSpec, b: TensorSpec) -> Result<TensorSpec> {
    if a.dtype != b.dtype {
        return Err(TtError::dtype(op, format!("{} and {}", a.dtype, b.dtype), "two of one type"));
    }
    if a.layout != b.layout {
        return Err(TtError::Layout { op, got: b.layout.to_string(), wanted: a.layout.to_string() });
    }
    let shape = a.shape.broadcast(&b.shape).ok_or_else(|| {
        TtError::shape(op, format!("a {}, b {}", a.shape, b.shape), "extents that are equal or 1")
    })?;
    Ok(a.with_shape(shape))
}

fn norm(operands: &Operands<'_>, epsilon: f32, dtype: DataType) -> Result<TensorSpec> {
    let op = operands.op;
    activation_type(op, dtype)?;
    if !(epsilon.is_finite() && epsilon >= 0.0) {
        return Err(TtError::argument(op, format!("epsilon {epsilon}"), "a finite number from 0 up"));
    }
    let x = operands.tile(0)?;
    for (index, what) in (1..operands.inputs.len()).zip(["weight", "bias"]) {
        operands.vector(index, x.shape.last(), what)?;
    }
    Ok(x.with_dtype(dtype))
}

fn embedding(operands: &Operands<'_>) -> Result<TensorSpec> {
    let op = operands.op;
    let (ids, table) = (operands.tensor(0)?, operands.float(1)?);
    if ids.dtype != DataType::Uint32 {
        return Err(TtError::dtype(op, format!("ids {}", ids.dtype), "uint32"));
    }
    for spec in [ids, table] {
        if spec.layout != Layout::RowMajor {
            return Err(TtError::Layout {
                op,
                got: spec.layout.to_string(),
                wanted: Layout::RowMajor.to_string(),
            });
        }
    }
    if table.shape.rank() != 2 || ids.shape.rank() > 2 {
        let got = format!("ids {}, weight {}", ids.shape, table.shape);
        return Err(TtError::shape(op, got, "ids [b, s] or [s] and weight [vocabulary, n]"));
    }
    let mut dims = ids.shape.dims().to_vec();
    dims.push(table.shape.last());
    let shape = Shape::new(&dims).ok_or_else(|| TtError::shape(op, ids.shape.to_string(), "[b, s]"))?;
    Ok(table.with_shape(shape).with_layout(Layout::Tile))
}
