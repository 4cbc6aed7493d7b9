//! Ops as calls of TTNN. Where one op is several calls, what lies between is freed at once, and placed in DRAM, where a
//! trace keeps all that its capture used.

use std::rc::Rc;

use tt_sys::ops::{self, Linear, Rhs};
use tt_sys::{
    ComputeKernelConfig as SysCompute, DataType as SysType, MemoryConfig as SysMemory, ShardLayout, Tensor,
};

use super::convert::{binary, compute, dims, fused, sys_layout, sys_type, tile_bytes, unary};
use super::failed;
use super::placement::placement;
use super::program::{self, TILE, TileBytes};
use super::state::{Card, Operand};
use crate::captured::CapturedSpec;
use crate::dtype::DataType;
use crate::error::{Result, TtError};
use crate::layout::{CoreGrid, Layout};
use crate::op::Op;
use crate::shape::Shape;
use crate::spec::TensorSpec;

/// The tensor without shards and without columns that pad its heads.
pub(super) fn exact(tensor: &Rc<Tensor>, spec: &TensorSpec) -> Result<Rc<Tensor>> {
    const OP: &str = "slice";
    let (held, wanted) = (tensor.spec().map_err(failed(OP))?, dims(spec.shape));
    if held.memory_config.shards.is_some() {
        let moved = ops::to_memory_config(tensor, held.dtype, SysMemory::DRAM);
        return moved.map(Rc::new).map_err(failed("to_memory_config"));
    }
    if held.shape.last() == wanted.last() {
        return Ok(Rc::clone(tensor));
    }
    ops::slice(tensor, &[0; 4], &wanted, &[1; 4], SysMemory::DRAM).map(Rc::new).map_err(failed(OP))
}

/// A copy in memory of its own.
pub(super) fn copied(tensor: &Tensor, op: &'static str) -> Result<Rc<Tensor>> {
    ops::clone(tensor, SysMemory::DRAM).map(Rc::new).map_err(failed(op))
}

/// One op being lowered.
pub(super) struct Lowering<'a> {
    pub(super) card: &'a Card,
    pub(super) name: &'static str,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(card: &'a Card, name: &'static str) -> Self {
        Self { card, name }
    }

    /// What a call of TTNN made.
    pub(super) fn made(&self, made: tt_sys::Result<Tensor>) -> Result<Rc<Tensor>> {
        made.map(Rc::new).map_err(failed(self.name))
    }

    /// Operand `index` as it is held: heads may be padded, or it may be in shards.
    pub(super) fn held(&self, operands: &[Operand], index: usize) -> Result<(Rc<Tensor>, TensorSpec)> {
        let operand =
            operands.get(index).ok_or_else(|| TtError::argument(self.name, "too few operands", "more"))?;
        let CapturedSpec::Tensor(spec) = operand.spec else {
            return Err(TtError::argument(self.name, "a weight", "a tensor"));
        };
        Ok((self.card.get(self.name, operand.id)?, spec))
    }

    /// Operand `index`.
    pub(super) fn tensor(&self, operands: &[Operand], index: usize) -> Result<Rc<Tensor>> {
        let (tensor, spec) = self.held(operands, index)?;
        exact(&tensor, &spec)
    }

    pub(super) fn cast(&self, x: Rc<Tensor>, dtype: DataType) -> Result<Rc<Tensor>> {
        self.cast_to(x, dtype, SysMemory::DRAM)
    }

    fn cast_to(&self, x: Rc<Tensor>, dtype: DataType, place: SysMemory) -> Result<Rc<Tensor>> {
        if self.is(&x, dtype)? {
            return Ok(x);
        }
        self.made(ops::typecast(&x, sys_type(dtype), place))
    }

    /// Where `out` is to be.
    pub(super) fn place(&self, out: &TensorSpec) -> Result<SysMemory> {
        placement(self.name, out, self.card.facts.grid)
    }

    /// `x` as `dtype` at `place`.
    fn moved(&self, x: Rc<Tensor>, dtype: DataType, place: SysMemory) -> Result<Rc<Tensor>> {
        let held = x.spec().map_err(failed(self.name))?;
        if held.memory_config == place && held.dtype == sys_type(dtype) {
            return Ok(x);
        }
        self.made(ops::to_memory_config(&x, sys_type(dtype), place))
    }

    /// A norm of operand 0. In shards it is computed by all their cores, interleaved by one per row of tiles; in shards TTNN takes
    /// what pads a tile for values.
    fn norm(
        &self,
        operands: &[Operand],
        out: &TensorSpec,
        norm: impl Fn(&Tensor, SysMemory) -> tt_sys::Result<Tensor>,
    ) -> Result<Rc<Tensor>> {
        let (x, spec) = self.held(operands, 0)?;
        let held = x.spec().map_err(failed(self.name))?.memory_config;
        let place = self.place(out)?;
        let whole = spec.shape.last().is_multiple_of(TILE);
        if whole && held.shards.is_some_and(|shards| shards.layout != ShardLayout::Height) {
            return self.moved(self.made(norm(&x, held))?, out.dtype, place);
        }
        let x = self.tensor(operands, 0)?;
        let first = if self.is(&x, out.dtype)? { place } else { SysMemory::DRAM };
        self.cast_to(self.made(norm(&x, first))?, out.dtype, place)
    }

    fn is(&self, x: &Tensor, dtype: DataType) -> Result<bool> {
        Ok(x.spec().map_err(failed(self.name))?.dtype == sys_type(dtype))
    }

    pub(super) fn reshaped(&self, x: &Tensor, shape: [usize; 4]) -> Result<Rc<Tensor>> {
        self.made(ops::reshape(x, &shape.map(|d| d as u32), SysMemory::DRAM))
    }

    /// Runs `op`.
    pub(super) fn run(
        &self,
        op: &Op,
        operands: &[Operand],
        outputs: &[TensorSpec],
    ) -> Result<Vec<Rc<Tensor>>> {
        let out = outputs.first().ok_or_else(|| TtError::argument(self.name, "no result", "one"))?;
        let one = match op {
            Op::Linear { .. } => self.linear(op, operands, out),
            Op::Matmul { transpose_a, transpose_b, dtype, compute: config } => {
                let (a, b) = (self.tensor(operands, 0)?, self.tensor(operands, 1)?);
                let (transpose_a, transpose_b) = (*transpose_a, *transpose_b);
                let compute = compute(*config);
                self.made(ops::linear(
                    &a,
                    &b,
                    &Linear { transpose_a, transpose_b, compute, ..Linear::new(sys_type(*dtype)) },
                ))
            }
            Op::Binary { op, scalar, lhs_activation, rhs_activation, activation, dtype } => {
                let a = self.tensor(operands, 0)?;
                let args = ops::Binary {
                    lhs_activation: lhs_activation.map(fused),
                    rhs_activation: rhs_activation.map(fused),
                    activation: activation.map(fused),
                    dtype: sys_type(*dtype),
                    memory_config: SysMemory::DRAM,
                };
                if let Some(b) = scalar {
                    self.made(ops::binary(binary(*op), &a, Rhs::Scalar(*b), &args))
                } else {
                    let b = self.tensor(operands, 1)?;
                    self.made(ops::binary(binary(*op), &a, Rhs::Tensor(&b), &args))
                }
            }
            Op::Unary { op, dtype } => {
                let x = self.tensor(operands, 0)?;
                let y = self.made(ops::unary(unary(*op), &x, SysMemory::DRAM))?;
                self.cast(y, *dtype)
            }
            Op::Swiglu { dtype } => self.swiglu(operands, out, *dtype),
            Op::LayerNorm { epsilon, weight, bias, compute: config, .. } => {
                let gain = if *weight { Some(self.tensor(operands, 1)?) } else { None };
                let shift = if *bias { Some(self.tensor(operands, 2)?) } else { None };
                self.norm(operands, out, |x, place| {
                    ops::layer_norm(x, *epsilon, gain.as_deref(), shift.as_deref(), place, compute(*config))
                })
            }
            Op::RmsNorm { epsilon, weight, compute: config, .. } => {
                let gain = if *weight { Some(self.tensor(operands, 1)?) } else { None };
                self.norm(operands, out, |x, place| {
                    ops::rms_norm(x, *epsilon, gain.as_deref(), place, compute(*config))
                })
            }
            Op::Softmax { dtype } => {
                let x = self.tensor(operands, 0)?;
                let y = self.made(ops::softmax(&x, SysMemory::DRAM, SysCompute::HIFI4))?;
                self.cast(y, *dtype)
            }
            Op::ScaledDotProductAttention { .. } => self.attention(op, operands),
            Op::RotaryEmbedding { dtype } => self.rotary(operands, *dtype),
            Op::SplitQueryKeyValueAndSplitHeads { kv, num_heads, num_kv_heads, transpose_key } => {
                return self.split_heads(operands, *kv, *num_heads, *num_kv_heads, *transpose_key);
            }
            Op::ConcatenateHeads => self.concatenate_heads(operands, out),
            _ => self.movement(op, operands, out),
        }?;
        Ok(vec![one])
    }

    fn linear(&self, op: &Op, operands: &[Operand], out: &TensorSpec) -> Result<Rc<Tensor>> {
        let Op::Linear {
            bias, activation, residual, dtype, compute: config, program_config, core_grid, ..
        } = op
        else {
            return Err(TtError::argument(self.name, "another op", "linear"));
        };
        // A program that was asked for may read shards; the rule's own do not.
        let (x, spec) = match program_config {
            Some(_) => self.held(operands, 0)?,
            None => (self.tensor(operands, 0)?, self.held(operands, 0)?.1),
        };
        let (weight, CapturedSpec::Weight(w)) = (self.weight(operands)?, &operands[1].spec) else {
            return Err(TtError::argument(self.name, "a tensor", "a weight"));
        };
        let shift = if *bias { Some(self.tensor(operands, 2)?) } else { None };
        let [a, b, m, _] = spec.shape.as_rank4();
        let tiles = [a * b * m.div_ceil(TILE), w.k.div_ceil(TILE), w.n.div_ceil(TILE)].map(|t| t as u32);
        let bytes = TileBytes {
            x: tile_bytes(spec.dtype) as u64,
            w: tile_bytes(w.dtype) as u64,
            out: tile_bytes(*dtype) as u64,
        };
        let place = self.place(out)?;
        // A program that the rule chose knows nothing of shards, and TTNN would choose others for it.
        let moves = place.shards.is_some() && program_config.is_none();
        let program = match program_config {
            Some(config) => Some(program::given(*config)),
            None => program::config(tiles, self.cores(*core_grid)?, bytes),
        };
        let y = self.made(ops::linear(
            &x,
            &weight,
            &Linear {
                bias: shift.as_deref(),
                activation: activation.map(fused),
                memory_config: if *residual || moves { SysMemory::DRAM } else { place },
                compute: compute(*config),
                program,
                ..Linear::new(sys_type(*dtype))
            },
        ))?;
        if !*residual {
            return if moves { self.moved(y, *dtype, place) } else { Ok(y) };
        }
        let (r, _) = self.held(operands, 2 + usize::from(*bias))?;
        let args = ops::Binary { memory_config: place, ..ops::Binary::new(sys_type(*dtype)) };
        self.made(ops::binary(ops::BinaryOp::Add, &y, Rhs::Tensor(&r), &args))
    }

    /// The cores that an op may use.
    pub(super) fn cores(&self, wanted: Option<CoreGrid>) -> Result<(u32, u32)> {
        let (x, y) = self.card.facts.grid;
        match wanted {
            None => Ok((x, y)),
            Some(grid) if (1..=x).contains(&grid.x) && (1..=y).contains(&grid.y) => Ok((grid.x, grid.y)),
            Some(grid) => {
                let wanted = format!("1×1 to {x}×{y}");
                Err(TtError::argument(self.name, format!("a core grid of {}×{}", grid.x, grid.y), wanted))
            }
        }
    }

    fn weight(&self, operands: &[Operand]) -> Result<Rc<Tensor>> {
        let operand = operands.get(1).ok_or_else(|| TtError::argument(self.name, "no weight", "one"))?;
        self.card.get(self.name, operand.id)
    }

    fn swiglu(&self, operands: &[Operand], out: &TensorSpec, dtype: DataType) -> Result<Rc<Tensor>> {
        let x = self.tensor(operands, 0)?;
        let [a, b, m, n] = dims(out.shape);
        let half =
            |first: u32| ops::slice(&x, &[0, 0, 0, first], &[a, b, m, first + n], &[1; 4], SysMemory::DRAM);
        let (up, gate) = (self.made(half(0))?, self.made(half(n))?);
        let args =
            ops::Binary { rhs_activation: Some(ops::UnaryOp::Silu), ..ops::Binary::new(sys_type(dtype)) };
        self.made(ops::binary(ops::BinaryOp::Multiply, &up, Rhs::Tensor(&gate), &args))
    }

    /// Ops that only move values.
    fn movement(&self, op: &Op, operands: &[Operand], out: &TensorSpec) -> Result<Rc<Tensor>> {
        const DRAM: SysMemory = SysMemory::DRAM;
        let padding = |shape: Shape| 4 - shape.rank();
        if let Op::Concat { dim } = op {
            let parts = (0..operands.len()).map(|i| self.tensor(operands, i)).collect::<Result<Vec<_>>>()?;
            let parts: Vec<&Tensor> = parts.iter().map(Rc::as_ref).collect();
            let dim = (dim + padding(out.shape)) as i32;
            return self.made(ops::concat(&self.card.device, &parts, dim, DRAM));
        }
        if let Op::Embedding { dtype } = op {
            return self.embedding(operands, out, *dtype);
        }
        let (x, spec) = (self.tensor(operands, 0)?, self.held(operands, 0)?.1);
        let lead = padding(spec.shape);
        let widened = |list: &[usize], fill: u32| -> Vec<u32> {
            let rest = list.iter().map(|&v| v as u32);
            std::iter::repeat_n(fill, lead).chain(rest).collect()
        };
        match op {
            Op::Slice { begins, ends, step } => {
                self.slice(&x, spec, widened(begins, 0), widened(ends, 1), &widened(step, 1))
            }
            Op::Reshape { shape } if dims(*shape) == dims(spec.shape) => Ok(x),
            Op::Reshape { shape } => self.made(ops::reshape(&x, &dims(*shape), DRAM)),
            Op::Permute { dims } => {
                let moved = dims.iter().map(|d| d + lead);
                let all: Vec<u32> = (0..lead).chain(moved).map(|d| d as u32).collect();
                self.made(ops::permute(&x, &all, DRAM))
            }
            Op::Typecast { dtype } => self.cast(x, *dtype),
            Op::ToLayout { layout } => self.made(ops::to_layout(&x, sys_layout(*layout), DRAM)),
            Op::ToMemoryConfig { .. } => self.moved(x, spec.dtype, self.place(out)?),
            Op::Clone { .. } => self.made(ops::clone(&x, DRAM)),
            _ => Err(TtError::argument(self.name, "an op that the card does not have", "another")),
        }
    }

    /// Rows that start within a tile are moved one by one, and TTNN's kernel fails on rows that are no whole tiles wide (28
    /// bytes, for one): those are widened first and narrowed afterwards, whole tiles at a time.
    fn slice(
        &self,
        x: &Tensor,
        spec: TensorSpec,
        mut begins: Vec<u32>,
        mut ends: Vec<u32>,
        step: &[u32],
    ) -> Result<Rc<Tensor>> {
        const DRAM: SysMemory = SysMemory::DRAM;
        let [_, _, _, width] = dims(spec.shape);
        let whole = width.next_multiple_of(TILE as u32);
        let within =
            !begins[2].is_multiple_of(TILE as u32) && begins[3] == 0 && ends[3] == width && step == [1; 4];
        if spec.layout != Layout::Tile || whole == width || !within {
            return self.made(ops::slice(x, &begins, &ends, step, DRAM));
        }
        let wide = self.made(ops::pad(x, &[0, 0, 0, whole - width], 0.0, DRAM))?;
        ends[3] = whole;
        let rows = self.made(ops::slice(&wide, &begins, &ends, step, DRAM))?;
        for dim in 0..3 {
            ends[dim] -= begins[dim];
            begins[dim] = 0;
        }
        ends[3] = width;
        self.made(ops::slice(&rows, &begins, &ends, step, DRAM))
    }

    fn embedding(&self, operands: &[Operand], out: &TensorSpec, dtype: DataType) -> Result<Rc<Tensor>> {
        let ids = self.tensor(operands, 0)?;
        let table = self.tensor(operands, 1)?;
        let [_, b, s, n] = out.shape.as_rank4();
        let ids = self.made(ops::reshape(&ids, &[b as u32, s as u32], SysMemory::DRAM))?;
        let rows = self.made(ops::embedding(&ids, &table, SysType::Bfloat16, SysMemory::DRAM))?;
        let rows = self.reshaped(&rows, [1, b, s, n])?;
        self.cast(rows, dtype)
    }
}
