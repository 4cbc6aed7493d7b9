//! "did you mean": the nearest of some known names, by edit distance (Levenshtein).

/// Longest name that is compared; longer ones are not typing slips.
const MAX_LEN: usize = 64;

/// The known name nearest to `name`, if it is within a third of its length (at least 2 edits).
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(2);
    known
        .into_iter()
        .filter_map(|candidate| edit_distance(name, candidate).map(|d| (d, candidate)))
        .filter(|&(d, candidate)| d <= limit && d < candidate.chars().count())
        .min_by_key(|&(d, _)| d)
        .map(|(_, candidate)| candidate)
}

/// `, did you mean …?` or nothing.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or_else(String::new, |best| format!(" (did you mean {best}?)"))
}

fn edit_distance(a: &str, b: &str) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(MAX_LEN + 1).collect(), b.chars().take(MAX_LEN + 1).collect());
    if a.len() > MAX_LEN || b.len() > MAX_LEN {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cb, above) in b.iter().zip(row.iter_mut().skip(1)) {
            let substituted = diagonal + usize::from(ca != cb);
            diagonal = *above;
            *above = substituted.min(left + 1).min(*above + 1);
            left = *above;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied()
}

#[cfg(test)]
mod tests {
    use super::{edit_distance, nearest};

    #[test]
    fn distances_are_those_of_the_textbook() {
        assert_eq!(edit_distance("kitten", "sitting"), Some(3));
        assert_eq!(edit_distance("", "abc"), Some(3));
        assert_eq!(edit_distance("same", "same"), Some(0));
    }

    #[test]
    fn only_a_near_name_is_suggested() {
        assert_eq!(nearest("left_amr", ["right_arm", "left_arm"]), Some("left_arm"));
        assert_eq!(nearest("velocity", ["left_arm", "x"]), None);
    }
}
