//! [`Loader`]: a place in a checkpoint together with the device and the data type that its weights shall have.

use std::fmt::Display;
use std::ops::Range;

use gr00t_host::Weights;
use half::bf16;
use tt_ops::{DataType, Device, Float32, HostSlice, Tensor, Weight, WeightOrder, WeightSpec};

use super::{Ledger, WeightRole};
use crate::dtype_policy::{DtypePolicy, Part};
use crate::error::Result;

/// Puts weights on a device. Walked by dotted path like [`Weights`].
#[derive(Debug, Clone)]
pub(crate) struct Loader<'a, D: Device> {
    device: &'a D,
    weights: Weights,
    part: Part,
    dtype: DataType,
    ledger: &'a Ledger,
}

/// Values on their way to the device, in the width that loses nothing.
enum Values {
    Bf16(Vec<bf16>),
    F32(Vec<f32>),
}

impl Values {
    fn slice(&self) -> HostSlice<'_> {
        match self {
            Self::Bf16(values) => HostSlice::Bf16(values),
            Self::F32(values) => HostSlice::F32(values),
        }
    }
}

impl<'a, D: Device> Loader<'a, D> {
    /// The checkpoint's root, for the weights of `part` under `policy`.
    pub(crate) fn new(
        device: &'a D,
        weights: &Weights,
        policy: DtypePolicy,
        part: Part,
        ledger: &'a Ledger,
    ) -> Self {
        Self { device, weights: weights.clone(), part, dtype: policy.weights(part), ledger }
    }

    /// The place `part` below this one.
    pub(crate) fn pp(&self, part: impl Display) -> Self {
        Self { weights: self.weights.pp(part), ..self.clone() }
    }

    /// The same place, for matmul weights in fp32 that are used once at load and not kept.
    pub(crate) fn precise(&self) -> Self {
        Self { dtype: DataType::Float32, ..self.clone() }
    }

    /// A matmul weight of several `torch.nn.Linear` weights `[out, inputs]` side by side: one for `[(name, out)]`.
    pub(crate) fn fused_out_in(&self, inputs: usize, parts: &[(&str, usize)]) -> Result<Weight<D>> {
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        let n = parts.iter().map(|(_, out)| out).sum();
        let spec = WeightSpec { k: inputs, n, dtype: self.dtype, order: WeightOrder::OutIn };
        self.matmul_weight(&names.join("+"), spec, parts.len(), || {
            parts
                .iter()
                .map(|(name, out)| self.values(&self.weights.pp(name), "weight", &[*out, inputs], 0..*out))
                .collect()
        })
    }

    /// A matmul weight `[out, ..]` whose trailing extents are flattened: a convolution with stride = kernel.
    pub(crate) fn conv_out_in(&self, shape: [usize; 4]) -> Result<Weight<D>> {
        let [n, channels, rows, columns] = shape;
        let k = channels * rows * columns;
        let spec = WeightSpec { k, n, dtype: self.dtype, order: WeightOrder::OutIn };
        let read = || Ok(vec![self.values(&self.weights, "weight", &shape, 0..n)?]);
        self.matmul_weight("weight", spec, 1, read)
    }

    /// Rows `rows` of slot `slot` of a category-specific weight `W [slots, inputs, out]`, used as `x · W[slot]`.
    pub(crate) fn category(
        &self,
        [slots, inputs, out]: [usize; 3],
        slot: usize,
        rows: Range<usize>,
    ) -> Result<Weight<D>> {
        let spec = WeightSpec { k: rows.len(), n: out, dtype: self.dtype, order: WeightOrder::InOut };
        let name = format!("W[{slot}][{rows:?}]");
        self.matmul_weight(&name, spec, 1, || {
            let mut values = self.weights.f32_rows("W", &[slots, inputs, out], slot..slot + 1)?;
            values.truncate(rows.end * out);
            Ok(vec![Values::F32(values.split_off(rows.start * out))])
        })
    }

    /// A packed weight: from the cache, or of what `read` gives.
    fn matmul_weight(
        &self,
        name: &str,
        spec: WeightSpec,
        tensors: usize,
        read: impl FnOnce() -> Result<Vec<Values>>,
    ) -> Result<Weight<D>> {
        self.ledger.check()?;
        let pack = || -> Result<Weight<D>> {
            let values = read()?;
            let slices: Vec<HostSlice<'_>> = values.iter().map(Values::slice).collect();
            Ok(Weight::pack(self.device, spec, &slices)?)
        };
        let weight = match self.ledger.cache().filter(|_| self.is_kept()) {
            Some(cache) => cache.get_or_pack(self.device, &self.weights.path(name), spec, pack)?,
            None => pack()?,
        };
        self.note(&weight, tensors);
        Ok(weight)
    }

    /// Biases `[out]` of several layers one after another.
    pub(crate) fn fused_bias(&self, parts: &[(&str, usize)]) -> Result<Tensor<D, Float32>> {
        let mut values = Vec::new();
        for (name, out) in parts {
            values.extend(self.weights.pp(name).f32("bias", &[*out])?);
        }
        self.tensor(WeightRole::Bias, &[values.len()], &values)
    }

    /// Bias `[out]` of slot `slot`.
    pub(crate) fn category_bias(&self, slots: usize, out: usize, slot: usize) -> Result<Tensor<D, Float32>> {
        let values = self.weights.f32_rows("b", &[slots, out], slot..slot + 1)?;
        self.tensor(WeightRole::Bias, &[out], &values)
    }

    /// A vector `[dim]` of a norm.
    pub(crate) fn norm(&self, leaf: &str, dim: usize) -> Result<Tensor<D, Float32>> {
        self.tensor(WeightRole::Norm, &[dim], &self.weights.f32(leaf, &[dim])?)
    }

    /// Rows `rows` of a table `[count, dim]`, as `[1, rows, dim]`.
    pub(crate) fn table(
        &self,
        leaf: &str,
        [count, dim]: [usize; 2],
        rows: Range<usize>,
    ) -> Result<Tensor<D, Float32>> {
        let shape = [1, rows.len(), dim];
        let values = self.weights.f32_rows(leaf, &[count, dim], rows)?;
        self.tensor(WeightRole::Table, &shape, &values)
    }

    /// Values computed on the host, as a tensor that is not kept.
    pub(crate) fn scratch(&self, shape: [usize; 2], values: &[f32]) -> Result<Tensor<D, Float32>> {
        Ok(Tensor::from_span(self.device, shape, values)?)
    }

    /// Notes vectors that were computed on the device at load and stay there.
    pub(crate) fn note_computed(&self, tensors: usize, elements: usize) {
        let bytes = DataType::Float32.bytes(elements);
        self.ledger.add(self.part, WeightRole::Table, DataType::Float32, tensors, elements, bytes);
    }

    /// Whether weights read here stay on the device.
    fn is_kept(&self) -> bool {
        self.dtype != DataType::Float32
    }

    fn tensor(&self, role: WeightRole, shape: &[usize], values: &[f32]) -> Result<Tensor<D, Float32>> {
        let shape = tt_ops::Shape::new(shape)
            .ok_or_else(|| tt_ops::TtError::shape("from_span", format!("{shape:?}"), "rank 1 to 4"))?;
        let tensor = Tensor::from_span(self.device, shape, values)?;
        if self.is_kept() {
            self.ledger.add(self.part, role, DataType::Float32, 1, values.len(), tensor.spec().bytes());
        }
        Ok(tensor)
    }

    /// Rows of `leaf` at `place`: bf16 for bf16 weights, else fp32, so that block formats are made from the stored value.
    fn values(&self, place: &Weights, leaf: &str, shape: &[usize], rows: Range<usize>) -> Result<Values> {
        Ok(if self.dtype == DataType::Bfloat16 {
            Values::Bf16(place.bf16_rows(leaf, shape, rows)?)
        } else {
            Values::F32(place.f32_rows(leaf, shape, rows)?)
        })
    }

    fn note(&self, weight: &Weight<D>, tensors: usize) {
        let spec = weight.spec();
        if self.is_kept() {
            self.ledger.add(self.part, WeightRole::Matmul, spec.dtype, 1, spec.k * spec.n, weight.bytes());
        }
        self.ledger.progress(tensors, spec.k * spec.n);
    }
}
