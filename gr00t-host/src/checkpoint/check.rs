//! The slow check: every element of every weight is read and must be finite.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use half::bf16;
use rayon::prelude::*;

use super::{StoredDtype, TensorSource};
use crate::{Error, Result};

/// Elements that one thread looks at, at a time.
const CHUNK: usize = 1 << 20;

/// What [`check_finite`] has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Tensors.
    pub tensors: usize,
    /// Their elements.
    pub elements: u64,
    /// Their bytes as stored.
    pub bytes: u64,
}

/// Reads all weights of `source` in parallel; `progress` is called with bytes done and bytes in all, from several
/// threads.
///
/// # Errors
/// [`Error::Checkpoint`] that lists every tensor with a NaN or an infinity and the first such element's index;
/// or the first error of reading.
pub fn check_finite(source: &dyn TensorSource, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<CheckReport> {
    let mut jobs = Vec::new();
    let mut report = CheckReport { tensors: 0, elements: 0, bytes: 0 };
    for name in source.names() {
        let Some(info) = source.info(&name).filter(|info| info.dtype.is_weight()) else { continue };
        let elements = info.elements();
        report.tensors += 1;
        report.elements += elements as u64;
        report.bytes += info.bytes() as u64;
        jobs.push((name, info.dtype, elements));
    }
    let done = AtomicU64::new(0);
    let bad: Mutex<Vec<String>> = Mutex::default();
    jobs.par_iter().try_for_each(|(name, dtype, elements)| {
        let chunks = elements.div_ceil(CHUNK);
        let first = (0..chunks)
            .into_par_iter()
            .map(|chunk| {
                let start = chunk * CHUNK;
                let len = CHUNK.min(elements - start);
                let found = first_not_finite(source, name, *dtype, start, len)?;
                let bytes = (len * dtype.size()) as u64;
                progress(done.fetch_add(bytes, Ordering::Relaxed) + bytes, report.bytes);
                Ok(found)
            })
            .try_reduce(|| None, |a, b| Ok(a.or(b)))?;
        if let Some((index, value)) = first {
            let line = format!("tensor {name} is {value} at element {index} of {elements}");
            bad.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(line);
        }
        Ok(())
    })?;
    let mut bad = bad.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    bad.sort();
    if bad.is_empty() {
        Ok(report)
    } else {
        Err(Error::Checkpoint { path: source.describe().into(), what: bad.join("; ") })
    }
}

fn first_not_finite(
    source: &dyn TensorSource,
    name: &str,
    dtype: StoredDtype,
    start: usize,
    len: usize,
) -> Result<Option<(usize, f32)>> {
    let found = if dtype == StoredDtype::F32 {
        // Not through bf16, where a large finite number rounds to infinity.
        let mut values = vec![0.0; len];
        source.read_f32(name, start, &mut values)?;
        values.iter().position(|v| !v.is_finite()).map(|i| (i, values[i]))
    } else {
        let mut values = vec![bf16::ZERO; len];
        source.read_bf16(name, start, &mut values)?;
        values.iter().position(|v| !v.is_finite()).map(|i| (i, values[i].to_f32()))
    };
    Ok(found.map(|(i, value)| (start + i, value)))
}
