//! How much there is to load, so that the progress bar ends at its end.

use gr00t_host::ModelConfig;
use gr00t_host::checkpoint::{ExpectedTensor, Part, expected_tensors};

/// Tensors whose rows are looked up or added; nothing is multiplied with them.
const TABLES: [&str; 2] = ["position_embedding.weight", "future_tokens.weight"];

/// Elements of all matmul weights that a model with one embodiment loads.
pub(super) fn matmul_elements(config: &ModelConfig) -> u64 {
    let slots = config.gr00t.action_head_cfg.max_num_embodiments.max(1);
    let elements = |tensor: &ExpectedTensor| -> usize {
        let all = tensor.shape.iter().product();
        let is_table = TABLES.iter().any(|table| tensor.name.ends_with(table));
        match tensor.name.rsplit('.').next() {
            // one slot of those that there are
            Some("W") => all / slots,
            Some("weight") if tensor.shape.len() > 1 && !is_table => all,
            _ => 0,
        }
    };
    expected_tensors(config)
        .iter()
        .filter(|tensor| tensor.needed && tensor.part != Part::TokenEmbedding)
        .map(|tensor| elements(tensor) as u64)
        .sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use gr00t_host::checkpoint::{Checkpoint, OpenOptions, WeightsSpec};
    use gr00t_model::tt_ops::Soft;
    use gr00t_model::{CancelToken, Gr00t, ModelError};

    use super::*;

    fn mini() -> Checkpoint {
        let options = OpenOptions::new().config(ModelConfig::mini());
        Checkpoint::open(&WeightsSpec::Synthetic { seed: 0 }, &options).unwrap()
    }

    #[test]
    fn the_bar_ends_at_its_total() {
        let checkpoint = mini();
        let loaded = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&loaded);
        Gr00t::builder(checkpoint.config().clone(), checkpoint.weights(), Soft::open().unwrap())
            .embodiments([24])
            .on_progress(move |load| seen.store(load.elements, Ordering::SeqCst))
            .build()
            .unwrap();
        assert_eq!(loaded.load(Ordering::SeqCst) as u64, matmul_elements(checkpoint.config()));
    }

    #[test]
    fn loading_ends_when_it_is_told_to() {
        let checkpoint = mini();
        let (cancel, weights) = (CancelToken::new(), Arc::new(AtomicUsize::new(0)));
        let (its_cancel, seen) = (cancel.clone(), Arc::clone(&weights));
        let built = Gr00t::builder(checkpoint.config().clone(), checkpoint.weights(), Soft::open().unwrap())
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
