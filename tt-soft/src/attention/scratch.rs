//! A member's scratch, cut into what an attention needs.

use super::head::ROWS;
use crate::kernels::PANEL;

/// Extents of one attention; words are f32 or pairs of bf16.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) keys: usize,
    pub(super) width: usize,
    pub(super) value_width: usize,
    /// Words of a row of Q and K.
    pub(super) width_words: usize,
}

impl Sizes {
    fn parts(self) -> [usize; 7] {
        let Self { keys, width, value_width, width_words } = self;
        [
            width_words * keys,
            value_width.next_multiple_of(PANEL) * keys,
            width_words * PANEL,
            ROWS * width_words,
            keys * PANEL,
            PANEL * PANEL,
            width.max(value_width).max(keys),
        ]
    }

    /// Words of scratch per member.
    pub(super) fn total(self) -> usize {
        self.parts().iter().sum()
    }
}

pub(super) struct Scratch<'a> {
    /// [block][word of E][key]
    pub(super) keys: &'a mut [u32],
    /// [panel][T][PANEL]
    pub(super) values: &'a mut [f32],
    /// [word of E][PANEL]
    pub(super) queries: &'a mut [u32],
    /// `ROWS` rows on their way into `keys` or `queries`.
    pub(super) rows: &'a mut [u32],
    /// [T][PANEL]
    pub(super) scores: &'a mut [f32],
    /// [PANEL queries][PANEL]
    pub(super) sums: &'a mut [f32],
    /// A row of E, Ev or T.
    pub(super) lines: &'a mut [f32],
}

impl<'a> Scratch<'a> {
    pub(super) fn new(mut rest: &'a mut [f32], sizes: Sizes) -> Self {
        let mut take = |len| rest.split_off_mut(..len).unwrap_or_default();
        let [keys, values, queries, rows, scores, sums, lines] = sizes.parts().map(&mut take);
        Self {
            keys: bytemuck::cast_slice_mut(keys),
            values,
            queries: bytemuck::cast_slice_mut(queries),
            rows: bytemuck::cast_slice_mut(rows),
            scores,
            sums,
            lines,
        }
    }
}
