//! How a model gets onto a device.

use std::collections::BTreeSet;

use gr00t_host::checkpoint::{ExpectedTensor, Part, expected_tensors};
use gr00t_host::{ModelConfig, Weights};
use tt_ops::Device;

use super::{Gr00t, ModelOptions};
use crate::dtype_policy::DtypePolicy;
use crate::error::Result;
use crate::network::Network;
use crate::packed_cache::PackedCache;
use crate::stages::{CancelToken, TraceLayout};
use crate::weights::{Ledger, Progress};

/// How far loading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadProgress {
    /// Matmul weights of the checkpoint that are on the device.
    pub tensors: usize,
    /// Their elements.
    pub elements: usize,
    /// Elements of all that are loaded in the end.
    pub total_elements: usize,
}

/// Tensors whose rows are looked up or added; nothing is multiplied with them.
const TABLES: [&str; 2] = ["position_embedding.weight", "future_tokens.weight"];
/// Tensors that only the time meets: constants are computed with them once there is an embodiment.
const OF_TIME: [&str; 3] = [".timestep_encoder.", ".norm1.linear.", ".proj_out_1."];

/// Options of loading. See [`Gr00t::builder`].
#[must_use]
pub struct Gr00tBuilder<D: Device> {
    config: ModelConfig,
    weights: Weights,
    device: D,
    policy: DtypePolicy,
    embodiments: Vec<usize>,
    options: ModelOptions,
    progress: Option<Box<dyn Fn(LoadProgress) + Send + Sync>>,
    cache: Option<PackedCache>,
    cancel: CancelToken,
}

impl<D: Device> std::fmt::Debug for Gr00tBuilder<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { device, policy, embodiments, options, .. } = self;
        f.debug_struct("Gr00tBuilder")
            .field("device", device)
            .field("policy", policy)
            .field("embodiments", embodiments)
            .field("options", options)
            .finish_non_exhaustive()
    }
}

impl<D: Device> Gr00tBuilder<D> {
    pub(super) fn new(config: ModelConfig, weights: Weights, device: D) -> Self {
        let options = ModelOptions::new::<D>(&config.gr00t.action_head_cfg);
        let (policy, embodiments) = (DtypePolicy::default(), Vec::new());
        let cancel = CancelToken::new();
        Self { config, weights, device, policy, embodiments, options, progress: None, cache: None, cancel }
    }

    /// The geometry.
    pub(crate) fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Data types of the matmul weights; `mixed_dit`.
    pub fn dtype_policy(mut self, policy: DtypePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Slots of the category-specific weights to load, beside those named before.
    pub fn embodiments(mut self, slots: impl IntoIterator<Item = usize>) -> Self {
        self.embodiments.extend(slots);
        self
    }

    /// How stages are grouped into traces; one each.
    pub fn trace_layout(mut self, layout: TraceLayout) -> Self {
        self.options.trace_layout = layout;
        self
    }

    /// Captured geometries that are kept.
    pub fn trace_cap(mut self, cap: usize) -> Self {
        self.options.trace_cap = cap;
        self
    }

    /// Sequences are padded to a multiple of this many tokens; 1 pads nothing. By default what costs the device nothing.
    pub fn sequence_bucket(mut self, tokens: usize) -> Self {
        self.options.sequence_bucket = tokens;
        self
    }

    /// Observations of a batch that share one replay.
    pub fn max_batch(mut self, observations: usize) -> Self {
        self.options.max_batch = observations;
        self
    }

    /// Euler steps where a prediction asks for no other number.
    pub fn denoising_steps(mut self, steps: usize) -> Self {
        self.options.denoising_steps = steps;
        self
    }

    /// Takes packed weights from `cache` and puts those there that it lacks; none by default.
    pub fn packed_cache(mut self, cache: Option<PackedCache>) -> Self {
        self.cache = cache;
        self
    }

    /// Ends loading before the next matmul weight, with [`ModelError::LoadCancelled`](crate::ModelError::LoadCancelled), once it
    /// is asked to.
    pub fn cancel_token(mut self, cancel: CancelToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Called after each matmul weight.
    pub fn on_progress(mut self, progress: impl Fn(LoadProgress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Loads the weights and computes what depends on the time buckets alone.
    ///
    /// # Errors
    /// Options out of range, weights that are missing or have another shape, what the device reports.
    pub fn build(self) -> Result<Gr00t<D>> {
        self.options.check()?;
        let slots = self.embodiments.iter().collect::<BTreeSet<_>>().len();
        let total_elements = matmul_elements(&self.config, slots);
        let progress = self.progress.map(|progress| -> Progress {
            Box::new(move |tensors, elements| progress(LoadProgress { tensors, elements, total_elements }))
        });
        let ledger = Ledger::new(progress, self.cache, self.cancel);
        let network = Network::new(self.device, self.config, self.weights, self.policy, ledger)?;
        for slot in self.embodiments {
            network.load_embodiment(slot)?;
            network.conditioning(slot, self.options.denoising_steps)?;
        }
        Ok(Gr00t::from_network(network, self.options))
    }
}

/// Elements of all matmul weights of a model with `slots` embodiments.
fn matmul_elements(config: &ModelConfig, slots: usize) -> usize {
    let all_slots = config.gr00t.action_head_cfg.max_num_embodiments.max(1);
    let elements = |tensor: &ExpectedTensor| -> usize {
        let all: usize = tensor.shape.iter().product();
        let is_table = TABLES.iter().any(|table| tensor.name.ends_with(table));
        let is_of_time = OF_TIME.iter().any(|part| tensor.name.contains(part));
        match tensor.name.rsplit('.').next() {
            Some("W") => all / all_slots * slots,
            Some("weight") if is_of_time && slots == 0 => 0,
            Some("weight") if tensor.shape.len() > 1 && !is_table => all,
            _ => 0,
        }
    };
    expected_tensors(config)
        .iter()
        .filter(|tensor| tensor.needed && tensor.part != Part::TokenEmbedding)
        .map(elements)
        .sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
    use tt_ops::Soft;

    use super::*;
    use crate::ModelError;

    fn mini() -> Gr00tBuilder<Soft> {
        let options = OpenOptions::new().config(ModelConfig::mini());
        let checkpoint = Checkpoint::open(&WeightsSpec::Synthetic { seed: 0 }, &options).unwrap();
        Gr00t::builder(checkpoint.config().clone(), checkpoint.weights(), Soft::open().unwrap())
    }

    #[test]
    fn loading_ends_at_its_total() {
        for slots in [&[][..], &[24], &[24, 3, 24]] {
            let last = Arc::new(Mutex::new(None));
            let seen = Arc::clone(&last);
            let loading = mini().embodiments(slots.iter().copied());
            loading.on_progress(move |load| *seen.lock().unwrap() = Some(load)).build().unwrap();
            let last = last.lock().unwrap().unwrap();
            assert!(last.elements > 0 && last.tensors > 0);
            assert_eq!(last.elements, last.total_elements, "{slots:?}");
        }
    }

    #[test]
    fn loading_ends_when_it_is_told_to() {
        let (cancel, weights) = (CancelToken::new(), Arc::new(AtomicUsize::new(0)));
        let (its_cancel, seen) = (cancel.clone(), Arc::clone(&weights));
        let built = mini()
            .embodiments([24])
            .cancel_token(cancel)
            .on_progress(move |_| {
                if seen.fetch_add(1, Ordering::SeqCst) == 2 {
                    its_cancel.cancel();
                }
            })
            .build();
        assert!(matches!(built, Err(ModelError::LoadCancelled)));
        assert_eq!(weights.load(Ordering::SeqCst), 3);
    }
}
