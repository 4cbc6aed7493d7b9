//! Placing recorded buffers in one arena: buffers that are alive at the same time do not overlap.

/// Start of a placed buffer is a multiple of this many bytes.
const ALIGNMENT: usize = 64;

/// A buffer to place: its size, and the first and last step that touch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lifetime {
    pub(super) bytes: usize,
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Lifetime {
    fn meets(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Starts in the arena for each lifetime, and the arena's size. Largest first, each at the lowest start that is free
/// for as long as it lives; the same lifetimes always give the same places.
pub(super) fn place(lifetimes: &[Lifetime]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(lifetimes[i].bytes), lifetimes[i].first, i));
    let mut starts = vec![0; lifetimes.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(lifetimes.len());
    let mut size = 0;
    for i in order {
        let bytes = lifetimes[i].bytes.next_multiple_of(ALIGNMENT);
        let mut start = 0;
        // `placed` is sorted by start, so one walk finds the lowest gap.
        for &other in &placed {
            if !lifetimes[i].meets(&lifetimes[other]) {
                continue;
            }
            if start + bytes <= starts[other] {
                break;
            }
            start = start.max(starts[other] + lifetimes[other].bytes.next_multiple_of(ALIGNMENT));
        }
        starts[i] = start;
        size = size.max(start + bytes);
        let at = placed.partition_point(|&other| starts[other] <= start);
        placed.insert(at, i);
    }
    (starts, size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_chain_needs_two_buffers() {
        let chain: Vec<Lifetime> =
            (0..10).map(|step| Lifetime { bytes: 1000, first: step, last: step + 1 }).collect();
        assert_eq!(place(&chain).1, 2048);
    }

    proptest! {
        #[test]
        fn buffers_alive_together_do_not_overlap(
            raw in prop::collection::vec((1usize..5000, 0usize..30, 0usize..10), 1..60)
        ) {
            let lifetimes: Vec<Lifetime> =
                raw.iter().map(|&(bytes, first, more)| Lifetime { bytes, first, last: first + more }).collect();
            let (starts, size) = place(&lifetimes);
            for (i, a) in lifetimes.iter().enumerate() {
                prop_assert!(starts[i] % ALIGNMENT == 0);
                prop_assert!(starts[i] + a.bytes <= size);
                for (j, b) in lifetimes.iter().enumerate().skip(i + 1) {
                    let apart = starts[i] + a.bytes <= starts[j] || starts[j] + b.bytes <= starts[i];
                    prop_assert!(apart || !a.meets(b));
                }
            }
        }
    }
}
