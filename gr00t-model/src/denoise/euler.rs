//! Euler's method on the flow, in fp32.
//!
//! Mirrors the loop of `FlowmatchingActionHead.get_action` of
//! <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/flow_matching_action_head.py>.

use tt_ops::{Device, ops};

use super::StepConstants;
use crate::error::Result;
use crate::weights::Precise;

/// Time bucket of each of `steps` steps.
pub(crate) fn timesteps(steps: usize, buckets: usize) -> Vec<usize> {
    (0..steps).map(|k| (k as f64 / steps as f64 * buckets as f64) as usize).collect()
}

/// `noise` moved along `velocity` from time 0 to 1, one step per entry of `steps`.
pub(super) fn integrate<D: Device>(
    noise: &Precise<D>,
    steps: &[StepConstants<D>],
    velocity: impl Fn(&Precise<D>, &StepConstants<D>, usize) -> Result<Precise<D>>,
) -> Result<Precise<D>> {
    let dt = (1.0 / steps.len() as f64) as f32;
    let mut actions = noise.clone();
    for (k, step) in steps.iter().enumerate() {
        let change = ops::multiply(&velocity(&actions, step, k)?, dt)?;
        actions = ops::add(&actions, &change)?;
    }
    Ok(actions)
}

#[cfg(test)]
mod tests {
    use super::timesteps;

    #[test]
    fn four_steps_are_the_four_buckets_of_upstream() {
        assert_eq!(timesteps(4, 1000), [0, 250, 500, 750]);
        assert_eq!(timesteps(3, 1000), [0, 333, 666]);
        assert_eq!(timesteps(1, 1000), [0]);
    }
}
