//! `Policy` on real robot observations against NVIDIA's code (`golden/mini`), and what it refuses.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gr00t_host::checkpoint::{Checkpoint, OpenOptions, SafetensorsFile, TensorSource, WeightsSpec};
use gr00t_host::embodiment::{DataConfig, Metadata};
use gr00t_host::image::Frame;
use gr00t_host::metrics::{Gate, compare};
use gr00t_host::noise::Noise;
use gr00t_host::observation::{Observation, ObservationFile, Values};
use gr00t_host::{Error, ModelConfig};
use gr00t_model::{CancelToken, DtypePolicy, ModelError, Policy, PolicyBuilder, PredictOptions};
use tt_ops::Soft;

/// Largest difference in bf16, as a share of a key's range.
const TOLERANCE: f64 = 0.01;

fn checkpoint(seed: u64) -> Checkpoint {
    let options = OpenOptions::new().config(ModelConfig::mini());
    Checkpoint::open(&WeightsSpec::Synthetic { seed }, &options).unwrap()
}

fn builder() -> PolicyBuilder<Soft> {
    Policy::builder(&checkpoint(3), Soft::open().unwrap()).data_config(gr1())
}

fn gr1() -> DataConfig {
    DataConfig::builtin("fourier_gr1_arms_only").unwrap()
}

fn observation() -> Observation {
    let mut observation = Observation { instruction: Some("pick the pear".into()), ..Observation::default() };
    observation.images.insert("ego_view".into(), Frame::new(256, 256, vec![90; 256 * 256 * 3]).unwrap());
    for (key, dim) in [("left_arm", 7), ("right_arm", 7), ("left_hand", 6), ("right_hand", 6)] {
        observation.state.insert(key.into(), Values::F64(vec![0.1; dim]));
    }
    observation
}

struct Golden {
    file: ObservationFile,
    noise: Noise,
}

fn golden(name: &str) -> Option<Golden> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden").join(name);
    if !folder.exists() {
        println!("skipped: {} is absent", folder.display());
        return None;
    }
    let tensors = SafetensorsFile::open(folder.join("golden.safetensors")).unwrap();
    let mut noise = vec![0.0; tensors.info("in.noise").unwrap().elements()];
    tensors.read_f32("in.noise", 0, &mut noise).unwrap();
    let file = ObservationFile::read(folder.join("observation.json")).unwrap();
    Some(Golden { file, noise: Noise::Explicit(noise) })
}

#[test]
fn physical_actions_are_nvidias() {
    for (name, seed) in [("mini/gr1", 3), ("mini/droid_three_views", 4)] {
        let Some(Golden { file, noise }) = golden(name) else { return };
        let policy = Policy::builder(&checkpoint(seed), Soft::open().unwrap())
            .data_config(DataConfig::load(file.data_config.as_deref().unwrap()).unwrap())
            .metadata(Metadata::from_file(file.resolve(file.metadata.as_deref().unwrap())).unwrap())
            .dtype_policy(DtypePolicy::Bf16)
            .noise(noise)
            .build()
            .unwrap();

        let prediction = policy.predict(&file.observation().unwrap()).unwrap();

        let expected = file.expected.unwrap();
        assert_eq!(prediction.prompt.input_ids.len(), expected.prompt_tokens.unwrap());
        assert_eq!(prediction.chunk.groups.len(), expected.actions.len());
        for group in &prediction.chunk.groups {
            let want: Vec<f32> = expected.actions[&group.key].iter().flatten().map(|&v| v as f32).collect();
            let (low, high) =
                want.iter().fold((f32::MAX, f32::MIN), |(low, high), &v| (low.min(v), high.max(v)));
            let gate = Gate { min_pcc: 0.99, max_abs: TOLERANCE * f64::from(high - low) };
            let comparison = compare(&group.values, &want);
            assert!(comparison.passes(&gate), "{name} {}: {comparison:?}", group.key);
        }
    }
}

#[test]
fn seeds_and_steps_choose_the_actions() {
    let policy = builder().build().unwrap();
    let with = |options: PredictOptions| policy.predict_with(&observation(), &options).unwrap().action_pred;
    let default = policy.predict(&observation()).unwrap();
    assert_eq!(default.action_pred, with(PredictOptions::new().seed(0)));
    assert_eq!(default.noise, Noise::Seed(0).resolve(16, 32).unwrap());
    assert_ne!(default.action_pred, with(PredictOptions::new().seed(1)));
    assert_ne!(default.action_pred, with(PredictOptions::new().denoising_steps(8)));
}

#[test]
fn a_batch_gives_what_singles_give() {
    let policy = builder().build().unwrap();
    let mut other = observation();
    other.instruction =
        Some("put the pear on the plate that is nearest to the edge of the table, slowly".into());
    let both = [observation(), other];
    let batch = policy.predict_batch(&both, &PredictOptions::new()).unwrap();
    for (observation, got) in both.iter().zip(&batch) {
        let single = policy.predict(observation).unwrap();
        assert_eq!((got.action_pred.as_slice(), &got.chunk), (single.action_pred.as_slice(), &single.chunk));
    }
}

#[test]
fn an_observer_sees_the_stages_and_changes_nothing() {
    let policy = builder().build().unwrap();
    let mut names = Vec::new();
    let mut observer = |name: &str, shape: [usize; 2], values: &[f32]| {
        assert_eq!(shape[0] * shape[1], values.len());
        names.push(name.to_owned());
    };
    let observed = policy.observe(&observation(), &PredictOptions::new(), &mut observer).unwrap();
    assert_eq!(observed.action_pred, policy.predict(&observation()).unwrap().action_pred);
    assert_eq!(names.first().map(String::as_str), Some("vision.embeddings"));
    assert_eq!(names.last().map(String::as_str), Some("action_pred"));
}

#[test]
fn two_robots_share_one_model_and_have_horizons_of_their_own() {
    let first = builder().build().unwrap();
    let mut config = DataConfig::builtin("oxe_droid").unwrap();
    config.action_horizon = 8;
    let metadata = gr00t_host::embodiment::synthetic_metadata(&config).unwrap();
    let second =
        Policy::on(Arc::clone(first.model())).data_config(config).metadata(metadata).build().unwrap();
    assert_eq!(first.model().embodiments(), [17, 24]);
    assert_eq!((first.decoder().horizon(), second.decoder().horizon()), (16, 8));
    assert_eq!(second.encoder().view_keys().count(), 3);
    assert_eq!(first.predict(&observation()).unwrap().chunk.horizon, 16);
}

#[test]
fn prepared_geometries_are_not_captured_again() {
    let policy = builder().build().unwrap();
    let key = policy.prepare(&observation(), &PredictOptions::new()).unwrap();
    assert_eq!((key.views(), key.batch(), key.steps(), key.embodiment()), (1, 1, 4, 24));
    let tokens = policy.encoder().encode(&observation(), &Noise::default()).unwrap().inputs.input_ids.len();
    assert_eq!(key.bucket(), tokens, "nothing is padded");
    policy.predict(&observation()).unwrap();
    let stats = policy.model().trace_stats();
    assert_eq!((stats.captures, stats.hits), (1, 1));
}

#[test]
fn everything_wrong_with_an_observation_is_said_at_once() {
    let policy = builder().build().unwrap();
    let error = policy.predict(&Observation::default()).unwrap_err();
    let ModelError::Host(Error::Observation(problems)) = &error else { panic!("{error}") };
    assert!(problems.iter().any(|p| p.contains("ego_view")) && problems.len() >= 5, "{problems:?}");
}

#[test]
fn a_cancelled_request_does_not_run() {
    let policy = builder().build().unwrap();
    let token = CancelToken::new();
    token.cancel();
    let options = PredictOptions::new().cancel_token(token);
    let error = policy.predict_with(&observation(), &options).unwrap_err();
    assert!(matches!(error, ModelError::Cancelled { .. }), "{error}");
}

#[test]
fn a_policy_needs_a_data_config_and_statistics() {
    let error = Policy::builder(&checkpoint(3), Soft::open().unwrap()).build().unwrap_err();
    assert_eq!(error.to_string(), "option data_config: got none, wanted the robot's data config");
    let model = Arc::clone(builder().build().unwrap().model());
    let error = Policy::on(model).data_config(gr1()).build().unwrap_err();
    assert_eq!(error.to_string(), "option metadata: got none, wanted statistics: a shared model has none");
}
