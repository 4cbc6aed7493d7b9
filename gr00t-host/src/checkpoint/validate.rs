//! A source of tensors against what a configuration expects: all differences at once.

use std::collections::BTreeMap;

use super::TensorSource;
use super::plan::expected_tensors;
use crate::{Error, ModelConfig, Result};

/// What is odd about weights that are usable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Validation {
    /// One line each.
    pub warnings: Vec<String>,
}

/// Compares names, shapes and dtypes of `source` with those of `config`; reads no tensor data.
///
/// Tensors that inference does not need may be absent, and tensors that the model does not have give a warning.
///
/// # Errors
/// [`Error::Checkpoint`] that lists every needed tensor that is missing and every tensor of a wrong shape or
/// dtype. Names that differ only in a layer's number are listed once, with `*` for the number and a count.
pub fn validate(source: &dyn TensorSource, config: &ModelConfig) -> Result<Validation> {
    let mut missing = Grouped::default();
    let mut wrong = Grouped::default();
    let mut unexpected = Grouped::default();
    let expected = expected_tensors(config);
    for tensor in &expected {
        let Some(info) = source.info(&tensor.name) else {
            if tensor.needed {
                missing.add(&tensor.name, "");
            }
            continue;
        };
        if info.shape != tensor.shape {
            wrong.add(&tensor.name, &format!(" has shape {:?}, wanted {:?}", info.shape, tensor.shape));
        } else if !info.dtype.is_weight() {
            wrong.add(&tensor.name, &format!(" is {}, wanted BF16, F16 or F32", info.dtype));
        }
    }
    let known: std::collections::HashSet<&str> = expected.iter().map(|t| t.name.as_str()).collect();
    for name in source.names().iter().filter(|name| !known.contains(name.as_str())) {
        unexpected.add(name, "");
    }

    let mut problems = Vec::new();
    if missing.count > 0 {
        problems.push(format!("{} of {} tensors missing: {}", missing.count, expected.len(), missing.list()));
    }
    if wrong.count > 0 {
        problems.push(format!("{} tensors do not fit the config: {}", wrong.count, wrong.list()));
    }
    let extra = (unexpected.count > 0)
        .then(|| format!("{} tensors that the model lacks: {}", unexpected.count, unexpected.list()));
    if problems.is_empty() {
        return Ok(Validation { warnings: extra.into_iter().collect() });
    }
    problems.extend(extra);
    Err(Error::Checkpoint { path: source.describe().into(), what: problems.join("; ") })
}

/// Findings, with those that differ only in numbers between dots folded into one.
#[derive(Default)]
struct Grouped {
    count: usize,
    /// First name and number of names, by pattern and finding.
    groups: BTreeMap<String, (String, usize)>,
}

impl Grouped {
    fn add(&mut self, name: &str, finding: &str) {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let pattern: Vec<&str> =
            name.split('.').map(|part| if is_number(part) { "*" } else { part }).collect();
        self.count += 1;
        let key = format!("{}{finding}", pattern.join("."));
        self.groups.entry(key).or_insert_with(|| (format!("{name}{finding}"), 0)).1 += 1;
    }

    fn list(&self) -> String {
        let line = |(pattern, (first, count)): (&String, &(String, usize))| {
            if *count == 1 { first.clone() } else { format!("{pattern} ({count}x)") }
        };
        self.groups.iter().map(line).collect::<Vec<_>>().join(", ")
    }
}
