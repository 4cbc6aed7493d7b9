//! The header of a safetensors file: a length, then JSON that names dtype, shape and byte range of each tensor.
//!
//! Follows the format's description (<https://github.com/huggingface/safetensors#format>). Dtypes and entries are
//! the `safetensors` crate's; the walk is ours, because its errors do not name tensor and offset, it lets a
//! repeated name pass, and it wants the whole file in memory.

use std::collections::HashMap;

use safetensors::Dtype;
use safetensors::tensor::TensorInfo as Stored;

use crate::checkpoint::json_map::UniqueEntries;
use crate::checkpoint::{StoredDtype, TensorInfo};

/// Bytes of the little-endian header length at the start of the file.
pub(super) const LENGTH_BYTES: u64 = 8;
/// Longest header that is read: N1.5's is 0.1 MB.
pub(super) const MAX_HEADER_BYTES: u64 = 32 << 20;
/// The one key of a header that is not a tensor.
const METADATA_KEY: &str = "__metadata__";

/// Where a tensor lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) info: TensorInfo,
    /// First byte, counted from the start of the file.
    pub(super) offset: u64,
}

/// A header that has been checked: ranges are inside the file, neither overlap nor leave holes, and have the
/// size that dtype and shape ask for.
#[derive(Debug, Clone, Default)]
pub(super) struct Header {
    /// Names in the order of their data.
    pub(super) order: Vec<String>,
    pub(super) entries: HashMap<String, Entry>,
}

impl Header {
    /// Parses the JSON `text` of a file of `file_bytes` bytes.
    ///
    /// # Errors
    /// What is wrong, with the tensor's name and offset where there is one.
    pub(super) fn parse(text: &[u8], file_bytes: u64) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|e| format!("header is not UTF-8: {e}"))?;
        let UniqueEntries(values) = serde_json::from_str::<UniqueEntries<serde_json::Value>>(text)
            .map_err(|e| format!("header: {e}"))?;
        let mut raw = Vec::with_capacity(values.len());
        for (name, value) in values.into_iter().filter(|(name, _)| name != METADATA_KEY) {
            let stored = serde_json::from_value(value).map_err(|e| format!("tensor {name}: {e}"))?;
            raw.push((name, stored));
        }
        Self::check(raw, LENGTH_BYTES + text.len() as u64, file_bytes)
    }

    fn check(mut raw: Vec<(String, Stored)>, data_start: u64, file_bytes: u64) -> Result<Self, String> {
        raw.sort_by_key(|(_, stored)| stored.data_offsets);
        let data_bytes = file_bytes.saturating_sub(data_start);
        let mut header = Self::default();
        let mut next = 0;
        for (name, stored) in raw {
            let (begin, end) = stored.data_offsets;
            let (begin, end) = (begin as u64, end as u64);
            let what = |what: String| format!("tensor {name} at offset {begin}: {what}");
            let dtype = dtype(stored.dtype).ok_or_else(|| {
                what(format!("unsupported dtype {:?}, wanted BF16, F16 or F32", stored.dtype))
            })?;
            let bytes = stored
                .shape
                .iter()
                .try_fold(dtype.size(), |product, &n| product.checked_mul(n))
                .ok_or_else(|| what(format!("shape {:?} overflows", stored.shape)))?
                as u64;
            if end < begin {
                return Err(what(format!("ends before it begins, at {end}")));
            }
            if begin < next {
                return Err(what(format!("overlaps the tensor before it, which ends at {next}")));
            }
            if begin > next {
                return Err(what(format!("hole of {} bytes before it", begin - next)));
            }
            if end - begin != bytes {
                return Err(what(format!(
                    "{} bytes, but shape {:?} of {:?} has {bytes}",
                    end - begin,
                    stored.shape,
                    stored.dtype
                )));
            }
            if end > data_bytes {
                return Err(what(format!(
                    "ends at {end}, but the file is truncated to {data_bytes} bytes of data"
                )));
            }
            next = end;
            let info = TensorInfo { shape: stored.shape, dtype };
            header.order.push(name.clone());
            header.entries.insert(name, Entry { info, offset: data_start + begin });
        }
        if next != data_bytes {
            return Err(format!("{} bytes after the last tensor, which ends at {next}", data_bytes - next));
        }
        Ok(header)
    }
}

fn dtype(dtype: Dtype) -> Option<StoredDtype> {
    Some(match dtype {
        Dtype::F32 => StoredDtype::F32,
        Dtype::F16 => StoredDtype::F16,
        Dtype::BF16 => StoredDtype::Bf16,
        Dtype::F64 => StoredDtype::F64,
        Dtype::I64 => StoredDtype::I64,
        Dtype::I32 => StoredDtype::I32,
        Dtype::U8 => StoredDtype::U8,
        Dtype::BOOL => StoredDtype::Bool,
        _ => return None,
    })
}
