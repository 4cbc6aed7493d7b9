//! Sinusoids of the flow's time, as tables; f32 as upstream.

/// Longest period of both sinusoids.
const MAX_PERIOD: f32 = 10_000.0;

/// `get_timestep_embedding` of
/// <https://github.com/huggingface/diffusers/blob/v0.30.2/src/diffusers/models/embeddings.py>: `[cos, sin]`
/// (`flip_sin_to_cos`) of `timestep` at frequencies from 1 down to exactly `1 / MAX_PERIOD` (`downscale_freq_shift` 1).
pub(super) fn timestep_embedding(timestep: usize, channels: usize) -> Vec<f32> {
    let half = channels / 2;
    let angle = |i: usize| timestep as f32 * (-MAX_PERIOD.ln() * i as f32 / (half - 1) as f32).exp();
    (0..half).map(|i| angle(i).cos()).chain((0..half).map(|i| angle(i).sin())).collect()
}

/// `SinusoidalPositionalEncoding` of
/// <https://github.com/NVIDIA/Isaac-GR00T/blob/n1.5-release/gr00t/model/action_head/action_encoder.py>: `[sin, cos]` of
/// `timestep` at frequencies from 1 down to almost `1 / MAX_PERIOD`.
pub(super) fn sinusoidal_positional_encoding(timestep: usize, dim: usize) -> Vec<f32> {
    let half = dim / 2;
    let step = MAX_PERIOD.ln() / half as f32;
    let angle = |i: usize| timestep as f32 * (-(i as f32) * step).exp();
    (0..half).map(|i| angle(i).sin()).chain((0..half).map(|i| angle(i).cos())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_timestep_frequency_is_one_over_the_period() {
        let embedding = timestep_embedding(750, 256);
        assert!((embedding[127] - 0.075_f32.cos()).abs() < 1e-6);
        assert!((embedding[255] - 0.075_f32.sin()).abs() < 1e-6);
    }

    #[test]
    fn the_positional_encoding_starts_with_sines_and_stops_short_of_the_period() {
        let encoding = sinusoidal_positional_encoding(500, 8);
        assert_eq!((encoding[0], encoding[4]), (500.0_f32.sin(), 500.0_f32.cos()));
        // 10000^(-3/4) = 0.001
        assert!((encoding[3] - 0.5_f32.sin()).abs() < 1e-5);
    }
}
