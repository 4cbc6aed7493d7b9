//! A case with its operands, ready to run again and again.

use half::bf16;
use tt_soft::{
    Activation, Binary, Engine, Epilogue, Fused, Norm, Operand, PackedWeight, Result, SdpaConfig, View,
    ViewMut, WeightOrder,
};

use crate::cases::{Case, Kind};

/// Operands of a [`Case`]: made-up values of unit size.
#[derive(Debug)]
pub struct Prepared {
    kind: Kind,
    weight: Option<PackedWeight>,
    x: Vec<bf16>,
    /// Keys and values, tables, a norm's weight or its input.
    second: Vec<bf16>,
    rows: Vec<f32>,
    parameters: Vec<f32>,
    out: Vec<bf16>,
}

impl Case {
    /// Makes the operands.
    ///
    /// # Errors
    /// If the engine cannot pack the weight.
    pub fn prepare(&self, engine: &Engine) -> Result<Prepared> {
        let mut prepared = Prepared {
            kind: self.kind,
            weight: None,
            x: Vec::new(),
            second: Vec::new(),
            rows: Vec::new(),
            parameters: Vec::new(),
            out: Vec::new(),
        };
        let out = match self.kind {
            Kind::Linear { format, shape: [m, k, n], .. } => {
                let w = values(n * k);
                let source = View::contiguous(&w, [1, 1, n, k])?;
                prepared.weight = Some(PackedWeight::pack(engine, &[source], WeightOrder::OutIn, format)?);
                prepared.x = values(m * k);
                m * n
            }
            Kind::Attention { shape: [heads, kv_heads, queries, keys, width], .. } => {
                prepared.x = values(heads * queries * width);
                prepared.second = values(kv_heads * keys * width);
                heads * queries * width
            }
            Kind::LayerNorm([rows, width]) | Kind::RmsNorm([rows, width]) => {
                prepared.rows = floats(rows * width);
                prepared.parameters = floats(width);
                rows * width
            }
            Kind::Swiglu([rows, width]) => {
                prepared.x = values(2 * rows * width);
                rows * width
            }
            Kind::Rotary([heads, rows, width]) => {
                prepared.x = values(heads * rows * width);
                prepared.rows = floats(rows * width);
                heads * rows * width
            }
        };
        prepared.out = vec![bf16::ZERO; out];
        Ok(prepared)
    }
}

impl Prepared {
    /// Bytes that a run must read and write at least.
    pub fn bytes(&self) -> usize {
        let halves = self.x.len() + 2 * self.second.len() + self.out.len();
        let floats = self.rows.len() + self.parameters.len();
        self.weight.as_ref().map_or(0, PackedWeight::bytes) + 2 * halves + 4 * floats
    }

    /// Runs the kernel once.
    ///
    /// # Errors
    /// If a thread of the engine panics.
    pub fn run(&mut self, engine: &Engine) -> Result<()> {
        match self.kind {
            Kind::Linear { shape: [m, k, n], activation, .. } => {
                let Some(weight) = &self.weight else { return Ok(()) };
                let x = View::contiguous(&self.x, [1, 1, m, k])?;
                let mut out = ViewMut::contiguous(&mut self.out, [1, 1, m, n])?;
                let epilogue = Epilogue { activation, ..Epilogue::default() };
                tt_soft::linear(engine, &x, weight, &epilogue, &mut out)
            }
            Kind::Attention { shape: [heads, kv_heads, queries, keys, width], causal } => {
                let q = View::contiguous(&self.x, [1, heads, queries, width])?;
                let kv = View::contiguous(&self.second, [1, kv_heads, keys, width])?;
                let mut out = ViewMut::contiguous(&mut self.out, [1, heads, queries, width])?;
                let config = SdpaConfig { causal, ..SdpaConfig::default() };
                tt_soft::sdpa(engine, &q, &kv, &kv, &config, &mut out)
            }
            Kind::LayerNorm([rows, width]) => {
                let x = View::contiguous(&self.rows, [1, 1, rows, width])?;
                let mut out = ViewMut::contiguous(&mut self.out, [1, 1, rows, width])?;
                let (weight, bias) = (Some(&self.parameters[..]), Some(&self.parameters[..]));
                tt_soft::layer_norm(engine, &x, &Norm { weight, bias, eps: 1e-6 }, &mut out)
            }
            Kind::RmsNorm([rows, width]) => {
                let x = View::contiguous(&self.rows, [1, 1, rows, width])?;
                let mut out = ViewMut::contiguous(&mut self.out, [1, 1, rows, width])?;
                let norm = Norm { weight: Some(&self.parameters), bias: None, eps: 1e-6 };
                tt_soft::rms_norm(engine, &x, &norm, &mut out)
            }
            Kind::Swiglu([rows, width]) => {
                let [up, gate] =
                    [0, width].map(|at| View::new(&self.x[at..], [1, 1, rows, width], [0, 0, 2 * width, 1]));
                let mut out = ViewMut::contiguous(&mut self.out, [1, 1, rows, width])?;
                let fused = Fused { rhs: Some(Activation::Silu), ..Fused::default() };
                tt_soft::binary_fused(engine, Binary::Mul, fused, &up?, &Operand::View(gate?), &mut out)
            }
            Kind::Rotary([heads, rows, width]) => {
                let x = View::contiguous(&self.x, [1, heads, rows, width])?;
                let table = View::contiguous(&self.rows, [1, 1, rows, width])?;
                let mut out = ViewMut::contiguous(&mut self.out, [1, heads, rows, width])?;
                tt_soft::rotary(engine, &x, &table, &table, &mut out)
            }
        }
    }
}

fn floats(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i * 7919 % 1013) as f32 / 1013.0 - 0.5).collect()
}

fn values(len: usize) -> Vec<bf16> {
    floats(len).into_iter().map(bf16::from_f32).collect()
}

#[cfg(test)]
mod tests {
    use gr00t_host::ModelConfig;
    use gr00t_model::DtypePolicy;
    use tt_soft::Isa;

    use super::*;

    #[test]
    fn every_case_runs_and_writes_its_result() {
        let engine = Engine::new(Isa::detect(), 1).unwrap();
        for case in crate::cases(&ModelConfig::mini(), DtypePolicy::MixedDit) {
            let mut prepared = case.prepare(&engine).unwrap();
            prepared.run(&engine).unwrap();
            assert!(prepared.out.iter().any(|v| *v != bf16::ZERO), "{}", case.name);
            assert!(prepared.bytes() > 0, "{}", case.name);
        }
    }
}
