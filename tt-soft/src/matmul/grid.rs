//! Which rows and panels of a product each member of the team has.

use crate::engine::{Session, share};
use crate::kernels::PANEL;
use crate::pack::PackedWeight;
use std::ops::Range;

/// Members in a grid: blocks of rows are shared out down it, panels across.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    blocks: usize,
    panels: usize,
    down: usize,
    across: usize,
}

impl Grid {
    /// For `rows` rows in `blocks` blocks times a weight.
    pub(super) fn new(session: &Session<'_>, rows: usize, blocks: usize, weight: &PackedWeight) -> Self {
        let work = rows.saturating_mul(weight.k()).saturating_mul(weight.n()) / PANEL;
        Self::of(blocks, weight.panels(), session.members_for(work))
    }

    /// Cuts the blocks into as many parts as make the largest part of the grid smallest; a cut of the rows makes every part
    /// expand the same weights, so it must win by something.
    fn of(blocks: usize, panels: usize, members: usize) -> Self {
        const CUT_PENALTY: f64 = 0.05;
        let cost = |down: usize| {
            let largest = blocks.div_ceil(down) * panels.div_ceil((members / down).max(1));
            largest as f64 * (1.0 + CUT_PENALTY * (down - 1) as f64)
        };
        let down = (1..=members.min(blocks)).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(1);
        Self { blocks, panels, down, across: members / down }
    }

    /// How many members it has: at most those that it was made for.
    pub(super) fn members(self) -> usize {
        self.down * self.across
    }

    pub(super) fn blocks_of(self, member: usize) -> Range<usize> {
        share(self.blocks, member % self.down, self.down)
    }

    pub(super) fn panels_of(self, member: usize) -> Range<usize> {
        share(self.panels, member / self.down, self.across)
    }

    /// Blocks and panels of the member that has most.
    pub(super) fn most(self) -> [usize; 2] {
        [self.blocks.div_ceil(self.down), self.panels.div_ceil(self.across)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_every_panel_has_one_member() {
        for (blocks, panels) in [(1, 1), (1, 7), (5, 1), (5, 7), (64, 3)] {
            for members in 1..9 {
                let grid = Grid::of(blocks, panels, members);
                assert!((1..=members).contains(&grid.members()));
                let [most_blocks, most_panels] = grid.most();
                let mut seen = vec![0; blocks * panels];
                for member in 0..grid.members() {
                    let (down, across) = (grid.blocks_of(member), grid.panels_of(member));
                    assert!(down.len() <= most_blocks && across.len() <= most_panels);
                    for block in down {
                        across.clone().for_each(|panel| seen[block * panels + panel] += 1);
                    }
                }
                assert!(seen.iter().all(|&n| n == 1), "{blocks} blocks, {panels} panels, {members} members");
            }
        }
    }

    #[test]
    fn rows_are_cut_only_where_it_wins() {
        let cut = |blocks, panels, members| Grid::of(blocks, panels, members).down;
        assert_eq!(cut(24, 192, 2), 1, "panels for all");
        assert_eq!(cut(24, 1, 2), 2, "one panel for two");
        assert_eq!(cut(1, 1, 2), 1, "nothing to cut");
    }
}
