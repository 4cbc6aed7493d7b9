//! A dataset in LeRobot's format as GR00T N1.5 reads it (versions 2.0 and 2.1): `meta/*.json[l]`, one parquet file per episode, one
//! video per camera and episode. Mirrors `LeRobotSingleDataset` (`gr00t/data/dataset.py`).

mod episode;
mod meta;
mod statistics;
mod table;
#[cfg(test)]
mod tests;
mod video;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use gr00t_host::embodiment::{DataConfig, Metadata};
use gr00t_host::image::Frame;

pub(super) use self::episode::Episode;
use self::meta::{EpisodeLine, Info, Modality, Task};

/// A dataset, its descriptions read; episodes are still on disk.
#[derive(Debug)]
pub(super) struct Dataset {
    folder: PathBuf,
    info: Info,
    modality: Modality,
    tasks: Vec<Task>,
    episodes: Vec<EpisodeLine>,
}

impl Dataset {
    /// Reads the descriptions in `folder`.
    ///
    /// # Errors
    /// If one is missing or not of its form, or the dataset is of another version.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let meta = folder.join("meta");
        if !meta.is_dir() {
            bail!("{}: no folder meta in it, wanted a LeRobot dataset", folder.display());
        }
        Ok(Self {
            folder: folder.to_path_buf(),
            info: Info::read(&meta.join("info.json"))?,
            modality: meta::json(&meta.join("modality.json"))
                .context("GR00T's description of state, action, video and annotation")?,
            tasks: meta::lines(&meta.join("tasks.jsonl"))?,
            episodes: meta::lines(&meta.join("episodes.jsonl"))?,
        })
    }

    /// Number of episodes.
    pub(super) fn len(&self) -> usize {
        self.episodes.len()
    }

    /// Frames per second.
    pub(super) fn fps(&self) -> f64 {
        self.info.fps
    }

    /// The episode at place `place` of `episodes.jsonl`, with what `config` reads of it.
    ///
    /// # Errors
    /// If there is none, its file cannot be read, or a key of `config` is not in it.
    pub(super) fn episode(&self, place: usize, config: &DataConfig) -> Result<Episode> {
        let line = self.episodes.get(place).with_context(|| {
            format!("{}: no episode at place {place} of {}", self.folder.display(), self.len())
        })?;
        let path = self.folder.join(self.info.data_file(line.episode_index)?);
        Episode::read(&path, line.episode_index, &self.modality, &self.tasks, config)
            .with_context(|| path.display().to_string())
    }

    /// The frames of `camera` that are nearest to `timestamps` (seconds), in their order.
    ///
    /// # Errors
    /// If the camera is not in the dataset, or its video cannot be decoded or ends before.
    pub(super) fn frames(&self, episode: usize, camera: &str, timestamps: &[f64]) -> Result<Vec<Frame>> {
        let key = self.modality.video_key(camera)?;
        let frames = video::Source::find(&self.folder, &self.info, key, episode)?;
        frames.nearest(timestamps, self.info.fps)
    }

    /// Statistics and modalities in the form of a checkpoint's metadata, under the embodiment of `config`: those of
    /// `meta/stats.json`, or computed from all episodes where there is no such file. The text says which.
    ///
    /// # Errors
    /// If neither can be had, or the descriptions contradict each other.
    pub(super) fn metadata(&self, config: &DataConfig) -> Result<(Metadata, String)> {
        let stored = self.folder.join("meta/stats.json");
        let (columns, from) = if stored.is_file() {
            (statistics::stored(&stored)?, "the dataset's stats.json".to_string())
        } else {
            let keys = self.modality.columns();
            let files = self.episodes.iter().map(|line| self.info.data_file(line.episode_index));
            let files = files.map(|file| Ok(self.folder.join(file?))).collect::<Result<Vec<_>>>()?;
            (
                statistics::computed(&files, &keys)?,
                format!("computed from the dataset's {} episodes", self.len()),
            )
        };
        let metadata = statistics::metadata(&self.info, &self.modality, &columns, &config.embodiment)?;
        Ok((metadata, from))
    }
}
