//! What all forms of attention share: the operands, the jobs that they are cut into, masks.

use crate::kernels::{Kernels, PANEL};
use crate::view::{RawView, RawViewMut};
use std::ops::Range;

/// A mask, broadcast to [B, H, S, T].
pub(super) struct Mask {
    pub(super) view: RawView,
    /// The same for all queries of a head.
    pub(super) shared: bool,
}

/// Operands and options, checked.
pub(super) struct Attention<'a> {
    pub(super) kernels: &'static Kernels,
    pub(super) q: RawView,
    pub(super) k: RawView,
    pub(super) v: RawView,
    pub(super) out: RawViewMut,
    pub(super) mask: Option<Mask>,
    pub(super) scale: f32,
    pub(super) causal: bool,
    pub(super) kv_valid: Option<&'a [usize]>,
    /// Blocks of queries per head.
    pub(super) blocks: usize,
}

/// A block of queries of one head.
pub(super) struct Job {
    /// Its first query, counted within the head, and how many there are, at most PANEL.
    pub(super) first: usize,
    pub(super) count: usize,
    /// The first query's row of q and out.
    pub(super) first_row: usize,
    /// Keys of the batch entry.
    pub(super) valid: usize,
}

/// How a member does its jobs.
pub(super) trait Form {
    /// Lays out K and V of a head, of which `valid` keys count.
    fn load(&mut self, kv_head: usize, valid: usize);

    /// Queries of a head that shares the K and V that were loaded last.
    fn attend(&mut self, job: Job);
}

impl Attention<'_> {
    /// Does some of the jobs, which are numbered head by head.
    pub(super) fn run(&self, jobs: Range<usize>, mut form: impl Form) {
        let ([_, heads, queries, _], [_, kv_heads, keys, _]) = (self.q.geometry.shape, self.k.geometry.shape);
        let mut loaded = None;
        for job in jobs {
            let (head, block) = (job / self.blocks, job % self.blocks);
            let (batch, group) = (head / heads, heads / kv_heads);
            let kv_head = batch * kv_heads + head % heads / group;
            let valid = self.kv_valid.and_then(|valid| valid.get(batch).copied()).unwrap_or(keys);
            if loaded != Some(kv_head) {
                form.load(kv_head, valid);
                loaded = Some(kv_head);
            }
            let first = block * PANEL;
            let count = PANEL.min(queries - first);
            form.attend(Job { first, count, first_row: head * queries + first, valid });
        }
    }

    /// Keys that a job looks at.
    pub(super) fn seen(&self, job: &Job) -> usize {
        if self.causal { job.valid.min(job.first + job.count) } else { job.valid }
    }

    /// Hides and shifts scores ([key][PANEL]); gives the factor that they are still to be multiplied with. `line` has room for
    /// as many values as there are keys.
    pub(super) fn apply_masks(&self, job: &Job, scores: &mut [f32], line: &mut [f32]) -> f32 {
        let &Job { first_row, first, count, .. } = job;
        let mut scale = self.scale;
        // hidden scores are -inf, which no other factor would leave so
        if self.mask.is_some() || scale <= 0.0 {
            for score in scores.iter_mut() {
                *score *= scale;
            }
            scale = 1.0;
        }
        if let Some(mask) = &self.mask {
            let line = &mut line[..scores.len() / PANEL];
            let rows = if mask.shared { 1 } else { count };
            for i in 0..rows {
                // SAFETY: the mask was broadcast to [B, H, S, T].
                unsafe { mask.view.load(self.kernels, first_row + i, 0, line) };
                for (scores, m) in scores.chunks_exact_mut(PANEL).zip(line.iter()) {
                    let lanes = if mask.shared { 0..PANEL } else { i..i + 1 };
                    scores[lanes].iter_mut().for_each(|score| *score += m);
                }
            }
        }
        if self.causal {
            for (key, scores) in scores.chunks_exact_mut(PANEL).enumerate().skip(first + 1) {
                scores[..(key - first).min(PANEL)].fill(f32::NEG_INFINITY);
            }
        }
        scale
    }
}
