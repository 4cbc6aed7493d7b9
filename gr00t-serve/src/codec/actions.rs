//! Action chunks as the arrays that clients expect.

use gr00t_host::ActionChunk;

use super::array::{Array, Elements};
use super::error::{CodecError, Result};
use super::value::Value;

/// One f32 array per action key, named `prefix` and the key, in the data config's order: `[horizon, dim]`, or
/// `[batch, horizon, dim]` if `batched`.
///
/// # Errors
/// [`CodecError::Array`] if the chunks differ in their keys or sizes, or if there are several and not `batched`.
pub fn action_arrays(chunks: &[ActionChunk], batched: bool, prefix: &str) -> Result<Vec<(String, Value)>> {
    let Some(first) = chunks.first() else { return Ok(Vec::new()) };
    first
        .groups
        .iter()
        .map(|group| {
            let mut values = Vec::with_capacity(chunks.len().saturating_mul(group.values.len()));
            for chunk in chunks {
                let same = chunk.group(&group.key).ok_or_else(|| {
                    CodecError::Array(format!("an action chunk of the batch lacks {}", group.key))
                })?;
                values.extend_from_slice(&same.values);
            }
            let array = stacked(chunks.len(), batched, first.horizon, group.dim, values)?;
            Ok((format!("{prefix}{}", group.key), Value::Array(array)))
        })
        .collect()
}

/// All action keys side by side, in the data config's order: `[horizon, sum of dims]`, or with `[batch, …]` in front.
///
/// # Errors
/// As [`action_arrays`].
pub fn action_matrix(chunks: &[ActionChunk], batched: bool) -> Result<Array> {
    let first = chunks.first().ok_or_else(|| CodecError::Array("no action chunk".to_owned()))?;
    let dim: usize = first.groups.iter().map(|group| group.dim).sum();
    let mut values = Vec::with_capacity(chunks.len().saturating_mul(first.horizon).saturating_mul(dim));
    for chunk in chunks {
        for step in 0..chunk.horizon {
            for group in &chunk.groups {
                let row = group.values.get(step * group.dim..(step + 1) * group.dim);
                values.extend_from_slice(row.unwrap_or_default());
            }
        }
    }
    stacked(chunks.len(), batched, first.horizon, dim, values)
}

fn stacked(batch: usize, batched: bool, horizon: usize, dim: usize, values: Vec<f32>) -> Result<Array> {
    let shape = if batched { vec![batch, horizon, dim] } else { vec![horizon, dim] };
    Array::new(shape, Elements::F32(values))
}
