//! The captured pipelines that are kept, least recently used first out.

use std::fmt;

use crate::dtype_policy::DtypePolicy;
use crate::llm::SequenceLayout;

/// Everything that a captured pipeline depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TraceKey {
    pub(crate) layout: SequenceLayout,
    pub(crate) views: usize,
    pub(crate) batch: usize,
    pub(crate) steps: usize,
    pub(crate) horizon: usize,
    pub(crate) policy: DtypePolicy,
    pub(crate) embodiment: usize,
    /// Whether a sequence may end in padding.
    pub(crate) padded: bool,
    pub(crate) observed: bool,
}

impl TraceKey {
    /// Camera views per observation.
    pub fn views(&self) -> usize {
        self.views
    }

    /// Tokens, padding included.
    pub fn bucket(&self) -> usize {
        self.layout.sequence()
    }

    /// Observations at once.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Denoising steps.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Time steps of the action chunk.
    pub fn horizon(&self) -> usize {
        self.horizon
    }

    /// Dtype policy of the weights.
    pub fn policy(&self) -> DtypePolicy {
        self.policy
    }

    /// Slot of the category-specific weights.
    pub fn embodiment(&self) -> usize {
        self.embodiment
    }
}

impl fmt::Display for TraceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { views, batch, steps, horizon, policy, embodiment, .. } = self;
        let bucket = self.bucket();
        write!(
            f,
            "{views} views, {bucket} tokens, batch {batch}, {steps} steps, horizon {horizon}, {policy}, "
        )?;
        write!(f, "embodiment {embodiment}")
    }
}

/// What happened in a cache so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TraceCacheStats {
    /// Pipelines that are captured now.
    pub entries: usize,
    /// Predictions that found theirs.
    pub hits: u64,
    /// Predictions that had to capture.
    pub captures: u64,
    /// Pipelines released to make room.
    pub evictions: u64,
}

/// At most `cap` values by key; the least recently used one is dropped to make room.
#[derive(Debug)]
pub(crate) struct TraceCache<V> {
    cap: usize,
    /// Most recently used last.
    entries: Vec<(TraceKey, V)>,
    stats: TraceCacheStats,
}

impl<V> TraceCache<V> {
    /// An empty cache for at least one entry.
    pub(crate) fn new(cap: usize) -> Self {
        Self { cap: cap.max(1), entries: Vec::new(), stats: TraceCacheStats::default() }
    }

    /// The value of `key`, made by `make` where there is none; room is made first.
    pub(crate) fn get_or_make<E>(
        &mut self,
        key: &TraceKey,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<&V, E> {
        let value = if let Some(at) = self.entries.iter().position(|(k, _)| k == key) {
            self.stats.hits += 1;
            self.entries.remove(at)
        } else {
            while self.entries.len() >= self.cap {
                self.entries.remove(0);
                self.stats.evictions += 1;
            }
            self.stats.captures += 1;
            (key.clone(), make()?)
        };
        self.entries.push(value);
        let last = self.entries.len() - 1;
        Ok(&self.entries[last].1)
    }

    /// What happened so far.
    pub(crate) fn stats(&self) -> TraceCacheStats {
        TraceCacheStats { entries: self.entries.len(), ..self.stats }
    }

    /// Keys, least recently used first.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &TraceKey> {
        self.entries.iter().map(|(key, _)| key)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn key(steps: usize) -> TraceKey {
        TraceKey {
            layout: SequenceLayout::new(&[1, 2], 2, 32),
            views: 1,
            batch: 1,
            steps,
            horizon: 16,
            policy: DtypePolicy::Bf16,
            embodiment: 0,
            padded: true,
            observed: false,
        }
    }

    #[test]
    fn the_least_recently_used_entry_makes_room() {
        let mut cache = TraceCache::new(2);
        let mut made = Vec::new();
        for steps in [1, 2, 1, 3, 1, 2] {
            let make = || {
                made.push(steps);
                Ok::<_, Infallible>(steps)
            };
            assert_eq!(cache.get_or_make(&key(steps), make), Ok(&steps));
        }
        assert_eq!(made, [1, 2, 3, 2]);
        let stats = cache.stats();
        assert_eq!((stats.entries, stats.hits, stats.captures, stats.evictions), (2, 2, 4, 2));
        assert_eq!(cache.keys().map(TraceKey::steps).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_failed_capture_is_not_remembered() {
        let mut cache: TraceCache<u8> = TraceCache::new(2);
        assert_eq!(cache.get_or_make(&key(1), || Err("no memory")), Err("no memory"));
        assert_eq!(cache.get_or_make(&key(1), || Ok::<_, &str>(7)), Ok(&7));
    }
}
