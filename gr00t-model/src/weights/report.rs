//! What was put on the device: tensors, elements and bytes per part, role and data type.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tt_ops::DataType;

use crate::dtype_policy::Part;
use crate::error::{ModelError, Result};
use crate::packed_cache::PackedCache;
use crate::stages::CancelToken;

/// What a weight is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WeightRole {
    /// Multiplied with activations.
    Matmul,
    /// Added after a matmul.
    Bias,
    /// Weight or bias of a norm.
    Norm,
    /// Positions, learned tokens, and vectors computed at load.
    Table,
}

impl WeightRole {
    /// Short lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Matmul => "matmul",
            Self::Bias => "bias",
            Self::Norm => "norm",
            Self::Table => "table",
        }
    }
}

/// Weights of one part, role and data type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WeightClass {
    /// The part.
    pub part: Part,
    /// What they are for.
    pub role: WeightRole,
    /// Their data type on the device.
    pub dtype: DataType,
    /// Device tensors.
    pub tensors: usize,
    /// Elements.
    pub elements: usize,
    /// Bytes on the device.
    pub bytes: usize,
}

/// Every weight class on the device. `Display` is a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StructureReport {
    /// One entry per part, role and data type.
    pub classes: Vec<WeightClass>,
}

impl StructureReport {
    /// Device tensors of all classes.
    pub fn tensors(&self) -> usize {
        self.classes.iter().map(|class| class.tensors).sum()
    }

    /// Elements of all classes.
    pub fn elements(&self) -> usize {
        self.classes.iter().map(|class| class.elements).sum()
    }

    /// Bytes of all classes.
    pub fn bytes(&self) -> usize {
        self.classes.iter().map(|class| class.bytes).sum()
    }
}

impl fmt::Display for StructureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<9}{:<8}{:<11}{:>8}{:>15}{:>16}",
            "part", "role", "dtype", "tensors", "elements", "bytes"
        )?;
        for class in &self.classes {
            let WeightClass { part, role, dtype, tensors, elements, bytes } = class;
            let (part, role, dtype) = (part.name(), role.name(), dtype.to_string());
            writeln!(f, "{part:<9}{role:<8}{dtype:<11}{tensors:>8}{elements:>15}{bytes:>16}")?;
        }
        write!(f, "{:<28}{:>8}{:>15}{:>16}", "all", self.tensors(), self.elements(), self.bytes())
    }
}

/// Called while weights are loaded, with the tensors of the checkpoint that are done and their elements.
pub(crate) type Progress = Box<dyn Fn(usize, usize) + Send + Sync>;

/// Keeps the account while weights are loaded, and knows where packed ones are.
#[derive(Default)]
pub(crate) struct Ledger {
    classes: Mutex<BTreeMap<(Part, WeightRole, String), WeightClass>>,
    done: Mutex<(usize, usize)>,
    progress: Option<Progress>,
    cache: Option<PackedCache>,
    cancel: CancelToken,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("classes", &self.classes).finish_non_exhaustive()
    }
}

impl Ledger {
    /// An empty account that reports to `progress`, of weights that come from `cache` where it has them; none are loaded
    /// once `cancel` asks.
    pub(crate) fn new(progress: Option<Progress>, cache: Option<PackedCache>, cancel: CancelToken) -> Self {
        Self { progress, cache, cancel, ..Self::default() }
    }

    /// Whether loading may go on.
    pub(super) fn check(&self) -> Result<()> {
        if self.cancel.is_cancelled() { Err(ModelError::LoadCancelled) } else { Ok(()) }
    }

    /// Where packed weights are kept.
    pub(crate) fn cache(&self) -> Option<&PackedCache> {
        self.cache.as_ref()
    }

    pub(super) fn add(
        &self,
        part: Part,
        role: WeightRole,
        dtype: DataType,
        tensors: usize,
        elements: usize,
        bytes: usize,
    ) {
        // a panic elsewhere leaves sums that are still right
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = WeightClass { part, role, dtype, tensors: 0, elements: 0, bytes: 0 };
        let class = classes.entry((part, role, dtype.to_string())).or_insert(empty);
        class.tensors += tensors;
        class.elements += elements;
        class.bytes += bytes;
    }

    pub(super) fn progress(&self, tensors: usize, elements: usize) {
        let Some(progress) = &self.progress else { return };
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.0 += tensors;
        done.1 += elements;
        progress(done.0, done.1);
    }

    /// The account so far.
    pub(crate) fn report(&self) -> StructureReport {
        let classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        StructureReport { classes: classes.values().cloned().collect() }
    }
}
