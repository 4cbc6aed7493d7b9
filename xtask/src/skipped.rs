//! What `cargo test -- --show-output` prints, without the output of tests that passed but for one thing: that a test was skipped,
//! since what it needs is absent. libtest knows no such outcome and would only count it as passed.

use std::collections::BTreeMap;

/// A test says so at the beginning of a line.
const SKIPPED: &str = "skipped";

/// Reads lines of libtest as they come.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// Between `successes:` and the failures or the result.
    is_of_passed: bool,
    skipped: BTreeMap<String, usize>,
}

impl Filter {
    /// Takes note of `line`, and whether it is to be shown.
    pub(crate) fn shows(&mut self, line: &str) -> bool {
        let line = line.trim_end();
        if line == "successes:" {
            self.is_of_passed = true;
        } else if line == "failures:" || line.starts_with("test result:") {
            self.is_of_passed = false;
        } else if self.is_of_passed && line.starts_with(SKIPPED) {
            *self.skipped.entry(line.to_string()).or_default() += 1;
        }
        !self.is_of_passed
    }

    /// Each thing that tests said, once, with how many of them said it; nothing if no test was skipped.
    pub(crate) fn summary(&self) -> Option<String> {
        let all: usize = self.skipped.values().sum();
        let head = match all {
            0 => return None,
            1 => "1 test that passed was skipped, all of it or a part:".to_string(),
            _ => format!("{all} times tests that passed were skipped, all of them or a part:"),
        };
        let line = |(line, count): (&String, &usize)| format!("\n{count:>5} × {line}");
        Some(head + &self.skipped.iter().map(line).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "
running 3 tests
test a ... ok
test b ... FAILED
test c ... ok

successes:

---- a stdout ----
skipped: x is absent
chatter

---- c stdout ----
skipped: x is absent


successes:
    a
    c

failures:

---- b stdout ----
skipped: no more than half of it
panicked at b

failures:
    b

test result: FAILED. 2 passed; 1 failed
";

    #[test]
    fn output_of_what_passed_is_hidden_and_of_what_failed_is_shown() {
        let mut filter = Filter::default();
        let shown: Vec<&str> = PRINTED.lines().filter(|line| filter.shows(line)).collect();
        let shown = shown.join("\n");
        for wanted in ["test a ... ok", "panicked at b", "skipped: no more", "    b", "test result: FAILED"] {
            assert!(shown.contains(wanted), "no {wanted:?} in {shown}");
        }
        assert!(!shown.contains("chatter") && !shown.contains("successes") && !shown.contains("x is absent"));
    }

    #[test]
    fn what_was_skipped_is_listed_once_with_its_count() {
        let mut filter = Filter::default();
        assert_eq!(filter.summary(), None);
        // two test programs, one after the other
        for line in PRINTED.lines().chain(PRINTED.lines()) {
            filter.shows(line);
        }
        let summary = filter.summary().unwrap();
        assert!(
            summary.ends_with("\n    4 × skipped: x is absent") && summary.starts_with("4 times"),
            "{summary}"
        );
    }
}
