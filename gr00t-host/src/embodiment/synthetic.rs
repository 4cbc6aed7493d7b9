//! Written-down metadata for the built-in data configs, to go with synthetic weights. Dimensions and rotation types are in
//! `assets/synthetic_robots.toml`; the statistics are made here by a rule. No number comes from a dataset.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::data_config::DataConfig;
use super::metadata::{
    EmbodimentMetadata, KeyModality, KeyStatistics, Metadata, Modalities, Statistics, VideoModality,
};
use super::rotation_type::RotationType;
use crate::{Error, Result};

const ROBOTS: &str = include_str!("../../assets/synthetic_robots.toml");
const RESOLUTION: [u32; 2] = [256, 256];
const FPS: f64 = 20.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Robots {
    robot: Vec<Robot>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Robot {
    data_configs: Vec<String>,
    video: Vec<String>,
    state: Vec<RobotKey>,
    action: Vec<RobotKey>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RobotKey {
    key: String,
    dim: usize,
    rotation_type: Option<RotationType>,
    /// Whether values are changes.
    #[serde(default)]
    relative: bool,
    /// Whether values are a share between closed (0) and open (1), or off and on.
    #[serde(default)]
    unit_range: bool,
}

/// Metadata with made-up statistics for a built-in data config, under its embodiment's tag: enough to run synthetic
/// weights, and of no use for a robot. Frames are 256×256.
///
/// # Errors
/// If the data config is not a built-in one: the dimensions of its keys are not known.
pub fn synthetic_metadata(config: &DataConfig) -> Result<Metadata> {
    let malformed = |what: String| Error::Metadata(format!("synthetic robots: {what}"));
    let robots: Robots = toml::from_str(ROBOTS).map_err(|e| malformed(e.message().to_owned()))?;
    let robot =
        robots.robot.into_iter().find(|r| r.data_configs.contains(&config.name)).ok_or_else(|| {
            Error::DataConfig {
                name: config.name.clone(),
                what: "no synthetic metadata, which only built-in data configs have; supply a metadata file"
                    .to_owned(),
            }
        })?;
    let video = |name| (name, VideoModality { resolution: RESOLUTION, channels: 3, fps: FPS });
    let tag = config.embodiment.name().to_owned();
    let embodiment = EmbodimentMetadata {
        statistics: Statistics { state: statistics(&robot.state), action: statistics(&robot.action) },
        modalities: Modalities {
            video: robot.video.into_iter().map(video).collect(),
            state: modalities(&robot.state),
            action: modalities(&robot.action),
        },
        embodiment_tag: tag.clone(),
    };
    Ok(Metadata { embodiments: BTreeMap::from([(tag, embodiment)]) })
}

fn modalities(keys: &[RobotKey]) -> BTreeMap<String, KeyModality> {
    let modality = |key: &RobotKey| KeyModality {
        absolute: !key.relative,
        rotation_type: key.rotation_type,
        shape: vec![key.dim],
        continuous: true,
    };
    keys.iter().map(|key| (key.key.clone(), modality(key))).collect()
}

/// The rule: dimension `n` (counted through all keys of the side) has its mean at `((7n) mod 11 - 5) / 50` and reaches
/// `0.5 + (n mod 10) / 10` to either side, a tenth of that for changes; a unit range is [0, 1] around its middle.
/// The deviation is half the reach, and the percentiles lie at 49/50 of it.
fn statistics(keys: &[RobotKey]) -> BTreeMap<String, KeyStatistics> {
    let mut n = 0_u32;
    let mut made = BTreeMap::new();
    for key in keys {
        let ranges: Vec<(f64, f64)> = (0..key.dim)
            .map(|_| {
                let (mean, reach) = if key.unit_range {
                    (0.5, 0.5)
                } else {
                    let scale = if key.relative { 10.0 } else { 1.0 };
                    let mean = (f64::from(n * 7 % 11) - 5.0) / 50.0;
                    (mean / scale, (0.5 + f64::from(n % 10) / 10.0) / scale)
                };
                n += 1;
                (mean, reach)
            })
            .collect();
        let values = |share: f64| ranges.iter().map(|&(mean, reach)| mean + share * reach).collect();
        let statistics = KeyStatistics {
            max: values(1.0),
            min: values(-1.0),
            mean: values(0.0),
            std: ranges.iter().map(|&(_, reach)| reach / 2.0).collect(),
            q01: values(-0.98),
            q99: values(0.98),
        };
        made.insert(key.key.clone(), statistics);
    }
    made
}
