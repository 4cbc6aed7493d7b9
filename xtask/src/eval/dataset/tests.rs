//! The reader on real episodes, held against observations and metadata that were taken from them by other code, and on broken files.

use std::fs;
use std::path::{Path, PathBuf};

use gr00t_host::embodiment::{DataConfig, Metadata};
use gr00t_host::image::Frame;
use gr00t_host::observation::ObservationFile;

use super::{Dataset, table};

/// Five episodes and observations taken from them, beside the checkout on machines that have them.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data");

fn recorded() -> Option<(Dataset, DataConfig)> {
    let folder = Path::new(DATA).join("demo_data/robot_sim.PickNPlace");
    if !folder.exists() {
        println!("skipped: {} is absent", folder.display());
        return None;
    }
    let config = DataConfig::builtin("fourier_gr1_arms_only").unwrap();
    Some((Dataset::open(&folder).unwrap(), config))
}

#[test]
fn statistics_and_modalities_are_those_of_the_datasets_metadata_file() {
    let Some((dataset, config)) = recorded() else { return };
    let (metadata, from) = dataset.metadata(&config).unwrap();
    assert_eq!(from, "the dataset's stats.json");
    assert_eq!(metadata, Metadata::from_file(Path::new(DATA).join("gr1_metadata.json")).unwrap());
}

#[test]
fn steps_hold_the_states_instructions_and_actions_of_the_observations_taken_from_them() {
    let Some((dataset, config)) = recorded() else { return };
    for (place, step) in [(0, 0), (0, 100), (2, 150)] {
        let file = observation_file(place, step);
        let wanted = ObservationFile::read(&file).unwrap();
        let episode = dataset.episode(place, &config).unwrap();
        assert_eq!(episode.instruction(step), wanted.instruction.as_deref());
        let observation = wanted.observation().unwrap();
        for (key, values) in &observation.state {
            assert_eq!(episode.state(step).get(key), Some(values), "{}: {key}", file.display());
        }
        let actions = wanted.dataset_action.unwrap();
        for key in config.action_keys.iter().map(|spec| &spec.key) {
            let rows: Vec<Vec<f64>> = serde_json::from_value(actions[key].clone()).unwrap();
            assert!(rows.len() >= 16);
            for (later, row) in rows.iter().enumerate() {
                assert_eq!(episode.action_of(key, step + later), Some(&row[..]), "{}: {key}", file.display());
            }
        }
    }
}

/// The observations hold the frame whose number is that of the step. The dataset's times begin at one frame, not at 0, so that upstream,
/// which goes by the time, shows a step the frame after.
#[test]
fn frames_are_found_by_their_time() {
    let Some((dataset, config)) = recorded() else { return };
    for (place, step) in [(0, 0), (0, 100), (2, 150)] {
        let begin = step as f64 / dataset.fps();
        let time = dataset.episode(place, &config).unwrap().timestamp(step).unwrap();
        assert!((time - begin - 1.0 / dataset.fps()).abs() < 1e-3, "{time}");
        let frames = match dataset.frames(place, "ego_view", &[time, begin]) {
            Err(error) if format!("{error:#}").contains("cannot be started") => {
                println!("skipped: {error:#}");
                return;
            }
            frames => frames.unwrap(),
        };
        let recorded = ObservationFile::read(observation_file(place, step)).unwrap().observation().unwrap();
        let recorded = &recorded.images["ego_view"];
        assert_eq!(frames[1].rgb().len(), recorded.rgb().len());
        let mean = |frame: &Frame| {
            let pairs = frame.rgb().iter().zip(recorded.rgb());
            pairs.map(|(a, b)| f64::from(a.abs_diff(*b))).sum::<f64>() / recorded.rgb().len() as f64
        };
        // Neighbours are 0.1 to 1 apart; room is left for another decoder's rounding of colours.
        let (next, own) = (mean(&frames[0]), mean(&frames[1]));
        assert!(own < 0.05 && next > 0.05, "episode {place}, step {step}: {own} and {next}");
    }
}

fn observation_file(episode: usize, step: usize) -> PathBuf {
    Path::new(DATA).join(format!("gr1_pick/ep{episode}_step{step}/observation.json"))
}

/// A file with one byte changed is read or refused.
#[test]
fn a_broken_parquet_file_does_not_panic() {
    let Some((dataset, _)) = recorded() else { return };
    let file = Path::new(DATA).join("demo_data/robot_sim.PickNPlace/data/chunk-000/episode_000004.parquet");
    let whole = fs::read(file).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("broken.parquet");
    let names = dataset.modality.columns();
    let (mut place, mut refused) = (0usize, 0);
    for round in 0..60u8 {
        let mut bytes = whole.clone();
        // The places wander over the whole file, and every third is in its description at the end.
        place = (place + 7919 * 31) % bytes.len();
        let at = if round % 3 == 0 { bytes.len() - 1 - place % 4096 } else { place };
        bytes[at] ^= 1 << (round % 8);
        fs::write(&path, bytes).unwrap();
        refused += usize::from(table::columns(&path, &names).is_err());
    }
    assert!(refused > 0);
}
