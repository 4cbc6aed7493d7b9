//! Batches of prompts of unequal length.

/// Pads every prompt on the left with `pad` to the longest one's length. Gives the ids `[B][S]` and the attention
/// mask `[B][S]`, 0 on padding and 1 elsewhere.
///
/// Upstream does the same; its adapter and action head then ignore the mask, so that results of an uneven batch
/// depend on the other prompts in it.
pub fn left_pad<P: AsRef<[u32]>>(prompts: &[P], pad: u32) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let longest = prompts.iter().map(|ids| ids.as_ref().len()).max().unwrap_or(0);
    prompts
        .iter()
        .map(|ids| {
            let ids = ids.as_ref();
            let padding = longest - ids.len();
            let row = |fill, rest: Vec<u32>| [vec![fill; padding], rest].concat();
            (row(pad, ids.to_vec()), row(0, vec![1; ids.len()]))
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::left_pad;

    #[test]
    fn short_prompts_are_padded_in_front_and_masked_there() {
        let (ids, mask) = left_pad(&[vec![7], vec![1, 2, 3]], 9);
        assert_eq!(ids, [[9, 9, 7], [1, 2, 3]]);
        assert_eq!(mask, [[0, 0, 1], [1, 1, 1]]);
        assert_eq!(left_pad::<Vec<u32>>(&[], 9), (vec![], vec![]));
    }
}
