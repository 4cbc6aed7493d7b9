//! Token embedding on the host: a prompt reads some forty rows of a table of 151,680, which is not worth device memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use gr00t_host::Weights;
use gr00t_host::config::TextConfig;
use half::bf16;

use crate::error::Result;

/// Rows that are remembered: most words of most prompts.
const MAX_CACHED_ROWS: usize = 8192;

/// `embed_tokens`: reads rows from the checkpoint when they are first needed.
#[derive(Debug)]
pub(crate) struct TokenEmbedding {
    weights: Weights,
    vocab_size: usize,
    hidden_size: usize,
    rows: Mutex<HashMap<u32, Box<[bf16]>>>,
}

impl TokenEmbedding {
    /// `weight [vocab_size, hidden_size]` at `weights`. Reads one row, so that a wrong shape is found at load.
    pub(crate) fn new(config: &TextConfig, weights: Weights) -> Result<Self> {
        let &TextConfig { vocab_size, hidden_size, .. } = config;
        weights.bf16_rows("weight", &[vocab_size, hidden_size], 0..1)?;
        Ok(Self { weights, vocab_size, hidden_size, rows: Mutex::default() })
    }

    /// Appends the rows of `ids`, which are below the vocabulary's size.
    pub(crate) fn append(&self, ids: impl IntoIterator<Item = u32>, out: &mut Vec<bf16>) -> Result<()> {
        // a panic elsewhere leaves rows that are still right
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            if let Some(row) = rows.get(&id) {
                out.extend_from_slice(row);
                continue;
            }
            let at = id as usize;
            let row = self.weights.bf16_rows("weight", &[self.vocab_size, self.hidden_size], at..at + 1)?;
            out.extend_from_slice(&row);
            if rows.len() >= MAX_CACHED_ROWS {
                rows.clear();
            }
            rows.insert(id, row.into_boxed_slice());
        }
        Ok(())
    }
}
