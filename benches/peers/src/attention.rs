//! Scaled dot-product attention without a mask: queries, keys and values of as many heads each.

use std::rc::Rc;

use candle_core::{Device, Tensor};
use candle_nn::attention::{AttnMask, flash_attn};
use candle_nn::ops::softmax_last_dim;
use tt_soft::{Elements, ElementsMut, Engine, SdpaConfig, View, ViewMut, sdpa};

use crate::values::{halves, values};
use crate::{Call, Contestant, Result, bound};

/// Heads, queries, keys, head dimension.
type Shape = [usize; 4];

/// Everyone who attends.
///
/// # Errors
/// If a library cannot take the operands.
pub fn attentions(engine: &Rc<Engine>, shape: Shape) -> Result<Vec<Contestant>> {
    let inputs = inputs(shape);
    let bf16 = Ours::new(engine, shape, inputs.each_ref().map(|values| halves(values)));
    let f32 = Ours::new(engine, shape, inputs.clone());
    Ok(vec![
        Contestant::new("tt-soft bf16", bound::BF16, bf16),
        Contestant::new("tt-soft f32", bound::F32, f32),
        Contestant::new("candle f32, flash_attn", bound::F32, Candle::new(&inputs, shape, true)?),
        Contestant::new("candle f32, matmul and softmax", bound::F32, Candle::new(&inputs, shape, false)?),
    ])
}

/// The attention in f64, `[heads, queries, head dimension]`.
pub fn attention_in_f64(shape: Shape) -> Vec<f64> {
    let [heads, queries, keys, width] = shape;
    let [q, k, v] = inputs(shape).map(|values| values.into_iter().map(f64::from).collect::<Vec<_>>());
    let mut out = vec![0.0; heads * queries * width];
    for (row, out) in out.chunks_exact_mut(width).enumerate() {
        let head = row / queries * keys * width..;
        let [k, v] = [&k, &v].map(|side| side[head.clone()].chunks_exact(width).take(keys));
        let q = &q[row * width..][..width];
        let score = |k: &[f64]| q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() / (width as f64).sqrt();
        let weights: Vec<f64> = k.map(|k| score(k).exp()).collect();
        let sum: f64 = weights.iter().sum();
        for (weight, v) in weights.iter().zip(v) {
            out.iter_mut().zip(v).for_each(|(out, v)| *out += weight / sum * v);
        }
    }
    out
}

/// Queries, keys and values, `[heads, rows, head dimension]`.
fn inputs([heads, queries, keys, width]: Shape) -> [Vec<f32>; 3] {
    [(3, queries), (4, keys), (5, keys)].map(|(seed, rows)| values(seed, heads * rows * width))
}

struct Ours<T> {
    engine: Rc<Engine>,
    shape: Shape,
    inputs: [Vec<T>; 3],
    out: Vec<T>,
}

impl<T: Copy + Default> Ours<T> {
    fn new(engine: &Rc<Engine>, shape: Shape, inputs: [Vec<T>; 3]) -> Self {
        let out = vec![T::default(); inputs[0].len()];
        Self { engine: engine.clone(), shape, inputs, out }
    }
}

impl<T: Copy + Into<f32>> Call for Ours<T>
where
    for<'a> Elements<'a>: From<&'a Vec<T>>,
    for<'a> ElementsMut<'a>: From<&'a mut Vec<T>>,
{
    fn run(&mut self) -> Result<()> {
        let [heads, queries, keys, width] = self.shape;
        let [q, k, v] = &self.inputs;
        let q = View::contiguous(q, [1, heads, queries, width])?;
        let k = View::contiguous(k, [1, heads, keys, width])?;
        let v = View::contiguous(v, [1, heads, keys, width])?;
        let mut out = ViewMut::contiguous(&mut self.out, [1, heads, queries, width])?;
        Ok(sdpa(&self.engine, &q, &k, &v, &SdpaConfig::default(), &mut out)?)
    }

    fn result(&self) -> Result<Vec<f32>> {
        Ok(self.out.iter().map(|v| (*v).into()).collect())
    }
}

/// candle's attention for CPUs, or a softmax between two products.
struct Candle {
    inputs: [Tensor; 3],
    scale: f64,
    fused: bool,
    out: Tensor,
}

impl Candle {
    fn new(inputs: &[Vec<f32>; 3], [heads, queries, keys, width]: Shape, fused: bool) -> Result<Self> {
        let tensor = |values: &Vec<f32>, rows| {
            let tensor = Tensor::from_vec(values.clone(), (1, heads, rows, width), &Device::Cpu)?;
            // flash_attn takes [1, rows, heads, width]
            if fused { tensor.transpose(1, 2)?.contiguous() } else { Ok(tensor) }
        };
        let [q, k, v] = inputs;
        let inputs = [tensor(q, queries)?, tensor(k, keys)?, tensor(v, keys)?];
        let out = inputs[0].clone();
        Ok(Self { inputs, scale: 1.0 / (width as f64).sqrt(), fused, out })
    }
}

impl Call for Candle {
    fn run(&mut self) -> Result<()> {
        let [q, k, v] = &self.inputs;
        self.out = if self.fused {
            flash_attn::<f32>(q, k, v, self.scale as f32, AttnMask::None, None, None)?
        } else {
            let scores = (q * self.scale)?.matmul(&k.t()?)?;
            softmax_last_dim(&scores)?.matmul(v)?
        };
        Ok(())
    }

    fn result(&self) -> Result<Vec<f32>> {
        Ok(self.out.flatten_all()?.to_vec1()?)
    }
}
