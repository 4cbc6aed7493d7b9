//! What weights consist of: tensors, elements and bytes per part of the model.

use std::collections::{BTreeMap, HashMap};

use super::plan::expected_tensors;
use super::{Part, StoredDtype, TensorSource};
use crate::ModelConfig;

/// Sum over the tensors of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartSize {
    /// The part, `None` for tensors that the model does not have.
    pub part: Option<Part>,
    /// Whether inference reads them.
    pub needed: bool,
    /// Tensors.
    pub tensors: usize,
    /// Their elements.
    pub elements: u64,
    /// Their bytes as stored.
    pub bytes: u64,
    /// The types they are stored in.
    pub dtypes: Vec<StoredDtype>,
}

/// One row per part that `source` has tensors of, in [`Part`]'s order, what belongs to no part at the end.
pub fn inventory(source: &dyn TensorSource, config: &ModelConfig) -> Vec<PartSize> {
    let parts: HashMap<String, Part> =
        expected_tensors(config).into_iter().map(|t| (t.name, t.part)).collect();
    let mut rows: BTreeMap<(bool, Option<Part>), PartSize> = BTreeMap::new();
    for name in source.names() {
        let Some(info) = source.info(&name) else { continue };
        let part = parts.get(&name).copied();
        let row = rows.entry((part.is_none(), part)).or_insert_with(|| {
            let needed = part.is_some_and(Part::needed);
            PartSize { part, needed, tensors: 0, elements: 0, bytes: 0, dtypes: Vec::new() }
        });
        row.tensors += 1;
        row.elements += info.elements() as u64;
        row.bytes += info.bytes() as u64;
        if !row.dtypes.contains(&info.dtype) {
            row.dtypes.push(info.dtype);
        }
    }
    rows.into_values().collect()
}
