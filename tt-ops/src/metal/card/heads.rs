//! Attention and heads. TTNN's kernels want heads of whole tiles: others (72, 48) are padded with zeros when they are
//! split and stay so until they are merged, so that scores and sums are those of the unpadded heads.

use std::rc::Rc;

use tt_sys::ops::{self, Attention};
use tt_sys::{ComputeKernelConfig as SysCompute, MemoryConfig as SysMemory, Tensor};

use super::convert::{compute, sys_type};
use super::lower::Lowering;
use super::program::TILE;
use super::state::Operand;
use crate::dtype::DataType;
use crate::error::{Result, TtError};
use crate::layout::CoreGrid;
use crate::op::Op;
use crate::program::SdpaProgramConfig;
use crate::spec::TensorSpec;

const DRAM: SysMemory = SysMemory::DRAM;

/// Queries of one piece of work: more pieces than this would be shorter than a tile.
const QUERIES: usize = 32;
/// Keys that fit L1 beside everything else; with more than these they are attended to in parts.
const KEYS: usize = 512;

/// Added to scores of keys that only pad.
const HIDDEN: f32 = f32::NEG_INFINITY;

fn whole_tiles(extent: usize) -> usize {
    extent.next_multiple_of(TILE)
}

impl Lowering<'_> {
    /// `x` with its last two extents padded to `rows` and `columns`.
    fn padded(&self, x: Rc<Tensor>, rows: usize, columns: usize, value: f32) -> Result<Rc<Tensor>> {
        let shape = x.spec().map_err(super::failed(self.name))?.shape;
        let (below, beside) = (rows as u32 - shape[2], columns as u32 - shape[3]);
        if below == 0 && beside == 0 {
            return Ok(x);
        }
        self.made(ops::pad(&x, &[0, 0, below, beside], value, DRAM))
    }

    pub(super) fn attention(&self, op: &Op, operands: &[Operand]) -> Result<Rc<Tensor>> {
        let Op::ScaledDotProductAttention { is_causal, scale, attn_mask, compute: config, program_config } =
            op
        else {
            return Err(TtError::argument(self.name, "another op", "scaled_dot_product_attention"));
        };
        let (is_causal, scale, attn_mask) = (*is_causal, *scale, *attn_mask);
        let (q, q_spec) = self.held(operands, 0)?;
        let (k, k_spec) = self.held(operands, 1)?;
        let (v, _) = self.held(operands, 2)?;
        let [_, _, sq, e] = q_spec.shape.as_rank4();
        let sk = k_spec.shape.as_rank4()[2];
        let width = whole_tiles(e);
        // With a mask, keys are padded here and hidden by it; without one TTNN hides what pads them.
        let keys = if attn_mask { whole_tiles(sk) } else { sk };
        let q = self.cast(q, DataType::Bfloat16)?;
        let (k, v) = (self.cast(k, DataType::Bfloat16)?, self.cast(v, DataType::Bfloat16)?);
        let q = self.padded(q, sq, width, 0.0)?;
        let (k, v) = (self.padded(k, keys, width, 0.0)?, self.padded(v, keys, width, 0.0)?);
        let mask = if attn_mask {
            let mask = self.tensor(operands, 3)?;
            let mask = self.cast(mask, DataType::Bfloat16)?;
            Some(self.padded(mask, sq, keys, HIDDEN)?)
        } else {
            None
        };
        let program = match program_config {
            Some(given) => *given,
            None => SdpaProgramConfig {
                compute_with_storage_grid_size: CoreGrid::new(self.card.facts.grid.0, self.card.facts.grid.1),
                q_chunk_size: QUERIES as u32,
                k_chunk_size: chunk(whole_tiles(sk)) as u32,
            },
        };
        let grid = self.cores(Some(program.compute_with_storage_grid_size))?;
        let out = self.made(ops::scaled_dot_product_attention(
            &q,
            &k,
            &v,
            &Attention {
                mask: mask.as_deref(),
                is_causal,
                scale,
                q_chunk_size: program.q_chunk_size,
                k_chunk_size: program.k_chunk_size,
                grid,
                memory_config: DRAM,
                compute: SysCompute { packer_l1_acc: false, ..compute(*config) },
            },
        ))?;
        self.cast(out, q_spec.dtype)
    }

    pub(super) fn rotary(&self, operands: &[Operand], dtype: DataType) -> Result<Rc<Tensor>> {
        let (x, spec) = (self.tensor(operands, 0)?, self.held(operands, 0)?.1);
        let (cos, sin) = (self.tensor(operands, 1)?, self.tensor(operands, 2)?);
        let [b, h, s, e] = spec.shape.as_rank4();
        if e != TILE && !e.is_multiple_of(2 * TILE) {
            return self.rotary_by_halves(&x, &cos, &sin, [b, h, s, e], dtype);
        }
        let (cos, sin) = (self.cast(cos, DataType::Bfloat16)?, self.cast(sin, DataType::Bfloat16)?);
        let x = self.cast(x, DataType::Bfloat16)?;
        let flat = if b == 1 { x } else { self.reshaped(&x, [1, b * h, s, e])? };
        let y = self.made(ops::rotary_embedding_hf(&flat, &cos, &sin, DRAM, SysCompute::HIFI4))?;
        let y = if b == 1 { y } else { self.reshaped(&y, [b, h, s, e])? };
        self.cast(y, dtype)
    }

    /// Rotation of heads whose halves are not whole tiles.
    fn rotary_by_halves(
        &self,
        x: &Tensor,
        cos: &Tensor,
        sin: &Tensor,
        [b, h, s, e]: [usize; 4],
        dtype: DataType,
    ) -> Result<Rc<Tensor>> {
        let half = |first: usize| {
            let (begins, ends) = ([0, 0, 0, first], [b, h, s, first + e / 2]);
            ops::slice(x, &begins.map(|v| v as u32), &ends.map(|v| v as u32), &[1; 4], DRAM)
        };
        let (left, right) = (self.made(half(0))?, self.made(half(e / 2))?);
        let turned = self.made(ops::unary(ops::UnaryOp::Neg, &right, DRAM))?;
        let turned = self.made(ops::concat(&self.card.device, &[&turned, &left], -1, DRAM))?;
        let args = ops::Binary::new(sys_type(DataType::Float32));
        let times =
            |a: &Tensor, b: &Tensor| ops::binary(ops::BinaryOp::Multiply, a, ops::Rhs::Tensor(b), &args);
        let (straight, turned) = (self.made(times(x, cos))?, self.made(times(&turned, sin))?);
        let args = ops::Binary::new(sys_type(dtype));
        self.made(ops::binary(ops::BinaryOp::Add, &straight, ops::Rhs::Tensor(&turned), &args))
    }

    /// Rows `[b, s, heads · e]`, held as `[1, b, s, ..]`, to `[b, heads, s, e]` with padded heads.
    fn split(&self, rows: &Tensor, [b, s, heads, e]: [usize; 4]) -> Result<Rc<Tensor>> {
        let x = self.reshaped(rows, [b, s, heads, e])?;
        let x = self.made(ops::permute(&x, &[0, 2, 1, 3], DRAM))?;
        self.padded(x, s, whole_tiles(e), 0.0)
    }

    /// Heads `first..last` of `[b, heads, s, e]`.
    fn some_heads(&self, x: &Tensor, first: usize, last: usize) -> Result<Rc<Tensor>> {
        let shape = x.spec().map_err(super::failed(self.name))?.shape;
        let (begins, ends) = ([0, first as u32, 0, 0], [shape[0], last as u32, shape[2], shape[3]]);
        self.made(ops::slice(x, &begins, &ends, &[1; 4], DRAM))
    }

    pub(super) fn split_heads(
        &self,
        operands: &[Operand],
        apart: bool,
        h: usize,
        kv: usize,
        transpose_key: bool,
    ) -> Result<Vec<Rc<Tensor>>> {
        let (x, spec) = (self.tensor(operands, 0)?, self.held(operands, 0)?.1);
        let [_, b, s, width] = spec.shape.as_rank4();
        let e = width / if apart { h } else { h + 2 * kv };
        let second = if apart { Some((self.tensor(operands, 1)?, self.held(operands, 1)?.1)) } else { None };
        let keys = second.as_ref().map_or(s, |(_, spec)| spec.shape.as_rank4()[2]);
        if e.is_multiple_of(TILE) && keys == s {
            let x = self.reshaped(&x, [b, 1, s, width])?;
            let second = match second {
                Some((rows, _)) => Some(self.reshaped(&rows, [b, 1, s, 2 * kv * e])?),
                None => None,
            };
            let made = ops::create_heads(&x, second.as_deref(), h as u32, kv as u32, transpose_key, DRAM);
            let made = made.map_err(super::failed(self.name))?;
            return made.into_iter().map(|tensor| self.made(Ok(tensor))).collect();
        }
        let (q, others, first) = if let Some((rows, _)) = second {
            let q = self.split(&x, [b, s, h, e])?;
            (q, self.split(&rows, [b, keys, 2 * kv, e])?, 0)
        } else {
            let all = self.split(&x, [b, s, h + 2 * kv, e])?;
            (self.some_heads(&all, 0, h)?, all, h)
        };
        let mut k = self.some_heads(&others, first, first + kv)?;
        let v = self.some_heads(&others, first + kv, first + 2 * kv)?;
        if transpose_key {
            // A transposed key has its padding in rows, where others do not look for it.
            let ends = [b, kv, keys, e].map(|d| d as u32);
            k = self.made(ops::slice(&k, &[0; 4], &ends, &[1; 4], DRAM))?;
            k = self.made(ops::permute(&k, &[0, 1, 3, 2], DRAM))?;
        }
        Ok(vec![q, k, v])
    }

    pub(super) fn concatenate_heads(&self, operands: &[Operand], out: &TensorSpec) -> Result<Rc<Tensor>> {
        let (x, spec) = self.held(operands, 0)?;
        let [b, h, s, e] = spec.shape.as_rank4();
        let merged = if e.is_multiple_of(TILE) {
            self.made(ops::concat_heads(&x, DRAM))?
        } else {
            let rows = self.made(ops::permute(&x, &[0, 2, 1, 3], DRAM))?;
            self.made(ops::slice(&rows, &[0; 4], &[b, s, h, e].map(|d| d as u32), &[1; 4], DRAM))?
        };
        self.reshaped(&merged, out.shape.as_rank4())
    }
}

/// Keys that are attended to at a time, of `keys` in whole tiles: all where they fit.
fn chunk(keys: usize) -> usize {
    let tiles = keys / TILE;
    let most = KEYS / TILE;
    let fits = (1..=tiles.min(most)).rev().find(|t| tiles.is_multiple_of(*t)).unwrap_or(1);
    fits * TILE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_at_once_where_they_fit() {
        assert_eq!(chunk(320), 320);
        assert_eq!(chunk(32), 32);
        assert_eq!(chunk(1024), 512);
    }
}
