//! Images cut into patches on the host, so that the patch convolution is one matmul on the device.

use gr00t_host::config::VisionConfig;

/// Pixels `[images, channels, side, side]` to patches `[images, patches, channels · patch · patch]`: patches row by row,
/// values of a patch in the order of the convolution's kernel. Moves values, changes none.
pub(crate) fn cut_patches(config: &VisionConfig, pixels: &[f32], out: &mut Vec<f32>) {
    let &VisionConfig { num_channels: channels, image_size: side, patch_size: patch, .. } = config;
    out.reserve(pixels.len());
    for image in pixels.chunks_exact(channels * side * side) {
        for top in (0..side).step_by(patch) {
            for left in (0..side).step_by(patch) {
                for plane in image.chunks_exact(side * side) {
                    for row in plane.chunks_exact(side).skip(top).take(patch) {
                        out.extend_from_slice(&row[left..left + patch]);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_run_over_columns_first_and_hold_channels_first() {
        let config =
            VisionConfig { num_channels: 2, image_size: 4, patch_size: 2, ..VisionConfig::default() };
        // value = 100 · channel + 10 · row + column
        let pixels: Vec<f32> = (0..32).map(|i| (100 * (i / 16) + 10 * (i / 4 % 4) + i % 4) as f32).collect();
        let mut patches = Vec::new();
        cut_patches(&config, &pixels, &mut patches);
        assert_eq!(patches[..8], [0.0, 1.0, 10.0, 11.0, 100.0, 101.0, 110.0, 111.0]);
        assert_eq!(patches[8..12], [2.0, 3.0, 12.0, 13.0]);
        assert_eq!(patches[24..28], [22.0, 23.0, 32.0, 33.0]);
        assert_eq!(patches.len(), pixels.len());
    }
}
