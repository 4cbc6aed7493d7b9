//! `x w`, x `[m, k]`, with a weight stored `[n, k]` as in a checkpoint.

use std::rc::Rc;

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{DType, Device, Module, Tensor};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use tt_soft::{
    Elements, ElementsMut, Engine, Epilogue, PackedWeight, View, ViewMut, WeightFormat, WeightOrder,
};

use crate::values::{halves, values};
use crate::{Call, Contestant, Result, bound};

/// Bytes of weights that a contestant goes through before it meets one again: several times the last cache's size.
const COLD_BYTES: usize = 160 << 20;

/// Seeds of x and of the weight.
const SEEDS: [u64; 2] = [1, 2];

/// Everyone who multiplies `[m, k, n]`.
///
/// # Errors
/// If a library cannot take a weight.
pub fn products(engine: &Rc<Engine>, [m, k, n]: [usize; 3]) -> Result<Vec<Contestant>> {
    let [x, w] = [values(SEEDS[0], m * k), values(SEEDS[1], n * k)];
    let shape = [m, k, n];
    let candle = |dtype| Candle::new(&x, &w, shape, dtype);
    Ok(vec![
        Contestant::new(
            "tt-soft bf16",
            bound::BF16,
            Ours::new(engine, halves(&x), &w, shape, WeightFormat::Bf16)?,
        ),
        Contestant::new(
            "tt-soft bfp8_b",
            bound::EIGHT_BITS,
            Ours::new(engine, halves(&x), &w, shape, WeightFormat::Bfp8B)?,
        ),
        Contestant::new(
            "tt-soft f32",
            bound::F32,
            Ours::new(engine, x.clone(), &w, shape, WeightFormat::F32)?,
        ),
        Contestant::new("candle f32", bound::F32, candle(DType::F32)?),
        Contestant::new("candle bf16", bound::BF16, candle(DType::BF16)?),
        Contestant::new("candle q8_0", bound::EIGHT_BITS, Quantised::new(&x, &w, shape)?),
        Contestant::new("faer f32", bound::F32, Faer::new(&x, &w, shape)?),
    ])
}

/// The product in f64, of every `step`th row of x.
pub fn product_in_f64([m, k, n]: [usize; 3], step: usize) -> Vec<f64> {
    let [x, w] = [values(SEEDS[0], m * k), values(SEEDS[1], n * k)];
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    x.chunks_exact(k)
        .step_by(step)
        .flat_map(|row| w.chunks_exact(k).map(move |column| dot(row, column)))
        .collect()
}

/// Copies of a weight, by turns.
struct Turns<W> {
    copies: Vec<W>,
    next: usize,
}

impl<W> Turns<W> {
    /// As many copies of `bytes` bytes as it takes.
    fn new(bytes: usize, make: impl Fn() -> Result<W>) -> Result<Self> {
        let copies = (0..COLD_BYTES.div_ceil(bytes)).map(|_| make()).collect::<Result<_>>()?;
        Ok(Self { copies, next: 0 })
    }

    fn take(&mut self) -> &W {
        self.next = (self.next + 1) % self.copies.len();
        &self.copies[self.next]
    }
}

struct Ours<T> {
    engine: Rc<Engine>,
    shape: [usize; 3],
    x: Vec<T>,
    weights: Turns<PackedWeight>,
    out: Vec<T>,
}

impl<T: Copy + Default> Ours<T> {
    fn new(
        engine: &Rc<Engine>,
        x: Vec<T>,
        w: &[f32],
        shape: [usize; 3],
        format: WeightFormat,
    ) -> Result<Self> {
        let [m, k, n] = shape;
        let pack = || {
            let source = View::contiguous(w, [1, 1, n, k])?;
            Ok(PackedWeight::pack(engine, &[source], WeightOrder::OutIn, format)?)
        };
        let weights = Turns::new(pack()?.bytes(), pack)?;
        Ok(Self { engine: engine.clone(), shape, x, weights, out: vec![T::default(); m * n] })
    }
}

impl<T: Copy + Into<f32>> Call for Ours<T>
where
    for<'a> Elements<'a>: From<&'a Vec<T>>,
    for<'a> ElementsMut<'a>: From<&'a mut Vec<T>>,
{
    fn run(&mut self) -> Result<()> {
        let [m, k, n] = self.shape;
        let x = View::contiguous(&self.x, [1, 1, m, k])?;
        let mut out = ViewMut::contiguous(&mut self.out, [1, 1, m, n])?;
        Ok(tt_soft::linear(&self.engine, &x, self.weights.take(), &Epilogue::default(), &mut out)?)
    }

    fn result(&self) -> Result<Vec<f32>> {
        Ok(self.out.iter().map(|v| (*v).into()).collect())
    }
}

/// `Tensor::matmul` with the transposed weight, as in candle's `Linear`.
struct Candle {
    x: Tensor,
    weights: Turns<Tensor>,
    out: Tensor,
}

impl Candle {
    fn new(x: &[f32], w: &[f32], [m, k, n]: [usize; 3], dtype: DType) -> Result<Self> {
        let tensor = |values: &[f32], shape: (usize, usize)| {
            let values = values.to_vec();
            match dtype {
                DType::BF16 => Tensor::from_vec(halves(&values), shape, &Device::Cpu),
                _ => Tensor::from_vec(values, shape, &Device::Cpu),
            }
        };
        let weights = Turns::new(w.len() * dtype.size_in_bytes(), || Ok(tensor(w, (n, k))?.t()?))?;
        let x = tensor(x, (m, k))?;
        Ok(Self { out: x.clone(), x, weights })
    }
}

impl Call for Candle {
    fn run(&mut self) -> Result<()> {
        self.out = self.x.matmul(self.weights.take())?;
        Ok(())
    }

    fn result(&self) -> Result<Vec<f32>> {
        Ok(self.out.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?)
    }
}

/// candle's product with a weight in GGML's blocks of 8 bits; x is float32 and becomes such blocks too.
struct Quantised {
    x: Tensor,
    weights: Turns<QMatMul>,
    out: Tensor,
}

impl Quantised {
    fn new(x: &[f32], w: &[f32], [m, k, n]: [usize; 3]) -> Result<Self> {
        let weight = Tensor::from_vec(w.to_vec(), (n, k), &Device::Cpu)?;
        let quantised = || QTensor::quantize(&weight, GgmlDType::Q8_0);
        let bytes = quantised()?.storage_size_in_bytes();
        let weights = Turns::new(bytes, || Ok(QMatMul::from_qtensor(quantised()?)?))?;
        let x = Tensor::from_vec(x.to_vec(), (m, k), &Device::Cpu)?;
        Ok(Self { out: x.clone(), x, weights })
    }
}

impl Call for Quantised {
    fn run(&mut self) -> Result<()> {
        self.out = self.weights.take().forward(&self.x)?;
        Ok(())
    }

    fn result(&self) -> Result<Vec<f32>> {
        Ok(self.out.flatten_all()?.to_vec1()?)
    }
}

struct Faer {
    shape: [usize; 3],
    x: Vec<f32>,
    weights: Turns<Vec<f32>>,
    out: Vec<f32>,
}

impl Faer {
    fn new(x: &[f32], w: &[f32], shape: [usize; 3]) -> Result<Self> {
        let weights = Turns::new(size_of_val(w), || Ok(w.to_vec()))?;
        Ok(Self { shape, x: x.to_vec(), weights, out: vec![0.0; shape[0] * shape[2]] })
    }
}

impl Call for Faer {
    fn run(&mut self) -> Result<()> {
        let [m, k, n] = self.shape;
        let x = MatRef::from_row_major_slice(&self.x, m, k);
        let w = MatRef::from_row_major_slice(self.weights.take(), n, k).transpose();
        let out = MatMut::from_row_major_slice_mut(&mut self.out, m, n);
        matmul(out, Accum::Replace, x, w, 1.0, Par::rayon(0));
        Ok(())
    }

    fn result(&self) -> Result<Vec<f32>> {
        Ok(self.out.clone())
    }
}
