//! Statistics of a dataset's columns: stored, or computed as `calculate_dataset_statistics` does (GR00T N1.5,
//! `gr00t/data/dataset.py`), and the metadata that they make.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use gr00t_host::embodiment::{
    EmbodimentMetadata, EmbodimentTag, KeyModality, KeyStatistics, Metadata, Modalities, Statistics,
    VideoModality,
};

use super::meta::{self, Feature, Info, Modality, Slice};
use super::table;

/// Column → statistics of its elements.
pub(super) type Columns = BTreeMap<String, KeyStatistics>;

/// Those of `stats.json`; columns that are not of this form (images have three axes) are left out.
pub(super) fn stored(path: &Path) -> Result<Columns> {
    let all: BTreeMap<String, serde_json::Value> = meta::json(path)?;
    let read = |(key, value)| Some((key, serde_json::from_value(value).ok()?));
    Ok(all.into_iter().filter_map(read).collect())
}

/// Those of the columns `names` over all rows of `files`.
pub(super) fn computed(files: &[PathBuf], names: &BTreeSet<String>) -> Result<Columns> {
    // column → element → values
    let mut values: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    for file in files {
        let columns = table::columns(file, names).with_context(|| file.display().to_string())?;
        for (name, column) in columns {
            let elements = values.entry(name).or_insert_with(|| vec![Vec::new(); column.width()]);
            if elements.len() != column.width() {
                bail!("{}: rows of {}, those before have {}", file.display(), column.width(), elements.len());
            }
            for row in column.to_f64().chunks_exact(column.width()) {
                for (element, value) in elements.iter_mut().zip(row) {
                    element.push(*value);
                }
            }
        }
    }
    Ok(values.into_iter().map(|(name, elements)| (name, of_elements(elements))).collect())
}

fn of_elements(elements: Vec<Vec<f64>>) -> KeyStatistics {
    let mut all = KeyStatistics {
        max: Vec::new(),
        min: Vec::new(),
        mean: Vec::new(),
        std: Vec::new(),
        q01: Vec::new(),
        q99: Vec::new(),
    };
    for mut values in elements {
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        values.sort_by(f64::total_cmp);
        all.mean.push(mean);
        all.std.push(variance.sqrt());
        all.min.push(quantile(&values, 0.0));
        all.max.push(quantile(&values, 1.0));
        all.q01.push(quantile(&values, 0.01));
        all.q99.push(quantile(&values, 0.99));
    }
    all
}

/// numpy's quantile of ascending `values`: between two of them in proportion; NaN of none.
fn quantile(values: &[f64], share: f64) -> f64 {
    let place = share * values.len().saturating_sub(1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    match (values.get(low), values.get(high)) {
        (Some(low), Some(high)) => low + (high - low) * place.fract(),
        _ => f64::NAN,
    }
}

/// The metadata of the one embodiment `tag`.
pub(super) fn metadata(
    info: &Info,
    modality: &Modality,
    columns: &Columns,
    tag: &EmbodimentTag,
) -> Result<Metadata> {
    let mut statistics = Statistics::default();
    let mut modalities = Modalities::default();
    for (key, slice) in &modality.state {
        statistics.state.insert(key.clone(), part(columns, slice.state_column(), slice)?);
        modalities.state.insert(key.clone(), key_modality(slice));
    }
    for (key, slice) in &modality.action {
        statistics.action.insert(key.clone(), part(columns, slice.action_column(), slice)?);
        modalities.action.insert(key.clone(), key_modality(slice));
    }
    for camera in modality.video.keys() {
        let key = modality.video_key(camera)?;
        let feature = info.features.get(key).with_context(|| format!("info.json has no feature {key}"))?;
        modalities
            .video
            .insert(camera.clone(), video_modality(feature, info.fps).with_context(|| key.to_string())?);
    }
    let tag = tag.name().to_string();
    let embodiment = EmbodimentMetadata { statistics, modalities, embodiment_tag: tag.clone() };
    Ok(Metadata { embodiments: BTreeMap::from([(tag, embodiment)]) })
}

/// The statistics of `slice`.
fn part(columns: &Columns, column: &str, slice: &Slice) -> Result<KeyStatistics> {
    let whole = columns.get(column).with_context(|| format!("no statistics of {column}"))?;
    let of = |values: &[f64]| -> Result<Vec<f64>> {
        Ok(slice.of(values).with_context(|| format!("statistics of {column}"))?.to_vec())
    };
    Ok(KeyStatistics {
        max: of(&whole.max)?,
        min: of(&whole.min)?,
        mean: of(&whole.mean)?,
        std: of(&whole.std)?,
        q01: of(&whole.q01)?,
        q99: of(&whole.q99)?,
    })
}

fn key_modality(slice: &Slice) -> KeyModality {
    KeyModality {
        absolute: slice.absolute,
        rotation_type: slice.rotation_type,
        shape: vec![slice.end.saturating_sub(slice.start)],
        continuous: slice.is_continuous(),
    }
}

fn video_modality(feature: &Feature, fps: f64) -> Result<VideoModality> {
    let names: Vec<&str> = match &feature.names {
        Some(serde_json::Value::Array(names)) => names.iter().filter_map(|name| name.as_str()).collect(),
        _ => vec!["height", "width", "channel"],
    };
    let side = |wanted: &[&str]| -> Result<u32> {
        let place = names.iter().position(|name| wanted.contains(name));
        let side = place.and_then(|place| feature.shape.get(place)).and_then(|&n| u32::try_from(n).ok());
        side.with_context(|| {
            format!("shape {:?} named {names:?} has no {}", feature.shape, wanted.join(" or "))
        })
    };
    let resolution = [side(&["width"])?, side(&["height"])?];
    Ok(VideoModality { resolution, channels: side(&["channel", "channels"])?, fps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_numpys() {
        // numpy: a = [1, 2, 4, 8]; a.mean(), a.std(), quantile(a, 0.01), quantile(a, 0.99)
        let all = of_elements(vec![vec![4.0, 1.0, 8.0, 2.0]]);
        assert_eq!((all.min[0], all.max[0], all.mean[0]), (1.0, 8.0, 3.75));
        assert!((all.std[0] - 2.680_951_323_690_902).abs() < 1e-14, "{}", all.std[0]);
        assert!((all.q01[0] - 1.03).abs() < 1e-14, "{}", all.q01[0]);
        assert!((all.q99[0] - 7.88).abs() < 1e-14, "{}", all.q99[0]);
    }

    #[test]
    fn a_camera_of_another_order_of_axes_is_read_by_their_names() {
        let feature: Feature =
            serde_json::from_str(r#"{"shape": [3, 48, 64], "names": ["channels", "height", "width"]}"#)
                .unwrap();
        let video = video_modality(&feature, 20.0).unwrap();
        assert_eq!((video.resolution, video.channels), ([64, 48], 3));
        let feature: Feature = serde_json::from_str(r#"{"shape": [3], "names": ["x"]}"#).unwrap();
        assert!(video_modality(&feature, 20.0).unwrap_err().to_string().contains("has no width"));
    }
}
